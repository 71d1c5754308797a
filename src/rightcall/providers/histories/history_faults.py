"""What a server would refuse in a history: a judge of its own, which shares no step with what puts histories right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from rightcall.ids import is_nine
from rightcall.providers.histories.history_profiles import REASONING_KEYS, HistoryProfile, history_profile
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Json


def history_faults(history: Sequence[Any], *, profile: str | HistoryProfile = "openai") -> list[str]:
    """What a server of this `profile` would refuse in this `history` of messages in the shape of OpenAI's Chat, each in
    a sentence; empty where it takes it. Raises `CallerError` for a profile that there is none of."""
    asked = history_profile(profile)
    shapes = [f"message {at}: {fault}" for at, message in enumerate(history) for fault in _shape(message, asked)]
    return shapes or [*_pairs(history), *_order(history, asked)]


def _shape(message: Any, profile: HistoryProfile) -> Iterator[str]:
    if not isinstance(message, dict):
        yield "is no object"
        return
    role = message.get("role")
    roles = ("system", "user", "assistant", "tool", *(("developer",) if profile.developer else ()))
    if role not in roles:
        yield f"has the role {role!r:.40}"
        return
    yield from _content(message, profile)
    yield from _fields(message, profile)
    if role == "assistant":
        if not any(message.get(key) for key in ("content", "tool_calls", profile.reasoning, "refusal", "audio")):
            yield "says nothing"
        yield from _thought(message, profile)
        for call in message.get("tool_calls", ()):
            yield from _call(call, profile)
    elif role == "tool" and not (isinstance(message.get("tool_call_id"), str) and message["tool_call_id"]):
        yield "is a result of no call"


def _content(message: Json, profile: HistoryProfile) -> Iterator[str]:
    content, role = message.get("content"), message["role"]
    if isinstance(content, list):
        if not (profile.result_parts if role == "tool" else profile.parts):
            yield "has parts where a string is taken"
        elif not content or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content):
            yield "has parts that are none"
    elif content is None:
        takes = [message.get("refusal"), message.get("audio"), profile.blank != "empty" and message.get("tool_calls")]
        if role != "assistant" or not any(takes):
            yield "has no content"
    elif not isinstance(content, str):
        yield "has content that is no text"
    elif content == "" and role == "assistant" and message.get("tool_calls") and profile.blank == "null":
        yield "has an empty string where null is taken"


def _fields(message: Json, profile: HistoryProfile) -> Iterator[str]:
    if "tool_calls" in message and not message["tool_calls"]:
        yield "has an empty list of calls"
    if "function_call" in message:
        yield "has the field function_call, which came before tool_calls"
    if message["role"] != "assistant" and "tool_calls" in message:
        yield "has calls, and is not the assistant's"
    if profile.fields is not None:
        allowed = profile.fields | {profile.reasoning, "role", "content", "tool_calls", "tool_call_id"}
        if strangers := [key for key in message if key not in allowed]:
            yield f"has the fields {strangers!r:.80}"


def _thought(message: Json, profile: HistoryProfile) -> Iterator[str]:
    for key in REASONING_KEYS:
        if key in message and key != profile.reasoning:
            yield f"has the field {key}"
    thought = message.get(profile.reasoning) if profile.reasoning else None
    if message.get("tool_calls"):
        if profile.needs_reasoning and not thought:
            yield f"needs {profile.reasoning} beside its calls"
        if profile.one_voice and thought and message.get("content"):
            yield "has both text and reasoning beside its calls"


def _call(call: Any, profile: HistoryProfile) -> Iterator[str]:
    if not isinstance(call, dict) or call.get("type") not in ("function", "custom"):
        yield "has a call that is none"
        return
    id = call.get("id")
    if not isinstance(id, str) or not id or (profile.ids == "nine" and not is_nine(id)):
        yield f"has a call with the id {id!r:.40}"
    if call["type"] == "custom":
        return
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"].strip():
        yield "has a call without a name"
        return
    given = function.get("arguments")
    if not isinstance(given, str if profile.arguments == "text" else dict):
        yield f"has arguments of the type {type(given).__name__}"
    elif isinstance(given, str) and not isinstance(decode(given, MAX_DEPTH), dict):
        yield "has arguments that are no JSON object"


def _pairs(history: Sequence[Json]) -> Iterator[str]:
    """Every call is answered at once, in the messages behind it, and no id comes twice."""
    open_ids: set[str] = set()
    seen: set[str] = set()
    for at, message in enumerate(history):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                yield f"message {at}: answers no call"
            open_ids.discard(message["tool_call_id"])
            continue
        if open_ids:
            yield f"message {at}: comes before {len(open_ids)} calls were answered"
        ids = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(ids)) < len(ids) or seen & set(ids):
            yield f"message {at}: has a call with an id that was used before"
        seen |= set(ids)
        open_ids = set(ids)
    if open_ids:
        yield f"{len(open_ids)} calls at the end have no result"


def _order(history: Sequence[Json], profile: HistoryProfile) -> Iterator[str]:
    roles = [message["role"] for message in history]
    if profile.system == "first" and any(role in ("system", "developer") for role in roles[1:]):
        yield "a system message is not the first, or not the only one"
    spoken = [role for role in roles if role != "system"]
    if profile.alternates and spoken[:1] == ["assistant"]:
        yield "the assistant speaks first"
    for one, other in pairwise(spoken):
        if profile.alternates and one == other and one != "tool":
            yield f"two messages of the {one} in a row"
        if profile.answers_first and (one, other) == ("tool", "user"):
            yield "a user speaks behind results, before the assistant"
