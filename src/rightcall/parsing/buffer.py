"""The text of a reply as it arrives: what has arrived, how much of it was taken, and what must be kept of it.

Rules for every reader of a buffer:
- A bare `yield` requests more text. An index into `buf` is invalid after it; `pos` and captures stay valid.
- Nothing is taken before its meaning is certain; text that was only looked at is given back (`give_back`).
- Every loop takes at least one character, yields or raises.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Generator
from typing import TypeVar

from rightcall.parsing.markers import Probe
from rightcall.types import Event


class NotACall(Exception):
    """The text that looked like the beginning of a call is text."""


class Broken(Exception):
    """The current call cannot be parsed any further."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def broken_by(error: Broken | RecursionError, depth: int) -> Broken:
    """Return the error, or the problem that a RecursionError means: nesting deeper than `depth`."""
    if isinstance(error, Broken):
        return error
    return Broken("too_deep", f"the arguments are nested deeper than {depth} levels; send them flatter")


class Cut(Exception):
    """The text ended inside a call."""


T = TypeVar("T")
Steps = Generator[None, None, T]
# Consumes one piece of a string without resuming its reader, and returns its events. None: nothing was consumed; the
# reader must parse the piece.
Sink = Callable[[str], "list[Event] | None"]
MAX_PIECES, MAX_PIECE = 256, 4_096  # how much a sink consumes between two commits: pieces, and characters of one
# The position at which a capture began, counted from the beginning of the text.
Capture = int
_BLANKS = re.compile(r"[ \t\r\n]*+").match


class Buffer:
    """`buf[pos:]` has arrived and was not taken yet; `base` is the length of the text before `buf`.

    - `ended`: no more text will arrive.
    - `sink`: consumes the next pieces in place of the reader; see `listen`.
    - `consumed`: the pieces that the sink consumed since the last `commit`.
    - `token_map`: which text arrived as special tokens; None if the caller did not say so.
    """

    __slots__ = ("_captures", "_kept", "_record", "base", "buf", "consumed", "ended", "pos", "sink", "token_map")

    def __init__(self) -> None:
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
        """The position of `pos` in the whole text."""
        return self.base + self.pos

    # -- text that arrives ---------------------------------------------------------------------------------------------

    def append(self, text: str) -> None:
        """Add text that arrived, for the reader: taken text leaves `buf`, and a sink no longer consumes."""
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
        """Note that no more text will arrive."""
        self.commit()
        self.ended, self.sink = True, None

    def skip(self, text: str) -> None:
        """Add the last text and take all of it: another reader parses it."""
        self.append(text)
        self.pos, self.ended = len(self.buf), True

    def start_behind(self, other: Buffer) -> str:
        """Continue at the position of another buffer, with its token map. Return the text that it has not taken."""
        self.base, self.token_map = other.at, other.token_map
        return other.buf[other.pos :]

    def listen(self, sink: Sink, record: Callable[[str], None] | None = None) -> None:
        """Let `sink` consume the pieces that follow, until it returns None and the reader resumes.

        A reader that waits inside a string calls this before its `yield`. The sink passes the text that it takes to
        `consume`, or appends it to `consumed`. `record` receives the consumed text at the next `commit`.
        """
        self.append("")
        self.sink, self._record = sink, record

    def consume(self, text: str, size: int) -> None:
        """Consume the first characters of a text that begins with `buf`, for a sink; the remainder waits in `buf`."""
        self.buf = text[size:]
        if size:
            self.consumed.append(text[:size])

    def commit(self) -> None:
        """Account for the text that a sink consumed. Before that, `base` and the captures do not include it."""
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
        """Return the next character that is not blank and take the blanks before it; "" if it has not arrived.

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
        """Wait for the next character that is not blank and take the blanks before it; "" at the end of the text."""
        while True:
            self.pos = pos = _BLANKS(self.buf, self.pos).end()  # type: ignore[union-attr]
            if pos < len(self.buf):
                return self.buf[pos]
            if self.ended:
                return ""
            yield

    def test(self, probe: Probe, ahead: int = 0) -> Steps[re.Match[str] | None]:
        """Match a probe `ahead` characters behind `pos`, waiting for text until it is decided. Take nothing."""
        while True:
            found = probe.at(self.buf, self.pos + ahead, self.ended)
            if found is not None:
                return found or None
            yield

    def advance(self, size: int = 1) -> None:
        """Take this many characters."""
        self.pos += size

    def take_match(self, found: re.Match[str] | None) -> None:
        """Take the text up to the end of a match in `buf`."""
        assert found is not None
        self.pos = found.end()

    def take_all(self) -> None:
        """Take all text that has arrived."""
        self.pos = len(self.buf)

    # -- text that is kept ---------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """Keep the text from here on, until the capture is released or dropped."""
        self._captures += 1
        return self.base + self.pos

    def captured(self, start: Capture) -> str:
        """Return the text that was taken since the capture."""
        if start >= self.base:
            return self.buf[start - self.base : self.pos]
        kept, first, at = self._kept, len(self._kept), self.base
        while at > start and first:
            first -= 1
            at -= len(kept[first])
        kept[first:] = ["".join(kept[first:])]  # the next caller finds it in one piece
        return kept[first][max(0, start - at) :] + self.buf[: self.pos]

    def drop(self, start: Capture) -> None:
        """End a capture whose text is not needed any more."""
        self._captures -= 1
        if not self._captures:
            self._kept.clear()

    def give_back(self, start: Capture) -> None:
        """End a capture and move back to its start: the text was only looked at."""
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
        """End a capture and return its text."""
        text = self.captured(start)
        self.drop(start)
        return text

    # -- special tokens ------------------------------------------------------------------------------------------------

    def is_plain_text(self, start: int, end: int) -> bool:
        """Return whether this part of `buf` is known to be plain text, whatever its characters are."""
        return self.token_map is not None and self.token_map.has_token(self.base + start, self.base + end) is False

    def is_token(self, start: int, end: int) -> bool:
        """Return whether this part of `buf` is known to be a special token."""
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
        """Add text of this length: one special token, plain text, or (None) text of unknown kind."""
        if special or self._kinds[-1] is not special:
            self._starts.append(self.size)
            self._kinds.append(special)
        self.size += size

    def has_token(self, start: int, end: int) -> bool | None:
        """Return whether a special token is in this part of the text; None if that is unknown."""
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
