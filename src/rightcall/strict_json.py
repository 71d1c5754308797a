"""Strict JSON: decode a text, or return the reason why it is invalid. And JSON Pointers (RFC 6901).

Rejected are NaN, numbers too large to be finite, control characters in strings, a key with two different values, and
text after the value. Integers of any size stay exact.

    pointer_step("a/b") == "/a~1b"        unescape_step("a~1b") == "a/b"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.scanner import make_scanner
from typing import Any

import msgspec


class Undecodable(msgspec.Struct, frozen=True):
    """The reason why a text is not a valid JSON value."""

    code: str
    message: str


def _reject_constant(constant: str) -> None:
    """Raise `ValueError` for NaN, Infinity or -Infinity."""
    raise ValueError(f"{constant} is not JSON")


class _NotExact(ValueError):
    """A number that Python would not keep exactly."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _parse_finite(text: str) -> float:
    """Parse a float. Raises `_NotExact` if it is too large to be finite."""
    value = float(text)
    if value - value != 0.0:
        raise _NotExact("not_finite", f"{text[:40]} is not a finite number; send a finite one")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict made of the pairs of a JSON object. Raises `ValueError` for a duplicate key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


Scanner = Callable[[str, int], tuple[Any, int]]
_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_finite)
_UNIQUE = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_finite, object_pairs_hook=_unique_keys)
scan_once: Scanner = make_scanner(_DECODER)  # type: ignore[arg-type]
# As `scan_once`, but raises ValueError for a duplicate key, because one of its two values would be lost.
scan_unique: Scanner = make_scanner(_UNIQUE)  # type: ignore[arg-type]

_BLANKS = re.compile(r"[ \t\r\n]*+").match
MAX_DEPTH = 200
MAX_CHECKED_DEPTH = 240  # the validator of JSON Schema examines no value that is nested deeper than 255 levels
_OBJECTS = msgspec.json.Decoder(dict[str, object])
_MOST_DUPLICATES = 64
# Codes of errors after which the text must not be parsed in any other way either.
REFUSED = frozenset(("too_deep", "not_finite", "duplicate_argument", "duplicate_key"))


def decode(text: str, depth: int) -> Any:
    """Return the value of a JSON text; an `Undecodable`, which is returned and not raised, if it is invalid or
    nested deeper than `depth`. Of duplicate keys the last value is used."""
    return _decode(text, depth, scan_once)


def encode(value: Any) -> str:
    """Return a value as JSON text. Raises `ValueError` for NaN and infinities, `TypeError` for values that JSON does
    not have."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def is_object_text(text: str) -> bool:
    """Return whether a text is a valid JSON object, nested no deeper than `MAX_DEPTH`; duplicate keys are accepted."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        try:
            _OBJECTS.decode(text)  # accepts a subset of `decode`, three times as fast
        except ValueError:
            pass
        else:
            return True
    return isinstance(decode(text, MAX_DEPTH), dict)


def _decode(text: str, depth: int, scan: Scanner) -> Any:
    """Scan the whole text with this scanner and return the value, or an `Undecodable` (not raised) if it is invalid
    or too deep."""
    try:
        value, end = scan(text, 0 if text[:1] > " " else _BLANKS(text, 0).end())  # type: ignore[union-attr]
    except StopIteration as stop:
        return Undecodable(
            "invalid_json", f"the arguments are not valid JSON: expected a value at character {stop.value}"
        )
    except RecursionError:
        return _too_deep_error(depth)
    except _NotExact as refused:
        return Undecodable(refused.code, str(refused))
    except ValueError as error:
        return Undecodable("invalid_json", f"the arguments are not valid JSON: {_describe_error(error)}")
    if end < len(text) and _BLANKS(text, end).end() != len(text):  # type: ignore[union-attr]
        return Undecodable("invalid_json", f"the arguments are not valid JSON: extra data at character {end}")
    if is_deep(value, text, 0, len(text), depth):
        return _too_deep_error(depth)
    return value


