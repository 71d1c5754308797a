"""Does an answer keep to what its dialect's clients insist on? `conforms` says what breaks them, in words.

conforms(b'data: {"choices": []}\n\n', "chat")        ["event 0: `id` must be a text that is not empty, not None", ...]

The rules are those that real clients were seen to break at, and the order of the providers' own streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rightcall.api_names import Api, api_name
from rightcall.testing.conformance.chat_rules import ChatRules
from rightcall.testing.conformance.gemini_rules import GeminiRules
from rightcall.testing.conformance.messages_rules import MessagesRules
from rightcall.testing.conformance.ollama_rules import OllamaRules
from rightcall.testing.conformance.responses_rules import ResponsesRules
from rightcall.testing.conformance.streamed_events import events_in, events_of, read_json
from rightcall.types import Json

Rules = ChatRules | ResponsesRules | MessagesRules | OllamaRules | GeminiRules
RULES: dict[Api, type[Rules]] = {
    "chat": ChatRules,
    "responses": ResponsesRules,
    "messages": MessagesRules,
    "ollama": OllamaRules,
    "gemini": GeminiRules,
}

_OTHER_KIND = {
    True: "a whole answer where a stream was asked for: most clients find nothing in it",
    False: "a stream where a whole answer was asked for: clients take it for broken JSON",
}


def conforms(events: bytes | str | Json | Iterable[Any], api: str, *, stream: bool | None = None) -> list[str]:
    """What breaks the rules of this dialect, one line each and in order, the first 1,000; empty if nothing does.

    - `events`: the bytes or the text of a stream; a list of its payloads, or of pairs of an event's name and its
      payload; or a whole answer, as an object or as its JSON.
    - `api`: `chat`, `responses`, `messages`, `ollama` or `gemini`, or the name of its SDK.
    - `stream`: whether a stream was asked for; the other kind is a fault then. None takes either.
    """
    name: Any = api_name(api, RULES)
    rules = RULES[name]()
    if isinstance(events, str):
        events = events.encode("utf-8", "surrogatepass")
    if isinstance(events, bytes):
        found = None if name == "ollama" and stream is not False else _whole_body(events)
        events = events_in(events, name) if found is None else found
    else:
        events = events if isinstance(events, dict) else events_of(events)
    is_stream = not isinstance(events, dict)
    if stream is not None and is_stream != stream:
        rules.say_of_all(_OTHER_KIND[stream])
    if isinstance(events, dict):
        rules.whole(events)
        return rules.faults
    return rules.judged(events)


def _whole_body(data: bytes) -> Json | None:
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        found = read_json(data.decode())
    except UnicodeDecodeError:
        return None  # which is told where events are read
    return found if isinstance(found, dict) else None
