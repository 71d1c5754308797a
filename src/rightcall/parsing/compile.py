"""Compile a format into what the machine runs on: its markers, a scan for each state, a reader for each body.

`FormatMarkers` lists the markers of a format, each with its action. `Compiled` makes the scans and probes of them;
it is made once per format, kept, immutable and shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from copy import copy
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from rightcall.formats.spec import Body, Channels, Format, Marker, Pair, Protocol, Special, alternatives, likely_closes
from rightcall.formats.special_tokens import texts_of
from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.bodies import BODIES
from rightcall.parsing.bodies.kind import Around, BodyReader
from rightcall.parsing.markers import (
    BLANKS,
    END,
    MAX_BLANKS,
    NAME,
    RUN,
    Finder,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    cut_behind_name,
    literal,
    look,
    misnamed,
    ordered,
    seq,
    template,
    templates,
    there,
    tree,
)
from rightcall.parsing.shown import BODY, CALL, INNERMOST, SECTION, Closes

if TYPE_CHECKING:
    from rightcall.parsing.headers import Header

_MOST = 2  # tokens behind the one that ends the turn
_BLANKS = f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"


def last_tokens(own: str) -> list[Pat]:
    """The patterns of those that are no part of these markers, one for each way to begin."""
    foreign = [str(token) for token in LAST_TOKENS if token not in own]
    starts = dict.fromkeys(token[:2] for token in foreign)
    return [_pattern(start, frozenset(token[2:] for token in foreign if token.startswith(start))) for start in starts]


@cache  # many formats have the same
def _pattern(start: str, rests: frozenset[str]) -> Pat:
    whole, begun = tree(rests), tree(rests, begun=True)
    more, next_begun = _further_tokens()
    second = re.escape(start[1:])
    tail = (
        f"{second}{whole}(?={_BLANKS}{more}{END.whole})",
        f"(?:{second}(?:{whole}{_BLANKS}{more}{next_begun}|{begun}|\\Z)|)",
    )
    return Pat(f"<{tail[0]}", f"(?:<{tail[1]}|)", "<", tail, start, opening=start + _shared(rests))


@cache
def _further_tokens() -> tuple[str, str]:
    """Expressions for whole tokens behind the one that ends the turn, and for one that has only begun."""
    behind = {token[1:] for token in LAST_TOKENS}
    more = f"(?:<{tree(behind)}{_BLANKS}){{0,{_MOST}}}+"
    return more, f"(?:<(?:{tree(behind, begun=True)}|\\Z))?+"


def _shared(texts: Set[str]) -> str:
    """What all of them begin with."""
    first, last = min(texts), max(texts)
    differ = (i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, len(first))]


Action = Literal[
    "section",
    "section_close",
    "call",
    "body",
    "closer",
    "value_close",
    "think",
    "think_close",
    "content",
    "content_close",
    "inline",
    "end",
    "header",
    "tag",
    "done",
    "line",
    "stray",
]


class Sign(msgspec.Struct, frozen=True):
    """What a marker in the text does, and whether it is a special token, which nobody writes by chance."""

    action: Action
    special: bool = False
    is_token: bool = False  # it holds a token of its own, which nothing else in the vocabulary spells


A = TypeVar("A")
Entries = list[tuple[Sign, Pat]]
_LINE_END = Pat(r"[ \t\r]{0,4}+", r"[ \t\r]{0,4}+", sure=RUN)
_WORD_END = alt(look(Pat(r"\W", "")), END)
_SURE = 3  # characters of a tag that tell it


class FormatMarkers:
    """What of a format stands in a text."""

    def __init__(self, format: Format) -> None:
        self.format = format
        # Without a marker before it, a body is found by its own opening tag, or opens only where a reply may begin.
        self.is_bare = "" in alternatives(format.call[0])
        # A code fence is how prose shows an example: it opens a call only where a reply may begin.
        self.fences = [pat for pat in templates(format.call[0]) if pat.head == "`"]
        self.bodies = [entry for body in format.bodies for entry in _opening(body, self.is_bare)]
        self.inner = self._calls() + self.bodies + self._damaged()
        self.sections, self.section_closes = _sides(format.section, "section", "section_close")
        self.thinks, self.think_closes = map(_whole_labels, _sides(format.reasoning, "think", "think_close"))
        self.cites = entries_of_pair(format.citations, "inline", "inline")
        self.closes = entries("closer", format.call[1])
        self.body_closes = [pat for body in format.bodies for pat in _closing(body)]
        self.turns = _turns(format)
        # Models of other families end a turn in other ways.
        self.last: Entries = [(Sign("end", True, True), pat) for pat in last_tokens(" ".join(texts_of(format)))]

    def _calls(self) -> Entries:
        named = [text for text in ordered(self.format.call[0]) if "{name}" in text]
        cut = [(sign_of("call", text), cut_behind_name(text)) for text in named]
        return [entry for entry in entries("call", self.format.call[0]) if entry[1].head != "`"] + cut

    def _damaged(self) -> Entries:
        bodies = self.format.bodies
        found = [(Sign("body"), pat) for body in bodies for pat in BODIES[type(body)].damaged(body, self.format)]
        return found + [entry for body in bodies for entry in _misnamed_openings(body, self.is_bare)]

    def nameless(self) -> list[Pat]:
        """How bodies begin whose name was left out, where it can be told then."""
        return [pat for body in self.format.bodies for pat in _nameless(body)]

    def hints(self) -> list[Pat]:
        """How the tags of a body begin, whatever becomes of them: their first word."""
        kinds = [(BODIES[type(body)], body) for body in self.format.bodies]
        texts = [
            text for kind, body in kinds for text in (*ordered(body_open(body)), *ordered(kind.param_opening(body)))
        ]
        starts = dict.fromkeys(text.partition("{")[0].rstrip('=" ').partition(" ")[0] for text in texts)
        return [literal(start) for start in starts if len(start) > _SURE and not start[0].isalnum()]

    def named(self) -> list[Pat]:
        """What stands before JSON arguments, where it is more than a name."""
        return [template(text) for body in self.format.bodies for text in _named_openings(body)]

    def beside(self) -> list[Pat]:
        """What no call goes on behind: its close, and what opens or closes anything else that stands beside calls."""
        pairs = (self.format.call, *self.format.content)
        return [pat for pair in pairs for side in pair for pat in templates(side)]

    def after(self) -> list[Pat]:
        """What may follow the end of a body: the call's close, or where there is none whatever else is structure."""
        return [pat for _, pat in self.closes + self.section_closes + self.inner + self.turns]

    def lone_tokens(self) -> Entries:
        """The special tokens of which a call's markers are made, where they stand alone."""
        texts = [text for marker in self._around_calls() for text in alternatives(marker) if isinstance(text, Special)]
        tokens = {token for text in texts for token in text.tokens if token != text and _is_at_edge(text, token)}
        return [(Sign("closer", True, True), literal(token)) for token in sorted(tokens)]

    def stray_tokens(self) -> Entries:
        """Every other special token of the format: none of them belongs into text. What begins a header is one only
        where no header follows, which is for the header to tell."""
        format, channels = self.format, self.format.channels
        markers = [marker for body in format.bodies for marker in BODIES[type(body)].markers(body)]
        begins: tuple[str, ...] = ()
        if channels is not None:
            begins = (*alternatives(channels.start), channels.channel)
            markers += [*begins, channels.message, *[side for sides in channels.messages.values() for side in sides]]
        texts = [text for marker in [*markers, *format.ends] for text in alternatives(marker)]
        tokens = {token for text in texts for token in getattr(text, "tokens", ())}
        tokens -= {token for text in begins for token in getattr(text, "tokens", ())[:1]}
        return [(Sign("stray", True, True), literal(token)) for token in sorted(tokens)]

    def tokens_in_thought(self) -> Entries:
        """What is made of special tokens and means nothing in a thought: its words are none of it. The tokens of a
        header tell that a thought holds a call."""
        texts = [text for close in self._closes() for text in alternatives(close) if isinstance(text, Special)]
        closes: Entries = [(Sign("stray", True, True), template(text)) for text in texts]
        return closes + self.lone_tokens() + (self.stray_tokens() if self.format.channels is None else [])

    def _closes(self) -> list[Marker]:
        """What closes anything but a thought."""
        format = self.format
        pairs = [pair for pair in (format.call, format.section, *format.content) if pair]
        kinds = [(BODIES[type(body)], body) for body in format.bodies]
        bodies = [close for kind, body in kinds for close in (kind.closing(body), kind.value_closing(body))]
        return [closes for _, closes in pairs] + bodies

    def _around_calls(self) -> list[Marker]:
        format = self.format
        outside = [*format.call, *(format.section or ()), *(format.reasoning or ())]
        sides = [(body_open(body), BODIES[type(body)].closing(body)) for body in format.bodies]
        return outside + [marker for side in sides for marker in side]


