"""Patterns of markers in a text that is still arriving, which answer yes, no or "more text is needed".

`Pat` has two regular expressions: one matches the whole marker, the other any beginning of it. `Probe` tests whether a
marker is at a place, `Scan` finds the next of many markers. A beginning only counts at the end of the text so far.

    Probe(template("<parameter={key}>")).at("<parameter=ci", 0, False)  -> None: more text is needed
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from rightcall.formats.spec import HOLES, Marker, Special, marker_alternatives

Search = Callable[[str, int], "re.Match[str] | None"]
BLANKS = " \t\r\n"
# Longer runs of blanks are not part of a marker: unbounded runs would be scanned again with every chunk.
MAX_BLANKS = 128
_BLANKS = re.compile(r"[ \t\r\n]*+").match
_MAX_INVALID_NAME = 128  # characters of text in place of a name

# A key in quotation marks, whose own quotation marks are escaped.
_QUOTED_KEY = r'[^"\r\n]{1,256}'
_HOLE_STARTS = {hole: f"(?:{HOLES[hole]}+)?+" for hole in ("name", "key")}
_DIGITS, _LETTERS = "0123456789", "abcdefghijklmnopqrstuvwxyz"
_HOLE = re.compile(r"\{(name|key|type|id|index|number|cite)\}")
# Where any blanks may be: in place of a line break, and between two tags.
_ANY_BLANKS = re.compile(r"((?<![ \t\r])[ \t\r]*+\n[ \t\r\n]*+|(?<=[a-z_]>)(?=<[a-z_]))")


# How certain a whole match is while more text may come.
FINAL, RUN, OPEN = 2, 1, 0


class Pat(NamedTuple):
    """A pattern of a marker, as sources of regular expressions.

    - `whole` matches the marker; `part` any proper beginning of it, the empty one included.
    - `head`: its first character, if that is always the same. A search skips to it at C speed. `tail` has whole and
      part of what follows it.
    - `prefix`: the literal text that it begins with. `opening`: the same beyond the gaps next to special tokens, which
      are `ANY_GAP` in it.
    - `sure`: FINAL if no later text can change a whole match, RUN if later text can only make it longer, else OPEN.
    """

    whole: str
    part: str
    head: str = ""
    tail: tuple[str, str] = ("", "")
    prefix: str = ""
    sure: int = OPEN
    opening: str = ""


def literal(text: str) -> Pat:
    """Return the pattern of exactly this text."""
    whole, part = _literal(text)
    return Pat(whole, part, text[:1], _literal(text[1:]), text, FINAL, text)


def _literal(text: str) -> tuple[str, str]:
    """Return the sources for a literal text and for any proper beginning of it."""
    part = ""
    for char in reversed(text[:-1]):
        part = f"(?:{re.escape(char)}{part})?+"  # possessive: only the longest beginning can reach the end
    return re.escape(text), part


def skip_blanks(text: str, pos: int) -> int:
    """Return the index behind the blanks at index `pos` of the text, `pos` itself if there are none."""
    return _BLANKS(text, pos).end()  # type: ignore[union-attr]


def blanks(most: int = MAX_BLANKS) -> Pat:
    """Return the pattern of zero to `most` blanks."""
    run = f"[ \\t\\r\\n]{{0,{most}}}+"
    return Pat(run, run, sure=RUN)


ANY_GAP = "\0"
_NEVER = "(?!)"
_LONGEST_GAP = 16
GAP = blanks(_LONGEST_GAP)._replace(opening=ANY_GAP)
_BLANK_RUNS = re.compile(r"\[ \\t\\r\\n\]\{0,\d++\}\+")  # as `blanks` writes them


def build_trie(texts: Set[str], *, begun: bool = False) -> str:
    """Return the source of a regular expression for any of these texts; where one begins with another, the shorter
    matches. If one of them is empty, the source is empty.

    With `begun` it also matches a beginning of a text, of at least one character, at the end of the searched text. Its
    cost does not depend on the number of texts. `ANY_GAP` in a text stands for up to 16 blanks.
    """
    if "" in texts:
        return ""
    branches = []
    for head in sorted({text[0] for text in texts}):
        rest = build_trie({text[1:] for text in texts if text[0] == head}, begun=begun)
        begins = GAP.whole if head == ANY_GAP else re.escape(head)
        branches.append(begins + (f"(?:{rest}|\\Z)" if begun and rest else rest))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def seq(*pats: Pat) -> Pat:
    """Return the pattern of these patterns, at least one, one after another. It is as `sure` as the last one if none is
    OPEN and no name or key can go on into the literal text behind it, else OPEN. `head` and `prefix` are those of the
    first."""
    whole, part = _seq([(p.whole, p.part) for p in pats])
    tail = _seq([pats[0].tail, *((p.whole, p.part) for p in pats[1:])])
    sure = pats[-1].sure if all(p.sure for p in pats) and _ends_holes(pats) else OPEN
    return Pat(whole, part, pats[0].head, tail, pats[0].prefix, sure, _opening(pats))


def _ends_holes(pats: tuple[Pat, ...]) -> bool:
    """Return whether each hole is certainly over where the literal text behind it begins. False for `{name}:`, because
    a name may contain a colon and go on. Holes without literal text behind them are not checked."""
    for i, pat in enumerate(pats[:-1]):
        literals = "".join([after.prefix for after in pats[i + 1 :]])
        if pat.sure == RUN and literals and re.fullmatch(pat.whole, "a" + literals):
            return False
    return True


def _opening(pats: tuple[Pat, ...]) -> str:
    """Return the `Pat.opening` of a sequence: the joined openings of its patterns, up to and with the first one that is
    not literal."""
    found = ""
    for pat in pats:
        found += pat.opening
        if pat is not GAP and pat.whole != re.escape(pat.prefix):
            break
    return found


def _seq(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    """Join pairs of sources, (whole, part), into the pair of the sequence: `part` matches any beginning of it."""
    whole, part = pairs[-1]
    for before, start in reversed(pairs[:-1]):
        if before:
            whole, part = before + whole, f"(?:{start}\\Z|{before}(?:{part}))"
    return whole, part


def alt(*pats: Pat) -> Pat:
    """Return the pattern of any of these patterns; of several that match, the first counts. Of several patterns the
    result has no `head`, `tail`, `prefix` or `opening`, and is FINAL if `is_certain` holds for each, else OPEN. One
    pattern is returned as it is; without patterns the result never matches."""
    if len(pats) < 2:
        return pats[0] if pats else Pat(_NEVER, _NEVER)
    solids = sorted({without_blanks(pat) for pat in pats})
    sure = FINAL if all(is_certain(pat, solids) for pat in pats) else OPEN
    part = "(?:" + "|".join(f"{p.part}\\Z" for p in pats) + ")"
    return Pat("(?:" + "|".join(p.whole for p in pats) + ")", part, sure=sure)


def without_blanks(pat: Pat) -> str:
    """Return the source of `pat.whole` without its runs of optional blanks, which do not distinguish two patterns."""
    return _BLANK_RUNS.sub("", pat.whole)


def is_certain(pat: Pat, others: list[str]) -> bool:
    """Return whether no later text can turn a match of `pat` into a longer match, of itself or of another pattern.
    False if the source of another begins with its source. `others`: the sorted sources of all patterns without blanks,
    `pat` included, so that only the next one has to be compared."""
    if pat.sure != FINAL:
        return False
    own = without_blanks(pat)
    after = bisect_right(others, own)
    return after == len(others) or not others[after].startswith(own)


def lookahead(pat: Pat) -> Pat:
    """Return a pattern that matches where `pat` does, but consumes nothing. Its other fields are those of `pat`."""
    return pat._replace(whole=f"(?={pat.whole})")


# The end of the text. It never matches while more text may come.
TEXT_END = r"(?:\Z)"
END = Pat(TEXT_END, "", sure=FINAL)
NAME = Pat(f"(?:{HOLES['name']})", _HOLE_STARTS["name"], sure=RUN)
NAMED = NAME._replace(whole=f"(?P<name>{HOLES['name']})")


LINE_END = lookahead(Pat(r"[ \t]{0,4}+\r?\n", r"[ \t]{0,4}+\r?", sure=FINAL))


def template(text: str, *, named: str = "", group: str = "", quoted: bool = False, unended: bool = False) -> Pat:
    """Return the pattern of one marker template, without white space at its edges; that of a blank one matches the
    empty text. Next to a special token up to 16 blanks are allowed, because detokenizers write them; in place of a line
    break, and between two tags, up to 128.

    - `named`: make its holes groups whose names end in this text. `group`: make the hole of that name a numbered group.
    - `quoted`: a key may contain anything but a quotation mark or a line break. - `unended`: the marker counts only at
    the end of a line.
    """
    tokens = text.tokens if isinstance(text, Special) else ()
    pats: list[Pat] = []
    for i, piece in enumerate(_HOLE.split(text.strip(BLANKS))):
        pats += [_hole(piece, named, group, quoted)] if i % 2 else _literals(piece, tokens, first=i == 0)
    while pats and pats[-1] is GAP:
        pats.pop()
    pats += [LINE_END] if unended else []
    return seq(*pats) if pats else Pat("", "")


def _hole(hole: str, named: str, group: str, quoted: bool) -> Pat:
    """Return the pattern of the hole whose name is `hole`; the other arguments are those of `template`."""
    source = _QUOTED_KEY if quoted and hole == "key" else HOLES[hole]
    start = _HOLE_STARTS.get(hole, "") if source is HOLES[hole] else ""
    opener = f"(?P<{hole}{named}>" if named else "(" if hole == group else "(?:"
    return Pat(f"{opener}{source})", start or source.replace("{1,", "{0,") + "+", sure=RUN)


def _literals(piece: str, tokens: tuple[str, ...], *, first: bool) -> list[Pat]:
    """Return the patterns of `piece`, a text without holes: each special token in it with a gap on both sides. `first`:
    the piece begins the marker; a token at its very beginning has no gap before it."""
    pats: list[Pat] = []
    split = "|".join(["(?!)", *map(re.escape, sorted(tokens, key=len, reverse=True))])
    runs = re.split(f"({split})", piece)  # text and token in turn; a text may be empty
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


def _with_any_blanks(run: str) -> list[Pat]:
    """Return the patterns of a text in which each line break, and the place between two tags, may be any run of
    blanks."""
    parts = enumerate(_ANY_BLANKS.split(run))
    return [blanks() if i % 2 else literal(part) for i, part in parts if i % 2 or part]


def longest_first(marker: Marker) -> list[str]:
    """Return the alternatives of a marker, longest first, without the empty one and without white space at their
    edges."""
    texts = {str(text): text for text in [text.strip(BLANKS) for text in marker_alternatives(marker)] if text}
    return sorted(texts.values(), key=lambda text: (-len(text), str(text)))


def templates(marker: Marker, *, quoted: bool = False) -> list[Pat]:
    """Return the pattern of each alternative of a marker, longest first, without the empty one."""
    return [template(text, quoted=quoted) for text in longest_first(marker)]


def split_at_name(text: str) -> tuple[str, str]:
    """Return the text of a marker before and after its hole `{name}`, both as `Special` if the marker is. Without the
    hole, the whole text and ""."""
    before, _, after = text.partition("{name}")
    return (Special(before, text.tokens), Special(after, text.tokens)) if isinstance(text, Special) else (before, after)


def truncated_after_name(text: str, name: Pat = NAME) -> Pat:
    """Return the pattern of a marker with a name that the text ends in: inside the name, behind it, or in the text
    behind it, but not behind all of that. It matches only if no more text comes. `name`: the pattern of the name."""
    before, after = split_at_name(text)
    begun = template(after).part if after.strip() else ""
    return seq(*([template(before)] if before.strip() else []), name, Pat(f"(?:{begun})", begun), END)


def with_invalid_name(text: str, follows: list[Pat], *, named: bool = False) -> Pat:
    """Return the pattern of a marker with other text in place of its name: up to 128 characters of one line, without
    `<` and `>` unless white space follows the name in the marker. One of `follows` must come next (not consumed),
    because without it the text is prose about the marker. `named` makes a group `name` of that text."""
    before, behind = split_at_name(text)
    is_line = behind[:1].isspace()
    words = rf"[^{'' if is_line else '<>'}\r\n]"
    whole = f"{words}{{1,{_MAX_INVALID_NAME}}}{'+' * is_line}"
    hole = Pat(f"(?P<name>{whole})" if named else whole, f"{words}{{0,{_MAX_INVALID_NAME}}}+", sure=RUN)
    gap = [blanks()] if is_line else []
    return seq(template(before), hole, *gap, template(behind), blanks(), lookahead(alt(*follows)))


class Probe:
    """Tests whether a pattern is at a place in a text. Its expressions are compiled when they are first used, because a
    process uses few of the thousands of all formats."""

    __slots__ = ("_ended", "_final", "_part", "pat", "whole")
    _ended: Search
    _part: Search
    whole: Search

    def __init__(self, pat: Pat) -> None:
        self.pat = pat
        self._final = pat.sure == FINAL

    def __getattr__(self, name: str) -> Search:
        """Compile and keep an expression that is used for the first time: `whole`, `_part` or `_ended`. Any other name
        raises `KeyError`."""
        sources = {
            "_ended": self.pat.whole,
            "whole": self.pat.whole.replace(TEXT_END, _NEVER),
            "_part": f"(?:{self.pat.part})\\Z",
        }
        made = re.compile(sources[name]).match
        setattr(self, name, made)
        return made

    def at(self, text: str, pos: int, ended: bool) -> re.Match[str] | Literal[False] | None:
        """Return the match at index `pos`, False if there is none, None if more text is needed to tell, also if a match
        may become a longer one or another alternative has begun. `ended`: no more text comes; then the result is never
        None."""
        if ended:
            return self._ended(text, pos) or False
        found = self.whole(text, pos)
        if found is not None and self._final:
            return found
        # A beginning takes precedence: of two alternatives the longer may still be arriving.
        if self._part(text, pos):
            return None
        return found or False

    def is_begun(self, text: str, pos: int) -> bool:
        """Return whether the text from `pos` to its end is a proper beginning of the pattern, also an empty one; also a
        whole match that may still become longer."""
        return self._part(text, pos) is not None

    @staticmethod
    def never() -> Probe:
        """Return a probe that matches nowhere."""
        return Probe(alt())


_SHORT_PREFIX = 2


class Finder:
    """Finds the first place of a pattern. If it begins with one or two characters and a gap, as `<` and `｜DSML｜`, it
    is found by what follows the gap, because the characters alone may be frequent."""

    def __init__(self, pat: Pat) -> None:
        first, gap, _ = pat.opening.partition(ANY_GAP)
        # A lookahead is searched for as its content: that finds the same place many times faster.
        whole = re.escape(pat.head) + pat.tail[0] if pat.head else pat.whole
        rest = whole.removeprefix(re.escape(first) + GAP.whole)
        is_late = bool(gap) and len(first) <= _SHORT_PREFIX and rest != whole
        self._first, self._rest = (first, rest) if is_late else ("", whole)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Return the compiled pattern that is searched for, and that of the literal text and the gap before it, which
        must end where the former begins."""
        return re.compile(self._rest), re.compile(f"{re.escape(self._first)}{GAP.whole}\\Z")

    def first(self, text: str, pos: int, end: int | None = None) -> int:
        """Return the index at which the first match of the pattern in `text[pos:end]` begins, or -1. `end`: None for
        the end of the text. A pattern that is found by what follows its gap may begin before `pos`, by at most 18
        characters."""
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


