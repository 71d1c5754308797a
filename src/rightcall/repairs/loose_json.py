"""JSON as models write it: parsed in one pass, each deviation from strict JSON recorded.

    read_loose("{'city': 'Oslo', days: 3,}")  ->  {"city": "Oslo", "days": 3} and three rules

Nothing is evaluated, and each character is examined once. A text that ends inside a value raises `Unreadable` unless
the caller knows that nothing was cut off. `NumberText` keeps the spelling of floats: `1.10` as a string is not "1.1".
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import msgspec

from rightcall.parsing.values.notation import JSON_WORDS, LOOSE, PYTHON_ESCAPES, STRICT_NUMBER, SURROGATE_PAIR
from rightcall.parsing.values.value_reader import programmers_number
from rightcall.strict_json import MAX_DEPTH, decode, is_same_json

_POINT = re.compile(r"\d[.eE]|-0").search


class NumberText(float):
    """A float that remembers its text."""

    text: str

    def __new__(cls, text: str) -> NumberText:
        self = super().__new__(cls, text)
        self.text = text
        return self


def with_spelling(value: Any, text: str) -> Any:
    """The same value, read from its JSON text once more so that its floats remember theirs."""
    return json.loads(text, parse_float=NumberText, parse_int=_integer) if _POINT(text) else value


def _integer(text: str) -> int | float:
    """`-0` is a number that no integer is."""
    return NumberText(text) if text == "-0" else int(text)


def without_spelling(value: Any) -> Any:
    """The value with plain floats."""
    if isinstance(value, dict):
        return {key: without_spelling(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_spelling(item) for item in value]
    return float(value) if isinstance(value, NumberText) else value


def dumps(value: Any) -> str:
    """JSON in which such floats are written as they were."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {dumps(value[key])}" for key in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps, value)) + "]"
    if isinstance(value, float):
        return written(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def written(value: float) -> str:
    if isinstance(value, NumberText):
        return value.text
    return repr(value) if isfinite(value) else "1e999" if value > 0 else "-1e999"


LABEL = r"[^`\s{\[<\"'][^`\n]{0,63}+"  # an info string that is there
INFO = rf"[ \t\r]{{0,8}}+(?:{LABEL})?+"  # one that may be missing
BEGIN = rf"```{INFO}\n"

begins_fence = re.compile(BEGIN).match


def unfence(text: str) -> str | None:
    """What stands inside the one code fence around a text, if there is one."""
    inner = text.strip()
    begin = begins_fence(inner)
    if begin is None or not inner.endswith("```") or len(inner) - 3 < begin.end():
        return None
    return inner[begin.end() : -3].rstrip(" \t").removesuffix("\n").removesuffix("\r")


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
    """No value can be made of the text; `cut` says that it ended too early, `code` which problem that is, where it is a
    certain one."""

    def __init__(self, reason: str, *, cut: bool = False, code: str = "") -> None:
        super().__init__(reason)
        self.cut, self.code = cut, code


class Loose(msgspec.Struct, frozen=True):
    """A value and where it ends. `spelled` are numbers and words that are not written as we would, with place and text:
    only the schema can tell whether the value or the text was meant. Of brackets that were not closed there are
    `missing` so many; `mixed` is how deep an object stands that writes its keys in another way than the one around it;
    `open` are the objects and lists that were open at the end of the text, None among them where
    it ends in a number or a word, of which more may have stood there."""

    value: Any
    end: int
    liberties: tuple[Liberty, ...]
    spelled: tuple[Spelled, ...] = ()
    missing: int = 0
    open: tuple[Any, ...] = ()
    mixed: int = 0


def one_object(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], Liberty]:
    """One of several objects in a row: the only one that is not empty, or the one that all of them are."""
    filled = [found for found in objects if found]
    if not all(is_same_json(found, filled[0]) for found in filled[1:]):
        raise Unreadable("several objects stand in a row, and they disagree")
    before = "".join([json.dumps(found, ensure_ascii=False)[:100] for found in objects])[:200]
    value = filled[0] if filled else {}
    return value, Liberty("concatenated", before, json.dumps(value, ensure_ascii=False)[:200])


_match_escape = re.compile(rf'\\(?:["\\/bfnrt]|{SURROGATE_PAIR}|u[0-9a-fA-F]{{4}})').match
_ESCAPED_QUOTES = frozenset(("\\'", "\\`"))
# `C:\dir`, `\\host\share\dir`: no backslash is doubled but the first of a host's, and no sign of a regular expression.
_path = re.compile(r"[A-Za-z]:(?:\\(?!\\)[^\\]*+)++|\\\\[\w.\-]{2,64}+(?:\\(?!\\)[^\\+*?()\[\]{}|^]*+){2,}+").fullmatch
# A class of characters that is repeated, and not the end of a word: a regular expression that lost its doubling.
_pattern = re.compile(r"(?<![\w\\])\\[dDwWsS](?:[+*]|\{[0-9])").search
# Beside an escape that is none, these are what a regular expression has, and no control characters.
_NEVER_MEANT = frozenset(("\\b", "\\f"))


def _read_escapes(pieces: list[str], source: str, *, single: bool) -> str:
    """The string; `pieces` are its escapes and the text between them. Where one backslash stands alone (`single`) and
    the string is a path, none of them is an escape: then it is `source` itself."""
    if single and _path(source):
        return source
    return "".join([_piece(piece, single) for piece in pieces])


