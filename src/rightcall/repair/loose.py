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

from rightcall.repair.fences import begins_fence
from rightcall.strict_json import MAX_DEPTH, is_same
from rightcall.values.escapes import PYTHON
from rightcall.values.notation import JSON_WORDS, LOOSE

_BLANK = re.compile(r"[ \t\r\n]*+").match
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*+(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.])").match
_ZEROS = re.compile(r"[+-]?0[0-9]").match
_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*+').match,
    "'": re.compile(r"[^'\\\x00-\x1f]*+").match,
    "\u201d": re.compile(r"[^\u201c\u201d\\\x00-\x1f]*+").match,
    "\u2019": re.compile(r"[^\u2018\u2019\\\x00-\x1f]*+").match,
    "`": re.compile(r"[^`\\\x00-\x1f]*+").match,
}
_CLOSING = {quote.open: quote.close for quote in LOOSE.quotes}
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})').match
# `C:\dir`, `\\host\share`: no backslash is doubled but the first of a host's. A regular expression is no path.
_PATH = re.compile(r"(?:[A-Za-z]:|\\\\[\w.\-]{2,64}+)(?:\\(?!\\)[^\\]*+)++").fullmatch
_SIGNS = re.compile(r"[+*?()\[\]{}|^]").search
# Beside an escape that is none, these are what a regular expression has, and no control characters.
_NEVER_MEANT = frozenset(("\\b", "\\f"))

MOST_OBJECTS = 9
AGAIN = "again"  # no rule, and no receipt: a key that stands twice with one value leaves a note
SHOWN = 200  # characters of a receipt; `Call.raw` has the whole


class Liberty(msgspec.Struct, frozen=True):
    """One thing that strict JSON does not allow: the rule that reads it, and the first place where it was met."""

    rule: str
    before: str
    after: str
    guess: bool = False  # another reading was as good


Spelled = tuple[tuple[str | int, ...], str]


class Unreadable(Exception):
    """No value can be made of the text; `cut` says that it ended too early, `final` that no other reading may try,
    `code` which problem that is, where it is a certain one."""

    def __init__(self, reason: str, *, cut: bool = False, final: bool = False, code: str = "") -> None:
        super().__init__(reason)
        self.cut, self.final, self.code = cut, final, code


class Loose(msgspec.Struct, frozen=True):
    """A value and where it ends. `spelled` are numbers that are not written as we would, with place and text: only the
    schema can tell whether the number or the text was meant."""

    value: Any
    end: int
    liberties: tuple[Liberty, ...]
    spelled: tuple[Spelled, ...] = ()


def one_object(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], Liberty]:
    """One of several objects in a row: the only one that is not empty, or the one they all are; else all in one."""
    before = "".join([json.dumps(found, ensure_ascii=False)[:100] for found in objects])[:200]
    filled = [found for found in objects if found]
    if all(found == filled[0] for found in filled[1:]):
        value = filled[0] if filled else {}
        return value, Liberty("concatenated", before, json.dumps(value, ensure_ascii=False)[:200])
    merged: dict[str, Any] = {}
    for found in filled:
        if merged.keys() & found.keys():
            raise Unreadable("several objects stand in a row, and they disagree", final=True)
        merged |= found
    return merged, Liberty("merged_objects", before, json.dumps(merged, ensure_ascii=False)[:200])


def read_loose(text: str, pos: int = 0, *, depth: int = MAX_DEPTH, closed: bool = False) -> Loose:
    """One value from `pos` on. `closed`: the end of the text is known to be the end of what was sent."""
    reader = _Reader(text, pos, depth, closed)
    try:
        value = reader.value(0)
    except RecursionError:
        raise Unreadable(f"nested deeper than {depth} levels") from None
    return Loose(value, reader.pos, tuple(reader.found.values()), tuple(reader.spelled))


def skip_comments(text: str, pos: int) -> tuple[int, tuple[Liberty, ...]]:
    """Past blanks and comments, and what was skipped."""
    reader = _Reader(text, pos, 0, True)
    reader.peek()
    return reader.pos, tuple(reader.found.values())


