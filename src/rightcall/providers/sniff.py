"""The known APIs, and the detection of an answer's API (`api="auto"`) by keys that only one of them has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rightcall.api_names import api_name
from rightcall.providers.anthropic import MESSAGES
from rightcall.providers.dialect import Dialect
from rightcall.providers.gemini import GEMINI
from rightcall.providers.ollama import OLLAMA, has_parsed_call
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.openai_responses import RESPONSES
from rightcall.providers.sdk_view import items, obj
from rightcall.types import Json

# Detection asks the last first: much of what other APIs write could be `chat`.
DIALECTS: dict[str, Dialect] = {
    "chat": CHAT,
    "ollama": OLLAMA,
    "messages": MESSAGES,
    "gemini": GEMINI,
    "responses": RESPONSES,
}
_READ_AS = {"completions": "chat"}  # its answers are choices too, with text only
_BY_PRECEDENCE = tuple(reversed(DIALECTS.values()))
_MESSAGE_KEYS = frozenset(("role", "content", "tool_calls"))
_RESPONSE_KEYS = frozenset("id object created model choices usage service_tier system_fingerprint".split())


def dialect_name(api: str) -> str:
    """Return the name of the dialect that reads answers of `api`, an API or the name of its SDK; "auto" is returned
    unchanged.

    Raises `CallerError` for an unknown name.
    """
    name = api if api == "auto" else api_name(api, (*DIALECTS, *_READ_AS))
    return _READ_AS.get(name, name)


def detect_dialect(response: Any) -> str | None:
    """Return the dialect name of a response, a message, a list of items, an item or a chunk; None if it is unknown. The
    first item of a list that is known decides. A string is unknown, also one with JSON."""
    fields = obj(response)
    if fields is None:
        found = (detect_dialect(each) for each in items(response) if obj(each) is not None)  # nested lists are ignored
        return next((api for api in found if api is not None), None)
    if _is_plain_chat(fields):
        return "chat"
    detected = _first_detecting(_BY_PRECEDENCE, fields)
    if detected is not None:
        return detected
    message = obj(fields.get("message"))  # of one choice, or of an answer of which only the message is left
    return _first_detecting((OLLAMA, CHAT), message) if message is not None else None


def _first_detecting(dialects: Iterable[Dialect], fields: Json) -> str | None:
    """Return the name of the first of these dialects whose `detects` accepts the object; None if none does."""
    return next((dialect.name for dialect in dialects if dialect.detects(fields)), None)


def _is_plain_chat(fields: Json) -> bool:
    """Return True if this is a response or a message with the usual fields of Chat and no others, so that it needs no
    further detection.

    Most answers are. No other dialect detects such a response, and only Ollama has such messages too."""
    keys = fields.keys()
    if "choices" in keys:
        return keys <= _RESPONSE_KEYS and fields.get("object") != "response"
    if "role" not in keys or "content" not in keys or not keys <= _MESSAGE_KEYS:
        return False
    return (fields["content"] is None or isinstance(fields["content"], str)) and not has_parsed_call(fields)
