"""Plain fields of a body, whatever was sent: a value of the right kind, or nothing."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import text
from rightcall.types import Json


def whole_number(*values: Any) -> int | None:
    """The first that is a whole number."""
    for value in values:
        if type(value) is int:
            return value
        if type(value) is float and value.is_integer():
            return int(value)
    return None


def number(value: Any) -> float | None:
    return value if type(value) in (int, float) and value == value else None


def stops(value: Any) -> tuple[str, ...]:
    """One text or several that end an answer."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple([each for each in value if text(each)]) if isinstance(value, list) else ()


def limits(body: Json, *, most: tuple[str, ...], stop: str, seed: str = "seed") -> dict[str, Any]:
    """The fields of a `ClientRequest` that every dialect has, under the names it has for them."""
    return {
        "max_tokens": whole_number(*[body.get(key) for key in most]),
        "temperature": number(body.get("temperature")),
        "seed": whole_number(body.get(seed)),
        "stop": stops(body.get(stop)),
    }
