"""Where prose shows a call instead of making one: in a code fence, in a code span, or behind an opening quote."""

from __future__ import annotations

import re

QUOTES = frozenset("`'\"")
_OPENS = frozenset(" \t\r\n([{=,:>")
_TICK = re.compile(r"(?<!`)`{1,2}(?!`)").findall  # opens or closes a code span
# Longer runs are taken piece by piece: one that never ends would be read again with every chunk.
RUN = re.compile(r"`{3,256}+|~{3,256}+").match


def is_quoted(before: str) -> bool:
    """Does the text so far end in an opening quote? A closing one stands behind what it closes."""
    return before[-1:] in QUOTES and (len(before) < 2 or before[-2] in _OPENS or before[-2] in QUOTES)


class Fences:
    """Follows a text as it arrives: is it inside a code fence? `before` are its last characters."""

    __slots__ = ("_blank_line", "_ticks", "before", "open")

    def __init__(self) -> None:
        self.open = ""  # the run that opened the fence we are in
        self.before = ""
        self._blank_line = True  # nothing but blanks since the last line break
        self._ticks = 0  # since the last line break; an odd number has opened a code span

    def show(self, blanks: str = "") -> bool:
        """Does the text so far, and these blanks, show what comes next?"""
        in_span = self._ticks % 2 == 1 and "\n" not in blanks
        return bool(self.open) or in_span or is_quoted(self.before + blanks)

    def take(self, text: str) -> None:
        """Text that holds no fence."""
        if text:
            _, line_break, line = text.rpartition("\n")
            self._blank_line = (self._blank_line or bool(line_break)) and not line.strip()
            ticks = len(_TICK(line)) if "`" in line else 0
            self._ticks = ticks if line_break else self._ticks + ticks
            self.before = (self.before + text)[-2:]

    def take_run(self, run: str) -> None:
        """Three or more of the characters that make a fence. They make one only at the beginning of a line."""
        if self._blank_line and not self.open:
            self.open = run
        elif self._blank_line and run[0] == self.open[0] and len(run) >= len(self.open):
            self.open = ""
        self.take(run)
