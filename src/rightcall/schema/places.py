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
    """The schemas of places in the arguments of one tool."""

    def __init__(self, root: Any) -> None:
        self.refs = refs_of(root)
        self.root = self._resolved(root)

    def at(self, where: list[Any]) -> Any:
        """Return the schema of a place, or None."""
        schema = self.root
        for step in where:
            schema = self.inner(schema, step)
        return schema

    def inner(self, schema: Any, step: Any) -> Any:
        """Return the schema one step further down: of a property, or of an item."""
        if type(schema) is dict and type(step) is str and type(declared := schema.get("properties")) is dict:
            inner = declared.get(step)
            if type(inner) is dict:  # most are declared directly
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
        """Return the declared default of a place, or `MISSING`."""
        schema = self.at(where)
        return schema.get("default", MISSING) if isinstance(schema, dict) else MISSING

    def properties(self, schema: Any) -> Json:
        """Return the schema of every declared argument, including those from references and `allOf` at the root."""
        kept = self.refs.declared.get(id(schema))
        if kept is None:
            found: Json = {}
            for option in self._alternatives(schema):
                found = {**_mapping(option.get("properties")), **found}
            kept = self.refs.declared[id(schema)] = schema, found
        return kept[1]

    def only(self, schema: Any) -> Any:
        """Return the schema without the alternative null, if one other alternative remains; else the schema itself."""
        schema = self._resolved(schema)
        branches = [schema.get(word) for word in ("anyOf", "oneOf")] if isinstance(schema, dict) else []
        for found in branches:
            others = [each for each in found if not _is_null(each)] if isinstance(found, list) else []
            if len(others) == 1 and "properties" not in schema:
                return self._resolved(others[0])
        return schema

    def _alternatives(self, schema: Any) -> Iterator[Json]:
        """Yield a schema and its alternatives, breadth first."""
        waiting, found = [schema], 0
        while waiting and found < _MOST_REFS:
            here = self._resolved(waiting.pop(0))
            if isinstance(here, dict):
                yield here
                found += 1
                for word in _BRANCHES:
                    waiting += here[word] if isinstance(here.get(word), list) else ()

    def _resolved(self, schema: Any) -> Any:
        """Return the schema that a reference leads to. A schema with properties of its own is not replaced."""
        if type(schema) is dict and "$ref" not in schema:
            return schema
        for _ in range(_MOST_REFS):
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)) or "properties" in schema:
                break
            schema = self.refs.get(schema["$ref"])
        return schema


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def value_at_place(value: Any, where: list[Any]) -> Any:
    """Return the value at a place of the arguments, or `MISSING`."""
    for step in where:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _mapping(value: Any) -> Json:
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
    """Return the kind of every declared argument."""
    refs = refs_of(tool.parameters)
    return {key: kind(schema, refs) for key, schema in properties(tool.parameters, refs).items()}


def properties(parameters: Json, refs: Refs | None = None) -> Json:
    """The schema of every declared argument, those that the root takes from a reference or from `allOf` included."""
    refs = refs or refs_of(parameters)
    found: Json = {}
    waiting: list[Any] = [parameters]
    for here in waiting:
        if isinstance(here, dict):
            for key, schema in _mapping(here.get("properties")).items():
                found.setdefault(key, schema)
            waiting += [refs.get(here["$ref"])] if isinstance(here.get("$ref"), str) else []
            waiting += here["allOf"] if isinstance(here.get("allOf"), list) else []
        if len(waiting) > MAX_EXPANSION:
            break
    return found


def kind(schema: Any, root: Any) -> Kind:
    """Return the kind of a schema. `root` is the document in which references are resolved, or its `Refs`."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    if types is None:
        return "any"
    if "string" not in types:
        return "json"
    if types == {"string"} and isinstance(schema, dict):
        return "string" if any(word in schema for word in _RESTRICTING) else "plain"
    return "nullable" if "null" in types else "string"


def wants_text(schema: Any, root: Any) -> bool:
    """Return whether a schema accepts strings and no numbers."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is not None and "string" in types and types.isdisjoint(("integer", "number", "other"))


def allows_type_of(schema: Any, value: Any, root: Any) -> bool:
    """Return whether the type of this value is accepted. Nothing else is checked."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or "other" in types or not types.isdisjoint(_NAMES_OF.get(type(value), _NUMBERS))


def allows_fraction(schema: Any, root: Any) -> bool:
    """Return whether a number with a fraction is accepted. Only types are checked."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or not types.isdisjoint(("number", "other"))


def allows_nesting(schema: Any, root: Any) -> bool:
    """Return whether a list or an object is accepted, among other types."""
    types = _types(schema, root if isinstance(root, Refs) else refs_of(root), 0)
    return types is None or not types.isdisjoint(("array", "object", "other"))


def _types(schema: Any, refs: Refs, depth: int) -> set[str] | None:
    """Return the JSON types that a schema accepts, None if it does not restrict them. The result is cached by
    schema."""
    if not isinstance(schema, dict) or depth > MAX_CHAIN:
        return None
    known = refs.types.get(id(schema))
    if known is None:
        known = refs.types[id(schema)] = schema, _types_of(schema, refs, depth + 1)
    return known[1]


def _types_of(schema: Json, refs: Refs, depth: int) -> set[str] | None:
    """Return the JSON types that a schema accepts, None if it does not restrict them."""
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
    """Return the types in `type`, `const` or `enum` of this schema alone, or None."""
    said = schema.get("type")
    if isinstance(said, str | list):
        names = {name for name in ([said] if isinstance(said, str) else said) if isinstance(name, str)}
    elif "const" in schema:
        names = {_type_of(schema["const"])}
    elif isinstance(schema.get("enum"), list):
        names = {_type_of(value) for value in schema["enum"]}
    else:
        return None
    return names | {"null"} if schema.get("nullable") is True else names


def _type_of(value: Any) -> str:
    """Return "string", "null" or "other" for a value."""
    return "string" if isinstance(value, str) else "null" if value is None else "other"


def _union_of(sets: list[set[str] | None]) -> set[str] | None:
    """Return the union of sets of types; None if one of them is unrestricted."""
    return None if None in sets or not sets else set().union(*(s for s in sets if s is not None))


def _intersection_of(a: set[str] | None, b: set[str] | None) -> set[str] | None:
    """Return the types in both sets; None is unrestricted. Disjoint sets give the first one."""
    return b if a is None else a if b is None else a & b or a


def resolve(ref: str, root: Any) -> Any:
    """Return the target of a local reference (`#/$defs/City`); None for any other reference, which is never fetched."""
    return refs_of(root).get(ref)
