"""Patterns of markers in a text that is still arriving. They know three answers: yes, no, and cannot tell yet.

`Pat(whole, part)` is a pair of regex sources: one matches the marker, the other any beginning of it. `Probe` asks
whether a marker is at a place, `Scan` finds the next of many. A beginning only counts at the end of what has arrived.

    Probe(template("<parameter={key}>")).at("<parameter=ci", 0, False)  -> None, waiting
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from rightcall.formats.spec import HOLES, Marker, Special, alternatives

Search = Callable[[str, int], "re.Match[str] | None"]
BLANKS = " \t\r\n"
# Longer runs of white space inside one marker are not a marker: unbounded runs would be read again with every chunk.
MAX_BLANKS = 128
_LONGEST_WORDS = 128  # where a name belongs

# A key in quotation marks, where those of its own are escaped.
_QUOTED_KEY = r'[^"\r\n]{1,256}'
_HOLE_STARTS = {hole: f"(?:{HOLES[hole]}+)?+" for hole in ("name", "key")}
_DIGITS, _LETTERS = "0123456789", "abcdefghijklmnopqrstuvwxyz"
_HOLE = re.compile(r"\{(name|key|type|id|index|number|cite)\}")
# Blanks that may be any blanks: a line break, and where one tag touches another there may be some.
_ANY_BLANKS = re.compile(r"((?<![ \t\r])[ \t\r]*+\n[ \t\r\n]*+|(?<=[a-z_]>)(?=<[a-z_]))")


# How far a whole match can be relied on while more text may come.
FINAL, RUN, OPEN = 2, 1, 0


class Pat(NamedTuple):
    whole: str
    part: str  # any proper beginning, the empty one included
    head: str = ""  # the first character, where it is always the same: lets a search skip at C speed
    tail: tuple[str, str] = ("", "")  # whole and part of what follows the head
    prefix: str = ""  # literal text that it begins with
    sure: int = OPEN  # FINAL: no later text can make the match another; RUN: only by making it longer
    opening: str = ""  # as `prefix`, past the gaps beside special tokens, which stand in it as `ANY_GAP`


def literal(text: str) -> Pat:
    whole, part = _literal(text)
    return Pat(whole, part, text[:1], _literal(text[1:]), text, FINAL, text)


def _literal(text: str) -> tuple[str, str]:
    part = ""
    for char in reversed(text[:-1]):
        part = f"(?:{re.escape(char)}{part})?+"  # only the longest can reach the end: nothing to try again
    return re.escape(text), part


def blanks(most: int = MAX_BLANKS) -> Pat:
    run = f"[ \\t\\r\\n]{{0,{most}}}+"
    return Pat(run, run, sure=RUN)


ANY_GAP = "\0"
_LONGEST_GAP = 16
GAP = blanks(_LONGEST_GAP)._replace(opening=ANY_GAP)
_BLANK_RUNS = re.compile(r"\[ \\t\\r\\n\]\{0,\d++\}\+")  # as `blanks` writes them


def build_trie(texts: Set[str], *, begun: bool = False) -> str:
    """An expression for any of these texts, the shortest where one begins with another; `begun`: or for the beginning
    of one, a character at least, at the end of what has arrived. However many they are, it costs one try."""
    if "" in texts:
        return ""
    branches = []
    for head in sorted({text[0] for text in texts}):
        rest = build_trie({text[1:] for text in texts if text[0] == head}, begun=begun)
        begins = GAP.whole if head == ANY_GAP else re.escape(head)
        branches.append(begins + (f"(?:{rest}|\\Z)" if begun and rest else rest))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def seq(*pats: Pat) -> Pat:
    whole, part = _seq([(p.whole, p.part) for p in pats])
    tail = _seq([pats[0].tail, *((p.whole, p.part) for p in pats[1:])])
    sure = pats[-1].sure if all(p.sure for p in pats) and _ends_holes(pats) else OPEN
    return Pat(whole, part, pats[0].head, tail, pats[0].prefix, sure, _opening(pats))


def _ends_holes(pats: tuple[Pat, ...]) -> bool:
    """Does a character follow each hole that cannot stand in it? Else, of `{name}:`, the name may still go on."""
    for i, pat in enumerate(pats[:-1]):
        literals = "".join([after.prefix for after in pats[i + 1 :]])
        if pat.sure == RUN and literals and re.fullmatch(pat.whole, "a" + literals):
            return False
    return True


def _opening(pats: tuple[Pat, ...]) -> str:
    found = ""
    for pat in pats:
        found += pat.opening
        if pat is not GAP and pat.whole != re.escape(pat.prefix):
            break
    return found


def _seq(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    whole, part = pairs[-1]
    for before, start in reversed(pairs[:-1]):
        if before:
            whole, part = before + whole, f"(?:{start}\\Z|{before}(?:{part}))"
    return whole, part


def alt(*pats: Pat) -> Pat:
    if len(pats) == 1:
        return pats[0]
    solids = sorted({without_blanks(pat) for pat in pats})
    sure = FINAL if all(is_certain(pat, solids) for pat in pats) else OPEN
    part = "(?:" + "|".join(f"{p.part}\\Z" for p in pats) + ")"
    return Pat("(?:" + "|".join(p.whole for p in pats) + ")", part, sure=sure)


def without_blanks(pat: Pat) -> str:
    """A pattern without the blanks that may stand in it: they do not tell two apart."""
    return _BLANK_RUNS.sub("", pat.whole)


def is_certain(pat: Pat, others: list[str]) -> bool:
    """Can no later text make a match of this another? Where another begins with it, that may still be arriving. The
    others are sorted, so that the first of those that begin with it is the next."""
    if pat.sure != FINAL:
        return False
    own = without_blanks(pat)
    after = bisect_right(others, own)
    return after == len(others) or not others[after].startswith(own)


def lookahead(pat: Pat) -> Pat:
    """Must follow, but is not taken."""
    return pat._replace(whole=f"(?={pat.whole})")


# The end of the text. While more may come it never matches.
TEXT_END = r"(?:\Z)"
END = Pat(TEXT_END, "", sure=FINAL)
NAME = Pat(f"(?:{HOLES['name']})", _HOLE_STARTS["name"], sure=RUN)
NAMED = NAME._replace(whole=f"(?P<name>{HOLES['name']})")


LINE_END = lookahead(Pat(r"[ \t]{0,4}+\r?\n", r"[ \t]{0,4}+\r?", sure=FINAL))


def template(text: str, *, named: str = "", group: str = "", quoted: bool = False, unended: bool = False) -> Pat:
    """The pattern of one marker template, without white space at its edges. `named` makes its holes groups whose names
    end in it, `group` makes the hole of that name a numbered one; `quoted`: a key may be anything but a quotation mark;
    `unended`: it counts at the end of a line only. Beside a special token blanks are allowed: detokenizers write
    them."""
    tokens = text.tokens if isinstance(text, Special) else ()
    pats: list[Pat] = []
    for i, piece in enumerate(_HOLE.split(text.strip(BLANKS))):
        pats += [_hole(piece, named, group, quoted)] if i % 2 else _literals(piece, tokens, first=i == 0)
    while pats and pats[-1] is GAP:
        pats.pop()
    pats += [LINE_END] if unended else []
    return seq(*pats) if pats else Pat("", "")


def _hole(hole: str, named: str, group: str, quoted: bool) -> Pat:
    source = _QUOTED_KEY if quoted and hole == "key" else HOLES[hole]
    start = _HOLE_STARTS.get(hole, "") if source is HOLES[hole] else ""
    opener = f"(?P<{hole}{named}>" if named else "(" if hole == group else "(?:"
    return Pat(f"{opener}{source})", start or source.replace("{1,", "{0,") + "+", sure=RUN)


def _literals(piece: str, tokens: tuple[str, ...], *, first: bool) -> list[Pat]:
    """The patterns of literal text, with a gap on both sides of each special token but at the marker's beginning."""
    pats: list[Pat] = []
    runs = _split_at_tokens(piece, tokens)
    for i, run in enumerate(runs):
        if i % 2:
            is_first = first and i == 1 and not runs[0]
            if not is_first and not (pats and pats[-1] is GAP):
                pats.append(GAP)
            pats += [literal(run), GAP]
        else:
            run = run.lstrip(BLANKS) if i else run
            pats += _with_any_blanks(run.rstrip(BLANKS) if i + 1 < len(runs) else run)
    return pats


