"""A bare text and the kind its schema asks for, turned into a value."""

from __future__ import annotations

import json as stdlib
import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.parsing.values.notation import PYTHON_LITERALS
from rightcall.parsing.values.value_reader import BadValue, Unfinished, ValueReader
from rightcall.strict_json import REFUSED, Undecodable, decode_unique

TEXT_KINDS = frozenset(("plain", "string", "nullable"))
_JSON_STARTS = frozenset('-0123456789"[{')
_WORDS = {"true": True, "false": False, "null": None}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})").fullmatch


def to_json(value: Any) -> str:
    """Compact enough to read, never reformatting text: what goes out where the source was not JSON."""
    return quoted(value) if isinstance(value, str) else stdlib.dumps(value, ensure_ascii=False)


Wrong = tuple[str, str]  # code and message


def typed(text: str, kind: str, depth: int) -> tuple[str, Any, Wrong | None]:
    """JSON text, value, and what is wrong with it. `kind` is one of `declare.kinds.Kind`."""
    if kind in TEXT_KINDS:
        is_null = kind == "nullable" and text in ("null", "None")
        return ("null", None, None) if is_null else (quoted(text), text, None)
    if kind == "json" and _INTEGER(text):
        return text, int(text), None
    source = text.strip(" \t\r\n")
    if source in _WORDS:
        return source, _WORDS[source], None
    if kind == "any" and source[:1] not in _JSON_STARTS:
        return quoted(text), text, None
    return _of_json(text, source, kind, depth)


def _of_json(text: str, source: str, kind: str, depth: int) -> tuple[str, Any, Wrong | None]:
    value = decode_unique(source, depth)[0] if source else Undecodable("invalid_json", "")
    if not isinstance(value, Undecodable):
        return source, value, None
    if value.code in REFUSED:
        return quoted(text), text, (value.code, value.message)
    return (quoted(text), text, None) if kind == "any" else _of_python(text, source, depth)


def _of_python(text: str, source: str, depth: int) -> tuple[str, Any, Wrong | None]:
    try:
        value = _literal(source, depth)
    except BadValue as bad:
        if bad.code in REFUSED:
            return quoted(text), text, (bad.code, bad.message)
        value = source
    if isinstance(value, str):
        return quoted(text), text, ("wrong_type", f"{text[:60]!r} is not of the declared type; send it as JSON")
    return to_json(value), value, None


def _literal(source: str, depth: int) -> Any:
    """The value of a text that is one literal of Python's; itself where it is more than that."""
    reader = ValueReader(PYTHON_LITERALS, source, depth=depth)
    try:
        value = reader.value()
        # A number in a spelling of its own may be a string without its quotes.
        is_odd = any(odd.text not in PYTHON_LITERALS.words for odd in reader.odd if odd.path)
        return source if is_odd or reader.escaped or reader.peek() else value
    except Unfinished:
        return source
