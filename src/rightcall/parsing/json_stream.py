"""JSON values that arrive in pieces: find where a value ends, decode it, and emit the arguments of an open call.

At the start of each value the C scanner is tried once, which decodes values that have arrived whole. If the value has
not, its end is found by brackets and strings alone, each character inspected once; then the whole text is decoded.
Strict JSON: no NaN, no control characters in strings. Numbers keep their spelling in the text of the value.

When live, the members of an argument object are emitted as they become final: a string while it arrives if its key is
declared as a plain string, any other value when it is whole. The emitted pieces are slices of the source, so that the
pieces joined are the arguments exactly as sent.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Cut, Sink, Steps
from rightcall.strict_json import Undecodable, decode_unique, is_deep, scan_unique
from rightcall.types import Arguments, Event

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import CallBuilder

# Outside strings. Letters are accepted so that a value with Python's or JavaScript's words still has an end.
_ODD = r"\"{}\[\]<>'`()|;\x00-\x08\x0b\x0c\x0e-\x1f"
_SKIP_TO_ODD = re.compile(f"[^{_ODD}]*+").match
_SCALAR = re.compile(f"[^{_ODD},\\s]*+").match
_CHARACTERS = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'  # of a string
_STRING_RUN = re.compile(_CHARACTERS).match
_PLAIN = re.compile(rf'[^"\\\x00-\x1f]{{1,{MAX_PIECE}}}+').fullmatch
_STRING = re.compile(rf'"({_CHARACTERS})"').match
_STRING_START = re.compile(rf'"{_CHARACTERS}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?\Z').match
_ESCAPE_START = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match  # an escape whose remainder has not arrived
# A number, or the beginning of a word that is a value in JSON, Python or JavaScript.
_WORDS = ("true", "false", "null", "nil", "none", "nan", "infinity", "undefined")
_STARTS = "|".join(sorted({word[:size] for word in _WORDS for size in range(1, len(word) + 1)}, key=len, reverse=True))
_MAY_GO_ON = re.compile(rf"[+-]?(?:[0-9.]|(?:{_STARTS})?\Z)", re.I).match
_CLOSERS = {"{": "}", "[": "]"}
_MAX_KEY = 1024


class LostJsonEnd(Exception):
    """The end of the value cannot be found from here."""


def whole_value(builder: CallBuilder) -> tuple[str, Any] | None:
    """Take the value that starts here and return its exact text and its content.

    Return None and take nothing if it has not arrived whole, is nested too deep, or holds a key twice.
    """
    buf, start = builder.buf, builder.pos
    try:
        value, end = scan_unique(buf, start)
    except (StopIteration, ValueError, RecursionError):
        return None
    # A number or a word may have more to come, or may be the beginning of something else. At the very end of the text
    # it may be truncated.
    if buf[end - 1] not in '"}]' and (end == len(buf) or _SCALAR(buf, end).end() > end):  # type: ignore[union-attr]
        return None
    if is_deep(value, buf, start, end, builder.limits.depth):
        return None
    builder.advance(end - start)
    return buf[start:end], value


def json_value(builder: CallBuilder) -> Steps[tuple[str, Any]]:
    """Take one value and return its exact text and its content, or `Undecodable` as the content.

    Raise `LostJsonEnd` if no end can be found, `Cut` if the text ends first.
    """
    found = whole_value(builder)
    if found is not None:
        return found
    taken = builder.capture()
    try:
        yield from skip_value(builder)
    except (LostJsonEnd, Cut):
        builder.drop(taken)
        raise
    text = builder.release(taken)
    return text, decode_unique(text, builder.limits.depth)[0]


def skip_value(builder: CallBuilder) -> Steps[None]:
    """Take one value, by its brackets and strings."""
    char = builder.buf[builder.pos]
    if char == '"':
        builder.advance()
        yield from _skip_string(builder)
    elif char in _CLOSERS:
        yield from skip_nested(builder, [])
    else:
        start = builder.at
        yield from _skip_scalar(builder)
        if builder.at == start:
            raise LostJsonEnd


def _skip_scalar(builder: CallBuilder) -> Steps[None]:
    """Take a number or a word. Raise `Cut` if the text ends with it, unless it is no word of JSON at all."""
    taken = builder.capture()
    try:
        while True:
            builder.take_match(_SCALAR(builder.buf, builder.pos))
            if builder.pos < len(builder.buf):
                return
            if builder.ended and not _MAY_GO_ON(builder.captured(taken)):
                return
            if builder.ended:
                raise Cut
            yield
    finally:
        builder.drop(taken)


def skip_nested(builder: CallBuilder, closers: list[str]) -> Steps[None]:
    """Take everything up to the bracket that closes the outermost; `closers` are those of the brackets already open."""
    while True:
        buf, pos, size = builder.buf, builder.pos, len(builder.buf)
        while pos < size:
            pos = _SKIP_TO_ODD(buf, pos).end()  # type: ignore[union-attr]
            if pos == size:
                break
            char = buf[pos]
            if char == '"':
                whole = _STRING(buf, pos)
                if whole is None:
                    builder.advance(pos + 1 - builder.pos)
                    yield from _skip_string(builder)
                    buf, pos, size = builder.buf, builder.pos, len(builder.buf)
                    continue
                pos = whole.end()
            elif char in _CLOSERS:
                closers.append(_CLOSERS[char])
                pos += 1
            elif closers and char == closers[-1]:
                closers.pop()
                pos += 1
                if not closers:
                    builder.advance(pos - builder.pos)
                    return
            else:
                builder.advance(pos - builder.pos)
                raise LostJsonEnd
        builder.advance(pos - builder.pos)
        if builder.ended:
            raise Cut
        yield


def _skip_string(builder: CallBuilder, preview: _Preview | None = None) -> Steps[None]:
    """Take the remainder of a string with its closing quote. With `preview` it is emitted while it arrives."""
    sink: Sink | None = None
    while True:
        found = _STRING_RUN(builder.buf, builder.pos)
        builder.take_match(found)
        if preview is not None:
            preview.emit()
        if builder.pos < len(builder.buf):
            if builder.buf[builder.pos] == '"':
                builder.advance()
                return
            if not _ESCAPE_START(builder.buf, builder.pos):
                raise LostJsonEnd
        if builder.ended:
            raise Cut
        sink = sink or _string_sink(builder, live=preview is not None)
        builder.listen(sink, None if preview is None else preview.record)
        yield


def _string_sink(builder: CallBuilder, *, live: bool) -> Sink:
    """Return a sink that consumes the pieces of a string until a quote or a broken escape arrives."""
    consumed, index = builder.consumed, builder.call.index if builder.call is not None else 0

    def consume(piece: str) -> list[Event] | None:
        if len(consumed) >= MAX_PIECES:
            return None
        if not builder.buf and _PLAIN(piece):
            consumed.append(piece)
            return [Arguments(index, piece)] if live else []
        text = builder.buf + piece
        end = _STRING_RUN(text).end()  # type: ignore[union-attr]
        if len(piece) > MAX_PIECE or (end < len(text) and not _ESCAPE_START(text, end)):
            return None
        builder.consume(text, end)
        return [Arguments(index, text[:end])] if live and end else []

    return consume


def json_string(builder: CallBuilder) -> Steps[str | None]:
    """Take a short string, such as a key or a name, and return it decoded; None if it is no string or too long."""
    while True:
        found = _STRING(builder.buf, builder.pos)
        if found is None and _STRING_START(builder.buf, builder.pos) and len(builder.buf) - builder.pos <= _MAX_KEY:
            if builder.ended:
                raise Cut
            yield
            continue
        if found is None or found.end() - builder.pos > _MAX_KEY:
            return None
        builder.take_match(found)
        text = found.group(1)
        return text if "\\" not in text else str(json.loads(f'"{text}"'))


# -- the arguments of a call -------------------------------------------------------------------------------------------


def read_arguments(builder: CallBuilder) -> Steps[Any]:
    """Take the argument value of the current call. Return its content, or the class `Undecodable` if the text must
    still be decoded or repaired."""
    builder.begin_arguments()
    call = builder.call
    assert call is not None
    found = whole_value(builder)
    if found is not None:
        # What is no object may still be decoded or rejected: it is not final.
        builder.give(found[0]) if type(found[1]) is dict else call.parts.append(found[0])
        return found[1]
    is_object = builder.buf[builder.pos] == "{"
    preview: _Preview | None = None
    taken = builder.capture()
    try:
        if not is_object:
            yield from skip_value(builder)
        elif not builder.live:
            yield from skip_nested(builder, [])
        else:
            preview = _Preview(builder, taken)
            yield from preview.read_object()
    except (LostJsonEnd, Cut) as lost:
        if isinstance(lost, Cut):
            builder.take_all()
        # Kept with the call, but never emitted: it is not known to be final.
        call.parts.append(builder.release(taken if preview is None else preview.start))
        raise
    text = builder.release(taken if preview is None else preview.start)
    if not is_object:
        call.parts.append(text)
        return Undecodable
    builder.give(text)
    value, repeated = decode_unique("".join(call.parts), builder.limits.depth)
    return value if type(value) is dict and not repeated else Undecodable


class _Preview:
    """Emits the members of an argument object while it arrives. `start`: where the text begins that is not emitted."""

    def __init__(self, builder: CallBuilder, start: int) -> None:
        self._builder, self.start = builder, start

    def emit(self) -> None:
        """Emit what was taken since the last time."""
        text = self._builder.captured(self.start)
        self.start = self._builder.at
        if text:
            self._builder.give(text)

    def record(self, text: str) -> None:
        """Account for text that a sink has emitted."""
        self._builder.record_given(text)
        self.start += len(text)

    def read_object(self) -> Steps[None]:
        """Take the object that begins here, and emit each member when it is whole."""
        builder = self._builder
        builder.advance()
        while True:
            char = yield from builder.peek()
            if char == '"' and (yield from self._read_member()):
                char = yield from builder.peek()
            if not char:
                raise Cut
            if char != ",":
                break
            builder.advance()
            self.emit()
        # The closing brace, or something odd: then the end is found as it is without looking inside.
        yield from skip_nested(builder, ["}"])

    def _read_member(self) -> Steps[bool]:
        """Take a key and its value. Return False if a key is not what is here; then nothing odd was taken."""
        builder = self._builder
        key = yield from json_string(builder)
        if key is None:
            return False
        char = yield from builder.peek()
        if char == ":":
            builder.advance()
            char = yield from builder.peek()
        if not char:
            raise Cut
        if char == '"' and builder.kind(key) == "plain":
            builder.advance()
            yield from _skip_string(builder, self)
        elif char in '"[{':
            yield from skip_value(builder)
        else:
            yield from _skip_scalar(builder)
        return True
