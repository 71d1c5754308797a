"""JSON as every client's line reader takes it: one line, whatever the text holds.

quoted("a\\u2028b") == b'"a\\\\u2028b"'        some readers (httpx's `iter_lines`) end a line at such characters
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def quoted(text: str) -> bytes:
    """A text as a JSON string."""
    if text.isascii():
        return _encode(text)
    return _on_one_line(_encoded_text(text))


def encoded(value: Any) -> bytes:
    """Any JSON value. Integers of any size are written, half a character becomes U+FFFD."""
    try:
        written = _encode(value)
    except (OverflowError, UnicodeEncodeError, TypeError):
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_raw)
        written = whole_characters(plain).encode()
    return written if written.isascii() else _on_one_line(written)


def _encoded_text(text: str) -> bytes:
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(whole_characters(text))


def whole_characters(text: str) -> str:
    """The text with its surrogates made characters again; half a one becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _on_one_line(written: bytes) -> bytes:
    for end, escape in _LINE_ENDS:
        if end in written:  # inside a string: nothing else of JSON holds such bytes
            written = written.replace(end, escape)
    return written


def _raw(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    raise TypeError(f"{type(value).__name__} is no JSON value")
