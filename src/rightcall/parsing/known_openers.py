"""The openers of every format, and for each the formats it may begin: by these the format of a text is found."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from rightcall.formats import NAMED_ONLY
from rightcall.formats.registered import KnownFormats, known_formats
from rightcall.formats.spec import Channels, Format, Marker, NameThenJson, Special, alternatives
from rightcall.parsing.arriving_fences import FENCE_BEGIN
from rightcall.parsing.bodies import BODIES
from rightcall.parsing.compile import (
    THINK,
    THINK_CLOSES,
    Compiled,
    Sign,
    closing_sources,
    compiled,
    is_sentence,
    search_any,
    sign_of,
)
from rightcall.parsing.detection import first_headers, to_nobody
from rightcall.parsing.markers import (
    RUN,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    look,
    ordered,
    seq,
    template,
    templates,
)
from rightcall.parsing.shown import BODY, CALL, INNERMOST, OUTSIDE, SECTION

_MARK = Sign("content")
_RECIPIENT = Pat(r"(?!functions\.)[^\W\d][\w.\-]{0,255}+", r"(?:[^\W\d][\w.\-]{0,255}+)?+", sure=RUN)
_CAPITALS = re.compile(r"\[[A-Z ]+\]").fullmatch


class KnownOpeners:
    """Made once: see `known_openers`."""

    def __init__(self, known: KnownFormats) -> None:
        self.formats = known
        formats = list(known.formats.values())
        self.special: set[str] = set()
        self.tokens: set[str] = set()
        self.of_calls: set[str] = set()  # those of calls and sections, which nobody writes by chance
        self.levels: dict[str, int] = {}  # how far out each opener stands
        shapes: dict[str, Pat] = {}
        patterns: dict[str, list[tuple[Compiled, Pat]]] = {}
        closes: dict[str, dict[str, None]] = {}
        ends = Counter([end.strip() for end in _all_ends(formats)])
        for format in _told_by_openers(formats):
            for pat, whole, sign, level in _signs(format, ends):
                shapes.setdefault(pat.whole, pat)
                patterns.setdefault(pat.whole, []).append((compiled(format), whole))
                closes.setdefault(pat.whole, {}).update(dict.fromkeys(closing_sources(format, level)))
                self._learn(pat, whole, sign, level)
        self.scan = Scan([*shapes.items(), (THINK_CLOSES, literal(THINK_CLOSES))])
        # What ends an opener that is only shown.
        self.ends_shown = {key: search_any(list(sources)) for key, sources in closes.items()}
        self.candidates = {key: _writers_first(key, choices) for key, choices in patterns.items()}
        self.names = {key: _names(choices) for key, choices in self.candidates.items()}
        self.any_of = {key: _any_of(choices) for key, choices in self.candidates.items()}
        self._bodies: dict[str, Probe] = {}
        self.headers = [(compiled(known.formats[name]), probe) for name, probe in first_headers(known).items()]
        self.first = self.headers + _firsts(known)
        self.marks = {pat.whole for format in formats for pat in _marks(format, ends)}
        self.thinks, self.think_closes = _thought_marks(formats)
        self.plain = _plain(formats)

    def body_of(self, opener: str) -> Probe:
        """How a body begins, if a broken one, of any format that this opener may be of; few openers are asked about."""
        found = self._bodies.get(opener)
        if found is None:
            pats = {each.body_begins.pat.whole: each.body_begins.pat for each, _ in self.candidates[opener]}
            found = self._bodies[opener] = Probe(alt(*pats.values()))
        return found

    def _learn(self, pat: Pat, whole: Pat, sign: Sign, level: int) -> None:
        key = pat.whole
        self.levels[key] = min(level, self.levels.get(key, level))
        if sign.special:
            self.special.add(key)
        if sign.is_token:
            self.tokens.add(key)
        if whole is not pat and sign.action != "header" and not pat.head.isalnum():
            self.of_calls.add(key)


def _names(choices: list[tuple[Compiled, Probe]]) -> frozenset[str]:
    return frozenset([each.format.name for each, _ in choices])


def _any_of(choices: list[tuple[Compiled, Probe]]) -> Probe:
    """Of an opener that many formats share: does any of them go on like this?"""
    return Probe(alt(*[each.pat for _, each in choices]))


def _writers_first(opener: str, choices: list[tuple[Compiled, Pat]]) -> list[tuple[Compiled, Probe]]:
    """A header that says nothing more of its format is of that one only where it is of no other."""
    ordered = sorted(
        choices,
        key=lambda choice: (
            not _writes(choice[0].format, opener),
            choice[0].channels is not None and choice[1].whole == opener,
        ),
    )
    return [(found, Probe(pat)) for found, pat in ordered]


def _told_by_openers(formats: list[Format]) -> list[Format]:
    return [format for format in formats if format.name not in NAMED_ONLY and not _has_no_opener(format)]


def _firsts(known: KnownFormats) -> list[tuple[Compiled, Probe]]:
    """What only a reply begins with, beside a header without its start: a sentence, an opener without its token."""
    firsts = [(compiled(format), Probe(seq(blanks(), pat))) for format, pat in _sentences(known)]
    openers = [(found, found.first_opener) for found in map(compiled, known.formats.values())]
    return firsts + [(found, Probe(seq(blanks(), opener.pat))) for found, opener in openers if opener is not None]


def _plain(formats: list[Format]) -> Format:
    """A body that nothing opens: before a format is found there are no calls, whatever the text holds."""
    ends = dict.fromkeys([end for end in _all_ends(formats) if isinstance(end, Special)])
    return Format("auto", body=NameThenJson(), reasoning=THINK, ends=tuple(ends))


def _all_ends(formats: list[Format]) -> list[str]:
    return [end for format in formats for end in ends_of(format)]


def _sentences(known: KnownFormats) -> list[tuple[Format, Pat]]:
    """Sentences that open reasoning where a reply begins."""
    formats = [format for format in known.formats.values() if format.reasoning]
    opens = [(format, text) for format in formats for text in ordered(format.reasoning[0])]  # type: ignore[index]
    return [(format, template(text)) for format, text in opens if is_sentence(text)]


def _has_no_opener(format: Format) -> bool:
    untagged = not any(alternatives(tag)[0] for body in format.bodies for tag in BODIES[type(body)].opening(body))
    return format.call == ("", "") and not format.section and not format.channels and untagged


Signs = list[tuple[Pat, Pat, Sign, int]]


def _signs(format: Format, ends: Counter[str]) -> Signs:
    """What tells this format: a marker to look for, the marker with what must follow it, whether it is special, and
    how far out it stands."""
    found = compiled(format)
    calls, bodies = _call_signs(found), [(pat, pat, sign, BODY) for pat, sign in found.body_openers]
    alone = calls + [sign for sign in bodies if _tells(sign[0], format)]
    marks: Signs = [(mark, mark, _MARK, INNERMOST) for mark in _marks(format, ends)]
    return _section_signs(format, calls + bodies) + alone + _header_signs(format) + marks


def _call_signs(found: Compiled) -> Signs:
    begins = [look((reader.tells or reader.begins).pat) for reader in found.readers]
    is_fenced = found.envelope is not None
    fences = [look(seq(FENCE_BEGIN.pat, blanks(), begin)) for begin in begins] if is_fenced else []
    opens, closes = found.format.call
    inside = alt(*begins, *fences, *map(look, templates(closes)))
    openers = [(template(text), text) for text in ordered(opens)]
    return [
        (opener, seq(opener, blanks(), inside), sign_of("call", text), CALL)
        for opener, text in openers
        if opener.head != "`"
    ]


def _section_signs(format: Format, inner: Signs) -> Signs:
    if format.section is None:
        return []
    inside = look(alt(*(whole for _, whole, _, _ in inner)))
    openers = [(template(text), text) for text in ordered(format.section[0])]
    return [(opener, seq(opener, blanks(), inside), sign_of("section", text), SECTION) for opener, text in openers]


def _header_signs(format: Format) -> Signs:
    if format.channels is None:
        return []
    starts = [*alternatives(format.channels.start), format.channels.channel]
    pats = [template(start) for start in starts if isinstance(start, Special)]
    behind = _told_by(format, format.channels)
    return [(pat, seq(pat, *behind) if behind else pat, Sign("header", True, True), OUTSIDE) for pat in pats]


def _told_by(format: Format, channels: Channels) -> list[Pat]:
    """What must follow the start of a header that other formats begin alike: where nothing introduces a channel, a
    recipient and no arguments, or none before what opens calls."""
    if channels.channel or not channels.to:
        return []
    message = template(channels.message)
    kinds = alt(*[seq(literal(kind), blanks(), message) for kind in channels.kinds])
    name = seq(_RECIPIENT, blanks(), message, blanks(), look(Pat(r"[^{\s]", "")))
    return [blanks(), alt(seq(template(channels.to), look(alt(kinds, name))), look(to_nobody(format)))]


def _writes(format: Format, opener: str) -> bool:
    """Is this how the format itself opens its section, and not what is read as well?"""
    section = alternatives(format.section[0]) if format.section else ()
    return opener not in [template(text).whole for text in section[1:]]


def _tells(pat: Pat, format: Format) -> bool:
    """Does a body's opening tag alone tell the format? Plain `<invoke` and `<function` do not."""
    if "" in alternatives(format.call[0]) and format.section is None:
        return True
    return not pat.prefix.startswith(("<invoke", "<function"))


