"""The text of a reply as it arrives: what has arrived, how much of it was taken, what must be kept, JSON values in it.

Rules for every reader of a buffer:
- A bare `yield` requests more text. An index into `buf` is invalid after it; `pos` and captures stay valid.
- Nothing is taken before its meaning is certain; text that was only looked at is given back (`give_back`).
- Every loop takes at least one character, yields or raises.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from rightcall.parsing.markers import Probe
from rightcall.parsing.options import Limits
from rightcall.strict_json import decode_unique, is_deep, scan_unique
from rightcall.types import Arguments, Event

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import ArgumentPreview


class NotACall(Exception):
    """The text that looked like the beginning of a call is text."""


class Broken(Exception):
    """The current call cannot be parsed any further."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def broken_by(error: Broken | RecursionError, depth: int) -> Broken:
    """Return the error itself if it is `Broken`; for a RecursionError, a new `Broken` that says that the nesting is
    deeper than `depth`."""
    if isinstance(error, Broken):
        return error
    return Broken("too_deep", f"the arguments are nested deeper than {depth} levels; send them flatter")


class Cut(Exception):
    """The text ended inside a call."""


class LostJsonEnd(Exception):
    """The end of a JSON value cannot be found from here."""


T = TypeVar("T")
Steps = Generator[None, None, T]
# Consumes one piece of a string without resuming its reader, and returns its events. None: nothing was consumed; the
# reader must parse the piece.
Sink = Callable[[str], "list[Event] | None"]
MAX_PIECES, MAX_PIECE = 256, 4_096  # how much a sink consumes between two commits: pieces, and characters of one
# The position at which a capture began, counted from the beginning of the text.
Capture = int
_BLANKS = re.compile(r"[ \t\r\n]*+").match

# -- patterns of JSON --
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


