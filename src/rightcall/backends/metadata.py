"""Metadata of an answer: token counts, model name, and whether the answer is finished.

One reader per API, called for every payload: a whole response, or one chunk of a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.api_names import Api
from rightcall.backends.request import Usage
from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Json

_FINAL_PARTS = ("message", "text")  # parts after which an answer may be over: a thought is none, and a call may be cut


class AnswerMetadata:
    """Collects the metadata of one answer; later values replace earlier ones."""

    def __init__(self, api: Api) -> None:
        self._read = _READERS[api]
        self.model = ""
        self.ended = False
        self.is_answer = False  # something of it has the shape of an answer
        self.counts: dict[str, int] = {}
        self._open: list[Any] = []  # the kinds of the items or blocks that have begun and not ended
        self._is_rounded = False

    def add(self, payload: Json) -> None:
        """Update the metadata from one payload: a whole response, or one chunk of a stream."""
        self._read(self, payload)

    @property
    def tokens(self) -> Usage:
        """The token counts reported so far."""
        return Usage(**self.counts)

    def count(self, **found: Any) -> None:
        """Store the given token counts (`prompt`, `completion`, `cached`, `reasoning`) over earlier ones. A value that
        is not an integer of at least 0 is ignored."""
        self.counts |= {name: value for name, value in found.items() if type(value) is int and value >= 0}

    @property
    def is_over(self) -> bool:
        """True if the server reported that the answer is finished, or if its last part is a complete message or text,
        after which an answer may end. Not valid if the connection broke."""
        return self.ended or self._is_rounded

    def begin_part(self, part: Any) -> None:
        """Record that an output item or content block begins; `part` is its JSON, with its type."""
        self._open.append((obj(part) or {}).get("type"))
        self._is_rounded = False

    def end_part(self, part: Any = None) -> None:
        """Record that the last begun item or block has ended; `part` is its final form, if the API sends it. The answer
        may be over if it was a complete message or text and no other is open."""
        begun, ended = self._open.pop() if self._open else None, obj(part) or {}
        is_whole = text(ended.get("status")) in ("", "completed")
        self._is_rounded = not self._open and is_whole and (ended.get("type") or begun) in _FINAL_PARTS

    def end(self, reason: Any) -> None:
        """Mark the answer as finished if `reason`, the value of the API's finish reason, is a text that is not
        empty."""
        if text(reason):
            self.ended = True


def _sum_counts(count: Any, *beside: Any) -> int | None:
    """Return the sum of token counts; None if the first one is not an integer. Others that are not integers are
    ignored."""
    return sum([each for each in (count, *beside) if type(each) is int]) if type(count) is int else None


def _add_chat_payload(facts: AnswerMetadata, payload: Json) -> None:
    """Update `facts` with the model, the token counts and the end of the answer from a Chat or completions payload.
    Only the first choice is read."""
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


def _add_responses_payload(facts: AnswerMetadata, payload: Json) -> None:
    """Update `facts` with the model, the token counts and the end of the answer from a Responses payload."""
    response = obj(payload.get("response")) or payload
    facts.is_answer = facts.is_answer or "output" in response or text(payload.get("type")).startswith("response.")
    facts.model = text(response.get("model")) or facts.model
    _track_responses_items(facts, text(payload.get("type")), payload)
    if text(response.get("status")) in ("completed", "incomplete", "failed", "cancelled"):
        facts.ended = True
    usage = obj(response.get("usage")) or {}
    facts.count(
        prompt=usage.get("input_tokens"),
        completion=usage.get("output_tokens"),
        cached=(obj(usage.get("input_tokens_details")) or {}).get("cached_tokens"),
        reasoning=(obj(usage.get("output_tokens_details")) or {}).get("reasoning_tokens"),
    )


def _track_responses_items(facts: AnswerMetadata, kind: str, payload: Json) -> None:
    """Update `facts` from a Responses stream if the payload, whose type is `kind`, begins or ends an item, or ends the
    answer."""
    if kind == "response.output_item.added":
        facts.begin_part(payload.get("item"))
    elif kind == "response.output_item.done":
        facts.end_part(payload.get("item"))
    elif kind in ("response.completed", "response.incomplete", "response.failed", "response.done"):
        facts.ended = True


def _add_messages_payload(facts: AnswerMetadata, payload: Json) -> None:
    """Update `facts` with the model, the token counts and the end of the answer from a Messages payload."""
    message = obj(payload.get("message")) or payload
    facts.is_answer = facts.is_answer or "content" in message
    facts.model = text(message.get("model")) or facts.model
    facts.end((obj(payload.get("delta")) or message).get("stop_reason"))
    _track_messages_blocks(facts, text(payload.get("type")), payload)
    usage = obj(message.get("usage")) or obj(payload.get("usage")) or {}
    facts.count(
        # tokens read from or written to a cache are counted separately from the input
        prompt=_sum_counts(*[usage.get(f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_")]),
        completion=usage.get("output_tokens"),
        cached=usage.get("cache_read_input_tokens"),
    )


def _track_messages_blocks(facts: AnswerMetadata, kind: str, payload: Json) -> None:
    """Update `facts` from a Messages stream if the payload, whose type is `kind`, begins or ends a content block, or
    ends the answer."""
    if kind == "content_block_start":
        facts.begin_part(payload.get("content_block"))
    elif kind == "content_block_stop":
        facts.end_part()
    elif kind == "message_stop":
        facts.ended = True


def _add_ollama_payload(facts: AnswerMetadata, payload: Json) -> None:
    """Update `facts` with the model, the token counts and the end of the answer from an Ollama payload."""
    facts.model = text(payload.get("model")) or facts.model
    facts.is_answer = facts.is_answer or "message" in payload or "response" in payload
    if payload.get("done") is True:
        facts.end(text(payload.get("done_reason")) or "stop")
    facts.count(prompt=payload.get("prompt_eval_count"), completion=payload.get("eval_count"))


def _add_gemini_payload(facts: AnswerMetadata, payload: Json) -> None:
    """Update `facts` with the model, the token counts and the end of the answer from a Gemini payload. Only the
    first candidate is read."""
    facts.model = text(field(payload, "modelVersion")) or facts.model
    feedback = obj(field(payload, "promptFeedback")) or {}
    facts.end(field(feedback, "blockReason"))
    for candidate in objects(payload.get("candidates"))[:1]:
        facts.end(field(candidate, "finishReason"))
    facts.is_answer = facts.is_answer or "candidates" in payload or bool(feedback)
    usage = obj(field(payload, "usageMetadata")) or {}
    facts.count(
        prompt=field(usage, "promptTokenCount"),
        # reasoning is counted separately from the answer
        completion=_sum_counts(field(usage, "candidatesTokenCount"), field(usage, "thoughtsTokenCount")),
        cached=field(usage, "cachedContentTokenCount"),
        reasoning=field(usage, "thoughtsTokenCount"),
    )


# The fields that every answer of an API has, for the error about a missing one.
SHAPES: dict[str, str] = {
    "chat": "`choices` with a message",
    "completions": "`choices` with a text",
    "responses": "`output`",
    "messages": "`content`",
    "ollama": "`message`",
    "gemini": "`candidates`",
}

_READERS: dict[Api, Callable[[AnswerMetadata, Json], None]] = {
    "chat": _add_chat_payload,
    "completions": _add_chat_payload,
    "responses": _add_responses_payload,
    "messages": _add_messages_payload,
    "ollama": _add_ollama_payload,
    "gemini": _add_gemini_payload,
}
