"""Calls in a block that is not valid JSON, read loosely, if every bracket and quote in it can be accounted for."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rightcall.declare.toolset import Toolset
from rightcall.repair.loose import Liberty, Loose, Unreadable, read_loose
from rightcall.repair.objects import objects_in_a_row, read_arguments, respelled

_BETWEEN = re.compile(r"[\s,;]*+").match
_MOST = 64
_ONLY_CLOSERS = re.compile(r"[\s}\])]*+").fullmatch


class Keys(msgspec.Struct, frozen=True):
    """The keys of an envelope. Without `names` the name is the key."""

    names: tuple[str, ...]
    args: tuple[str, ...]
    ids: tuple[str, ...]


class Sketch(msgspec.Struct, frozen=True):
    """One call of a block, and where in the text it stands."""

    start: int
    end: int
    name: str
    id: str
    arguments: Any
    liberties: tuple[Liberty, ...]


def sketch_envelopes(text: str, keys: Keys, *, tools: Toolset | None, depth: int, closed: bool) -> list[Sketch]:
    """The envelopes in a block. Where its end was seen (`closed`), all of it must be readable; else what stands behind
    the envelopes may be anything, but every bracket in them must be closed."""
    found: list[Sketch] = []
    pos = _BETWEEN(text, 0).end()  # type: ignore[union-attr]
    while pos < len(text) and not _ONLY_CLOSERS(text, pos):
        if text[pos] != "{" or len(found) >= _MOST:
            return found if found and not closed else []
        try:
            read = read_loose(text, pos, depth=depth, closed=closed)
        except Unreadable:
            return []
        sketch = _sketch(read, pos, keys, tools)
        if sketch is None or not (closed or _balanced(read.liberties)):
            return []
        found.append(sketch)
        pos = _BETWEEN(text, read.end).end()  # type: ignore[union-attr]
    return found


def _balanced(liberties: tuple[Liberty, ...]) -> bool:
    return all(liberty.rule != "missing_closer" for liberty in liberties)


def _sketch(read: Loose, start: int, keys: Keys, tools: Toolset | None) -> Sketch | None:
    """The call that an envelope holds, if it holds one."""
    value: dict[str, Any] = read.value
    inner = value.get("function")
    prefix: tuple[str, ...] = ("function",) if isinstance(inner, dict) else ()
    fields = {**value, **inner} if isinstance(inner, dict) else value
    if not keys.names:
        # The name is the key.
        name = next(iter(value)) if len(value) == 1 else ""
        args, id = name or None, ""
    else:
        name = next((fields[key] for key in keys.names if isinstance(fields.get(key), str)), "")
        args = next((key for key in keys.args if key in fields), None)
        id = next((fields[key] for key in keys.ids if isinstance(fields.get(key), str)), "")
    if not name and args is None:
        return None
    arguments = None if args is None else fields[args]
    where = (*prefix, args) if prefix and args in value[prefix[0]] else (args,)
    spelled = [(steps[len(where) :], text) for steps, text in read.spelled if steps[: len(where)] == where]
    arguments, made = respelled(arguments, spelled, tools.get(name) if tools is not None else None)
    return Sketch(start, read.end, name, id, arguments, (*read.liberties, *made))


def sketch_arguments(
    text: str, start: int, name: str, *, tools: Toolset | None, depth: int, closed: bool
) -> list[Sketch]:
    """The call whose arguments begin at `start`; where the end was seen, with nothing but closing brackets behind."""
    tool = tools.get(name) if tools is not None else None
    try:
        if closed:
            value, liberties = read_arguments(text, start, tool, depth=depth, closed=True)
            end = len(text.rstrip())
        else:
            value, liberties, end = objects_in_a_row(text, start, tool, depth=depth, closed=False)
    except Unreadable:
        return []
    if not isinstance(value, dict) or not (closed or _balanced(liberties)):
        return []
    return [Sketch(0, end, name, "", value, liberties)]
