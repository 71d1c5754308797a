"""A `Format` turned into what the machine runs on: a search for the next marker in each state, a reader for each body.

Compiled once per format and kept; a compiled format is immutable and shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec

from rightcall.formats.spec import Format, Marker, Pair, Protocol, Special, alternatives, likely_closes
from rightcall.parsing.bodies import BODIES
from rightcall.parsing.bodies.kind import Around
from rightcall.parsing.body_reader import BodyReader
from rightcall.parsing.format_markers import (
    Entries,
    FormatMarkers,
    Sign,
    body_open,
    closing_sources,
    entries,
    entries_of_pair,
    lone_headers,
    recipient_headers,
    unique,
)
from rightcall.parsing.markers import (
    BLANKS,
    END,
    RUN,
    Finder,
    Pat,
    Probe,
    alt,
    blanks,
    literal,
    look,
    ordered,
    seq,
    template,
    templates,
    there,
)
from rightcall.parsing.scan import Scan
from rightcall.parsing.shown import BODY, CALL, INNERMOST, SECTION
from rightcall.parsing.shown.raw import Closes

if TYPE_CHECKING:
    from rightcall.parsing.headers import Header

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
        self.first_opener = _first_opener(self.format.call[0])
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


def _first_opener(marker: Marker) -> Probe | None:
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
