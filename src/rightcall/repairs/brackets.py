"""Could a bracket have stood elsewhere? Then what was read is one of several readings, and no certain one.

    {"filter": {"glob": "*", "dry_run": true}        a "}" is missing: at the end, or before "dry_run"?

The schema decides: where `dry_run` can be an argument beside `filter` as well as a key inside it, nobody knows. A key
that only one of the two objects can hold is where it belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from rightcall.schema.places import Places, may_be, value_at
from rightcall.types import Tool

_MOST_BESIDE = 256
_MOST_STEPS = 1_000  # beyond that it is not known, and so not certain
_ODD_KEY = re.compile(r"[,:{}\[\]\"]").search
_OPEN = ("additionalProperties", "patternProperties", "unevaluatedProperties")


def could_move(arguments: Any, tool: Tool | None, *, out: int = 0, into: int = 0) -> bool:
    """Could a member of an object or a list stand so many brackets further out, or further in, and fit there too?"""
    look = _Look(tool, out, into)
    try:
        return look.at(arguments, look.places.root if look.places is not None else None, [])
    except _TooMany:
        return True


def has_odd_key(value: Any) -> bool:
    """Is there a key that looks like two, which what stood between them was lost from?"""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            if any(_ODD_KEY(key) for key in here):
                return True
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return False


def could_go_on(open: list[Any], arguments: Any, tool: Tool | None) -> bool:
    """Could one of the objects and lists that were open at the end have held more than was read?"""
    look = _Look(tool, 0, 0)
    try:
        return any(look.is_open(value, schema) for value, schema in look.schemas(arguments) if _is_in(value, open))
    except _TooMany:
        return True


def could_stand_elsewhere(arguments: Any, tool: Tool, where: list[Any]) -> bool:
    """Could the member in this place stand one bracket further out or in, with its value as it is?"""
    if not where or not isinstance(where[-1], str):
        return False
    look = _Look(tool, 0, 0)
    item = value_at(arguments, where)
    around = [(value_at(arguments, where[:-2]), where[:-2])] if len(where) > 1 else []
    parent = value_at(arguments, where[:-1])
    if not isinstance(parent, dict) or len(parent) > _MOST_BESIDE:
        return True
    before = list(takewhile(lambda key: key != where[-1], parent))
    around += [(parent[key], [*where[:-1], key]) for key in before]
    return any(isinstance(value, dict) and look.takes_at(value, place, where[-1], item) for value, place in around)


class _TooMany(Exception):
    """More steps than are worth it."""


def _is_in(value: Any, some: list[Any]) -> bool:
    return any(value is each for each in some)


class _Look:
    def __init__(self, tool: Tool | None, out: int, into: int) -> None:
        self.places = Places(tool.parameters) if tool is not None else None
        self._out, self._into = out, into
        self._steps = 0
        # By id, with what has it: an id is only unique among the living.
        self._declared: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._may: dict[tuple[int, type], tuple[Any, bool]] = {}

    def at(self, value: Any, schema: Any, around: list[tuple[Any, Any]]) -> bool:
        """Is there such a member in this value, or in one inside it?"""
        members = _members(value)
        if not members:
            return False
        if self._moves_out(members, schema, around) or self._is_doubled(value, schema):
            return True
        here = [*around, (value, schema)][-max(self._out, 1) :]
        for index, (key, item) in enumerate(members):
            if isinstance(item, dict | list):
                inner = self._inner(schema, key)
                if self._into and index + 1 < len(members) and self._move_in(members, index + 1, item, inner):
                    return True
                if self.at(item, inner, here):
                    return True
        return False

    def _moves_out(self, members: list[tuple[Any, Any]], schema: Any, around: list[tuple[Any, Any]]) -> bool:
        """Could the last member stand in one of the values around this one, or is one declared there and not here?"""
        found = around[-self._out :] if self._out else []
        if len(members) > 1 and any(self._takes(value, outer, *members[-1]) for value, outer in found):
            return True
        if not isinstance(members[0][0], str):
            return False
        here = self._properties(schema)
        strays = [each for each in members if each[0] not in here]
        return any(self._takes_one(value, outer, strays) for value, outer in found)

    def _takes_one(self, value: Any, schema: Any, strays: list[tuple[Any, Any]]) -> bool:
        """Is one of these declared in this value, and fits there?"""
        declared = self._properties(schema) if isinstance(value, dict) else {}
        return any(self._takes(value, schema, *each) for each in strays if each[0] in declared)

    def _is_doubled(self, value: Any, schema: Any) -> bool:
        """Could one of the two brackets that open a list in a list be one too many?"""
        first = value[0] if isinstance(value, list) and self._out else None
        return isinstance(first, list) and all(self._takes(value, schema, 0, item) for item in first)

    def _move_in(self, members: list[tuple[Any, Any]], start: int, value: Any, schema: Any) -> bool:
        """Could all that follows a value stand at the end of it, or of what ends it?"""
        for _ in range(self._into):
            if all(self._takes(value, schema, *members[index]) for index in range(start, len(members))):
                return True
            last = _members(value)[-1:]
            if not last or not isinstance(last[0][1], dict | list):
                return False
            value, schema = last[0][1], self._inner(schema, last[0][0])
        return False

    def _takes(self, value: Any, schema: Any, key: Any, item: Any) -> bool:
        """Could this object or list have held that member?"""
        self._step()
        if isinstance(value, dict) != isinstance(key, str) or (isinstance(value, dict) and key in value):
            return False
        if isinstance(key, int):
            return self._may_be(self._inner(schema, len(value)), item)
        declared = self._properties(schema)
        return self._may_be(declared[key], item) if key in declared else self._is_free(schema)

    def takes_at(self, value: Any, place: list[Any], key: str, item: Any) -> bool:
        """Could the object in this place have held that member?"""
        assert self.places is not None
        return self._takes(value, self.places.at(place), key, item)

    def _may_be(self, schema: Any, item: Any) -> bool:
        known = id(schema), type(item)
        if known not in self._may:
            refs: Any = self.places.refs if self.places is not None else {}
            self._may[known] = (schema, may_be(schema, item, refs))
        return self._may[known][1]

    def is_open(self, value: Any, schema: Any) -> bool:
        """Could this have held more?"""
        if isinstance(value, list):
            return True
        return self._is_free(schema) or not self._properties(schema).keys() <= value.keys()

    def schemas(self, arguments: Any) -> Iterator[tuple[Any, Any]]:
        """Every object and list, with its schema."""
        waiting = [(arguments, self.places.root if self.places is not None else None)]
        while waiting:
            value, schema = waiting.pop()
            if isinstance(value, dict | list):
                self._step()
                yield value, schema
                waiting += [(item, self._inner(schema, key)) for key, item in _members(value)]

    def _is_free(self, schema: Any) -> bool:
        """Does it take names that it does not declare, in so many words or because it declares none?"""
        if not isinstance(schema, dict):
            return True
        return not self._properties(schema) if not any(schema.get(word) for word in _OPEN) else True

    def _properties(self, schema: Any) -> dict[str, Any]:
        found = self._declared.get(id(schema))
        if found is None:
            made = self.places.properties(schema) if self.places is not None else {}
            found = self._declared[id(schema)] = (schema, made)
        return found[1]

    def _inner(self, schema: Any, key: Any) -> Any:
        self._step()
        return self.places.inner(schema, key) if self.places is not None else None

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooMany


def _members(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []
