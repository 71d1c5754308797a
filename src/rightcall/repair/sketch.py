"""Calls in a block that is not valid JSON, read loosely, if every bracket and quote in it can be accounted for."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from rightcall.repair.loose import Liberty, Unreadable, read_loose

_BETWEEN = re.compile(r"[\s,;]*+").match
_ONLY_CLOSERS = re.compile(r"[\s}\])]*+").fullmatch


class Sketch(msgspec.Struct, frozen=True):
    """One call of a block, and where in the text it stands."""

    start: int
    end: int
    name: str
    id: str
    arguments: Any
    liberties: tuple[Liberty, ...]


def sketch_envelopes(
    text: str, *, names: Collection[str], args: Collection[str], ids: Collection[str], depth: int, closed: bool
) -> list[Sketch]:
    """The envelopes in a block. Where its end was seen (`closed`), all of it must be readable; else what stands behind
    the envelopes may be anything, but every bracket in them must be closed."""
    found: list[Sketch] = []
    pos = _BETWEEN(text, 0).end()  # type: ignore[union-attr]
    while pos < len(text) and not _ONLY_CLOSERS(text, pos):
        if text[pos] != "{" or len(found) >= 64:
            return found if found and not closed else []
        try:
            read = read_loose(text, pos, depth=depth, closed=closed)
        except Unreadable:
            return []
        sketch = _sketch(read.value, names, args, ids)
        if sketch is None or not (closed or _balanced(read.liberties)):
            return []
        found.append(Sketch(pos, read.end, *sketch, read.liberties))
        pos = _BETWEEN(text, read.end).end()  # type: ignore[union-attr]
    return found


def _balanced(liberties: tuple[Liberty, ...]) -> bool:
    return all(liberty.rule != "missing_closer" for liberty in liberties)


def _sketch(
    value: Any, names: Collection[str], args: Collection[str], ids: Collection[str]
) -> tuple[str, str, Any] | None:
    inner = value.get("function")
    fields = {**value, **inner} if isinstance(inner, dict) else value
    name = next((fields[key] for key in names if isinstance(fields.get(key), str)), None)
    arguments = next((fields[key] for key in args if key in fields), None)
    id = next((fields[key] for key in ids if isinstance(fields.get(key), str)), "")
    if name is None and arguments is None:
        return None
    return name or "", id, arguments


def sketch_arguments(text: str, start: int, name: str, depth: int, closed: bool) -> list[Sketch]:
    """The call whose arguments begin at `start`; where the end was seen, with nothing but closing brackets behind."""
    try:
        read = read_loose(text, start, depth=depth, closed=closed)
    except Unreadable:
        return []
    if not isinstance(read.value, dict) or (not closed and not _balanced(read.liberties)):
        return []
    if not closed:
        return [Sketch(0, read.end, name, "", read.value, read.liberties)]
    extra = text[read.end :].strip()
    if not _ONLY_CLOSERS(text, read.end) or len(extra) > 3:
        return []
    more = (Liberty("extra_closer", extra, ""),) if extra else ()
    return [Sketch(0, len(text.rstrip()), name, "", read.value, (*read.liberties, *more))]
