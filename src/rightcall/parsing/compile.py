"""Compile a format into the values that the machine runs on.

`FormatMarkers` lists the markers of a format, each with its action. `CompiledFormat` makes scans, probes and readers of
them. It is made once for each format, cached, immutable and shared between parsers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from copy import copy
from functools import cache, cached_property, lru_cache
from typing import Literal, TypeVar

import msgspec

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import (
    Body,
    Channels,
    Format,
    Marker,
    Pair,
    Special,
    guess_closing_markers,
    marker_alternatives,
)
from rightcall.formats.special_tokens import marker_texts
from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.bodies import READERS
from rightcall.parsing.bodies.body_reader import Around, BodyReader, Quick
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
    build_trie,
    literal,
    longest_first,
    lookahead,
    presence,
    seq,
    split_at_name,
    template,
    templates,
    truncated_after_name,
    with_invalid_name,
)
from rightcall.parsing.shown import BODY, CALL, INNERMOST, SECTION, Closes

_MAX_FURTHER_TOKENS = 2  # after the one that ends the turn
_BLANKS = f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"


def last_tokens(own: str) -> list[Pat]:
    """Return the patterns of end-of-turn tokens of all model families, except tokens that are part of the text `own`;
    one pattern for all tokens with the same first two characters. They match only at the end of a text, as `_pattern`
    says."""
    foreign = [str(token) for token in LAST_TOKENS if token not in own]
    starts = dict.fromkeys(token[:2] for token in foreign)
    return [_pattern(start, frozenset(token[2:] for token in foreign if token.startswith(start))) for start in starts]


@cache  # many formats share them
def _pattern(start: str, rests: frozenset[str]) -> Pat:
    """Return the pattern of the end-of-turn tokens that are `start` and one of `rests`. It matches such a token,
    without what follows, only if nothing but blanks and at most two more end-of-turn tokens follow up to the end of a
    text that is over."""
    whole, begun = build_trie(rests), build_trie(rests, begun=True)
    more, next_begun = _further_tokens()
    second = re.escape(start[1:])
    tail = (
        f"{second}{whole}(?={_BLANKS}{more}{END.whole})",
        f"(?:{second}(?:{whole}{_BLANKS}{more}{next_begun}|{begun}|\\Z)|)",
    )
    return Pat(f"<{tail[0]}", f"(?:<{tail[1]}|)", "<", tail, start, opening=start + _shared(rests))


@cache
def _further_tokens() -> tuple[str, str]:
    """Return two sources for the end-of-turn tokens behind the first one: of up to two whole tokens with blanks, and of
    one at the end of the text that is still arriving, or nothing."""
    behind = {token[1:] for token in LAST_TOKENS}
    more = f"(?:<{build_trie(behind)}{_BLANKS}){{0,{_MAX_FURTHER_TOKENS}}}+"
    return more, f"(?:<(?:{build_trie(behind, begun=True)}|\\Z))?+"


def _shared(texts: Set[str]) -> str:
    """Return the longest common beginning of these texts, of which there must be one."""
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
    """The action of a marker. `special`: it is a special token, or contains one. `is_token`: it has a token of its own
    in the vocabulary, which no other text spells."""

    action: Action
    special: bool = False
    is_token: bool = False


A = TypeVar("A")
Entries = list[tuple[Sign, Pat]]
_LINE_END = Pat(r"[ \t\r]{0,4}+", r"[ \t\r]{0,4}+", sure=RUN)
_WORD_END = alt(lookahead(Pat(r"\W", "")), END)
_MIN_TAG = 3  # characters by which a tag is recognizable


class FormatMarkers:
    """The markers of a format as lists of entries, which are pairs of `Sign` and `Pat`."""

    def __init__(self, format: Format) -> None:
        self.format = format
        # A body without a marker before it is found by its own opening tag, or begins only where a reply may begin.
        self.is_bare = "" in marker_alternatives(format.call[0])
        # Prose shows examples in code fences: a fence opens a call only where a reply may begin.
        self.fences = [pat for pat in templates(format.call[0]) if pat.head == "`"]
        self.bodies = [entry for body in format.bodies for entry in _opening(body, self.is_bare)]
        self.inner = self._calls() + self.bodies + self._damaged()
        self.sections, self.section_closes = _sides(format.section, "section", "section_close")
        self.thinks, self.think_closes = map(_whole_labels, _sides(format.reasoning, "think", "think_close"))
        self.cites = entries_of_pair(format.citations, "inline", "inline")
        self.closes = entries("closer", format.call[1])
        self.body_closes = [pat for body in format.bodies for pat in _closing(body)]
        self.turns = _turns(format)
        # End-of-turn tokens of other model families also occur.
        self.last: Entries = [(Sign("end", True, True), pat) for pat in last_tokens(" ".join(marker_texts(format)))]

    def _calls(self) -> Entries:
        """Return entries for the openers of calls except code fences. Openers with a name also have one that matches
        where the text ends in them, inside or behind the name."""
        named = [text for text in longest_first(self.format.call[0]) if "{name}" in text]
        cut = [(sign_of("call", text), truncated_after_name(text)) for text in named]
        return [entry for entry in entries("call", self.format.call[0]) if entry[1].head != "`"] + cut

    def _damaged(self) -> Entries:
        """Return entries for the damaged opening tags of bodies: misspelt (only for kinds of bodies whose reader has
        such patterns), or with other text in place of the name."""
        bodies = self.format.bodies
        found = [
            (Sign("body"), pat)
            for body in bodies
            for pat in READERS[type(body)].find_damaged_openers(body, self.format)
        ]
        return found + [entry for body in bodies for entry in _misnamed_openings(body, self.is_bare)]

    def hints(self) -> list[Pat]:
        """Return patterns of the beginning of each opening tag of bodies and arguments, up to its first hole or space
        and without `=` and `"` at its end, by which a malformed body is recognized. Beginnings of up to three
        characters, or with a letter or digit first, are left out. Only the first tag of each body is used."""
        kinds = [(BODIES[type(body)], body) for body in self.format.bodies]
        texts = [
            text
            for kind, body in kinds
            for text in (*longest_first(body_open(body)), *longest_first(kind.param_opening(body)))
        ]
        starts = dict.fromkeys(text.partition("{")[0].rstrip('=" ').partition(" ")[0] for text in texts)
        return [literal(start) for start in starts if len(start) > _MIN_TAG and not start[0].isalnum()]

    def beside(self) -> list[Pat]:
        """Return the patterns after which no call continues: the opening and the closing markers around a call and
        around content."""
        pairs = (self.format.call, *self.format.content)
        return [pat for pair in pairs for side in pair for pat in templates(side)]

    def after(self) -> list[Pat]:
        """Return the patterns of what may follow the end of a body: closing markers of calls and sections, openers of
        calls and bodies (also damaged), and the format's own ends of turns and headers of messages. Openers of
        sections, code fences that open calls and end-of-turn tokens of other model families are left out."""
        return patterns(self.closes + self.section_closes + self.inner + self.turns)

    def lone_tokens(self) -> Entries:
        """Return entries with the action `closer` for the special tokens that begin or end a longer marker around
        calls, sections, thoughts or bodies: such a token may be alone in a text. White space of a marker counts for its
        length. A token that is all of a marker, or only inside one, gets no entry from that marker."""
        texts = [text for marker in self._around_calls() for text in with_tokens(marker)]
        edges = [(token, text, text.strip()) for text in texts for token in text.tokens]
        tokens = {
            each for each, whole, text in edges if each != whole and (text.startswith(each) or text.endswith(each))
        }
        return [(Sign("closer", True, True), literal(token)) for token in sorted(tokens)]

    def stray_tokens(self) -> Entries:
        """Return entries with the action `stray` for each special token in a marker of bodies, of turn ends, or of
        messages with headers: none belongs in text. The first token of a header's start and of its channel marker is
        left out, because a header may follow. Markers of calls, sections, content and reasoning add none."""
        format, channels = self.format, self.format.channels
        markers = [*format.ends, *[marker for body in format.bodies for marker in BODIES[type(body)].markers(body)]]
        begins: list[Special] = []
        if channels is not None:
            begins = with_tokens(channels.start) + with_tokens(channels.channel)
            markers += [channels.message, *[side for sides in channels.messages.values() for side in sides]]
        texts = begins + [text for marker in markers for text in with_tokens(marker)]
        tokens = {token for text in texts for token in text.tokens}
        tokens -= {token for text in begins for token in text.tokens[:1]}
        return [(Sign("stray", True, True), literal(token)) for token in sorted(tokens)]

    def tokens_in_thought(self) -> Entries:
        """Return entries for what has no meaning in a thought and is dropped there: each closing marker (but that of
        thoughts) that is special, as a whole, the tokens of `lone_tokens`, and, in a format without channels, those of
        `stray_tokens`. With channels these show that a thought contains a call."""
        texts = [text for close in self._closes() for text in with_tokens(close)]
        closes: Entries = [(Sign("stray", True, True), template(text)) for text in texts]
        return closes + self.lone_tokens() + (self.stray_tokens() if self.format.channels is None else [])

    def _closes(self) -> list[Marker]:
        """Return the closing markers of calls, sections, content, bodies and values, but not of thoughts."""
        format = self.format
        kinds = [(BODIES[type(body)], body) for body in format.bodies]
        bodies = [close for kind, body in kinds for close in (kind.closing(body), kind.value_closing(body))]
        return [pair[1] for pair in (format.call, format.section, *format.content) if pair] + bodies

    def _around_calls(self) -> list[Marker]:
        """Return the opening and closing markers of calls, sections and thoughts, and the outer tags of bodies."""
        format = self.format
        outside = [*format.call, *(format.section or ()), *(format.reasoning or ())]
        sides = [(body_open(body), BODIES[type(body)].closing(body)) for body in format.bodies]
        return outside + [marker for side in sides for marker in side]


def entries(action: Action, marker: Marker) -> Entries:
    """Return an entry, sign and pattern, for each alternative of a marker that is not empty, longest first. White space
    at the edges of an alternative is not part of its pattern."""
    return [(sign_of(action, text), template(text)) for text in longest_first(marker)]


def patterns(entries: Entries) -> list[Pat]:
    """Return the patterns of the entries, without their signs."""
    return [pat for _, pat in entries]


def entries_of_pair(pair: Pair | None, opens: Action, closes: Action) -> Entries:
    """Return the entries of an opening and a closing marker with the actions `opens` and `closes`; none for None."""
    opening, closing = _sides(pair, opens, closes)
    return opening + closing


def _sides(pair: Pair | None, opens: Action, closes: Action) -> tuple[Entries, Entries]:
    """Return the entries of the opening marker and those of the closing one, with the actions `opens` and `closes`; two
    empty lists for None."""
    return ([], []) if pair is None else (entries(opens, pair[0]), entries(closes, pair[1]))


def _whole_labels(found: Entries) -> Entries:
    """Return the entries; where a marker has a token and ends in a letter, the pattern also requires that no letter,
    digit or `_` follows: `<|channel>thoughtful` is not `<|channel>thought`. The other entries are unchanged."""
    return [(sign, seq(pat, _WORD_END) if sign.is_token and pat.whole[-1].isalpha() else pat) for sign, pat in found]


def with_tokens(marker: Marker) -> list[Special]:
    """Return the alternatives of a marker that contain special tokens."""
    return [text for text in marker_alternatives(marker) if isinstance(text, Special)]


def sign_of(action: Action, text: str) -> Sign:
    """Return the sign of one alternative of a marker, with this action. `special` is whether `text` is a `Special`,
    `is_token` whether that has tokens."""
    return Sign(action, isinstance(text, Special), bool(getattr(text, "tokens", ())))


def unique(entries: list[tuple[A, Pat]]) -> list[tuple[A, Pat]]:
    """Return the entries without repeated patterns; of entries whose patterns have the same `whole`, the first counts.
    Their order may change."""
    return list({pat.whole: (sign, pat) for sign, pat in reversed(entries)}.values())


def is_sentence(marker: str) -> bool:
    """Return whether a marker begins with a letter or a slash: plain words, or the remainder of a header that the
    prompt began. Such a marker counts only at the beginning of a reply."""
    return marker[:1].isalpha() or marker[:1] == "/"


def closing_sources(format: Format, level: int) -> list[str]:
    """Return the regular-expression sources of the markers that close a section, a call or a body, by `level`; none for
    other levels. Code fences are left out."""
    if level == BODY:
        pats = [pat for body in format.bodies for pat in _closing(body)]
    else:
        section = format.section[1] if format.section else ""
        pats = templates({SECTION: section, CALL: format.call[1]}.get(level, ""))
    return [pat.whole for pat in pats if pat.head != "`"]


# -- turns and their headers -------------------------------------------------------------------------------------------


def _turns(format: Format) -> Entries:
    """Return entries for the markers that end a turn or a message, and for the beginnings of message headers."""
    ends = [entry for end in ends_of(format) for entry in entries("end", end)]
    return ends + (_headers(format.channels) if format.channels is not None else [])


def ends_of(format: Format) -> tuple[str, ...]:
    """Return the markers that end a turn or a message in this format."""
    return format.ends + (format.channels.ends if format.channels is not None else ())


def _headers(channels: Channels) -> Entries:
    """Return entries for the beginning of a message header, which match without consuming, all `special`: its start,
    its channel marker, the first token of its start directly before a channel marker or (without channels) a recipient,
    or as much of a start with a token as the text ends in. Where a header is only a name, it must be whole, or the text
    must end behind the start or in the name."""
    starts, tokens = marker_alternatives(channels.start), with_tokens(channels.start)
    if channels.to:
        channel = (channels.channel,) if channels.channel else ()
        pats = [template(text) for text in (*starts, *channel)]
        pats += [
            seq(literal(start.tokens[0]), blanks(), to)
            for start in tokens[:1]
            for to in _recipient_without_start(channels)
        ]
        pats += [_truncated_header(start) for start in tokens]
        # The token of a header may directly precede its channel (SGLang's test_harmony_parser.py).
        pats += [seq(literal(start.tokens[0]), blanks(), template(text)) for start in tokens for text in channel]
    else:
        # The header is only a recipient: it counts if it is whole, or if the text ends in it. Detokenizers write
        # blanks after a token.
        whole = recipient_headers(channels)
        rests = [*whole, seq(NAME, blanks(), END)]
        gaps = {start: [blanks()] if isinstance(start, Special) else [] for start in starts}
        pats = [seq(template(start), *gaps[start], rest) for start in starts for rest in rests]
        pats += [_truncated_header(start, blanks(), whole[0]) for start in tokens]
    return [(Sign("header", True, bool(tokens)), lookahead(pat)) for pat in pats]


def _truncated_header(start: Special, *rest: Pat) -> Pat:
    """Return the pattern of a header that the text ends in: the first token of `start` and any beginning of its other
    text and of `rest`."""
    token = start.tokens[0]
    behind = Special(start.strip(BLANKS).removeprefix(token), start.tokens)
    begun = seq(*([template(behind)] if behind else []), *rest)
    return seq(literal(token), Pat(f"(?:{begun.part})", begun.part), END)


def _recipient_without_start(channels: Channels | None) -> list[Pat]:
    """Return, in a list, the pattern of a header without its start: the label of a recipient, its name and the marker
    that begins a message. Empty for None, and for formats whose headers have a channel marker or no label of a
    recipient, or whose message marker is not special."""
    if channels is None or channels.channel or not channels.to or not isinstance(channels.message, Special):
        return []
    return [seq(literal(channels.to.strip(BLANKS)), NAME, blanks(), template(channels.message))]


def recipient_headers(channels: Channels) -> list[Pat]:
    """Return the patterns of a header that is only a name and the message marker, which are consumed, and, if that
    marker is not white space, of the marker alone, because the name may be missing. If it is a line break, the name
    must be there."""
    message = channels.message.strip(BLANKS)
    if not message:
        return [seq(NAME, _LINE_END, literal(channels.message))]
    return [seq(NAME, blanks(), literal(message)), literal(message)]


# -- bodies ------------------------------------------------------------------------------------------------------------


def body_open(body: Body) -> Marker:
    """Return the marker that precedes the arguments of a body, which is the first of its opening markers; "" if it has
    none."""
    return next(iter(BODIES[type(body)].opening(body)), "")


def _closing(body: Body) -> list[Pat]:
    """Return the patterns of the closing marker of a body."""
    return templates(BODIES[type(body)].closing(body))


def _named_openings(body: Body) -> list[str]:
    """Return the alternatives, longest first, of the marker before the arguments of a body of a kind that lets a header
    hold the name; only those with more than three characters beside holes. Empty for other bodies."""
    texts = longest_first(body_open(body)) if BODIES[type(body)].named_by_header else []
    return [text for text in texts if len(re.sub(r"\{\w+\}", "", text)) > _MIN_TAG]


def _nameless(body: Body) -> list[Pat]:
    """Return the patterns by which a body without its name begins: its opening tag without the name, the token directly
    behind a name that begins the tag, or, if one alternative of the tag is only a name, the opening tag of an argument.
    Those with up to three characters are left out."""
    texts = marker_alternatives(body_open(body))
    # The token between a name and its arguments.
    named = with_tokens(body_open(body))
    marks = [token for text in named for token in text.tokens[:1] if text.startswith("{name}" + token)]
    # An argument, if only the name precedes the first one.
    if "{name}" in map(str.strip, texts):
        marks += marker_alternatives(BODIES[type(body)].param_opening(body))
    tags = [text for text in texts if len(text.replace("{name}", "").strip()) > _MIN_TAG]
    return [_without_name(text) for text in tags] + [template(mark) for mark in marks if len(mark) > _MIN_TAG]


def _without_name(text: str) -> Pat:
    """Return the pattern of a marker with only blanks, or nothing, in place of the name. If text is only on one side of
    the name, or there is no name, that is the pattern of this text."""
    pats = [template(side) for side in split_at_name(text) if side.strip()]
    return seq(pats[0], blanks(), *pats[1:]) if len(pats) > 1 else pats[0]


def _opening(body: Body, is_bare: bool) -> Entries:
    """Return entries for the opening tags by which a body is found in text, also for those without their name or that
    the text ends in (see `_odd_openings`; for further tags only the latter). `is_bare`: calls may lack a marker of
    their own; else tags that begin with a letter or digit are left out. Tags that begin with a hole always are."""
    opening = BODIES[type(body)].opening(body)
    tags = [entry for marker in opening for entry in entries("body", marker)]
    for text in longest_first(body_open(body)):
        tags += _odd_openings(text)
    for marker in opening[1:]:
        tags += [(sign_of("body", text), truncated_after_name(text)) for text in longest_first(marker)]
    return [entry for entry in tags if entry[1].head and (is_bare or not entry[1].head.isalnum())]


def _misnamed_openings(body: Body, is_bare: bool) -> Entries:
    """Return entries for the opening tags of a body with other text in place of the name, before the beginning of an
    argument's tag, or before `{` if arguments have no tags. Only for tags with one hole, not at their end, at least
    three characters before it, and as far as they cannot be prose (`_is_sure`). `is_bare`: calls may lack a marker of
    their own."""
    texts = [text for text in longest_first(body_open(body)) if text.count("{") == 1 and text[-1] != "}"]
    tags = [text for text in texts if len(text.partition("{name}")[0]) >= _MIN_TAG and _is_sure(text, is_bare)]
    params = [template(param.partition("{")[0]) for param in longest_first(BODIES[type(body)].param_opening(body))]
    return [(sign_of("body", text), with_invalid_name(text, params or [literal("{")])) for text in tags]


def _is_sure(text: str, is_bare: bool) -> bool:
    """Return whether a tag is distinguishable from prose. One that begins with a letter or digit needs letters after
    the name, and calls without markers (`is_bare`)."""
    return not text[0].isalnum() or (is_bare and any(map(str.isalpha, text.partition("{name}")[2])))


def _odd_openings(text: str) -> Entries:
    """Return entries for an opening tag without its name, if text follows the name, and for one that the text ends in,
    if it does not begin with a letter or digit. Empty without a name hole or with fewer than three characters before
    it."""
    before, hole, behind = text.partition("{name}")
    if len(before.strip()) < _MIN_TAG or not hole:
        return []
    sign = sign_of("body", text)
    nameless = [(sign, _without_name(text))] if behind.strip() else []
    return nameless if before.strip()[0].isalnum() else [*nameless, (sign, truncated_after_name(text))]


Match = Callable[[str], "re.Match[str] | None"]


class Bodies:
    """The bodies of a format's calls.

    - `readers`: one for each kind of body.
    - `has_raw_values`: one of them has raw values or a closing tag, whose markers behind a call show that it had not
      ended.
    - `quick`: the fast path of the first reader; what is unusual for the first body takes the slow path.
    - `is_quick_held`: the calls of the fast path stay pending, because their values are raw.
    - `envelope`: the reader of JSON objects that hold name and arguments, if there is one.
    - `named_outside`: the reader of bodies without a name, where the opener of the call holds the name.
    - `openers`: the opening tags of bodies. `tags` has their literal beginnings.
    - `begin`: how a body begins, even if it is malformed.
    - `nameless`: how a body without its name begins, where that is recognizable.
    """

    def __init__(self, format: Format, markers: FormatMarkers) -> None:
        around = Around(markers.after(), patterns(markers.turns))
        self.readers: list[BodyReader] = [READERS[type(body)](body, format, around) for body in format.bodies]
        self.has_raw_values = any(reader.closers for reader in self.readers)
        self.quick: Quick | None = self.readers[0].quick
        self.is_quick_held = bool(self.readers[0].closers)
        kinds = [(BODIES[type(body)], body, reader) for body, reader in zip(format.bodies, self.readers, strict=True)]
        self.envelope = next((reader for kind, _, reader in kinds if kind.is_object), None)
        outside = [reader for kind, body, reader in kinds if kind.is_named_outside(body)]
        # A message to a tool has only arguments.
        self.named_outside = outside[0] if outside and format.channels is None else None
        self.openers = [(pat, sign) for sign, pat in markers.bodies]
        self.tags = tuple(dict.fromkeys(pat.prefix for _, pat in markers.bodies if len(pat.prefix) > 1))
        named = [template(text) for body in format.bodies for text in _named_openings(body)]
        nameless = [pat for body in format.bodies for pat in _nameless(body)]
        self.begin = Probe(alt(*named, *nameless, *markers.hints(), *map(literal, "{[")))
        self.nameless = Probe(alt(*nameless))


class BareCalls:
    """Calls without a marker of their own, which begin where a reply may begin or after another call.

    - `first_characters`: the characters that they begin with; empty if the format always has markers.
    - `excluded`: those of `<` and `[` with which no call without a marker begins, so that none is looked for there.
    - `between`: the separator of two bare calls. Models write a comma (vllm#47612) or a semicolon (dynamo#9536).
    - `fence`: the code fence that opens a call. `writes_fence`: the format itself writes it, and not only accepts it.
    - `headless`: how a reply begins with a call whose opener was the end of the prompt.
    - `can_begin_reply`, `can_begin_line`: whether such calls are looked for where a reply begins, or any line.
    - `is_possible`: a call without its marker may begin anywhere in this format.
    """

    def __init__(self, format: Format, markers: FormatMarkers) -> None:
        firsts = "".join(BODIES[type(body)].first for body in format.bodies)
        self.first_characters = firsts = firsts if markers.is_bare and format.channels is None else ""
        self.between = _between(format, firsts)
        self.fence = _any_of_some(markers.fences)
        self.writes_fence = marker_alternatives(format.call[0])[0].startswith("`")
        self.headless = _headless(format, markers)
        self.can_begin_reply = bool(firsts) or self.fence is not None
        on_lines = any(BODIES[type(body)].found_on_lines for body in format.bodies)
        self.can_begin_line = on_lines and format.protocol is not None
        self.is_possible = self.can_begin_reply or self.can_begin_line or self.headless is not None
        others = [char for char in "<[" if self.between is None or self.between.at(char, 0, False) is False]
        self.excluded = frozenset() if self.can_begin_line else frozenset(others).difference(firsts)


def _between(format: Format, first_characters: str) -> Probe | None:
    """Return the probe for the separator of two bare calls, which begin with one of `first_characters`: the format's
    own (if it is more than blanks), a comma or a semicolon, if then, behind blanks, one of these characters or a call's
    opener follows, which is not consumed. None if there are no bare calls (`first_characters` is "")."""
    if not first_characters:
        return None
    opener = alt(*(literal(char) for char in first_characters), *templates(format.call[0]))
    marks = {mark: template(mark) for mark in (format.between.strip(), ",", ";") if mark}
    return Probe(seq(alt(*marks.values()), blanks(), lookahead(opener)))


def _headless(format: Format, markers: FormatMarkers) -> Probe | None:
    """Return the probe for a reply that begins with a call whose opener the prompt ended with: an opening tag that
    contains a special token, but does not begin with one, before `{` (not consumed) or the end of the text, with blanks
    between or not. None if no body has such a tag, or calls may lack a marker of their own."""
    opens = [text for body in format.bodies for text in longest_first(body_open(body))]
    begun = [template(text) for text in opens if isinstance(text, Special) and not text.startswith(text.tokens)]
    if markers.is_bare or not begun:
        return None
    return Probe(seq(alt(*begun), blanks(), lookahead(alt(literal("{"), END))))


class CallEnds:
    """What ends a call.

    - `close`: the closing marker of a call. `heads` are the first characters of its alternatives.
    - `markers`: the closing markers of sections and calls, as matches of a whole text.
    - `of_bodies`: those of bodies, where calls have no closing marker of their own.
    - `any`: any of them, code fences excepted: a tick after a call is text, without waiting for a fence.
    - `edge`: what no call continues after: its closing marker, or a marker of content.
    - `turn`: what ends a message.
    - `extra_brackets`: brackets too many before the end of a call. `brackets_after_arguments` are also dropped at the
      end of the text. Without a closing marker an envelope ends with its bracket, and further brackets are text.
    """

    def __init__(self, format: Format, markers: FormatMarkers, *, has_bare_calls: bool) -> None:
        closes = patterns(markers.closes)
        closing = markers.section_closes + markers.closes
        message_ends = [pat for end in format.channels.ends for pat in templates(end)] if format.channels else []
        self.close = _any_of_some(closes)
        self.heads = frozenset(pat.head for pat in closes)
        self.markers: list[tuple[Sign, Match]] = [(sign, re.compile(pat.whole).fullmatch) for sign, pat in closing]
        self.of_bodies = [] if closes else [re.compile(pat.whole).fullmatch for pat in markers.body_closes]
        closers = patterns(closing) + markers.body_closes
        self.any = Probe(alt(*[pat for pat in closers if pat.head != "`"]))
        self.edge = Probe(alt(*markers.beside()))
        self.turn = _any_of_some(message_ends)
        ends = closes + markers.body_closes + message_ends
        over = [*ends, *[pat for end in format.ends for pat in templates(end)], END]
        self.brackets_after_arguments = _extra(over)
        self.extra_brackets = _extra(over if has_bare_calls else ends)


class Recovery:
    """Where a broken call ends: at its closing marker ("close"), at that of its body ("body_close"), at a marker that
    only occurs outside calls ("stop"), or at the end of the turn ("turn").

    - `has_close`: whether there are closing markers.
    - `scan_in_reasoning`: for a call in a thought without an end; the closing marker of thoughts ends it too.
    """

    def __init__(self, format: Format, markers: FormatMarkers) -> None:
        turns = patterns(markers.turns + markers.last)
        closes = [("close", pat) for pat in patterns(markers.closes)]
        closes += [("close", pat) for pat in turns] if format.channels is not None else []
        closes += [("body_close", _no_opener(pat)) for pat in markers.body_closes]
        stops = [("stop", pat) for pat in patterns(markers.section_closes + markers.sections + markers.inner)]
        ends = closes + stops + [("turn", pat) for pat in turns]
        self.has_close = bool(closes)
        self.scan = Scan(ends)
        self.scan_in_reasoning = Scan(unique(ends + [("stop", pat) for pat in patterns(markers.think_closes)]))


class Headers:
    """The headers of messages; empty for formats without channels.

    - `starts`: how a header begins, the usual way first. `is_token`: with a special token.
    - `message_marker`: what ends a header. Blanks next to a token belong to the header.
    - `next`: the header that may follow the end of a message, where a header is a line.
    - `has_tool_name`: a header names the tool, and the message is nothing but arguments.
    """

    def __init__(self, format: Format) -> None:
        channels = format.channels
        starts = marker_alternatives(channels.start) if channels is not None else ()
        message = channels.message if channels is not None else ""
        self.starts = [re.compile(template(start).whole).match for start in starts]
        self.is_token = any(isinstance(start, Special) for start in starts)
        self.message_marker = message.strip(BLANKS) or message
        self.next = _first_header(channels) if not message.strip(BLANKS) else None
        self.has_tool_name = channels is not None and BODIES[type(format.bodies[0])].named_by_header


def _first_header(channels: Channels | None) -> Probe | None:
    """Return the probe for a reply's first header, which has no start because the prompt ended with it (vllm#57488,
    llama.cpp#15181), or with the first token of it: the label of a recipient, or the remainder of the start before that
    or a channel marker; without labels, a name with the message marker, or this marker alone unless it is a line break.
    It consumes nothing; None without channels."""
    if channels is None:
        return None
    if channels.to:
        parts = [template(text) for text in (channels.to, channels.channel) if text]
        roles = [literal(text.removeprefix(text.tokens[0])) for text in with_tokens(channels.start)]
        return Probe(lookahead(alt(parts[0], *[seq(role, blanks(), alt(*parts)) for role in roles if role.whole])))
    return Probe(lookahead(alt(*recipient_headers(channels))))


class FirstMarkers:
    """Markers that only a reply begins with.

    - `header`, `opener`, `reasoning_label`: of a header, of a call, and the label of reasoning, because the prompt
      ended with their first token.
    - `think_tag`: `<think>`, in a format whose own reasoning is written otherwise.
    """

    def __init__(self, format: Format, reasoning: bool) -> None:
        self.think_tag = _think_tag(format) if reasoning else None
        self.header = _first_header(format.channels)
        self.opener = first_opener(format.call[0])
        labels = [text for text in with_tokens(format.reasoning[0] if format.reasoning else "") if text[-1:] == "\n"]
        words = [literal(str(text).removeprefix(text.tokens[0])) for text in labels]
        self.reasoning_label = _any_of_some([word for word in words if word.prefix.strip()])
        self._has_others = any((self.header, self.opener, self.reasoning_label))

    def may_begin(self, text: str) -> bool:
        """Return whether a reply that begins with `text` may begin with one of the markers. Only `think_tag` is
        compared with the text: with any other marker in the format it is always True. False if the format has none."""
        return self._has_others or (self.think_tag is not None and may_be_think_tag(text))


def first_opener(marker: Marker) -> Probe | None:
    """Return the probe for an opener of a call without its first token, which the prompt ended with (sglang#33181); a
    first token that does not begin the opener is not removed. None if no opener has both a token and a name."""
    texts = [text for text in with_tokens(marker) if "{name}" in text]
    return _any_of_some([template(Special(str(text).removeprefix(text.tokens[0]), text.tokens)) for text in texts])


class Openers:
    """What opens calls and other structure. `entries` are all markers that open or close structure in text.

    - `of_calls`: what opens a call, with a search for it; only openers with a literal beginning.
    - `begin`: any opener of calls, messages, content and reasoning.
    - `has_tokens`: some openers of calls are special tokens. `first_tokens` has the tokens that they begin with.
    - `like_bodies`: openers of calls that begin as a JSON body may.
    - `section_start`: an opener of a section together with the call, or the closing marker, that must follow it.
    - `name_edges`: the text around the name in the opener of a call, if it holds a name.
    """

    def __init__(self, format: Format, markers: FormatMarkers, entries: Entries) -> None:
        calls = [(sign, pat) for sign, pat in entries if sign.action in _OPEN_CALLS]
        self.of_calls = [(pat, Finder(pat)) for _, pat in calls if pat.prefix]
        self.begin = Probe(alt(*[pat for sign, pat in entries if sign.action in _BEGINS]))
        self.has_tokens = any(sign.is_token for sign, _ in calls)
        opens = [format.call[0], *(format.section or ())[:1], *map(body_open, format.bodies)]
        texts = [text for marker in opens for text in with_tokens(marker)]
        self.first_tokens = tuple(dict.fromkeys(token for text in texts for token in text.tokens[:1]))
        self.like_bodies = _any_of_some([pat for pat in patterns(markers.inner) if pat.head in ("[", "{")])
        # A section counts only if calls or its closing marker follow.
        follows = lookahead(alt(*patterns(markers.inner + markers.section_closes), END))
        sections = patterns(markers.sections)
        self.section_start = presence(seq(alt(*sections), blanks(), follows)) if sections else None
        # The text around the name in the opener of a call whose body repeats the name.
        named = [str(text).partition("{name}") for text in marker_alternatives(format.call[0]) if "{name}" in text]
        self.name_edges = (named[0][0].strip(), named[0][2].strip()) if named else None


class Scans:
    """The markers that each state of the machine looks for: in text, in a message with a header, in reasoning, and in
    reasoning that was opened inside content, which ends with the content."""

    def __init__(self, format: Format, markers: FormatMarkers, openers: Entries, strays: Entries, *, lines: bool):
        # A header may lack its start token (FlashML-org/FreeToken#4).
        headers = _recipient_without_start(format.channels)
        turns = markers.turns + [(Sign("header", True, True), lookahead(pat)) for pat in headers] + markers.last
        # A special token shows that the model has stopped thinking (vllm#33646); plain text may be a thought about a
        # call.
        tokens = [entry for entry in openers if entry[0].special and entry[0].action in _OPENERS]
        special_turns = [entry for entry in markers.turns if entry[0].special or entry[0].action != "header"]
        thought = markers.thinks + markers.think_closes + special_turns + markers.last + tokens
        thought += markers.cites + markers.tokens_in_thought()
        ends = [entry for pair in format.content for entry in entries("content_close", pair[1])]
        begins: Entries = [(Sign("line"), literal("\n"))] if lines else []
        self.text = Scan(unique(openers + begins + markers.section_closes + strays))
        self.message = Scan(unique(turns + markers.think_closes + strays))
        self.reasoning = Scan(unique(thought))
        self.reasoning_in_content = Scan(unique(ends + thought)) if ends else self.reasoning


class CompiledFormat:
    """A format as the machine runs on it.

    - `content_tags`: the tags of the text blocks of a protocol: opening tags with the name of their block, closing tags
      with "".
    - `is_content_implied`: content without an opening marker, which a marker ends.
    - `reasoning_ends`: markers that end a thought and have another meaning in text.
    - `shown_ends`: by level, a search for what ends an opener that is only shown.
    """

    def __init__(self, format: Format, *, reasoning: bool = True) -> None:
        self.format = format
        self.channels = format.channels
        markers = FormatMarkers(format)
        self.bodies = Bodies(format, markers)
        self.headers = Headers(format)
        self.first = FirstMarkers(format, reasoning)
        self.bare_calls = BareCalls(format, markers)
        self.call_ends = CallEnds(format, markers, has_bare_calls=bool(self.bare_calls.first_characters))
        self.recovery = Recovery(format, markers)
        self.shown_ends = {level: search_any(closing_sources(format, level)) for level in (SECTION, CALL, BODY)}
        self.is_content_implied = any(not opens for opens, _ in format.content)
        self.content_tags = _content_tags(format)
        beside = self._beside_calls(markers)
        # A marker with another meaning in text says nothing about reasoning there.
        shared = {pat.whole for pat in patterns(beside)}
        sources = [pat.whole for pat in patterns(markers.think_closes)]
        self.reasoning_ends = [re.compile(source).fullmatch for source in sources if source in shared]
        own = [entry for entry in markers.thinks + markers.think_closes if entry[1].whole not in shared]
        openers = markers.sections + markers.inner + own + beside
        self.openers = Openers(format, markers, openers)
        strays = self._stray_markers(markers)
        self.scans = Scans(format, markers, openers, strays, lines=self.bare_calls.can_begin_line)

    def _beside_calls(self, markers: FormatMarkers) -> Entries:
        """Return entries for the markers of content, citations and turns, and for the end-of-turn tokens of all model
        families. In a protocol content has the action `tag`, and the block that ends the task is added (`done`)."""
        format, found = self.format, []
        if format.protocol is not None:
            found = [(Sign("tag"), literal(marker)) for marker in self.content_tags]
            opens, closes = (marker.strip() for marker in format.protocol.done)
            found.append((Sign("done"), _done(opens, closes, [*self.content_tags, *longest_first(format.call[0])])))
        else:
            for pair in format.content:
                found += entries_of_pair(pair, "content", "content_close")
        return found + markers.cites + markers.turns + markers.last

    def _stray_markers(self, markers: FormatMarkers) -> Entries:
        """Return entries for closing markers of calls, bodies and values, also invented ones (`[/TOOL_CALLS]` in
        Dynamo's tool_calling/test_cases/fixtures/mistral.rs), and for the tokens of `lone_tokens` and `stray_tokens`.
        What closes a value, or a body with raw values, is `value_close`. Code fences are left out unless they are
        special."""
        strays = markers.closes + markers.lone_tokens() + entries("closer", guess_closing_markers(self.format))
        strays += [(Sign("value_close"), pat) for reader in self.bodies.readers for pat in reader.closers]
        closings = [BODIES[type(body)].closing(body) for body in self.format.bodies]
        strays += [entry for closing in closings for entry in entries("closer", closing)]
        return [(sign, pat) for sign, pat in strays if pat.head != "`" or sign.special] + markers.stray_tokens()

    # -- made when they are first used ---------------------------------------------------------------------------------

    @cached_property
    def partial_openers(self) -> Probe:
        """Return a probe for what opens calls: sections, calls, bodies and headers, as far as they begin with literal
        text. With `is_begun` it tells whether a text ends inside one."""
        return Probe(alt(*[pat for pat, _ in self.openers.of_calls]))

    @cached_property
    def partial_markers(self) -> Probe:
        """Return a probe for the markers of reasoning, content and turns, the closing markers of sections and bodies,
        and the opening and closing markers of calls. With `is_begun` it tells whether a text ends inside one."""
        markers = FormatMarkers(self.format)
        beside = [entry for pair in self.format.content for entry in entries_of_pair(pair, "content", "content_close")]
        others = markers.thinks + markers.think_closes + markers.section_closes + markers.turns + beside
        return Probe(alt(*patterns(others), *markers.beside(), *markers.body_closes))

    @cached_property
    def with_think_tags(self) -> CompiledFormat:
        """Return the format for a reply whose reasoning is in `<think>`, next to the format's own markers (if any),
        compiled at first use; itself if reasoning is off or a marker of calls, sections, content or reasoning contains
        `<think>`."""
        if self.first.think_tag is None:
            return self
        pairs = zip(THINK, self.format.reasoning or ((), ()), strict=True)
        opens, closes = [(usual, *marker_alternatives(own)) for usual, own in pairs]
        return CompiledFormat(msgspec.structs.replace(self.format, reasoning=(opens, closes)))

    @cached_property
    def without_bare_calls(self) -> CompiledFormat:
        """Return a copy that looks for no bare calls or fences where a reply or a line begins, so that only calls in
        markers count: for the text of a thought. Only `can_begin_reply` and `can_begin_line` of its own `bare_calls`
        change; all else is shared, `headless` too."""
        found = copy(self)
        found.bare_calls = copy(self.bare_calls)
        found.bare_calls.can_begin_reply = found.bare_calls.can_begin_line = False
        return found


THINK: Pair = ("<think>\n", "\n</think>\n\n")  # how most models mark reasoning
THINK_OPENS, THINK_CLOSES = "<think>", "</think>"
THINK_TAG = Probe(literal(THINK_OPENS))


def may_be_think_tag(text: str) -> bool:
    """Return whether a reply that begins with this text may begin with `<think>`, after blanks. Only the first two
    characters behind the blanks are compared, so that `<the` gives True; also True for an empty or blank text."""
    begun = text[:2] if text[:1] > " " else text.lstrip(BLANKS)[:2]
    return THINK_OPENS.startswith(begun)


def _think_tag(format: Format) -> Probe | None:
    """Return the probe for `<think>`; None if a marker of calls, sections, content or reasoning in this format contains
    it."""
    pairs = [format.call, *format.content, *(pair for pair in (format.section, format.reasoning) if pair)]
    texts = [text for pair in pairs for marker in pair for text in marker_alternatives(marker)]
    return None if any(THINK_OPENS in text for text in texts) else THINK_TAG


LEVELS: dict[str, int] = {
    **dict.fromkeys(("section_close", "closer", "value_close", "stray"), INNERMOST),
    "section": SECTION,
    "call": CALL,
    "body": BODY,
}
_OPENERS = frozenset(("section", "call", "body", "content"))
_BEGINS = frozenset(("section", "call", "body", "header", "content", "think"))
_OPEN_CALLS = frozenset(("section", "call", "body", "header"))


_compile = lru_cache(1_024)(re.compile)


def search_any(sources: list[str]) -> Closes | None:
    """Return a search function, of a text and an index, for the first match of these regular-expression sources, or
    None if nothing matches; it compiles them at its first call. Return None if there are none."""
    source = "|".join(sources)
    return (lambda text, pos: _compile(source).search(text, pos)) if sources else None


def _no_opener(close: Pat) -> Pat:
    """Return the pattern of a closing marker. One that begins with a backtick must be followed by no ASCII letter,
    because then it opens a block; other patterns are returned unchanged."""
    return seq(close, alt(lookahead(Pat(r"[^A-Za-z]", "")), END)) if close.head == "`" else close


def _content_tags(format: Format) -> dict[str, str]:
    """Return the tags of a protocol's content: opening tags with the name of their block, closing tags with "". Empty
    without a protocol."""
    found = {}
    for opens, closes in format.content if format.protocol is not None else ():
        found[str(opens).strip()] = str(opens).strip("<> \t\r\n")
        found[str(closes).strip()] = ""
    return found


def _done(opens: str, closes: str, others: list[str]) -> Pat:
    """Return the pattern of a whole block that reports the end of the task: from `opens` to `closes`, both included,
    with at most 2,000 characters between. Of `opens`, `closes` and `others`, those that begin with the same character
    as `opens` cannot be in the block."""
    head = opens[0]
    stops = "|".join([re.escape(marker[1:]) for marker in (opens, closes, *others) if marker[0] == head])
    body = f"(?:[^{re.escape(head)}]|{re.escape(head)}(?!{stops})){{0,2000}}+"
    return seq(literal(opens), Pat(body, body, sure=RUN), literal(closes))


def _any_of_some(pats: list[Pat]) -> Probe | None:
    """Return a probe for any of these patterns, or None if there are none."""
    return Probe(alt(*pats)) if pats else None


def _extra(closes: list[Pat]) -> Probe | None:
    """Return a probe that takes one to three superfluous closing brackets (any of `}`, `]` and `)`), with blanks around
    them, before one of `closes`, which is not consumed. A bracket that one of these begins with is not superfluous.
    None without `closes`, or if all brackets begin one."""
    heads = {pat.head for pat in closes}
    brackets = "".join([re.escape(bracket) for bracket in "}])" if bracket not in heads])
    if not closes or not brackets:
        return None
    return Probe(seq(blanks(), Pat(f"[{brackets}]{{1,3}}+", f"[{brackets}]{{0,3}}"), blanks(), lookahead(alt(*closes))))


_CACHE: dict[tuple[int, bool], tuple[Format, CompiledFormat]] = {}


def compile_format(format: Format, *, reasoning: bool = True) -> CompiledFormat:
    """Return the compiled format, from the cache if the same object (not an equal one) was compiled before; a cache of
    more than 256 is emptied first. With `reasoning=False` reasoning markers are ordinary text, `<think>` too, and all
    messages with a known channel are content; the result is cached separately."""
    key = id(format), reasoning
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) > 256:
            _CACHE.clear()
        # The format is kept in the cache, because an id is only unique among living objects.
        made = CompiledFormat(format) if reasoning else CompiledFormat(_without_reasoning(format), reasoning=False)
        found = _CACHE[key] = (format, made)
    return found[1]


def _without_reasoning(format: Format) -> Format:
    """Return a copy of the format without reasoning markers, in which all messages with a channel are content."""
    channels = format.channels
    if channels is not None:
        kinds: dict[str, Literal["reasoning", "content"]] = dict.fromkeys(channels.kinds, "content")
        channels = msgspec.structs.replace(channels, kinds=kinds)
    return msgspec.structs.replace(format, reasoning=None, channels=channels)
