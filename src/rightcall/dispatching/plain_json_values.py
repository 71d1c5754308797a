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
_LONG_NUMBER = 12_000  # bits: Python writes no longer ones in decimal
_TOO_DEEP = "[nested too deeply]"
_TOO_MANY = "[too many values]"
_PLACE = re.compile(r" at 0x[0-9a-f]{1,16}")  # where an object lies, in what Python says of it
_ITSELF = "[refers to itself]"


def plain(value: Any) -> Any:
    """Convert a value to plain JSON data."""
    return _Plain().of(value, 0)


def comparable_text(value: Any) -> str:
    """Return a value as text by which two processes can compare their values."""
    return _PLACE.sub(" at 0x", json.dumps(plain(value), sort_keys=True))


def clean(text: str) -> str:
    """Return the text with U+FFFD for what UTF-8 cannot encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Plain:
    """Converts one value; counts the values, and knows the containers that are open."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.left = MOST_VALUES

    def of(self, value: Any, depth: int) -> Any:
        """Convert a value; scalars here, everything else by `inside`."""
        if isinstance(value, str):
            return clean(str(value))
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            return value if value.bit_length() < _LONG_NUMBER else hex(value)
        if type(value) is float:
            return value if math.isfinite(value) else str(value)
        return self.inside(value, depth)

    def inside(self, value: Any, depth: int) -> Any:
        """Convert a container or an object; a note in its place if it is too deep, too large or inside itself."""
        if depth >= DEEPEST:
            return _TOO_DEEP
        if id(value) in self.open:
            return _ITSELF
        self.left -= 1
        if self.left < 0:
            return _TOO_MANY
        self.open.add(id(value))
        try:
            return self.container(value, depth + 1)
        except Exception:  # noqa: BLE001 - an object that cannot be taken apart is told by its type
            return f"[{type(value).__name__}]"
        finally:
            self.open.discard(id(value))

    def container(self, value: Any, depth: int) -> Any:
        """Convert the items of a container, or an object by one step towards JSON."""
        if isinstance(value, Mapping):
            return {clean(str(key)): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(item, depth) for item in value]
        if isinstance(value, (set, frozenset)):
            return [self.of(item, depth) for item in sorted(value, key=repr)]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _bytes(bytes(value))
        return self.of(_simpler(value), depth)


def _bytes(value: bytes) -> str:
    """Return bytes as text: UTF-8, else Base64."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _simpler(value: Any) -> Any:
    """Convert an object by one step towards JSON: its fields, what msgspec makes of it, or its text."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return value.model_dump(mode="json")
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    made = msgspec.to_builtins(value, enc_hook=str)
    return str(value) if made is value else made