def _split_at_tokens(piece: str, tokens: tuple[str, ...]) -> list[str]:
    """Text and token in turn."""
    if not tokens:
        return [piece]
    return re.split("(" + "|".join(map(re.escape, sorted(tokens, key=len, reverse=True))) + ")", piece)


def _with_any_blanks(run: str) -> list[Pat]:
    parts = enumerate(_ANY_BLANKS.split(run))
    return [blanks() if i % 2 else literal(part) for i, part in parts if i % 2 or part]


def longest_first(marker: Marker) -> list[str]:
    """The alternatives of a marker, longest first, without the empty one and without white space at their edges."""
    texts = {str(text): text for text in [text.strip(BLANKS) for text in alternatives(marker)] if text}
    return sorted(texts.values(), key=lambda text: (-len(text), str(text)))


def templates(marker: Marker, *, quoted: bool = False) -> list[Pat]:
    return [template(text, quoted=quoted) for text in longest_first(marker)]


def truncated_after_name(text: str, name: Pat = NAME) -> Pat:
    """A marker that the text ends in, at or behind its name."""
    tokens = getattr(text, "tokens", ())
    before, _, after = [Special(side, tokens) if tokens else side for side in text.partition("{name}")]
    begun = template(after).part if after.strip() else ""
    return seq(*([template(before)] if before.strip() else []), name, Pat(f"(?:{begun})", begun), END)


