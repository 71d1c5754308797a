"""Code spans and quotation marks in running text.

A run of backticks opens a span, and a run as long closes it. A straight quotation mark opens where a word would begin
and closes behind one: an apostrophe in a word and the inches of a `5" pipe` do neither. No mark opens before a blank
that text follows (`the " key`), for what a word left out (`'em`, `'til`), or for a value that is no prose and is not
closed (`path="/a`). Inside quotation marks, brackets and attributes may hold strings of their own. Whatever is open
ends with its paragraph.
"""

from __future__ import annotations

import re

from rightcall.parsing.shown.raw import OPENS, Closes, closing

_ESCAPE = r"\\[^\n]"
_PAIRS = {"\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u2018": "\u2019", "\u201a": "\u2018\u2019"}
_PAIRS |= {"\u00ab": "\u00bb", "\u2039": "\u203a", "\u300c": "\u300d", "\u300e": "\u300f"}
_PAIRS |= {"\u00bb": "\u00ab", "\u203a": "\u2039", "\u201d": "\u201d"}  # as German, Danish and Swedish books have them
_ODD = frozenset("\u00bb\u203a\u201d\u2019")  # what opens only where a word would begin, or never
_QUOTES = "\"'" + "".join(dict.fromkeys([*_PAIRS, *"".join(_PAIRS.values())]))
_STRAIGHT = frozenset("\"'")
_BRACKETS = {"{": "}", "[": "]", "(": ")"}
_CLOSERS = frozenset(_BRACKETS.values())
_OUTSIDE = re.compile(rf"{_ESCAPE}|`++|{OPENS}|[{_QUOTES}]", re.I).search
_INSIDE = re.compile(rf"{_ESCAPE}|`++|{OPENS}|[{_QUOTES}\[\](){{}}]", re.I).search
_DOUBLE = re.compile(r'(?<!\\)"').findall
_NEXT_MEMBER = re.compile(r'(?<!\\)"[ \t\r\n]*+,[ \t\r\n]*+"\w++"[ \t\r\n]*+:').search
_TICKS = re.compile("`++").search
_BLANK = frozenset(" \t\r\n\f\v\u00a0")
_BEFORE_OPENING = _BLANK | frozenset("([{<=,:;>*_~/|&+-\u2013\u2014" + "".join(_PAIRS))
_ENDS_PHRASE = _BLANK | frozenset(",.;:!?)]}")
_BEFORE_STRING = _BLANK | frozenset("{[(:,=")
_BEFORE_CLIPPED = _BLANK | frozenset('(*_-"\u201c\u2013\u2014')
# What is left of a word behind an apostrophe, and endings that are spoken of. The last ones are words of their own too:
# there a capital letter begins a quotation.
_CLIPPED = re.compile(
    r"(?:(?i:em|till?|cause|cuz|coz|tisn?|twas|twasn|twere|twill|twould|twixt|tween|nother|nuff|neath|cept|fraid|gainst"
    r"|kay|scuse|sup|struth|ello|[nstdmk]|re|ve|ll|ne|nen|nem|ner)|round|bout|fore|hood|spose|specially|burbs)(?![\w'])"
).match
# A header that goes on where a prompt ended begins with a blank.
_TEXT_BEHIND = re.compile(r"[ \t\f\v\u00a0]++(?!to=)\S").match
_FIRST_WORD = re.compile(r"([^\s\"'<>\[{(]{1,200}+)(?=\s)").match
_ENDS_SENTENCE = ".,;:!?)"
_NEVER_FIRST = frozenset(":,;)]}%=>|&^+")  # in a quotation: what is left of a broken call begins so


