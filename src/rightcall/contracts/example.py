"""Arguments that a tool could be called with, made from its schema, to show what a call looks like."""

from __future__ import annotations

from typing import Any

from rightcall.schema.places import properties
from rightcall.schema.walk import Refs, refs_of
from rightcall.tools.checks import fits
from rightcall.types import Json, Tool

_DEEPEST = 6
_MOST = 400  # characters of JSON: an example that is longer shows less
_TEXTS = {
    "date": "2025-01-31",
    "time": "12:30:00Z",
    "date-time": "2025-01-31T12:30:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "hostname": "example.org",
}


def example_arguments(tool: Tool) -> Json | None:
    """Arguments that pass `check`: the required ones, or the first where none is. None if they are not found."""
    refs = refs_of(tool.parameters)
    declared = properties(tool.parameters, refs)
    required = [key for key in tool.parameters.get("required", ()) if key in declared]
    for keys in (required or list(declared)[:1], required, list(declared)):
        if len(keys) > _MOST:
            continue
        maker = _Maker(refs)
        made = {key: maker.value(declared[key], key, 0) for key in keys}
        if len(repr(made)) <= _MOST and fits(tool, made):
            return made
    return None


class _Maker:
    def __init__(self, refs: Refs) -> None:
        self.refs = refs
        self.left = _MOST  # values: with more of them the example is too long in any case

    def value(self, schema: Any, key: str, depth: int) -> Any:
        self.left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left < 0:
            return key
        if stated := _first_of(schema, ("examples", "enum")):
            return stated[0]
        for word in ("const", "example", "default"):
            if schema.get(word) is not None:
                return schema[word]
        if isinstance(schema.get("$ref"), str):
            return self.value(self.refs.get(schema["$ref"]), key, depth + 1)
        if parts := _first_of(schema, ("anyOf", "oneOf", "allOf")):
            return self.value(parts[0], key, depth + 1)
        return self.typed(schema, key, depth)

    def typed(self, schema: Json, key: str, depth: int) -> Any:
        said = schema.get("type")
        name = said[0] if isinstance(said, list) and said else said
        if name == "string" or name is None:
            return _text(schema, key)
        if name in ("integer", "number"):
            return _number(schema)
        if name == "array":
            return [self.value(schema.get("items", {}), key, depth + 1)] * (int(min(schema.get("minItems", 1), 5)) or 1)
        if name == "object":
            return self.members(schema, depth)
        return True if name == "boolean" else None

    def members(self, schema: Json, depth: int) -> Json:
        declared = schema.get("properties") or {}
        wanted = (schema.get("required") or list(declared)[:1])[:_MOST]
        return {name: self.value(declared.get(name), name, depth + 1) for name in wanted}


def _first_of(schema: Json, words: tuple[str, ...]) -> list[Any]:
    """The first of these keywords that holds a list with something in it."""
    lists = [schema[word] for word in words if isinstance(schema.get(word), list)]
    return next(filter(None, lists), [])


def _text(schema: Json, key: str) -> str:
    text = _TEXTS.get(str(schema.get("format")), key)
    longest, shortest = schema.get("maxLength", len(text)), min(schema.get("minLength", 0), 100)
    return text[: int(longest)].ljust(int(shortest), "x")  # a length may be 2.0


def _number(schema: Json) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    if isinstance(low, (int, float)) and not isinstance(low, bool):
        return low + 1 if "exclusiveMinimum" in schema else low
    high = schema.get("maximum", 1)
    return schema.get("multipleOf", min(1, high))