def entries(action: Action, marker: Marker) -> Entries:
    return [(sign_of(action, text), template(text)) for text in ordered(marker)]


def entries_of_pair(pair: Pair | None, opens: Action, closes: Action) -> Entries:
    opening, closing = _sides(pair, opens, closes)
    return opening + closing


def _sides(pair: Pair | None, opens: Action, closes: Action) -> tuple[Entries, Entries]:
    return ([], []) if pair is None else (entries(opens, pair[0]), entries(closes, pair[1]))


def _whole_labels(found: Entries) -> Entries:
    """A word behind a token is a label only if it is all of the word:  `<|channel>thoughtful`"""
    return [(sign, seq(pat, _WORD_END) if sign.is_token and pat.whole[-1].isalpha() else pat) for sign, pat in found]


def sign_of(action: Action, text: str) -> Sign:
    return Sign(action, isinstance(text, Special), bool(getattr(text, "tokens", ())))


def unique(entries: list[tuple[A, Pat]]) -> list[tuple[A, Pat]]:
    """Each pattern once: what stands first says what it does."""
    return list({pat.whole: (sign, pat) for sign, pat in reversed(entries)}.values())


def is_sentence(marker: str) -> bool:
    """Words, and no tag, or the rest of a header that the prompt began: such a marker counts only where a reply
    begins."""
    return marker[:1].isalpha() or marker[:1] == "/"


