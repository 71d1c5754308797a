"""Calls and results of a history in pairs: every call has one result behind it, every result a call before it."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

from rightcall.ids import ALPHABET, is_nine
from rightcall.providers.histories.history_work import HistoryItem, HistoryWork
from rightcall.providers.outgoing import output_text
from rightcall.providers.sdk_view import items, text
from rightcall.types import Json

NO_RESULT = "ERROR: there is no result: the call was not run, or its result was lost"
_SENT = "the arguments of this call were no JSON object; you sent: "


class _Made:
    """One call of the history, and the result that was found for it."""

    def __init__(self, call: Json, item: HistoryItem, poison: str) -> None:
        self.call, self.item, self.poison = call, item, poison
        self.result: HistoryItem | None = None

    @property
    def id(self) -> str:
        return text(self.call.get("id"))

    @property
    def name(self) -> str:
        return text((self.call.get("function") or self.call.get("custom") or {}).get("name"))


def paired(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Results stand behind their calls, in their order; ids are such as the server takes, and each is used once."""
    if _are_paired(work, messages):
        return messages
    made = {id(item): _made(item) for item in messages if item.message["role"] == "assistant"}
    orphans = _match(messages, made)
    out: list[HistoryItem] = []
    used: set[str] = set()
    taken = {one.id for each in made.values() for one in each}
    for item in messages:
        if item.message["role"] == "tool":
            if id(item) in orphans:
                out += _as_text(work, item)
            continue
        out.append(item)
        if calls := made.get(id(item)):
            _name_calls(work, item, calls, used, taken)
            out += [_result(work, one) for one in calls]
    _tell_moved(work, messages, out)
    return out


def _are_paired(work: HistoryWork, messages: list[HistoryItem]) -> bool:
    """Do results stand behind their calls in their order, under ids that the server takes and that come once?"""
    waiting: list[str] = []
    used: set[str] = set()
    for item in messages:
        message = item.message
        if message["role"] == "tool":
            if not waiting or message.get("tool_call_id") != waiting.pop():
                return False
            continue
        if waiting or item.poison:
            return False
        waiting = [text(call.get("id")) for call in reversed(items(message.get("tool_calls")))]
        used.update(waiting)
        if not all(waiting):
            return False
    nine = work.profile.ids == "nine"
    calls = sum(len(items(item.message.get("tool_calls"))) for item in messages)
    return not waiting and len(used) == calls and not (nine and not all(map(is_nine, used)))


def _made(item: HistoryItem) -> list[_Made]:
    return [_Made(call, item, item.poison.get(at, "")) for at, call in enumerate(items(item.message.get("tool_calls")))]


def _match(messages: list[HistoryItem], made: dict[int, list[_Made]]) -> set[int]:
    """Gives each result to its call; those that no call waits for are given back."""
    waiting: dict[str, deque[_Made]] = {}
    last: list[_Made] = []
    orphans: set[int] = set()
    for item in messages:
        if calls := made.get(id(item)):
            last = calls
            for one in calls:
                waiting.setdefault(one.id, deque()).append(one)
        elif item.message["role"] == "tool":
            found = _waiting(item.message, waiting, last)
            if found is None:
                orphans.add(id(item))
            else:
                found.result = item
    return orphans


def _waiting(result: Json, waiting: dict[str, deque[_Made]], last: list[_Made]) -> _Made | None:
    """The call of that id, the newest of several; without a usable id the first of the last turn that fits."""
    wanted = text(result.get("tool_call_id"))
    queue = waiting.get(wanted)
    while wanted and queue:
        one = queue[0] if len({found.item for found in queue}) == 1 else queue[-1]
        queue.remove(one)
        if one.result is None:
            return one
    name = text(result.get("name")) or text(result.get("tool_name"))
    for one in last:
        if one.result is None and (not wanted or not one.id) and (not name or one.name == name):
            return one
    return None


def _name_calls(work: HistoryWork, item: HistoryItem, calls: list[_Made], used: set[str], taken: set[str]) -> None:
    """Ids that the server takes. A new one is made of what it stands for, so that it is the same the next time."""
    ids: list[str] = []
    for one in calls:
        new = one.id
        if not new or new in used or (work.profile.ids == "nine" and not is_nine(new)):
            new = _minted(work, one, len(used), used | taken)
            work.ids[new] = one.id
            work.tell("id", item, f"the id {one.id!r:.60} of a call became {new!r}")
        used.add(new)
        ids.append(new)
    if ids != [one.id for one in calls]:
        item.put(tool_calls=[{**one.call, "id": new} for one, new in zip(calls, ids, strict=True)])
    for one, new in zip(calls, ids, strict=True):
        one.call = {**one.call, "id": new}


def _minted(work: HistoryWork, one: _Made, at: int, used: set[str]) -> str:
    for salt in range(len(used) + 1):
        digest = hashlib.sha256(f"{at} {salt} {one.name} {one.id}".encode("utf-8", "surrogatepass")).digest()
        nine = "".join([ALPHABET[byte % len(ALPHABET)] for byte in digest[:9]])
        found = nine if work.profile.ids == "nine" else f"call_{digest.hex()[:24]}"
        if found not in used:
            return found
    raise AssertionError("one of so many ids is free")


def _result(work: HistoryWork, one: _Made) -> HistoryItem:
    if one.result is None:
        made = HistoryItem(one.item.at, {"role": "tool", "tool_call_id": one.id, "content": NO_RESULT})
        work.tell("unanswered_call", one.item, f"a result was added for the call of {one.name!r:.60}, which had none")
    else:
        made = one.result
        if made.message.get("tool_call_id") != one.id:
            made.put(tool_call_id=one.id)
    if one.poison:
        said = _plain(made.message.get("content"))
        made.put(content=f"{said}\n({_SENT}{one.poison})" if said else _SENT + one.poison)
    return made


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "" if content is None else output_text(content)


def _as_text(work: HistoryWork, item: HistoryItem) -> list[HistoryItem]:
    """A result whose call is gone says what it is; an empty one says nothing."""
    said = _plain(item.message.get("content"))
    work.tell(
        "orphan_result",
        item,
        "a result whose call is not there became text" if said else "an empty result of no call is left out",
    )
    if not said:
        return []
    name = text(item.message.get("name"))
    item.message = {"role": "user", "content": f"Result of an earlier call{f' of {name}' if name else ''}:\n{said}"}
    return [item]


def _tell_moved(work: HistoryWork, before: list[HistoryItem], after: list[HistoryItem]) -> None:
    places = {id(item): at for at, item in enumerate(before)}
    kept = [places[id(item)] for item in after if id(item) in places]
    for at, (one, other) in enumerate(zip(kept, sorted(kept), strict=True)):
        if one != other:
            work.tell("moved", before[kept[at]], "results stand behind the turn that made their calls, in its order")
            return
