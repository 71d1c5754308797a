"""How an answer ended, in the words that every provider has for it.

finish_of("max_tokens") == "length"        any other word stays as it is
"""

from __future__ import annotations

CUT = frozenset(("length", "content_filter", "error"))  # how an answer ends that was cut off
_WORDS: dict[str, tuple[str, ...]] = {
    "stop": ("end_turn", "stop_sequence", "completed", "eos", "eos_token", "end", "done"),
    "tool_calls": ("tool_use", "tool_call", "function_call"),
    "length": (
        *("max_tokens", "max_output_tokens", "max_length", "incomplete"),
        *("model_length", "context_length_exceeded", "model_context_window_exceeded", "error_limit"),
    ),
    "content_filter": (
        *("refusal", "safety", "content_filtered", "recitation", "language", "blocklist", "prohibited_content"),
        *("spii", "image_safety", "image_prohibited_content", "image_recitation", "guardrail_intervened"),
        "error_toxic",
    ),
    "error": (
        *("failed", "cancelled", "canceled", "abort", "aborted", "malformed_function_call", "malformed_response"),
        *("unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource", "network_error"),
        *("malformed_model_output", "malformed_tool_use", "user_cancel", "other"),
        *("in_progress", "queued"),  # it was read before it was over
    ),
}
_MEANING = {word: meant for meant, words in _WORDS.items() for word in (meant, *words)}


def finish_of(word: str) -> str:
    """Stop, tool_calls, length, content_filter or error, if the provider's word means one of them."""
    return _MEANING.get(word.lower(), word)


def was_cut(word: str | None) -> bool:
    """Does the word, ours or a provider's, say that the answer was cut off?"""
    return isinstance(word, str) and finish_of(word) in CUT
