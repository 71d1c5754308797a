"""The text of a reply as it arrives: what is there, how far it was taken, and what must be remembered of it.

Rules for everybody who reads from it:
- A bare `yield` means: more text, please. An index into `buf` does not survive it; `pos` and captures do.
- Nothing is taken before it is certain; what is only looked at is given back (`give_back`).
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
    """What looked like the beginning of a call is text."""


class Broken(Exception):
    """The call that has begun cannot be read any further."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def too_deep(depth: int) -> Broken:
    return Broken("too_deep", f"the arguments are nested deeper than {depth} levels; send them flatter")


def broken_by(error: Broken | RecursionError, depth: int) -> Broken:
    return error if isinstance(error, Broken) else too_deep(depth)


class Cut(Exception):
    """The text ended inside a call."""


T = TypeVar("T")
Steps = Generator[None, None, T]
# Consumes one piece of a string without resuming its reader, and returns its events. None: nothing was consumed; the
# reader must look at the piece.
Sink = Callable[[str], "list[Event] | None"]
MAX_PIECES, MAX_PIECE = 256, 4_096  # how much a sink consumes between two commits: pieces, and characters of one
# Where a capture began, counted from the beginning of the text.
Capture = int
_BLANKS = re.compile(r"[ \t\r\n]*+").match


class Buffer:
    """`buf[pos:]` has arrived and was not taken yet; `base` is how much of the text lies before `buf`."""

    __slots__ = ("_captures", "_kept", "_record", "base", "buf", "consumed", "ended", "pos", "sink")

    def __init__(self) -> None:
        self.buf = ""
        self.pos = 0
        self.base = 0
        self.ended = False
        self.sink: Sink | None = None  # set by `listen`
        self.consumed: list[str] = []  # pieces that a sink consumed since the last `commit`
        self._record: Callable[[str], None] | None = None  # what the reader does with the text of those
        self._kept: list[str] = []  # what was taken and left the buffer, while there is a capture
        self._captures = 0

    @property
    def at(self) -> int:
        """The place of `pos` in the whole text."""
        return self.base + self.pos

    def more(self, text: str) -> None:
        """More text has arrived: what was taken leaves the buffer."""
        pos = self.pos
        if pos:
            if self._captures:
                self._kept.append(self.buf[:pos])
            self.base += pos
            self.pos = 0
            self.buf = self.buf[pos:] + text if pos < len(self.buf) else text
        else:
            self.buf += text

    def advance(self, size: int = 1) -> None:
        """Take this many characters."""
        self.pos += size

    def take_match(self, found: re.Match[str]) -> None:
        """Take the text up to the end of a match in `buf`."""
        self.pos = found.end()

    def take_all(self) -> None:
        """Take all text that has arrived."""
        self.pos = len(self.buf)

    def listen(self, sink: Sink, record: Callable[[str], None] | None = None) -> None:
        """Let `sink` consume the pieces that follow, until it returns None and the reader resumes.

        A reader that waits inside a string calls this before its `yield`. The sink appends the text that it takes to
        `consumed` and leaves the remainder in `buf`. `record` receives the consumed text at the next `commit`.
        """
        self.more("")
        self.sink, self._record = sink, record

    def commit(self) -> None:
        """Account for the text that a sink consumed. Nothing else of this object is up to date before."""
        if not self.consumed:
            return
        text = "".join(self.consumed)
        self.consumed.clear()
        if self._captures:
            self._kept.append(text)
        self.base += len(text)
        if self._record is not None:
            self._record(text)

    def char(self) -> str:
        """As `peek`, but "" where more text is needed: `p.char() or (yield from p.peek())` costs less than `peek`."""
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
        """The next character that is not blank, "" at the end of the text. Takes the blanks before it."""
        while True:
            self.pos = pos = _BLANKS(self.buf, self.pos).end()  # type: ignore[union-attr]
            if pos < len(self.buf):
                return self.buf[pos]
            if self.ended:
                return ""
            yield

    def test(self, probe: Probe, ahead: int = 0) -> Steps[re.Match[str] | None]:
        """Is this here, or so far ahead? Takes nothing."""
        while True:
            found = probe.at(self.buf, self.pos + ahead, self.ended)
            if found is not None:
                return found or None
            yield

    def capture(self) -> Capture:
        """Remembers the text from here on, until it is released or dropped."""
        self._captures += 1
        return self.base + self.pos

    def captured(self, start: Capture) -> str:
        """What was taken since."""
        if start >= self.base:
            return self.buf[start - self.base : self.pos]
        kept, first, at = self._kept, len(self._kept), self.base
        while at > start and first:
            first -= 1
            at -= len(kept[first])
        kept[first:] = ["".join(kept[first:])]  # whoever asks again finds it in one piece
        return kept[first][max(0, start - at) :] + self.buf[: self.pos]

    def drop(self, start: Capture) -> None:
        """This capture is not needed any more."""
        self._captures -= 1
        if not self._captures:
            self._kept.clear()

    def give_back(self, start: Capture) -> None:
        """What was taken since that capture, which is over, can be taken again: it was only looked at."""
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
        text = self.captured(start)
        self.drop(start)
        return text


class TokenMap:
    """A text in runs: one special token, plain text, or text of which nothing is known."""

    __slots__ = ("_kinds", "_starts", "size")

    def __init__(self, unknown: int = 0) -> None:
        self.size = unknown  # how long the text is of which something or nothing was said
        self._starts = [0]
        self._kinds: list[bool | None] = [None]

    @staticmethod
    def letters(size: int) -> TokenMap:
        """Of a text of that length that is plain."""
        told = TokenMap()
        told.add(size, False)
        return told

    def add(self, size: int, special: bool | None) -> None:
        """So many characters more."""
        if special or self._kinds[-1] is not special:
            self._starts.append(self.size)
            self._kinds.append(special)
        self.size += size

    def of(self, start: int, end: int) -> bool | None:
        """Is there a special token in that part of the text? None where nothing was said."""
        first = max(0, bisect_right(self._starts, start) - 1)
        kinds = self._kinds[first : bisect_right(self._starts, max(start, end - 1))]
        return True if True in kinds else None if None in kinds else False

    def behind(self, start: int) -> TokenMap:
        """What was said of the text from there on."""
        rest = TokenMap()
        places = [*self._starts[1:], self.size]
        for kind, at, end in zip(self._kinds, self._starts, places, strict=True):
            if end > start:
                rest.add(end - max(at, start), kind)
        return rest
