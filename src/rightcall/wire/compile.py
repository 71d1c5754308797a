"""A `Format` turned into what the machine runs on: a search for the next marker in each state, a reader for each body.

Compiled once per format and kept; a compiled format is immutable and shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

import msgspec

from rightcall.formats.spec import (
    Body,
    Format,
    Marker,
    Pair,
    Protocol,
    Special,
    alternatives,
)
from rightcall.wire.bodies import BODIES
from rightcall.wire.bodies.kind import Around
from rightcall.wire.body_reader import BodyReader
from rightcall.wire.markers import (
    END,
    NAME,
    RUN,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    look,
    ordered,
    past_gap,
    seq,
    template,
    templates,
    there,
)
from rightcall.wire.shown import BODY, CALL, INNERMOST, SECTION
from rightcall.wire.shown.raw import Closes

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
]


class Sign(NamedTuple):
    """What a marker in the text does, and whether it is a special token, which nobody writes by chance."""

    action: Action
    special: bool = False
    is_token: bool = False  # it holds a token of its own, which nothing else in the vocabulary spells


A = TypeVar("A")
Entries = list[tuple[Sign, Pat]]
Match = Callable[[str], "re.Match[str] | None"]


class Compiled:
    """What each state of the machine looks for."""

    def __init__(self, format: Format, *, reasoning: bool = True) -> None:
        self.format = format
        # A reply that begins with this tag is reasoning, also where the format's own is written otherwise.
        self.think = THINK_TAG if reasoning and _knows_no_tag(format) else None
        self.channels = format.channels
        is_bare = "" in alternatives(format.call[0])
        # A code fence is how prose shows an example: it opens a call only where a reply may begin.
        fences = [pat for pat in templates(format.call[0]) if pat.head == "`"]
        self.fence = Probe(alt(*fences)) if fences else None
        calls = [entry for entry in _entries("call", format.call[0]) if entry[1].head != "`"]
        # Without a marker before it, a body is found by its own opening tag, or opens only where a reply may begin.
        bodies = [entry for body in format.bodies for entry in _opening(body, is_bare)]
        damaged = [pat for body in format.bodies for pat in BODIES[type(body)].damaged(body, format)]
        inner = calls + bodies + [(Sign("body"), pat) for pat in damaged]
        self.body_openers = [(pat, sign) for sign, pat in bodies]
        self.body_tags = tuple({pat.prefix for _, pat in bodies if len(pat.prefix) > 1})
        nameless = [pat for body in format.bodies for pat in _nameless(body)]
        self.nameless = Probe(alt(*nameless)) if nameless else Probe.never()
        # How a body begins, whatever becomes of it.
        named = [template(text) for body in format.bodies for text in _named_openings(body)]
        tags = [literal(tag) for tag in self.body_tags]
        self.body_begins = Probe(alt(*named, *nameless, *tags, *map(literal, "{[")))
        self.bare = (
            "".join(BODIES[type(body)].first for body in format.bodies) if is_bare and not format.channels else ""
        )
        # A call without a marker of its own may stand where a reply begins.
        self.may_begin = bool(self.bare) or self.fence is not None
        clashes = [pat for _, pat in inner if pat.head and pat.head in self.bare]
        self.bare_clash = Probe(alt(*clashes)) if clashes else None
        self.call_close = _probe(format.call[1])
        closes = templates(format.call[1])
        self.close_heads = frozenset(pat.head for pat in closes)
        # What no call goes on behind: its close, and what opens or closes anything else that stands beside calls.
        beside = [pat for pair in (format.call, *format.content) for side in pair for pat in templates(side)]
        self.call_edge = Probe(alt(*beside)) if beside else Probe.never()
        resync = self._resync(inner)
        self.resync = Scan(resync)
        # Where a thought was left open, its close ends a call in it that cannot be read.
        thought_ends = templates(format.reasoning[1]) if format.reasoning else []
        self.resync_thought = Scan(_unique(resync + [("stop", pat) for pat in thought_ends]))
        ends = [pat for end in format.channels.ends for pat in templates(end)] if format.channels else []
        closing = closes + self._body_closes() + ends
        over = [*[pat for end in format.ends for pat in templates(end)], END]
        # Brackets too many behind arguments are dropped at the text's end as well. Where nothing closes an envelope, it
        # is over with its bracket, and more of them are text.
        self.extra_behind_arguments = _extra([*closing, *over])
        self.extra_closers = self.extra_behind_arguments if self.bare else _extra(closing)
        self.turn_end = Probe(alt(*ends)) if ends else None
        self.between = self._between()
        self.again = self._again()
        self.first_header = self._first_header()
        starts = alternatives(format.channels.start) if format.channels else ()
        self.header_starts: list[Match] = [re.compile(template(start).whole).match for start in starts]
        self.first_opener = _first_opener(format.call[0])
        self.first_thought = _label(format.reasoning[0]) if format.reasoning else None
        # A reply may begin with what stands nowhere else.
        self.looks_first = bool(self.first_header or self.first_opener or self.first_thought)
        around = Around(self._after(inner), [pat for _, pat in self._turns()])
        kinds = [BODIES[type(body)] for body in format.bodies]
        self.readers: list[BodyReader] = [
            kind.reader(body, format, around) for kind, body in zip(kinds, format.bodies, strict=True)
        ]
        self.envelope = next((self.readers[i] for i, kind in enumerate(kinds) if kind.is_object), None)
        outside = [i for i, body in enumerate(format.bodies) if kinds[i].is_named_outside(body)]
        self.named = self.readers[outside[0]] if outside and not format.channels else None
        # The first body only: where there are several, what is not usual for the first goes the long way.
        self.quick = self.readers[0].quick
        self._states(inner)

    # -- what each state looks for -------------------------------------------------------------------------------------

    def _states(self, inner: Entries) -> None:
        format = self.format
        # Where calls outside their block are looked for, every line is.
        self.lines = format.protocol is not None and any(BODIES[type(body)].found_on_lines for body in format.bodies)
        sections = _entries("section", format.section[0]) if format.section else []
        section_closes = _entries("section_close", format.section[1]) if format.section else []
        # A section really opens where calls, or its close, follow.
        follows = look(alt(*(pat for _, pat in inner + section_closes), END))
        opens = [seq(pat, blanks(), follows) for _, pat in sections]
        self.section_start = there(alt(*opens)) if opens else None
        closing = section_closes + _entries("closer", format.call[1])
        closes = [pat for _, pat in closing] + self._body_closes()
        self.closes_calls = Probe(alt(*closes)) if closes else Probe.never()
        self.closing = [(sign, re.compile(pat.whole).fullmatch) for sign, pat in closing]
        # What ends an opener that is only shown.
        self.ends_shown = {level: search_any(closing_sources(format, level)) for level in (SECTION, CALL, BODY)}
        self.is_content_implied = any(
            not opens for opens, _ in format.content
        )  # nothing opens it, and a marker ends it
        around = self._around()
        lines: Entries = [(Sign("line"), literal("\n"))] if self.lines else []
        self.text = Scan(_unique(sections + inner + around + lines + section_closes + self._strays()))
        openers = [pat for sign, pat in sections + inner + around if sign.action in _OPEN_CALLS and pat.prefix]
        self.openers = [(pat, past_gap(pat)) for pat in openers]
        self.has_tokens = any(sign.is_token and sign.action in _OPEN_CALLS for sign, _ in sections + inner + around)
        begins = [pat for sign, pat in sections + inner + around if sign.action in _BEGINS]
        self.begins = Probe(alt(*begins)) if begins else Probe.never()
        # A special token says that the model has stopped thinking; what is plain text may be a thought about a call.
        tokens = [entry for entry in sections + inner + around if entry[0].special and entry[0].action in _OPENERS]
        thinks = _pair_entries(format.reasoning, "think", "think_close")
        thought_ends = [entry for entry in thinks if entry[0].action == "think_close"]
        self.message = Scan(_unique(self._turns() + thought_ends + self._strays()))
        cites = _pair_entries(format.citations, "inline", "inline")
        turns = [entry for entry in self._turns() if entry[0].special or entry[0].action != "header"]
        self.reasoning = Scan(_unique(thinks + turns + tokens + cites))
        # A thought that was opened inside a text with a close of its own ends with the text.
        ends = [entry for pair in format.content for entry in _entries("content_close", pair[1])]
        self.reasoning_in_content = Scan(_unique(ends + thinks + turns + tokens + cites)) if ends else self.reasoning

    @cached_property
    def tagged(self) -> Compiled:
        """The same format for a reply whose reasoning stands in `<think>`, beside the format's own markers of it."""
        if self.think is None:
            return self
        pairs = zip(THINK, self.format.reasoning or ((), ()), strict=True)
        opens, closes = [(usual, *alternatives(own)) for usual, own in pairs]
        return Compiled(msgspec.structs.replace(self.format, reasoning=(opens, closes)))

    def _strays(self) -> Entries:
        """What closes a call, or a value in one: none of it belongs into text."""
        values = [pat for reader in self.readers for pat in reader.closers]
        strays = _entries("closer", self.format.call[1]) + self._lone_tokens()
        strays += [(Sign("value_close"), pat) for pat in values]
        closings = [BODIES[type(body)].closing(body) for body in self.format.bodies]
        strays += [entry for closing in closings for entry in _entries("closer", closing)]
        return [(sign, pat) for sign, pat in strays if pat.head != "`" or sign.special]

    def _lone_tokens(self) -> Entries:
        """The special tokens of which a call's markers are made, where they stand alone."""
        markers = [*self.format.call, *(self.format.section or ()), *(self.format.reasoning or ())]
        markers += [
            marker for body in self.format.bodies for marker in (body_open(body), BODIES[type(body)].closing(body))
        ]
        texts = [text for marker in markers for text in alternatives(marker) if isinstance(text, Special)]
        tokens = {token for text in texts for token in text.tokens if token != text and _is_at_edge(text, token)}
        return [(Sign("closer", True, True), literal(token)) for token in sorted(tokens)]

    def _around(self) -> Entries:
        drops: Entries = []
        self.tags: dict[str, str] = {}  # the blocks of a protocol that hold text: what opens them, and what closes them
        for pair in self.format.content:
            drops += _pair_entries(pair, "content", "content_close")
        if self.format.protocol is not None:
            self.tags = _tags(self.format.content)
            drops = [(Sign("tag"), literal(marker)) for marker in self.tags] + [self._done(self.format.protocol)]
        drops += _pair_entries(self.format.citations, "inline", "inline") + self._turns()
        # A marker that ends other things as well says nothing about reasoning once it stands in text.
        shared = {pat.whole for _, pat in drops}
        thinks = _pair_entries(self.format.reasoning, "think", "think_close")
        return [entry for entry in thinks if entry[1].whole not in shared] + drops

    def _done(self, protocol: Protocol) -> tuple[Sign, Pat]:
        opens, closes = (marker.strip() for marker in protocol.done)
        return Sign("done"), _done(opens, closes, [*self.tags, *ordered(self.format.call[0])])

    def _turns(self) -> Entries:
        """End-of-turn tokens, and what begins a channel's header."""
        ends = [entry for end in self.format.ends for entry in _entries("end", end)]
        if self.channels is None:
            return ends
        ends += [entry for end in self.channels.ends for entry in _entries("end", end)]
        starts = list(alternatives(self.channels.start))
        header = Sign("header", True, any(isinstance(start, Special) for start in starts))
        if self.channels.to:
            starts += [self.channels.channel] if self.channels.channel else []
            return ends + [(header, look(template(start))) for start in starts]
        # The header is the recipient itself: only a whole one tells a header from text.
        name = seq(NAME, literal(self.channels.message))
        return ends + [(header, look(seq(template(start), name))) for start in starts]

    def _after(self, inner: Entries) -> list[Pat]:
        """What may follow the end of a body: the call's close, or where there is none whatever else is structure."""
        closes = templates(self.format.call[1])
        if self.format.section:
            closes += templates(self.format.section[1])
        return closes + [pat for _, pat in inner] + [pat for _, pat in self._turns()]

    def _resync(self, inner: Entries) -> list[tuple[str, Pat]]:
        """Where a broken call is over: at its close, at its body's, at what can only stand behind it, or where the turn
        ends."""
        closes = [("close", pat) for pat in templates(self.format.call[1])]
        if self.channels is not None:
            closes += [("close", pat) for _, pat in self._turns()]
        closes += [("body_close", _no_opener(pat)) for pat in self._body_closes()]
        if self.format.section:
            closes += [("stop", pat) for pat in templates(self.format.section[1])]
        self.closes = any(action != "stop" for action, _ in closes)
        sections = _entries("section", self.format.section[0]) if self.format.section else []
        return closes + [("stop", pat) for _, pat in sections + inner] + [("turn", pat) for _, pat in self._turns()]

    def _body_closes(self) -> list[Pat]:
        return [pat for body in self.format.bodies for pat in templates(BODIES[type(body)].closing(body))]

    def _between(self) -> Probe | None:
        """What may stand between two calls without markers: models put a comma or a semicolon there."""
        if not self.bare:
            return None
        opener = alt(*(literal(char) for char in self.bare), *templates(self.format.call[0]))
        marks = {mark: template(mark) for mark in (self.format.between.strip(), ",", ";") if mark}
        return Probe(seq(alt(*marks.values()), blanks(), look(opener)))

    def _again(self) -> Probe | None:
        """How a call begins whose opener was left out: a name and a special token, right behind another call."""
        if "" in alternatives(self.format.call[0]):
            return None
        opens = [text for body in self.format.bodies for text in ordered(body_open(body))]
        begun = [template(text) for text in opens if isinstance(text, Special) and not text.startswith(text.tokens)]
        return Probe(seq(Pat("[,;]?+", "[,;]?+", sure=RUN), blanks(), alt(*begun))) if begun else None

    def _first_header(self) -> Probe | None:
        """How the reply's first header begins, which has no `start` because the prompt ended with it."""
        if self.channels is None:
            return None
        if self.channels.to:
            return Probe(look(template(self.channels.to)))
        return Probe(look(seq(NAME, literal(self.channels.message))))


