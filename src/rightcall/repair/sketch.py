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
    text: str, *, names: Collection[str], args: Collection[str], ids: Collection[str], depth: int
) -> list[Sketch]:
    """The envelopes in a block whose end was seen. Empty if something in it cannot be read."""
    found: list[Sketch] = []
    pos = _BETWEEN(text, 0).end()  # type: ignore[union-attr]
    while pos < len(text) and not _ONLY_CLOSERS(text, pos):
        if text[pos] != "{" or len(found) >= 64:
            return []
        try:
            read = read_loose(text, pos, depth=depth, closed=True)
        except Unreadable:
            return []
        sketch = _sketch(read.value, names, args, ids)
        if sketch is None:
            return []
        found.append(Sketch(pos, read.end, *sketch, read.liberties))
        pos = _BETWEEN(text, read.end).end()  # type: ignore[union-attr]
    return found


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


def sketch_arguments(text: str, depth: int) -> tuple[Any, tuple[Liberty, ...]] | None:
    """The one value that a text holds, with nothing but closing brackets and blanks behind it."""
    try:
        read = read_loose(text, depth=depth, closed=True)
    except Unreadable:
        return None
    return (read.value, read.liberties) if _ONLY_CLOSERS(text, read.end) else None
