"""Strings, decoded piece by piece as they arrive.

    'it\\'s'   "caf\\u00e9"   '''of Python'''   `a template with ${holes} kept as they are`   <<EOF ... EOF

`take(text, pos, ended)` returns where it stopped, the text that is final up to there, and whether the string is over.
What may still become an escape or the end is not taken. `plain(text)` returns the decoded beginning of a text, and its
size, where that is inside the string whatever follows and the remainder may wait; else None. `easy(piece)` is true
only of pieces that need no decoding and no JSON escapes: most are, and they cost least.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from rightcall.parsing.values.escapes import LONGEST, Escapes, template_text

HOLE = "an f-string with braces is a program and no text; send the text itself, in plain quotes"
Taken = tuple[int, str, bool]
Match = Callable[[str, int], "re.Match[str] | None"]
PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"


FullMatch = Callable[[str], "re.Match[str] | None"]


@lru_cache(64)
def easy_without(chars: str) -> FullMatch:
    """A piece with none of these in it, and nothing that JSON escapes."""
    return re.compile(rf'[^"\\\x00-\x1f{re.escape(chars)}]*+').fullmatch


class StringText(Protocol):
    @property
    def easy(self) -> FullMatch: ...

    @property
    def odd(self) -> bool: ...

    @property
    def has_hole(self) -> bool: ...

    @property
    def lost(self) -> bool: ...  # its end cannot come any more

    def take(self, text: str, pos: int, ended: bool) -> Taken: ...

    def plain(self, text: str) -> tuple[str, int] | None: ...


@lru_cache(64)
def _quoted(close: str, short: str) -> tuple[Match, Match, Callable[[str], re.Match[str] | None]]:
    """All of it to its end; as much of it as is final; a piece with nothing in it but text and short escapes."""
    quote = re.escape(close[0])
    other = "" if len(close) == 1 else rf"|{quote}(?!{re.escape(close[1:])})"
    room = rf"(?=.{{{LONGEST}}})"
    whole = re.compile(rf"((?:[^{quote}\\]++|\\.{other})*+){re.escape(close)}", re.S)
    held = "" if len(close) == 1 else rf"|(?=.{{{len(close)}}}){quote}(?!{re.escape(close[1:])})"
    # An escape of more than two characters is final only when the longest one there is has room to be whole.
    brief = rf"|\\[{re.escape(short)}]" if short else ""
    safe = re.compile(rf"(?:[^{quote}\\]++{brief}|{room}\\(?:{PAIR}|.){held})*+", re.S)
    plain = re.compile(rf"(?:[^{quote}\\]++|\\[{re.escape(short)}])*+") if short else re.compile(rf"[^{quote}\\]*+")
    return whole.match, safe.match, plain.match


class Quoted:
    """Behind its first quote. Without `escapes` a backslash keeps the quote behind it in the string, and stays. With
    `holes` it is one of Python's `f'...'`, where braces stand for what nobody filled in."""

    __slots__ = ("_holes", "_is_odd", "_plain", "_read", "_safe", "_whole", "easy", "has_hole", "odd")
    lost = False

    def __init__(self, close: str, escapes: Escapes | None, *, holes: bool = False) -> None:
        self.easy = easy_without(close[0] + "{}" if holes else close[0])
        self._holes = holes
        self._whole, self._safe, self._plain = _quoted(close, "" if escapes is None else escapes.short)
        self._read = None if escapes is None else escapes.read
        self._is_odd = None if escapes is None else escapes.is_odd
        self.odd = False  # has it an escape that is none, and would be an error?
        self.has_hole = False

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        whole = self._whole(text, pos)
        if whole is not None:
            return whole.end(), self._decoded(whole.group(1)), True
        end = len(text) if ended else self._safe(text, pos).end()  # type: ignore[union-attr]
        return end, self._decoded(text[pos:end]), False

    def _decoded(self, text: str) -> str:
        if self._holes and ("{" in text or "}" in text):
            self.has_hole = True
        if self._read is None or self._is_odd is None or "\\" not in text:
            return text
        self.odd = self.odd or bool(self._is_odd(text))
        return self._read(text)

    def plain(self, text: str) -> tuple[str, int] | None:
        end = self._plain(text).end()  # type: ignore[union-attr]
        return (self._decoded(text[:end]), end) if end == len(text) or text[end:] == "\\" else None


