"""JSON that arrives in pieces: where a value ends, and what it holds.

The C scanner is tried once at the start of each value, which takes whole texts in one go. Where the value is not all
there yet, its end is found by brackets and strings alone, each character looked at once; then it is decoded whole.
Strict JSON: no NaN, no control characters in strings. Numbers keep their spelling in the text that goes with the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Cut, Sink, Steps
from rightcall.strict_json import Undecodable, decode_unique, is_deep, scan_unique
from rightcall.types import Arguments, Event

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import CallBuilder


# Outside strings. Letters are let through so that a value with Python's or JavaScript's words still has an end.
_ODD = r"\"{}\[\]<>'`()|;\x00-\x08\x0b\x0c\x0e-\x1f"
_LOOSE = re.compile(f"[^{_ODD}]*+").match
_SCALAR = re.compile(f"[^{_ODD},\\s]*+").match
_IN_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
STRING_RUN = _IN_STRING.match
_PLAIN = re.compile(rf'[^"\\\x00-\x1f]{{1,{MAX_PIECE}}}+').fullmatch
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"').match
_STRING_START = re.compile(
    r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z'
).match
# A number, or the beginning of a word that is a value in JSON, Python or JavaScript.
_WORDS = ("true", "false", "null", "nil", "none", "nan", "infinity", "undefined")
_STARTS = "|".join(sorted({word[:size] for word in _WORDS for size in range(1, len(word) + 1)}, key=len, reverse=True))
_MAY_GO_ON = re.compile(rf"[+-]?(?:[0-9.]|(?:{_STARTS})?\Z)", re.I).match
_CLOSERS = {"{": "}", "[": "]"}
MAX_KEY = 1024


class LostJsonEnd(Exception):
    """No end of the value can be found from here."""


def whole_value(p: CallBuilder) -> tuple[str, Any] | None:
    """The value that starts here, if all of it has arrived and no key stands in it twice: its exact text, and what it
    holds."""
    try:
        value, end = scan_unique(p.buf, p.pos)
    except (StopIteration, ValueError, RecursionError):
        return None
    # A number or a word may have more to come, or may be the beginning of something else. At the very end of the text
    # it may have been cut off.
    if p.buf[end - 1] not in '"}]' and (end == len(p.buf) or _SCALAR(p.buf, end).end() > end):  # type: ignore[union-attr]
        return None
    if is_deep(value, p.buf, p.pos, end, p.limits.depth):
        return None
    text = p.buf[p.pos : end]
    p.pos = end
    return text, value


def json_value(p: CallBuilder) -> Generator[None, None, tuple[str, Any]]:
    """One value, with `p.pos` at its first character: its exact text, and what it holds (or `Undecodable`).

    Raises `LostJsonEnd` where no end can be found, `Cut` where the text ends first.
    """
    found = whole_value(p)
    if found is not None:
        return found
    taken = p.capture()
    try:
        yield from skip_value(p)
    except (LostJsonEnd, Cut):
        p.drop(taken)
        raise
    text = p.release(taken)
    return text, decode_unique(text, p.limits.depth)[0]


def skip_value(p: CallBuilder) -> Generator[None, None, None]:
    """Takes one value, by its brackets and strings."""
    char = p.buf[p.pos]
    if char == '"':
        p.pos += 1
        yield from skip_string(p)
    elif char in "[{":
        yield from skip_nested(p, [])
    else:
        start = p.base + p.pos
        yield from skip_scalar(p)
        if p.base + p.pos == start:
            raise LostJsonEnd


def skip_scalar(p: CallBuilder) -> Generator[None, None, None]:
    """Takes a number or a word. Where the text ends with it, it was cut off, unless it is no word of JSON at all."""
    taken = p.capture()
    try:
        while True:
            p.pos = _SCALAR(p.buf, p.pos).end()  # type: ignore[union-attr]
            if p.pos < len(p.buf):
                return
            if p.ended and not _MAY_GO_ON(p.captured(taken)):
                return
            if p.ended:
                raise Cut
            yield
    finally:
        p.drop(taken)


def skip_nested(p: CallBuilder, stack: list[str]) -> Generator[None, None, None]:
    """Takes everything to the bracket that closes the outermost; `stack` holds the closers of those already open."""
    while True:
        buf, pos, size = p.buf, p.pos, len(p.buf)
        while pos < size:
            pos = _LOOSE(buf, pos).end()  # type: ignore[union-attr]
            if pos == size:
                break
            char = buf[pos]
            if char == '"':
                whole = _STRING(buf, pos)
                if whole is None:
                    p.pos = pos + 1
                    yield from skip_string(p)
                    buf, pos, size = p.buf, p.pos, len(p.buf)
                    continue
                pos = whole.end()
            elif char in _CLOSERS:
                stack.append(_CLOSERS[char])
                pos += 1
            elif stack and char == stack[-1]:
                stack.pop()
                pos += 1
                if not stack:
                    p.pos = pos
                    return
            else:
                p.pos = pos
                raise LostJsonEnd
        p.pos = pos
        if p.ended:
            raise Cut
        yield


class Preview(Protocol):
    """Emits argument JSON while it arrives."""

    def flush(self) -> None:
        """Emit what was taken since the last call."""

    def record(self, text: str) -> None:
        """Account for text that a sink has emitted."""


def skip_string(p: CallBuilder, preview: Preview | None = None) -> Generator[None, None, None]:
    """Take the rest of a string with its closing quote; `p.pos` is inside it."""
    sink: Sink | None = None
    while True:
        p.pos = pos = STRING_RUN(p.buf, p.pos).end()  # type: ignore[union-attr]
        if preview is not None:
            preview.flush()
        if pos < len(p.buf):
            if p.buf[pos] == '"':
                p.pos += 1
                return
            if not escape_pending(p.buf, pos):
                raise LostJsonEnd
        if p.ended:
            raise Cut
        sink = sink or _string_sink(p, live=preview is not None)
        p.listen(sink, None if preview is None else preview.record)
        yield
        p.sink = None


def _string_sink(p: CallBuilder, *, live: bool) -> Sink:
    """Consume what arrives inside a string."""
    consumed, run, is_plain, index = p.consumed, STRING_RUN, _PLAIN, p.call.index if p.call is not None else 0

    def sink(piece: str) -> list[Event] | None:
        if len(consumed) >= MAX_PIECES:
            return None
        if not p.buf and is_plain(piece):
            consumed.append(piece)
            return [Arguments(index, piece)] if live else []
        text = p.buf + piece
        end = run(text).end()  # type: ignore[union-attr]
        if len(piece) > MAX_PIECE or (end < len(text) and not escape_pending(text, end)):
            return None
        p.buf = text[end:]
        if not end:
            return []
        consumed.append(text[:end])
        return [Arguments(index, text[:end])] if live else []

    return sink


_ESCAPE_START = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match


def escape_pending(buf: str, pos: int) -> bool:
    """Is this the beginning of an escape whose rest has not arrived?"""
    return _ESCAPE_START(buf, pos) is not None


def json_string(p: CallBuilder) -> Generator[None, None, str | None]:
    """A short string, decoded (a key or a name), with `p.pos` at its quote; None if it is no string or too long."""
    while True:
        found = _STRING(p.buf, p.pos)
        if found is None and _STRING_START(p.buf, p.pos) and len(p.buf) - p.pos <= MAX_KEY:
            if p.ended:
                raise Cut
            yield
            continue
        if found is None or found.end() - p.pos > MAX_KEY:
            return None
        p.pos = found.end()
        text = found.group(1)
        return text if "\\" not in text else str(json.loads(f'"{text}"'))


# -- the arguments of a call -------------------------------------------------------------------------------------------


class _Pending:
    """The argument text that was taken and not emitted yet."""

    def __init__(self, builder: CallBuilder) -> None:
        self._builder, self.start = builder, builder.capture()

    def flush(self) -> None:
        text = self._builder.captured(self.start)
        self.start = self._builder.at
        if text:
            self._builder.give(text)

    def record(self, text: str) -> None:
        self._builder.record_given(text)
        self.start += len(text)


def read_arguments(p: CallBuilder) -> Steps[Any]:
    """The argument value of a call that has begun. Gives what it holds, or the class `Undecodable` for "decode it"."""
    p.args_at = p.base + p.pos
    found = whole_value(p)
    assert p.call is not None
    if found is not None:
        # What is no object may still be decoded or refused: it is not final.
        p.give(found[0]) if type(found[1]) is dict else p.call.parts.append(found[0])
        return found[1]
    pending = _Pending(p)
    is_object = p.buf[p.pos] == "{"
    try:
        if p.live and is_object:
            yield from _object(p, pending)
        else:
            yield from skip_value(p)
    except (LostJsonEnd, Cut) as lost:
        p.pos = len(p.buf) if isinstance(lost, Cut) else p.pos
        # Kept with the call, but never given out: it is not known to be final.
        p.call.parts.append(p.release(pending.start))
        raise
    text = p.release(pending.start)
    p.give(text) if is_object else p.call.parts.append(text)
    return Undecodable


def _object(p: CallBuilder, pending: _Pending) -> Steps[None]:
    p.pos += 1
    while True:
        char = yield from p.peek()
        if char == '"' and (yield from _member(p, pending)):
            char = yield from p.peek()
        if not char:
            raise Cut
        if char != ",":
            break
        p.pos += 1
        pending.flush()
    # The closing brace, or something odd: then the end is found as it is without looking inside.
    yield from skip_nested(p, ["}"])


def _member(p: CallBuilder, pending: _Pending) -> Steps[bool]:
    """A key and its value; False if what is here is neither, and nothing odd was taken."""
    key = yield from json_string(p)
    if key is None:
        return False
    char = yield from p.peek()
    if char == ":":
        p.pos += 1
        char = yield from p.peek()
    if not char:
        raise Cut
    if char == '"' and p.kind(key) == "plain":
        p.pos += 1
        yield from skip_string(p, pending)
    elif char in '"[{':
        yield from skip_value(p)
    else:
        yield from skip_scalar(p)
    return True
