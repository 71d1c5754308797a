"""What it may cost to check a call: steps, told beforehand from the schema and from the size of the arguments.

    Steps(schema).and_size({"rows": [1, 2, 3]})   ->   at most so many looks of one keyword at one value, and how many

The checker takes a schema and a value and says nothing before it is done, so what would take too long is not begun.
Schemas are told apart by how deep the values are that they speak of: a long list of names at the top costs once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rightcall.schema.walk import Refs, in_place, reachable, subschemas
from rightcall.types import Json

_LEVELS = 6  # deeper ones are not told apart
_PIECE = 64  # characters that are looked at in one step
_ERROR = 16  # values that an error itself is as large as
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$defs"))


class Cost(NamedTuple):
    """Of a value: once, and for each of its parts (members, items, pieces of a text)."""

    whole: int
    part: int


class Level(NamedTuple):
    """How much stands at one depth."""

    values: int
    parts: int


class Steps:
    """Of one schema, which must be a copy made by `relaxed`."""

    def __init__(self, schema: Json) -> None:
        self._refs = Refs(schema)
        self._cost: dict[int, Cost] = {}
        for each in reachable(self._refs):
            self._add_up(each)
        self._deep = _dearest(list(self._cost.values()))
        self._costs = self._by_level(schema)

    @property
    def most(self) -> int:
        """For one value or one part of it, whatever its place."""
        return sum(self._deep)

    def and_size(self, value: Any) -> tuple[int, int]:
        """The most steps that checking this value can take, and how large it is."""
        levels = _levels(value)
        steps = sum(level.values * cost.whole + level.parts * cost.part for level, cost in self._with_costs(levels))
        return steps, sum(level.values + level.parts for level in levels)

    def errors(self, value: Any) -> int:
        """What all errors of this value can hold: each has a copy of the value that it is about, with all inside."""
        found = inside = 0
        for level, cost in reversed(self._with_costs(_levels(value))):
            inside += level.values
            found += cost.whole * (inside + _ERROR * level.values)
        return found

    def _with_costs(self, levels: list[Level]) -> list[tuple[Level, Cost]]:
        costs = [*self._costs[: len(levels)], *[self._deep] * (len(levels) - _LEVELS)]
        return list(zip(levels, costs, strict=True))

    def _add_up(self, start: Json) -> None:
        """The cost of a schema is its own and that of all that apply to the same value; none applies itself."""
        stack = [start]
        while stack:
            here = stack[-1]
            below = in_place(here, self._refs)
            new = [each for each in below if id(each) not in self._cost]
            if new:
                stack += new
            else:
                costs = [own_cost(here), *[self._cost[id(each)] for each in below]]
                self._cost[id(stack.pop())] = Cost(*map(sum, zip(*costs, strict=True)))

    def _by_level(self, schema: Json) -> list[Cost]:
        found: list[Cost] = []
        level = [schema]
        for _ in range(_LEVELS):
            found.append(_dearest([self._cost[id(each)] for each in level]))
            level = self._below(level)
        return found

    def _below(self, level: list[Json]) -> list[Json]:
        """The schemas of what is inside the values that these speak of."""
        seen: set[int] = set()
        inner: dict[int, Json] = {}
        while level:
            here = level.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            level += in_place(here, self._refs)
            subs = [sub.schema for sub in subschemas(here) if sub.keyword not in _IN_PLACE]
            inner.update({id(each): each for each in subs if isinstance(each, dict)})
        return list(inner.values())


def _dearest(costs: list[Cost]) -> Cost:
    return Cost(max([cost.whole for cost in costs], default=1), max([cost.part for cost in costs], default=1))


def own_cost(schema: Json) -> Cost:
    """What the keywords of one schema cost, measured in what a plain one does."""
    whole = len(schema) + len(schema.get("required", ())) + len(schema.get("dependentRequired", ()))
    whole += len(schema.get("dependentSchemas", ()))
    part = 1 + 10 * ("uniqueItems" in schema) + 4 * len(schema.get("patternProperties", ()))
    part += len(schema.get("pattern", "")) // 8
    if "enum" in schema:
        several = len({type(value) for value in schema["enum"]}) > 1
        nested = any(isinstance(value, (dict, list)) for value in schema["enum"])
        whole += len(schema["enum"]) * (40 if nested else 1 if several else 0)
    if "multipleOf" in schema:
        whole += 150 if 1e-20 < schema["multipleOf"] < 1e20 else 4_000
    return Cost(whole, part)


def _levels(value: Any) -> list[Level]:
    found: list[Level] = []
    values: list[Any] = [value]
    while values:
        parts, inner = 0, list[Any]()
        for each in values:
            if isinstance(each, str):
                parts += len(each) // _PIECE
            elif isinstance(each, (dict, list)):
                parts += len(each)
                inner += each.values() if isinstance(each, dict) else each
        found.append(Level(len(values), parts))
        values = inner
    return found
