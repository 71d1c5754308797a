"""Patterns that know three answers about a text still arriving: yes, no, and cannot tell yet.

`Pat(whole, part)` is a pair of regex sources: one matches the thing, the other any beginning of it. `Probe` compiles
them so that a beginning only counts at the end of what has arrived.

    Probe(template("<parameter={key}>"), ...).at("<parameter=ci", 0)  -> None, waiting
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from rightcall.formats.spec import Marker, alternatives

BLANKS = " \t\r\n"
# Longer runs of white space inside one marker are not a marker: unbounded runs would be read again with every chunk.
MAX_BLANKS = 128

HOLES = {
    "name": r'[^<>"{}()\[\]|=/\s]{1,256}',
    "id": r'[^<>"{}()\[\]|=/\s]{1,256}',
    "key": r'[^<>"\r\n/][^<>"\r\n]{0,255}',
    "type": r'[^<>"\s]{1,32}',
    "index": r"[0-9]{1,9}",
    "number": r"[0-9]{1,9}",
}
_HOLE_STARTS = {"key": r'(?:[^<>"\r\n/][^<>"\r\n]{0,255})?'}
_HOLE = re.compile(r"\{(name|key|type|id|index|number)\}")
_RUN_WITH_NEWLINE = re.compile(r"([ \t\r]*\n[ \t\r\n]*)")


class Pat(NamedTuple):
    whole: str
    part: str  # any proper beginning, the empty one included
    head: str = ""  # the first character, where it is always the same: lets a search skip at C speed
    tail: tuple[str, str] = ("", "")  # whole and part of what follows the head


def literal(text: str) -> Pat:
    whole, part = _literal(text)
    return Pat(whole, part, text[:1], _literal(text[1:]))


def _literal(text: str) -> tuple[str, str]:
    part = ""
    for char in reversed(text[:-1]):
        part = f"(?:{re.escape(char)}{part})?"
    return re.escape(text), part


def blanks(most: int = MAX_BLANKS) -> Pat:
    run = f"[ \\t\\r\\n]{{0,{most}}}+"
    return Pat(run, run)


def maybe(pat: Pat) -> Pat:
    return Pat(f"(?:{pat.whole})?", pat.part)


def seq(*pats: Pat) -> Pat:
    whole, part = _seq([(p.whole, p.part) for p in pats])
    return Pat(whole, part, pats[0].head, _seq([pats[0].tail, *((p.whole, p.part) for p in pats[1:])]))


def _seq(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    whole, part = pairs[-1]
    for before, start in reversed(pairs[:-1]):
        if before:
            whole, part = before + whole, f"(?:{start}\\Z|{before}(?:{part}))"
    return whole, part


def alt(*pats: Pat) -> Pat:
    if len(pats) == 1:
        return pats[0]
    whole = "(?:" + "|".join(p.whole for p in pats) + ")"
    return Pat(whole, "(?:" + "|".join(f"{p.part}\\Z" for p in pats) + ")")


def look(pat: Pat) -> Pat:
    """Must follow, but is not taken."""
    return Pat(f"(?={pat.whole})", pat.part, pat.head, pat.tail)


END = Pat(r"\Z", "")
NAME = Pat(f"(?:{HOLES['name']})", HOLES["name"].replace("{1,", "{0,"))


def template(text: str, *, holes: bool = False) -> Pat:
    """The pattern of one marker template, without white space at its edges; with `holes` they are named groups."""
    pats: list[Pat] = []
    for i, piece in enumerate(_HOLE.split(text.strip(BLANKS))):
        if i % 2:
            source = HOLES[piece]
            start = _HOLE_STARTS.get(piece, source.replace("{1,", "{0,"))
            pats.append(Pat(f"(?P<{piece}>{source})" if holes else f"(?:{source})", start))
            continue
        for j, run in enumerate(_RUN_WITH_NEWLINE.split(piece)):
            if run:
                pats.append(blanks() if j % 2 else literal(run))
    return seq(*pats) if pats else Pat("", "")


def templates(marker: Marker) -> list[Pat]:
    """The alternatives of a marker, longest first, without the empty one."""
    texts = {text.strip(BLANKS) for text in alternatives(marker)} - {""}
    return [template(text) for text in sorted(texts, key=lambda text: (-len(text), text))]


class Probe:
    """Is this pattern at this place? `at` gives the match, False for no, None when more text is needed to tell."""

    __slots__ = ("_part", "_whole")

    def __init__(self, pat: Pat) -> None:
        self._whole = re.compile(pat.whole).match
        self._part = re.compile(f"(?:{pat.part})\\Z").match

    def at(self, text: str, pos: int, ended: bool) -> re.Match[str] | Literal[False] | None:
        # A beginning counts before the whole: of two alternatives the longer may still be arriving.
        if not ended and self._part(text, pos):
            return None
        return self._whole(text, pos) or False

    @staticmethod
    def never() -> Probe:
        return Probe(Pat("(?!)", "(?!)"))


class Holes:
    """A marker with holes: `fill` gives what stands in those of a match of `probe`."""

    __slots__ = ("_shapes", "probe")

    def __init__(self, marker: Marker) -> None:
        texts = {text.strip(BLANKS) for text in alternatives(marker)} - {""}
        ordered = sorted(texts, key=lambda text: (-len(text), text))
        self.probe = Probe(alt(*map(template, ordered)))
        self._shapes = [re.compile(template(text, holes=True).whole) for text in ordered]

    def fill(self, match: re.Match[str]) -> dict[str, str]:
        for shape in self._shapes:
            found = shape.fullmatch(match.string, match.start(), match.end())
            if found:
                return found.groupdict()
        return {}


class Scan:
    """Finds the next of several markers. `search(text, pos)` gives a match or None; `actions[match.lastindex]` says
    which it is, and no `lastindex` means that the text ends in what may become one."""

    __slots__ = ("actions", "ended", "finditer", "search")

    def __init__(self, entries: list[tuple[str, Pat]]) -> None:
        # By length of the pattern: of two markers, one beginning with the other, the longer is tried first.
        entries = sorted(entries, key=lambda entry: -len(entry[1].whole))
        self.actions = ["", *(action for action, _ in entries)]
        starts = [f"{re.escape(p.head)}(?:{p.tail[1]})\\Z" for _, p in entries]
        wholes = [f"{re.escape(p.head)}({p.tail[0]})" for _, p in entries]
        never = "(?!)"
        self.search = re.compile("|".join(starts + wholes) or never).search
        ended = re.compile("|".join(wholes) or never)
        self.ended, self.finditer = ended.search, ended.finditer
