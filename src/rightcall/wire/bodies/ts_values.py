"""The values of TypeScript calls, read from a text that is all there:  { path: 'a', n: -1.5, ok: true, list: [1, 2,], }

More than JSON: bare keys, single quotes, templates, heredocs, comments, trailing commas, `undefined`. A value comes as
JSON text and as what that holds. Numbers that are JSON keep their spelling.
"""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.strict_json import is_deep, scan_once
from rightcall.wire.bodies.ts_strings import HEREDOC, Heredoc, Quoted, Template, TsString

Value = tuple[str, Any]  # as JSON, and what that holds

SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+").match
_OPEN_COMMENT = re.compile(r"//[^\n]*+\Z|/\Z|/\*(?:[^*]++|\*(?!/))*+\Z").match
WORD = re.compile(r"[\w$][\w$.\-]{0,255}+").match
SCALAR = re.compile(r"[\w$.+\-]*+").match
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?").fullmatch
_OTHER_NUMBER = re.compile(
    r"([+-]?)(?:(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)|([0-9][0-9_]*)|([0-9_]*+\.?+[0-9_]*+(?:[eE][+-]?[0-9]+)?))n?"
).fullmatch
_WORDS = {
    "true": ("true", True),
    "false": ("false", False),
    "null": ("null", None),
    "undefined": ("null", None),
    "True": ("true", True),
    "False": ("false", False),
    "None": ("null", None),
}
_NOT_FINITE = frozenset(("NaN", "Infinity", "-Infinity", "+Infinity"))


class Unfinished(Exception):
    """The text ends before the value does."""


