"""Values that fit a schema: one to begin with, and others that could be mistaken for a given one.

    plausible({"type": "integer", "minimum": 3}, {})       ->   3
    others("SKU-DOCK-1", {"type": "string"}, words)        ->   "SKU-DOCK-2", ...

They are guesses; whoever uses one asks `check` whether it fits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rightcall.types import Json

_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\w[\w'-]*+")
_DEPTH = 4
_SAMPLES = {
    "date": "2026-03-14",
    "time": "10:30:00Z",
    "date-time": "2026-03-14T10:30:00Z",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "3f2b8c1e-5a74-4d0b-9a61-7c2d9e8f1a05",
    "ipv4": "192.0.2.1",
}


def plausible(schema: Json, hints: Json, words: Sequence[str] = (), depth: int = 0) -> Any:
    """A value that this schema likely takes; `hints` are values by the names of arguments."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    kind = schema.get("type")
    kind = next((each for each in kind if each != "null"), "null") if isinstance(kind, list) and kind else kind
    if kind == "object" and depth < _DEPTH:
        return arguments_of(schema, hints, words, depth + 1)
    if kind == "array":
        inner = schema.get("items")
        few = schema.get("minItems", 0)
        return [plausible(inner if isinstance(inner, dict) else {}, {}, words, depth + 1)] * min(few, 8)
    return _scalar(kind, schema, words)


def _scalar(kind: Any, schema: Json, words: Sequence[str]) -> Any:
    if kind in ("integer", "number"):
        return _lowest(schema)
    if kind in ("boolean", "null"):
        return True if kind == "boolean" else None
    word = _SAMPLES.get(str(schema.get("format"))) or next((each for each in words if len(each) > 3), "main")
    return word.ljust(min(schema.get("minLength", 0), 1_000), "x")[: schema.get("maxLength", 1_000)]


def _lowest(schema: Json) -> Any:
    """1, or the nearest number that the bounds allow."""
    above = schema.get("exclusiveMinimum")
    low = schema.get("minimum", above + 1 if isinstance(above, int | float) else 1)
    return low if "minimum" in schema or above is not None else min(1, schema.get("maximum", 1))


def arguments_of(schema: Json, hints: Json, words: Sequence[str], depth: int = 0) -> Json:
    """What an object must have, and of the rest what the hints have."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    names = dict.fromkeys([*wanted, *(name for name in known if name in hints)])
    inner = {name: known.get(name) for name in names}
    return {
        name: hints[name] if name in hints else plausible(each if isinstance(each, dict) else {}, {}, words, depth)
        for name, each in inner.items()
    }


# -- mistaken for another ----------------------------------------------------------------------------------------------


def others(value: Any, schema: Json, words: Sequence[str], dice: random.Random) -> Iterator[Any]:
    """Other values, the likeliest mistakes first."""
    if isinstance(schema.get("enum"), list):
        yield from dice.sample(schema["enum"], len(schema["enum"]))
        return
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 10, value - 1)
    elif isinstance(value, str):
        yield from _texts(value, words, dice)
    elif isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[0]]
    elif isinstance(value, dict):
        inner = schema.get("properties")
        for name in dice.sample(sorted(value), len(value)):
            known = inner.get(name) if isinstance(inner, dict) else None
            for other in others(value[name], known if isinstance(known, dict) else {}, words, dice):
                yield {**value, name: other}


def _texts(value: str, words: Sequence[str], dice: random.Random) -> Iterator[str]:
    digits = list(_DIGIT.finditer(value))
    if digits:
        at = digits[-1].start()
        for other in dice.sample("123456789", 9):
            yield value[:at] + other + value[at + 1 :]
    parts = value.split()
    if len(parts) > 2:
        gone = dice.randrange(len(parts))
        yield " ".join(parts[:gone] + parts[gone + 1 :])
    yield from (word for word in dice.sample(words, len(words)) if len(word) > 3 and word.lower() not in value.lower())
    yield value + "-2"


def words_of(text: str) -> list[str]:
    """The words of a request, each once, in their order; a bounded number."""
    return list(dict.fromkeys(_WORD.findall(text[:4_000])))[:200]
