"""Find the schema of a place in the arguments, and the types that a schema accepts.

    Places(tool.parameters).at(["list", 0, "zip_code"])

A place is the path of keys and indexes that leads to it. References are followed and alternatives searched in order;
what depends on the arguments themselves is None. A format that writes values as bare text does not give their types:
`007` is a string or a number by the schema alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from rightcall.schema.limits import MAX_CHAIN, MAX_EXPANSION
from rightcall.schema.walk import Refs, refs_of
from rightcall.types import Json, Tool

MISSING: Any = object()
_MOST_REFS = 32
_BRANCHES = ("anyOf", "oneOf", "allOf")


class Places:
    """The schemas of places in the arguments of one tool. `root` is its schema of parameters, which must not change."""

    def __init__(self, root: Any) -> None:
        self.refs = refs_of(root)
        self.root = self._resolve(root)

    def at(self, where: list[Any]) -> Any:
        """Return the schema of a place, given as its path of keys and indexes, without references at its top; it may be
        a boolean. None if the schema does not declare the place."""
        schema = self.root
        for step in where:
            schema = self.inner(schema, step)
        return schema

    def inner(self, schema: Any, step: Any) -> Any:
        """Return the schema one step further down, for a key or an index: from the schema itself, or from the first
        of its alternatives that has one. `additionalProperties` and `items` count; the result may be a boolean, and
        is None if there is no schema."""
        return self._resolve(self._declared(schema, step))

    def _declared(self, schema: Any, step: Any) -> Any:
        """Return the schema one step further down, as `inner` does, but as it is declared: a reference is not
        followed."""
        if type(schema) is dict and type(step) is str and type(declared := schema.get("properties")) is dict:
            inner = declared.get(step)
            if type(inner) is dict:  # most are declared directly
                return inner
        inner = None
        for option in self._alternatives(schema):
            if isinstance(step, int):
                items = option.get("prefixItems")
                inner = items[step] if isinstance(items, list) and step < len(items) else option.get("items")
            else:
                inner = _as_dict(option.get("properties")).get(step, option.get("additionalProperties"))
            if isinstance(inner, dict):
                break
        return inner

    def default(self, where: list[Any]) -> Any:
        """Return the declared default of a place, given as its path, which may be None; `MISSING` if it has none. One
        beside a reference counts before that of its target."""
        schema = self._declared(self.at(where[:-1]), where[-1]) if where else self.root
        for _ in range(_MOST_REFS):
            if not isinstance(schema, dict):
                break
            if "default" in schema:
                return schema["default"]
            schema = self.refs.get(schema["$ref"]) if isinstance(schema.get("$ref"), str) else None
        return MISSING

    def properties(self, schema: Any) -> Json:
        """Return the schema of every declared property of an object's schema, by name, those of its references and
        alternatives included; of a name that is declared twice, the first. Do not change the result: it is cached."""
        kept = self.refs.declared.get(id(schema))
        if kept is None:
            found: Json = {}
            for option in self._alternatives(schema):
                found = {**_as_dict(option.get("properties")), **found}
            kept = self.refs.declared[id(schema)] = schema, found
        return kept[1]

    def without_null(self, schema: Any) -> Any:
        """Return the schema with its references resolved and, if it is an `anyOf` or `oneOf` of one schema and null,
        that one schema instead. A schema with `properties`, several alternatives or a list of types is only
        resolved."""
        schema = self._resolve(schema)
        branches = [schema.get(word) for word in ("anyOf", "oneOf")] if isinstance(schema, dict) else []
        for found in branches:
            others = [each for each in found if not _is_null(each)] if isinstance(found, list) else []
            if len(others) == 1 and "properties" not in schema:
                return self._resolve(others[0])
        return schema

    def _alternatives(self, schema: Any) -> Iterator[Json]:
        """Yield a schema and its alternatives in `anyOf`, `oneOf` and `allOf`, at any depth, breadth first and
        resolved; at most 32."""
        waiting, found = [schema], 0
        while waiting and found < _MOST_REFS:
            here = self._resolve(waiting.pop(0))
            if isinstance(here, dict):
                yield here
                found += 1
                for word in _BRANCHES:
                    waiting += here[word] if isinstance(here.get(word), list) else ()

    def _resolve(self, schema: Any) -> Any:
        """Return the schema that a reference leads to, through at most 32 references; None for a missing target. A
        schema without a reference, or with properties of its own, is returned unchanged."""
        if type(schema) is dict and "$ref" not in schema:
            return schema
        for _ in range(_MOST_REFS):
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)) or "properties" in schema:
                break
            schema = self.refs.get(schema["$ref"])
        return schema


def _is_null(schema: Any) -> bool:
    """Return whether a schema declares only the type null."""
    return isinstance(schema, dict) and schema.get("type") == "null"


def value_at_place(value: Any, where: list[Any]) -> Any:
    """Return the value at a place of the arguments, given as its path of keys and indexes; `MISSING` if there is none.
    The value may be None."""
    for step in where:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _as_dict(value: Any) -> Json:
    """Return the value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


# plain     a string without other rules: may be emitted while it arrives
# string    a string with other rules (enum, pattern, ...), or one type of several: kept exactly as written
# nullable  a string, unless the text is exactly null or None
# json      no string allowed: parsed as JSON, else as a Python literal
# any       no type declared: JSON if it is valid JSON, else text
Kind = Literal["plain", "string", "nullable", "json", "any"]