def closing_sources(format: Format, level: int) -> list[str]:
    """The patterns of what closes what stands so far out."""
    if level == BODY:
        pats = [pat for body in format.bodies for pat in _closing(body)]
    else:
        section = format.section[1] if format.section else ""
        pats = templates({SECTION: section, CALL: format.call[1]}.get(level, ""))
    return [pat.whole for pat in pats if pat.head != "`"]


def _is_at_edge(text: str, token: str) -> bool:
    """Inside a tag a token means nothing alone."""
    return text.strip().startswith(token) or text.strip().endswith(token)


# -- of turns and their headers ----------------------------------------------------------------------------------------


def _turns(format: Format) -> Entries:
    """End-of-turn tokens, and what begins a channel's header."""
    ends = [entry for end in format.ends for entry in entries("end", end)]
    if format.channels is None:
        return ends
    return ends + [entry for end in format.channels.ends for entry in entries("end", end)] + _headers(format.channels)


def _headers(channels: Channels) -> Entries:
    starts = list(alternatives(channels.start))
    sign = Sign("header", True, any(isinstance(start, Special) for start in starts))
    if channels.to:
        cut = [(sign, look(_cut(start))) for start in starts if isinstance(start, Special)]
        if channels.channel:
            cut += [
                (sign, look(_without_role(start, channels.channel))) for start in starts if isinstance(start, Special)
            ]
            starts.append(channels.channel)
        tokens = [literal(start.tokens[0]) for start in starts[:1] if isinstance(start, Special)]
        short = [seq(token, blanks(), header) for token in tokens for header in _to_someone(channels)]
        return [(sign, look(pat)) for pat in [*map(template, starts), *short]] + cut
    # The header is the recipient itself: only a whole one, or one that the text ends in, tells a header from text.
    whole = recipient_headers(channels)
    rests = [*whole, seq(NAME, blanks(), END)]
    found = [(sign, look(seq(template(start), *_gap_behind(start), rest))) for start in starts for rest in rests]
    return found + [(sign, look(_cut(start, blanks(), whole[0]))) for start in starts if isinstance(start, Special)]


def _cut(start: Special, *rest: Pat) -> Pat:
    """A header that the text ends in, behind its first token at least."""
    token = start.tokens[0]
    behind = Special(start.strip(BLANKS).removeprefix(token), start.tokens)
    begun = seq(*([template(behind)] if behind else []), *rest)
    return seq(literal(token), Pat(f"(?:{begun.part})", begun.part), END)


def _without_role(start: Special, channel: str) -> Pat:
    """A header whose token stands right before its channel."""
    return seq(literal(start.tokens[0]), blanks(), template(channel))


def _to_someone(channels: Channels) -> list[Pat]:
    """A recipient right before the token that begins a message, where nothing else introduces one."""
    if channels.channel or not channels.to or not isinstance(channels.message, Special):
        return []
    return [seq(literal(channels.to.strip(BLANKS)), NAME, blanks(), template(channels.message))]


def lone_headers(format: Format) -> Entries:
    """Headers that lost their start."""
    pats = _to_someone(format.channels) if format.channels is not None else []
    return [(Sign("header", True, True), look(pat)) for pat in pats]


def _gap_behind(start: str) -> list[Pat]:
    """Detokenizers write blanks behind a token."""
    return [blanks()] if isinstance(start, Special) else []


def recipient_headers(channels: Channels) -> list[Pat]:
    """A header that is nothing but its recipient. Before a token, which nobody writes by chance, it may be missing."""
    message = channels.message.strip(BLANKS)
    if not message:
        return [seq(NAME, _LINE_END, literal(channels.message))]
    return [seq(NAME, blanks(), literal(message)), literal(message)]


