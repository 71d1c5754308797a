"""Schemas that are wrong in a way that has one meaning: they get that meaning, and a note says so.

    {"properties": {"n": {"type": "float", "required": true}}}
    -> {"properties": {"n": {"type": "number"}}, "required": ["n"]}

Who runs a gateway cannot mend other people's tools, and one such word must not take a tool away, let alone all of them.
What has no one meaning is left as it is, and `check_schema` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.json_pointer import step
from rightcall.schema.type_names import TYPES, either, meant, word
from rightcall.schema.walk import LISTS, MAPS, ONE, subschemas
from rightcall.types import Json

_COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split()
_NUMBERS = (*_COUNTS, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


_NUMERIC = frozenset(_NUMBERS)


class Mended(msgspec.Struct, frozen=True):
    """A word of a schema that was taken for what it means. `path` is a JSON Pointer into what was passed."""

    tool: str
    path: str
    before: str
    after: str


Note = tuple[str, str, str]  # path, before, after


def mend(schema: Json) -> list[Note]:
    """Mends a schema, which must be a copy made by `plain`, in place; what was done, in order."""
    notes: list[Note] = []
    waiting: list[tuple[str, Json]] = [("", schema)]
    while waiting:
        path, here = waiting.pop()
        for rule in _RULES:
            rule(here, path, notes)
        waiting += [(path + sub.path, sub.schema) for sub in subschemas(here) if isinstance(sub.schema, dict)][::-1]
    return notes


def text_schema(text: str) -> Json:
    """A parameter of which only a text is known: a string, unless the text is the name of a type."""
    return {"type": word(text.strip()) or "string", "description": text}


def _nothing_said(schema: Json, path: str, notes: list[Note]) -> None:
    """`"items": null`, as serialisers write what was not given."""
    if None not in schema.values():
        return
    for key in [key for key, value in schema.items() if value is None and _is_keyword(key)]:
        del schema[key]
        notes.append((path + step(key), "null", "nothing said"))


def _is_keyword(key: str) -> bool:
    known = key in ONE or key in LISTS or key in MAPS or key in _NUMBERS
    return known or key in ("type", "required", "enum", "description", "title", "format", "pattern", "nullable")


def _type(schema: Json, path: str, notes: list[Note]) -> None:
    said = schema.get("type")
    found = _type_meant(said, "enum" in schema) if "type" in schema else None
    if found is None:
        return
    schema.update({key: value for key, value in found.items() if key == "type" or key not in schema})
    if "type" not in found:
        del schema["type"]
    notes.append((f"{path}/type", repr(said)[:60], repr(schema["type"]) if "type" in schema else "any type"))


def _different(names: list[Any]) -> bool:
    return len({str(name) for name in names}) == len(names)


def _type_meant(said: Any, has_enum: bool) -> Json | None:
    """The schema that a type stands for; None where it is right, or stands for nothing certain."""
    names = said if isinstance(said, list) else [said]
    if not names or (all(name in TYPES for name in names) and _different(names)):
        return None
    if said == "enum" and has_enum:
        return meant(said) or {}
    return either([meant(name) for name in names]) if isinstance(said, list) else meant(said)


def _required(schema: Json, path: str, notes: list[Note]) -> None:
    """A property that says itself that it is required, one name without its list, a name twice."""
    said, inner = schema.get("required"), schema.get("properties")
    declared = inner if isinstance(inner, dict) else {}
    flagged = _flagged(declared, path, notes)
    listed: Any = said if isinstance(said, list) else [said] if isinstance(said, str) else []
    if isinstance(said, bool) or (isinstance(said, str) and said in declared):
        notes.append((f"{path}/required", repr(said)[:60], repr(listed)[:60] if listed else "nothing said"))
    elif said is not None and not isinstance(said, list):
        return
    names = _each_once([*listed, *(key for key in flagged if key not in listed)])
    if len(_each_once(listed)) < len(listed):
        notes.append((f"{path}/required", repr(said)[:60], repr(names)[:60]))
    if names or isinstance(said, list):
        schema["required"] = names
    else:
        schema.pop("required", None)


def _each_once(names: list[Any]) -> list[Any]:
    """What holds something else than names stays as it is."""
    return list(dict.fromkeys(names)) if all(isinstance(name, str) for name in names) else names


def _flagged(properties: Json, path: str, notes: list[Note]) -> list[str]:
    found: list[str] = []
    for key, item in properties.items():
        if isinstance(item, dict) and isinstance(item.get("required"), bool):
            where = f"{path}/properties{step(key)}/required"
            needed = item.pop("required")
            notes.append((where, str(needed), f"{key!r:.60} is {'' if needed else 'not '}required"))
            found += [key] if needed else []
    return found


def _texts(schema: Json, path: str, notes: list[Note]) -> None:
    """A property that is nothing but a text: its type if that is one, else its description."""
    inner = schema.get("properties")
    if isinstance(inner, dict):
        for key, item in inner.items():
            if isinstance(item, str):
                inner[key] = text_schema(item)
                notes.append(
                    (f"{path}/properties{step(key)}", repr(item)[:60], f"{inner[key]['type']}, described by it")
                )


def _numbers(schema: Json, path: str, notes: list[Note]) -> None:
    for key in () if _NUMERIC.isdisjoint(schema) else _NUMBERS:
        said = schema.get(key)
        if isinstance(said, str) and (number := _number(said)) is not None:
            schema[key] = number
            notes.append((f"{path}/{key}", repr(said)[:60], repr(number)))


def _number(text: str) -> int | float | None:
    digits = text.strip().removeprefix("-")
    if not digits.isascii() or len(digits) > 15:
        return None
    if digits.isdigit():
        return int(text)
    whole, dot, rest = digits.partition(".")
    return float(text) if dot and whole.isdigit() and rest.isdigit() else None


_RULES: tuple[Callable[[Json, str, list[Note]], None], ...] = (_nothing_said, _texts, _required, _type, _numbers)
