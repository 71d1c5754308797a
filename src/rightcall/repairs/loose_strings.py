"""Strings as models write them: in any quotes, with line breaks and backslashes that JSON does not have.

'It\\'s'  ->  It's, with the rules single_quotes and bad_escape
"""

from __future__ import annotations

import json
import re

from rightcall.parsing.values.escapes import PYTHON
from rightcall.parsing.values.notation import LOOSE
from rightcall.repairs import backslashes
from rightcall.repairs.liberties import SHOWN, Liberty, Unreadable

_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*+').match,
    "'": re.compile(r"[^'\\\x00-\x1f]*+").match,
    "\u201d": re.compile(r"[^\u201c\u201d\\\x00-\x1f]*+").match,
    "\u2019": re.compile(r"[^\u2018\u2019\\\x00-\x1f]*+").match,
    "`": re.compile(r"[^`\\\x00-\x1f]*+").match,
}
CLOSING = {quote.open: quote.close for quote in LOOSE.quotes}


class LooseStrings:
    """Reads strings from `pos` on, and keeps what liberties they took."""

    def __init__(self, text: str, pos: int) -> None:
        self.text, self.pos = text, pos
        self.found: dict[str, Liberty] = {}
        # Where one backslash was not doubled, those of a line break or a tab may not have been either.
        self.single = self.controls = False

    def _took(self, rule: str, before: str, after: str, *, guess: bool = False) -> None:
        if rule not in self.found or (guess and not self.found[rule].guess):
            self.found[rule] = Liberty(rule, before[:SHOWN], after[:SHOWN], guess)

    def _string(self, quote: str) -> str:
        start = self.pos
        self.pos += 1
        close = CLOSING[quote]
        run = _PLAIN[close]
        pieces: list[str] = []
        odd: set[str] = set()
        while True:
            end = run(self.text, self.pos).end()  # type: ignore[union-attr]
            pieces.append(self.text[self.pos : end])
            self.pos = end
            char = self.text[end : end + 1]
            if char == close or (char and char in "\u201c\u2018" and CLOSING[char] == close):
                self.pos += 1
                break
            if not char:
                raise Unreadable("a string is not closed", cut=True)
            if char == "\\":
                pieces.append(self._escape(odd))
            else:
                odd.add("raw_newline")
                pieces.append(char)
                self.pos += 1
        return self._decoded(pieces, quote, start, odd)

    def _escape(self, odd: set[str]) -> str:
        found = backslashes.escape(self.text, self.pos)
        size = 2 if found is None else found.end() - found.start()
        piece = self.text[self.pos : self.pos + size]
        self.pos += size
        if found is None:
            odd.add("python_escape" if piece in backslashes.QUOTES else "bad_escape")
        return piece

    def _decoded(self, pieces: list[str], quote: str, start: int, odd: set[str]) -> str:
        source = "".join(pieces)
        single = "bad_escape" in odd
        value = PYTHON.read(source) if not odd else backslashes.read(pieces, source, single=single)
        self.single = self.single or single
        self.controls = self.controls or (value is not source and backslashes.has_control(pieces))
        if quote != '"' or odd:
            guess = bool(odd - {"raw_newline"}) and not backslashes.is_sure(pieces, source, quote)
            after = json.dumps(value[:SHOWN], ensure_ascii=False)
            self._took_string(self.text[start : self.pos], quote, odd, after, guess)
        return value

    def _took_string(self, before: str, quote: str, odd: set[str], after: str, guess: bool) -> None:
        if quote in "'`":
            self._took("single_quotes", before, after)
        elif quote != '"':
            self._took("smart_quotes", before, after)
        if "raw_newline" in odd:
            self._took("raw_newline", before, after)
        if len(odd) > ("raw_newline" in odd):
            self._took("bad_escape", before, after, guess=guess)
