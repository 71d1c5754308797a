"""Convert any output of a tool to plain JSON data that can be encoded as UTF-8.

    plain(Weather(at=date(2026, 5, 17), wind=nan))    # {"at": "2026-05-17", "wind": "nan"}

Never raises: what has no JSON form becomes text, what refers to itself or is nested too deeply becomes a note."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

DEEPEST = 200
MOST_VALUES = 2_000_000
_LONG_NUMBER = 12_000  # bits: Python refuses to write longer ones in decimal
_TOO_DEEP = "[nested too deeply]"
_TOO_MANY = "[too many values]"
_ADDRESS = re.compile(r" at 0x[0-9a-f]{1,16}")  # the address in the `repr` of an object
_ITSELF = "[refers to itself]"


def plain(value: Any) -> Any:
    """Return any value as plain JSON data that can be encoded as UTF-8. Never raises."""
    return _Converter().convert(value, 0)


def comparable_text(value: Any) -> str:
    """Return a value as sorted JSON text without memory addresses, so that two processes can compare their values.
    Never raises for values of any type."""
    return _ADDRESS.sub(" at 0x", json.dumps(plain(value), sort_keys=True))


def replace_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined and each lone surrogate replaced by U+FFFD, so that UTF-8 can
    encode it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Converter:
    """Converts one value; counts the values, and tracks the containers that are being converted."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.left = MOST_VALUES

    def convert(self, value: Any, depth: int) -> Any:
        """Return a value at this nesting depth as JSON data. A float that is not finite becomes text, an integer that
        is too long hexadecimal text, a lone surrogate U+FFFD."""
        if isinstance(value, str):
            return replace_surrogates(str(value))
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            return value if value.bit_length() < _LONG_NUMBER else hex(value)
        if type(value) is float:
            return value if math.isfinite(value) else str(value)
        return self.convert_nested(value, depth)

    def convert_nested(self, value: Any, depth: int) -> Any:
        """Return a container or an object as JSON data. A text in brackets replaces one that is nested too deeply,
        contains itself, is beyond the limit of values, or cannot be converted. Never raises."""
        if depth >= DEEPEST:
            return _TOO_DEEP
        if id(value) in self.open:
            return _ITSELF
        self.left -= 1
        if self.left < 0:
            return _TOO_MANY
        self.open.add(id(value))
        try:
            return self.convert_container(value, depth + 1)
        except Exception:  # noqa: BLE001 - an object that cannot be converted is represented by its type
            return f"[{type(value).__name__}]"
        finally:
            self.open.discard(id(value))

    def convert_container(self, value: Any, depth: int) -> Any:
        """Return a mapping as an object, a sequence or set as a list, bytes as text; any other object is first
        converted by one step (`_convert_one_step`). `depth` is that of the items. Raises what the object's own code
        raises."""
        if isinstance(value, Mapping):
            return {replace_surrogates(str(key)): self.convert(item, depth) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.convert(item, depth) for item in value]
        if isinstance(value, (set, frozenset)):
            return [self.convert(item, depth) for item in sorted(value, key=repr)]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _bytes_to_text(bytes(value))
        return self.convert(_convert_one_step(value), depth)


def _bytes_to_text(value: bytes) -> str:
    """Return bytes decoded as UTF-8, or as Base64 if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _convert_one_step(value: Any) -> Any:
    """Return an object as something closer to JSON, which is to be converted further: a pydantic model as its JSON
    form, a `msgspec.Struct` or dataclass as a dict of its fields, others as what msgspec converts them to, or else as
    `str(value)`."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return value.model_dump(mode="json")
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    made = msgspec.to_builtins(value, enc_hook=str)
    return str(value) if made is value else made
