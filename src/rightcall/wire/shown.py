"""What text only shows: in a code fence, in a code span, or behind an opening quote. Nothing that is shown is called.

`Shown` follows a text as it arrives, however it is cut. It is asked where a marker stands; the machine asks for every
format, and nobody else decides.
"""

from __future__ import annotations

import re

QUOTES = frozenset("`'\"")
_OPENS = frozenset(" \t\r\n([{=,:>")
# A line break, or a run of the characters that make fences and code spans.
_PLACES = re.compile(r"[\n`~](?:(?<=`)`*+|(?<=~)~*+|(?<=\n))").finditer
_FENCE = 3
_LONGEST = 256


def is_quoted(before: str) -> bool:
    """Does the text so far end in an opening quote? A closing one stands behind what it closes."""
    return before[-1:] in QUOTES and (len(before) < 2 or before[-2] in _OPENS or before[-2] in QUOTES)


class Shown:
    """Follows one text. A fence opens and closes at the beginning of a line; a code span ends with its paragraph."""

    __slots__ = ("_before", "_blank_line", "_run", "_size", "_span", "fence")

    def __init__(self) -> None:
        self.fence = ""  # the run that opened the fence we are in
        self._span = 0  # how many backticks opened the code span we are in
        self._run = ""  # the character of the run that the text so far ends in: it may become longer
        self._size = 0  # how long that run is
        self._blank_line = True  # nothing but blanks since the last line break, that run aside
        self._before = ""  # the last characters

    def __bool__(self) -> bool:
        """Does it show anything so far? False costs least and is usual."""
        return bool(self.fence or self._span or self._run or self._before[-1:] in QUOTES)

    def shows(self, blanks: str = "") -> bool:
        """Does the text so far, and these blanks, show what comes next?"""
        fence, span = self._after_run()
        return bool(fence) or (bool(span) and blanks.count("\n") < 2) or is_quoted(self._before + blanks)

    @property
    def open_fence(self) -> str:
        """The fence that what comes next on a line of its own would stand in."""
        return self._after_run()[0]

    def take(self, text: str) -> None:
        """More of the text."""
        if not text:
            return
        self._before = (self._before + text)[-2:]
        if self._run and text[0] == self._run:
            rest = text.lstrip(self._run)
            self._size += len(text) - len(rest)
            text = rest
            if not text:
                return
        if self._run:
            self._end_run()
        self._walk(text)

    def take_break(self) -> None:
        """A line break."""
        self._before = self._before[-1:] + "\n"
        if self._run:
            self._end_run()
        if self._blank_line:
            self._span = 0
        self._blank_line = True

    def _walk(self, text: str) -> None:
        at = 0
        for found in _PLACES(text):
            self._blank_line = self._blank_line and not text[at : found.start()].strip()
            at = found.end()
            if text[at - 1] == "\n":
                self._span = 0 if self._blank_line else self._span
                self._blank_line = True
                continue
            self._run, self._size = text[at - 1], at - found.start()
            if at < len(text):
                self._end_run()
        if not self._run:
            self._blank_line = self._blank_line and not text[at:].strip()

    def _end_run(self) -> None:
        self.fence, self._span = self._after_run()
        self._run = ""
        self._blank_line = False

    def _after_run(self) -> tuple[str, int]:
        """The fence and the code span behind the run that the text ends in, if it ends in one."""
        run, size, fence, span = self._run, self._size, self.fence, self._span
        if not run:
            return fence, span
        if size >= _FENCE and self._blank_line:
            if not fence:
                return run * min(size, _LONGEST), 0
            return ("" if run == fence[0] and size >= len(fence) else fence), 0
        if fence or run == "~":
            return fence, span
        return fence, (0 if span == size else span or size)