_RESTRICTING = ("enum", "const", "pattern", "format", "anyOf", "oneOf", "allOf", "not", "if", "$ref")
_NUMBERS = frozenset(("number", "integer"))
_NAMES_OF: dict[type, frozenset[str]] = {
    str: frozenset(("string",)),
    bool: frozenset(("boolean",)),
    int: _NUMBERS,
    float: _NUMBERS,
    dict: frozenset(("object",)),
    list: frozenset(("array",)),
    type(None): frozenset(("null",)),
}


def kinds(tool: Tool) -> dict[str, Kind]:
    """Return, by name, how the text of every declared argument is parsed (see `Kind`), in the order of `properties`."""
    refs = refs_of(tool.parameters)
    return {key: kind(schema, refs) for key, schema in properties(tool.parameters, refs).items()}


def properties(parameters: Json, refs: Refs | None = None) -> Json:
    """Return the schema of every declared argument, by name, those that the root takes from a reference or from `allOf`
    included; of a name that is declared twice, the first. `refs` is the resolver of the same document."""
    refs = refs or refs_of(parameters)
    found: Json = {}
    waiting: list[Any] = [parameters]
    for here in waiting:
        if isinstance(here, dict):
            for key, schema in _as_dict(here.get("properties")).items():
                found.setdefault(key, schema)
            waiting += [refs.get(here["$ref"])] if isinstance(here.get("$ref"), str) else []
            waiting += here["allOf"] if isinstance(here.get("allOf"), list) else []
        if len(waiting) > MAX_EXPANSION:
            break
    return found


def kind(schema: Any, root: Any) -> Kind:
    """Return how a text is parsed as a value of this schema (see `Kind`), by its types and keywords alone. `root` is
    the document in which references are resolved, or its `Refs`."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    if types is None:
        return "any"
    if "string" not in types:
        return "json"
    if types == {"string"} and isinstance(schema, dict):
        return "string" if any(word in schema for word in _RESTRICTING) else "plain"
    return "nullable" if "null" in types else "string"


def wants_text(schema: Any, root: Any) -> bool:
    """Return whether a schema accepts strings but neither numbers nor constants of other types; False for a schema
    without types, which accepts both."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is not None and "string" in types and types.isdisjoint(("integer", "number", "other"))


def allows_type_of(schema: Any, value: Any, root: Any) -> bool:
    """Return whether a schema accepts the type of this value; an integer counts as a number, and a schema without types
    accepts all. Nothing else is checked."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or "other" in types or not types.isdisjoint(_NAMES_OF.get(type(value), _NUMBERS))


def allows_fraction(schema: Any, root: Any) -> bool:
    """Return whether a schema accepts numbers with a fraction; True for a schema without types. Only types are
    checked."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or not types.isdisjoint(("number", "other"))


def allows_nesting(schema: Any, root: Any) -> bool:
    """Return whether a schema accepts a list or an object, perhaps among other types; True for a schema without
    types."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or not types.isdisjoint(("array", "object", "other"))


def _types(schema: Any, refs: Refs, depth: int) -> set[str] | None:
    """Return the JSON types that a schema accepts; None if it does not restrict them, or beyond the limit of `depth`.
    "other" stands for the types of constants that are neither text nor null. Do not change the result: it is cached."""
    if not isinstance(schema, dict) or depth > MAX_CHAIN:
        return None
    known = refs.types.get(id(schema))
    if known is None:
        known = refs.types[id(schema)] = schema, _compute_types(schema, refs, depth + 1)
    return known[1]


def _compute_types(schema: Json, refs: Refs, depth: int) -> set[str] | None:
    """Return the JSON types that a schema accepts, from its own keywords, alternatives, `allOf` and reference; None if
    it does not restrict them. This is not cached."""
    found = _declared_types(schema)
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            found = _intersection_of(found, _union_of([_types(s, refs, depth) for s in schema[word]]))
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        found = _intersection_of(found, _types(part, refs, depth))
    if isinstance(schema.get("$ref"), str):
        found = _intersection_of(found, _types(refs.get(schema["$ref"]), refs, depth))
    return found


def _declared_types(schema: dict[str, Any]) -> set[str] | None:
    """Return the types in `type`, or else `const`, or else `enum` of this schema alone, with null if it is `nullable`;
    None if it has none of these."""
    said = schema.get("type")
    if isinstance(said, str | list):
        names = {name for name in ([said] if isinstance(said, str) else said) if isinstance(name, str)}
    elif "const" in schema:
        names = {_name_type(schema["const"])}
    elif isinstance(schema.get("enum"), list):
        names = {_name_type(value) for value in schema["enum"]}
    else:
        return None
    return names | {"null"} if schema.get("nullable") is True else names


def _name_type(value: Any) -> str:
    """Return "string" for a text, "null" for None and "other" for any other value."""
    return "string" if isinstance(value, str) else "null" if value is None else "other"


def _union_of(sets: list[set[str] | None]) -> set[str] | None:
    """Return the union of sets of types; None, which is unrestricted, if one of them is None or there are none."""
    return None if None in sets or not sets else set().union(*(s for s in sets if s is not None))


def _intersection_of(a: set[str] | None, b: set[str] | None) -> set[str] | None:
    """Return the types in both sets, where None is unrestricted. If they have none in common, return the first set, so
    that the result is not empty."""
    return b if a is None else a if b is None else a & b or a


def resolve(ref: str, root: Any) -> Any:
    """Return the target of a local reference (`#/$defs/City`) in the document `root`; None for any other reference,
    which is never fetched, and for a missing target."""
    return refs_of(root).get(ref)
