"""The text of a reply as it arrives: what is there, how far it was taken, and what must be remembered of it.

Rules for everybody who reads from it:
- A bare `yield` means: more text, please. An index into `buf` does not survive it; `pos` and captures do.
- Nothing is taken before it is certain; what is only looked at is given back (`give_back`).
- Every loop takes at least one character, yields or raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeVar

from rightcall.parsing.markers import Probe

T = TypeVar("T")
Steps = Generator[None, None, T]
# Where a capture began, counted from the beginning of the text.
Capture = int
_BLANKS = re.compile(r"[ \t\r\n]*+").match


class Buffer:
    """`buf[pos:]` has arrived and was not taken yet; `base` is how much of the text lies before `buf`."""

    __slots__ = ("_captures", "_kept", "base", "buf", "ended", "pos", "sink")

    def __init__(self) -> None:
        self.buf = ""
        self.pos = 0
        self.base = 0
        self.ended = False
        self.sink: Callable[[str], bool] | None = None  # set by `listen`
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

    def listen(self, sink: Callable[[str], bool]) -> None:
        """For a reader that waits inside a string, before its `yield`: from here on `sink` is asked to take each piece,
        so that the reader need not be woken. It gives False, and has done nothing, unless the text `buf + piece` is all
        string, but for an end that may become something else."""
        self.more("")
        self.sink = sink

    def passed(self, text: str, rest: str = "") -> None:
        """A `sink` took the text, which never enters the buffer; the rest of it waits there."""
        if self._captures:
            self._kept.append(text)
        self.base += len(text)
        self.buf = rest

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