THINK: Pair = ("<think>\n", "\n</think>\n\n")  # how most models write reasoning, in whatever format they call
_TAG = "<think>"
THINK_TAG = Probe(literal(_TAG))


def _knows_no_tag(format: Format) -> bool:
    """Does the tag mean nothing in this format?"""
    pairs = [format.call, *format.content, *(pair for pair in (format.section, format.reasoning) if pair)]
    return not any(_TAG in text for pair in pairs for marker in pair for text in alternatives(marker))


LEVELS: dict[str, int] = {
    **dict.fromkeys(("section_close", "closer", "value_close"), INNERMOST),
    "section": SECTION,
    "call": CALL,
    "body": BODY,
}
_OPENERS = frozenset(("section", "call", "body", "content"))
_SURE = 3  # characters of a tag that tell it
_BEGINS = frozenset(("section", "call", "body", "header", "content", "think"))
_OPEN_CALLS = frozenset(("section", "call", "body", "header"))


def _entries(action: Action, marker: Marker) -> Entries:
    return [(sign_of(action, text), template(text)) for text in ordered(marker)]


def sign_of(action: Action, text: str) -> Sign:
    return Sign(action, isinstance(text, Special), bool(getattr(text, "tokens", ())))


def closing_sources(format: Format, level: int) -> list[str]:
    """The patterns of what closes what stands so far out."""
    if level == BODY:
        pats = [pat for body in format.bodies for pat in templates(BODIES[type(body)].closing(body))]
    else:
        section = format.section[1] if format.section else ""
        pats = templates({SECTION: section, CALL: format.call[1]}.get(level, ""))
    return [pat.whole for pat in pats if pat.head != "`"]


