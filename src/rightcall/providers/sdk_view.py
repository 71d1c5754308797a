"""Anything a user has at hand as plain JSON data: dicts, SDK objects of any make, enums. No SDK is imported.

Conversion is shallow and happens where a field is looked at, so that plain dicts cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from rightcall.types import Json

_NO_OBJECTS = (str, int, float, bool, bytes, type(None), list, tuple, Enum, type)


def _dumping_method(value: Any) -> Callable[[], Any] | None:
    for name in ("model_dump", "to_dict"):
        method = getattr(value, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    return None


def obj(value: Any) -> Json | None:
    """The fields of an object, or None for what is none."""
    if type(value) is dict:
        return value
    if value is None or isinstance(value, _NO_OBJECTS):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    dump = _dumping_method(value)
    if dump is not None:
        found = dump()
        return dict(found) if isinstance(found, Mapping) else None
    fields = getattr(value, "__dict__", None)
    return {key: item for key, item in fields.items() if not key.startswith("_")} if fields is not None else None


def items(value: Any) -> list[Any]:
    """The items of a list; one object where a list should be is its only item; empty for anything else."""
    if type(value) is list:
        return value
    if isinstance(value, tuple):
        return list(value)
    return [value] if value and obj(value) is not None else []


def objects(value: Any) -> list[Json]:
    """The objects among the items of a list."""
    return [found for item in items(value) if (found := obj(item)) is not None]


def text(value: Any) -> str:
    """A string as it is; "" for anything else. An enum member counts as its value."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, Enum):
        value = value.value
    return str(value) if isinstance(value, str) else ""


def dumps(value: Any) -> str:
    """Compact JSON. What no JSON can carry becomes a string that says so, and a problem of the call later on."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_default)
    except (RecursionError, TypeError, ValueError) as error:
        return json.dumps(f"not JSON: {error}")


def _default(value: Any) -> Any:
    found = obj(value)
    if found is not None:
        return found
    return value.value if isinstance(value, Enum) else str(value)


def arguments(value: Any) -> str:
    """Argument text: a string as it was sent, null as none, any other value as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)


def is_parsed(value: Any) -> bool:
    """Are these arguments a value that a server made, and not the text that a model wrote?"""
    return value is not None and not isinstance(value, str)


def error_text(value: Any) -> str:
    """What a provider's error object says."""
    found = obj(value)
    if found is None:
        return str(value)
    inner = obj(found.get("error"))
    if inner is not None:
        return error_text(inner)
    said = text(found.get("message")) or text(found.get("error")) or dumps(found)
    kind = text(found.get("type")) or text(found.get("status")) or text(found.get("code"))
    return f"{said} ({kind})" if kind and kind not in said and kind != "error" else said