class DuplicateKey(msgspec.Struct, frozen=True):
    """A key that an object has twice: at the top (an argument) or inside, with equal or different values."""

    key: str
    at_top: bool
    same: bool
    before: str
    after: str

    @property
    def code(self) -> str:
        """The problem code: "duplicate_argument" for a key at the top, "duplicate_key" for one inside a value."""
        return "duplicate_argument" if self.at_top else "duplicate_key"

    @property
    def message(self) -> str:
        """The message for the model: which key is duplicated, and its two values if they differ."""
        if self.same:
            return f"{self.key[:80]!r} is given twice with the same value; send it once"
        return f"{self.key[:80]!r} is given twice, as {self.before} and as {self.after}; send it once"


def decode_unique(text: str, depth: int) -> tuple[Any, tuple[DuplicateKey, ...]]:
    """Return the decoded value and the duplicate keys. The value is an `Undecodable` (returned, not raised) if the text
    is not valid JSON or too deep, or if two values of one key differ: the intended one is unknown."""
    value = _decode(text, depth, scan_unique)
    if not isinstance(value, Undecodable) or value.code != "invalid_json":
        return value, ()
    found: list[tuple[dict[str, Any], str, bool, str, str]] = []
    hook = json.JSONDecoder(
        parse_constant=_reject_constant,
        parse_float=_parse_finite,
        object_pairs_hook=lambda pairs: _collect_duplicates(pairs, found),
    )
    value = _decode(text, depth, make_scanner(hook))  # type: ignore[arg-type]
    if isinstance(value, Undecodable):
        return value, ()
    twice = tuple(
        [DuplicateKey(key, holder is value, same, before, after) for holder, key, same, before, after in found]
    )
    differing = next((each for each in twice if not each.same), None)
    if differing is not None:
        return Undecodable(differing.code, differing.message), twice
    return value, twice


def _collect_duplicates(
    pairs: list[tuple[str, Any]], found: list[tuple[dict[str, Any], str, bool, str, str]]
) -> dict[str, Any]:
    """Return a dict made of the pairs of a JSON object, the last value of each key, and append an entry for each
    duplicate key to `found`: the dict, the key, whether both values are equal, and both values. Equal ones beyond 64
    are not listed."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            same = is_same_json(made[key], value)
            if not same or len(found) < _MOST_DUPLICATES:
                found.append((made, key, same, _short_json(made[key]), _short_json(value)))
        made[key] = value
    return made


def _short_json(value: Any) -> str:
    """Return the first 80 characters of a value's JSON."""
    return json.dumps(value, ensure_ascii=False)[:80]


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; the order of keys does not count, and 1 differs from true and from
    1.0."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _describe_error(error: ValueError) -> str:
    """Return a phrase for the error of the decoder, with the position if it has one."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}"
    return "a number has too many digits" if "digits" in str(error) else str(error)


def _too_deep_error(depth: int) -> Undecodable:
    """Return the `Undecodable` for a value nested deeper than `depth`."""
    return Undecodable("too_deep", f"the arguments are nested deeper than {depth} levels")


_LEVELS = {"[": 1, "{": 1, "]": -1, "}": -1}
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.S)


def is_deep(value: Any, text: str, start: int, end: int, depth: int) -> bool:
    """Return True if `value`, whose JSON is `text[start:end]`, is nested deeper than `depth`."""
    size, most = end - start, 2 * depth
    if size <= most:
        return False
    for each in value.values() if type(value) is dict else ():  # text inside a string does not nest
        if type(each) is str:
            size -= len(each)
            if size <= most:
                return False
    if text.count("[", start, end) + text.count("{", start, end) <= depth:
        return False
    level = 0
    for found in _BRACKETS.finditer(text, start, end):
        level += _LEVELS.get(found.group(), 0)
        if level > depth:
            return True
    return False


# -- JSON Pointers (RFC 6901) ------------------------------------------------------------------------------------------


def pointer_step(key: Any) -> str:
    """Return a key as one step of a JSON Pointer, escaped and with the slash before it."""
    return "/" + escape_step(key)


def escape_step(key: Any) -> str:
    """Return a key as one step of a JSON Pointer, escaped, without the slash."""
    return str(key).replace("~", "~0").replace("/", "~1")


def unescape_step(part: str) -> str:
    """Return the key for one step of a JSON Pointer, given without its slash."""
    return part.replace("~1", "/").replace("~0", "~")
