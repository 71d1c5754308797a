"""The interface between the dialect of one API and the code that all APIs share.

A dialect reads a response or a chunk as deltas, which `assembler` turns into events:

    {"choices": [{"delta": {"content": "Hi"}}]}  ->  [(0, TextDelta("Hi"))]

The number is the choice (or candidate) that the delta belongs to. A dialect also writes replies and tool results as
messages; the helpers for that are at the end of this module. `DIALECTS` in `sniff` lists all dialects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from rightcall.api_names import Api
from rightcall.providers.sdk_view import compact_json
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json, Reply

# -- deltas ------------------------------------------------------------------------------------------------------------

Slot = int | str


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """A piece of reasoning."""

    text: str


class UnknownField(msgspec.Struct, frozen=True):
    """A field of a native call that the dialect does not define.

    `inner`: the field is in the object that has the name and the arguments, so the model wrote it and not the server.
    """

    key: str
    value: Any
    inner: bool


class CallDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a native call. A field that the payload does not have is empty.

    - `slot`: the provider's index or id of the call within the answer.
    - `draft`: arguments that are used if no argument text follows.
    - `custom`: a call of a custom tool, whose argument is free text.
    - `whole`: the piece is a complete call.
    - `all`: `arguments` is the final argument text and replaces what came before.
    - `parsed`: the server parsed the arguments and wrote them again, so valid JSON does not prove that the model
      finished the call.
    - `ended`: the provider reports the call as completed.
    - `fault`: code and message of what makes the entry unusable.
    - `unknown`: fields that the dialect does not define.
    """

    slot: Slot | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    draft: str = ""
    custom: bool = False
    whole: bool = False
    all: bool = False
    parsed: bool = False
    ended: bool = False
    fault: tuple[str, str] | None = None
    unknown: tuple[UnknownField, ...] = ()


class CallClosed(msgspec.Struct, frozen=True):
    """A sign that nothing more follows for the call in this slot."""

    slot: Slot | None


class Finish(msgspec.Struct, frozen=True):
    """The provider's finish reason, normalized by `finish_of`."""

    reason: str


class Fault(msgspec.Struct, frozen=True):
    """A problem of the answer as a whole."""

    code: str
    message: str
    blocking: bool = True


class Loss(Fault, frozen=True):
    """A part of the answer was lost, so the end of any of its choices may be missing."""


Delta = TextDelta | ReasoningDelta | CallDelta | CallClosed | Finish | Fault
Deltas = list[tuple[int, Delta]]

# What a stream has already delivered, for dialects that send the same content twice. The keys belong to the dialect.
StreamState = dict[Any, Any]


def unknown_fields(fields: Json, known: frozenset[str], *, inner: bool) -> tuple[UnknownField, ...]:
    """Return the fields that are neither in `known` nor null. `inner` is that of `UnknownField`, for all of them."""
    if fields.keys() <= known:
        return ()
    found = [(key, value) for key, value in fields.items() if key not in known and value is not None]
    return tuple([UnknownField(key, value, inner) for key, value in found])


# -- the dialect of one API --------------------------------------------------------------------------------------------


# Opaque fields as `Dialect.opaque_fields` returns them: of a call under its id, of the message under "".
Extras = Mapping[str, Json]


class CallOutcome(NamedTuple):
    """A `call` and the outcome of its tool, as they are sent to the model.

    - `output`: the output of the tool.
    - `is_error`: the tool failed.
    - `custom`: the call was one of a custom tool; some APIs take its result in another field.
    """

    call: Call
    output: Any
    is_error: bool = False
    custom: bool = False


class ModelTurn(NamedTuple):
    """A turn of the model in a history: its `value` as the API writes it and `Dialect.response_deltas` reads it."""

    value: Any


