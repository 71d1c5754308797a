"""JSON types of single values: scalars, choices, constraints, annotations and defaults.

json_type = TypeResolver().resolve(date)
json_type.schema                  # {"format": "date", "type": "string"}
json_type.read("2026-05-17")      # date(2026, 5, 17), or raises `ConversionError`
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


def annotation_text(hint: Any) -> str:
    """Return the first description among the notes of an `Annotated` type: a string, a `Doc("text")` or a
    `Meta(description="text")`; "" for another annotation and if there is none."""
    for note in getattr(hint, "__metadata__", ()):
        text = note if isinstance(note, str) else getattr(note, "documentation", getattr(note, "description", None))
        if isinstance(text, str):
            return text
    return ""


def allows_none(hint: Any) -> bool:
    """Return whether a type annotation itself includes None, as `int | None`, `Any` and `object` do. False for a type
    variable or an alias, whatever it stands for."""
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


def to_json_value(value: Any) -> Any:
    """Return the JSON form of a Python value as msgspec writes it, or `NOT_JSON` if it has none, such as NaN or bytes
    that are not UTF-8. Never raises."""
    try:
        made = msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_encode_path)
        return json.loads(json.dumps(made, allow_nan=False, default=bytes.decode))
    except (TypeError, ValueError, RecursionError):
        return NOT_JSON


def with_default(schema: Json, value: Any) -> Json:
    """Return a copy of the schema whose `default` is this Python value as JSON; the schema itself if JSON cannot
    represent the value."""
    default = to_json_value(value)
    return schema if default is NOT_JSON else {**schema, "default": default}


def _encode_path(value: Any) -> Any:
    """Return a `pathlib` path as text; the encoder calls this for types that it does not know. Raises `TypeError` for
    any other value."""
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise TypeError(value)


MOST_FAULTS = 5

Read = Callable[[Any], Any]


class JsonType(NamedTuple):
    """A Python type as JSON: its schema, and `read`, which converts a JSON value. `keys` are the field names of a
    class."""

    schema: Json
    read: Read
    keys: Set[str] = frozenset()


class ValueFault(NamedTuple):
    """One error in a value: its code, a message that follows the place, and the steps to the place."""

    code: str
    message: str
    steps: tuple[str | int, ...] = ()


class ConversionError(Exception):
    """A value that cannot be converted to the annotated type. `faults` has the first five different ones."""

    def __init__(self, faults: Iterable[ValueFault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))[:MOST_FAULTS]
        super().__init__(self.faults)

    def within(self, step: str | int) -> list[ValueFault]:
        """Return the faults of this error with `step`, a key or an index, added in front of the place of each. The
        error is not changed."""
        return [ValueFault(code, message, (step, *steps)) for code, message, steps in self.faults]


class UnsupportedType(Exception):
    """An annotation without a JSON Schema. `cure` is set if another type is not the best advice; `place` is the field
    that has it (`Stay.arrival`), if it belongs to a class."""

    place = ""

    def __init__(self, hint: Any, cause: str = "", cure: str = "") -> None:
        self.hint, self.cause, self.cure = hint, cause, cure
        super().__init__(hint, cause, cure)


class NeedsPydantic(Exception):
    """An annotation that only pydantic can resolve: its models, fields and validators."""


def wrong_type_error(message: str) -> ConversionError:
    """Return (not raise) a `ConversionError` with one fault, of the code "wrong_type"."""
    return ConversionError([ValueFault("wrong_type", message)])


def invalid_value_error(message: str) -> ConversionError:
    """Return (not raise) a `ConversionError` with one fault, of the code "invalid_argument"."""
    return ConversionError([ValueFault("invalid_argument", message)])


def read_each(read: Read, values: Iterable[Any]) -> list[Any]:
    """Return a list of the values, each converted by the reader `read`. Raises a `ConversionError` with the faults of
    all items; it stops at the item with which they are `MOST_FAULTS` or more."""
    made: list[Any] = []
    faults: list[ValueFault] = []
    for at, value in enumerate(values):
        try:
            made.append(read(value))
        except ConversionError as misfit:
            faults += misfit.within(at)
            if len(faults) >= MOST_FAULTS:
                break
    if faults:
        raise ConversionError(faults)
    return made


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value (its dicts and lists), so that a tool cannot change the call that its
    arguments came from."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if isinstance(value, list) else value


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

_BOUND_CHECKS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("at least {}", operator.ge),
    "gt": ("more than {}", operator.gt),
    "le": ("at most {}", operator.le),
    "lt": ("less than {}", operator.lt),
    "multiple_of": ("a multiple of {}", lambda value, limit: value % limit == 0),
    "min_length": ("at least {} long", lambda value, limit: len(value) >= limit),
    "max_length": ("at most {} long", lambda value, limit: len(value) <= limit),
}


def bounds_of(note: Any) -> dict[str, Any]:
    """Return the bounds that one note of an `Annotated` type sets, such as {"ge": 1}, from `msgspec.Meta` or
    annotated_types; {} for any other note. A minimum length of 0 is left out."""
    if not isinstance(note, msgspec.Meta) and type(note).__module__ != "annotated_types":
        return {}
    found = {word: getattr(note, word, None) for word in _ALL}
    return {word: limit for word, limit in found.items() if limit is not None and (word, limit) != ("min_length", 0)}


def bounded_type(hint: Any, meaning: JsonType, bounds: dict[str, Any]) -> JsonType:
    """Return the JSON type `meaning` with `bounds`, such as {"ge": 1}, in its schema and checked by its reader, which
    raises `ConversionError`; a pattern is only in the schema. Raises `UnsupportedType`, for the annotation `hint`, if a
    bound does not apply to the type."""
    words = _WORDS.get(str(meaning.schema.get("type")), {})
    if strange := next((word for word in bounds if word not in words), None):
        raise UnsupportedType(
            hint,
            f"has the bound {strange}={bounds[strange]!r}, which does not apply to it",
            "apply the bound to its parts",
        )
    schema: Json = {**meaning.schema, **{words[word]: limit for word, limit in bounds.items()}}
    checks = [(*_BOUND_CHECKS[word], limit) for word, limit in bounds.items() if word in _BOUND_CHECKS]

    def read(value: Any) -> Any:
        """Return the value as `meaning.read` converts it. Raises `ConversionError` if that fails or a bound does not
        hold."""
        made = meaning.read(value)
        for phrase, holds, limit in checks:
            if not holds(made, limit):
                raise invalid_value_error(f"should be {phrase.format(limit)}")
        return made

    return JsonType(schema, read, meaning.keys)


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", type(None): "null"}
_MOST_NAMED = 20


def literal_type(hint: Any, values: tuple[Any, ...]) -> JsonType:
    """Return the JSON type of a `Literal` with these values: a schema with `const` or `enum`, and a reader that returns
    the value that is meant. Raises `UnsupportedType`, for the annotation `hint`, for a value that JSON cannot
    represent."""
    options = _json_options(hint, values)
    values_json = [each for each, _ in options]
    schema: Json = {"const": values_json[0]} if len(values_json) == 1 else {"enum": values_json}
    return JsonType({**schema, **_common_type(values_json)}, _option_reader(options))


def enum_type(cls: type[enum.Enum]) -> JsonType:
    """Return the JSON type of an Enum, whose JSON form is the value of the member; its reader returns the member.
    Raises `UnsupportedType` for an Enum without members, and for values that JSON cannot represent."""
    members = list(cls)
    if not members:
        raise UnsupportedType(cls, "is an Enum without members", "add a member")
    options = [(value, member) for (value, _), member in zip(_json_options(cls, members), members, strict=True)]
    values = [each for each, _ in options]
    notes = inspect.cleandoc(vars(cls).get("__doc__") or "")
    described = {"description": notes} if notes and notes != "An enumeration." else {}
    return JsonType({**described, "enum": values, **_common_type(values)}, _option_reader(options, (cls,)))


def _json_options(hint: Any, values: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of the JSON form of each value (of an Enum member: of its value) and the value itself. Raises
    `UnsupportedType`, for the annotation `hint`, if a value has no JSON form."""
    found = []
    for value in values:
        json_value = to_json_value(value.value if isinstance(value, enum.Enum) else value)
        if json_value is NOT_JSON:
            raise UnsupportedType(hint, f"has the value {value!r}, which JSON cannot represent", "leave it out")
        found.append((json_value, value))
    return found