# -- of bodies ---------------------------------------------------------------------------------------------------------


def body_open(body: Body) -> Marker:
    """What stands before its arguments."""
    return next(iter(BODIES[type(body)].opening(body)), "")


def _closing(body: Body) -> list[Pat]:
    return templates(BODIES[type(body)].closing(body))


def _named_openings(body: Body) -> list[str]:
    texts = ordered(body_open(body)) if BODIES[type(body)].named_by_header else []
    return [text for text in texts if len(re.sub(r"\{\w+\}", "", text)) > _SURE]


def _nameless(body: Body) -> list[Pat]:
    opening = BODIES[type(body)].opening(body)[:1]
    texts = [text for marker in opening for text in alternatives(marker)]
    # What stands between a name and its arguments, alone.
    marks = [token for text in texts for token in getattr(text, "tokens", ())[:1] if _is_next(text, token)]
    # An argument, where nothing but the name stands before the first.
    if any(text.strip() == "{name}" for text in texts):
        marks += alternatives(BODIES[type(body)].param_opening(body))
    named = [text for text in texts if len(text.replace("{name}", "").strip()) > _SURE]
    return [_without_name(text) for text in named] + [template(mark) for mark in marks if len(mark) > _SURE]


def _without_name(text: str) -> Pat:
    """The marker where nothing but blanks stands for the name."""
    tokens = getattr(text, "tokens", ())
    sides = [Special(side, tokens) if tokens else side for side in text.split("{name}")]
    pats = [template(side) for side in sides if side.strip()]
    return seq(pats[0], blanks(), *pats[1:]) if len(pats) > 1 else pats[0]


def _is_next(text: str, token: str) -> bool:
    return text.startswith("{name}" + token)


def _opening(body: Body, is_bare: bool) -> Entries:
    """The tags by which a body is found in text. A bare name is none, nor, where a call has markers of its own, is what
    begins with a word."""
    opening = BODIES[type(body)].opening(body)
    tags = [entry for marker in opening for entry in entries("body", marker)]
    tags += [entry for marker in opening[:1] for text in ordered(marker) for entry in _odd_openings(text)]
    tags += [entry for marker in opening[1:] for entry in _cut_openings(marker)]
    return [entry for entry in tags if entry[1].head and (is_bare or not entry[1].head.isalnum())]


def _misnamed_openings(body: Body, is_bare: bool) -> Entries:
    """A body's opening tag with something else than a name in it."""
    texts = [text for text in ordered(body_open(body)) if text.count("{") == 1 and text[-1] != "}"]
    tags = [text for text in texts if len(text.partition("{name}")[0]) >= _SURE and _is_sure(text, is_bare)]
    return [(sign_of("body", text), _misnamed(text, body)) for text in tags]


def _is_sure(text: str, is_bare: bool) -> bool:
    """What begins with a word is told from prose by another behind the name, where a call has no markers of its own."""
    return not text[0].isalnum() or (is_bare and any(map(str.isalpha, text.partition("{name}")[2])))


def _misnamed(text: str, body: Body) -> Pat:
    params = ordered(BODIES[type(body)].param_opening(body))
    return misnamed(text, [template(param.partition("{")[0]) for param in params] or [literal("{")])


def _cut_openings(marker: Marker) -> Entries:
    """Where the text ends, an opening tag that was not written to its end."""
    return [(sign_of("body", text), cut_behind_name(text)) for text in ordered(marker)]


def _odd_openings(text: str) -> Entries:
    """A body's opening tag without a name in it; and where the text ends, one that was not written to its end."""
    before, hole, behind = text.partition("{name}")
    if len(before.strip()) < _SURE or not hole:
        return []
    sign = sign_of("body", text)
    nameless = [(sign, _without_name(text))] if behind.strip() else []
    return nameless if before.strip()[0].isalnum() else [*nameless, (sign, cut_behind_name(text))]


Match = Callable[[str], "re.Match[str] | None"]


