"""How an answer ended and what it cost, in the words that every provider has for it.

finish_of("max_tokens") == "length"        any other word stays as it is
usage_of({"usage": {"total_tokens": 7}}) == {"total_tokens": 7}
"""

from __future__ import annotations

from typing import Any

from rightcall.apis.sdk_view import obj
from rightcall.types import Json

_WORDS: dict[str, tuple[str, ...]] = {
    "stop": ("end_turn", "stop_sequence", "completed", "eos", "eos_token", "end", "done"),
    "tool_calls": ("tool_use", "tool_call", "function_call"),
    "length": (
        *("max_tokens", "max_output_tokens", "max_length", "incomplete"),
        *("model_length", "context_length_exceeded", "model_context_window_exceeded"),
    ),
    "content_filter": (
        *("refusal", "safety", "content_filtered", "recitation", "language", "blocklist", "prohibited_content"),
        *("spii", "image_safety", "image_prohibited_content", "image_recitation", "guardrail_intervened"),
    ),
    "error": (
        *("failed", "cancelled", "canceled", "abort", "aborted", "malformed_function_call", "malformed_response"),
        *("unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource", "network_error"),
    ),
}
_MEANING = {word: meant for meant, words in _WORDS.items() for word in (meant, *words)}
_USAGE = ("usage", "usageMetadata", "usage_metadata")
_OLLAMA = (
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
    "load_duration",
    "total_duration",
)

_TELLING = frozenset((*_USAGE, *_OLLAMA, "response", "message"))


def finish_of(word: str) -> str:
    """Stop, tool_calls, length, content_filter or error, if the provider's word means one of them."""
    return _MEANING.get(word.lower(), word)


def usage_of(payload: Any) -> Json:
    """What a payload says was counted, under the provider's own names; empty where it says nothing."""
    found = obj(payload) or {}
    if _TELLING.isdisjoint(found):
        return {}
    out = {key: found[key] for key in _OLLAMA if type(found.get(key)) is int}
    for holder in (found, obj(found.get("response")), obj(found.get("message"))):
        for key in _USAGE:
            if holder and (counted := obj(holder.get(key))):
                out |= {name: value for name, value in counted.items() if value is not None}
    return out
