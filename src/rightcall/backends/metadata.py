"""What a server says beside its answer: tokens used, which model it was, and that it is over.

One reader per dialect, asked of every payload: a whole response, or a chunk of a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.api_names import Api
from rightcall.backends.request import Usage
from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Json

_WORDS = ("message", "text")  # parts after which an answer may be over: a thought is none, and a call may be cut


class AnswerMetadata:
    """Collects; the last word counts."""

    def __init__(self, api: Api) -> None:
        self._read = _READERS[api]
        self.model = ""
        self.ended = False
        self.is_answer = False  # something of it has the shape of an answer
        self.counts: dict[str, int] = {}
        self._open: list[Any] = []  # the kinds of the items or blocks that have begun and not ended
        self._is_rounded = False

    def add(self, payload: Json) -> None:
        self._read(self, payload)

    @property
    def tokens(self) -> Usage:
        return Usage(**self.counts)

    def count(self, **found: Any) -> None:
        self.counts |= {name: value for name, value in found.items() if type(value) is int and value >= 0}

    @property
    def is_over(self) -> bool:
        """The server said so; or its last words have their end, which is as much if the connection did not break."""
        return self.ended or self._is_rounded

    def begin_part(self, part: Any) -> None:
        """An item or a block begins."""
        self._open.append((obj(part) or {}).get("type"))
        self._is_rounded = False

    def end_part(self, part: Any = None) -> None:
        """It ends; `part` is what it became, where that is said."""
        begun, ended = self._open.pop() if self._open else None, obj(part) or {}
        is_whole = text(ended.get("status")) in ("", "completed")
        self._is_rounded = not self._open and is_whole and (ended.get("type") or begun) in _WORDS

    def end(self, reason: Any) -> None:
        if text(reason):
            self.ended = True


def _sum_counts(count: Any, *beside: Any) -> int | None:
    """A count with those that stand beside it; None where there is none."""
    return sum([each for each in (count, *beside) if type(each) is int]) if type(count) is int else None


def _chat(facts: AnswerMetadata, payload: Json) -> None:
    facts.model = text(payload.get("model")) or facts.model
    for choice in objects(payload.get("choices"))[:1]:
        facts.end(choice.get("finish_reason"))
        facts.is_answer = facts.is_answer or any(key in choice for key in ("message", "delta", "text"))
    usage = obj(payload.get("usage")) or {}
    facts.count(
        prompt=usage.get("prompt_tokens"),
        completion=usage.get("completion_tokens"),
        cached=(obj(usage.get("prompt_tokens_details")) or {}).get("cached_tokens"),
        reasoning=(obj(usage.get("completion_tokens_details")) or {}).get("reasoning_tokens"),
    )


def _responses(facts: AnswerMetadata, payload: Json) -> None:
    response = obj(payload.get("response")) or payload
    facts.is_answer = facts.is_answer or "output" in response or text(payload.get("type")).startswith("response.")
    facts.model = text(response.get("model")) or facts.model
    _responses_ends(facts, text(payload.get("type")), payload)
    if text(response.get("status")) in ("completed", "incomplete", "failed", "cancelled"):
        facts.ended = True
    usage = obj(response.get("usage")) or {}
    facts.count(
        prompt=usage.get("input_tokens"),
        completion=usage.get("output_tokens"),
        cached=(obj(usage.get("input_tokens_details")) or {}).get("cached_tokens"),
        reasoning=(obj(usage.get("output_tokens_details")) or {}).get("reasoning_tokens"),
    )


def _responses_ends(facts: AnswerMetadata, kind: str, payload: Json) -> None:
    if kind == "response.output_item.added":
        facts.begin_part(payload.get("item"))
    elif kind == "response.output_item.done":
        facts.end_part(payload.get("item"))
    elif kind in ("response.completed", "response.incomplete", "response.failed", "response.done"):
        facts.ended = True


def _anthropic(facts: AnswerMetadata, payload: Json) -> None:
    message = obj(payload.get("message")) or payload
    facts.is_answer = facts.is_answer or "content" in message
    facts.model = text(message.get("model")) or facts.model
    facts.end((obj(payload.get("delta")) or message).get("stop_reason"))
    _anthropic_ends(facts, text(payload.get("type")), payload)
    usage = obj(message.get("usage")) or obj(payload.get("usage")) or {}
    facts.count(
        # what is read from a cache, or put there, is counted beside the input
        prompt=_sum_counts(*[usage.get(f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_")]),
        completion=usage.get("output_tokens"),
        cached=usage.get("cache_read_input_tokens"),
    )


def _anthropic_ends(facts: AnswerMetadata, kind: str, payload: Json) -> None:
    if kind == "content_block_start":
        facts.begin_part(payload.get("content_block"))
    elif kind == "content_block_stop":
        facts.end_part()
    elif kind == "message_stop":
        facts.ended = True


def _ollama(facts: AnswerMetadata, payload: Json) -> None:
    facts.model = text(payload.get("model")) or facts.model
    facts.is_answer = facts.is_answer or "message" in payload or "response" in payload
    if payload.get("done") is True:
        facts.end(text(payload.get("done_reason")) or "stop")
    facts.count(prompt=payload.get("prompt_eval_count"), completion=payload.get("eval_count"))


def _gemini(facts: AnswerMetadata, payload: Json) -> None:
    facts.model = text(field(payload, "modelVersion")) or facts.model
    feedback = obj(field(payload, "promptFeedback")) or {}
    facts.end(field(feedback, "blockReason"))
    for candidate in objects(payload.get("candidates"))[:1]:
        facts.end(field(candidate, "finishReason"))
    facts.is_answer = facts.is_answer or "candidates" in payload or bool(feedback)
    usage = obj(field(payload, "usageMetadata")) or {}
    facts.count(
        prompt=field(usage, "promptTokenCount"),
        # what was thought is counted beside the answer
        completion=_sum_counts(field(usage, "candidatesTokenCount"), field(usage, "thoughtsTokenCount")),
        cached=field(usage, "cachedContentTokenCount"),
        reasoning=field(usage, "thoughtsTokenCount"),
    )


# What every answer of a dialect has, for an error that says what is missing.
SHAPES: dict[str, str] = {
    "chat": "`choices` with a message",
    "completions": "`choices` with a text",
    "responses": "`output`",
    "messages": "`content`",
    "ollama": "`message`",
    "gemini": "`candidates`",
}

_READERS: dict[Api, Callable[[AnswerMetadata, Json], None]] = {
    "chat": _chat,
    "completions": _chat,
    "responses": _responses,
    "messages": _anthropic,
    "ollama": _ollama,
    "gemini": _gemini,
}
