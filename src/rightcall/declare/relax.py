"""The copy of a schema that is compiled to check calls: plain 2020-12, and nothing that a linear engine cannot run.

    {"pattern": "^(?!x)"}  ->  {}     and a `Relaxation` that says so

A relaxed schema lets through whatever the original does: where leaving out a pattern would forbid something, as under
`not`, the keyword around it is left out as well. `Tool.parameters` keeps what was declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.declare.faults import step
from rightcall.declare.schema import LISTS, MAPS, ONE, REFS, all_schemas, subschemas
from rightcall.types import Json


class Relaxation(msgspec.Struct, frozen=True):
    """A keyword that is not checked, and why. `path` is a JSON Pointer into the tool's parameters."""

    tool: str
    path: str
    keyword: str
    reason: str


def relaxed(tool: str, parameters: Json) -> tuple[Json, tuple[Relaxation, ...]]:
    """The copy to compile, and what was left out of it."""
    relaxer = _Relaxer(tool, {pattern for pattern in _patterns(parameters) if not runs_in_linear_time(pattern)})
    copy = relaxer.schema(parameters, "")
    return copy if isinstance(copy, dict) else {}, tuple(relaxer.made)


def _patterns(root: Json) -> Iterator[str]:
    for schema in all_schemas(root):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]


@lru_cache(4096)
def runs_in_linear_time(pattern: str) -> bool:
    """Does the regex engine that never backtracks take this pattern? Look-around and back-references it does not."""
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True


class _Relaxer:
    def __init__(self, tool: str, refused: set[str]) -> None:
        self.tool = tool
        self.refused = refused
        self.made: list[Relaxation] = []

    def schema(self, schema: Any, path: str) -> Any:
        if not isinstance(schema, dict):
            return schema
        copy = {word: self.keyword(word, value, f"{path}{step(word)}") for word, value in schema.items()}
        for word in ("$schema", "$id"):
            copy.pop(word, None)
        _modernise(copy)
        if self.refused:
            self.relax(copy, schema, path)
        return _with_null(copy) if copy.pop("nullable", None) is True else copy

    def keyword(self, word: str, value: Any, path: str) -> Any:
        if word in LISTS or (word == "items" and isinstance(value, list)):
            return [self.schema(item, f"{path}/{at}") for at, item in enumerate(value)]
        if word in MAPS:
            return {key: self.schema(item, path + step(key)) for key, item in value.items()}
        return self.schema(value, path) if word in ONE else value

    def relax(self, copy: Json, schema: Json, path: str) -> None:
        if copy.get("pattern") in self.refused:
            self.drop(copy, "pattern", path, "the pattern needs a regex engine that may take for ever")
        named = [key for key in copy.get("patternProperties", ()) if key in self.refused]
        for key in named:
            del copy["patternProperties"][key]
            self.note(
                f"{path}/patternProperties{step(key)}", "patternProperties", "its pattern cannot run in linear time"
            )
        for word in ("additionalProperties", "unevaluatedProperties") if named else ():
            self.drop(copy, word, path, "a pattern beside it that says which names are allowed was left out")
        self.relax_around(copy, schema, path)

    def relax_around(self, copy: Json, schema: Json, path: str) -> None:
        """Keywords that forbid more when a schema inside them lets more through."""
        inside = {sub.keyword for sub in subschemas(schema) if self.may_change(sub.schema)}
        why = "a pattern inside it was left out"
        if "not" in inside:
            self.drop(copy, "not", path, why)
        if "if" in inside:
            for word in ("then", "else", "if"):
                self.drop(copy, word, path, why)
        if "contains" in inside:
            self.drop(copy, "maxContains", path, why)
        if "oneOf" in inside:
            self.note(f"{path}/oneOf", "oneOf", f"{why}; it is checked as anyOf")
            copy.setdefault("allOf", []).append({"anyOf": copy.pop("oneOf")})

    def may_change(self, schema: Any) -> bool:
        """Was something left out in there, or, which nobody needs to know exactly, behind a reference from there?"""
        return any(
            any(word in inner for word in REFS)
            or inner.get("pattern") in self.refused
            or not self.refused.isdisjoint(inner.get("patternProperties", ()))
            for inner in all_schemas(schema)
        )

    def drop(self, copy: Json, word: str, path: str, reason: str) -> None:
        if word in copy:
            del copy[word]
            self.note(f"{path}{step(word)}", word, reason)

    def note(self, path: str, word: str, reason: str) -> None:
        self.made.append(Relaxation(self.tool, path, word, reason))


def _modernise(schema: Json) -> None:
    """Older drafts' spellings, as 2020-12 writes them."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
        if not schema["prefixItems"]:
            del schema["prefixItems"]
    for limit, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(word), bool) and schema.pop(word) and limit in schema:
            schema[word] = schema.pop(limit)
    for key, needs in schema.pop("dependencies", {}).items():
        schema.setdefault("dependentRequired" if isinstance(needs, list) else "dependentSchemas", {})[key] = needs


def _with_null(schema: Json) -> Json:
    """`nullable: true`, which only OpenAPI knows, said in JSON Schema."""
    kept = {word: schema.pop(word) for word in ("$defs", "definitions") if word in schema}
    return {**kept, "anyOf": [schema, {"type": "null"}]}