def _is_tag(mark: str) -> bool:
    text = mark.strip()
    return (
        isinstance(mark, Special) or _CAPITALS(text) is not None or (text[:1] == "<" and bool(set(text) & set(":_|")))
    )


def _marks(format: Format, ends: Counter[str]) -> list[Pat]:
    """Markers of reasoning and content that only a few formats have, and with which none ends a turn or a message; nor,
    of a token that stands alone, does another format begin to."""
    marks: list[str] = [mark for side in _rare_sides(format) for mark in alternatives(side) if _is_tag(mark)]
    others = ends - Counter({end.strip() for end in ends_of(format)})
    tokens = [token for token in _first_tokens(marks) if not any(end.startswith(token) for end in others)]
    return [template(mark) for mark in marks + tokens if mark.strip() and mark.strip() not in ends]


def _thought_marks(formats: list[Format]) -> tuple[set[str], set[str]]:
    """Those of them that open a thought, and those that close one."""
    pairs = [format.reasoning for format in formats if format.reasoning is not None]
    opens, closes = [{template(mark).whole for pair in pairs for mark in alternatives(pair[side])} for side in (0, 1)]
    return opens, closes - opens


def _first_tokens(marks: list[str]) -> list[str]:
    """A token that a marker begins with may stand alone."""
    tokens = [(mark, token) for mark in marks if isinstance(mark, Special) for token in mark.tokens[:1]]
    return [token for mark, token in tokens if mark.strip().startswith(token)]


def _rare_sides(format: Format) -> list[Marker]:
    is_usual = format.reasoning is None or format.reasoning[0] == THINK[0]
    pairs = [*format.content, *([] if is_usual else [format.reasoning])]
    return [side for pair in pairs if pair is not None for side in pair]


def ends_of(format: Format) -> tuple[str, ...]:
    """What ends a turn, or a message."""
    return format.ends + (format.channels.ends if format.channels is not None else ())


def known_openers() -> KnownOpeners:
    """Those of the formats that are known now."""
    return _openers_of(known_formats())


@lru_cache(4)
def _openers_of(known: KnownFormats) -> KnownOpeners:
    return KnownOpeners(known)
