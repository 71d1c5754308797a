"""Strings in ordinary quotes where a format has quote tokens of its own:  call:f{k:"v",l:['a', “b”]}

Such a string is over at a quote that a comma, or a bracket that structure follows, stands behind. Any other quote
inside it that was not escaped makes that a guess. One that is not over where the call is closed has no end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from rightcall.parsing.markers import Pat, Probe, Scan, blanks, literal, seq, there
from rightcall.parsing.values import escapes
from rightcall.parsing.values.escapes import LONGEST
from rightcall.parsing.values.notation import Notation, Quote
from rightcall.parsing.values.strings import PAIR, FullMatch, Match, StringText, Taken, easy_without
from rightcall.parsing.values.value_reader import BadValue, Odd, Unfinished, ValueReader, opening
from rightcall.types import Repair

PAIRS = (*[(mark, mark) for mark in "\"'`\u201d\u2019"], ("\u201c", "\u201d"), ("\u2018", "\u2019"))
MARKS = "".join([opens for opens, _ in PAIRS])
_ESCAPE = seq(literal("\\"), Pat(rf"(?:{PAIR}|[\s\S])", ""))
_SOUND = re.compile(r"(?:[^\\]++|\\(?:[\"'`\\/bfnrt]|u[0-9a-fA-F]{4}))*+").fullmatch
_SHOWN = 200
KEY_IN_QUOTES = r"[^\s:{}\[\],<>\"'`\\]{1,256}+"
_KEY = re.compile(rf"([\"'`])({KEY_IN_QUOTES})\1(?=[ \t\r\n]{{0,8}}+:)").match


class Ordinary:
    """Behind its first quote. `inner`: a quote stands in it that was not escaped; `lost`: it has no end."""

    __slots__ = ("_close", "_follows", "_scan", "easy", "inner", "lost", "odd")
    has_hole = False

    def __init__(self, close: str, scan: Scan[str], follows: Probe, easy: FullMatch) -> None:
        self._close, self._scan, self._follows, self.easy = close, scan, follows, easy
        self.odd = self.inner = self.lost = False

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        start, search = pos, self._scan.ended if ended else self._scan.search
        while (found := search(text, pos)) is not None:
            at, sign = found.start(), "" if found.lastindex is None else self._scan.actions[found.lastindex]
            if sign == "quote":
                closes = self._follows.at(text, at, ended)
                if closes:
                    return at + 1, self._decoded(text[start:at]), True
                sign = "" if closes is None else sign
                self.inner = self.inner or closes is False
            if sign == "escape" and not ended and len(text) - at < LONGEST:
                sign = ""
            if not sign or sign == "stop":
                self.lost = sign == "stop"
                return at, self._decoded(text[start:at]), False
            pos = found.end()
        return len(text), self._decoded(text[start:]), False

    def _decoded(self, text: str) -> str:
        if "\\" not in text:
            return text
        self.odd = self.odd or _SOUND(text) is None
        return escapes.PYTHON.read(text)

    def plain(self, text: str) -> tuple[str, int] | None:
        return (text, len(text)) if self.easy(text) else None


def ordinary(stops: list[Pat], after: Pat) -> tuple[Quote, ...]:
    """The quotes of such strings: one of `stops` ends the call, `after` is what follows a value."""
    return tuple([Quote(opens, closes, escapes.PYTHON, make=_maker(closes, stops, after)) for opens, closes in PAIRS])


def _maker(close: str, stops: list[Pat], after: Pat) -> Callable[[], StringText]:
    scan = Scan([("escape", _ESCAPE), ("quote", literal(close)), *[("stop", stop) for stop in stops]])
    follows = there(seq(literal(close), blanks(), after))
    easy = easy_without(close + "".join([stop.head or "<" for stop in stops]))
    return lambda: Ordinary(close, scan, follows, easy)


class OrdinaryReader(ValueReader):
    """Reads such strings inside lists and objects; `ordinary` says how each was written, and whether it is a guess."""

    def __init__(self, notation: Notation, text: str, pos: int, *, depth: int, ended: bool) -> None:
        super().__init__(notation, text, pos, depth=depth, ended=ended)
        self.ordinary: list[tuple[str, bool]] = []

    def _text(self, char: str) -> str | None:
        if char not in MARKS:
            return super()._text(char)
        begin = self.pos
        found = opening(self.notation, self.text, begin, self.ended)
        assert found is not None
        string, start = found
        self.pos, text, closed = string.take(self.text, start, self.ended)
        if not closed:
            if not self.ended:
                raise Unfinished
            raise BadValue("unterminated_string", f"a string that starts with {char} is not closed")
        written = self.text[begin : self.pos]
        if string.odd:
            self.escaped.append(Odd(self._path(), written[1:-1]))
        self.ordinary.append((written, isinstance(string, Ordinary) and string.inner))
        return text

    def _key(self, char: str) -> tuple[str, bool]:
        if char not in MARKS:
            key = self._key_in_tokens()
            return super()._key(char) if key is None else (key, True)
        found = _KEY(self.text, self.pos)
        if found is None:
            if not self.ended:
                raise Unfinished
            raise BadValue("invalid_argument_name", f"a key stands without quotes, not with {char}")
        self.ordinary.append((found.group(), False))
        self.pos = found.end()
        return found.group(2), True

    def _key_in_tokens(self) -> str | None:
        """A key between the format's own quotes: models write one as they write any string."""
        quote = self.notation.quotes[0].open
        if not self.text.startswith(quote, self.pos):
            return None
        found = _key_between(quote)(self.text, self.pos)
        if found is None:
            if not self.ended:
                raise Unfinished
            raise BadValue("invalid_argument_name", f"a key must be a name, and no more than that stand in {quote}")
        self.pos = found.end()
        return found.group(1).strip()


@lru_cache(16)
def _key_between(quote: str) -> Match:
    mark = re.escape(quote)
    return re.compile(rf"{mark}([^:{{}}\[\]<>\r\n]{{1,256}}+){mark}(?=[ \t\r\n]{{0,8}}+:)").match


def receipts(path: str, found: list[tuple[str, bool]], quote: str) -> tuple[Repair, ...]:
    """The receipt of one argument's strings: of a guess, if there is one among them."""
    for written, guess in sorted(found, key=lambda each: not each[1])[:1]:
        after = quote + written[1:-1] + quote
        return (Repair("ordinary_quotes", "guess" if guess else "exact", path, written[:_SHOWN], after[:_SHOWN]),)
    return ()