def presence(pat: Pat) -> Probe:
    """Return a probe whose match is empty and only tells that the pattern is here. It is final at once, because later
    text cannot change whether the pattern is here, only how long it is."""
    return Probe(lookahead(pat)._replace(sure=FINAL))


class Holes:
    """Reads what is in the holes of a marker. `probe` finds the marker; `unended` are further templates, which count
    only at the end of a line."""

    __slots__ = ("groups", "probe")

    def __init__(self, marker: Marker, *, quoted: bool = False, unended: Sequence[str] = ()) -> None:
        # Group names must be unique in an expression, so each alternative has its own.
        texts = longest_first(marker)
        pats = [template(text, named=str(i), quoted=quoted) for i, text in enumerate(texts)]
        more = enumerate(unended, len(texts))
        pats += [template(text, named=str(i), quoted=quoted, unended=True) for i, text in more]
        self.probe = Probe(alt(*pats))
        holes: dict[str, list[tuple[str, int]]] = {}
        for name, group in re.compile(self.probe.pat.whole).groupindex.items():
            holes.setdefault(name.lstrip(_LETTERS), []).append((name.rstrip(_DIGITS), group))
        # The last group of a match identifies its alternative.
        self.groups = {found[-1][1]: found for found in holes.values()}

    def fill(self, match: re.Match[str]) -> dict[str, str]:
        """Return the text of each hole, by name, in a match of `probe`; empty if the alternative that matched has no
        holes."""
        return {hole: match[group] for hole, group in self.groups.get(match.lastindex or 0, ())}