def search_any(sources: list[str]) -> Closes | None:
    return re.compile("|".join(sources)).search if sources else None


def _is_at_edge(text: str, token: str) -> bool:
    """Inside a tag a token means nothing alone."""
    return text.strip().startswith(token) or text.strip().endswith(token)


def body_open(body: Body) -> Marker:
    """What stands before its arguments."""
    return next(iter(BODIES[type(body)].opening(body)), "")


def _named_openings(body: Body) -> list[str]:
    """What stands before JSON arguments, where it is more than a name."""
    texts = ordered(body_open(body)) if BODIES[type(body)].named_by_header else []
    return [text for text in texts if len(re.sub(r"\{\w+\}", "", text)) > _SURE]


def _nameless(body: Body) -> list[Pat]:
    """How a body begins whose name was left out, if it can be told then."""
    opening = BODIES[type(body)].opening(body)[:1]
    texts = [text.replace("{name}", "") for marker in opening for text in alternatives(marker)]
    return [template(text) for text in texts if len(text.strip()) > _SURE]


def _first_opener(marker: Marker) -> Probe | None:
    """How a call opens at a reply's beginning where the prompt ended with the token that its opener begins with."""
    texts = [text for text in alternatives(marker) if isinstance(text, Special) and "{name}" in text]
    rests = [Special(str(text).removeprefix(text.tokens[0]), text.tokens) for text in texts]
    return Probe(alt(*[template(rest) for rest in rests])) if rests else None


