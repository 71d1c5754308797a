"""How each body kind writes one call: the counterpart of the readers."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Params, Pythonic, TsCall, alternatives, escaped
from rightcall.types import Call
from rightcall.values.strings import closing


def write_arguments(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def write_call(body: Body, call: Call, arguments: str, index: int) -> str:
    """The text of one call. `arguments` is their JSON, `index` the call's place in the reply."""
    if isinstance(body, Envelope):
        return _envelope(body, call, arguments, index)
    if isinstance(body, NameThenJson):
        return _fill(body.open, call, index) + arguments + _first(body.close)
    if isinstance(body, Params):
        inside = "".join([_param(body, key, value) for key, value in call.arguments.items()])
        named = msgspec.structs.replace(call, name=escaped(body, call.name)) if body.escapes else call
        return _fill(body.open, named, index) + inside + _first(body.close)
    if isinstance(body, Pythonic):
        return f"{call.name}({', '.join([f'{key}={_python(value)}' for key, value in call.arguments.items()])})"
    if isinstance(body, TsCall):
        return f"{call.name}({ts_literal(call.arguments)})"
    return _fill(body.open, call, index) + _braced(body, call.arguments)


def _first(marker: str | tuple[str, ...]) -> str:
    return alternatives(marker)[0]


def _fill(marker: str | tuple[str, ...], call: Call, index: int) -> str:
    text = _first(marker).replace("{name}", call.name).replace("{id}", call.id or f"call_{index}")
    return text.replace("{index}", str(index)).replace("{number}", str(index + 1))


def _envelope(body: Envelope, call: Call, arguments: str, index: int) -> str:
    name = write_arguments(call.name)
    if not body.names:
        return f"{{{name}: {arguments}}}"
    fields = [f'"{body.names[0]}": {name}', f'"{body.args[0]}": {arguments}']
    if body.write_id:
        id = f'"{body.ids[0]}": {write_arguments(call.id or str(index))}'
        fields = [id, *fields] if body.write_id == "first" else [*fields, id]
    return "{" + ", ".join(fields) + "}"


def _param(body: Params, key: str, value: Any) -> str:
    key = escaped(body, key)
    opener = _first(body.param).replace("{type}", _type(body, value)).replace("{key}", key)
    close = _first(body.value_close).replace("{key}", key)
    if isinstance(value, str):
        tag = close.strip()
        quote = body.quote if body.quote and tag and tag in value else ("", "")
        return opener + quote[0] + value + quote[1] + close
    if body.item and isinstance(value, (dict, list)) and value:
        entries = value.items() if isinstance(value, dict) else [(body.item, item) for item in value]
        return opener + "".join([_param(body, k, v) for k, v in entries]) + close
    return opener + ("" if body.item and value in ({}, []) else write_arguments(value)) + close


_JSON_TYPES = {bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null"}


def _type(body: Params, value: Any) -> str:
    """What to write in a `{type}` hole."""
    wanted = "string" if isinstance(value, str) else "json"
    name = _JSON_TYPES.get(type(value), "string")
    if body.types.get(name) == wanted:
        return name
    return next((word for word, kind in body.types.items() if kind == wanted), "")


def _python(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join([_python(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{write_arguments(key)}: {_python(item)}" for key, item in value.items()]) + "}"
    return repr(value) if value is None or isinstance(value, bool) else write_arguments(value)


_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch


def ts_literal(value: Any) -> str:
    """A value as TypeScript writes it. A string of several lines is a heredoc, which needs no escapes."""
    if isinstance(value, dict):
        entries = [f"{key if _IDENTIFIER(key) else write_arguments(key)}: {ts_literal(v)}" for key, v in value.items()]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list):
        return "[" + ", ".join([ts_literal(item) for item in value]) + "]"
    if isinstance(value, str) and "\n" in value and not value.endswith("\r"):
        tag = _free_tag(value)
        return f"<<{tag}\n{value}\n{tag}"
    return write_arguments(value)


def _free_tag(text: str) -> str:
    """A tag that no line of the text begins with."""
    number = 1
    while closing(tag := f"EOF{number}" if number > 1 else "EOF").search(f"\n{text}\n"):
        number += 1
    return tag


def _braced(body: Braced, value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join([f"{key}:{_braced(body, item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_braced(body, item) for item in value]) + "]"
    return body.quote + value + body.quote if isinstance(value, str) else write_arguments(value)