class Dialect(ABC):
    """One API. To add one, write a module with a subclass, and list an instance of it in `DIALECTS` (`sniff`)."""

    name: Api

    @abstractmethod
    def detects(self, fields: Json) -> bool:
        """Return True for an object (a response, message, item or chunk) that only this API writes. An object that
        several APIs write may be detected by each of them; `DIALECTS` sets the order."""

    @abstractmethod
    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a response, or of a part of one, each with the number of its choice. Never raises: what
        cannot be read is a `Fault`, or is ignored."""

    @abstractmethod
    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one chunk of a stream, each with the number of its choice. `state` is changed: give the
        same dict with all chunks of one stream."""

    @abstractmethod
    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the fields of the first choice that the provider requires back unchanged: of the message, and for each
        call in order its id ("" if it has none) and its fields. Calls without opaque fields are listed with an empty
        object."""

    @abstractmethod
    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield a history in order: turns of the model as `ModelTurn`, all others as messages of OpenAI's Chat.

        A result has the id and name of its call as far as the API sends them, and `is_error` where the API marks it.
        """

    @abstractmethod
    def assistant_message(
        self,
        reply: Reply | str,
        calls: Iterable[Call] | None = None,
        *,
        reasoning: str | None = None,
        extras: Extras | None = None,
    ) -> Any:
        """Return a reply as the assistant's turn, with everything that the API can express. `calls` and `reasoning`,
        unless None, replace those of the reply; a string is a reply with only text. Opaque fields are taken only from
        `extras`."""

    def accepted_message(self, reply: Reply, extras: Extras) -> Any:
        """Return a reply as the assistant's turn in the form that servers accept, with its opaque fields. Reasoning
        that the servers of an API refuse is left out."""
        return self.assistant_message(reply, extras=extras)

    @abstractmethod
    def tool_result(self, call: Call, output: Any, *, is_error: bool = False) -> Json:
        """Return one message with the result of one call; with `is_error`, marked as a failure as far as the API can. A
        string is sent as it is; how other values are sent depends on the API."""

    def result_messages(self, outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
        """Return the messages that answer calls, in the order of `outcomes`, and the note to the model unless it is
        empty."""
        return with_note([self.tool_result(each.call, each.output, is_error=each.is_error) for each in outcomes], note)

    @abstractmethod
    def tool_choice(self, choice: str) -> Any:
        """Return the value of a request's field for a choice: `auto`, `required`, `none` or the name of a tool, which
        is not checked."""


# -- writing messages --------------------------------------------------------------------------------------------------


class AssistantTurn(NamedTuple):
    """The text, calls and reasoning of an assistant message."""

    text: str
    calls: tuple[Call, ...]
    reasoning: str


def assistant_turn(reply: Reply | str, calls: Iterable[Call] | None, reasoning: str | None) -> AssistantTurn:
    """Return text, calls and reasoning of the assistant message to write for `reply`. `calls` and `reasoning` replace
    those of the reply unless they are None; a string is a reply with only text. The calls of a reply are its
    `attempts`, so rejected calls are included."""
    if isinstance(reply, Reply):
        own = AssistantTurn(reply.content, reply.attempts, reply.reasoning)
    else:
        own = AssistantTurn(reply, (), "")
    if calls is not None:
        own = own._replace(calls=tuple(calls))
    return own if reasoning is None else own._replace(reasoning=reasoning)


def argument_text(call: Call) -> str:
    """Return the arguments of a call as a JSON object: the model's own text, stripped, if the call is complete and the
    text means the same, else compact JSON."""
    if call.complete and decode(call.json, MAX_DEPTH) == call.arguments:
        return call.json.strip()
    return compact_json(call.arguments)


def custom_input(call: Call) -> str:
    """Return the free text of a custom call, which is its argument `input`; all arguments as JSON if that is not a
    string."""
    given = call.arguments.get("input")
    return given if isinstance(given, str) else argument_text(call)


def output_text(output: Any, *, is_error: bool = False) -> str:
    """Return a tool's output as text: a string unchanged, any other value as compact JSON. An error begins with "ERROR:
    ", unless its text already begins with "error" in any case."""
    content = output if isinstance(output, str) else compact_json(output)
    return f"ERROR: {content}" if is_error and not content.lower().startswith("error") else content


def extra_fields(extras: Extras | None, id: str) -> Json:
    """Return the opaque fields of the call with this id, or of the message (`id=""`), as a new dict whose values are
    shared with `extras`; an empty dict if there are none."""
    return dict(extras.get(id, {})) if extras else {}


def with_note(messages: list[Json], note: str) -> list[Json]:
    """Return the messages followed by a user message of Chat with the note; the same list for an empty note."""
    return [*messages, {"role": "user", "content": note}] if note else messages
