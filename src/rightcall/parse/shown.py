"""Where prose shows a call instead of making one: in a code fence, or behind an opening quote."""

from __future__ import annotations

import re

_QUOTES = frozenset("`'\"")
_OPENS = frozenset(" \t\r\n([{=,:>")
RUN = re.compile(r"`{3,}+|~{3,}+").match


def is_quoted(before: str) -> bool:
    """Does the text so far end in an opening quote? A closing one stands behind what it closes."""
    return before[-1:] in _QUOTES and (len(before) < 2 or before[-2] in _OPENS or before[-2] in _QUOTES)


class Fences:
    """Follows a text as it arrives: is it inside a code fence? `before` are its last characters."""

    __slots__ = ("_blank_line", "before", "open")

    def __init__(self) -> None:
        self.open = ""  # the run that opened the fence we are in
        self.before = ""
        self._blank_line = True  # nothing but blanks since the last line break

    def take(self, text: str) -> None:
        """Text that holds no fence."""
        if text:
            line = text.rpartition("\n")[2]
            self._blank_line = (self._blank_line or "\n" in text) and not line.strip()
            self.before = (self.before + text)[-2:]

    def take_run(self, run: str) -> None:
        """Three or more of the characters that make a fence. They make one only at the beginning of a line."""
        if self._blank_line and not self.open:
            self.open = run
        elif self._blank_line and run[0] == self.open[0] and len(run) >= len(self.open):
            self.open = ""
        self.take(run)
