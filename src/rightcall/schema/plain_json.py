"""A schema as dicts, lists and scalars alone, whatever mappings and sequences it was written in.

plain({"type": str})  ->  {"type": "str"}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rightcall.json_pointer import step
from rightcall.schema.refusals import Refused
from rightcall.schema.tool_limits import MAX_DEPTH, MAX_SIZE

_LONGEST_INT = 14_000  # bits: beyond, Python does not write it as digits


def plain(value: Any) -> Any:
    """A copy made of dicts, lists and scalars alone, within the limits of depth and size. Raises `Refused`."""
    return _Copier().copy(value, "", 0)


class _Copier:
    def __init__(self) -> None:
        self.left = MAX_SIZE

    def copy(self, value: Any, path: str, depth: int) -> Any:
        self.spend(value, depth)
        if isinstance(value, Mapping):
            return {
                self.key(key, path): self.copy(_type_name(item) if key == "type" else item, path + step(key), depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.copy(item, path + step(at), depth + 1) for at, item in enumerate(value)]
        return _scalar(value, path)

    def spend(self, value: Any, depth: int) -> None:
        self.left -= 1 + (len(value) if isinstance(value, str) else 0)
        if self.left < 0:
            raise Refused("", f"the schema has more than {MAX_SIZE:,} characters", "declare a smaller one")
        if depth > MAX_DEPTH:
            raise Refused(
                "", f"the schema is nested deeper than {MAX_DEPTH} levels", "use $defs and $ref to flatten it"
            )

    def key(self, key: Any, path: str) -> str:
        if not isinstance(key, str):
            raise Refused(path, f"the key {key!r} is no string", "write it in quotes")
        self.left -= len(key)
        return key


def _scalar(value: Any, path: str) -> Any:
    if isinstance(value, int) and value.bit_length() > _LONGEST_INT:
        raise Refused(path, "a whole number of thousands of digits", "write a smaller one")
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    what = repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
    raise Refused(path, f"{what} is not JSON", "write a string, number, boolean, null, list or object")


def _type_name(said: Any) -> Any:
    """`{"type": str}`: who builds schemas in Python may write the class."""
    return said.__name__ if isinstance(said, type) else said
