"""The openers of all formats, and the formats that each may belong to: `auto` finds the format by them.

A process uses few formats, and each takes milliseconds to compile. So the text is first searched for the literal
beginnings of openers. Only the openers with these beginnings become patterns, and a format is compiled when the text
after its opener has to be tested.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from rightcall.formats import NAMED_ONLY
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.registered import KnownFormats, known_formats
from rightcall.formats.spec import Channels, Format, Marker, NameThenJson, Special, marker_alternatives
from rightcall.parsing.blocks import FENCE_BEGIN
from rightcall.parsing.compile import (
    THINK,
    THINK_CLOSES,
    CompiledFormat,
    Sign,
    closing_sources,
    compile_format,
    ends_of,
    first_opener,
    is_sentence,
    search_any,
    sign_of,
)
from rightcall.parsing.detection import first_headers, header_without_recipient
from rightcall.parsing.markers import (
    RUN,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    build_trie,
    literal,
    longest_first,
    lookahead,
    seq,
    template,
    templates,
)
from rightcall.parsing.shown import BODY, CALL, INNERMOST, OUTSIDE, SECTION, Closes

_RECIPIENT = Pat(r"(?!functions\.)[^\W\d][\w.\-]{0,255}+", r"(?:[^\W\d][\w.\-]{0,255}+)?+", sure=RUN)
_CAPITALS = re.compile(r"\[[A-Z ]+\]").fullmatch
_HOLE_OR_BLANK = re.compile(r"\{[a-z]+\}|\s").search
_MAX_START = 8  # characters of an opener that are searched for
_MANY_TRIES = 8  # after so many, all formats of an opener are tested with one probe
_MAX_BEGUN = 8_192  # characters of the longest partial opener at the end of the text
Kind = Literal["section", "call", "body", "header", "mark"]


class Candidate:
    """A format that an opener may belong to. `pat` is the pattern of the opener; for an opener of a call or a section
    (`kind`) also that of the beginning of a body behind it, which is known only when the format is compiled."""

    def __init__(self, format: Format, opener: Pat, kind: Kind | None = None) -> None:
        self.format, self.kind = format, kind
        self._opener = opener

    @cached_property
    def compiled(self) -> CompiledFormat:
        """Return the compiled format. It is compiled at first use."""
        return compile_format(self.format)

    @cached_property
    def pat(self) -> Pat:
        """Return the pattern of the opener, for a call or a section with the beginning of a body of this format behind
        it."""
        if self.kind is None:
            return self._opener
        inside = _inside_call(self.compiled)
        if self.kind == "section":
            openers = [pat for pat in templates(self.format.call[0]) if pat.head != "`"]
            inner = [seq(opener, blanks(), inside) for opener in openers]
            inside = lookahead(alt(*inner, *[pat for pat, _ in self.compiled.bodies.openers]))
        return seq(self._opener, blanks(), inside)

    @cached_property
    def probe(self) -> Probe:
        """Return a probe that tests whether the text at an opener is of this format."""
        return Probe(self.pat)


def _inside_call(found: CompiledFormat) -> Pat:
    """Return the pattern of what may follow the opener of a call in this format, none of which is consumed: a body, its
    closing marker, or, in formats whose calls are JSON objects with name and arguments, a body behind the first line of
    a code fence."""
    begins = [lookahead((reader.tells or reader.begins).pat) for reader in found.bodies.readers]
    is_fenced = found.bodies.envelope is not None
    fences = [lookahead(seq(FENCE_BEGIN.pat, blanks(), begin)) for begin in begins] if is_fenced else []
    return alt(*begins, *fences, *map(lookahead, templates(found.format.call[1])))


class Opener:
    """One opener, and the formats that have it."""

    def __init__(self, pat: Pat) -> None:
        self.pat = pat
        self.level = INNERMOST
        self.is_special = self.is_token = False
        self.opens_call = False  # it opens a call or a section, and nobody writes it by chance
        self.candidates: list[Candidate] = []
        self._added: list[tuple[Candidate, int]] = []  # with their levels
        self._tries = 0

    def add(self, candidate: Candidate, kind: Kind, sign: Sign) -> None:
        """Append the format of `candidate`, in which this opener is a marker of this `kind` with this `sign`. `level`
        becomes the outermost level in any format; `is_special` and `is_token` are True if they are for any,
        `opens_call` if it is of a call or a section in any and does not begin with a letter or digit."""
        self.candidates.append(candidate)
        self._added.append((candidate, _LEVELS[kind]))
        self.level = min(level for _, level in self._added)
        self.is_special = self.is_special or sign.special
        self.is_token = self.is_token or sign.is_token
        self.opens_call = self.opens_call or (kind in ("call", "section") and not self.pat.head.isalnum())

    def sort(self) -> None:
        """Sort the candidates: formats that write this opener first, then those that only accept it in place of the
        opener of their section. Within each group a format whose header is nothing but this opener comes last, because
        it counts only if no other fits."""
        self.candidates.sort(
            key=lambda each: (
                not _is_preferred(each.format, self.pat.whole),
                each.format.channels is not None and each.kind is None and each.pat.whole == self.pat.whole,
            )
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of the formats that have this opener."""
        return frozenset([each.format.name for each in self.candidates])

    @cached_property
    def closes(self) -> Closes | None:
        """Return a function that searches a text for what ends this opener, in any of its formats, if the opener is
        only shown; None if nothing ends it, as for headers and marks. Code fences are left out."""
        sources = [closing_sources(each.format, level) for each, level in self._added]
        return search_any(list(dict.fromkeys(chain.from_iterable(sources))))

    @cached_property
    def _any(self) -> Probe:
        """Return a probe for the opener and what must follow it in any of its formats."""
        return Probe(alt(*[each.pat for each in self.candidates]))

    def may_follow(self, text: str, pos: int, ended: bool) -> bool:
        """Return whether the text at `pos`, the opener and what follows it, matches any of its formats or may when more
        text comes. Each call is counted, of all texts; the first seven times it is True without a test, which would
        compile all formats. `ended`: no more text comes."""
        self._tries += 1
        return self._tries < _MANY_TRIES or self._any.at(text, pos, ended) is not False

    @cached_property
    def body(self) -> Probe:
        """Return a probe for the text behind the opener: the beginning of a body of any of its formats, even a
        malformed one."""
        pats = {each.compiled.bodies.begin.pat.whole: each.compiled.bodies.begin.pat for each in self.candidates}
        return Probe(alt(*pats.values()))


