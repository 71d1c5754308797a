"""The APIs that are known, and api="auto": which of them is this? Told by the keys that only one of them has."""

from __future__ import annotations

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

# Asked from the last to the first whether an object is theirs: much of what others write could be `chat`.
DIALECTS: dict[str, Dialect] = {
    "chat": CHAT,
    "ollama": OLLAMA,
    "messages": MESSAGES,
    "gemini": GEMINI,
    "responses": RESPONSES,
}
_READ_BY = {"completions": "chat"}  # its answers are choices too, of text alone
_ASKED = tuple(reversed(DIALECTS.values()))
_MESSAGE_KEYS = frozenset(("role", "content", "tool_calls"))


def named(api: str) -> str:
    """The name of the dialect that an answer is read by, or "auto". Raises `CallerError` for a name that is none."""
    word = api if api == "auto" else api_name(api, (*DIALECTS, *_READ_BY))
    return _READ_BY.get(word, word)


def sniff(response: Any) -> str | None:
    """The dialect of a response, a message, a list of items, one item or a chunk; None if it is none we know."""
    found = obj(response)
    if found is None:
        known = (sniff(each) for each in items(response) if obj(each) is not None)  # no lists of lists, however deep
        return next((api for api in known if api is not None), None)
    if _is_plain_message(found):
        return "chat"
    own = next((dialect.name for dialect in _ASKED if dialect.shows(found)), None)
    return own or _by_message(obj(found.get("message")))


def _is_plain_message(found: Json) -> bool:
    """A message with text and calls and nothing else that could tell: most are such, and only Ollama has them too."""
    if "role" not in found or "content" not in found or not found.keys() <= _MESSAGE_KEYS:
        return False
    return (found["content"] is None or isinstance(found["content"], str)) and not has_parsed_call(found)


def _by_message(message: Json | None) -> str | None:
    """The dialect of one choice of a response, or of an answer of which only the message is left."""
    if message is None:
        return None
    return next((dialect.name for dialect in (OLLAMA, CHAT) if dialect.shows(message)), None)
