"""The tags of a tagged body, and what may stand around them, as patterns: `params` reads with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from rightcall.formats.spec import HOLES, Format, Params, Special, marker_alternatives
from rightcall.parsing.markers import (
    BLANKS,
    NAME,
    NAMED,
    Pat,
    Probe,
    alt,
    blanks,
    literal,
    longest_first,
    lookahead,
    seq,
    template,
    templates,
    truncated_after_name,
)

_SLIPS = Pat(r"[\"'>]{0,2}+", r"[\"'>]{0,2}+")
_LAST_SLIPS = Pat(r"(?:[\"']?+>{1,2}+)?+", r"[\"'>]{0,3}+")
# An argument whose key and value have tags of their own: `<arg_key>{key}</arg_key>\n<arg_value>`.
_SPLIT_PARAM = re.compile(r"(<[^<>{}/]+>)\{key\}(</[^<>{}]+>)\s*(<[^<>{}/]+>)").fullmatch
_LONGEST_CLOSE = 80
_SURE = 4  # so much of a tag tells it from other text


class ClosingTags(NamedTuple):
    """The closing markers of a body, a call and the section of calls; a list is empty where nothing closes it.

    - `after_arguments`: those that follow the last argument.
    - `is_required`: a call has one of its own, so that one can be missing. Otherwise what follows the call closes it.
    """

    body: list[Pat]
    call: list[Pat]
    section: list[Pat]
    after_arguments: list[Pat]
    is_required: bool

    @property
    def all(self) -> list[Pat]:
        """Return the closing markers of bodies, calls and sections."""
        return self.body + self.call + self.section


class OpeningTags(NamedTuple):
    """The opening markers of a body, a call and the section of calls.

    - `all`: those that begin another call or the section.
    - `whole`: those of a call, up to the name of the tool.
    """

    body: list[Pat]
    call: list[Pat]
    section: list[Pat]
    all: list[Pat]
    whole: list[Pat]


class Tags:
    """The compiled tags of one format. `turns` are the end-of-turn tokens, and what begins a channel's header."""

    def __init__(self, body: Params, format: Format, turns: list[Pat]) -> None:
        self.body = body
        self.turns = turns
        self.headers = templates(format.channels.start) if format.channels is not None else []
        self.quoted = bool(body.escapes)
        self.plain = _unescape_with(body.escapes)  # returns a name or a key without its escapes
        self.whole_params = templates(body.param, quoted=self.quoted)
        self.params = self.param_pats()
        # A token that nobody writes by chance: an argument's opener ends the value before it.
        self.is_special = all(isinstance(text, Special) for text in longest_first(body.param)) and not body.item
        self.closing = self._closing_tags(format)
        self.opening = self._opening_tags(format)
        self.no_param = self._no_param(format)
        self.closers = [self._closer(text) for text in longest_first(body.value_close)] + self.closing.body

    def param_pats(self, group: str = "") -> list[Pat]:
        """Return the patterns of an argument's opening tags, longest first; `group` makes the hole of that name a
        numbered group."""
        return [template(text, group=group, quoted=self.quoted) for text in longest_first(self.body.param)]

    @cached_property
    def split_params(self) -> list[tuple[str, str, str]]:
        """Return the tags before and behind the key and the tag before the value, for arguments whose key and value
        have separate tags without a type; empty for other formats."""
        found = [_SPLIT_PARAM(text) for text in longest_first(self.body.param)] if not self.body.types else []
        return [(each[1], each[2], each[3]) for each in found if each]

    def damaged_params(self, *, first: bool = False) -> list[Pat]:
        """Return patterns of an argument's opening tags as GLM damages them, one for each of `split_params`, so none
        for other formats; the key is the first group. They also match undamaged tags. A tag around the key is doubled
        (vllm#54971), or the tag before the value is missing, whose place is the second group, then None (vllm#49249).
        Before the `first` argument, the call's opener replaces the tag before the key (sigit#95), or that tag is
        missing (vllm#47190)."""
        key = template("{key}", group="key")
        pats = []
        for before, behind, value in self.split_params:
            begins = [seq(literal(before), _optional(literal(before)))]
            begins += [*self.opening.call, Pat("", "")] if first else []
            ends = (literal(behind), _optional(literal(behind)), _optional(literal(value), group=True))
            pats.append(seq(alt(*begins), key, *ends))
        return pats

    def _closing_tags(self, format: Format) -> ClosingTags:
        """Return the closing markers of body, call and section. One is required if the body has one, or the call has
        one and no alternative of it is empty. Those that follow the arguments are the body's, or, without one, the
        required one of the call."""
        body, call = templates(self.body.close), templates(format.call[1])
        section = templates(format.section[1]) if format.section else []
        is_call_closed = bool(call) and "" not in marker_alternatives(format.call[1])
        after_arguments = body or (call if is_call_closed else [])
        return ClosingTags(body, call, section, after_arguments, bool(body) or is_call_closed)

    def _opening_tags(self, format: Format) -> OpeningTags:
        """Return the opening markers of body (also of an empty one), call and section. Of those of calls, code fences
        are left out. Tags of bodies that begin with a name are not in `all`. `whole` are the other tags, alone or
        behind a call's marker; without any, a call's marker with the name and the argument or the call's closing marker
        behind it."""
        body = templates(self.body.open) + templates(self.body.empty)
        call = [pat for pat in templates(format.call[0]) if pat.head != "`"]
        section = templates(format.section[0]) if format.section else []
        tags = [pat for pat in body if pat.head]
        behind = [alt(*tags)] if tags else [alt(*body), blanks(), alt(*self.params, *self.closing.call)]
        whole = tags + [seq(pat, blanks(), *behind) for pat in call]
        return OpeningTags(body, call, section, section + call + tags, whole)

    def _no_param(self, format: Format) -> Probe | None:
        """Return a probe for markers that an argument's opening tag matches too: openers of calls and sections, and
        closing tags of the body without their slash. None if none of these matches."""
        texts = [*longest_first(format.call[0]), *(longest_first(format.section[0]) if format.section else [])]
        # What closes the body, without its slash, is no argument of that name but a damaged close or opener.
        texts += [str(text).replace("</", "<", 1) for text in longest_first(self.body.close) if "</" in text]
        param = re.compile(alt(*self.params).whole).match
        clashes = [literal(text) for text in texts if param(text)]
        return Probe(alt(*clashes)) if clashes else None

    def _closer(self, text: str) -> Pat:
        """Return the pattern of `text`, a closing tag of values. If it has a hole, any key may be in it, but a tag that
        closes a body, call or section does not match."""
        before, hole, after = text.partition("{key}")
        if not hole:
            return template(text)
        start = re.escape(before)
        rests = [found.whole.removeprefix(start) for found in self.closing.all if found.whole.startswith(start)]
        is_other = "|".join(filter(None, rests))
        key = f"(?!{is_other})(?:{HOLES['key']})" if is_other else f"(?:{HOLES['key']})"
        return seq(literal(before), Pat(key, f"(?:{HOLES['key']})?"), literal(after))

    @cached_property
    def param_starts(self) -> list[Pat]:
        """Return patterns of the literal beginning of an argument's opening tags, up to the first hole, even if the tag
        is then broken. Beginnings of one or two characters are left out; behind one that ends in `<` no slash may
        follow."""
        texts = {str(start): start for text in longest_first(self.body.param) if len(start := _before_hole(text)) > 2}
        found = [template(start) for start in texts.values()]
        # Such a beginning is that of a closing tag too.
        return [seq(pat, Pat("[^/]", "")) if pat.prefix.endswith("<") else pat for pat in found]

    def ends_in_close(self, text: str, key: str) -> bool:
        """Return whether `text`, the value of argument `key`, ends with a closing tag of values (with `key` in its
        hole), blanks behind it not counted. Closing markers of bodies do not count. Then a model wrote the tag twice,
        or a value about tags."""
        closes = [str(close).replace("{key}", key) for close in longest_first(self.body.value_close)]
        return text.rstrip(BLANKS).endswith(tuple(closes))

    @cached_property
    def reopens(self) -> Callable[[str], re.Match[str] | None]:
        """Return a search function for a closing marker of a body, call or section, followed, maybe behind blanks, by
        an opener of a call or section."""
        return re.compile(seq(alt(*self.closing.all), blanks(), alt(*self.opening.all)).whole).search

    @cached_property
    def ends_in_shut(self) -> Callable[[str], bool]:
        """Return a function that tells whether a value ends with a closing marker of a body, a call or a section (not
        with one of values), white space not counted; only its last 160 characters are examined."""
        search = re.compile(alt(*self.closing.all).whole + r"\s*\Z").search
        return lambda text: search(text[-2 * _LONGEST_CLOSE :]) is not None

    @cached_property
    def rest_of_param(self) -> Callable[[str], re.Match[str] | None]:
        """Return a function that takes a value and matches at its beginning, behind blanks, what follows the key in an
        argument's opening tag, or a part of that from a `<` to its end: the value's own tag was ended too early, or its
        end was written twice. Remainders of up to four characters are not looked for."""
        rests = [text.partition("{key}")[2].lstrip('" ') for text in longest_first(self.body.param)]
        ends = [rest[at:] for rest in rests for at, char in enumerate(rest) if char == "<" or not at]
        known = [template(text) for text in dict.fromkeys(ends) if len(text) > _SURE]
        return re.compile(r"\s*+" + alt(*known).whole).match

    @cached_property
    def damaged_opens(self) -> list[Probe]:
        """Return probes for the body's opening tag, also a damaged one, with a name (group `name`) and before what can
        only follow it, as `_damaged` says."""
        return [Probe(pat) for text in longest_first(self.body.open) for pat in self._damaged(text, NAMED)]

    @cached_property
    def cut_opens(self) -> list[Probe]:
        """Return probes for the opening tag of a body (also of an empty one) that the text ends in, in or behind the
        name (group `name`). They match only if no more text comes."""
        return [
            Probe(truncated_after_name(text, NAMED))
            for text in longest_first(self.body.open) + longest_first(self.body.empty)
        ]

    @cached_property
    def damaged_openers(self) -> list[Pat]:
        """Return patterns of the body's opening tag, damaged, but with a name and before what can only follow it, for a
        search in text: only tags with more than four characters before the name."""
        texts = [text for text in longest_first(self.body.open) if len(text.partition("{")[0]) > _SURE]
        return [pat for text in texts for pat in self._damaged(text, NAME)]

    def _damaged(self, text: str, name: Pat) -> list[Pat]:
        """Return patterns of the opening tag `text` with slips at its end (xalgorix#248), and, if double quotes are
        around its name and more than four characters before it, also one with single quotes or none
        (openvinotoolkit/model_server#4487). An argument or a closing marker of the body or call must follow, which is
        not consumed. `name`: the pattern of the name."""
        before, _, after = text.partition("{name}")
        closes = alt(*self.closing.body, *self.closing.call)
        follows = (blanks(), lookahead(alt(*self.params, closes)))
        # A quotation mark alone is no end of a tag where nothing but the call's close follows.
        slips = alt(seq(_SLIPS, blanks(), lookahead(alt(*self.params))), seq(_LAST_SLIPS, blanks(), lookahead(closes)))
        late = seq(*((template(before),) if before else ()), name, slips)
        if len(before) <= _SURE or not before[-1] == after[:1] == '"':
            return [late]
        quote = Pat("'?+", "'?+")  # the attribute may have single quotes or none
        return [late, seq(literal(before[:-1]), quote, name, quote, template(after[1:]), *follows)]

    @cached_property
    def open_starts(self) -> Probe | None:
        """Return a probe for the literal beginning of the body's opening tag (not of an empty body's), up to the name
        and without `=`, `"` and spaces before it, even if the tag is then broken; None if all alternatives begin with
        the name."""
        starts = {text.partition("{")[0].rstrip('=" ') for text in longest_first(self.body.open)} - {""}
        return Probe(alt(*map(literal, sorted(starts, key=len, reverse=True)))) if starts else None


def _unescape_with(escapes: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the escapes of a name or a key by their characters; one that returns its text
    unchanged if there are none. `escapes`: by character."""
    characters = {escape: char for char, escape in escapes.items()}
    replace = re.compile("|".join(map(re.escape, characters))).sub
    return (lambda text: replace(lambda found: characters[found.group()], text)) if characters else str


def _optional(tag: Pat, *, group: bool = False) -> Pat:
    """Return the pattern of a tag that may be missing, with the blanks before it. `group`: both are a numbered group,
    None without the tag."""
    found = seq(blanks(), tag)
    return Pat(f"({'' if group else '?:'}{found.whole})?+", found.part)


def _before_hole(text: str) -> str:
    """Return the text of a marker before its first hole, as `Special` if the marker is. It must have a hole."""
    end = text.find("{")
    return Special(text[:end], text.tokens) if isinstance(text, Special) else text[:end]
