"""The tags of a tagged body, and what may stand around them, as patterns: `params` reads with them.

An *opener* is a marker that begins another call or the section of calls; a *whole opener* is one with the name of what
it calls. A *shut* closes a body, a call or a section.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cached_property

from rightcall.formats.spec import Format, Params, Special, alternatives
from rightcall.parsing.bodies.behind import short_closes
from rightcall.parsing.markers import (
    BLANKS,
    HOLES,
    LINE_END,
    NAME,
    NAMED,
    Pat,
    Probe,
    alt,
    blanks,
    cut_behind_name,
    literal,
    look,
    ordered,
    seq,
    template,
    templates,
)

_SLIPS = Pat(r"[\"'>]{0,2}+", r"[\"'>]{0,2}+")
_LAST_SLIPS = Pat(r"(?:[\"']?+>{1,2}+)?+", r"[\"'>]{0,3}+")
_LETTERS = Pat(r"[\w.-]{1,24}+>", r"[\w.-]{0,24}+")
_KEY = Pat(r"[\w.$\-]{1,64}+", r"[\w.$\-]{0,64}+")
_PADS = Pat(r"[ \t]{0,4}+", r"[ \t]{0,4}+")
_HOLE = re.compile(r"\{(\w+)\}")
_LAST_CLASS = re.compile(r"\[(?:[^\]\\]|\\.)+\](?=\{)")  # of characters, in the pattern of a hole
_LONE_CLOSE = re.compile(r"</([^<>/\s][^<>/]*+)>\Z").search
_LONGEST_CLOSE = 80
_LIKE = 0.65  # two tags that share so much are one, misspelt
_SURE = 4  # so much of a tag tells it from other text
_HEAD = re.compile(r"[^\s=>\"']*+").match
_LIKE_KEY = r"(?:\W{1,3}(?:name|key))?\W{1,3}([\w.$\-]{1,64}+)"
_LEFT = 64  # so far behind a close one looks for what is left of the next opener
_LEFT_KEY = re.compile(r"(?<![/\w.$\-])[\w.$\-]{1,64}+(?=[\"'<>=])").finditer  # of no closing tag


class Tags:
    """`turns` are the end-of-turn tokens, and what begins a channel's header."""

    def __init__(self, body: Params, format: Format, turns: list[Pat]) -> None:
        self.body = body
        self.turns = turns
        self.headers = templates(format.channels.start) if format.channels is not None else []
        self.quoted = bool(body.escapes)
        self._meant = {written: char for char, written in body.escapes.items()}
        self._escaped = re.compile("|".join(map(re.escape, self._meant))).sub
        # A name or a key as it is meant.
        self.plain: Callable[[str], str] = self._unescaped if self._meant else str
        # An argument's opening tag without its last sign, which counts at the end of a line.
        self.unended = [] if body.item else _unended(ordered(body.param))
        # And one whose attributes stand in other quotation marks.
        named = [text for text in ordered(body.param) if '"{key}"' in text and not self.quoted]
        self.requoted = [text.replace('"', "'") for text in named]
        self.whole_params = templates((*ordered(body.param), *self.requoted), quoted=self.quoted)
        self.params = self.param_pats()
        # A token that nobody writes by chance: an argument's opener ends the value before it.
        self.is_special = all(isinstance(text, Special) for text in ordered(body.param)) and not body.item
        self._add_shuts(format)
        self._add_openers(format)
        self.no_param = self._no_param(format)
        self.closers = [self._closer(text) for text in ordered(body.value_close)] + self.body_closes

    def param_pats(self, group: str = "") -> list[Pat]:
        """An argument's opening tags; `group` makes the hole of that name a numbered one."""
        whole = [*ordered(self.body.param), *self.requoted]
        texts = [(text, False) for text in whole] + [(text, True) for text in self.unended]
        return [template(text, group=group, quoted=self.quoted, unended=unended) for text, unended in texts]

    def _add_shuts(self, format: Format) -> None:
        self.body_closes = templates(self.body.close)
        self.call_closes = templates(format.call[1])
        self.section_closes = templates(format.section[1]) if format.section else []
        self.shuts = self.body_closes + self.call_closes + self.section_closes
        # Nothing closes such a call but what follows it, so that nothing can be missing.
        self.is_closed = bool(self.body_closes) or (bool(self.call_closes) and "" not in alternatives(format.call[1]))

    def _add_openers(self, format: Format) -> None:
        self.opens = templates(self.body.open) + templates(self.body.empty)
        calls = [pat for pat in templates(format.call[0]) if pat.head != "`"]
        tags = [pat for pat in self.opens if pat.head]
        self.sections = templates(format.section[0]) if format.section else []
        self.openers = self.sections + calls + tags
        self.nameless_openers = self.sections + _nameless(format)
        self.whole_openers = tags + [self._whole(call, tags) for call in calls]

    def _no_param(self, format: Format) -> Probe | None:
        """What looks like an argument's opening tag and is none."""
        texts = [*ordered(format.call[0]), *(ordered(format.section[0]) if format.section else [])]
        # What closes the body, without its slash, is no argument of that name but a damaged close or opener.
        texts += [str(text).replace("</", "<", 1) for text in ordered(self.body.close) if "</" in text]
        param = re.compile(alt(*self.params).whole).match
        clashes = [literal(text) for text in texts if param(text)]
        return Probe(alt(*clashes)) if clashes else None

    def _unescaped(self, text: str) -> str:
        return self._escaped(lambda found: self._meant[found.group()], text)

    def _whole(self, call: Pat, tags: list[Pat]) -> Pat:
        if tags:
            return seq(call, blanks(), alt(*tags))
        return seq(call, blanks(), alt(*self.opens), blanks(), alt(*self.params, *self.call_closes))

    def _closer(self, text: str) -> Pat:
        """A value's close, of whatever argument; a tag that closes something else is none."""
        before, hole, after = text.partition("{key}")
        if not hole:
            return template(text)
        others = [found.whole for found in self.shuts]
        is_other = "|".join(rest for whole in others if (rest := _behind(whole, re.escape(before))))
        key = f"(?!{is_other})(?:{HOLES['key']})" if is_other else f"(?:{HOLES['key']})"
        return seq(literal(before), Pat(key, f"(?:{HOLES['key']})?"), literal(after))

    @cached_property
    def param_starts(self) -> list[Pat]:
        """How an argument's opening tag begins, whatever becomes of it."""
        texts = {str(start): start for text in ordered(self.body.param) if len(start := _before_hole(text)) > 2}
        found = [template(start) for start in texts.values()]
        # Such a beginning is that of a closing tag too.
        return [seq(pat, Pat("[^/]", "")) if pat.prefix.endswith("<") else pat for pat in found]

    @cached_property
    def drifted_closes(self) -> list[Pat]:
        """A value's closing tag with more letters in its name, or without its last sign at the end of a line."""
        texts = [text for text in ordered(self.body.value_close) if "{" not in text and text[:2] == "</"]
        return [seq(literal(text[:-1]), end) for text in texts for end in (_LETTERS, LINE_END)]

    @cached_property
    def short_closes(self) -> list[Pat]:
        return short_closes(self.body.close)

    def ends_in_close(self, text: str, key: str) -> bool:
        """Does a value end with its own closing tag? Then a model wrote the tag twice, or a value about tags."""
        closes = [str(close).replace("{key}", key) for close in ordered(self.body.value_close)]
        return text.rstrip(BLANKS).endswith(tuple(closes))

    def ends_in_damaged_close(self, text: str, key: str) -> bool:
        """Does a value end with its closing tag, misspelt?"""
        closes = [str(close).replace("{key}", key) for close in ordered(self.body.value_close)]
        return any(_is_like(text.rstrip()[-len(close) - 4 :], close) for close in closes)

    @staticmethod
    def ends_in_lone_close(text: str) -> bool:
        """Does a value end with a closing tag of something that it does not open? Models take it for their own."""
        found = _LONE_CLOSE(text.rstrip()[-_LONGEST_CLOSE:])
        return found is not None and f"<{found.group(1)}" not in text

    @cached_property
    def _ends_in_shut(self) -> re.Pattern[str]:
        return re.compile(alt(*self.shuts).whole + r"\s*\Z" if self.shuts else "(?!)")

    def ends_in_shut(self, text: str) -> bool:
        """Does a value end with what closes the body, the call or all calls?"""
        return self._ends_in_shut.search(text[-2 * _LONGEST_CLOSE :]) is not None

    @cached_property
    def any_param(self) -> Probe:
        """An argument's opening tag, or what is left of one: its key, and what follows that."""
        return Probe(seq(blanks(), alt(*self.params, *self._left_of_params)))

    @cached_property
    def _left_of_params(self) -> list[Pat]:
        return [seq(_KEY, literal(tail)) for tail in dict.fromkeys(self._tails()) if tail]

    @cached_property
    def param_tails(self) -> list[Pat]:
        """How an argument's opening tag goes on behind its key, where that is more than a sign."""
        tails = [template(tail) for tail in self._tails() if len(tail) > _SURE]
        return list({pat.whole: pat for pat in tails}.values())

    @cached_property
    def _rests(self) -> list[str]:
        rests = [text.partition("{key}")[2].lstrip('" ') for text in ordered(self.body.param)]
        return [text for text in dict.fromkeys(rests) if len(text) > _SURE]

    @cached_property
    def rest_of_param(self) -> Callable[[str], re.Match[str] | None]:
        """Of a tag with more than a key in it: how a value begins that holds the rest of its own tag, which was ended
        too early."""
        known = [template(text) for text in self._rests]
        return re.compile(r"\s*+" + alt(*known).whole if known else "(?!)").match

    @cached_property
    def rest_heads(self) -> frozenset[str]:
        """The characters that such a value begins with, and one behind a tag without its last sign."""
        return frozenset([text[0] for text in self._rests]) | frozenset(BLANKS if self._rests else "") | {">"}

    @cached_property
    def torn_closes(self) -> list[Pat]:
        """A value's closing tag whose last sign is another one."""
        texts = [text for text in ordered(self.body.value_close) if "{" not in text and text[:2] == "</"]
        return [seq(literal(text[:-1]), Pat(r"[^\w>\s.\-]", "")) for text in texts]

    def _tails(self) -> list[str]:
        """What stands behind the key of an opening tag, up to its next hole."""
        return [text.partition("{key}")[2].partition("{")[0].rstrip() for text in ordered(self.body.param)]

    @cached_property
    def _value_closes(self) -> re.Pattern[str]:
        return re.compile(alt(*(self._closer(text) for text in ordered(self.body.value_close) if text)).whole)

    def holds_torn_param(self, text: str, is_declared: Callable[[str], bool] | None) -> bool:
        """Does a key stand behind a close in this value, with what follows it in an opening tag? Then the tag's
        beginning was lost:  owl</parameter>n>3  Where no tools are known, the whole rest of the tag must be there."""
        tails = tuple([tail for tail in self._tails() if tail])
        for close in self._value_closes.finditer(text):
            left = text[close.end() : close.end() + _LEFT].lstrip()
            for key in _LEFT_KEY(left):
                if is_declared(key.group()) if is_declared is not None else left.startswith(tails, key.end()):
                    return True
        return False

    @cached_property
    def param_heads(self) -> list[str]:
        """The name of the tag that opens an argument, whatever follows it."""
        starts = [text.partition("{")[0] for text in ordered(self.body.param)]
        return [head for head in dict.fromkeys(_HEAD(start).group() for start in starts) if len(head) >= 2 * _SURE]  # type: ignore[union-attr]

    @cached_property
    def _like_param(self) -> re.Pattern[str]:
        return re.compile(_any_of(self.param_heads).whole + _LIKE_KEY if self.param_heads else "(?!)")

    def holds_like_param(self, text: str, is_declared: Callable[[str], bool] | None) -> bool:
        """Does the tag that opens an argument stand in this value, written otherwise, with a declared key?"""
        found = self._like_param.finditer(text) if is_declared is not None else ()
        return is_declared is not None and any(is_declared(each.group(1)) for each in found)

    @cached_property
    def _reopened(self) -> re.Pattern[str]:
        starts = [start for text in ordered(self.body.open) if len(start := text.partition("{")[0]) > _SURE]
        return re.compile(seq(alt(*self.shuts), blanks(), _any_of(starts)).whole if starts and self.shuts else "(?!)")

    def opens_anew(self, text: str, is_declared: Callable[[str], bool] | None) -> bool:
        """Does what is left of an argument's opening tag, or the beginning of a call's, stand behind a close in this
        value?"""
        return self._reopened.search(text) is not None or self.holds_torn_param(text, is_declared)

    @cached_property
    def damaged_param(self) -> Probe:
        """How an argument's opening tag begins, with one character missing; or its key and what follows that, where
        all before it is missing."""
        starts = [text.partition("{")[0] for text in ordered(self.body.param)]
        closes = tuple(str(text) for text in ordered(self.body.value_close) + ordered(self.body.close))
        texts = [less for start in starts for less in _one_less(start) if not any(c.startswith(less) for c in closes)]
        told = [start for start in starts if len(start) > 2 * _SURE and not any(c.startswith(start) for c in closes)]
        wrong = [_one_wrong(start) for start in told]
        found = [*map(literal, dict.fromkeys(texts)), *wrong, *self._left_of_params]
        return Probe(seq(blanks(), alt(*found))) if found else Probe.never()

    @cached_property
    def damaged_opens(self) -> list[Probe]:
        """The body's opening tag, damaged, but with a name and before what can only follow it."""
        return [Probe(pat) for text in ordered(self.body.open) for pat in self._damaged(text, NAMED)]

    @cached_property
    def cut_opens(self) -> list[Probe]:
        """The body's opening tag, where the text ends in it, with the name."""
        return [Probe(cut_behind_name(text, NAMED)) for text in ordered(self.body.open) + ordered(self.body.empty)]

    @cached_property
    def damaged_openers(self) -> list[Pat]:
        """The same, to be looked for in text: each begins with the character that the tag begins with."""
        texts = [text for text in ordered(self.body.open) if len(text.partition("{")[0]) > _SURE]
        return [pat for text in texts for pat in self._damaged(text, NAME)]

    def _damaged(self, text: str, name: Pat) -> list[Pat]:
        before, _, after = text.partition("{name}")
        closes = alt(*self.body_closes, *self.call_closes)
        follows = (blanks(), look(alt(*self.params, closes)))
        end = (template(after),) if after else ()
        # A quotation mark alone is no end of a tag where nothing but the call's close stands behind it.
        slips = alt(seq(_SLIPS, blanks(), look(alt(*self.params))), seq(_LAST_SLIPS, blanks(), look(closes)))
        damaged = [seq(_any_damage(after), *follows)] if len(after) > _SURE else []
        late = seq(*((template(before),) if before else ()), name, alt(*damaged, slips))
        if len(before) <= _SURE:
            return [late]
        unquoted = [_unquoted(before, name, after, follows)] if before[-1] == after[:1] == '"' else []
        spaced = [seq(literal(before[:-1]), _PADS, name, *end, *follows)] if before[-1] == "=" else []
        padded = seq(template(before), _PADS, name, _PADS, *end, *follows)
        # A tag that lost its first character is looked for only where one is due.
        first = seq(literal(before[0]), _any_damage(before[1:]), name, *end, *follows)
        return [
            late,
            *unquoted,
            *spaced,
            padded,
            first,
            *([seq(template(before[1:]), name, *end, *follows)] if name is NAMED else []),
        ]

    @cached_property
    def open_starts(self) -> Probe | None:
        """How the body's opening tag begins, whatever becomes of it."""
        starts = {text.partition("{")[0].rstrip('=" ') for text in ordered(self.body.open)} - {""}
        return Probe(_any_of(sorted(starts, key=len, reverse=True))) if starts else None


