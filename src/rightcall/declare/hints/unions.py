"""Alternatives: `int | str`, `Optional[Point]`.

A value is read by the first alternative that takes it as it is. An int is not made a float, nor a text an Enum, where
another alternative need not change it; of several classes the one that knows the most of the keys has it.
"""

from __future__ import annotations

import enum
from typing import Any

from rightcall.declare.hints.meaning import Meaning, Misfit, Read, ValueFault
from rightcall.declare.hints.scalars import NULL
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
    def read(value: Any) -> Any:
        found: list[tuple[int, bool, int, Any]] = []
        faults: list[ValueFault] = []
        for at, member in enumerate(members):
            try:
                made = member.read(value)
            except Misfit as misfit:
                faults += misfit.faults
                continue
            known = len(member.keys & value.keys()) if isinstance(value, dict) else 0
            found.append((-known, _is_changed(value, made), at, made))
        if not found:
            raise _none_of(faults)
        return min(found, key=lambda each: each[:3])[3]

    return read


def _is_changed(value: Any, made: Any) -> bool:
    """Is a number of another kind, or a member of an Enum, in place of what was sent?"""
    if isinstance(value, (list, tuple)) and isinstance(made, (list, tuple)):
        return any(_is_changed(*pair) for pair in zip(value, made, strict=False))
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