class FoundOpener(NamedTuple):
    """An opener at a place in the text. If `opener` is None, it is `</think>`, or with `is_begun` the end of the text,
    which may become an opener when more text comes."""

    start: int
    end: int
    text: str
    opener: Opener | None
    is_begun: bool


class _Marker(NamedTuple):
    """A marker that identifies a format, before its pattern is built."""

    format: Format
    kind: Kind
    text: str


class KnownOpeners:
    """The openers of all known formats. Use `known_openers()`."""

    def __init__(self, known: KnownFormats) -> None:
        self.known = known
        self._formats = list(known.formats.values())
        self._ends = Counter([end.strip() for end in _all_ends(self._formats)])
        self._markers: dict[str, list[_Marker]] = {}  # by their literal beginning
        for format in self._formats:
            if format.name not in NAMED_ONLY and not _has_no_opener(format):
                for marker in _markers(format, self._ends):
                    self._markers.setdefault(_start(marker.text), []).append(marker)
        starts = {*self._markers, THINK_CLOSES}
        self._places = re.compile(build_trie(starts, begun=True)).search
        self._starts = frozenset(starts)
        self._scans: dict[tuple[str, ...], Scan[Opener | None]] = {}

    def search(self, text: str, pos: int, *, ended: bool) -> FoundOpener | None:
        """Return the next opener, or `</think>` (`opener` is None), from `pos` on; None if there is none. Unless
        `ended` (no more text comes) it may be a partial one that the text ends in: then `is_begun` is set and `opener`
        is None too. A partial one of 8,192 characters or more does not count."""
        while (place := self._places(text, pos)) is not None:
            start = place.start()
            scan = self._scan_at(text, start)
            is_far = len(text) - start >= _MAX_BEGUN
            found = (scan.match_ended if ended else scan.match_whole if is_far else scan.match)(text, start)
            if found is not None:
                opener = scan.actions[found.lastindex] if found.lastindex else None
                return FoundOpener(start, found.end(), found.group(), opener, found.lastindex is None)
            pos = start + 1
        return None

    def _scan_at(self, text: str, pos: int) -> Scan[Opener | None]:
        """Return the matcher for the openers, and `</think>`, whose literal beginning is at `pos`, or may still be
        arriving there at the end of the text. It is not run here. One is built for each set of such beginnings and
        cached."""
        here = text[pos : pos + _MAX_START]
        starts = [here[:size] for size in range(1, len(here) + 1) if here[:size] in self._starts]
        if pos + _MAX_START > len(text):
            starts += [start for start in self._starts if len(start) > len(here) and start.startswith(here)]
        key = tuple(starts)
        if key not in self._scans:
            self._scans[key] = self._build_scan(key)
        return self._scans[key]

    def _build_scan(self, starts: tuple[str, ...]) -> Scan[Opener | None]:
        """Return a new matcher for the openers that have one of these literal beginnings. The action of each is its
        `Opener`, with candidates, sorted, for the formats that have it. `</think>`, whose action is None, is included
        if it begins with one of them."""
        openers: dict[str, Opener] = {}
        order = {format.name: i for i, format in enumerate(self._formats)}
        markers = [marker for start in starts for marker in self._markers.get(start, ())]
        for marker in sorted(markers, key=lambda marker: (order[marker.format.name], _KINDS.index(marker.kind))):
            for pat, candidate, sign in _candidates(marker):
                opener = openers.setdefault(pat.whole, Opener(pat))
                opener.add(candidate, marker.kind, sign)
        for opener in openers.values():
            opener.sort()
        entries: list[tuple[Opener | None, Pat]] = [(opener, opener.pat) for opener in openers.values()]
        if any(THINK_CLOSES.startswith(start) for start in starts):
            entries.append((None, literal(THINK_CLOSES)))
        return Scan(entries)

    # -- the beginning of a reply ----------------------------------------------------------------------------------

    @cached_property
    def headers(self) -> list[Candidate]:
        """Return a candidate for each format with message headers: its probe matches a first header without its start,
        because the prompt ended with it."""
        return [Candidate(self.known.formats[name], probe.pat) for name, probe in first_headers(self.known).items()]

    @cached_property
    def first(self) -> list[Candidate]:
        """Return candidates for what only the beginning of a reply identifies: a header without its start, a marker of
        reasoning that is a sentence (`is_sentence`), or an opener of a call, with a name, without its first token."""
        found = [*self.headers]
        for format in self._formats:
            sentences = longest_first(format.reasoning[0]) if format.reasoning else []
            found += [Candidate(format, seq(blanks(), template(text))) for text in sentences if is_sentence(text)]
        openers = [(format, first_opener(format.call[0])) for format in self._formats]
        return found + [
            Candidate(format, seq(blanks(), opener.pat)) for format, opener in openers if opener is not None
        ]

    # -- thoughts --------------------------------------------------------------------------------------------------

    @cached_property
    def marks(self) -> frozenset[str]:
        """Return the pattern sources of the markers of reasoning and content that identify a format."""
        texts = [mark for format in self._formats for mark in _distinctive_marks(format, self._ends)]
        return frozenset([template(text).whole for text in texts])

    @cached_property
    def thought_opens(self) -> frozenset[str]:
        """Return the pattern sources of the opening markers of reasoning of all formats."""
        return self._reasoning_side(0)

    @cached_property
    def thought_closes(self) -> frozenset[str]:
        """Return the pattern sources of the closing markers of reasoning of all formats, except those that open it in
        any format."""
        return self._reasoning_side(1) - self.thought_opens

    def _reasoning_side(self, side: int) -> frozenset[str]:
        """Return the pattern sources of the opening (`side` 0) or closing (1) markers of reasoning of all formats."""
        pairs = [format.reasoning for format in self._formats if format.reasoning is not None]
        return frozenset([template(mark).whole for pair in pairs for mark in marker_alternatives(pair[side])])

    @cached_property
    def plain(self) -> Format:
        """Return the format "auto", which has no openers, `<think>` reasoning and, of the ends of turns and messages of
        all formats, those with special tokens: before the format is found there are no calls."""
        ends = dict.fromkeys([end for end in _all_ends(self._formats) if isinstance(end, Special)])
        return Format("auto", body=NameThenJson(), reasoning=THINK, ends=tuple(ends))