class Marks:
    """What is open in a paragraph. `walk` follows a piece of a line of it."""

    __slots__ = ("last", "open", "span")

    def __init__(self) -> None:
        self.span = 0  # how many backticks opened the code span
        self.open: list[str] = []  # quotation marks, and brackets inside them
        self.last = "\n"  # the character before the next piece

    def __bool__(self) -> bool:
        return bool(self.span or self.open)

    def end(self) -> None:
        """The paragraph is over."""
        self.span = 0
        if self.open:
            self.open = []

    def pass_over(self, text: str) -> None:
        """What stood in a shown opener was not followed. Where it goes on as JSON does behind a string, what was taken
        for a quotation was that string."""
        if '"' in self.open and len(_DOUBLE(text)) % 2 and _NEXT_MEMBER(text):
            del self.open[self.open.index('"') :]

    def walk(self, text: str, at: int, stop: int) -> tuple[int, Closes | None]:
        """Follows the text up to `stop`, or to a tag inside which nothing counts but what closes it."""
        while at < stop:
            found = (_TICKS if self.span else _INSIDE if self.open else _OUTSIDE)(text, at, stop)
            if found is None:
                break
            start, at = found.span()
            char = text[start]
            if char == "`":
                self.span = at - start if not self.span else 0 if self.span == at - start else self.span
            elif char in _QUOTES:
                before = text[start - 1] if start else self.last
                if not _is_apostrophe(char, before, text, at) and (self._is_open(char) or _opens(before, text, at)):
                    self._quote(char, before, text[at : at + 1] or "<")
            elif char in _BRACKETS and at - start == 1:
                self.open.append(char)
            elif char in _CLOSERS:
                self._close_bracket(char)
            elif char != "\\":
                self.last = ">"
                return at, closing(found.group())
        self.last = text[stop - 1]
        return stop, None

    def _is_open(self, char: str) -> bool:
        """Is it any other mark than a straight one that would open a quotation?"""
        return char not in _STRAIGHT or char in self.open[-64:]

    def _quote(self, char: str, before: str, behind: str) -> None:
        if char in _STRAIGHT:
            self._straight(char, before, behind)
        elif char == "\u2019" and before.isalnum() and behind.isalnum():
            return
        elif (place := self._opener_of(char)) >= 0:
            del self.open[place:]
        elif char in _PAIRS and (char not in _ODD or before in _BEFORE_OPENING):
            self.open.append(char)

    def _opener_of(self, closes: str) -> int:
        """Where the innermost mark is that this one closes; -1 for none."""
        opened = self.open
        for i in range(len(opened) - 1, max(-1, len(opened) - 65), -1):
            if closes in _PAIRS.get(opened[i], ""):
                return i
        return -1

    def _straight(self, char: str, before: str, behind: str) -> None:
        opened = self.open
        if char == "'" and before.isalnum() and behind.isalnum():
            return  # an apostrophe
        if char == "'" and behind.isdigit() and before in _BLANK and char not in opened[-64:]:
            return  # the '90s
        if char not in opened[-64:]:
            if (before in _BEFORE_OPENING or before in _STRAIGHT) and behind not in _NEVER_FIRST:
                opened.append(char)
            return
        if self._is_inner(char, before, behind):
            opened.append(char)
            return
        while opened.pop() != char:
            pass

    def _is_inner(self, char: str, before: str, behind: str) -> bool:
        """Does it open a string inside the quotation, and not close it?"""
        top = self.open[-1]
        if top in _BRACKETS:
            return before in _BEFORE_STRING and not (before == top and behind in _ENDS_PHRASE)
        if behind in _ENDS_PHRASE or behind in _QUOTES:
            return False
        return before in _BLANK or before == "="

    def _close_bracket(self, char: str) -> None:
        opened = self.open
        for i in range(len(opened) - 1, max(-1, len(opened) - 65), -1):
            if opened[i] not in _BRACKETS:
                return
            if _BRACKETS[opened[i]] == char:
                del opened[i:]
                return


def _is_apostrophe(char: str, before: str, text: str, at: int) -> bool:
    """Does it stand for what a word left out at its beginning?"""
    return char in "'\u2018" and before in _BEFORE_CLIPPED and _CLIPPED(text, at) is not None


def _opens(before: str, text: str, at: int) -> bool:
    """May what stands behind a straight mark be quoted? Who shows a call in quotation marks writes prose before it, or
    nothing."""
    if before != "=":
        return _TEXT_BEHIND(text, at) is None
    word = _FIRST_WORD(text, at)
    return word is None or not _is_value(word[0], _TEXT_BEHIND(text, word.end()) is not None)


def _is_value(word: str, has_text_behind: bool) -> bool:
    """Is it all of the value of an attribute or a variable? The first word of prose is not."""
    said = word.rstrip(_ENDS_SENTENCE).replace("-", "")
    if said.isalpha():
        is_word = len(said) > 1 or said in "aAIoO"
        return not is_word and (has_text_behind or said != word)
    return word[-1] in _ENDS_SENTENCE or (has_text_behind and not word[0].isdigit())