A = TypeVar("A")
Entries = list[tuple[A, Pat]]
_MANY = 36
_LONGEST = 8_192


class Scan(Generic[A]):
    """Finds the next of several markers.

    `search(text, pos)` returns a match or None. `actions[match.lastindex]` is the action of the marker; without
    `lastindex` the text ends in what may become a marker. Markers that no later text can change are tried first.
    """

    __slots__ = ("_groups", "actions", "ended", "finditer", "match", "match_ended", "match_whole", "search")
    search: Search
    ended: Search  # when no more text comes
    finditer: Callable[..., Iterator[re.Match[str]]]
    match: Search  # at a place
    match_ended: Search
    match_whole: Search  # without beginnings of markers

    def __init__(self, entries: Entries[A]) -> None:
        self._groups = _by_head(*_by_certainty(entries))
        actions = [action for _, certain, others in self._groups for action, _ in certain + others]
        self.actions = actions[:1] + actions  # groups count from 1

    def __getattr__(self, name: str) -> Any:
        """Compile an expression when one of its matching functions, such as `search`, is used for the first time, and
        keep all of them. With more than 36 patterns `search` and `ended` first search for the beginnings of markers.
        Raises `AttributeError` for any name that is no such function."""
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
        """Return the regular-expression source that matches any of the markers, each in its own group; without markers
        one that never matches. With `starts` it also matches, without a group, the beginning of a marker at the end of
        the text. Of markers with the same first character, those that no later text can change are tried first, then
        beginnings, then the others."""
        made = []
        for head, certain, others in self._groups:
            begun = [f"(?:{pat.tail[1]})\\Z" for _, pat in certain + others] if starts else []
            sure, wholes = ([f"({pat.tail[0]})" for _, pat in each] for each in (certain, others))
            made.append(f"{re.escape(head)}(?:{'|'.join([*sure, *begun, *wholes])})")
        return "|".join(made) or _NEVER