def _nameless(format: Format) -> list[Pat]:
    """What opens a call without saying its name."""
    texts = tuple([text for text in ordered(format.call[0]) if "{name}" not in text and text[0] != "`"])
    return templates(texts) if texts else []


def _unquoted(before: str, name: Pat, after: str, follows: tuple[Pat, ...]) -> Pat:
    """A tag whose attribute stands in other quotation marks, or in none."""
    quote = Pat("'?+", "'?+")
    return seq(literal(before[:-1]), quote, name, quote, template(after[1:]), *follows)


def _before_hole(text: str) -> str:
    """How a template begins: what stands before its first hole."""
    return _up_to(text, text.find("{"))


def _up_to(text: str, end: int) -> str:
    return Special(text[:end], text.tokens) if isinstance(text, Special) else text[:end]


def _unended(texts: list[str]) -> list[str]:
    """Tags that hold a key, without their last sign."""
    tags = [text for text in texts if text[-1] == ">" and "{key}" in text[text.rfind("<") :]]
    return [_up_to(text, -1) for text in tags if text.find("{") > _SURE]


def _behind(whole: str, before: str) -> str:
    return whole[len(before) :] if whole.startswith(before) else ""


def _is_like(end: str, close: str) -> bool:
    """Is the end of a text, from one of its characters on that the tag begins with, nearly the tag? It may have lost
    the first two."""
    starts = [i for i, char in enumerate(end) if char in close[:3]]
    return any(SequenceMatcher(None, end[i:], close, autojunk=False).ratio() > _LIKE for i in starts)


