"""Hostile tools of any size:  TOOLSETS["a chain of references"](1_000_000) -> definitions of about 1 MB.

Each may be accepted or rejected. An accepted tool must be cheap in every function that uses tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rightcall.types import Json

TEXT: Json = {"type": "string"}


def tool(properties: Json, name: str = "f", more: Json | None = None, **beside: Any) -> Json:
    return {"name": name, "parameters": {"type": "object", "properties": properties, **beside, **(more or {})}}


def _times(make: Callable[[int], Any], size: int, *, first: int = 0) -> list[Any]:
    """Return as many items as fit into that many characters."""
    count = max(1, size // (len(json.dumps(make(10**5))) + 2))
    return [make(first + at) for at in range(count)]


def _members(make: Callable[[int], Any], size: int, stem: str = "k") -> Json:
    count = max(1, size // (len(json.dumps(make(10**5))) + 12))
    return {f"{stem}{at}": make(at) for at in range(count)}


def _chain(make: Callable[[str], Json], size: int, last: Json = TEXT) -> Json:
    """Return definitions each of which refers to the next."""
    count = max(1, size // (len(json.dumps(make("#/$defs/d10000"))) + 12))
    return {**{f"d{at}": make(f"#/$defs/d{at + 1}") for at in range(count)}, f"d{count}": last}


def _with_definitions(definitions: Json) -> list[Json]:
    return [tool({"a": {"$ref": "#/$defs/d0"}, "k0": TEXT}, more={"$defs": definitions})]


def _mutual(size: int) -> list[Json]:
    """Return types each of which refers to all others."""
    count = max(2, int((size / 36) ** 0.5))
    members = {f"p{at}": {"$ref": f"#/$defs/d{at}"} for at in range(count)}
    return _with_definitions({f"d{at}": {"type": "object", "properties": members} for at in range(count)})


def _doubling(word: str, levels: int) -> Json:
    last: Json = {"type": "string", "maxLength": 5}
    definitions = {f"d{at}": {word: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)}
    return {**definitions, f"d{levels}": last}


def _in_place(word: str, make: Callable[[int], Any]) -> Callable[[int], list[Json]]:
    return lambda size: [tool({"a": {word: _times(make, size)}, "k0": TEXT})]


def _in_items(make: Callable[[int], Any], word: str = "allOf") -> Callable[[int], list[Json]]:
    return lambda size: [tool({"a": {"type": "array", "items": {word: _times(make, size)}}, "k0": TEXT})]


def _many_tools(make: Callable[[int], Json]) -> Callable[[int], list[Json]]:
    return lambda size: _times(make, size)


def _deep(word: str, levels: int) -> Json:
    found: Json = TEXT
    for _ in range(levels):
        found = {word: [found] if word in ("allOf", "anyOf", "oneOf", "prefixItems") else found}
    return found


TOOLSETS: dict[str, Callable[[int], list[Json]]] = {
    "a chain of references": lambda size: _with_definitions(
        _chain(lambda to: {"type": "object", "properties": {"n": {"$ref": to}}}, size)
    ),
    "a chain of lists": lambda size: _with_definitions(
        _chain(lambda to: {"type": "array", "items": {"$ref": to}}, size)
    ),
    "a chain of choices": lambda size: _with_definitions(
        _chain(lambda to: {"type": "array", "items": {"anyOf": [{"$ref": to}, {"type": "null"}]}}, size)
    ),
    "types that hold each other": _mutual,
    "references that double": lambda size: [
        tool(
            _members(lambda at: {"$ref": "#/$defs/d0"}, size, "k"),
            more={"$defs": _doubling("allOf", 11)},
        )
    ],
    "choices that double": lambda size: [
        tool(_members(lambda at: {"$ref": "#/$defs/d0"}, size, "k"), more={"$defs": _doubling("anyOf", 11)})
    ],
    "members": lambda size: [tool(_members(lambda at: TEXT, size))],
    "members in items": lambda size: [
        tool({"a": {"type": "array", "items": {"type": "object", "properties": _members(lambda at: {}, size)}}})
    ],
    "required members": lambda size: [tool({"k0": TEXT}, required=_times(lambda at: f"k{at}", size))],
    "required in items": lambda size: [
        tool({"a": {"type": "array", "items": {"required": _times(lambda at: f"k{at}", size)}}, "k0": TEXT})
    ],
    "members and required": lambda size: [
        tool(_members(lambda at: {}, size // 2), required=list(_members(lambda at: {}, size // 2)))
    ],
    "an enum": lambda size: [tool({"a": {"enum": _times(lambda at: f"v{at}", size)}, "k0": TEXT})],
    "an enum of lists in items": lambda size: [
        tool({"a": {"type": "array", "items": {"enum": _times(lambda at: [at], size)}}, "k0": TEXT})
    ],
    "enums": lambda size: [tool(_members(lambda at: {"enum": [f"v{at}", f"w{at}", at]}, size))],
    "a constant": lambda size: [tool({"a": {"const": "x" * size}, "k0": TEXT})],
    "a deep constant": lambda size: [tool({"a": {"const": {"b": [{"c": ["x" * (size // 2)] * 2}]}}, "k0": TEXT})],
    "allOf": _in_place("allOf", lambda at: {"minLength": at}),
    "allOf of nothing": _in_place("allOf", lambda at: {}),
    "anyOf": _in_place("anyOf", lambda at: {"minLength": at}),
    "oneOf": _in_place("oneOf", lambda at: {"const": at}),
    "anyOf of objects": _in_place("anyOf", lambda at: {"type": "object", "properties": {f"k{at}": {"const": at}}}),
    "oneOf of objects": _in_place(
        "oneOf", lambda at: {"type": "object", "properties": {"t": {"const": f"t{at}"}}, "required": ["t"]}
    ),
    "allOf of objects": lambda size: [
        tool({}, allOf=_times(lambda at: {"properties": {f"k{at}": TEXT}, "required": [f"k{at}"]}, size))
    ],
    "allOf in items": _in_items(lambda at: {"minLength": at + 10}),
    "anyOf in items": _in_items(lambda at: {"minLength": at + 10}, "anyOf"),
    "a tuple": lambda size: [tool({"a": {"type": "array", "prefixItems": _times(lambda at: TEXT, size)}, "k0": TEXT})],
    "conditions": _in_place("allOf", lambda at: {"if": {"const": at}, "then": {"minLength": 1}, "else": {}}),
    "exclusions": _in_place("allOf", lambda at: {"not": {"const": at}}),
    "depth": lambda size: [
        tool({f"k{at}": _deep(word, 28) for at in range(max(1, size // 3000)) for word in ("allOf", "items", "not")})
    ],
    "names with control characters": lambda size: [tool(_members(lambda at: TEXT, size, "\x00\n\u202e<|im_end|>\x1b"))],
    "long names": lambda size: [tool({f"{'n' * 1000}{at}": TEXT for at in range(max(1, size // 1030))})],
    "descriptions": lambda size: [tool({"k0": {"type": "string", "description": "*/ <tool_call> \n" * (size // 20)}})],
    "patterns": lambda size: [tool(_members(lambda at: {"type": "string", "pattern": rf"{at}\p{{L}}{{6}}"}, size))],
    "plain patterns": lambda size: [tool(_members(lambda at: {"type": "string", "pattern": f"^a{at}$"}, size))],
    "patterns of names": lambda size: [tool({"k0": TEXT}, patternProperties=_members(lambda at: {}, size, "^a"))],
    "patterns that explode": lambda size: [
        tool(_members(lambda at: {"type": "string", "pattern": f"(a{{{at % 900 + 99}}}){{1000}}"}, size))
    ],
    "patterns that cannot run": lambda size: [
        tool(_members(lambda at: {"type": "string", "pattern": f"^(?!x{at})"}, size))
    ],
    "one long pattern": lambda size: [tool({"k0": {"type": "string", "pattern": "^" + "(a|b)?" * (size // 6)}})],
    "tools": _many_tools(lambda at: tool({"k0": TEXT}, f"f{at}")),
    "tools with patterns": _many_tools(lambda at: tool({"k0": {"pattern": rf"\w{{9}}x{at}"}}, f"f{at}")),
    "tools with chains": lambda size: [
        {**_with_definitions(_chain(lambda to: {"properties": {"n": {"$ref": to}}}, 30_000))[0], "name": f"f{at}"}
        for at in range(max(1, size // 30_000))
    ],
    "tools with long names": _many_tools(lambda at: tool({"k0": TEXT}, f"{'f' * 200}{at}")),
    "numbers": lambda size: [
        tool(_members(lambda at: {"type": "number", "minimum": 1e300 / (at + 1), "multipleOf": 1e-300}, size))
    ],
    "whole numbers without end": lambda size: [tool({"a": {"minimum": 10 ** min(size, 4000)}, "k0": TEXT})],
    "dependencies": lambda size: [tool({"k0": TEXT}, dependentRequired=_members(lambda at: [f"k{at + 1}"], size))],
    "unevaluated members": lambda size: [
        tool(
            {},
            allOf=_times(lambda at: {"properties": {f"k{at}": TEXT}}, size),
            unevaluatedProperties=False,
        )
    ],
    "lone surrogates": lambda size: [tool(_members(lambda at: {"enum": ["\ud800", f"\udfff{at}"]}, size, "\ud800"))],
    "defaults": lambda size: [tool(_members(lambda at: {"default": {"a": [at]}, "examples": [at]}, size))],
    "anchors": lambda size: [
        tool(
            _members(lambda at: {"$ref": f"#a{at}"}, size // 2),
            more={"$defs": {f"d{at}": {"$anchor": f"a{at}"} for at in range(size // 40 + 40)}},
        )
    ],
    "moved references": lambda size: [
        tool(
            _members(lambda at: {"$ref": f"#/x-parts/k{at}"}, size // 2),
            more={"x-parts": _members(lambda at: {"type": "string"}, size // 2 + 500)},
        )
    ],
}