def with_invalid_name(text: str, follows: list[Pat], *, named: bool = False) -> Pat:
    """A marker with anything else than a name in it, before what can only follow it: words with nothing behind them are
    prose about the marker. `named` makes a group of what stands for the name."""
    tokens = getattr(text, "tokens", ())
    before, behind = [Special(side, tokens) if tokens else side for side in text.split("{name}")]
    is_line = behind[:1].isspace()
    words = rf"[^{'' if is_line else '<>'}\r\n]"
    whole = f"{words}{{1,{_LONGEST_WORDS}}}{'+' * is_line}"
    hole = Pat(f"(?P<name>{whole})" if named else whole, f"{words}{{0,{_LONGEST_WORDS}}}+", sure=RUN)
    gap = [blanks()] if is_line else []
    return seq(template(before), hole, *gap, template(behind), blanks(), lookahead(alt(*follows)))


class Probe:
    """Is this pattern at this place? `at` gives the match, False for no, None when more text is needed to tell.

    Expressions are compiled when they are first asked: of the thousands of all formats a process uses few.
    """

    __slots__ = ("_ended", "_final", "_part", "pat", "whole")
    _ended: Search
    _part: Search
    whole: Search

    def __init__(self, pat: Pat) -> None:
        self.pat = pat
        self._final = pat.sure == FINAL

    def __getattr__(self, name: str) -> Search:
        """Of what is not compiled yet."""
        sources = {
            "_ended": self.pat.whole,
            "whole": self.pat.whole.replace(TEXT_END, "(?!)"),
            "_part": f"(?:{self.pat.part})\\Z",
        }
        made = re.compile(sources[name]).match
        setattr(self, name, made)
        return made

    def at(self, text: str, pos: int, ended: bool) -> re.Match[str] | Literal[False] | None:
        if ended:
            return self._ended(text, pos) or False
        found = self.whole(text, pos)
        if found is not None and self._final:
            return found
        # A beginning counts before the whole: of two alternatives the longer may still be arriving.
        if self._part(text, pos):
            return None
        return found or False

    def is_begun(self, text: str, pos: int) -> bool:
        """Does the text end here inside of it?"""
        return self._part(text, pos) is not None

    @staticmethod
    def never() -> Probe:
        return Probe(Pat("(?!)", "(?!)"))


