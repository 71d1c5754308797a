"""What Ollama's clients insist on, line by line."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects
from rightcall.testing.conformance.stream_rules import SaidSoFar, StreamRules
from rightcall.types import Json


class OllamaRules(StreamRules):
    """The rules of the lines of `/api/chat`."""

    def __init__(self) -> None:
        super().__init__()
        self._said = SaidSoFar()
        self._calls = False

    def take(self, name: str | None, payload: Json) -> None:
        if "error" in payload:
            self.want_texts(payload, "error")
            self.ended = "the error"
            return
        self.want_texts(payload, "model", "created_at")
        message = obj(payload.get("message"))
        if message is None:
            self.say("there is no `message`")
            return
        if message.get("role") != "assistant":
            self.say(f"the `role` must be assistant, not {message.get('role')!r:.40}")
        for key in ("content", "thinking"):
            if not isinstance(message.get(key, "" if key == "thinking" else None), str):
                self.say(f"`{key}` must be text, not {message.get(key)!r:.40}")
        self._take_calls(message)
        self._said.add(str(message.get("content") or ""))
        if type(payload.get("done")) is not bool:
            self.say(f"`done` must be true or false, not {payload.get('done')!r:.40}")
        if payload.get("done") is True:
            self._end(payload)

    def _take_calls(self, message: Json) -> None:
        calls: Any = message.get("tool_calls")
        if calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self.say("`tool_calls` must be a list of calls, or be left out")
        if self._said.is_blank:
            self.say("blank text stands before a call; some clients take it for the answer")
        for call in objects(calls):
            function = obj(call.get("function")) or {}
            self.want_call_name(function.get("name"))
            if "id" in call:
                self.new_call_id(call["id"])
            if type(function.get("arguments")) is not dict:
                self.say(f"`arguments` must be an object, not {function.get('arguments')!r:.40}")

    def _end(self, payload: Json) -> None:
        self.ended = "the line with `done`"
        if payload.get("done_reason", "stop") not in ("stop", "length", "load", "unload"):
            self.say(f"`done_reason` must be stop or length, not {payload.get('done_reason')!r:.40}")
        counts = ("prompt_eval_count", "eval_count", "total_duration")
        self.want_numbers({key: payload[key] for key in counts if key in payload}, *[k for k in counts if k in payload])

    def on_done_mark(self) -> None:
        self.say("[DONE] is no line of this dialect")

    def whole(self, body: Json) -> None:
        """A whole answer has the shape of the last line."""
        self.take(None, body)
        if not self.ended:
            self.say("`done` must be true")
