"""JSON Schemas and readers for single values: scalars, choices, constraints, annotations and defaults.

meaning = Meanings().of(date)
meaning.schema                  # {"format": "date", "type": "string"}
meaning.read("2026-05-17")      # date(2026, 5, 17), or `Misfit` is raised
"""

from __future__ import annotations

import datetime as dt
import enum
import inspect
import ipaddress
import json
import operator
import os
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Set
from decimal import Decimal, InvalidOperation
from typing import Any, LiteralString, NamedTuple

import msgspec

from rightcall.types import Json


def described(hint: Any) -> str:
    """The text in `Annotated`, as it is or in a `Doc("text")` or a `Meta(description="text")`; "" if there is none."""
    for note in getattr(hint, "__metadata__", ()):
        text = note if isinstance(note, str) else getattr(note, "documentation", getattr(note, "description", None))
        if isinstance(text, str):
            return text
    return ""


def allows_none(hint: Any) -> bool:
    if hint in (Any, None, type(None), object):
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return allows_none(inner[0])
    if origin is typing.Literal:
        return None in inner
    return origin in (typing.Union, types.UnionType) and any(map(allows_none, inner))


class NotJson:
    """Type of `NOT_JSON`: JSON has no form for this value."""


NOT_JSON = NotJson()


def as_json(value: Any) -> Any:
    """Return the JSON form of a Python value, or `NOT_JSON`."""
    try:
        made = msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_encode_path)
        return json.loads(json.dumps(made, allow_nan=False, default=bytes.decode))
    except (TypeError, ValueError, RecursionError):
        return NOT_JSON


def with_default(schema: Json, value: Any) -> Json:
    """Return the schema with this default, if JSON can represent it."""
    default = as_json(value)
    return schema if default is NOT_JSON else {**schema, "default": default}


def _encode_path(value: Any) -> Any:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise TypeError(value)


MOST_FAULTS = 5

Read = Callable[[Any], Any]


class Meaning(NamedTuple):
    """`keys` are the names of the fields, where the value is a class that has some."""

    schema: Json
    read: Read
    keys: Set[str] = frozenset()


class ValueFault(NamedTuple):
    """One thing that is wrong with a value: where in it, and in words that go after the place."""

    code: str
    said: str
    steps: tuple[str | int, ...] = ()


class Misfit(Exception):
    """A value that cannot be what the annotation says."""

    def __init__(self, faults: Iterable[ValueFault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))[:MOST_FAULTS]
        super().__init__(self.faults)

    def within(self, step: str | int) -> list[ValueFault]:
        """The same faults, seen from further outside."""
        return [ValueFault(code, said, (step, *steps)) for code, said, steps in self.faults]


class Unsayable(Exception):
    """An annotation that JSON Schema has no words for. `cure` where there is a better one than another type; `place` is
    the field that has it (`Stay.arrival`), if it is one of a class."""

    place = ""

    def __init__(self, hint: Any, cause: str = "", cure: str = "") -> None:
        self.hint, self.cause, self.cure = hint, cause, cure
        super().__init__(hint, cause, cure)


class NeedsPydantic(Exception):
    """An annotation that only pydantic understands: a model of its, a field, a validator."""


def wrong_type(said: str) -> Misfit:
    return Misfit([ValueFault("wrong_type", said)])


def invalid(said: str) -> Misfit:
    return Misfit([ValueFault("invalid_argument", said)])


def read_each(read: Read, values: Iterable[Any]) -> list[Any]:
    """Every item read; what is wrong with several of them is told together."""
    made: list[Any] = []
    faults: list[ValueFault] = []
    for at, value in enumerate(values):
        try:
            made.append(read(value))
        except Misfit as misfit:
            faults += misfit.within(at)
            if len(faults) >= MOST_FAULTS:
                break
    if faults:
        raise Misfit(faults)
    return made


def copied(value: Any) -> Any:
    """What a tool does to its arguments must not change the call they came from."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


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


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise wrong_type("should be a string")


def _integer(value: Any) -> int:
    """JSON Schema calls 2.0 an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise wrong_type("should be an integer")


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise invalid("is too large a number") from None
    raise wrong_type("should be a number")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise wrong_type("should be true or false")


