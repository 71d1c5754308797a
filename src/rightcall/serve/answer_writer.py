"""What every dialect's writer can do: an answer as bytes, streamed piece by piece or whole.

    writer = WRITERS["messages"](head)
    send(writer.begin()); send(writer.text("Hi")); send(writer.call(call)); send(writer.finish(end))

A writer knows no network and no server. It keeps to the order that its dialect's clients insist on, whatever it is
given in which order: blocks and items are opened and closed by it, indexes count from 0 without gaps, there is one
finish. `begin` is given once, first; after `finish` or `error` nothing.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from rightcall.serve.client_request import ClientRequest
from rightcall.types import Call, Json, Reply


class AnswerHead(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before the first word: the `id` of the answer (new, in the style of the dialect), the `model` to
    name, when it was `created` (seconds since 1970), and the `request` that it answers. `as_array`: a Gemini stream is
    wanted as one JSON array, not as events (the query has no `alt=sse`)."""

    id: str
    model: str
    created: int
    request: ClientRequest
    as_array: bool = False


class AnswerUsage(msgspec.Struct, frozen=True):
    """Tokens; None where the server did not say. As in `backends.Usage`, and `given`: the server's own fields, only
    where it speaks the client's dialect."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    given: Json = {}


class AnswerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer ended: `finish` in the words of `Reply.finish` (stop, length, content_filter, tool_calls, error),
    what it cost, and fields that the server put on the last event and we do not know (`beside`)."""

    finish: str = "stop"
    usage: AnswerUsage = AnswerUsage()
    beside: Json = {}


class AnswerWriter(Protocol):
    """One answer. Streamed: `begin`, pieces in any order, then `finish` or `error`; or `whole`, all at once."""

    content_type: str
    head: AnswerHead

    def __init__(self, head: AnswerHead) -> None: ...

    def begin(self) -> bytes:
        """The events that open an answer."""

    def text(self, said: str) -> bytes:
        """A piece of text."""

    def reasoning(self, thought: str) -> bytes:
        """A piece of reasoning."""

    def signature(self, fields: Json) -> bytes:
        """What the server wants back with the reasoning just given (`signature`, `encrypted_content`,
        `thoughtSignature`, a `redacted_thinking` block), under its dialect's names; before any reasoning it begins one
        (`{"id": "rs_1"}` names it). Empty where the dialect has no place for it."""

    def call(self, call: Call, extras: Json | None = None) -> bytes:
        """A whole call, with what the server wants back with it (`Reply.extras` of its id)."""

    def call_begin(self, id: str, name: str) -> bytes:
        """A call whose arguments follow as they come. Ends what is open; one call at a time is open."""

    def call_piece(self, json: str) -> bytes:
        """The next piece of its argument text."""

    def call_end(self) -> bytes:
        """The open call is whole."""

    def passed(self, payload: Json) -> bytes:
        """An event of a server of the same dialect that is neither text, reasoning nor a call, with its indexes put
        right; empty for what this writer says itself (begin, finish)."""

    def finish(self, end: AnswerEnd) -> bytes:
        """The events that close an answer, whatever was open."""

    def error(self, message: str, code: str = "upstream_error") -> bytes:
        """An error in the middle of an answer, or in its place, and what must follow it. It begins nothing."""

    def alive(self) -> bytes:
        """A sign of life that every client takes and none counts as content."""

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        """The answer at once: `reply.parts` in order, only the calls that are in it as `ok`; `encoded` makes bytes of
        it. `given` is the whole answer of a server of the same dialect: what of it is neither text, reasoning nor a
        call is kept."""
