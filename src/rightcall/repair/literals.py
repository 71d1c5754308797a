"""Values as Python or JavaScript programmers write them:  'it\\'s'  True  None  {city: 'B', 'n': [1, 2]}

Read by a parser of our own: nothing is evaluated. Bare words are strings, empty list items are skipped.
"""

from __future__ import annotations

import re
from typing import Any

_BLANK = re.compile(r"\s*+").match
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?(?![\w.])").match
_WORD = re.compile(r"[^\s,:=\[\](){}'\"]++(?:[ \t]+[^\s,:=\[\](){}'\"]++)*+").match
_STRING_PREFIX = re.compile(r"[bBrRuUfF]{0,2}(?=['\"])").match
_BODIES = {
    "'": re.compile(r"(?:[^'\\]++|\\.)*+'", re.S).match,
    '"': re.compile(r'(?:[^"\\]++|\\.)*+"', re.S).match,
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+'''", re.S).match,
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"""', re.S).match,
}
_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"\\({_PAIR}|\n|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|[0-7]{{1,3}}|.)", re.S)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_SIMPLE |= {"\\": "\\", "'": "'", '"': '"', "/": "/"}
_WORDS: dict[str, Any] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_NOT_FINITE = frozenset(("nan", "inf", "infinity", "+inf", "-inf", "+nan", "-nan", "-infinity", "+infinity"))


class BadLiteral(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def unescape(text: str) -> str:
    """The text of a Python string literal's inside. An escape Python does not know stays as it is."""
    return _ESCAPE.sub(_unescape_one, text) if "\\" in text else text


def _unescape_one(found: re.Match[str]) -> str:
    code = found.group(1)
    if code in _SIMPLE:
        return _SIMPLE[code]
    if len(code) == 11:
        return chr(0x10000 + ((int(code[1:5], 16) & 0x3FF) << 10) + (int(code[7:], 16) & 0x3FF))
    if len(code) > 1 and code[0] in "xuU":
        point = int(code[1:], 16)
        return chr(point) if point <= 0x10FFFF else found.group()
    return chr(int(code, 8)) if code[0] in "01234567" else found.group()


def literal_value(text: str, depth: int, *, words: bool = False) -> Any:
    """The value of a whole literal; with `words` a bare word is a string. Raises `BadLiteral`."""
    reader = Literals(text, depth, words=words)
    try:
        value = reader.value(0)
    except RecursionError:
        raise BadLiteral("too_deep", f"the arguments are nested deeper than {depth} levels") from None
    if _BLANK(text, reader.pos).end() != len(text):  # type: ignore[union-attr]
        raise BadLiteral("trailing_content", f"unexpected text after the value: {text[reader.pos :][:40]!r}")
    return value


class Literals:
    """Reads values from a text that is all there. `pos` is where the next begins."""

    __slots__ = ("depth", "pos", "text", "words")

    def __init__(self, text: str, depth: int, pos: int = 0, *, words: bool = True) -> None:
        self.text, self.depth, self.pos, self.words = text, depth, pos, words

    def _peek(self) -> str:
        self.pos = _BLANK(self.text, self.pos).end()  # type: ignore[union-attr]
        return self.text[self.pos : self.pos + 1]

    def value(self, level: int) -> Any:
        if level > self.depth:
            raise BadLiteral("too_deep", f"the arguments are nested deeper than {self.depth} levels")
        char = self._peek()
        if char == "[" or char == "(":
            return self._list("]" if char == "[" else ")", level)
        if char == "{":
            return self._object(level)
        prefix = _STRING_PREFIX(self.text, self.pos)
        if prefix is not None:
            return self._string(prefix)
        return self._scalar()

    def _string(self, prefix: re.Match[str]) -> str:
        start = prefix.end()
        quote = self.text[start]
        if self.text.startswith(quote * 3, start):
            quote *= 3
        found = _BODIES[quote](self.text, start + len(quote))
        if found is None:
            raise BadLiteral("unterminated_string", f"a string that starts with {quote} is not closed")
        self.pos = found.end()
        inside = self.text[start + len(quote) : self.pos - len(quote)]
        return inside if "r" in prefix.group().lower() else unescape(inside)

    def _scalar(self) -> Any:
        found = _NUMBER(self.text, self.pos)
        if found is not None:
            self.pos = found.end()
            return _number(found.group())
        word = _WORD(self.text, self.pos)
        if word is None:
            raise BadLiteral("invalid_value", f"no value can be read at {self.text[self.pos :][:40]!r}")
        self.pos = word.end()
        value = bare_word(word.group())
        if isinstance(value, str) and not self.words:
            raise BadLiteral("invalid_value", f"{value[:40]!r} is not a value; strings need quotes")
        return value

    def _list(self, close: str, level: int) -> list[Any]:
        self.pos += 1
        items: list[Any] = []
        while True:
            char = self._peek()
            if char == close:
                self.pos += 1
                return items
            if char == ",":
                self.pos += 1
            elif not char or char in ")]}":
                raise BadLiteral("unterminated_list", f"a list is not closed with {close}")
            else:
                items.append(self.value(level + 1))
                if self._peek() not in (",", close, ""):
                    raise BadLiteral("unterminated_list", "the items of a list must be separated by commas")

    def _object(self, level: int) -> dict[str, Any]:
        self.pos += 1
        found: dict[str, Any] = {}
        while True:
            char = self._peek()
            if char == "}":
                self.pos += 1
                return found
            if char == ",":
                self.pos += 1
                continue
            if not char or char in ")]":
                raise BadLiteral("unterminated_object", "an object is not closed with }")
            key = self.value(level + 1)
            if not isinstance(key, str):
                raise BadLiteral("key_not_string", f"an object key must be a string, not {key!r:.40}")
            if self._peek() != ":":
                raise BadLiteral("missing_colon", f"the object entry {key!r:.40} has no ':'")
            self.pos += 1
            if key in found:
                raise BadLiteral("duplicate_key", f"the object key {key!r:.40} is given twice")
            found[key] = "" if self._peek() in (",", "}") else self.value(level + 1)
            if self._peek() not in (",", "}", ""):
                raise BadLiteral("unterminated_object", "the entries of an object must be separated by commas")


def bare_word(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if word.lower() in _NOT_FINITE:
        raise BadLiteral("not_finite", f"{word} is not a number that JSON can carry")
    return word


def _number(text: str) -> int | float:
    digits = text.replace("_", "")
    try:
        return int(digits)
    except ValueError:
        pass
    try:
        number = float(digits)
    except ValueError:
        raise BadLiteral("invalid_value", f"{text[:40]!r} is not a number") from None
    if number in (float("inf"), float("-inf")):
        raise BadLiteral("not_finite", f"{text[:40]} is not a number that JSON can carry")
    return number