def _null(value: Any) -> None:
    if value is not None:
        raise wrong_type("should be null")


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    try:
        return _text(value).encode()
    except UnicodeEncodeError:
        raise invalid("should be text that UTF-8 can carry") from None


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong_type("should be a number, or a string that holds one")
    try:
        made = Decimal(str(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise invalid("should be a decimal number") from None
    if not made.is_finite():
        raise invalid("should be a finite number")
    return made


# -- what is written as text -------------------------------------------------------------------------------------------


def _date(text: str) -> dt.date:
    if len(text) != 10:
        raise ValueError
    return dt.date.fromisoformat(text)


def _date_time(text: str) -> dt.datetime:
    if len(text) <= 10 or text[4] != "-" or text[7] != "-":  # weeks, days of the year and bare digits are dates too
        raise ValueError
    return dt.datetime.fromisoformat(text.upper())


def _time(text: str) -> dt.time:
    if ":" not in text:
        raise ValueError
    return dt.time.fromisoformat(text.upper())


_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?=[\dT])(?:(?P<weeks>\d++)W)?(?:(?P<days>\d++)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d++)H)?(?:(?P<minutes>\d++)M)?(?:(?P<seconds>\d++(?:\.\d++)?)S)?)?",
    re.ASCII,
).fullmatch


def _duration(text: str) -> dt.timedelta:
    found = _DURATION(text.upper())
    if found is None:
        raise ValueError
    parts = {unit: float(number) for unit, number in found.groupdict().items() if unit != "sign" and number}
    return dt.timedelta(**parts) * (-1 if found["sign"] == "-" else 1)


def _written(kind: type[Any], format: str, parse: Callable[[str], Any], example: str) -> Meaning:
    """A type whose values JSON writes as text of this format."""

    def read(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return parse(_text(value))
        except (ValueError, re.error, OverflowError):
            raise invalid(f"should be a {format} such as {example}") from None

    return Meaning({"format": format, "type": "string"}, read)


def _plain(type: str, read: Read) -> Meaning:
    return Meaning({"type": type}, read)


ANYTHING = Meaning({}, copied)
NULL = _plain("null", _null)
_PATH = _written(pathlib.Path, "path", pathlib.Path, "folder/file.txt")

_NETWORKS = {
    kind: _written(kind, kind.__name__.lower(), kind, example)
    for kind, example in {
        ipaddress.IPv4Network: "192.0.2.0/24",
        ipaddress.IPv6Network: "2001:db8::/32",
        ipaddress.IPv4Interface: "192.0.2.1/24",
        ipaddress.IPv6Interface: "2001:db8::1/32",
    }.items()
}

SCALARS: dict[Any, Meaning] = {
    Any: ANYTHING,
    object: ANYTHING,
    None: NULL,
    type(None): NULL,
    str: _plain("string", _text),
    LiteralString: _plain("string", _text),
    int: _plain("integer", _integer),
    float: _plain("number", _number),
    bool: _plain("boolean", _boolean),
    bytes: Meaning({"format": "binary", "type": "string"}, _bytes),
    Decimal: Meaning({"anyOf": [{"type": "number"}, {"type": "string"}]}, _decimal),
    dt.date: _written(dt.date, "date", _date, "2026-05-17"),
    dt.datetime: _written(dt.datetime, "date-time", _date_time, "2026-05-17T09:30:00Z"),
    dt.time: _written(dt.time, "time", _time, "09:30:00"),
    dt.timedelta: _written(dt.timedelta, "duration", _duration, "P1DT2H30M"),
    uuid.UUID: _written(uuid.UUID, "uuid", uuid.UUID, "3f2b8c1e-5d4a-4c7e-9a61-0b8f2d7c6e5a"),
    pathlib.Path: _PATH,
    os.PathLike: _PATH,
    pathlib.PurePath: _written(pathlib.PurePath, "path", pathlib.PurePath, "folder/file.txt"),
    ipaddress.IPv4Address: _written(ipaddress.IPv4Address, "ipv4", ipaddress.IPv4Address, "192.0.2.1"),
    ipaddress.IPv6Address: _written(ipaddress.IPv6Address, "ipv6", ipaddress.IPv6Address, "2001:db8::1"),
    **_NETWORKS,
    re.Pattern: _written(re.Pattern, "regex", re.compile, "[a-z]+"),
}
