"""Read foreign values as plain JSON data: dicts, SDK objects of any kind, enums. No SDK is imported.

A value is converted one level at a time, where a field is read, so that plain dicts cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from rightcall.types import Json

_NO_OBJECTS = (str, int, float, bool, bytes, type(None), list, tuple, Enum, type)


def obj(value: Any) -> Json | None:
    """Return the fields of an object (a dict, a mapping or an SDK object), or None if the value is not an object. A
    dict is returned itself, all else as a copy of one level."""
    if type(value) is dict:
        return value
    if isinstance(value, _NO_OBJECTS):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    for name in ("model_dump", "to_dict"):
        method = getattr(value, name, None)
        if callable(method):
            found = method()
            return dict(found) if isinstance(found, Mapping) else None
    fields = getattr(value, "__dict__", None)
    return {key: item for key, item in fields.items() if not key.startswith("_")} if fields is not None else None


def items(value: Any) -> list[Any]:
    """Return the items of a list or tuple; a list is returned itself. A single object with fields is treated as a list
    of one item; any other value, also a string, has no items."""
    if type(value) is list:
        return value
    if isinstance(value, tuple):
        return list(value)
    return [value] if value and obj(value) is not None else []


def objects(value: Any) -> list[Json]:
    """Return the objects among the items of a list (see `items`), each as a dict of its fields; other items are left
    out."""
    found = []
    for item in items(value):
        fields = item if type(item) is dict else obj(item)
        if fields is not None:
            found.append(fields)
    return found


def integer(value: Any) -> int | None:
    """Return an integer unchanged, and None for any other value; true and false are no integers."""
    return value if type(value) is int else None


def text(value: Any) -> str:
    """Return a string unchanged, an enum member's value if it is a string, and "" for any other value, also a
    number."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, Enum):
        value = value.value
    return str(value) if isinstance(value, str) else ""


def compact_json(value: Any) -> str:
    """Return a value as compact JSON; SDK objects become their fields, values that JSON does not know become strings. A
    value that cannot be written becomes a JSON string with the error, which is later reported as invalid arguments."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_convert_foreign)
    except (RecursionError, TypeError, ValueError) as error:
        return json.dumps(f"not JSON: {error}")


def _convert_foreign(value: Any) -> Any:
    """Convert a value that JSON does not know: an SDK object to its fields, an enum member to its value, else to a
    string."""
    found = obj(value)
    if found is not None:
        return found
    return value.value if isinstance(value, Enum) else str(value)


def arguments(value: Any) -> str:
    """Return argument text: a string unchanged, "" for null, any other value as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)


def is_parsed(value: Any) -> bool:
    """Return True if call arguments arrived as a value that the server parsed; False for text, which the model wrote,
    and for null."""
    return value is not None and not isinstance(value, str)


def error_text(value: Any) -> str:
    """Return the message of a provider's error object, with its type in parentheses if the message does not have it. An
    object without a message is shown as JSON, a value that is no object as a string."""
    found = obj(value)
    if found is None:
        return str(value)
    inner = obj(found.get("error"))
    if inner is not None:
        return error_text(inner)
    message = text(found.get("message")) or text(found.get("error")) or compact_json(found)
    kind = text(found.get("type")) or text(found.get("status")) or text(found.get("code"))
    return f"{message} ({kind})" if kind and kind not in message and kind != "error" else message