_IN_TEMPLATE = re.compile(r"[^`\\$]*+").match
_IN_HOLE = re.compile(r"[^{}]*+").match
_PLAIN_IN_TEMPLATE = re.compile(r"[^`\\$]*+").fullmatch
_PLAIN_IN_HOLE = re.compile(r"[^{}]*+").fullmatch


class Template:
    """Behind its first backtick."""

    __slots__ = ("_level",)
    easy = staticmethod(easy_without("`${}"))
    odd = has_hole = lost = False

    def __init__(self) -> None:
        self._level = 0  # of the braces of a hole

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        pieces: list[str] = []
        start = pos
        while True:
            pos = (_IN_HOLE if self._level else _IN_TEMPLATE)(text, pos).end()  # type: ignore[union-attr]
            if self._level:
                if pos < len(text):
                    self._level += 1 if text[pos] == "{" else -1
                    pos += 1
                    if self._level:
                        continue
                pieces.append(text[start:pos])
                start = pos
                if pos == len(text):
                    return pos, "".join(pieces), False
                continue
            char = text[pos : pos + 1]
            follows = text[pos + 1 : pos + 2]
            if char == "`" or not char or not follows or (char == "\\" and follows == "\r" and len(text) < pos + 3):
                # Over, or what has arrived ends here, maybe inside an escape.
                pieces.append(template_text(text[start:pos]))
                return pos + (char == "`"), "".join(pieces), char == "`"
            if char == "$" and follows == "{":
                pieces.append(template_text(text[start:pos]))
                start, self._level = pos, 1
                pos += 2
            else:
                pos += 2 if char == "\\" else 1

    def plain(self, text: str) -> tuple[str, int] | None:
        plain = _PLAIN_IN_HOLE if self._level else _PLAIN_IN_TEMPLATE
        return (text, len(text)) if plain(text) else None


WORD_CHAR = r"[\w$]"
_BLANKS = r"[ \t]{0,128}+"
HEREDOC = re.compile(r"(?P<quote>['\"]?)<<(?P<mark>['\"]?)(?P<tag>[A-Za-z0-9_]{1,64})(?P=mark)[ \t]{0,16}\r?(?=\n)")


class Heredoc:
    """Behind its tag, at the line break. The line that ends it begins with the tag; what else it holds is not taken."""

    __slots__ = ("_first", "_patterns", "_quote")
    easy = staticmethod(easy_without(""))
    odd = has_hole = lost = False

    def __init__(self, tag: str, quote: str = "") -> None:
        self._patterns = _heredoc(tag)
        self._first = True
        self._quote = quote  # models put some in quotes: that quote is taken with the end

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        more, last, part = self._patterns
        found = (last if ended else more)(text, pos)
        if found is not None and self._quote and found.end() == len(text) and not ended:
            found = None
        if self._first:
            if found is not None and found.start() == pos:
                return self._end(text, found), "", True
            if not ended and part(text, pos):
                return pos, "", False
            self._first = False
            pos += 1
        if found is not None:
            end = found.start()
            return self._end(text, found), text[pos : end - (end > pos and text[end - 1] == "\r")], True
        end = len(text)
        if not ended:
            line = text.rfind("\n", pos)
            end = line if line >= 0 and part(text, line) else end
            end -= end > pos and text[end - 1] == "\r"
        return end, text[pos:end], False

    def _end(self, text: str, found: re.Match[str]) -> int:
        return found.end() + (bool(self._quote) and text.startswith(self._quote, found.end()))

    def plain(self, text: str) -> tuple[str, int] | None:
        return None if self._first or "\n" in text or "\r" in text else (text, len(text))


def closing(tag: str) -> re.Pattern[str]:
    """The line break and the tag that end a heredoc. A tag that goes on as a longer word is none."""
    return re.compile(rf"\n{_BLANKS}{tag}(?!{WORD_CHAR})")


@lru_cache(256)
def _heredoc(tag: str) -> tuple[Match, Match, Match]:
    """What ends it while more text may come, what ends it otherwise, and a line that may become its end."""
    part = ""
    for char in reversed(tag):
        part = f"(?:{char}{part})?"
    close = closing(tag)
    more = re.compile(rf"{close.pattern}(?!\Z)")
    return more.search, close.search, re.compile(rf"\n{_BLANKS}{part}\Z").match