_LEVELS: dict[Kind, int] = {"section": SECTION, "call": CALL, "body": BODY, "header": OUTSIDE, "mark": INNERMOST}
_KINDS = list(_LEVELS)  # in the order in which openers are tried


def _markers(format: Format, ends: Counter[str]) -> list[_Marker]:
    """Return the markers that identify this format: openers of sections and calls (without code fences), of bodies (one
    for each literal beginning that begins with no shorter one; those that begin with a letter or digit only if calls
    may have no marker), tokens of headers, and distinctive marks. `ends` counts the end markers of all formats."""
    sections = longest_first(format.section[0]) if format.section else []
    found = [_Marker(format, "section", text) for text in sections]
    found += [_Marker(format, "call", text) for text in longest_first(format.call[0]) if text[0] != "`"]
    is_bare = "" in marker_alternatives(format.call[0])
    opening = [marker for body in format.bodies for marker in BODIES[type(body)].opening(body)]
    texts = [text for marker in opening for text in longest_first(marker) if is_bare or not text[0].isalnum()]
    starts = {_start(text): text for text in texts if _start(text)}
    # The patterns of a longer beginning are also found by the shorter one.
    shortest = [start for start in starts if not any(start != other and start.startswith(other) for other in starts)]
    found += [_Marker(format, "body", starts[start]) for start in shortest]
    if format.channels is not None:
        headers = [*marker_alternatives(format.channels.start), format.channels.channel]
        found += [_Marker(format, "header", text) for text in headers if isinstance(text, Special)]
    return found + [_Marker(format, "mark", text) for text in _distinctive_marks(format, ends)]


