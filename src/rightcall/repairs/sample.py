"""Very many values of a kind: a few of each are mended, and what helped them is done to all.

An error of the checker costs more than the value it is about, so arguments with a hundred thousand wrong items are not
asked about one by one. A lesson holds for a place (`/list/*/n`) and a type of value; whether all of it was right is
judged once, at the end, on the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from rightcall.repairs.schema_rules import Change, Given, SchemaFault, changes, with_changes
from rightcall.schema.places import Places, value_at
from rightcall.types import Json, Repair

_LARGE = 2_000
_ANY: Any = object()  # any index of a list, or any key of a map


class Lesson(msgspec.Struct, frozen=True):
    """What helped: a change for a fault, and the value's type before. `where` has `_ANY` for indexes and map keys."""

    where: tuple[Any, ...]
    fault: SchemaFault
    rule: str
    before: type
    after: type

    @property
    def key(self) -> tuple[Any, ...]:
        return self.where, self.fault.word, self.rule, self.before, self.after


def lesson(fault: SchemaFault, change: Change, arguments: Any, places: Places) -> Lesson:
    before = type(value_at(arguments, list(change.where)))
    return Lesson(_pattern(fault.where, places), fault, change.rule, before, type(change.new))


def _pattern(where: tuple[Any, ...], places: Places) -> tuple[Any, ...]:
    found: list[Any] = []
    schema = places.root
    for step in where:
        found.append(step if isinstance(step, str) and step in places.properties(schema) else _ANY)
        schema = places.inner(schema, step)
    return tuple(found)


def sample(arguments: Json, places: Places) -> Json | None:
    """A copy in which long lists and maps are cut; None where there is no need."""
    if _size(arguments, _LARGE) <= _LARGE:
        return None
    for few in (64, 16, 4):
        cut: Json = _cut(arguments, places.root, places, few)
        if _size(cut, _LARGE) <= _LARGE:
            return cut
    return None


def _size(value: Any, most: int) -> int:
    """How many values there are; beyond `most` only that there are more."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        here = waiting.pop()
        count += 1
        if isinstance(here, dict | list):
            count += max(0, len(here) - most)
            waiting += list(here.values() if isinstance(here, dict) else here)[: most + 1]
    return count


def _cut(value: Any, schema: Any, places: Places, few: int) -> Any:
    """Of a list every so many-eth item, of a map the first keys; what is declared by name is kept."""
    if isinstance(value, list):
        step = max(1, len(value) // few)
        return [_cut(item, places.inner(schema, index), places, few) for index, item in enumerate(value[::step])]
    if isinstance(value, dict):
        declared = places.properties(schema)
        others = islice((key for key in value if key not in declared), few)
        keys = [*(key for key in declared if key in value), *others]
        return {key: _cut(value[key], places.inner(schema, key), places, few) for key in keys}
    return value


def mend_all(arguments: Any, lessons: list[Lesson], places: Places, depth: int) -> tuple[Any, list[Repair]]:
    """The arguments with every lesson done, in the order they were learnt, wherever it holds."""
    receipts: list[Repair] = []
    for each in {lesson.key: lesson for lesson in lessons}.values():
        made: dict[tuple[Any, ...], Change] = {}
        given = Given(arguments, places, depth)
        for where in _matching(arguments, each):
            change = _same_change(each, where, given)
            if change is not None:
                made[change.where] = change
        for change in made.values():
            receipts += change.receipts(arguments)
        arguments = with_changes(arguments, made.values())
    return arguments, receipts


def _same_change(each: Lesson, where: tuple[Any, ...], given: Given) -> Change | None:
    name = where[-1] if each.fault.name else ""
    fault = SchemaFault(where, each.fault.word, name, each.fault.kind)
    for change in changes(fault, given):
        if change.rule == each.rule and type(change.new) is each.after:
            before = value_at(given.arguments, list(change.where))
            return change if type(before) is each.before and before != change.new else None
    return None


def _inside(value: Any, step: Any) -> Iterable[tuple[Any, Any]]:
    """Where a step leads from a value: to one member, or to each."""
    if step is not _ANY:
        return [(step, value[step])] if isinstance(value, dict) and step in value else []
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []


def _matching(arguments: Any, each: Lesson) -> list[tuple[Any, ...]]:
    """Every place that a lesson may be about."""
    found: list[tuple[tuple[Any, ...], Any]] = [((), arguments)]
    steps = each.where[:-1] if each.fault.word == "required" else each.where
    for step in steps:
        found = [((*where, key), item) for where, value in found for key, item in _inside(value, step)]
    tail = (each.fault.name,) if each.fault.word == "required" else ()
    return [(*where, *tail) for where, _ in found]
