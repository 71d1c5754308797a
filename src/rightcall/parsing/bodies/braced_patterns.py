"""The patterns of braces:  a call's name, its keys, and what may follow a value."""

from __future__ import annotations

import re

from rightcall.formats.spec import Braced
from rightcall.parsing.bodies.ordinary_quotes import KEY_IN_QUOTES
from rightcall.parsing.markers import (
    END,
    HOLES,
    NAME,
    TEXT_END,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    look,
    seq,
    templates,
)
from rightcall.parsing.values.notation import BRACED_KEY
from rightcall.parsing.values.strings import Taken, easy_without

_WORD = Pat(r"[^\s:{}\[\],<>\"']{1,256}+", r"[^\s:{}\[\],<>\"']{0,256}+")
KEY = Pat(BRACED_KEY, BRACED_KEY.replace("{1,256}", "{0,256}"))
KEY_TEXT = Pat(KEY_IN_QUOTES, KEY_IN_QUOTES.replace("{1,256}", "{0,256}"))
KEY_PROBE = Probe(seq(KEY, blanks(), literal(":")))


def named(body: Braced) -> tuple[Pat, ...]:
    """A call's name and what opens its arguments."""
    return (alt(*templates(body.open)), blanks(), literal("{"))


class TokenQuoted:
    """A string between two quote tokens. A token that nothing structural follows is text."""

    __slots__ = ("_follows", "_quote", "_scan", "easy")
    odd = has_hole = lost = False

    def __init__(self, quote: str, scan: Scan[str], follows: Probe) -> None:
        self.easy = easy_without(quote[0])
        self._quote, self._scan, self._follows = quote, scan, follows

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        start = pos
        search = self._scan.ended if ended else self._scan.search
        while (found := search(text, pos)) is not None:
            at = found.start()
            closes = None if found.lastindex is None else self._follows.at(text, at, ended)
            if closes is None:
                return at, text[start:at], False
            if closes:
                return at + len(self._quote), text[start:at], True
            pos = at + 1
        return len(text), text[start:], False

    def plain(self, text: str) -> tuple[str, int] | None:
        found = self._scan.search(text, 0)
        if found is None:
            return text, len(text)
        return (text[: found.start()], found.start()) if found.lastindex is None else None


def simple_string(quote: str, follows: Probe) -> str:
    """A string without a piece of its quote in it, before what has arrived and can only follow a string: what
    `TokenQuoted` takes there, and its text is the group."""
    mark = re.escape(quote)
    return rf"{mark}([^{re.escape(quote[0])}]*+){follows.pat.whole.replace(TEXT_END, '(?!)')}{mark}"


def behind_value(entry: Pat | None, value: Pat, after: list[Pat]) -> Pat:
    """What follows a string: another entry or item, or a bracket that structure follows."""
    deeper = Pat(r"[,}\]]", "")
    entries = [seq(_WORD, blanks(), literal(":")), *([] if entry is None else [entry])]
    return alt(
        seq(literal(","), blanks(), alt(*entries, value)),
        seq(Pat(r"[}\]]", ""), blanks(), alt(deeper, *after, END)),
        END,
    )


def without_word(body: Braced) -> list[Probe]:
    """A name where the word is missing that should stand before it: with its colon, or before its arguments."""
    if not heads(body)[0]:
        return []
    name = NAME._replace(whole=f"(?P<name>{HOLES['name']})")
    return [Probe(seq(literal(":"), name)), Probe(seq(name, blanks(), look(literal("{"))))]


def heads(body: Braced) -> list[str]:
    """What stands before the name."""
    opens = (body.open,) if isinstance(body.open, str) else body.open
    return sorted({"", *[str(text).split("{name}")[0].strip() for text in opens]}, key=len, reverse=True)