def _common_type(values: list[Any]) -> Json:
    """Return `{"type": ...}` for JSON values that all have one type; {} for mixed types, for objects, and for no
    values."""
    kinds = {type(each) for each in values}
    return {"type": _TYPES[kinds.pop()]} if len(kinds) == 1 and kinds <= _TYPES.keys() else {}


def _equality_key(value: Any) -> Any:
    """Return a dict key for a JSON value. The keys of two values are equal if the values are equal in JSON Schema, at
    any depth: 1 and 1.0, but not 1 and true; the order of an object's members does not count. Raises `TypeError`, or
    returns a key that is not hashable, for a value that is no JSON, such as a set."""
    if isinstance(value, dict):
        return frozenset([(name, _equality_key(item)) for name, item in value.items()]), dict
    if isinstance(value, list):
        return tuple(map(_equality_key, value)), list
    return value, type(value) is bool


def _option_reader(options: list[tuple[Any, Any]], own: tuple[type[Any], ...] = ()) -> Read:
    """Return a reader of values that must be one of the `options`, pairs of a JSON form and a Python value: it returns
    the Python value of the one that equals the given JSON. An instance of a class in `own` is returned unchanged. The
    reader raises `ConversionError` for other values."""
    found = {_equality_key(option): value for option, value in reversed(options)}
    named = ", ".join([json.dumps(option, ensure_ascii=False) for option, _ in options[:_MOST_NAMED]])
    more = ", ..." if len(options) > _MOST_NAMED else ""

    def read(value: Any) -> Any:
        """Return the Python value of the option that equals this JSON value; an instance of a class in `own` unchanged.
        Raises `ConversionError` for any other value."""
        if isinstance(value, own):
            return value
        try:
            return found[_equality_key(value)]
        except (KeyError, TypeError):
            raise invalid_value_error(f"should be one of {named}{more}") from None

    return read


