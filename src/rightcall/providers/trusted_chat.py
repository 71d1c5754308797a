"""Chat answers and chunks that hold only calls that may run: what a server sent, with its calls put right.

What is not about text, reasoning or calls goes out as it came.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers import openai_chat
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.providers.trusted import DONE, EventFrame
from rightcall.types import Call, CallEnd, Event, Json, Reasoning, Reply, Text

_OWN = frozenset(("content", "tool_calls", "function_call", *openai_chat.REASONING))


def whole(response: Json, replies: list[Reply]) -> Json:
    """The response with each choice as its reply has it."""
    choices = objects(response.get("choices"))
    made = [_choice(choice, reply) for choice, reply in zip(choices, replies, strict=False)]
    return {**response, "choices": made}


def _choice(choice: Json, reply: Reply) -> Json:
    message = {key: value for key, value in (obj(choice.get("message")) or {}).items() if key != "tool_calls"}
    message["content"] = reply.content or (None if reply.calls else "")
    if reply.reasoning and not any(message.get(name) for name in openai_chat.REASONING):
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = CHAT.assistant_message("", reply.calls, extras=reply.extras)["tool_calls"]
    return {**choice, "message": message, "finish_reason": finish(text(choice.get("finish_reason")), reply.calls)}


def finish(said: str, calls: tuple[Call, ...] | int) -> str:
    """How the answer ended, now that these are its calls."""
    if calls:
        return "tool_calls"
    return "stop" if said in ("tool_calls", "function_call", "") else said


class ChatChunks:
    """The chunks of one choice, made of events. What ends the stream waits until all calls are known."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._index: Any = 0
        self._calls = 0
        self._finish = ""
        self._last: list[Json] = []  # usage, which comes behind the finish

    def take(self, payload: Json, events: list[Event]) -> list[EventFrame]:
        choices = objects(payload.get("choices"))
        if not choices:
            if "choices" in payload:
                self._last.append(payload)
                return self._written(events)
            return [*self._written(events), EventFrame(payload)]
        self._take_head(payload)
        return [*self._kept(choices[0]), *self._written(events)]

    def _take_head(self, payload: Json) -> None:
        """What stands beside the choices goes out with every chunk, usage once and last."""
        self._head = {key: value for key, value in payload.items() if key != "choices"}
        if self._head.get("usage") is not None:
            self._last.append({**self._head, "choices": []})
            self._head["usage"] = None

    def _kept(self, choice: Json) -> list[EventFrame]:
        """What the choice holds that goes out as it came."""
        self._index = choice.get("index", 0)
        self._finish = text(choice.get("finish_reason")) or self._finish
        delta = {key: value for key, value in (obj(choice.get("delta")) or {}).items() if key not in _OWN}
        return [self._chunk(delta)] if any(value is not None for value in delta.values()) else []

    def close(self, events: list[Event], reply: Reply) -> list[EventFrame]:
        ending = [self._chunk({}, finish(self._finish, self._calls_in(events)))]
        return [*self._written(events), *ending, *[EventFrame(each) for each in self._last], DONE]

    def _calls_in(self, events: list[Event]) -> int:
        return self._calls + sum(isinstance(event, CallEnd) and event.call.ok for event in events)

    def _written(self, events: list[Event]) -> list[EventFrame]:
        out: list[EventFrame] = []
        for event in events:
            if isinstance(event, Text) and event.text:
                out.append(self._chunk({"content": event.text}))
            elif isinstance(event, Reasoning) and event.text:
                out.append(self._chunk({"reasoning_content": event.text}))
            elif isinstance(event, CallEnd) and event.call.ok:
                (entry,) = CHAT.assistant_message("", [event.call])["tool_calls"]
                out.append(self._chunk({"tool_calls": [{"index": self._calls, **entry}]}))
                self._calls += 1
        return out

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> EventFrame:
        choice = {"index": self._index, "delta": delta, "finish_reason": finish_reason}
        return EventFrame({**self._head, "choices": [choice]})


def error(message: str) -> Json:
    return {"error": {"message": message, "type": "model_error", "param": None, "code": "calls_refused"}}


def streamed() -> ChatChunks:
    """The writer of one streamed answer."""
    return ChatChunks()