class Buffer:
    """`buf[pos:]` has arrived and was not taken yet; `base` is the length of the text before `buf`.

    - `ended`: no more text will arrive.
    - `sink`: consumes the next pieces in place of the reader; see `listen`.
    - `consumed`: the pieces that the sink consumed since the last `commit`.
    - `token_map`: which text arrived as special tokens; None if the caller did not say so.
    """

    __slots__ = (
        *("_captures", "_kept", "_record", "base", "buf", "consumed", "ended", "limits", "pos", "sink", "token_map"),
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.buf = ""
        self.pos = 0
        self.base = 0
        self.ended = False
        self.sink: Sink | None = None
        self.consumed: list[str] = []
        self.token_map: TokenMap | None = None
        self._record: Callable[[str], None] | None = None  # the reader's accounting for consumed text
        self._kept: list[str] = []  # text that was taken and left `buf`, while there is a capture
        self._captures = 0

    @property
    def at(self) -> int:
        """Return the position of `pos` in the whole text."""
        return self.base + self.pos

    # -- text that arrives ---------------------------------------------------------------------------------------------

    def append(self, text: str) -> None:
        """Add text that arrived, for the reader. Text that was taken leaves `buf`, so that `pos` is 0 and `base` grows,
        and the sink is removed. Captures keep their text."""
        self.sink = None
        pos = self.pos
        if pos:
            if self._captures:
                self._kept.append(self.buf[:pos])
            self.base += pos
            self.pos = 0
            self.buf = self.buf[pos:] + text if pos < len(self.buf) else text
        else:
            self.buf += text

    def end(self) -> None:
        """Record that no more text will arrive: account for what a sink consumed, and remove the sink."""
        self.commit()
        self.ended, self.sink = True, None

    def skip(self, text: str) -> None:
        """Append `text`, which another reader parses, as the last text, take everything that has arrived, and set
        `ended`. The sink is removed."""
        self.append(text)
        self.pos, self.ended = len(self.buf), True

    def start_behind(self, other: Buffer) -> str:
        """Set the position of this empty buffer to that of another one, and use its token map. Return the text that the
        other has not taken; it is not added to this buffer."""
        self.base, self.token_map = other.at, other.token_map
        return other.buf[other.pos :]

    def listen(self, sink: Sink, record: Callable[[str], None] | None = None) -> None:
        """Let `sink` consume the pieces that follow, until it returns None and the reader resumes. Text that was taken
        leaves `buf` first.

        A reader that waits inside a string calls this before its `yield`. The sink passes the text that it takes to
        `consume`, or appends it to `consumed`. `record` receives the consumed text at the next `commit`.
        """
        self.append("")
        self.sink, self._record = sink, record

    def consume(self, text: str, size: int) -> None:
        """Consume the first `size` characters of `text`, for a sink; the remainder becomes `buf`. `text` must be `buf`
        and the piece that has arrived behind it."""
        self.buf = text[size:]
        if size:
            self.consumed.append(text[:size])

    def commit(self) -> None:
        """Account for the text that a sink consumed: count it in `base`, keep it for captures and pass it to `record`
        of `listen`. Does nothing if none was consumed."""
        if not self.consumed:
            return
        text = "".join(self.consumed)
        self.consumed.clear()
        if self._captures:
            self._kept.append(text)
        self.base += len(text)
        if self._record is not None:
            self._record(text)

    # -- text that is looked at or taken -------------------------------------------------------------------------------

    def char(self) -> str:
        """Take blanks and return the next character, which is not taken; "" if it has not arrived.

        `builder.char() or (yield from builder.peek())` costs less than `peek` alone.
        """
        pos = self.pos
        if pos < len(self.buf):
            char = self.buf[pos]
            if char > " ":
                return char
            self.pos = pos = _BLANKS(self.buf, pos).end()  # type: ignore[union-attr]
            if pos < len(self.buf):
                return self.buf[pos]
        return ""

    def peek(self) -> Steps[str]:
        """Take blanks, waiting for text, and return the next character, which is not taken; "" at the end of the
        text."""
        while not (char := self.char()) and not self.ended:
            yield
        return char

    def test(self, probe: Probe, ahead: int = 0) -> Steps[re.Match[str] | None]:
        """Return the match of a probe `ahead` characters behind `pos`, or None; wait for text until that is decided.
        Nothing is taken."""
        while True:
            found = probe.at(self.buf, self.pos + ahead, self.ended)
            if found is not None:
                return found or None
            yield

    def advance(self, size: int = 1) -> None:
        """Take this many characters; give back as many if `size` is negative."""
        self.pos += size

    def take_match(self, found: re.Match[str] | None) -> None:
        """Take the text up to the end of a match in `buf`, which must not be None."""
        assert found is not None
        self.pos = found.end()

    def take_all(self) -> None:
        """Take all text that has arrived."""
        self.pos = len(self.buf)

    # -- text that is kept ---------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Keep the text from here on and return the capture, which `release`, `drop` or `give_back` must end. Captures
        may overlap."""
        self._captures += 1
        return self.base + self.pos

    def captured(self, start: Capture) -> str:
        """Return the text that was taken since the capture began, "" if none was. The capture goes on."""
        if start >= self.base:
            return self.buf[start - self.base : self.pos]
        kept, first, at = self._kept, len(self._kept), self.base
        while at > start and first:
            first -= 1
            at -= len(kept[first])
        kept[first:] = ["".join(kept[first:])]  # the next caller finds it in one piece
        return kept[first][max(0, start - at) :] + self.buf[: self.pos]

    def drop(self, start: Capture) -> None:
        """End a capture whose text is not needed any more. The text stays taken. With the last capture all kept text is
        forgotten."""
        self._captures -= 1
        if not self._captures:
            self._kept.clear()

    def give_back(self, start: Capture) -> None:
        """End a capture and move back to its start, so that its text is read again; text that had left `buf` returns to
        it."""
        size = self.base - start
        if size > 0:
            self.buf, self.base = self.captured(start) + self.buf[self.pos :], start
        self.pos = start - self.base
        while size > 0:
            piece = self._kept.pop()
            if size < len(piece):
                self._kept.append(piece[:-size])
            size -= len(piece)
        self.drop(start)

    def release(self, start: Capture) -> str:
        """End a capture and return its text, which stays taken."""
        text = self.captured(start)
        self.drop(start)
        return text

    # -- JSON values ---------------------------------------------------------------------------------------------------
    #
    # At the start of each value the C scanner is tried once, which decodes values that have arrived whole. Otherwise
    # the end of the value is found by brackets and strings alone, each character inspected once; then its whole text
    # is decoded. Strict JSON: no NaN, no control characters in strings. Numbers keep their spelling in the text.

    def take_whole_json(self) -> tuple[str, Any] | None:
        """Take the JSON value that starts here and return its exact text and its content.

        Return None and take nothing if it is invalid, has not arrived whole, is nested too deep, or has an object key
        twice. A number or a word counts only if a blank, a comma, a bracket or another sign follows that cannot be a
        part of it.
        """
        buf, start = self.buf, self.pos
        try:
            value, end = scan_unique(buf, start)
        except (StopIteration, ValueError, RecursionError):
            return None
        # A number or a word may have more to come, or may be the beginning of something else. At the very end of the
        # text it may be truncated.
        if buf[end - 1] not in '"}]' and (end == len(buf) or _SCALAR(buf, end).end() > end):  # type: ignore[union-attr]
            return None
        if is_deep(value, buf, start, end, self.limits.depth):
            return None
        self.pos = end
        return buf[start:end], value

    def take_json(self) -> Steps[tuple[str, Any]]:
        """Take one JSON value, of which one character must be here, waiting for its end, and return its exact text and
        its content: an `Undecodable`, which is not raised, if it is invalid JSON with an end, is nested too deep, or
        gives one key two different values.

        Raises `LostJsonEnd` if no value begins here or no end can be found, `Cut` if the text ends first; the text up
        to there stays taken.
        """
        found = self.take_whole_json()
        if found is not None:
            return found
        taken = self.capture()
        try:
            yield from self.skip_json()
        finally:
            text = self.release(taken)
        return text, decode_unique(text, self.limits.depth)[0]

    def take_json_string(self) -> Steps[str | None]:
        """Take a string of at most 1,024 characters with its quotes, such as a key or a name, and return it decoded.
        Return None and take nothing if no valid string begins here or it is longer. Raises `Cut`, with nothing taken,
        if the text ends in one that is not yet longer."""
        while True:
            found = _STRING(self.buf, self.pos)
            if found is None and _STRING_START(self.buf, self.pos) and len(self.buf) - self.pos <= _MAX_KEY:
                if self.ended:
                    raise Cut
                yield
                continue
            if found is None or found.end() - self.pos > _MAX_KEY:
                return None
            self.pos = found.end()
            text = found.group(1)
            return text if "\\" not in text else str(json.loads(f'"{text}"'))

    def skip_json(self) -> Steps[None]:
        """Take the JSON value that begins here, of which one character must be here, found by its brackets and strings
        alone, and not decoded. Raises `LostJsonEnd` if no value begins here or its end cannot be found, `Cut` if the
        text ends in it; the text up to there stays taken."""
        char = self.buf[self.pos]
        if char == '"':
            yield from self.skip_json_string()
        elif char in _CLOSERS:
            yield from self.skip_brackets([])
        else:
            start = self.at
            yield from self.skip_scalar()
            if self.at == start:
                raise LostJsonEnd

    def skip_scalar(self) -> Steps[None]:
        """Take characters up to one that cannot be in a number or a word; nothing if there are none. If the text ends
        with them, or before any, raises `Cut`, unless they cannot be a word or number of JSON, Python or JavaScript."""
        taken = self.capture()
        try:
            while True:
                self.pos = _SCALAR(self.buf, self.pos).end()  # type: ignore[union-attr]
                if self.pos < len(self.buf):
                    return
                if self.ended and not _MAY_GO_ON(self.captured(taken)):
                    return
                if self.ended:
                    raise Cut
                yield
        finally:
            self.drop(taken)

    def skip_brackets(self, closers: list[str]) -> Steps[None]:
        """Take everything up to and with the bracket that closes the outermost one. `closers`, which changes: the
        closing brackets of those that are open already; empty if the next bracket opens the outermost. Raises
        `LostJsonEnd` at a bracket that closes another one, or none, at a character that JSON has not and in an invalid
        string, `Cut` at the end of the text; the text up to there stays taken."""
        while True:
            buf, pos, size = self.buf, self.pos, len(self.buf)
            while pos < size:
                pos = _SKIP_TO_ODD(buf, pos).end()  # type: ignore[union-attr]
                if pos == size:
                    break
                char = buf[pos]
                if char == '"':
                    whole = _STRING(buf, pos)
                    if whole is None:
                        self.pos = pos
                        yield from self.skip_json_string()
                        buf, pos, size = self.buf, self.pos, len(self.buf)
                        continue
                    pos = whole.end()
                elif char in _CLOSERS:
                    closers.append(_CLOSERS[char])
                    pos += 1
                elif closers and char == closers[-1]:
                    closers.pop()
                    pos += 1
                    if not closers:
                        self.pos = pos
                        return
                else:
                    self.pos = pos
                    raise LostJsonEnd
            self.pos = pos
            if self.ended:
                raise Cut
            yield

    def skip_json_string(self, preview: ArgumentPreview | None = None) -> Steps[None]:
        """Take the string that begins here with its quotes, waiting for its end. With `preview` its text is emitted
        while it arrives, not its closing quote. Raises `LostJsonEnd` at a control character or an invalid escape in it,
        `Cut` if the text ends in it; the text up to there stays taken."""
        index, record = (None, None) if preview is None else (preview.index, preview.record)
        consumed = self.consumed

        def sink(piece: str) -> list[Event] | None:
            """Consume a piece of the string and return its preview events; None if the reader must resume: at a quote,
            an invalid escape, a piece that is too long, or after too many pieces."""
            if len(consumed) >= MAX_PIECES:
                return None
            if not self.buf and _PLAIN(piece):
                consumed.append(piece)
                return [Arguments(index, piece)] if index is not None else []
            text = self.buf + piece
            end = _STRING_RUN(text).end()  # type: ignore[union-attr]
            if len(piece) > MAX_PIECE or (end < len(text) and not _ESCAPE_START(text, end)):
                return None
            self.consume(text, end)
            return [Arguments(index, text[:end])] if end and index is not None else []

        self.pos += 1
        while True:
            self.pos = _STRING_RUN(self.buf, self.pos).end()  # type: ignore[union-attr]
            if preview is not None:
                preview.emit()
            if self.pos < len(self.buf):
                if self.buf[self.pos] == '"':
                    self.pos += 1
                    return
                if not _ESCAPE_START(self.buf, self.pos):
                    raise LostJsonEnd
            if self.ended:
                raise Cut
            self.listen(sink, record)
            yield

    # -- special tokens ------------------------------------------------------------------------------------------------

    def is_plain_text(self, start: int, end: int) -> bool:
        """Return whether `buf[start:end]` is known to be plain text, whatever its characters are; False if that is
        unknown."""
        return self.token_map is not None and self.token_map.has_token(self.base + start, self.base + end) is False

    def is_token(self, start: int, end: int) -> bool:
        """Return whether `buf[start:end]` is known to contain a special token; False if that is unknown."""
        return self.token_map is not None and self.token_map.has_token(self.base + start, self.base + end) is True


class TokenMap:
    """Which parts of a text are special tokens: runs of one token, of plain text, or of text of unknown kind."""

    __slots__ = ("_kinds", "_starts", "size")

    def __init__(self, unknown: int = 0) -> None:
        self.size = unknown  # the length of the text so far; nothing is known of the first characters
        self._starts = [0]
        self._kinds: list[bool | None] = [None]

    @staticmethod
    def of_plain_text(size: int) -> TokenMap:
        """Return the map of a text of this length that holds no special token."""
        made = TokenMap()
        made.append(size, False)
        return made

    def append(self, size: int, special: bool | None) -> None:
        """Add `size` characters: True for exactly one special token, False for plain text, None for text of unknown
        kind."""
        if special or self._kinds[-1] is not special:
            self._starts.append(self.size)
            self._kinds.append(special)
        self.size += size

    def has_token(self, start: int, end: int) -> bool | None:
        """Return whether a special token is in the text from `start` to `end`: True also if other text of it is
        unknown; None if some of it is unknown and the rest has none; else False."""
        first = max(0, bisect_right(self._starts, start) - 1)
        kinds = self._kinds[first : bisect_right(self._starts, max(start, end - 1))]
        return True if True in kinds else None if None in kinds else False

    def slice(self, start: int) -> TokenMap:
        """Return the map of the text from this position on."""
        rest = TokenMap()
        places = [*self._starts[1:], self.size]
        for kind, at, end in zip(self._kinds, self._starts, places, strict=True):
            if end > start:
                rest.append(end - max(at, start), kind)
        return rest