class Compiled:
    """What each state of the machine looks for."""

    def __init__(self, format: Format, *, reasoning: bool = True) -> None:
        self.format = format
        self.channels = format.channels
        # A reply that begins with this tag is reasoning, also where the format's own is written otherwise.
        self.think = THINK_TAG if reasoning and _knows_no_tag(format) else None
        markers = FormatMarkers(format)
        self._add_bodies(markers)
        self._add_calls_without_markers(markers)
        self._add_ends_of_calls(markers)
        self._add_extra_brackets(markers)
        self._add_resync(markers)
        self._add_reply_beginnings()
        self._add_readers(markers)
        self._add_shown(markers)
        self._add_states(markers)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _add_bodies(self, markers: FormatMarkers) -> None:
        """How a body begins."""
        self.body_openers = [(pat, sign) for sign, pat in markers.bodies]
        self.body_tags = tuple(dict.fromkeys(pat.prefix for _, pat in markers.bodies if len(pat.prefix) > 1))
        nameless = markers.nameless()
        self.nameless = _any(nameless)
        # Whatever becomes of it.
        self.body_begins = _any([*markers.named(), *nameless, *markers.hints(), *map(literal, "{[")])

    def _add_calls_without_markers(self, markers: FormatMarkers) -> None:
        """A call without a marker of its own may stand where a reply begins, and behind another."""
        firsts = "".join(BODIES[type(body)].first for body in self.format.bodies)
        self.bare = firsts if markers.is_bare and not self.channels else ""
        self.fence = _any_of_some(markers.fences)
        self.writes_fence = alternatives(self.format.call[0])[0].startswith("`")  # and not only reads one
        self.may_begin = bool(self.bare) or self.fence is not None
        # Openers that begin as a body may.
        self.clash = _any_of_some([pat for _, pat in markers.inner if pat.head in ("[", "{")])
        self.between = self._between()
        self.headless = self._headless(markers)
        # What a marker begins with, and no body does; most stand behind a call as they should.
        between = self.between
        is_other = between is None or between.at("<", 0, False) is False
        self.not_bare = "<" if is_other and "<" not in self.bare else None

    def _add_ends_of_calls(self, markers: FormatMarkers) -> None:
        closes = [pat for _, pat in markers.closes]
        self.call_close = _any_of_some(closes)
        self.close_heads = frozenset(pat.head for pat in closes)
        self.call_edge = _any(markers.beside())
        self.turn_end = _any_of_some(self._message_ends())
        closing = markers.section_closes + markers.closes
        self.closing = [(sign, re.compile(pat.whole).fullmatch) for sign, pat in closing]
        # Where calls have no markers of their own, what closes a body closes the call.
        self.body_is_call = [re.compile(pat.whole).fullmatch for pat in markers.body_closes] if not closes else []
        # A tick behind a call is text at once: it is not waited for whether a fence comes of it.
        self.closes_calls = _any(
            [pat for pat in [*[pat for _, pat in closing], *markers.body_closes] if pat.head != "`"]
        )

    def _add_extra_brackets(self, markers: FormatMarkers) -> None:
        """Brackets too many behind arguments are dropped at the text's end as well. Where nothing closes an envelope,
        it is over with its bracket, and more of them are text."""
        closing = [pat for _, pat in markers.closes] + markers.body_closes + self._message_ends()
        over = [*[pat for end in self.format.ends for pat in templates(end)], END]
        self.extra_behind_arguments = _extra([*closing, *over])
        self.extra_closers = self.extra_behind_arguments if self.bare else _extra(closing)

    def _add_resync(self, markers: FormatMarkers) -> None:
        """Where a broken call is over: at its close, at its body's, at what can only stand behind it, or where the turn
        ends."""
        turns = [pat for _, pat in markers.turns + markers.last]
        closes = [("close", pat) for _, pat in markers.closes]
        closes += [("close", pat) for pat in turns] if self.channels is not None else []
        closes += [("body_close", _no_opener(pat)) for pat in markers.body_closes]
        self.closes = bool(closes)
        stops = [("stop", pat) for _, pat in markers.section_closes + markers.sections + markers.inner]
        resync = closes + stops + [("turn", pat) for pat in turns]
        self.resync = Scan(resync)
        # Where a thought was left open, its close ends a call in it that cannot be read.
        self.resync_thought = Scan(unique(resync + [("stop", pat) for _, pat in markers.think_closes]))

    def _add_reply_beginnings(self) -> None:
        """What only a reply begins with: the prompt ended with the token before it."""
        self.first_header = self._first_header()
        self.first_opener = first_opener(self.format.call[0])
        self.name_edges = _name_edges(self.format.call[0])
        self.first_thought = _label(self.format.reasoning[0]) if self.format.reasoning else None
        starts = alternatives(self.channels.start) if self.channels else ()
        self.header_starts: list[Match] = [re.compile(template(start).whole).match for start in starts]
        self.headers: dict[str, Header] = {}  # what some of them say
        # What ends a header. Blanks beside a token are the header's.
        message = self.channels.message if self.channels else ""
        self.message_marker = message.strip(BLANKS) or message
        # Where a header is a line, one may stand behind what ends a message.
        self.next_header = self.first_header if not message.strip(BLANKS) else None
        # A reply may begin with what stands nowhere else.
        self.looks_first = bool(self.first_header or self.first_opener or self.first_thought)

    def _add_readers(self, markers: FormatMarkers) -> None:
        around = Around(markers.after(), [pat for _, pat in markers.turns])
        bodies = [(BODIES[type(body)], body) for body in self.format.bodies]
        self.readers: list[BodyReader] = [kind.reader(body, self.format, around) for kind, body in bodies]
        kinds = list(zip(self.readers, bodies, strict=True))
        self.envelope = next((reader for reader, (kind, _) in kinds if kind.is_object), None)
        outside = [reader for reader, (kind, body) in kinds if kind.is_named_outside(body)]
        # A message to a tool is nothing but its arguments.
        starts = alternatives(self.channels.start) if self.channels is not None else ()
        self.is_header_token = any(isinstance(start, Special) for start in starts)
        self.is_named_by_header = self.channels is not None and bodies[0][0].named_by_header
        self.named = outside[0] if outside and not self.channels else None
        # The first body only: where there are several, what is not usual for the first goes the long way.
        self.quick = self.readers[0].quick

    def _add_shown(self, markers: FormatMarkers) -> None:
        """What tells that an opener is only shown, or ends what it opens."""
        # A section really opens where calls, or its close, follow.
        follows = look(alt(*(pat for _, pat in markers.inner + markers.section_closes), END))
        opens = [seq(pat, blanks(), follows) for _, pat in markers.sections]
        self.section_start = there(alt(*opens)) if opens else None
        self.ends_shown = {level: search_any(closing_sources(self.format, level)) for level in (SECTION, CALL, BODY)}
        # Nothing opens it, and a marker ends it.
        self.is_content_implied = any(not opens for opens, _ in self.format.content)

    # -- what each state looks for -------------------------------------------------------------------------------------

    def _add_states(self, markers: FormatMarkers) -> None:
        strays = self._strays(markers)
        openers = markers.sections + markers.inner + self._around(markers)
        self._add_openers(openers)
        self._add_lines()
        lines: Entries = [(Sign("line"), literal("\n"))] if self.lines else []
        self.text = Scan(unique(openers + lines + markers.section_closes + strays))
        turns = markers.turns + lone_headers(self.format) + markers.last
        self.message = Scan(unique(turns + markers.think_closes + strays))
        self._add_reasoning(markers, openers)

    def _add_reasoning(self, markers: FormatMarkers, openers: Entries) -> None:
        # A special token says that the model has stopped thinking; what is plain text may be a thought about a call.
        tokens = [entry for entry in openers if entry[0].special and entry[0].action in _OPENERS]
        turns = [entry for entry in markers.turns if entry[0].special or entry[0].action != "header"]
        thought = markers.thinks + markers.think_closes + turns + markers.last + tokens
        thought += markers.cites + markers.tokens_in_thought()
        self.reasoning = Scan(unique(thought))
        # A thought that was opened inside a text with a close of its own ends with the text.
        ends = [entry for pair in self.format.content for entry in entries("content_close", pair[1])]
        self.reasoning_in_content = Scan(unique(ends + thought)) if ends else self.reasoning

    def _add_openers(self, openers: Entries) -> None:
        calls = [(sign, pat) for sign, pat in openers if sign.action in _OPEN_CALLS]
        self.openers = [(pat, Finder(pat)) for _, pat in calls if pat.prefix]
        self.has_tokens = any(sign.is_token for sign, _ in calls)
        # What a call's opener begins with, which may be all of it where a text ends.
        self.opening_tokens = _first_tokens(self.format)
        self.first_tokens = tuple(self.opening_tokens)
        self.begins = _any([pat for sign, pat in openers if sign.action in _BEGINS])

    def _add_lines(self) -> None:
        """Where calls outside their block are looked for, every line is."""
        is_found = any(BODIES[type(body)].found_on_lines for body in self.format.bodies)
        self.lines = self.format.protocol is not None and is_found

    @cached_property
    def cut_openers(self) -> Probe:
        """What opens calls, where a text may end inside of it."""
        return _any([pat for pat, _ in self.openers])

    @cached_property
    def cut_marks(self) -> Probe:
        """The same of all other markers."""
        markers = FormatMarkers(self.format)
        beside = [entry for pair in self.format.content for entry in entries_of_pair(pair, "content", "content_close")]
        entries = markers.thinks + markers.think_closes + markers.section_closes + markers.turns + beside
        return _any([pat for _, pat in entries] + markers.beside() + markers.body_closes)

    @cached_property
    def tagged(self) -> Compiled:
        """The same format for a reply whose reasoning stands in `<think>`, beside the format's own markers of it."""
        if self.think is None:
            return self
        pairs = zip(THINK, self.format.reasoning or ((), ()), strict=True)
        opens, closes = [(usual, *alternatives(own)) for usual, own in pairs]
        return Compiled(msgspec.structs.replace(self.format, reasoning=(opens, closes)))

    @cached_property
    def marked(self) -> Compiled:
        """The same format where only calls in its markers count: what a thought holds without them is thought."""
        found = copy(self)
        found.may_begin = found.lines = False
        return found

    def _strays(self, markers: FormatMarkers) -> Entries:
        """What closes a call, or a value in one: none of it belongs into text."""
        strays = markers.closes + markers.lone_tokens() + entries("closer", likely_closes(self.format))
        strays += [(Sign("value_close"), pat) for reader in self.readers for pat in reader.closers]
        closings = [BODIES[type(body)].closing(body) for body in self.format.bodies]
        strays += [entry for closing in closings for entry in entries("closer", closing)]
        return [(sign, pat) for sign, pat in strays if pat.head != "`" or sign.special] + markers.stray_tokens()

    def _around(self, markers: FormatMarkers) -> Entries:
        drops: Entries = []
        self.tags: dict[str, str] = {}  # the blocks of a protocol that hold text: what opens them, and what closes them
        for pair in self.format.content:
            drops += entries_of_pair(pair, "content", "content_close")
        if self.format.protocol is not None:
            self.tags = _tags(self.format.content)
            drops = [(Sign("tag"), literal(marker)) for marker in self.tags] + [self._done(self.format.protocol)]
        drops += markers.cites + markers.turns + markers.last
        # A marker that ends other things as well says nothing about reasoning once it stands in text.
        shared = {pat.whole for _, pat in drops}
        thinks = markers.thinks + markers.think_closes
        self.ends_thought = [re.compile(pat.whole).fullmatch for _, pat in markers.think_closes if pat.whole in shared]
        return [entry for entry in thinks if entry[1].whole not in shared] + drops

    def _done(self, protocol: Protocol) -> tuple[Sign, Pat]:
        opens, closes = (marker.strip() for marker in protocol.done)
        return Sign("done"), _done(opens, closes, [*self.tags, *ordered(self.format.call[0])])

    def _message_ends(self) -> list[Pat]:
        return [pat for end in self.channels.ends for pat in templates(end)] if self.channels else []

    def _between(self) -> Probe | None:
        """What may stand between two calls without markers: models put a comma or a semicolon there."""
        if not self.bare:
            return None
        opener = alt(*(literal(char) for char in self.bare), *templates(self.format.call[0]))
        marks = {mark: template(mark) for mark in (self.format.between.strip(), ",", ";") if mark}
        return Probe(seq(alt(*marks.values()), blanks(), look(opener)))

    def _headless(self, markers: FormatMarkers) -> Probe | None:
        """How a reply begins with a call whose opener the prompt ended with: a name and a special token, before the
        arguments or the text's end."""
        if markers.is_bare:
            return None
        opens = [text for body in self.format.bodies for text in ordered(body_open(body))]
        begun = [template(text) for text in opens if isinstance(text, Special) and not text.startswith(text.tokens)]
        return Probe(seq(alt(*begun), blanks(), look(alt(literal("{"), END)))) if begun else None

    def _first_header(self) -> Probe | None:
        """How the reply's first header begins, which has no `start` because the prompt ended with it, or with the first
        token of it."""
        if self.channels is None:
            return None
        if self.channels.to:
            parts = [template(text) for text in (self.channels.to, self.channels.channel) if text]
            starts = [text for text in alternatives(self.channels.start) if isinstance(text, Special)]
            roles = [literal(text.removeprefix(text.tokens[0])) for text in starts]
            return Probe(look(alt(parts[0], *[seq(role, blanks(), alt(*parts)) for role in roles if role.whole])))
        return Probe(look(alt(*recipient_headers(self.channels))))


