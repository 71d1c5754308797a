"""Messages of Anthropic's API, whole and as events, that hold only calls that may run.

Thinking keeps its signatures. Blocks that are neither text, thinking nor calls of ours go out as they came.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.dialect import argument_text
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.providers.trusted import EventFrame
from rightcall.types import Call, CallEnd, Event, Json, Reasoning, Reply, Text

_DELTAS = frozenset(("text_delta", "thinking_delta", "input_json_delta"))


def whole(response: Json, replies: list[Reply]) -> Json:
    """The message with its calls, and the text where calls were found in it, as the reply has them."""
    reply = replies[0]
    blocks = objects(response.get("content"))
    said = "\n".join([text(block.get("text")) for block in blocks if block.get("type") == "text"])
    kept = [block for block in blocks if block.get("type") != "tool_use"]
    if said != reply.content:
        kept = [block for block in kept if block.get("type") != "text"]
        kept += [{"type": "text", "text": reply.content}] if reply.content else []
    calls = [_block(call, reply.extras.get(call.id, {})) for call in reply.calls]
    return {**response, "content": [*kept, *calls], "stop_reason": stop(response.get("stop_reason"), bool(calls))}


def stop(said: Any, has_calls: bool) -> Any:
    """How the message ended, now that it has calls or none."""
    if has_calls:
        return "tool_use"
    return "end_turn" if said == "tool_use" else said


def _block(call: Call, extras: Json) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments, **extras}


class MessagesChunks:
    """The events of one message. Its blocks are counted anew, since some go and others come."""

    def __init__(self) -> None:
        self._next = 0
        self._open = ""  # the kind of the block that is open
        self._passed: dict[Any, int] = {}  # blocks that go out as they came: their index here
        self._calls = 0
        self._ending: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}

    def take(self, payload: Json, events: list[Event]) -> list[EventFrame]:
        kind = text(payload.get("type"))
        if kind == "message_start" or kind == "ping":
            return [*self._written(events), EventFrame(payload, kind)]
        if kind == "message_delta":
            self._ending = payload
        elif kind.startswith("content_block"):
            return [*self._written(events), *self._block(kind, payload)]
        elif kind != "message_stop":
            return [*self._written(events), EventFrame(payload, kind)]
        return self._written(events)

    def close(self, events: list[Event], reply: Reply) -> list[EventFrame]:
        out = [*self._written(events), *self._end()]
        delta = obj(self._ending.get("delta")) or {}
        delta = {**delta, "stop_reason": stop(delta.get("stop_reason"), bool(self._calls))}
        stopped: Json = {"type": "message_stop"}
        return [
            *out,
            EventFrame({**self._ending, "delta": delta}, "message_delta"),
            EventFrame(stopped, "message_stop"),
        ]

    def _block(self, kind: str, payload: Json) -> list[EventFrame]:
        """What is left of a block's own events: signatures, and blocks that we do not write."""
        index = payload.get("index")
        block, delta = obj(payload.get("content_block")) or {}, obj(payload.get("delta")) or {}
        if kind == "content_block_start" and block.get("type") not in ("text", "thinking", "tool_use"):
            ended = self._end()
            self._passed[index] = self._next
            self._next += 1
            return [*ended, EventFrame({**payload, "index": self._passed[index]}, kind)]
        if index in self._passed:
            return [EventFrame({**payload, "index": self._passed[index]}, kind)]
        if kind == "content_block_delta":
            return self._beside(payload, delta.get("type"))
        return self._end() if kind == "content_block_stop" and self._open == "thinking" else []

    def _beside(self, payload: Json, kind: Any) -> list[EventFrame]:
        """A piece of a block of ours that we do not write."""
        if kind == "signature_delta":
            begun = self._begin("thinking")
        elif kind not in _DELTAS and self._open:
            begun = []
        else:
            return []
        return [*begun, EventFrame({**payload, "index": self._next}, "content_block_delta")]

    def _written(self, events: list[Event]) -> list[EventFrame]:
        out: list[EventFrame] = []
        for event in events:
            if isinstance(event, Text) and event.text:
                out += [*self._begin("text"), self._delta({"type": "text_delta", "text": event.text})]
            elif isinstance(event, Reasoning) and event.text:
                out += [*self._begin("thinking"), self._delta({"type": "thinking_delta", "thinking": event.text})]
            elif isinstance(event, CallEnd) and event.call.ok:
                out += self._call(event.call)
        return out

    def _call(self, call: Call) -> list[EventFrame]:
        self._calls += 1
        out = [*self._begin("tool_use", {"id": call.id, "name": call.name, "input": {}})]
        out.append(self._delta({"type": "input_json_delta", "partial_json": argument_text(call)}))
        return [*out, *self._end()]

    def _begin(self, kind: str, fields: Json | None = None) -> list[EventFrame]:
        if self._open == kind:
            return []
        out = self._end()
        self._open = kind
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind, fields or {})
        block = {"type": kind, **empty}
        start = {"type": "content_block_start", "index": self._next, "content_block": block}
        return [*out, EventFrame(start, "content_block_start")]

    def _end(self) -> list[EventFrame]:
        if not self._open:
            return []
        self._open = ""
        self._next += 1
        return [EventFrame({"type": "content_block_stop", "index": self._next - 1}, "content_block_stop")]

    def _delta(self, delta: Json) -> EventFrame:
        payload = {"type": "content_block_delta", "index": self._next, "delta": delta}
        return EventFrame(payload, "content_block_delta")


def error(message: str) -> Json:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def streamed() -> MessagesChunks:
    """The writer of one streamed answer."""
    return MessagesChunks()