def _read_string(value: Any) -> str:
    """Return a string unchanged. Raises `ConversionError` for any other value; nothing is converted."""
    if isinstance(value, str):
        return value
    raise wrong_type_error("should be a string")


def _read_integer(value: Any) -> int:
    """Return a value as an int; 2.0 is accepted, as in JSON Schema, but not true. Raises `ConversionError` for any
    other value, NaN and infinity included."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise wrong_type_error("should be an integer")


def _read_number(value: Any) -> float:
    """Return a number as a float. Raises `ConversionError` for any other value, also true and false, and for an integer
    that is too large."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise invalid_value_error("is too large a number") from None
    raise wrong_type_error("should be a number")


def _read_boolean(value: Any) -> bool:
    """Return true or false unchanged. Raises `ConversionError` for any other value."""
    if isinstance(value, bool):
        return value
    raise wrong_type_error("should be true or false")


def _read_null(value: Any) -> None:
    """Return None for None. Raises `ConversionError` for any other value."""
    if value is not None:
        raise wrong_type_error("should be null")


def _read_bytes(value: Any) -> bytes:
    """Return a string as UTF-8 bytes, and bytes unchanged. Raises `ConversionError` for any other value, and for a
    string with lone surrogates."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    try:
        return _read_string(value).encode()
    except UnicodeEncodeError:
        raise invalid_value_error("should be text that UTF-8 can carry") from None


def _read_decimal(value: Any) -> Decimal:
    """Return a number or a numeric string as a Decimal, and a Decimal unchanged. Raises `ConversionError` for any other
    value, and for one that is not finite."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong_type_error("should be a number, or a string that holds one")
    try:
        made = Decimal(str(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise invalid_value_error("should be a decimal number") from None
    if not made.is_finite():
        raise invalid_value_error("should be a finite number")
    return made


# -- types with a text form --------------------------------------------------------------------------------------------


def _parse_date(text: str) -> dt.date:
    """Return the date of an ISO text of ten characters, such as 2026-05-17. Raises `ValueError` for any other text."""
    if len(text) != 10:
        raise ValueError
    return dt.date.fromisoformat(text)


def _parse_date_time(text: str) -> dt.datetime:
    """Return the date and time of an ISO text with dashes in its date. Raises ValueError for any other text, and for a
    date without a time."""
    if len(text) <= 10 or text[4] != "-" or text[7] != "-":  # excludes weeks, days of the year and bare digits
        raise ValueError
    return dt.datetime.fromisoformat(text.upper())


def _parse_time(text: str) -> dt.time:
    """Return the time of an ISO text with colons. Raises ValueError for any other text."""
    if ":" not in text:
        raise ValueError
    return dt.time.fromisoformat(text.upper())


_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?=[\dT])(?:(?P<weeks>\d++)W)?(?:(?P<days>\d++)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d++)H)?(?:(?P<minutes>\d++)M)?(?:(?P<seconds>\d++(?:\.\d++)?)S)?)?",
    re.ASCII,
).fullmatch


