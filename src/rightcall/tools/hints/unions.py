"""Alternatives: `int | str`, `Optional[Point]`.

A value is read by the first alternative that takes it as it is. An int is not made a float, nor a text an Enum, where
another alternative need not change it; of several classes the one that knows the most of the keys has it.
"""

from __future__ import annotations

import enum
import threading
from typing import Any

from rightcall.tools.hints.meaning import Meaning, Misfit, Read, ValueFault
from rightcall.tools.hints.scalars import NULL
from rightcall.types import Json


def union(members: list[Meaning]) -> Meaning:
    """Two that say the same are one. Null stands last."""
    said: list[Json] = []
    for member in members:
        said += [each for each in _flat(member.schema) if each not in said]
    nullable = NULL.schema in said
    said = [each for each in said if each != NULL.schema] + [NULL.schema] * nullable
    others = [member for member in members if member.schema != NULL.schema]
    schema = said[0] if len(said) == 1 else {"anyOf": said}
    if not others:
        return NULL
    read = others[0].read if len(others) == 1 else _best(others)
    if not nullable:
        return Meaning(schema, read)
    return Meaning(schema, lambda value: None if value is None else read(value))


def _flat(schema: Json) -> list[Json]:
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]


def _best(members: list[Meaning]) -> Read:
    """Alternatives that hold each other would read what is inside a value once for each way to it, which doubles with
    every level: what was made of an object or an array is remembered as long as the outermost is read."""

    def read(value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return _chosen(members, value)
        outer: Known | None = getattr(_READING, "known", None)
        known: Known = {} if outer is None else outer
        key = (id(read), id(value))
        try:
            _READING.known = known
            if key not in known:
                known[key] = value, _tried(members, value)
        finally:
            _READING.known = outer
        made = known[key][1]
        if isinstance(made, Misfit):
            raise Misfit(made.faults)
        return made

    return read


Known = dict[tuple[int, int], tuple[Any, Any]]  # holds the value too: an id is only unique among living objects
_READING = threading.local()


def _tried(members: list[Meaning], value: Any) -> Any:
    try:
        return _chosen(members, value)
    except Misfit as misfit:
        return misfit


def _chosen(members: list[Meaning], value: Any) -> Any:
    found: list[tuple[Meaning, Any]] = []
    faults: list[ValueFault] = []
    for member in members:
        try:
            found.append((member, member.read(value)))
        except Misfit as misfit:
            faults += misfit.faults
    if not found:
        raise _none_of(faults)
    if len(found) == 1:
        return found[0][1]
    keys = frozenset(value) if isinstance(value, dict) else frozenset()
    return min(found, key=lambda each: (-len(each[0].keys & keys), _is_changed(value, each[1])))[1]


def _is_changed(value: Any, made: Any) -> bool:
    """Is a number of another kind, a tuple, or a member of an Enum in place of what was sent?"""
    if isinstance(value, list):
        return not isinstance(made, list) or any(_is_changed(*pair) for pair in zip(value, made, strict=False))
    if isinstance(made, enum.Enum):
        return not isinstance(value, enum.Enum)
    return isinstance(value, (int, float)) and type(made) in (int, float) and type(made) is not type(value)


def _none_of(faults: list[ValueFault]) -> Misfit:
    """What each alternative has against the value, at the one place that all of them are about."""
    said = dict.fromkeys([fault.said for fault in faults if not fault.steps])
    inside = [fault for fault in faults if fault.steps]
    kinds = {fault.code for fault in faults}
    if inside and not said:
        return Misfit(inside)
    words = ", or ".join([each if not at else each.removeprefix("should be ") for at, each in enumerate(said)])
    return Misfit([*inside, ValueFault(kinds.pop() if len(kinds) == 1 else "invalid_argument", words)])
