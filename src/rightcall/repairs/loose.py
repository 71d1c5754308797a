"""JSON as models write it when they do not write JSON: read in one pass, every liberty taken on record.

    read_loose("{'city': 'Oslo', days: 3,} // done")  ->  {"city": "Oslo", "days": 3} and four rules

Nothing is evaluated, each character is looked at once, and a text that ends inside a value is refused unless the caller
knows that nothing was cut off.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from rightcall.parsing.values.notation import JSON_WORDS, LOOSE, STRICT_NUMBER
from rightcall.parsing.values.value_reader import programmers_number
from rightcall.repairs.liberties import AGAIN, Liberty, Loose, Spelled, Unreadable
from rightcall.repairs.loose_strings import CLOSING, LooseStrings
from rightcall.strict_json import MAX_DEPTH, is_same

_BLANK = re.compile(r"[ \t\r\n]*+").match
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*+(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.])").match
_ZEROS = re.compile(r"[+-]?0[0-9]").match
_OUTSIDE = re.compile(r"\][ \t\r\n]*+(?:\}[ \t\r\n]*+)?\Z").match
_IN_WORD = re.compile(r"[\w.+\-]").fullmatch


def read_loose(text: str, pos: int = 0, *, depth: int = MAX_DEPTH, closed: bool = False) -> Loose:
    """One value from `pos` on. `closed`: the end of the text is known to be the end of what was sent. A bracket of the
    wrong kind means that those before it are missing."""
    reader = _LooseReader(text, pos, depth, closed)
    try:
        value = reader.value(0)
    except RecursionError:
        raise Unreadable(f"nested deeper than {depth} levels") from None
    if len(reader.words) > 1 and "python_literal" in reader.found:
        reader.doubt("python_literal")
    if reader.single and reader.controls:
        reader.doubt("bad_escape")
    found = tuple(reader.found.values())
    spelled, at_end = tuple(reader.spelled), tuple(reader.at_end)
    return Loose(value, reader.pos, found, spelled, reader.missing, at_end, reader.mixed)


def skip_comments(text: str, pos: int) -> tuple[int, tuple[Liberty, ...]]:
    """Past blanks and comments, and what was skipped."""
    reader = _LooseReader(text, pos, 0, True)
    reader.peek()
    return reader.pos, tuple(reader.found.values())


class _LooseReader(LooseStrings):
    def __init__(self, text: str, pos: int, depth: int, closed: bool) -> None:
        super().__init__(text, pos)
        self.depth, self.closed = depth, closed
        self.steps: list[str | int] = []  # to the value being read
        self.spelled: list[Spelled] = []
        self.wanted: list[str] = []  # the brackets that are to close what is open
        self.words: set[bool] = set()  # were there words of JSON's, and of Python's?
        self.at_end: list[Any] = []
        self.missing = self.mixed = 0
        self.styles: list[str | None] = []  # how the keys of the objects around are written

    def doubt(self, rule: str) -> None:
        self.found[rule] = msgspec.structs.replace(self.found[rule], guess=True)

    def peek(self) -> str:
        while True:
            self.pos = _BLANK(self.text, self.pos).end()  # type: ignore[union-attr]
            comment = LOOSE.comments(self.text, self.pos)
            if comment is None:
                return self.text[self.pos : self.pos + 1]
            self._took("comment", comment.group(), "")
            self.pos = comment.end()

    def value(self, level: int) -> Any:
        if level > self.depth:
            raise Unreadable(f"nested deeper than {self.depth} levels")
        char = self.peek()
        if char == "{":
            return self._object(level)
        if char == "[":
            return self._array(level)
        if self.text.startswith("```", self.pos):
            raise Unreadable("a code fence is inside the JSON")
        if char in CLOSING:
            return self._string(char)
        if not char:
            raise Unreadable("the text ends where a value should be", cut=True)
        return self._scalar()

    def _scalar(self) -> Any:
        number = _NUMBER(self.text, self.pos)
        # Zeros in front are no number's: a code or a telephone number without its quotes.
        if number is not None and not _ZEROS(number.group()):
            self.pos = number.end()
            return self._number(number.group())
        word = LOOSE.bare_key(self.text, self.pos)
        if word is not None and word.group() in LOOSE.words:
            self.pos = word.end()
            value = LOOSE.words[word.group()]
            self.words.add(word.group() in JSON_WORDS)
            if word.group() not in JSON_WORDS:
                self._took("python_literal", word.group(), {True: "true", False: "false", None: "null"}[value])
                if value is not None:
                    self.spelled.append((tuple(self.steps), word.group()))
            return value
        bare = LOOSE.bare_value(self.text, self.pos)
        if bare is None:
            raise Unreadable(f"no value can be read at {self.text[self.pos :][:30]!r}")
        self.pos = bare.end()
        text = bare.group().rstrip()
        self._took("unquoted_value", text, f'"{text}"')
        return text

    def _number(self, text: str) -> int | float:
        if STRICT_NUMBER(text) is None:
            raise Unreadable(f"{text[:30]} is no JSON number")
        value = programmers_number(text)
        if value in (float("inf"), float("-inf")):
            code = "" if text.lstrip("-").isdigit() else "not_finite"
            raise Unreadable(f"{text[:30]} is not a number that JSON can carry", code=code)
        if text != repr(value):
            self.spelled.append((tuple(self.steps), text))
        return value

    def _array(self, level: int) -> list[Any]:
        self.pos += 1
        self.wanted.append("]")
        items: list[Any] = []
        comma = True
        while True:
            char = self.peek()
            if char == ",":
                self._comma(comma, bool(items))
                comma = True
            elif self._closes(char, items, comma):
                return items
            else:
                if not comma:
                    self._took("missing_comma", char, "," + char)
                self.steps.append(len(items))
                items.append(self.value(level + 1))
                self.steps.pop()
                comma = False

    def _object(self, level: int) -> dict[str, Any]:
        self.pos += 1
        self.wanted.append("}")
        self.styles.append(None)
        found: dict[str, Any] = {}
        key = ""
        comma = True
        while True:
            char = self.peek()
            if char == ",":
                self._comma(comma, bool(found))
                comma = True
            elif self._closes(char, found, comma):
                self.styles.pop()
                return found
            else:
                if not comma:
                    self._took("missing_comma", char, "," + char)
                self._styled(char, level)
                key = self._key(char)
                self.steps.append(key)
                value = self.value(level + 1)
                self.steps.pop()
                if key in found:
                    self._again(key, found[key], value, level)
                found[key] = value
                comma = False

    def _again(self, key: str, before: Any, after: Any, level: int) -> None:
        """A key that the object has already."""
        if not is_same(before, after):
            shown = [json.dumps(value, ensure_ascii=False)[:80] for value in (before, after)]
            reason = f"{key[:80]!r} is given twice, as {shown[0]} and as {shown[1]}; send it once"
            raise Unreadable(reason, code="duplicate_key" if level else "duplicate_argument")
        self._took(AGAIN, key, key)

    def _comma(self, comma: bool, begun: bool) -> None:
        """A comma. Before the first member, or as a second one in a list, it may be what a lost value left behind."""
        self.pos += 1
        if comma:
            self._took("trailing_comma", ",,", ",", guess=not begun or self.wanted[-1] == "]")

    def _closes(self, char: str, value: Any, comma: bool) -> bool:
        """Is this where what is being read ends: at its bracket, or where that should have been?"""
        if char and char not in "}])":
            return False
        self._close(char, value, comma)
        if comma and value and char:
            self._took("trailing_comma", "," + char, char)
        self.wanted.pop()
        return True

    def _close(self, char: str, value: Any, comma: bool) -> None:
        wanted = self.wanted[-1]
        if not char:
            self._at_end(value, comma)
        elif char == wanted:
            self.pos += 1
        elif char in self.wanted:
            self._missing(char, wanted, value)
        elif self.closed and _OUTSIDE(self.text, self.pos):
            self._at_end(value, comma)  # it closes a list around what is read here
        else:
            raise Unreadable(f"{char!r} closes nothing that is open")

    def _at_end(self, value: Any, comma: bool) -> None:
        if not self.closed or (comma and value):
            raise Unreadable("the text ends inside a value", cut=True)
        if not self.at_end and _IN_WORD(self.text[max(0, self.pos - 64) : self.pos].rstrip()[-1:]):
            self.at_end.append(None)
        self.at_end.append(value)
        self._missing(self.text[self.pos : self.pos + 1], self.wanted[-1], value)

    def _missing(self, char: str, wanted: str, value: Any) -> None:
        """A bracket that is not there. Of `[{]` and `[{}` nobody knows whether the `{` is one too many."""
        self.missing += 1
        is_empty = not value or (isinstance(value, list) and value[-1] in ({}, []))
        self._took("missing_closer", char, wanted + char, guess=is_empty)

    def _styled(self, char: str, level: int) -> None:
        """Notes how an object writes its first key. A text that lost its quotes may be what looks like an object."""
        if self.styles[-1] is None:
            self.styles[-1] = char if char in CLOSING else ""
            around = next((style for style in reversed(self.styles[:-1]) if style is not None), self.styles[-1])
            if around != self.styles[-1]:
                self.mixed = max(self.mixed, level)

    def _key(self, char: str) -> str:
        if char in CLOSING:
            key = self._string(char)
        else:
            bare = LOOSE.bare_key(self.text, self.pos)
            if bare is None:
                raise Unreadable(f"no key can be read at {self.text[self.pos :][:30]!r}")
            key = bare.group()
            self.pos = bare.end()
            self._took("unquoted_key", key, f'"{key}"')
        separator = self.peek()
        if separator != ":":
            raise Unreadable(f"the key {key[:40]!r} has no ':'", cut=not separator)
        self.pos += 1
        return key