def _parse_duration(text: str) -> dt.timedelta:
    """Return the time span of an ISO 8601 duration of weeks, days, hours, minutes and seconds. Raises ValueError for
    any other text, also with years or months, which have no fixed length, and OverflowError for a span that is too
    large."""
    found = _DURATION(text.upper())
    if found is None:
        raise ValueError
    parts = {unit: float(number) for unit, number in found.groupdict().items() if unit != "sign" and number}
    return dt.timedelta(**parts) * (-1 if found["sign"] == "-" else 1)


def _text_type(kind: type[Any], format: str, parse: Callable[[str], Any], example: str) -> JsonType:
    """Return the JSON type of Python values of the class `kind` that JSON writes as text in this `format`. Its reader
    converts text by `parse`, returns an instance of `kind` unchanged, and raises `ConversionError`, with the `example`
    in its message, for anything else."""

    def read(value: Any) -> Any:
        """Return the parsed text; an instance of `kind` unchanged. Raises `ConversionError` for any other value."""
        if isinstance(value, kind):
            return value
        try:
            return parse(_read_string(value))
        except (ValueError, re.error, OverflowError):
            raise invalid_value_error(f"should be a {format} such as {example}") from None

    return JsonType({"format": format, "type": "string"}, read)


def _scalar_type(type: str, read: Read) -> JsonType:
    """Return the JSON type whose schema is only `{"type": ...}` with the given type name, and whose reader is
    `read`."""
    return JsonType({"type": type}, read)


ANYTHING = JsonType({}, copy_json)
NULL = _scalar_type("null", _read_null)
_PATH = _text_type(pathlib.Path, "path", pathlib.Path, "folder/file.txt")

_NETWORKS = {
    kind: _text_type(kind, kind.__name__.lower(), kind, example)
    for kind, example in {
        ipaddress.IPv4Network: "192.0.2.0/24",
        ipaddress.IPv6Network: "2001:db8::/32",
        ipaddress.IPv4Interface: "192.0.2.1/24",
        ipaddress.IPv6Interface: "2001:db8::1/32",
    }.items()
}

SCALARS: dict[Any, JsonType] = {
    Any: ANYTHING,
    object: ANYTHING,
    None: NULL,
    type(None): NULL,
    str: _scalar_type("string", _read_string),
    LiteralString: _scalar_type("string", _read_string),
    int: _scalar_type("integer", _read_integer),
    float: _scalar_type("number", _read_number),
    bool: _scalar_type("boolean", _read_boolean),
    bytes: JsonType({"format": "binary", "type": "string"}, _read_bytes),
    Decimal: JsonType({"anyOf": [{"type": "number"}, {"type": "string"}]}, _read_decimal),
    dt.date: _text_type(dt.date, "date", _parse_date, "2026-05-17"),
    dt.datetime: _text_type(dt.datetime, "date-time", _parse_date_time, "2026-05-17T09:30:00Z"),
    dt.time: _text_type(dt.time, "time", _parse_time, "09:30:00"),
    dt.timedelta: _text_type(dt.timedelta, "duration", _parse_duration, "P1DT2H30M"),
    uuid.UUID: _text_type(uuid.UUID, "uuid", uuid.UUID, "3f2b8c1e-5d4a-4c7e-9a61-0b8f2d7c6e5a"),
    pathlib.Path: _PATH,
    os.PathLike: _PATH,
    pathlib.PurePath: _text_type(pathlib.PurePath, "path", pathlib.PurePath, "folder/file.txt"),
    ipaddress.IPv4Address: _text_type(ipaddress.IPv4Address, "ipv4", ipaddress.IPv4Address, "192.0.2.1"),
    ipaddress.IPv6Address: _text_type(ipaddress.IPv6Address, "ipv6", ipaddress.IPv6Address, "2001:db8::1"),
    **_NETWORKS,
    re.Pattern: _text_type(re.Pattern, "regex", re.compile, "[a-z]+"),
}