def _first_tokens(format: Format) -> frozenset[str]:
    opens = [format.call[0], *(pair[0] for pair in (format.section,) if pair), *map(body_open, format.bodies)]
    return frozenset([token for marker in opens for text in _tokens(marker) for token in text.tokens[:1]])


def _tokens(marker: Marker) -> list[Special]:
    return [text for text in alternatives(marker) if isinstance(text, Special)]


THINK: Pair = ("<think>\n", "\n</think>\n\n")  # how most models write reasoning, in whatever format they call
THINK_OPENS, THINK_CLOSES = "<think>", "</think>"
THINK_TAG = Probe(literal(THINK_OPENS))


def _knows_no_tag(format: Format) -> bool:
    """Does the tag mean nothing in this format?"""
    pairs = [format.call, *format.content, *(pair for pair in (format.section, format.reasoning) if pair)]
    return not any(THINK_OPENS in text for pair in pairs for marker in pair for text in alternatives(marker))


LEVELS: dict[str, int] = {
    **dict.fromkeys(("section_close", "closer", "value_close", "stray"), INNERMOST),
    "section": SECTION,
    "call": CALL,
    "body": BODY,
}
_OPENERS = frozenset(("section", "call", "body", "content"))
_BEGINS = frozenset(("section", "call", "body", "header", "content", "think"))
_OPEN_CALLS = frozenset(("section", "call", "body", "header"))


