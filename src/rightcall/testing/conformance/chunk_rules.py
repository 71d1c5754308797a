"""The rules of dialects whose streams are chunks of one shape: OpenAI's Chat, Ollama and Gemini."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import StreamRules, TextSoFar, is_object_text
from rightcall.types import Json

_CHAT_FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
_CHAT_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class _ChoiceState:
    """The state of one choice."""

    def __init__(self) -> None:
        self.text = TextSoFar()
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
        """Return False: only `[DONE]` may follow the end."""
        return False

    def check_event(self, name: str | None, payload: Json) -> None:
        """Report the faults of one chunk, and add it to the state of the answer. An error in place of a chunk ends the
        answer; its type and message are checked."""
        if payload.get("error"):
            self.check_error(payload, "message", "type")
            return
        self.check_texts(payload, "id", "model")
        self.check_numbers(payload, "created")
        if payload.get("object") != "chat.completion.chunk":
            self.report(f"`object` must be chat.completion.chunk, not {payload.get('object')!r:.40}")
        self._id = self._id or str(payload.get("id"))
        if payload.get("id") != self._id:
            self.report("the `id` differs from that of the chunks before")
        if not isinstance(payload.get("choices"), list):
            self.report("there is no list `choices`; an empty one is fine")
        for choice in objects(payload.get("choices")):
            self._check_choice(choice)
        if payload.get("usage") is not None:
            self.check_usage(payload["usage"], *_CHAT_COUNTS)

    def _check_choice(self, choice: Json) -> None:
        """Report the faults of one choice of a streamed chunk, and add its role, text, calls and finish reason to the
        state of the choice with this index."""
        self.check_numbers(choice, "index")
        index = choice.get("index")
        state = self._choices.setdefault(index if type(index) is int else 0, _ChoiceState())
        delta = obj(choice.get("delta"))
        if delta is None:
            self.report("the choice has no `delta`")
            return
        if state.finish and any(delta.get(key) for key in ("content", "tool_calls", "reasoning_content")):
            self.report("text or calls come after the finish")
        if not state.has_role and delta.get("role") != "assistant":
            self.report("the first delta has no `role`")
        state.has_role = True
        self._check_text(state, delta)
        self._check_calls(state, delta.get("tool_calls"))
        self._check_finish(state, choice.get("finish_reason"))

    def _check_text(self, state: _ChoiceState, delta: Json) -> None:
        """Report text and reasoning of a delta or a message that are neither text nor null, and add the text to the
        state."""
        for key in ("content", "reasoning_content"):
            if not isinstance(delta.get(key, ""), str | None):
                self.report(f"`{key}` must be text, not {delta[key]!r:.40}")
        if isinstance(delta.get("content"), str):
            state.text.add(delta["content"])

    def _check_calls(self, state: _ChoiceState, calls: Any) -> None:
        """Report the faults of the pieces of calls in one delta, and add them to the state. None is no call and no
        fault."""
        if calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self.report("`tool_calls` must be a list of calls, or be left out")
            return
        if state.text.is_blank:
            self.report("blank text precedes a call; some clients take it for the answer")
        for entry in objects(calls):
            self._check_call(state, entry)

    def _check_call(self, state: _ChoiceState, entry: Json) -> None:
        """Report the faults of one piece of a call, and add it to the state. A piece whose index is neither that of a
        known call nor the next one is not added."""
        index, kind = entry.get("index"), "custom" if "custom" in entry else "function"
        field = "input" if kind == "custom" else "arguments"
        function = obj(entry.get(kind)) or {}
        if type(index) is not int or not 0 <= index <= len(state.arguments):
            self.report(f"the call's `index` must be a number from 0 without gaps, not {index!r:.40}")
            return
        if index == len(state.arguments):
            self._check_first_piece(state, entry, kind, function)
        else:
            self._check_further_piece(state, entry, index, function)
        piece = function.get(field)
        if not isinstance(piece, str):
            self.report(f"`{field}` must be text in every delta of a call, not {piece!r:.40}")
        state.arguments[index].append(piece if isinstance(piece, str) else "")

    def _check_first_piece(self, state: _ChoiceState, entry: Json, kind: str, function: Json) -> None:
        """Add a call to the state, without its arguments, and report faults of the id, name and type in its first
        piece. `kind` is the type that it must have."""
        state.arguments.append([])
        state.has_custom = state.has_custom or kind == "custom"
        self.check_call_id(entry.get("id"))
        self.check_call_name(function.get("name"))
        if entry.get("type") != kind:
            self.report(f"the call's `type` must be {kind}, not {entry.get('type')!r:.40}")

    def _check_further_piece(self, state: _ChoiceState, entry: Json, index: int, function: Json) -> None:
        """Report the faults of a piece that continues the call with this index: a later call has begun, the name is
        repeated, or the id is unknown."""
        if index != len(state.arguments) - 1:
            self.report("a call continues after the next has begun")
        if function.get("name"):
            self.report("the name is repeated; some clients join the two")
        if entry.get("id") and text(entry["id"]) not in self._ids:
            self.report("the `id` of a call changes")

    def _check_finish(self, state: _ChoiceState, finish: Any) -> None:
        """Store the finish reason of a choice, and report one that is unknown, comes twice, or contradicts the calls of
        the choice. None, which is not final, is ignored."""
        if finish is None:
            return
        if state.finish:
            self.report("there are two finishes")
        if finish not in _CHAT_FINISHES:
            self.report(f"`finish_reason` must be one of {', '.join(_CHAT_FINISHES)}, not {finish!r:.40}")
        state.finish = str(finish)
        pieces = ["".join(each) for each in state.arguments]
        has_calls = bool(pieces) and (state.has_custom or all(map(is_object_text, pieces)))
        if finish == "tool_calls":
            if not has_calls:
                self.report("it ends with tool_calls, but it has no call or one whose arguments are no JSON object")
        elif has_calls:
            self.report(f"the answer has calls, so it must end with tool_calls, not {finish!r:.40}")

    def on_done_mark(self) -> None:
        """Note in `ended` that `[DONE]` has ended the answer, and report choices that have not finished before, or a
        stream without any."""
        if not self.ended:
            self._check_finishes()
        self.ended = "[DONE]"

    def _check_finishes(self) -> None:
        """Report a stream that has no choices, or a choice without a finish reason, as a fault of the answer as a
        whole."""
        if not self._choices or any(not state.finish for state in self._choices.values()):
            self.report_overall("the stream ends without a `finish_reason`: clients wait, or retry without limit")

    def close(self) -> None:
        """Report, at the end of a stream without `[DONE]` or an error, choices that have not finished, or a stream
        without any."""
        if not self.ended:
            self._check_finishes()

    def check_whole(self, body: Json) -> None:
        """Report the faults of a whole Chat completion: its fields, choices and usage. They are added to `faults`."""
        self.check_texts(body, "id", "model")
        self.check_numbers(body, "created")
        choices = objects(body.get("choices"))
        if not choices:
            self.report("there are no `choices`")
        for choice in choices:
            self._check_whole_choice(choice)
        self.check_usage(body.get("usage"), *_CHAT_COUNTS)
        self.ended = "it"

    def _check_whole_choice(self, choice: Json) -> None:
        """Report the faults of one choice of a whole answer: index, message with text and calls, and finish reason."""
        self.check_numbers(choice, "index")
        message = obj(choice.get("message")) or {}
        if message.get("role") != "assistant":
            self.report("the message has no `role`")
        if "content" not in message:
            self.report("the message has no `content`; null is fine beside calls")
        state = _ChoiceState()
        self._check_text(state, message)
        calls = message.get("tool_calls")
        numbered = [{**entry, "index": at} for at, entry in enumerate(objects(calls))]
        self._check_calls(state, numbered if calls else calls)
        if choice.get("finish_reason") is None:
            self.report("there is no `finish_reason`")
        self._check_finish(state, choice.get("finish_reason"))


class OllamaRules(StreamRules):
    """The rules of the lines of `/api/chat`."""

    def __init__(self) -> None:
        super().__init__()
        self._text = TextSoFar()
        self._calls = False

    def check_event(self, name: str | None, payload: Json) -> None:
        """Report the faults of one line, and note in `ended` if it ends the answer: an error, or a line with `done`.
        `name` is not used."""
        if "error" in payload:
            self.check_texts(payload, "error")
            self.ended = "the error"
            return
        self.check_texts(payload, "model", "created_at")
        message = obj(payload.get("message"))
        if message is None:
            self.report("there is no `message`")
            return
        if message.get("role") != "assistant":
            self.report(f"the `role` must be assistant, not {message.get('role')!r:.40}")
        for key in ("content", "thinking"):
            if not isinstance(message.get(key, "" if key == "thinking" else None), str):
                self.report(f"`{key}` must be text, not {message.get(key)!r:.40}")
        self._check_calls(message)
        self._text.add(str(message.get("content") or ""))
        if type(payload.get("done")) is not bool:
            self.report(f"`done` must be true or false, not {payload.get('done')!r:.40}")
        if payload.get("done") is True:
            self._check_end(payload)

    def _check_calls(self, message: Json) -> None:
        """Report the faults of the calls of a message, each of which must be whole, and of blank text before them. A
        message without `tool_calls` has none."""
        calls: Any = message.get("tool_calls")
        if calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self.report("`tool_calls` must be a list of calls, or be left out")
        if self._text.is_blank:
            self.report("blank text precedes a call; some clients take it for the answer")
        for call in objects(calls):
            function = obj(call.get("function")) or {}
            self.check_call_name(function.get("name"))
            if "id" in call:
                self.check_call_id(call["id"])
            if type(function.get("arguments")) is not dict:
                self.report(f"`arguments` must be an object, not {function.get('arguments')!r:.40}")

    def _check_end(self, payload: Json) -> None:
        """Check the last line and note in `ended` that the answer is over: its reason, if it has one, must be a known
        one, and the counts that it has must be integers."""
        self.ended = "the line with `done`"
        if payload.get("done_reason", "stop") not in ("stop", "length", "load", "unload"):
            self.report(f"`done_reason` must be stop or length, not {payload.get('done_reason')!r:.40}")
        counts = ("prompt_eval_count", "eval_count", "total_duration")
        self.check_numbers(
            {key: payload[key] for key in counts if key in payload}, *[k for k in counts if k in payload]
        )

    def on_done_mark(self) -> None:
        """Report `[DONE]`, which this dialect does not have."""
        self.report("[DONE] is no line of this dialect")

    def check_whole(self, body: Json) -> None:
        """Report the faults of a whole answer, which must have the shape of a last line of a stream. They are added to
        `faults`."""
        self.check_event(None, body)
        if not self.ended:
            self.report("`done` must be true")


_GEMINI_FINISHES = frozenset(
    "STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL "
    "IMAGE_SAFETY UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS".split()
)
_GEMINI_COUNTS = ("promptTokenCount", "totalTokenCount")
_GEMINI_PART_KEYS = (
    "text thought thoughtSignature functionCall inlineData executableCode codeExecutionResult fileData".split()
)


class GeminiRules(StreamRules):
    """The rules of `GenerateContentResponse`s."""

    def __init__(self) -> None:
        super().__init__()
        self._text = TextSoFar()

    def check_event(self, name: str | None, payload: Json) -> None:
        """Report the faults of one chunk, or of an error in its place, and note in `ended` if a finish reason or the
        error ends the answer. The chunk with the finish reason must have the usage. `name` is not used."""
        if payload.get("error"):
            self.check_error(payload, "message", "status")
            self.check_numbers(obj(payload["error"]) or {}, "code")
            return
        if not isinstance(payload.get("candidates", []), list):
            self.report("`candidates` must be a list")
        for candidate in objects(payload.get("candidates")):
            self._check_candidate(candidate)
        if payload.get("usageMetadata") is not None:
            self.check_usage(payload["usageMetadata"], *_GEMINI_COUNTS)
        elif self.ended:
            self.report("the chunk that ends the answer has no `usageMetadata`")

    def _check_candidate(self, candidate: Json) -> None:
        """Report the faults of one candidate: its content, if it has one, and its finish reason, which is noted in
        `ended` as the end of the answer."""
        content = obj(candidate.get("content"))
        if content is not None:
            self._check_content(content)
        finish = candidate.get("finishReason")
        if finish is None:
            return
        if text(finish) not in _GEMINI_FINISHES:
            self.report(f"`finishReason` must be a value of this dialect, not {finish!r:.40}")
        self.ended = "the finishReason"

    def _check_content(self, content: Json) -> None:
        """Report the faults of the content of a candidate: its role must be "model", and it must have at least one
        part; the parts are checked too."""
        parts = objects(content.get("parts"))
        if content.get("role") != "model":
            self.report(f"the `role` must be model, not {content.get('role')!r:.40}")
        if not parts:
            self.report("a content has no parts; clients send it back, and servers refuse that")
        for part in parts:
            self._check_part(part)

    def _check_part(self, part: Json) -> None:
        """Report a part without a known field, with a text of another type or with a faulty call. Its text, unless it
        is a thought, is added to the text so far."""
        if not part.keys() & set(_GEMINI_PART_KEYS):
            self.report(f"a part holds nothing that is known: {', '.join(part)[:40]!r}")
        if not isinstance(part.get("text", ""), str):
            self.report(f"`text` must be text, not {part['text']!r:.40}")
        elif part.get("thought") is not True:
            self._text.add(part.get("text", ""))
        if "functionCall" in part:
            self._check_call(obj(part["functionCall"]) or {})

    def _check_call(self, call: Json) -> None:
        """Report the faults of a function call: its name, its id if it has one, its arguments, and blank text before
        it."""
        self.check_call_name(call.get("name"))
        if "id" in call:
            self.check_call_id(call["id"])
        if type(call.get("args", {})) is not dict:
            self.report(f"`args` must be an object, not {call['args']!r:.40}")
        if self._text.is_blank:
            self.report("blank text precedes a call; some clients take it for the answer")

    def on_done_mark(self) -> None:
        """Report `[DONE]`, which this dialect does not have."""
        self.report("[DONE] is no event of this dialect")

    def check_whole(self, body: Json) -> None:
        """Report the faults of a whole answer, which must have the shape of a last chunk of a stream. They are added to
        `faults`."""
        self.check_event(None, body)
        if not self.ended:
            self.report("there is no `finishReason`")