def _one_less(text: str) -> list[str]:
    """The template with each one of its characters missing, those of its holes apart."""
    if len(text) < _SURE:
        return []
    holes = {i for hole in _HOLE.finditer(text) for i in range(hole.start(), hole.end())}
    return [text[:i] + text[i + 1 :] for i in range(len(text)) if i not in holes]


def _one_wrong(text: str) -> Pat:
    """The text with one of its characters written wrongly, or one put in: its beginning or its end is as it was."""
    half = len(text) // 2
    ends = rf"[^\r\n]{{{half - 1},{half + 2}}}?{re.escape(text[half + 1 :])}"
    return Pat(f"(?:{re.escape(text[: half + 1])}|{ends})", rf"[^\r\n]{{0,{len(text) + 2}}}+")


def _any_damage(text: str) -> Pat:
    """The template with any one of its characters missing. What may become that is told roughly: it costs less, and
    only makes a reading wait for a few more characters."""
    texts = list(dict.fromkeys(_one_less(text)))
    wholes = [template(less).whole for less in texts]
    whole = one_missing(text) if wholes == list(map(re.escape, texts)) else "|".join(wholes)
    chars = "".join(map(re.escape, sorted(set(_HOLE.sub("", text)) | set(" \t\r\n"))))
    fillings = [HOLES[hole] for hole in _HOLE.findall(text)]
    any_char = "|".join([f"[{chars}]", *[_LAST_CLASS.findall(filling)[-1] for filling in fillings]])
    return Pat(f"(?:{whole})", f"(?:{any_char}){{0,{len(text) + 16 + 256 * len(fillings)}}}+")


def one_missing(text: str) -> str:
    """The same as one alternative for each character, read in one go: either this is the one, or it is there."""
    found = ""
    for i in range(len(text) - 2, -1, -1):
        found = f"(?:{re.escape(text[i + 1 :])}|{re.escape(text[i])}{found})"
    return found


def _any_of(texts: list[str]) -> Pat:
    return alt(*(literal(text) for text in dict.fromkeys(texts)))
