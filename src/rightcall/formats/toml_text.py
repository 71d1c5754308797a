"""Write a format as the TOML that `format_from_toml` reads: only the fields that differ from their defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from rightcall.formats.spec import Format
from rightcall.formats.special_tokens import special_tokens

_LONGEST = 60
_PLAIN = re.compile(r"[A-Za-z0-9_\-]+").fullmatch


def format_to_toml(format: Format) -> str:
    """Return the text of a file that defines this format. It can be read back unless its name or an alias is built
    in."""
    plain = {
        key: value for key, value in _changed_fields(format).items() if key not in ("body", "channels", "protocol")
    }
    tokens = special_tokens(format)
    lines = [_write_line(key, value) for key, value in {**plain, **({"special": tokens} if tokens else {})}.items()]
    for key in ("channels", "protocol"):
        table = getattr(format, key)
        lines += _write_tables(key, _changed_fields(table)) if table is not None else []
    several = isinstance(format.body, tuple)
    for body in format.bodies:
        kind = {"kind": body.__struct_config__.tag}
        lines += _write_table("[[body]]" if several else "[body]", {**kind, **_changed_fields(body)})
    return "".join(lines)


def _changed_fields(struct: msgspec.Struct) -> dict[str, Any]:
    """Return, by name, the fields of a struct that have no default, and those that differ from it."""
    fields = msgspec.structs.fields(type(struct))
    return {field.name: getattr(struct, field.name) for field in fields if not _is_default(struct, field)}


def _is_default(struct: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    """Return whether a field of the struct is optional and has its default value."""
    made = field.default_factory
    default = made() if callable(made) else field.default
    return not field.required and getattr(struct, field.name) == default


def _write_tables(name: str, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table named `name`, followed by those of the tables in its values."""
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = _write_table(f"[{name}]", {key: value for key, value in values.items() if key not in inner})
    return [*lines, *[line for key, value in inner.items() for line in _write_table(f"[{name}.{key}]", value)]]


def _write_table(head: str, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of one table: an empty line, its head (`[body]`), and a line for each value."""
    return [f"\n{head}\n", *[_write_line(key, value) for key, value in values.items()]]


def _write_line(key: str, value: Any) -> str:
    """Return the line of a key and its value; a long array is written with one item per line."""
    name = key if _PLAIN(key) else _write_string(key)
    line = f"{name} = {_write_value(value)}\n"
    if len(line) <= _LONGEST or not isinstance(value, tuple | list):
        return line
    return f"{name} = [\n" + "".join([f"    {_write_value(item)},\n" for item in value]) + "]\n"


def _write_value(value: Any) -> str:
    """Return a string, bool, number, mapping or sequence in TOML notation, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _write_string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join([f"{_write_string(key)} = {_write_value(item)}" for key, item in value.items()]) + " }"
    if isinstance(value, tuple | list | frozenset | set):
        return "[" + ", ".join([_write_value(item) for item in value]) + "]"
    return str(value)


def _write_string(text: str) -> str:
    """Return a text as a basic string of TOML, in quotes. The escapes of JSON are valid in TOML; only DEL must be
    escaped in addition."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