class BadValue(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class TsValues:
    """Reads values from `pos` on. `ended`: no more text will come, so that the end of the text ends a word."""

    __slots__ = ("depth", "ended", "pos", "text")

    def __init__(self, text: str, pos: int, depth: int, *, ended: bool) -> None:
        self.text, self.pos, self.depth, self.ended = text, pos, depth, ended

    def char(self) -> str:
        """The next character that is neither white space nor a comment's."""
        self.pos = pos = SPACE(self.text, self.pos).end()  # type: ignore[union-attr]
        if pos == len(self.text):
            raise Unfinished
        char = self.text[pos]
        if char == "/" and _OPEN_COMMENT(self.text, pos):
            raise Unfinished
        return char

    def value(self, level: int) -> Value:
        """A value at that level of nesting."""
        char = self.char()
        if char in "{[":
            if level > self.depth:
                raise BadValue("too_deep", f"the arguments are nested deeper than {self.depth} levels")
            self.pos += 1
            return self._object(level) if char == "{" else self._array(level)
        if char in "'\"`" or char == "<":
            text = self._string(char)
            return quoted(text), text
        return self._scalar(char)

    def _object(self, level: int) -> Value:
        pieces: list[str] = []
        values: dict[str, Any] = {}
        while (char := self.char()) != "}":
            key = self._key(char)
            if self.char() != ":":
                raise BadValue("missing_colon", f"the key {key[:60]!r} needs ':' and a value")
            self.pos += 1
            json, values[key] = self.value(level + 1)
            pieces.append(f"{quoted(key)}: {json}")
            self._comma("}", "unterminated_object")
        self.pos += 1
        return "{" + ", ".join(pieces) + "}", values

    def _array(self, level: int) -> Value:
        made: list[Value] = []
        while self.char() != "]":
            made.append(self.value(level + 1))
            self._comma("]", "unterminated_list")
        self.pos += 1
        return "[" + ", ".join([json for json, _ in made]) + "]", [value for _, value in made]

    def _comma(self, closer: str, code: str) -> None:
        char = self.char()
        if char == ",":
            self.pos += 1
        elif char != closer:
            raise BadValue(code, f"a comma or {closer!r} must follow a value, not {char!r}")

    def _key(self, char: str) -> str:
        if char in "'\"`":
            return self._string(char)
        found = WORD(self.text, self.pos)
        if found is None:
            raise BadValue("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        self.pos = found.end()
        return found.group()

    def _string(self, char: str) -> str:
        start = HEREDOC.match(self.text, self.pos)
        if start is None and char == "<":
            if not self.ended and len(self.text) - self.pos < 100:
                raise Unfinished
            raise BadValue(
                "invalid_heredoc", "a heredoc is <<TAG, a line break, the text, and TAG at a line's beginning"
            )
        reader = string_of(char, start)
        self.pos = start.end() if start is not None else self.pos + 1
        self.pos, text, closed = reader.take(self.text, self.pos, self.ended)
        if not closed:
            raise Unfinished
        if start is not None and start["quote"]:
            if self.pos == len(self.text) and not self.ended:
                raise Unfinished
            self.pos += self.text.startswith(start["quote"], self.pos)
        return text

    def _scalar(self, char: str) -> Value:
        found = SCALAR(self.text, self.pos)
        assert found is not None
        if found.end() == len(self.text) and not self.ended:
            raise Unfinished
        self.pos = found.end()
        return scalar(found.group(), char)


_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
    ([A-Za-z_$][\w$]{0,255}+)[ \t\r\n]*+:            # a bare key
    |("[^"\\\x00-\x1f]*+"[ \t\r\n]*+:)                # a key in quotes
    |((?:"[^"\\\x00-\x1f]*+"|-?(?:0|[1-9][0-9]{0,17}+)(?:\.[0-9]{1,17}+)?|true|false|null)(?=[ \t\r\n]*+[,\]}]))
    |([{\[])|([}\]])|(,))""",
    re.X,
).match


def plain_object(text: str, pos: int, depth: int) -> tuple[str, dict[str, Any], int] | None:
    """An object that is JSON but for its bare keys: its JSON, what that holds, its end. C reads it once the keys are in
    quotes. None where it is anything else."""
    out: list[str] = []
    level = 0
    while (found := _TOKEN(text, pos)) is not None:
        pos = found.end()
        kind = found.lastindex
        if kind == 1:
            out.append(f'"{found[1]}": ')
        elif kind == 2:
            out.append(found[2][:-1].rstrip() + ": ")
        elif kind == 6:
            out.append(", ")
        else:
            out.append(found[kind or 0])
            level += (kind == 4) - (kind == 5)
            if not level:
                break
    json = "".join(out)
    try:
        value, end = scan_once(json, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    whole = end == len(json) and type(value) is dict and not is_deep(json, 0, end, depth)
    return (json, value, pos) if whole else None


def string_of(char: str, heredoc: re.Match[str] | None) -> TsString:
    """What reads the string that begins so."""
    return Heredoc(heredoc["tag"]) if heredoc is not None else Template() if char == "`" else Quoted(char)


def scalar(text: str, char: str) -> Value:
    """A number or a word. `char` is what stands there where it is neither."""
    if text in _WORDS:
        return _WORDS[text]
    if not text:
        raise BadValue("invalid_value", f"no value can be read at {char!r}")
    try:
        json, value = _number(text)
    except (ValueError, OverflowError):
        json, value = text, math.inf
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue("not_finite", f"{text[:40]!r} is no number that can be sent; send a finite one")
    return json, value


def _number(text: str) -> tuple[str, int | float]:
    """A number of JSON's, or one that only TypeScript knows: 0x1f, .5, 1_000, +1."""
    number = _NUMBER(text)
    if number is not None:
        return text, float(text) if number.group(1) or number.group(2) else int(text)
    found = _OTHER_NUMBER(text)
    if text in _NOT_FINITE:
        return text, math.inf
    if found is None or not any(char.isdigit() for char in text):
        raise BadValue("invalid_value", f"{text[:60]!r} is no value; a string needs quotes")
    sign, based, whole, fraction = found.groups()
    digits = (based or whole or fraction).replace("_", "")
    value: int | float = int(digits, 0) if based else int(digits) if whole else float(digits)
    value = -value if sign == "-" else value
    return repr(value), value