def _by_certainty(entries: Entries[A]) -> tuple[Entries[A], Entries[A]]:
    """Return two lists of the entries: those whose match no later text can change, and the others. Both are sorted by
    the length of the patterns' sources, the longest first, so that of two markers, one beginning with the other, the
    longer is tried first."""
    entries = sorted(entries, key=lambda entry: -len(entry[1].whole))
    solids = sorted({without_blanks(pat) for _, pat in entries})
    certain: Entries[A] = []
    others: Entries[A] = []
    for entry in entries:
        (certain if is_certain(entry[1], solids) else others).append(entry)
    return certain, others


def _by_head(certain: Entries[A], others: Entries[A]) -> list[tuple[str, Entries[A], Entries[A]]]:
    """Return the entries grouped by the first character of their patterns, which is then compared once: for each the
    character ("" if it varies), its certain entries and its other ones."""
    groups: dict[str, tuple[Entries[A], Entries[A]]] = {pat.head: ([], []) for _, pat in certain + others}
    for i, entries in enumerate((certain, others)):
        for entry in entries:
            groups[entry[1].head][i].append(entry)
    return [(head, *both) for head, both in groups.items()]


def _places_first(places: Search, whole: Search, at: Search) -> Search:
    """Return a search function for many markers. `places`, a search for the beginnings of markers, finds the places to
    test; `at` is the match in the last 8,192 characters of the text, where a marker may still be arriving, and `whole`
    the faster one elsewhere."""

    def search(text: str, pos: int) -> re.Match[str] | None:
        """Return the first match of a marker from `pos` on, without `lastindex` if it is a partial one; None if there
        is none."""
        while (place := places(text, pos)) is not None:
            found = (at if len(text) - place.start() < _LONGEST else whole)(text, place.start())
            if found is not None:
                return found
            pos = place.start() + 1
        return None

    return search
