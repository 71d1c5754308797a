"""Annotations that name the values: `Literal` and `Enum`."""

from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Iterable
from typing import Any

from rightcall.tools.hints.defaults import NOT_JSON, as_json
from rightcall.tools.hints.meaning import Meaning, Read, Unsayable, invalid
from rightcall.types import Json

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", type(None): "null"}
_MOST_NAMED = 20


def literal(hint: Any, values: tuple[Any, ...]) -> Meaning:
    options = _options(hint, values)
    said = [each for each, _ in options]
    schema: Json = {"const": said[0]} if len(said) == 1 else {"enum": said}
    return Meaning({**schema, **_type(said)}, _reader(options))


def enumeration(cls: type[enum.Enum]) -> Meaning:
    members = list(cls)
    if not members:
        raise Unsayable(cls, "is an Enum without members", "give it some")
    options = [(said, member) for (said, _), member in zip(_options(cls, members), members, strict=True)]
    said = [each for each, _ in options]
    notes = inspect.cleandoc(vars(cls).get("__doc__") or "")
    described = {"description": notes} if notes and notes != "An enumeration." else {}
    return Meaning({**described, "enum": said, **_type(said)}, _reader(options, (cls,)))


def _options(hint: Any, values: Iterable[Any]) -> list[tuple[Any, Any]]:
    """What JSON has for each of them, and the value itself."""
    found = []
    for value in values:
        said = as_json(value.value if isinstance(value, enum.Enum) else value)
        if said is NOT_JSON:
            raise Unsayable(hint, f"has the value {value!r}, which JSON cannot say", "leave it out")
        found.append((said, value))
    return found


def _type(said: list[Any]) -> Json:
    kinds = {type(each) for each in said}
    return {"type": _TYPES[kinds.pop()]} if len(kinds) == 1 and kinds <= _TYPES.keys() else {}


def _key(value: Any) -> Any:
    """Equal where JSON calls two values equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, sort_keys=True), list
    return value, type(value) is bool


def _reader(options: list[tuple[Any, Any]], own: tuple[type[Any], ...] = ()) -> Read:
    found = {_key(said): value for said, value in reversed(options)}
    named = ", ".join([json.dumps(said, ensure_ascii=False) for said, _ in options[:_MOST_NAMED]])
    more = ", ..." if len(options) > _MOST_NAMED else ""

    def read(value: Any) -> Any:
        if isinstance(value, own):
            return value
        try:
            return found[_key(value)]
        except (KeyError, TypeError):
            raise invalid(f"should be one of {named}{more}") from None

    return read
