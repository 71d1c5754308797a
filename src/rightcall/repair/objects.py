"""An argument object read loosely, with what stands behind it: too many brackets, or the object again.

read_arguments("{'zip': 02134}}", 0, tool, ...)  ->  {"zip": "02134"} and its liberties
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rightcall.declare.kinds import wants_text
from rightcall.declare.places import Places, value_at
from rightcall.repair.loose import (
    MOST_OBJECTS,
    Liberty,
    Loose,
    Spelled,
    Unreadable,
    one_object,
    read_loose,
    skip_comments,
)
from rightcall.types import Tool
from rightcall.values.notation import STRICT_NUMBER

_BLANK = re.compile(r"[ \t\r\n]*+").match
_CLOSERS = re.compile(r"(?:[ \t\r\n]*+[}\])]){1,3}[ \t\r\n]*+").fullmatch


def read_arguments(
    text: str, start: int, tool: Tool | None, *, depth: int, closed: bool
) -> tuple[Any, tuple[Liberty, ...]]:
    """The arguments that are all of the text from `start` on. Raises `Unreadable`."""
    value, liberties, end = objects_in_a_row(text, start, tool, depth=depth, closed=closed)
    end, comments = skip_comments(text, end)
    liberties += tuple([each for each in comments if each.rule not in {liberty.rule for liberty in liberties}])
    rest = text[end:]
    if rest:
        if not _CLOSERS(rest):
            raise Unreadable("there is more text behind the arguments", final=True)
        liberties += (Liberty("extra_closer", rest.strip(" \t\r\n"), ""),)
    return value, liberties


def objects_in_a_row(
    text: str, start: int, tool: Tool | None, *, depth: int, closed: bool
) -> tuple[Any, tuple[Liberty, ...], int]:
    """One value, or several objects that are one; and where they end."""
    read = read_loose(text, start, depth=depth, closed=closed)
    value, taken = as_meant(read, tool)
    objects, liberties = [value], {liberty.rule: liberty for liberty in taken}
    while isinstance(value, dict) and text.startswith("{", here := _BLANK(text, read.end).end()):  # type: ignore[union-attr]
        if len(objects) >= MOST_OBJECTS:
            raise Unreadable("too many objects stand in a row", final=True)
        read = read_loose(text, here, depth=depth, closed=closed)
        value, taken = as_meant(read, tool)
        objects.append(value)
        liberties = {liberty.rule: liberty for liberty in taken} | liberties
    if len(objects) > 1:
        value, liberty = one_object(objects)
        liberties[liberty.rule] = liberty
    return value, tuple(liberties.values()), read.end


def as_meant(read: Loose, tool: Tool | None) -> tuple[Any, tuple[Liberty, ...]]:
    """The value and its liberties, now that it is known whose arguments they are."""
    if not read.spelled:
        return read.value, read.liberties
    value, made = respelled(read.value, read.spelled, tool)
    return value, (*read.liberties, *made)


def respelled(value: Any, spelled: Iterable[Spelled], tool: Tool | None) -> tuple[Any, tuple[Liberty, ...]]:
    """Numbers in an odd spelling (`+3`, `1_000`, `1.10`) are numbers, but where a string is wanted they are what was
    written: a telephone number without its quotes. The value is changed in place."""
    wanted = _Wanted(tool)
    made: dict[str, Liberty] = {}
    for where, text in spelled:
        *before, last = where or (None,)
        holder = value_at(value, before)
        number = value if not where else value_at(holder, [last])
        if type(number) not in (int, float):
            continue  # a key that was given twice
        if where and wanted.as_text(where):
            holder[last] = text
            made.setdefault("unquoted_value", Liberty("unquoted_value", text, f'"{text}"'))
        elif STRICT_NUMBER(text) is None:
            made.setdefault("number_spelling", Liberty("number_spelling", text, repr(number)))
    return value, tuple(made.values())


class _Wanted:
    """Where the schema wants a string. Many numbers stand in few lists, so what was found out is kept."""

    def __init__(self, tool: Tool | None) -> None:
        self._places = Places(tool.parameters) if tool is not None else None
        self._around: dict[tuple[str | int, ...], Any] = {}
        self._found: dict[int, bool] = {}

    def as_text(self, where: tuple[str | int, ...]) -> bool:
        if self._places is None:
            return False
        around = where[:-1]
        if around not in self._around:
            self._around[around] = self._places.at(list(around))
        schema = self._places.inner(self._around[around], where[-1])
        if id(schema) not in self._found:  # a part of the tool's schema, which outlives this
            self._found[id(schema)] = wants_text(schema, self._places.refs)
        return self._found[id(schema)]