_FEW_SIGNS = 2


class Finder:
    """Where a pattern stands first. One that begins with a sign or two and a gap, as `<`, `｜DSML｜`, is found by what
    follows the gap: the signs alone may stand anywhere, and often."""

    def __init__(self, pat: Pat) -> None:
        first, gap, _ = pat.opening.partition(ANY_GAP)
        # What is only looked ahead at is searched for as itself: that finds the same place, many times quicker.
        whole = re.escape(pat.head) + pat.tail[0] if pat.head else pat.whole
        rest = whole.removeprefix(re.escape(first) + GAP.whole)
        is_late = bool(gap) and len(first) <= _FEW_SIGNS and rest != whole
        self._first, self._rest = (first, rest) if is_late else ("", whole)
        # What it begins with, where that is enough to go by.
        self.anchor = pat.prefix if not is_late and pat.head and len(pat.prefix) > _FEW_SIGNS else ""
        # A damaged marker, of which but a sign or two are certain.
        self.is_loose = not is_late and not self.anchor

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        return re.compile(self._rest), re.compile(f"{re.escape(self._first)}{GAP.whole}\\Z")

    def first(self, text: str, pos: int, end: int | None = None) -> int:
        """From `pos` on, up to `end`; -1 for nowhere."""
        search, before = self._patterns
        stop = len(text) if end is None else end
        while (found := search.search(text, pos, stop)) is not None:
            if not self._first:
                return found.start()
            least = max(0, found.start() - len(self._first) - _LONGEST_GAP)
            start = before.search(text, least, found.start())
            if start is not None:
                return start.start()
            pos = found.start() + 1
        return -1

    def first_of(self, text: str, places: list[int]) -> int:
        """Of the places where its anchor stands; -1 for none of them."""
        at = self._patterns[0].match
        return next((place for place in places if at(text, place)), -1)


def presence(pat: Pat) -> Probe:
    """A probe that tells whether this is there, and not how much of it: what is there stays, whatever arrives."""
    return Probe(lookahead(pat)._replace(sure=FINAL))


class Holes:
    """A marker with holes: `fill` gives what stands in those of a match of `probe`. `unended` are templates that count
    at the end of a line only."""

    __slots__ = ("groups", "probe")

    def __init__(self, marker: Marker, *, quoted: bool = False, unended: Sequence[str] = ()) -> None:
        # Group names must be unique in an expression: each alternative has its own.
        texts = longest_first(marker)
        pats = [template(text, named=str(i), quoted=quoted) for i, text in enumerate(texts)]
        more = enumerate(unended, len(texts))
        pats += [template(text, named=str(i), quoted=quoted, unended=True) for i, text in more]
        self.probe = Probe(alt(*pats))
        holes: dict[str, list[tuple[str, int]]] = {}
        for name, group in re.compile(self.probe.pat.whole).groupindex.items():
            holes.setdefault(name.lstrip(_LETTERS), []).append((name.rstrip(_DIGITS), group))
        # The last group of a match tells which alternative it is of.
        self.groups = {found[-1][1]: found for found in holes.values()}

    def fill(self, match: re.Match[str]) -> dict[str, str]:
        filled = {}
        for hole, group in self.groups.get(match.lastindex or 0, ()):
            filled[hole] = match[group]
        return filled


A = TypeVar("A")
Entries = list[tuple[A, Pat]]
_MANY = 36
_LONGEST = 8_192
_NEVER = "(?!)"