class _Reader:
    __slots__ = ("closed", "depth", "found", "pos", "spelled", "steps", "text")

    def __init__(self, text: str, pos: int, depth: int, closed: bool) -> None:
        self.text, self.pos, self.depth, self.closed = text, pos, depth, closed
        self.found: dict[str, Liberty] = {}
        self.steps: list[str | int] = []  # to the value being read
        self.spelled: list[Spelled] = []

    def _took(self, rule: str, before: str, after: str, *, guess: bool = False) -> None:
        if rule not in self.found or (guess and not self.found[rule].guess):
            self.found[rule] = Liberty(rule, before[:SHOWN], after[:SHOWN], guess)

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
        if char == "`" and (fence := begins_fence(self.text, self.pos)):
            return self._fenced(fence, level)
        if char in _CLOSING:
            return self._string(char)
        if not char:
            raise Unreadable("the text ends where a value should be", cut=True)
        return self._scalar()

    def _fenced(self, fence: re.Match[str], level: int) -> Any:
        """A code fence around a value."""
        self.pos = fence.end()
        value = self.value(level)
        self.peek()
        if not self.text.startswith("```", self.pos):
            raise Unreadable("a code fence is not closed", cut=self.pos >= len(self.text))
        self.pos += 3
        self._took("code_fence", fence.group().strip(), "")
        return value

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
            if word.group() not in JSON_WORDS:
                self._took("python_literal", word.group(), {True: "true", False: "false", None: "null"}[value])
            return value
        bare = LOOSE.bare_value(self.text, self.pos)
        if bare is None:
            raise Unreadable(f"no value can be read at {self.text[self.pos :][:30]!r}")
        self.pos = bare.end()
        text = bare.group().rstrip()
        self._took("unquoted_value", text, f'"{text}"')
        return text

    def _number(self, text: str) -> int | float:
        clean = text.replace("_", "")
        try:
            value: int | float = int(clean)
        except ValueError:
            value = float(clean)
        if value in (float("inf"), float("-inf")):
            code = "" if clean.lstrip("+-").isdigit() else "not_finite"
            raise Unreadable(f"{text[:30]} is not a number that JSON can carry", final=True, code=code)
        if text != repr(value):
            self.spelled.append((tuple(self.steps), text))
        return value

    def _array(self, level: int) -> list[Any]:
        self.pos += 1
        items: list[Any] = []
        comma = True
        while True:
            char = self.peek()
            if char == "]":
                self.pos += 1
                if comma and items:
                    self._took("trailing_comma", ",]", "]")
                return items
            if char == ",":
                self.pos += 1
                if comma:
                    self._took("trailing_comma", ",,", ",")
                comma = True
            elif self._unclosed(char, "]", level):
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
        found: dict[str, Any] = {}
        key = ""
        comma = True
        while True:
            char = self.peek()
            if char == "}":
                self.pos += 1
                if comma and found:
                    self._took("trailing_comma", ",}", "}")
                return found
            if char == ",":
                self.pos += 1
                if comma:
                    self._took("trailing_comma", ",,", ",")
                comma = True
            elif self._unclosed(char, "}", level):
                return found
            elif char == "{" and not comma and isinstance(found[key], dict):
                self.steps.append(key)
                found[key] = self._more_objects(found[key], level)
                self.steps.pop()
            else:
                if not comma:
                    self._took("missing_comma", char, "," + char)
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
        shown = [json.dumps(value, ensure_ascii=False)[:80] for value in (before, after)]
        if not is_same(before, after):
            reason = f"{key[:80]!r} is given twice, as {shown[0]} and as {shown[1]}; send it once"
            raise Unreadable(reason, final=True, code="duplicate_key" if level else "duplicate_argument")
        self._took(AGAIN, key, key)

    def _more_objects(self, first: dict[str, Any], level: int) -> Any:
        """Several objects in a row where one should be."""
        objects = [first]
        while self.peek() == "{":
            if len(objects) >= MOST_OBJECTS:
                raise Unreadable("too many objects stand in a row", final=True)
            objects.append(self._object(level + 1))
        value, liberty = one_object(objects)
        self._took(liberty.rule, liberty.before, liberty.after)
        return value

    def _unclosed(self, char: str, wanted: str, level: int) -> bool:
        """Is this where a bracket should have been closed?"""
        if char and char not in "}])":
            return False
        if not char and not self.closed:
            raise Unreadable("the text ends inside a value", cut=True)
        self._took("missing_closer", char, wanted + char)
        return True

    def _key(self, char: str) -> str:
        if char in _CLOSING:
            key = self._string(char)
        else:
            bare = LOOSE.bare_key(self.text, self.pos)
            if bare is None:
                raise Unreadable(f"no key can be read at {self.text[self.pos :][:30]!r}")
            key = bare.group()
            self.pos = bare.end()
            self._took("unquoted_key", key, f'"{key}"')
        separator = self.peek()
        if separator == "=":
            self.pos += 1 + self.text.startswith("=>", self.pos)
            self._took("key_separator", "=", ":")
        elif separator == ":":
            self.pos += 1
        else:
            raise Unreadable(f"the key {key[:40]!r} has no ':'", cut=not separator)
        return key

    def _string(self, quote: str) -> str:
        start = self.pos
        self.pos += 1
        close = _CLOSING[quote]
        run = _PLAIN[close]
        pieces: list[str] = []
        odd: set[str] = set()
        while True:
            end = run(self.text, self.pos).end()  # type: ignore[union-attr]
            pieces.append(self.text[self.pos : end])
            self.pos = end
            char = self.text[end : end + 1]
            if char == close or (char and char in "\u201c\u2018" and _CLOSING[char] == close):
                self.pos += 1
                break
            if not char:
                raise Unreadable("a string is not closed", cut=True)
            if char == "\\":
                pieces.append(self._escape(odd))
            else:
                odd.add("raw_newline")
                pieces.append(char)
                self.pos += 1
        return self._decoded(pieces, quote, start, odd)

    def _escape(self, odd: set[str]) -> str:
        found = _ESCAPE(self.text, self.pos)
        size = 2 if found is None else found.end() - found.start()
        piece = self.text[self.pos : self.pos + size]
        self.pos += size
        if found is None:
            odd.add("python_escape" if piece in ("\\'", "\\`") else "bad_escape")
        return piece

    def _decoded(self, pieces: list[str], quote: str, start: int, odd: set[str]) -> str:
        source = "".join(pieces)
        if "bad_escape" in odd and _is_path(source):
            value = source  # a path: none of its backslashes is an escape
        elif odd:
            value = "".join([_piece(piece) for piece in pieces])
        else:
            value = PYTHON.read(source)
        guess = "bad_escape" in odd and value is not source and not _NEVER_MEANT.isdisjoint(pieces)
        if quote != '"' or odd:
            after = json.dumps(value[:SHOWN], ensure_ascii=False)
            self._took_string(self.text[start : self.pos], quote, odd, after, guess)
        return value

    def _took_string(self, before: str, quote: str, odd: set[str], after: str, guess: bool) -> None:
        if quote in "'`":
            self._took("single_quotes", before, after)
        elif quote != '"':
            self._took("smart_quotes", before, after)
        for rule in sorted(odd):
            self._took("bad_escape" if rule == "python_escape" else rule, before, after, guess=guess)


def _is_path(text: str) -> bool:
    return _PATH(text) is not None and (text[1] == ":" or _SIGNS(text) is None)


def _piece(piece: str) -> str:
    """One escape or a run of plain text, where some escape of the string is none."""
    if not piece.startswith("\\"):
        return piece
    if piece in ("\\'", "\\`"):
        return piece[1]
    return PYTHON.read(piece) if _ESCAPE(piece, 0) and piece not in _NEVER_MEANT else piece
