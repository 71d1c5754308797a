"""What Gemini's clients insist on, chunk by chunk."""

from __future__ import annotations

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import SaidSoFar, StreamRules
from rightcall.types import Json

_FINISHES = frozenset(
    "STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL "
    "IMAGE_SAFETY UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS".split()
)
_COUNTS = ("promptTokenCount", "totalTokenCount")
_PART = "text thought thoughtSignature functionCall inlineData executableCode codeExecutionResult fileData".split()


class GeminiRules(StreamRules):
    """The rules of `GenerateContentResponse`s."""

    def __init__(self) -> None:
        super().__init__()
        self._said = SaidSoFar()

    def take(self, name: str | None, payload: Json) -> None:
        if payload.get("error"):
            self.take_error(payload, "message", "status")
            self.want_numbers(obj(payload["error"]) or {}, "code")
            return
        if not isinstance(payload.get("candidates", []), list):
            self.say("`candidates` must be a list")
        for candidate in objects(payload.get("candidates")):
            self._candidate(candidate)
        if payload.get("usageMetadata") is not None:
            self.want_usage(payload["usageMetadata"], *_COUNTS)
        elif self.ended:
            self.say("the chunk that ends the answer has no `usageMetadata`")

    def _candidate(self, candidate: Json) -> None:
        content = obj(candidate.get("content"))
        if content is not None:
            self._content(content)
        finish = candidate.get("finishReason")
        if finish is None:
            return
        if text(finish) not in _FINISHES:
            self.say(f"`finishReason` must be a word of this dialect, not {finish!r:.40}")
        self.ended = "the finishReason"

    def _content(self, content: Json) -> None:
        parts = objects(content.get("parts"))
        if content.get("role") != "model":
            self.say(f"the `role` must be model, not {content.get('role')!r:.40}")
        if not parts:
            self.say("a content has no parts; clients send it back, and servers refuse that")
        for part in parts:
            self._part(part)

    def _part(self, part: Json) -> None:
        if not part.keys() & set(_PART):
            self.say(f"a part holds nothing that is known: {', '.join(part)[:40]!r}")
        if not isinstance(part.get("text", ""), str):
            self.say(f"`text` must be text, not {part['text']!r:.40}")
        elif part.get("thought") is not True:
            self._said.add(part.get("text", ""))
        if "functionCall" in part:
            self._call(obj(part["functionCall"]) or {})

    def _call(self, call: Json) -> None:
        self.want_call_name(call.get("name"))
        if "id" in call:
            self.new_call_id(call["id"])
        if type(call.get("args", {})) is not dict:
            self.say(f"`args` must be an object, not {call['args']!r:.40}")
        if self._said.is_blank:
            self.say("blank text stands before a call; some clients take it for the answer")

    def on_done_mark(self) -> None:
        self.say("[DONE] is no event of this dialect")

    def whole(self, body: Json) -> None:
        """A whole answer has the shape of a chunk that ends."""
        self.take(None, body)
        if not self.ended:
            self.say("there is no `finishReason`")
