"""Who speaks when: system messages first, users and assistants in turn, where a server insists on it."""

from __future__ import annotations

from typing import Any

from rightcall.providers.histories.history_profiles import REASONING_KEYS
from rightcall.providers.histories.history_work import HistoryItem, HistoryWork
from rightcall.types import Json

GOES_ON = "(The conversation goes on.)"
SEEN = "(The results were seen.)"


def ordered(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """The messages in an order that the server takes."""
    if work.profile.system == "first":
        messages = _system_first(work, messages)
    if work.profile.answers_first:
        messages = _answered_first(work, messages)
    return _in_turn(work, messages) if work.profile.alternates else messages


def _system_first(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Those that lead are one; one that comes later keeps its place and is the user's."""
    lead = 0
    while lead < len(messages) and messages[lead].message["role"] in ("system", "developer"):
        lead += 1
    for item in messages[lead:]:
        if item.message["role"] in ("system", "developer"):
            work.tell("late_system", item, "a system message that is not the first became a user's")
            item.put(role="user")
    if lead > 1:
        _merge(work, messages[:lead], "several system messages are one")
        return [messages[0], *messages[lead:]]
    return messages


def _answered_first(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    out: list[HistoryItem] = []
    for item in messages:
        if out and out[-1].message["role"] == "tool" and item.message["role"] == "user":
            work.tell("role_order", item, "behind results an assistant speaks before a user")
            out.append(_spoken(item.at, "assistant", SEEN))
        out.append(item)
    return out


def _in_turn(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    out: list[HistoryItem] = []
    for item in messages:
        role, before = item.message["role"], out[-1].message["role"] if out else "system"
        if before == "system" and role == "assistant":
            work.tell("role_order", item, "a user speaks first")
            out.append(_spoken(item.at, "user", GOES_ON))
        elif role == before and role in ("user", "assistant"):
            _merge(work, [out[-1], item], f"two messages of the {role} in a row are one")
            continue
        out.append(item)
    return out


def _spoken(at: int, role: str, content: str) -> HistoryItem:
    return HistoryItem(at, {"role": role, "content": content})


def _merge(work: HistoryWork, items: list[HistoryItem], why: str) -> None:
    """Into the first: what each said, one after the other, and every other field."""
    first, *rest = items
    for item in rest:
        work.tell("role_order", item, why)
        first.message = _joined(first.message, item.message)


def _joined(one: Json, other: Json) -> Json:
    both = {**one, **other, "content": _both(one.get("content"), other.get("content"))}
    for key in REASONING_KEYS:
        if one.get(key) and other.get(key):
            both[key] = f"{one[key]}\n{other[key]}"
    return both


def _both(one: Any, other: Any) -> Any:
    if isinstance(one, list) or isinstance(other, list):
        return [*_parts(one), *_parts(other)]
    return "\n\n".join([said for said in (one, other) if said])


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
