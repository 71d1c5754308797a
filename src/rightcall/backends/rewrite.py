"""An answer on its way to a client, with its calls put right: bytes in, bytes of the same dialect out.

    rewriter = Rewriter("chat", {"tools": tools}, streamed=True)
    for piece in body: client.send(rewriter.feed(piece))
    client.send(rewriter.close())

Text and reasoning flow as they come, but for what may be a call; a call goes out when it is whole and may run. No IO.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, Protocol

import msgspec

from rightcall.contracts.protocol import feedback
from rightcall.providers import trusted_chat, trusted_messages, trusted_responses
from rightcall.providers.dialect import Loss
from rightcall.providers.provider_answers import Stream, read_all
from rightcall.providers.sdk_view import objects
from rightcall.providers.sse import Payloads
from rightcall.providers.trusted import DONE, EventFrame
from rightcall.types import CallEnd, Event, Json, Reply

Refused = Literal["error", "drop", "pass"]
MODULES: dict[str, ModuleType] = {
    "chat": trusted_chat,
    "responses": trusted_responses,
    "messages": trusted_messages,
}
STATUS = 422  # of an answer that would be an error; clients do not ask again


class Chunked(Protocol):
    def take(self, payload: Json, events: list[Event]) -> list[EventFrame]: ...
    def close(self, events: list[Event], reply: Reply) -> list[EventFrame]: ...


class Rewriter:
    """`refused` says what becomes of an answer in which no call may run though some were made: an `error`, the answer
    without them (`drop`), or with them as they were written (`pass`). Where one call may run, the others are left out.
    """

    def __init__(
        self,
        api: str,
        reading: dict[str, Any],
        *,
        streamed: bool,
        refused: Refused = "error",
        on_reply: Callable[[Reply], None] | None = None,
    ) -> None:
        self._api, self._reading, self._refused, self._on_reply = api, reading, refused, on_reply
        self._writer = MODULES[api]
        self._body: list[bytes] = []
        self._payloads = Payloads() if streamed else None
        self._choices: dict[Any, tuple[Stream, Chunked]] = {}
        self.streamed = streamed
        self.status = 200

    def feed(self, data: bytes) -> bytes:
        if self._payloads is None:
            self._body.append(data)
            return b""
        return b"".join([self._payload(payload) for payload in self._payloads.feed(data)])

    def close(self) -> bytes:
        if self._payloads is None:
            return self._whole(b"".join(self._body))
        out = [self._payload(payload) for payload in self._payloads.close()]
        return b"".join([*out, *self._ends()])

    # -- whole ---------------------------------------------------------------------------------------------------------

    def _whole(self, body: bytes) -> bytes:
        try:
            response = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(response, dict) or response.get("error"):
            return body
        replies = [self._judged(reply) for reply in read_all(response, api=self._api, **self._reading)]
        wrong = [said for reply in replies if (said := self._error(reply))]
        if wrong:
            self.status = STATUS
            return _encoded(self._writer.error(wrong[0]))
        return _encoded(self._writer.whole(response, replies))

    # -- streamed ------------------------------------------------------------------------------------------------------

    def _payload(self, payload: Json | Loss) -> bytes:
        if isinstance(payload, Loss):
            self._choice(0)
            self._lose(payload)
            return b""
        if payload.get("error") and "choices" not in payload:
            self._lose(payload)
            return EventFrame(payload, "error" if self._api == "messages" else "").encode()
        out: list[EventFrame] = []
        for number, part in self._parts(payload):
            stream, chunks = self._choice(number)
            out += chunks.take(part, self._passed(stream.feed(_first(part))))
        return b"".join([frame.encode() for frame in out])

    def _lose(self, what: Json | Loss) -> None:
        """Something of the answer was lost: no choice may take its last call for whole."""
        for stream, _ in self._choices.values():
            stream.feed(what)

    def _parts(self, payload: Json) -> list[tuple[Any, Json]]:
        """The payload of each choice; most have one."""
        choices = objects(payload.get("choices")) if self._api == "chat" else []
        if len(choices) < 2 and not (choices and choices[0].get("index")):
            return [(0, payload)]
        return [(choice.get("index", at), {**payload, "choices": [choice]}) for at, choice in enumerate(choices)]

    def _choice(self, number: Any) -> tuple[Stream, Chunked]:
        if number not in self._choices:
            self._choices[number] = Stream(self._api, live=True, **self._reading), self._writer.streamed()
        return self._choices[number]

    def _ends(self) -> list[bytes]:
        out: list[EventFrame] = []
        for stream, chunks in self._choices.values():
            events = self._passed(stream.close())
            reply = self._judged(stream.reply)
            wrong = self._error(reply)
            if wrong:
                named = "error" if self._api == "messages" else ""
                return [frame.encode() for frame in out] + [EventFrame(self._writer.error(wrong), named).encode()]
            out += [frame for frame in chunks.close(events, reply) if frame is not DONE]
        return [frame.encode() for frame in [*out, *([DONE] if self._api == "chat" and self._choices else [])]]

    def _passed(self, events: list[Event]) -> list[Event]:
        if self._refused != "pass":
            return events
        return [CallEnd(event.index, _freed(event.call)) if isinstance(event, CallEnd) else event for event in events]

    # -- both ----------------------------------------------------------------------------------------------------------

    def _judged(self, reply: Reply) -> Reply:
        if self._on_reply is not None:
            self._on_reply(reply)
        if self._refused != "pass" or reply.calls:
            return reply
        parts = [_freed(part) if part in reply.refused else part for part in reply.parts]
        about_none = tuple([problem for problem in reply.problems if problem.call is None])
        return msgspec.structs.replace(reply, parts=tuple(parts), problems=about_none)

    def _error(self, reply: Reply) -> str:
        """What to say in place of an answer whose calls were all refused."""
        if self._refused != "error" or reply.calls or not reply.refused:
            return ""
        return feedback(reply)


def _freed(call: Any) -> Any:
    """A call that goes out though something is wrong with it, if it is one at all."""
    return msgspec.structs.replace(call, problems=()) if call.complete else call


def _first(payload: Json) -> Json:
    """The payload of a choice as if it were the only one."""
    choices = objects(payload.get("choices"))
    if not choices or not choices[0].get("index"):
        return payload
    return {**payload, "choices": [{**choices[0], "index": 0}]}


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