def search_any(sources: list[str]) -> Closes | None:
    """A search for the first of these; compiled when it is first made."""
    found: Closes | None = None

    def search(text: str, pos: int) -> re.Match[str] | None:
        nonlocal found
        if found is None:
            found = re.compile("|".join(sources)).search
        return found(text, pos)

    return search if sources else None


def first_opener(marker: Marker) -> Probe | None:
    """How a call opens at a reply's beginning where the prompt ended with the token that its opener begins with."""
    texts = [text for text in alternatives(marker) if isinstance(text, Special) and "{name}" in text]
    rests = [Special(str(text).removeprefix(text.tokens[0]), text.tokens) for text in texts]
    return Probe(alt(*[template(rest) for rest in rests])) if rests else None


def _name_edges(marker: Marker) -> tuple[str, str] | None:
    """What stands around the name in a call's opener, where it says the name that its body says again."""
    named = [str(text) for text in alternatives(marker) if "{name}" in text]
    before, _, after = named[0].partition("{name}") if named else ("", "", "")
    return (before.strip(), after.strip()) if named else None


def _label(marker: Marker) -> Probe | None:
    """The word that a reply begins with where the prompt ended with the token that opens reasoning."""
    texts = [text for text in alternatives(marker) if isinstance(text, Special) and str(text).endswith("\n")]
    words = [str(text).removeprefix(text.tokens[0]) for text in texts]
    return Probe(alt(*[literal(word) for word in words if word.strip()])) if any(map(str.strip, words)) else None