def _start(text: str) -> str:
    """Return the literal beginning of a marker without blanks around it, at most eight characters: up to its first hole
    or blank, the place between two tags, or a special token; of a marker that begins with a special token, up to the
    end of that token."""
    text = text.strip()
    hole = _HOLE_OR_BLANK(text)
    start = text[: hole.start()] if hole is not None else text
    for token in getattr(text, "tokens", ()):
        at = start.find(token)
        if at >= 0:
            start = start[: at if at else len(token)]
    touching = start.find("><")  # blanks may be between two tags
    return (start[: touching + 1] if touching >= 0 else start)[:_MAX_START]


def _candidates(marker: _Marker) -> list[tuple[Pat, Candidate, Sign]]:
    """Return the pattern of the opener, a candidate and the sign for a marker, in a list. For a body the list has each
    opening tag of the format with the marker's literal beginning, unless it does not identify the format; it may be
    empty. The candidate of a header also tests the recipient behind it, where other formats begin one alike. Headers
    always count as special tokens, marks never (their action is `content`, also for reasoning)."""
    format, kind, text = marker
    if kind == "body":
        start = _start(text)
        return [
            (pat, Candidate(format, pat), sign)
            for pat, sign in compile_format(format).bodies.openers
            if pat.prefix.startswith(start) and _is_unambiguous(pat, format)
        ]
    pat = template(text)
    if kind == "header":
        assert format.channels is not None
        behind = _required_recipient(format, format.channels)
        return [(pat, Candidate(format, seq(pat, *behind) if behind else pat), Sign("header", True, True))]
    if kind == "mark":
        return [(pat, Candidate(format, pat), Sign("content"))]
    return [(pat, Candidate(format, pat, kind), sign_of(kind, text))]