def _piece(piece: str, single: bool) -> str:
    if not piece.startswith("\\"):
        return piece
    if piece in _ESCAPED_QUOTES:
        return piece[1]
    return PYTHON_ESCAPES.read(piece) if _match_escape(piece, 0) and not (single and piece in _NEVER_MEANT) else piece


def _has_control(pieces: list[str]) -> bool:
    """Is one of them the escape of a line break, a tab or the like?"""
    return any(piece.startswith("\\") and piece[1:2] in tuple("bfnrtu") for piece in pieces)


def _has_bare_quote(pieces: list[str], escapes: set[str], quote: str) -> bool:
    """Does a quote that is escaped somewhere stand without a backslash elsewhere?"""
    marks = {piece[1] for piece in escapes & _ESCAPED_QUOTES} - {quote}
    return any(mark in piece for mark in marks for piece in pieces if piece not in escapes)


def _is_escape_sure(pieces: list[str], source: str, quote: str) -> bool:
    """Is it certain what they mean? They are themselves in a path or a regular expression; `\\'` is a quote where no
    other quote stands without one, and always in a string between such quotes."""
    escapes = {piece for piece in pieces if piece.startswith("\\")}
    if all(piece == "\\" + quote or _match_escape(piece, 0) for piece in escapes):
        return True
    if _has_bare_quote(pieces, escapes, quote):
        return False
    escapes -= _ESCAPED_QUOTES | {'\\"'}
    if not escapes or _path(source):
        return True
    return _pattern(source) is not None and not any(_match_escape(piece, 0) for piece in escapes)


def decode_escaped(text: str, depth: int) -> Any:
    """What JSON holds that stands as in a string, without the quotation marks around it: `[{\\"a\\": 1}]`. None where
    it is none."""
    inner = decode(f'"{text}"', depth) if '\\"' in text else None
    return decode(inner, depth) if isinstance(inner, str) else None


_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*+').match,
    "'": re.compile(r"[^'\\\x00-\x1f]*+").match,
    "\u201d": re.compile(r"[^\u201c\u201d\\\x00-\x1f]*+").match,
    "\u2019": re.compile(r"[^\u2018\u2019\\\x00-\x1f]*+").match,
    "`": re.compile(r"[^`\\\x00-\x1f]*+").match,
}
CLOSING = {quote.open: quote.close for quote in LOOSE.quotes}


class LooseStrings:
    """Reads strings from `pos` on, and keeps what liberties they took."""

    def __init__(self, text: str, pos: int) -> None:
        self.text, self.pos = text, pos
        self.found: dict[str, Liberty] = {}
        # Where one backslash was not doubled, those of a line break or a tab may not have been either.
        self.single = self.controls = False

    def _took(self, rule: str, before: str, after: str, *, guess: bool = False) -> None:
        if rule not in self.found or (guess and not self.found[rule].guess):
            self.found[rule] = Liberty(rule, before[:SHOWN], after[:SHOWN], guess)

    def _string(self, quote: str) -> str:
        start = self.pos
        self.pos += 1
        close = CLOSING[quote]
        run = _PLAIN[close]
        pieces: list[str] = []
        odd: set[str] = set()
        while True:
            end = run(self.text, self.pos).end()  # type: ignore[union-attr]
            pieces.append(self.text[self.pos : end])
            self.pos = end
            char = self.text[end : end + 1]
            if char == close or (char and char in "\u201c\u2018" and CLOSING[char] == close):
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
        found = _match_escape(self.text, self.pos)
        size = 2 if found is None else found.end() - found.start()
        piece = self.text[self.pos : self.pos + size]
        self.pos += size
        if found is None:
            odd.add("python_escape" if piece in _ESCAPED_QUOTES else "bad_escape")
        return piece

    def _decoded(self, pieces: list[str], quote: str, start: int, odd: set[str]) -> str:
        source = "".join(pieces)
        single = "bad_escape" in odd
        value = PYTHON_ESCAPES.read(source) if not odd else _read_escapes(pieces, source, single=single)
        self.single = self.single or single
        self.controls = self.controls or (value is not source and _has_control(pieces))
        if quote != '"' or odd:
            guess = bool(odd - {"raw_newline"}) and not _is_escape_sure(pieces, source, quote)
            after = json.dumps(value[:SHOWN], ensure_ascii=False)
            self._took_string(self.text[start : self.pos], quote, odd, after, guess)
        return value

    def _took_string(self, before: str, quote: str, odd: set[str], after: str, guess: bool) -> None:
        if quote in "'`":
            self._took("single_quotes", before, after)
        elif quote != '"':
            self._took("smart_quotes", before, after)
        if "raw_newline" in odd:
            self._took("raw_newline", before, after)
        if len(odd) > ("raw_newline" in odd):
            self._took("bad_escape", before, after, guess=guess)


# White space between values that is written as in a string (OpenHands/software-agent-sdk#2488), not the beginning of an
# unquoted path such as `\new`.
_ESCAPED_BLANK = re.compile(r"\\[nrt](?!(?!(?:true|false|null)\b)[A-Za-z_])").match
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
            if (escape := _ESCAPED_BLANK(self.text, self.pos)) is not None:
                self._took("bad_escape", escape.group(), "")
                self.pos = escape.end()
                continue
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
        if not is_same_json(before, after):
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