def _no_opener(close: Pat) -> Pat:
    """A code fence closes a body only where it does not open one."""
    return seq(close, alt(look(Pat(r"[^A-Za-z]", "")), END)) if close.head == "`" else close


def _tags(content: tuple[Pair, ...]) -> dict[str, str]:
    found = {}
    for opens, closes in content:
        found[str(opens).strip()] = str(opens).strip("<> \t\r\n")
        found[str(closes).strip()] = ""
    return found


def _done(opens: str, closes: str, others: list[str]) -> Pat:
    """A whole block that says the task is done: short, and without the beginning of another in it."""
    head = opens[0]
    stops = "|".join([re.escape(marker[1:]) for marker in (opens, closes, *others) if marker[0] == head])
    body = f"(?:[^{re.escape(head)}]|{re.escape(head)}(?!{stops})){{0,2000}}+"
    return seq(literal(opens), Pat(body, body, sure=RUN), literal(closes))


def _any(pats: list[Pat]) -> Probe:
    return Probe(alt(*pats)) if pats else Probe.never()


def _any_of_some(pats: list[Pat]) -> Probe | None:
    return Probe(alt(*pats)) if pats else None


def _extra(closes: list[Pat]) -> Probe | None:
    """One to three brackets too many before what closes a call. One that closes it itself is none too many."""
    heads = {pat.head for pat in closes}
    brackets = "".join([re.escape(bracket) for bracket in "}])" if bracket not in heads])
    if not closes or not brackets:
        return None
    return Probe(seq(blanks(), Pat(f"[{brackets}]{{1,3}}+", f"[{brackets}]{{0,3}}"), blanks(), look(alt(*closes))))


_CACHE: dict[tuple[int, bool], tuple[Format, Compiled]] = {}


def compiled(format: Format, *, reasoning: bool = True) -> Compiled:
    """The format as the machine runs on it; without `reasoning` its reasoning is text."""
    key = id(format), reasoning
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) > 256:
            _CACHE.clear()
        # The format is kept beside what was made of it: an id is only unique among living objects.
        made = Compiled(format) if reasoning else Compiled(_without_reasoning(format), reasoning=False)
        found = _CACHE[key] = (format, made)
    return found[1]


def _without_reasoning(format: Format) -> Format:
    channels = format.channels
    if channels is not None:
        kinds: dict[str, Literal["reasoning", "content"]] = dict.fromkeys(channels.kinds, "content")
        channels = msgspec.structs.replace(channels, kinds=kinds)
    return msgspec.structs.replace(format, reasoning=None, channels=channels)
