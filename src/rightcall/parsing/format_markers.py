"""The markers of a format, each with what it does in a text. `compile.py` makes of them what the machine looks for."""

from __future__ import annotations

import re
from typing import Literal, TypeVar

import msgspec

from rightcall.formats.spec import Body, Channels, Format, Marker, Pair, Special, alternatives
from rightcall.formats.special_tokens import texts_of
from rightcall.parsing.bodies import BODIES
from rightcall.parsing.last_tokens import last_tokens
from rightcall.parsing.markers import (
    BLANKS,
    END,
    NAME,
    RUN,
    Pat,
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
)
from rightcall.parsing.shown import BODY, CALL, SECTION

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
