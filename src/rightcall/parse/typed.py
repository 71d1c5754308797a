"""A bare text and the kind its schema asks for, turned into a value."""

from __future__ import annotations

import json as stdlib
import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.repair.literals import BadLiteral, literal_value
from rightcall.strict_json import Undecodable, decode

_JSON_STARTS = frozenset('-0123456789"[{tfn')
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})").fullmatch


def to_json(value: Any) -> str:
    """Compact enough to read, never reformatting text: what goes out where the source was not JSON."""
    return stdlib.dumps(value, ensure_ascii=False)


def typed(text: str, kind: str, depth: int) -> tuple[str, Any, str]:
    """JSON text, value, and what is wrong (or ""). `kind` is one of `declare.kinds.Kind`."""
    if kind == "plain" or kind == "string" or (kind == "nullable" and text not in ("null", "None")):
        return quoted(text), text, ""
    if kind == "nullable":
        return "null", None, ""
    if kind == "json" and _INTEGER(text):
        return text, int(text), ""
    source = text.strip(" \t\r\n")
    if kind == "any" and source[:1] not in _JSON_STARTS:
        return quoted(text), text, ""
    value = decode(source, depth) if source else Undecodable("invalid_json", "")
    if not isinstance(value, Undecodable):
        return source, value, ""
    if kind == "any":
        return quoted(text), text, ""
    try:
        value = literal_value(source, depth)
    except BadLiteral:
        value = source
    if isinstance(value, str):
        return quoted(text), text, f"{text[:60]!r} is not of the declared type; send it as JSON"
    return to_json(value), value, ""
