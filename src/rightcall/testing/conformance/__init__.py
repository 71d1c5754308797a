"""Does an answer keep to what its dialect's clients insist on? `conforms` says what breaks them, in words.

conforms(b'data: {"choices": []}\n\n', "chat")        ["event 0: `id` must be a text that is not empty, not None", ...]

The rules are those that real clients were seen to break at, and the order of the providers' own streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rightcall.api_names import Api, api_name
from rightcall.testing.conformance.chat_rules import ChatRules
from rightcall.testing.conformance.gemini_rules import GeminiRules
from rightcall.testing.conformance.messages_rules import MessagesRules
from rightcall.testing.conformance.ollama_rules import OllamaRules
from rightcall.testing.conformance.responses_rules import ResponsesRules
from rightcall.testing.conformance.streamed_events import events_in, events_of
from rightcall.types import Json

Rules = ChatRules | ResponsesRules | MessagesRules | OllamaRules | GeminiRules
RULES: dict[Api, type[Rules]] = {
    "chat": ChatRules,
    "responses": ResponsesRules,
    "messages": MessagesRules,
    "ollama": OllamaRules,
    "gemini": GeminiRules,
}


def conforms(events: bytes | str | Json | Iterable[Any], api: str) -> list[str]:
    """What breaks the rules of this dialect, one line each and in order; empty if nothing does.

    - `events`: the bytes or the text of a stream; a list of its payloads, or of pairs of an event's name and its
      payload; or a whole answer, as an object or as its JSON.
    - `api`: `chat`, `responses`, `messages`, `ollama` or `gemini`, or the name of its SDK.
    """
    name: Any = api_name(api, RULES)
    rules = RULES[name]()
    if isinstance(events, str):
        events = events.encode("utf-8", "surrogatepass")
    if isinstance(events, bytes):
        found = None if name == "ollama" else _whole_body(events)
        if found is None:
            return rules.judged(events_in(events, name))
        events = found
    if isinstance(events, dict):
        rules.whole(events)
        return rules.faults
    return rules.judged(events_of(events))


def _whole_body(data: bytes) -> Json | None:
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
