"""The schema of a place in the arguments:  Places(tool.parameters).at(["list", 0, "zip_code"])

A place is the keys and indexes that lead to it. References are followed, alternatives looked through in their order;
what cannot be told without the arguments themselves is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rightcall.schema.walk import refs_of
from rightcall.types import Json

MISSING: Any = object()
_MOST_REFS = 32
_BRANCHES = ("anyOf", "oneOf", "allOf")


class Places:
    def __init__(self, root: Any) -> None:
        self.refs = refs_of(root)
        self.root = self._resolved(root)

    def at(self, where: list[Any]) -> Any:
        schema = self.root
        for step in where:
            schema = self.inner(schema, step)
        return schema

    def inner(self, schema: Any, step: Any) -> Any:
        """The schema one step further down."""
        if type(schema) is dict and type(step) is str and type(declared := schema.get("properties")) is dict:
            inner = declared.get(step)
            if type(inner) is dict:  # most are declared right here
                return self._resolved(inner)
        inner = None
        for option in self._alternatives(schema):
            if isinstance(step, int):
                items = option.get("prefixItems")
                inner = items[step] if isinstance(items, list) and step < len(items) else option.get("items")
            else:
                inner = _mapping(option.get("properties")).get(step, option.get("additionalProperties"))
            if isinstance(inner, dict):
                break
        return self._resolved(inner)

    def default(self, where: list[Any]) -> Any:
        """The default that is declared for a place, or `MISSING`."""
        schema = self.at(where)
        return schema.get("default", MISSING) if isinstance(schema, dict) else MISSING

    def properties(self, schema: Any) -> Json:
        """What a schema declares by name, its alternatives' included."""
        kept = self.refs.declared.get(id(schema))
        if kept is None:
            found: Json = {}
            for option in self._alternatives(schema):
                found = {**_mapping(option.get("properties")), **found}
            kept = self.refs.declared[id(schema)] = schema, found
        return kept[1]

    def only(self, schema: Any) -> Any:
        """The schema itself; of one that may also be null, the other alternative."""
        schema = self._resolved(schema)
        branches = [schema.get(word) for word in ("anyOf", "oneOf")] if isinstance(schema, dict) else []
        for found in branches:
            others = [each for each in found if not _is_null(each)] if isinstance(found, list) else []
            if len(others) == 1 and "properties" not in schema:
                return self._resolved(others[0])
        return schema

    def _alternatives(self, schema: Any) -> Iterator[Json]:
        waiting, found = [schema], 0
        while waiting and found < _MOST_REFS:
            here = self._resolved(waiting.pop(0))
            if isinstance(here, dict):
                yield here
                found += 1
                for word in _BRANCHES:
                    waiting += here[word] if isinstance(here.get(word), list) else ()

    def _resolved(self, schema: Any) -> Any:
        if type(schema) is dict and "$ref" not in schema:
            return schema
        for _ in range(_MOST_REFS):
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)) or "properties" in schema:
                break
            schema = self.refs.get(schema["$ref"])
        return schema


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def value_at(value: Any, where: list[Any]) -> Any:
    """What stands in a place of the arguments, or `MISSING`."""
    for step in where:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
