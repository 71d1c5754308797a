"""Hypothesis strategies of schemas with every keyword that a grammar can express, each with a fitting value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from rightcall import Call, Tool
from rightcall.types import Json
from support.generated import KEYS, NAMES

Pair = tuple[Json, Any]

PATTERNS = [
    (r"^[A-Z]{3}$", st.text("ABCXYZ", min_size=3, max_size=3)),
    (r"^(red|green)-[0-9]+$", st.sampled_from(["red-1", "green-2024"])),
    (r"^\d{4}-\d\d$", st.sampled_from(["2024-01", "0000-99"])),
    (r"^[a-z_][a-z0-9_]*$", st.sampled_from(["a", "_x9", "snake_case"])),
    (r"^(?:[a-f]{2}:){2}[a-f]{2}$", st.just("ab:cd:ef")),
    (r"^x?y+z*$", st.sampled_from(["y", "xyyzz"])),
]
WORDS = ["celsius", "c", 'a "b"', "é 日本", "two words", "null!", "x\ny", "<b>", "\\"]


def _whole(draw: st.DrawFn) -> Pair:
    value = draw(st.integers(-2000, 2000))
    schema: Json = {"type": "integer"}
    if draw(st.booleans()):
        schema["minimum"] = value - draw(st.integers(0, 150))
    if draw(st.booleans()):
        schema["exclusiveMaximum"] = value + draw(st.integers(1, 150))
    return schema, value


def _decimal(draw: st.DrawFn) -> Pair:
    value = draw(st.floats(-1000, 1000).map(lambda x: round(x, 3)))
    schema: Json = {"type": "number"}
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = round(value - draw(st.floats(0.01, 20)), 2)
    if draw(st.booleans()):
        schema["maximum"] = round(value + draw(st.floats(0.01, 20)), 2)
    return schema, value


def _text(draw: st.DrawFn, text: st.SearchStrategy[str]) -> Pair:
    kind = draw(st.sampled_from(["plain", "plain", "sized", "pattern"]))
    if kind == "pattern":
        pattern, values = draw(st.sampled_from(PATTERNS))
        return {"type": "string", "pattern": pattern}, draw(values)
    value = draw(text)
    if kind == "plain":
        return {"type": "string"}, value
    return {
        "type": "string",
        "minLength": max(len(value) - 2, 0),
        "maxLength": len(value) + draw(st.integers(0, 3)),
    }, value


def _constant(draw: st.DrawFn) -> Pair:
    options: list[Any] = draw(
        st.lists(st.sampled_from([*WORDS, 1, 2.5, True, None]), min_size=1, max_size=4, unique_by=repr)
    )
    value = draw(st.sampled_from(options))
    return ({"const": value}, value) if len(options) == 1 else ({"enum": options}, value)


def _array(draw: st.DrawFn, text: st.SearchStrategy[str], depth: int) -> Pair:
    schema, value = draw(pairs(text, depth - 1))
    count = draw(st.integers(0, 3))
    found: Json = {"type": "array", "items": schema}
    if draw(st.booleans()):
        found |= {"minItems": max(count - 1, 0), "maxItems": count + 1}
    return found, [value] * count


def _object(draw: st.DrawFn, text: st.SearchStrategy[str], depth: int, names: st.SearchStrategy[str] = KEYS) -> Pair:
    fields = draw(st.dictionaries(names, pairs(text, depth - 1), max_size=4))
    required = [key for key in fields if draw(st.booleans())]
    present = [key for key in draw(st.permutations(list(fields))) if key in required or draw(st.booleans())]
    schema: Json = {"type": "object", "properties": {key: one for key, (one, _) in fields.items()}}
    if required:
        schema["required"] = required
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    if draw(st.integers(0, 2)) == 0:
        schema |= draw(st.sampled_from([{"minProperties": len(present)}, {"maxProperties": len(present)}]))
    return schema, {key: fields[key][1] for key in present}


def _either(draw: st.DrawFn, text: st.SearchStrategy[str], depth: int) -> Pair:
    one, value = draw(pairs(text, depth - 1))
    other, _ = draw(pairs(text, depth - 1))
    return {"anyOf": draw(st.permutations([one, other]))}, value


@st.composite
def pairs(draw: st.DrawFn, text: st.SearchStrategy[str], depth: int = 2) -> Pair:
    """Draw a schema and a fitting value."""
    kinds = ["whole", "decimal", "text", "text", "boolean", "null", "nullable", "constant"]
    kind = draw(st.sampled_from([*kinds, *(["array", "object", "either"] if depth > 0 else [])]))
    if kind in ("boolean", "null"):
        return {"type": kind}, draw(st.booleans()) if kind == "boolean" else None
    if kind == "nullable":
        return {"type": ["string", "null"]}, draw(st.one_of(st.none(), text))
    if kind in ("array", "object", "either"):
        return {"array": _array, "object": _object, "either": _either}[kind](draw, text, depth)
    if kind == "text":
        return _text(draw, text)
    return {"whole": _whole, "decimal": _decimal, "constant": _constant}[kind](draw)


@st.composite
def tools_and_calls(draw: st.DrawFn, text: st.SearchStrategy[str]) -> tuple[list[Tool], list[Call]]:
    """Draw one to three tools, and a call of each."""
    tools, calls = [], []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        schema, value = _object(draw, text, 2)
        tools.append(Tool(name=name, parameters=schema))
        style: Json = draw(st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}]))
        calls.append(Call(name, value, json.dumps(value, **style)))
    return tools, calls
