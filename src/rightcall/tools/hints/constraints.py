"""Bounds in `Annotated`: `Annotated[int, Meta(ge=1)]`, with `msgspec.Meta` or what the package annotated_types has.

The schema says them, so that the model knows and every call is checked; a pattern is checked by the schema only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.tools.hints.meaning import Meaning, Unsayable, invalid
from rightcall.types import Json

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_WORDS: dict[str, dict[str, str]] = {"integer": _NUMBERS, "number": _NUMBERS, **_LENGTHS}
_ALL = (*_NUMBERS, "min_length", "max_length", "pattern")

_HOLDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("at least {}", operator.ge),
    "gt": ("more than {}", operator.gt),
    "le": ("at most {}", operator.le),
    "lt": ("less than {}", operator.lt),
    "multiple_of": ("a multiple of {}", lambda value, limit: value % limit == 0),
    "min_length": ("at least {} long", lambda value, limit: len(value) >= limit),
    "max_length": ("at most {} long", lambda value, limit: len(value) <= limit),
}


def bounds_of(note: Any) -> dict[str, Any]:
    """What a note in `Annotated` demands; empty for one that is about something else."""
    if not isinstance(note, msgspec.Meta) and type(note).__module__ != "annotated_types":
        return {}
    found = {word: getattr(note, word, None) for word in _ALL}
    return {word: limit for word, limit in found.items() if limit is not None and (word, limit) != ("min_length", 0)}


def bounded(hint: Any, meaning: Meaning, bounds: dict[str, Any]) -> Meaning:
    words = _WORDS.get(str(meaning.schema.get("type")), {})
    if strange := next((word for word in bounds if word not in words), None):
        raise Unsayable(hint, f"has the bound {strange}={bounds[strange]!r}, which is none for it", "bound its parts")
    schema: Json = {**meaning.schema, **{words[word]: limit for word, limit in bounds.items()}}
    judges = [(*_HOLDS[word], limit) for word, limit in bounds.items() if word in _HOLDS]

    def read(value: Any) -> Any:
        made = meaning.read(value)
        for said, holds, limit in judges:
            if not holds(made, limit):
                raise invalid(f"should be {said.format(limit)}")
        return made

    return Meaning(schema, read, meaning.keys)