def _required_recipient(format: Format, channels: Channels) -> list[Pat]:
    """Return the patterns that must follow the start of a header to tell this format from others, or an empty list if
    the format has a channel token or no recipients. They are: a recipient that is a kind of message, or another name
    (not `functions.`) whose message begins, behind blanks, with a character other than `{`; or no recipient and the
    opener of a section."""
    if channels.channel or not channels.to:
        return []
    message = template(channels.message)
    kinds = alt(*[seq(literal(kind), blanks(), message) for kind in channels.kinds])
    name = seq(_RECIPIENT, blanks(), message, blanks(), lookahead(Pat(r"[^{\s]", "")))
    return [
        blanks(),
        alt(seq(template(channels.to), lookahead(alt(kinds, name))), lookahead(header_without_recipient(format))),
    ]


def _has_no_opener(format: Format) -> bool:
    """Return whether no call of this format has any marker before it: the format has no markers of calls, also no
    closing ones, no section and no headers, and the first alternative of each opening tag of its bodies is empty."""
    untagged = not any(
        marker_alternatives(tag)[0] for body in format.bodies for tag in BODIES[type(body)].opening(body)
    )
    return format.call == ("", "") and not format.section and not format.channels and untagged


def _is_preferred(format: Format, opener: str) -> bool:
    """Return whether the pattern source `opener` is not an alternative opener of the format's section, which it accepts
    but does not write. True for any other opener."""
    section = marker_alternatives(format.section[0]) if format.section else ()
    return opener not in [template(text).whole for text in section[1:]]


def _is_unambiguous(pat: Pat, format: Format) -> bool:
    """Return whether the opening tag of a body, `pat`, identifies the format. Tags that begin with `<invoke` or
    `<function` do so only in formats whose calls need neither a marker nor a section."""
    if "" in marker_alternatives(format.call[0]) and format.section is None:
        return True
    return not pat.prefix.startswith(("<invoke", "<function"))


def _distinctive_marks(format: Format, ends: Counter[str]) -> list[str]:
    """Return the markers of reasoning and content that identify a format and end no turn or message of any format; also
    the first token of one that begins with it, if that is no such end itself and no other format ends a turn or message
    with a marker that begins with it. `ends` counts the end markers of all formats."""
    marks: list[str] = [mark for side in _rare_sides(format) for mark in marker_alternatives(side) if _is_tag(mark)]
    others = ends - Counter([end.strip() for end in ends_of(format)])
    first = [(mark, token) for mark in marks if isinstance(mark, Special) for token in mark.tokens[:1]]
    tokens = [token for mark, token in first if mark.strip().startswith(token)]
    tokens = [token for token in tokens if not any(end.startswith(token) for end in others)]
    return [mark for mark in marks + tokens if mark.strip() not in ("", *ends)]


def _is_tag(mark: str) -> bool:
    """Return whether a marker is or contains a special token, consists of capitals and blanks in square brackets, or
    begins with `<` and contains `:`, `_` or `|`."""
    text = mark.strip()
    return (
        isinstance(mark, Special) or _CAPITALS(text) is not None or (text[:1] == "<" and bool(set(text) & set(":_|")))
    )


def _rare_sides(format: Format) -> list[Marker]:
    """Return the opening and closing markers of content, and of reasoning unless its opening marker is that of
    `THINK`."""
    is_usual = format.reasoning is None or format.reasoning[0] == THINK[0]
    pairs = [*format.content, *([] if is_usual else [format.reasoning])]
    return [side for pair in pairs if pair is not None for side in pair]


def _all_ends(formats: list[Format]) -> list[str]:
    """Return the end markers of turns and messages of these formats, with repetitions."""
    return [end for format in formats for end in ends_of(format)]


def known_openers() -> KnownOpeners:
    """Return the openers of the formats that are registered now, from a cache if possible."""
    return _openers_of(known_formats())


@lru_cache(4)
def _openers_of(known: KnownFormats) -> KnownOpeners:
    """Return the openers of these formats, from the cache if possible."""
    return KnownOpeners(known)
