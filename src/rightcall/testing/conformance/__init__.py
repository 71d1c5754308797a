"""Conformance of a provider's answer: `conforms` lists what violates the rules of its dialect.

    conforms(b'data: {"choices": []}\n\n', "chat")    ["event 0: `id` must be a text that is not empty, not None", ...]

The rules are those that real clients depend on, and the order of events in the providers' own streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rightcall.api_names import Api, api_name
from rightcall.testing.conformance.chunk_rules import ChatRules, GeminiRules, OllamaRules
from rightcall.testing.conformance.event_rules import MessagesRules, ResponsesRules
from rightcall.testing.conformance.stream_rules import events_in, events_of, read_json
from rightcall.types import Json

Rules = ChatRules | ResponsesRules | MessagesRules | OllamaRules | GeminiRules
RULES: dict[Api, type[Rules]] = {
    "chat": ChatRules,
    "responses": ResponsesRules,
    "messages": MessagesRules,
    "ollama": OllamaRules,
    "gemini": GeminiRules,
}

_STREAM_MISMATCH = {
    True: "a whole answer where a stream was asked for: most clients find nothing in it",
    False: "a stream where a whole answer was asked for: clients take it for broken JSON",
}


def conforms(events: bytes | str | Json | Iterable[Any], api: str, *, stream: bool | None = None) -> list[str]:
    """Return what violates the rules of a dialect, one line each, in order, about 1,000 at most; empty if nothing does.

    - `events`: the bytes or the text of a stream; a list of its payloads, or of pairs of an event's name and its
      payload; or a whole answer, as an object or as its JSON.
    - `api`: `chat`, `responses`, `messages`, `ollama` or `gemini`, or the name of its SDK.
    - `stream`: whether a stream was requested; the other kind is a violation. None accepts both.

    Raises `CallerError` for an unknown API.
    """
    name: Any = api_name(api, RULES)
    rules = RULES[name]()
    if isinstance(events, str):
        events = events.encode("utf-8", "surrogatepass")
    if isinstance(events, bytes):
        found = None if name == "ollama" and stream is not False else _decode_whole_answer(events)
        events = events_in(events, name) if found is None else found
    else:
        events = events if isinstance(events, dict) else events_of(events)
    is_stream = not isinstance(events, dict)
    if stream is not None and is_stream != stream:
        rules.report_overall(_STREAM_MISMATCH[stream])
    if isinstance(events, dict):
        rules.check_whole(events)
        return rules.faults
    return rules.check(events)


def _decode_whole_answer(data: bytes) -> Json | None:
    """Return the JSON object that the bytes are; None if they are anything else, such as a stream."""
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        found = read_json(data.decode())
    except UnicodeDecodeError:
        return None  # reported when the events are read
    return found if isinstance(found, dict) else None