def _label(marker: Marker) -> Probe | None:
    """The word that a reply begins with where the prompt ended with the token that opens reasoning."""
    texts = [text for text in alternatives(marker) if isinstance(text, Special) and str(text).endswith("\n")]
    words = [str(text).removeprefix(text.tokens[0]) for text in texts]
    return Probe(alt(*[literal(word) for word in words if word.strip()])) if any(map(str.strip, words)) else None


def _opening(body: Body, is_bare: bool) -> Entries:
    """The tags by which a body is found in text. A bare name is none, nor, where a call has markers of its own, is what
    begins with a word."""
    opening = BODIES[type(body)].opening(body)
    tags = [entry for marker in opening for entry in _entries("body", marker)]
    tags += [entry for marker in opening[:1] for text in ordered(marker) for entry in _odd_openings(text)]
    return [entry for entry in tags if entry[1].head and (is_bare or not entry[1].head.isalnum())]


def _odd_openings(text: str) -> Entries:
    """A body's opening tag without a name in it; and where the text ends, one that was not written to its end."""
    before, hole, behind = text.partition("{name}")
    if len(before.strip()) < _SURE or not hole:
        return []
    sign = sign_of("body", text)
    nameless = [(sign, template(text.replace("{name}", "")))] if behind.strip() else []
    return nameless if before.strip()[0].isalnum() else [*nameless, (sign, seq(template(before), NAME, END))]


def _no_opener(close: Pat) -> Pat:
    """A code fence closes a body only where it does not open one."""
    return seq(close, alt(look(Pat(r"[^A-Za-z]", "")), END)) if close.head == "`" else close


def _unique(entries: list[tuple[A, Pat]]) -> list[tuple[A, Pat]]:
    """Each pattern once: what stands first says what it does."""
    return list({pat.whole: (sign, pat) for sign, pat in reversed(entries)}.values())


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


def _pair_entries(pair: Pair | None, opens: Action, closes: Action) -> Entries:
    return [] if pair is None else _entries(opens, pair[0]) + _entries(closes, pair[1])


def _probe(marker: Marker) -> Probe | None:
    found = templates(marker)
    return Probe(alt(*found)) if found else None


def _extra(closes: list[Pat]) -> Probe | None:
    """One to three brackets too many before what closes a call."""
    if not closes:
        return None
    return Probe(seq(blanks(), Pat(r"[}\])]{1,3}+", r"[}\])]{0,3}"), blanks(), look(alt(*closes))))


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
