"""api="auto": which dialect is this? Told by the keys that only one of them has."""

from __future__ import annotations

from typing import Any, Protocol

from rightcall.api_names import api_name
from rightcall.apis import anthropic, gemini, ollama, openai_chat, openai_responses
from rightcall.apis.deltas import Deltas, Seen
from rightcall.apis.sdk_view import items, obj, objects, text
from rightcall.types import Json


class Dialect(Protocol):
    def whole(self, response: Any) -> Deltas: ...
    def chunk(self, payload: Json, seen: Seen) -> Deltas: ...
    def opaque(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]: ...


DIALECTS: dict[str, Dialect] = {
    "chat": openai_chat,
    "responses": openai_responses,
    "messages": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}

_ANTHROPIC_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping".split()
)
_ANTHROPIC_BLOCKS = frozenset("tool_use thinking redacted_thinking server_tool_use tool_result".split())
_MESSAGE_KEYS = frozenset(("role", "content", "tool_calls"))
_CHAT_KEYS = frozenset("choices tool_calls function function_call reasoning_content".split())
_GEMINI_KEYS = frozenset(
    "candidates parts functionCall promptFeedback usageMetadata prompt_feedback usage_metadata".split()
)
_RESPONSES_ITEMS = frozenset(("function_call", "custom_tool_call", "reasoning"))
_RESPONSES_PARTS = frozenset(("output_text", "refusal", "summary_text", "reasoning_text"))


def named(api: str) -> str:
    """The dialect's own name, or "auto". Raises `CallerError` for a name that is none."""
    return api if api == "auto" else api_name(api, DIALECTS)


def sniff(response: Any) -> str | None:
    """The dialect of a response, a message, a list of items, one item or a chunk; None if it is none we know."""
    found = obj(response)
    if found is None:
        known = (sniff(each) for each in items(response) if obj(each) is not None)  # no lists of lists, however deep
        return next((api for api in known if api is not None), None)
    if _is_plain_message(found):
        return "chat"
    return next((api for api, shows in _SIGNS.items() if shows(found)), None) or _by_message(obj(found.get("message")))


def _is_plain_message(found: Json) -> bool:
    """A message with text and calls and nothing else that could tell: most are such, and only Ollama has them too."""
    if "role" not in found or "content" not in found or not found.keys() <= _MESSAGE_KEYS:
        return False
    return (found["content"] is None or type(found["content"]) is str) and not _has_parsed_call(found)


def _by_message(message: Json | None) -> str | None:
    """The dialect of one choice of a response, or of an answer of which only the message is left."""
    if message is None:
        return None
    return "ollama" if _is_ollama(message) else "chat" if _is_chat(message) else None


def _is_responses(found: Json) -> bool:
    kind = text(found.get("type"))
    if kind.startswith("response.") or found.get("object") == "response" or kind in _RESPONSES_ITEMS:
        return True
    if "choices" not in found and _has_output(found):
        return True
    return kind == "message" and not _kinds(found).isdisjoint(_RESPONSES_PARTS)


def _has_output(found: Json) -> bool:
    """Items, one item, or a text with calls beside it."""
    output = found.get("output")
    if isinstance(output, str):
        return bool(found.get("tool_calls"))
    return isinstance(output, (list, tuple)) or _is_item(obj(output))


def _is_item(found: Json | None) -> bool:
    """Is this one item of an output, where a list of them should be?"""
    return found is not None and (found.get("type") == "message" or text(found.get("type")) in _RESPONSES_ITEMS)


def _is_anthropic(found: Json) -> bool:
    kind = text(found.get("type"))
    if kind in _ANTHROPIC_EVENTS or kind == "message" or "stop_reason" in found:
        return True
    if kind in ("tool_use", "redacted_thinking") or (kind == "thinking" and "signature" in found):
        return True
    for block in objects(found.get("content")):
        if text(block.get("type")) in _ANTHROPIC_BLOCKS and not isinstance(block.get("thinking"), list):
            return True
    return False


def _is_gemini(found: Json) -> bool:
    if not _GEMINI_KEYS.isdisjoint(found):
        return True
    call = obj(found.get("function_call"))
    return (call is not None and "args" in call) or "parts" in (obj(found.get("content")) or {})


def _is_ollama(found: Json) -> bool:
    if "choices" in found:
        return False
    if "done" in found and ("message" in found or "response" in found):
        return True
    if "created_at" in found and obj(found.get("message")) is not None:
        return True
    return isinstance(found.get("thinking"), str) or _has_parsed_call(found)


def _has_parsed_call(found: Json) -> bool:
    """A call without an id, whose arguments are no text."""
    calls = [obj(each.get("function")) or {} for each in objects(found.get("tool_calls")) if not each.get("id")]
    return any(obj(call.get("arguments")) is not None for call in calls)


def _is_chat(found: Json) -> bool:
    if not _CHAT_KEYS.isdisjoint(found):
        return True
    if text(found.get("object")).startswith("chat.completion") or found.get("type") == "custom":
        return True
    return "content" in found and ("role" in found or isinstance(found["content"], str))


def _kinds(message: Json) -> set[str]:
    return {text(part.get("type")) for part in objects(message.get("content"))}


_SIGNS = {
    "responses": _is_responses,
    "gemini": _is_gemini,
    "messages": _is_anthropic,
    "ollama": _is_ollama,
    "chat": _is_chat,
}
