"""What Chat's clients insist on, chunk by chunk."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import SaidSoFar, StreamRules, is_object
from rightcall.types import Json

_FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class _ChoiceState:
    """What is known of one choice."""

    def __init__(self) -> None:
        self.said = SaidSoFar()
        self.arguments: list[list[str]] = []  # of each call
        self.has_role = False
        self.has_custom = False
        self.finish = ""


class ChatRules(StreamRules):
    """The rules of `chat.completion.chunk`s."""

    def __init__(self) -> None:
        super().__init__()
        self._choices: dict[int, _ChoiceState] = {}
        self._id = ""

    def may_follow(self, payload: Json) -> bool:
        return False

    def take(self, name: str | None, payload: Json) -> None:
        if payload.get("error"):
            self.take_error(payload, "message", "type")
            return
        self.want_texts(payload, "id", "model")
        self.want_numbers(payload, "created")
        if payload.get("object") != "chat.completion.chunk":
            self.say(f"`object` must be chat.completion.chunk, not {payload.get('object')!r:.40}")
        self._id = self._id or str(payload.get("id"))
        if payload.get("id") != self._id:
            self.say("the `id` differs from that of the chunks before")
        if not isinstance(payload.get("choices"), list):
            self.say("there is no list `choices`; an empty one is fine")
        for choice in objects(payload.get("choices")):
            self._choice(choice)
        if payload.get("usage") is not None:
            self.want_usage(payload["usage"], *_COUNTS)

    def _choice(self, choice: Json) -> None:
        self.want_numbers(choice, "index")
        index = choice.get("index")
        state = self._choices.setdefault(index if type(index) is int else 0, _ChoiceState())
        delta = obj(choice.get("delta"))
        if delta is None:
            self.say("the choice has no `delta`")
            return
        if state.finish and any(delta.get(key) for key in ("content", "tool_calls", "reasoning_content")):
            self.say("text or calls come after the finish")
        if not state.has_role and delta.get("role") != "assistant":
            self.say("the first delta has no `role`")
        state.has_role = True
        self._words(state, delta)
        self._calls(state, delta.get("tool_calls"))
        self._finish(state, choice.get("finish_reason"))

    def _words(self, state: _ChoiceState, delta: Json) -> None:
        for key in ("content", "reasoning_content"):
            if not isinstance(delta.get(key, ""), str | None):
                self.say(f"`{key}` must be text, not {delta[key]!r:.40}")
        if isinstance(delta.get("content"), str):
            state.said.add(delta["content"])

    def _calls(self, state: _ChoiceState, calls: Any) -> None:
        if calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self.say("`tool_calls` must be a list of calls, or be left out")
            return
        if state.said.is_blank:
            self.say("blank text stands before a call; some clients take it for the answer")
        for entry in objects(calls):
            self._call(state, entry)

    def _call(self, state: _ChoiceState, entry: Json) -> None:
        index, kind = entry.get("index"), "custom" if "custom" in entry else "function"
        field = "input" if kind == "custom" else "arguments"
        function = obj(entry.get(kind)) or {}
        if type(index) is not int or not 0 <= index <= len(state.arguments):
            self.say(f"the call's `index` must be a number from 0 without gaps, not {index!r:.40}")
            return
        if index == len(state.arguments):
            self._first(state, entry, kind, function)
        else:
            self._further(state, entry, index, function)
        piece = function.get(field)
        if not isinstance(piece, str):
            self.say(f"`{field}` must be text in every delta of a call, not {piece!r:.40}")
        state.arguments[index].append(piece if isinstance(piece, str) else "")

    def _first(self, state: _ChoiceState, entry: Json, kind: str, function: Json) -> None:
        state.arguments.append([])
        state.has_custom = state.has_custom or kind == "custom"
        self.new_call_id(entry.get("id"))
        self.want_call_name(function.get("name"))
        if entry.get("type") != kind:
            self.say(f"the call's `type` must be {kind}, not {entry.get('type')!r:.40}")

    def _further(self, state: _ChoiceState, entry: Json, index: int, function: Json) -> None:
        if index != len(state.arguments) - 1:
            self.say("a call goes on after the next has begun")
        if function.get("name"):
            self.say("the name is said again; some clients put it together twice")
        if entry.get("id") and text(entry["id"]) not in self._ids:
            self.say("the `id` of a call changes")

    def _finish(self, state: _ChoiceState, finish: Any) -> None:
        if finish is None:
            return
        if state.finish:
            self.say("there are two finishes")
        if finish not in _FINISHES:
            self.say(f"`finish_reason` must be one of {', '.join(_FINISHES)}, not {finish!r:.40}")
        state.finish = str(finish)
        pieces = ["".join(each) for each in state.arguments]
        whole = state.has_custom or all(map(is_object, pieces))
        if pieces and whole and finish != "tool_calls":
            self.say(f"the answer has calls, so it must end with tool_calls, not {finish!r:.40}")
        if finish == "tool_calls" and not (pieces and whole):
            self.say("it ends with tool_calls, but it has no call or one whose arguments are no JSON object")

    def on_done_mark(self) -> None:
        if not self.ended:
            self._want_finishes()
        self.ended = "[DONE]"

    def _want_finishes(self) -> None:
        if not self._choices or any(not state.finish for state in self._choices.values()):
            self.say_of_all("the stream ends without a `finish_reason`: clients wait, or ask again without limit")

    def close(self) -> None:
        if not self.ended:
            self._want_finishes()

    def whole(self, body: Json) -> None:
        """A whole answer."""
        self.want_texts(body, "id", "model")
        self.want_numbers(body, "created")
        choices = objects(body.get("choices"))
        if not choices:
            self.say("there are no `choices`")
        for choice in choices:
            self._whole_choice(choice)
        self.want_usage(body.get("usage"), *_COUNTS)
        self.ended = "it"

    def _whole_choice(self, choice: Json) -> None:
        self.want_numbers(choice, "index")
        message = obj(choice.get("message")) or {}
        if message.get("role") != "assistant":
            self.say("the message has no `role`")
        if "content" not in message:
            self.say("the message has no `content`; null is fine beside calls")
        state = _ChoiceState()
        self._words(state, message)
        calls = message.get("tool_calls")
        numbered = [{**entry, "index": at} for at, entry in enumerate(objects(calls))]
        self._calls(state, numbered if calls else calls)
        if choice.get("finish_reason") is None:
            self.say("there is no `finish_reason`")
        self._finish(state, choice.get("finish_reason"))