class Scan(Generic[A]):
    """Finds the next of several markers. `search(text, pos)` gives a match or None; `actions[match.lastindex]` says
    which it is, and no `lastindex` means that the text ends in what may become one. A marker that no later text can
    make another is tried first."""

    __slots__ = ("_groups", "actions", "ended", "finditer", "match", "match_ended", "match_whole", "search")
    search: Search
    ended: Search  # of a text of which no more comes
    finditer: Callable[..., Iterator[re.Match[str]]]
    match: Search  # at a place
    match_ended: Search
    match_whole: Search  # no marker that is still arriving

    def __init__(self, entries: Entries[A]) -> None:
        self._groups = _by_head(*_by_certainty(entries))
        actions = [action for _, certain, others in self._groups for action, _ in certain + others]
        self.actions = actions[:1] + actions  # groups count from 1

    def __getattr__(self, name: str) -> Any:
        """Compiled when it is first asked, as a `Probe` is."""
        if name in ("ended", "match_ended", "finditer"):
            ended = re.compile(self._source())
            self.ended, self.match_ended, self.finditer = ended.search, ended.match, ended.finditer
        elif name in ("search", "match"):
            search = re.compile(self._source(starts=True).replace(TEXT_END, _NEVER))
            self.search, self.match = search.search, search.match
        elif name == "match_whole":
            self.match_whole = re.compile(self._source().replace(TEXT_END, _NEVER)).match
        else:
            raise AttributeError(name)
        pats = [pat for _, certain, others in self._groups for _, pat in certain + others]
        if len(pats) > _MANY and name in ("search", "ended"):
            places = re.compile(build_trie({pat.opening[:10] for pat in pats}, begun=True)).search
            at = self.match if name == "search" else self.match_ended
            setattr(self, name, _places_first(places, self.match_whole, at))
        return getattr(self, name)

    def _source(self, *, starts: bool = False) -> str:
        """An expression for any of the markers; with `starts` also for what the text ends in and may become one. As in
        `Probe`: that is looked for first only where a longer marker may still be arriving."""
        made = []
        for head, certain, others in self._groups:
            begun = [f"(?:{pat.tail[1]})\\Z" for _, pat in certain + others] if starts else []
            sure, wholes = ([f"({pat.tail[0]})" for _, pat in each] for each in (certain, others))
            made.append(f"{re.escape(head)}(?:{'|'.join([*sure, *begun, *wholes])})")
        return "|".join(made) or _NEVER


def _by_certainty(entries: Entries[A]) -> tuple[Entries[A], Entries[A]]:
    """Those that no later text can make others, and the rest. By length of the pattern: of two markers, one beginning
    with the other, the longer is tried first."""
    entries = sorted(entries, key=lambda entry: -len(entry[1].whole))
    solids = sorted({without_blanks(pat) for _, pat in entries})
    certain: Entries[A] = []
    others: Entries[A] = []
    for entry in entries:
        (certain if is_certain(entry[1], solids) else others).append(entry)
    return certain, others


def _by_head(certain: Entries[A], others: Entries[A]) -> list[tuple[str, Entries[A], Entries[A]]]:
    """The same by their first character, which is looked at once for all that begin with it."""
    heads = dict.fromkeys(pat.head for _, pat in certain + others)
    return [(head, _of_head(head, certain), _of_head(head, others)) for head in heads]


def _of_head(head: str, entries: Entries[A]) -> Entries[A]:
    return [entry for entry in entries if entry[1].head == head]


def _places_first(places: Search, whole: Search, at: Search) -> Search:
    """A search for hundreds of markers: a tree of their first characters finds the places worth a look. Far from the
    end of the text no beginning of a marker is looked for: none is so long."""

    def search(text: str, pos: int) -> re.Match[str] | None:
        while (place := places(text, pos)) is not None:
            found = (at if len(text) - place.start() < _LONGEST else whole)(text, place.start())
            if found is not None:
                return found
            pos = place.start() + 1
        return None

    return search
