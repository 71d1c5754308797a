"""The strings of TypeScript calls, decoded piece by piece as they arrive.

    'it\\'s'   "caf\\u00e9"   `a template with ${holes} kept as they are`   <<EOF ... EOF

`take(text, pos, ended)` gives where it stopped, the text that is final up to there, and whether the string is over.
What may still become an escape or the end is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

Taken = tuple[int, str, bool]

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))",
    re.S,
)
_CHARS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v", "\n": "", "\r": "", "\r\n": ""}
_TEMPLATE_ESCAPE = re.compile(r"\\(\r\n|.)", re.S)
_TEMPLATE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\r": "", "\r\n": "", "`": "`", "$": "$", "\\": "\\"}
_WHOLE = {quote: re.compile(rf"((?:[^{quote}\\]++|\\.)*+){quote}", re.S).match for quote in "'\""}
# An escape is final only when the longest one there is has room to be whole.
_SAFE = {quote: re.compile(rf"(?:[^{quote}\\]++|(?=.{{12}})\\(?:{_PAIR}|.))*+", re.S).match for quote in "'\""}
_IN_TEMPLATE = re.compile(r"[^`\\$]*+").match
_IN_HOLE = re.compile(r"[^{}]*+").match
WORD_CHAR = r"[\w$]"
_BLANKS = r"[ \t]{0,128}+"
HEREDOC = re.compile(r"(?P<quote>['\"]?)<<(?P<mark>['\"]?)(?P<tag>[A-Za-z0-9_]{1,64})(?P=mark)[ \t]{0,16}\r?(?=\n)")


class TsString(Protocol):
    def take(self, text: str, pos: int, ended: bool) -> Taken: ...


def unescape(text: str) -> str:
    """What stands between two quotes, its escapes read."""
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    braced, high, low, four, two, char = found.groups()
    if char is not None:
        return _CHARS.get(char, char)
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    code = int(braced or four or two, 16)
    return chr(code) if code <= 0x10FFFF else found.group()[1:]


def _template_text(text: str) -> str:
    """Of a template's text; an escape that means nothing in one keeps its backslash."""
    if "\\" not in text:
        return text
    return _TEMPLATE_ESCAPE.sub(lambda found: _TEMPLATE_CHARS.get(found.group(1), found.group()), text)


class Quoted:
    """Behind its first quote."""

    __slots__ = ("_safe", "_whole")

    def __init__(self, quote: str) -> None:
        self._whole, self._safe = _WHOLE[quote], _SAFE[quote]

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        whole = self._whole(text, pos)
        if whole is not None:
            return whole.end(), unescape(whole.group(1)), True
        end = self._safe(text, pos).end()  # type: ignore[union-attr]
        return end, unescape(text[pos:end]), False


class Template:
    """Behind its first backtick."""

    __slots__ = ("_level",)

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
                pieces.append(_template_text(text[start:pos]))
                return pos + (char == "`"), "".join(pieces), char == "`"
            if char == "$" and follows == "{":
                pieces.append(_template_text(text[start:pos]))
                start, self._level = pos, 1
                pos += 2
            else:
                pos += 2 if char == "\\" else 1


class Heredoc:
    """Behind its tag, at the line break. The line that ends it begins with the tag; what else it holds is not taken."""

    __slots__ = ("_first", "_patterns")

    def __init__(self, tag: str) -> None:
        self._patterns = _patterns(tag)
        self._first = True

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        more, last, part = self._patterns
        found = (last if ended else more)(text, pos)
        if self._first:
            if found is not None and found.start() == pos:
                return found.end(), "", True
            if not ended and part(text, pos):
                return pos, "", False
            self._first = False
            pos += 1
        if found is not None:
            end = found.start()
            return found.end(), text[pos : end - (end > pos and text[end - 1] == "\r")], True
        end = len(text)
        if not ended:
            line = text.rfind("\n", pos)
            end = line if line >= 0 and part(text, line) else end
            end -= end > pos and text[end - 1] == "\r"
        return end, text[pos:end], False


Search = Callable[[str, int], re.Match[str] | None]


def closing(tag: str) -> re.Pattern[str]:
    """The line break and the tag that end a heredoc. A tag that goes on as a longer word is none."""
    return re.compile(rf"\n{_BLANKS}{tag}(?!{WORD_CHAR})")


@lru_cache(256)
def _patterns(tag: str) -> tuple[Search, Search, Search]:
    """What ends it while more text may come, what ends it otherwise, and a line that may become its end."""
    part = ""
    for char in reversed(tag):
        part = f"(?:{char}{part})?"
    close = closing(tag)
    more = re.compile(rf"{close.pattern}(?!\Z)")
    return more.search, close.search, re.compile(rf"\n{_BLANKS}{part}\Z").match
