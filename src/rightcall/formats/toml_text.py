"""A format written as the TOML that `format_from_toml` reads: only what differs from the defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from rightcall.formats.spec import Format
from rightcall.formats.special_tokens import tokens_of

_LONGEST = 60
_PLAIN = re.compile(r"[A-Za-z0-9_\-]+").fullmatch


def format_to_toml(format: Format) -> str:
    """The text of a file that defines this format. Its name and aliases must be its own to be read back."""
    plain = {key: value for key, value in _differing(format).items() if key not in ("body", "channels", "protocol")}
    tokens = tokens_of(format)
    lines = [_line(key, value) for key, value in {**plain, **({"special": tokens} if tokens else {})}.items()]
    for key in ("channels", "protocol"):
        table = getattr(format, key)
        lines += _tables(key, _differing(table)) if table is not None else []
    several = isinstance(format.body, tuple)
    for body in format.bodies:
        kind = {"kind": body.__struct_config__.tag}
        lines += _table("[[body]]" if several else "[body]", {**kind, **_differing(body)})
    return "".join(lines)


def _differing(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields that must be written: those without a default, and those that differ from it."""
    fields = msgspec.structs.fields(type(struct))
    return {field.name: getattr(struct, field.name) for field in fields if not _is_default(struct, field)}


def _is_default(struct: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    made = field.default_factory
    default = made() if callable(made) else field.default
    return not field.required and getattr(struct, field.name) == default


def _tables(name: str, values: Mapping[str, Any]) -> list[str]:
    """A table, and what is a table in it behind it."""
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = _table(f"[{name}]", {key: value for key, value in values.items() if key not in inner})
    return [*lines, *[line for key, value in inner.items() for line in _table(f"[{name}.{key}]", value)]]


def _table(head: str, values: Mapping[str, Any]) -> list[str]:
    return [f"\n{head}\n", *[_line(key, value) for key, value in values.items()]]


def _line(key: str, value: Any) -> str:
    """A key and its value; an array that makes it long has a line for each item."""
    name = key if _PLAIN(key) else _string(key)
    line = f"{name} = {_value(value)}\n"
    if len(line) <= _LONGEST or not isinstance(value, tuple | list):
        return line
    return f"{name} = [\n" + "".join([f"    {_value(item)},\n" for item in value]) + "]\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join([f"{_string(key)} = {_value(item)}" for key, item in value.items()]) + " }"
    if isinstance(value, tuple | list | frozenset | set):
        return "[" + ", ".join([_value(item) for item in value]) + "]"
    return str(value)


def _string(text: str) -> str:
    """A basic string; JSON's escapes are TOML's, and DEL must be one."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
