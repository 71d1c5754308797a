"""Strict JSON: what a text holds, or why it holds nothing.

No NaN, no number too large to be finite, no control characters in strings, no key twice with different values, nothing
after the value; integers of any size stay exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.scanner import make_scanner
from typing import Any

import msgspec


class Undecodable(msgspec.Struct, frozen=True):
    """Text that is not a JSON value."""

    code: str
    message: str


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class _Refused(ValueError):
    """JSON that says something which cannot be taken at its word."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise _Refused("not_finite", f"{text[:40]} is no number that can be sent; send a finite one")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if found[key] != value or type(found[key]) is not type(value):
                raise _Refused("duplicate_key", f"the key {key[:40]!r} is given twice, with different values")
    return found


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
scan_once: Callable[[str, int], tuple[Any, int]] = make_scanner(_DECODER)  # type: ignore[arg-type]

_BLANKS = re.compile(r"[ \t\r\n]*+").match
MAX_DEPTH = 200
# Codes of what is not JSON and must not be read in any other way either.
REFUSED = frozenset(("too_deep", "not_finite", "duplicate_key"))


def decode(text: str, depth: int) -> Any:
    """The value of a JSON text, or `Undecodable`."""
    try:
        value, end = scan_once(text, _BLANKS(text, 0).end())  # type: ignore[union-attr]
    except StopIteration as stop:
        return Undecodable(
            "invalid_json", f"the arguments are not valid JSON: expected a value at character {stop.value}"
        )
    except RecursionError:
        return _too_deep(depth)
    except _Refused as refused:
        return Undecodable(refused.code, str(refused))
    except ValueError as error:
        return Undecodable("invalid_json", f"the arguments are not valid JSON: {_reason(error)}")
    if _BLANKS(text, end).end() != len(text):  # type: ignore[union-attr]
        return Undecodable("invalid_json", f"the arguments are not valid JSON: extra data at character {end}")
    if is_deep(text, 0, len(text), depth):
        return _too_deep(depth)
    return value


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}"
    return "a number has too many digits" if "digits" in str(error) else str(error)


def _too_deep(depth: int) -> Undecodable:
    return Undecodable("too_deep", f"the arguments are nested deeper than {depth} levels")


_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.S)


def is_deep(text: str, start: int, end: int, depth: int) -> bool:
    """Is this valid JSON nested deeper than that?"""
    if end - start <= 2 * depth or text.count("[", start, end) + text.count("{", start, end) <= depth:
        return False
    level = 0
    for found in _BRACKETS.finditer(text, start, end):
        char = found.group()
        if char in "[{":
            level += 1
            if level > depth:
                return True
        elif char in "]}":
            level -= 1
    return False
