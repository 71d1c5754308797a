"""Where a value ends, found while it arrives: by brackets, strings and comments alone, each character looked at once.

`Ends.step(text, pos, ended)` answers yes (True: `pos` is behind the value), need more (False: `pos` is how far it came)
or no (`LostEnd`). A bare value, which begins with neither quote nor bracket, ends before one of `until`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from rightcall.parsing.values.notation import Notation
from rightcall.parsing.values.strings import Match, StringText
from rightcall.parsing.values.value_reader import BadValue, Unfinished, opening

OPEN_CODE = {")": "invalid_call", "]": "invalid_value", "}": "invalid_value"}
Stop = Callable[[str, int, bool], object]  # is what ends the whole call here? None where more text is needed to tell
_LINE = re.compile(r"[^\n]*+").match
_TO_STAR = re.compile(r"[^*]*+").match


class LostEnd(Exception):
    """No end can be found from here."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@lru_cache(256)
def _run(odd: str) -> Match:
    return re.compile(f"[^{re.escape(odd)}]*+").match


def _odd(notation: Notation, until: str, stops: str) -> str:
    """Every character at which something may begin or end."""
    heads = {quote.open[0] for quote in notation.quotes} | ({"`"} if notation.templates else set())
    marks = {"<"} if notation.heredocs else set()
    marks |= {"/"} if notation.open_comment is not None else set()
    marks |= set(",:") if notation.shy else set()
    brackets = {*notation.brackets, *notation.brackets.values()}
    return "".join(sorted(heads | marks | brackets | set(until) | set(stops)))


class Ends:
    """The search for one end. `stack` holds the closers of brackets that are open already."""

    def __init__(
        self,
        notation: Notation,
        *,
        until: str = "",
        stack: tuple[str, ...] = (),
        stop: Stop | None = None,
        stops: str = "<`",
        bare: bool = False,
        comment: bool = False,
    ) -> None:
        self.pos = 0
        self._notation, self._until, self._stop, self._stops = notation, until, stop, stops
        self._stack = list(stack)
        self._bare = bare  # outside brackets a quote is only a character
        self._outer = bool(stack)
        self._only_comment = comment  # what begins here is a comment, and nothing but that is looked for
        self._string: StringText | None = None
        self._fresh = False  # a value begins here, if anything does
        self._comment = ""
        self._run = _run(_odd(notation, until, stops if stop is not None else ""))

    def step(self, text: str, pos: int, ended: bool) -> bool:
        self.pos = pos
        while self.pos < len(text):
            if self._string is not None:
                if not self._in_string(text, ended):
                    return False
            elif self._comment:
                if not self._in_comment(text):
                    return False
                if self._only_comment and not self._comment:
                    return True
            else:
                start, self.pos = self.pos, self._run(text, self.pos).end()  # type: ignore[union-attr]
                self._fresh = self._fresh and not text[start : self.pos].strip()
                if self.pos == len(text):
                    return False
                try:
                    if self._sign(text, ended):
                        return True
                except Unfinished:
                    return False
        return False

    def _in_string(self, text: str, ended: bool) -> bool:
        assert self._string is not None
        self.pos, _, closed = self._string.take(text, self.pos, ended)
        if closed:
            self._string = None
        elif self._string.lost:
            raise LostEnd("unterminated_string", "a string is not closed before the end of the call; close it")
        return closed

    def _in_comment(self, text: str) -> bool:
        line = self._comment == "/"
        self.pos = (_LINE if line else _TO_STAR)(text, self.pos).end()  # type: ignore[union-attr]
        if self.pos == len(text) or (not line and self.pos + 1 == len(text)):
            return False
        if line or text[self.pos + 1] == "/":
            self.pos += 0 if line else 2
            self._comment = ""
        else:
            self.pos += 1
        return True

    def _sign(self, text: str, ended: bool) -> bool:
        """At a character that may begin or end something. True at the end of the value."""
        char, stack = text[self.pos], self._stack
        if self._stop is not None and char in self._stops:
            self._look_for_stop(text, ended)
        if char not in self._notation.brackets and self._opens(text, ended):
            return False
        self._fresh = char in "[:" or (char == "," and stack[-1:] == ["]"])
        if char == "/" and self._notation.open_comment is not None:
            self._opens_comment(text, ended)
            return False
        if char in self._notation.brackets:
            stack.append(self._notation.brackets[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack and (self._outer or not self._until):
                self.pos += 1
                return True
        elif not stack and char in self._until:
            return True
        elif char in ")]}":
            raise LostEnd(OPEN_CODE[stack[-1] if stack else ")"], f"{char!r} closes nothing that is open here")
        self.pos += 1
        return False

    def _look_for_stop(self, text: str, ended: bool) -> None:
        assert self._stop is not None
        found = self._stop(text, self.pos, ended)
        if found is None:
            raise Unfinished
        if found:
            closer = self._stack[-1] if self._stack else ")"
            raise LostEnd(OPEN_CODE[closer], f"{closer!r} is missing before the end of the call")

    def _opens(self, text: str, ended: bool) -> bool:
        """Does a string begin here?"""
        if (self._bare and not self._stack) or (text[self.pos] in self._notation.shy and not self._fresh):
            return False
        if self._notation.shy and not self._fresh and self._stack[-1:] == ["}"]:
            return False  # a key, in quotes or not: it holds no bracket
        try:
            found = opening(self._notation, text, self.pos, ended)
        except BadValue:
            found = None
        if found is None:
            return False
        self._string, self.pos = found
        return True

    def _opens_comment(self, text: str, ended: bool) -> None:
        if self.pos + 1 == len(text) and not ended:
            raise Unfinished
        kind = text[self.pos + 1 : self.pos + 2]
        self._comment = kind if kind in ("/", "*") else ""
        self.pos += 2 if self._comment else 1
