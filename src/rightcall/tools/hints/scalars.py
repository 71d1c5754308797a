"""Annotations of single values: text, numbers, and what JSON writes as text in a format of its own.

date  ->  {"type": "string", "format": "date"}
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import pathlib
import re
import uuid
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, LiteralString

from rightcall.tools.hints.meaning import Meaning, Read, copied, invalid, wrong_type


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
