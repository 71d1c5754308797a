"""Parse JSON as models write it, and record every deviation from strict JSON.

    read_loose("{'city': 'Oslo', days: 3,}")  ->  {"city": "Oslo", "days": 3} and three deviations

The text is never evaluated, and each character is read once. A text that ends inside a value raises `UnreadableJson`
unless the caller knows that nothing was cut off. `FloatText` keeps how a float was written: as a string `1.10` is not
"1.1".
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import msgspec

from rightcall.parsing.values.notation import JSON_WORDS, PYTHON_ESCAPES, STRICT_NUMBER, SURROGATE_PAIR
from rightcall.parsing.values.value_reader import programmers_number
from rightcall.strict_json import MAX_DEPTH, decode, is_same_json

_POINT = re.compile(r"\d[.eE]|-0").search


class FloatText(float):
    """A float that keeps the text it was parsed from."""

    text: str

    def __new__(cls, text: str) -> FloatText:
        self = super().__new__(cls, text)
        self.text = text
        return self


def with_float_texts(value: Any, text: str) -> Any:
    """Return the value of the JSON `text` with a `FloatText` for each float and for `-0`. `value` is the value of the
    same text, parsed before; it is returned itself if the text has no such number."""
    return json.loads(text, parse_float=FloatText, parse_int=_parse_integer) if _POINT(text) else value


def _parse_integer(text: str) -> int | float:
    """Return the value of an integer literal as an int; a `FloatText` for `-0`, since no integer is -0."""
    return FloatText(text) if text == "-0" else int(text)


def without_float_texts(value: Any) -> Any:
    """Return a copy of a value with every `FloatText`, at any depth, replaced by a plain float."""
    if isinstance(value, dict):
        return {key: without_float_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_float_texts(item) for item in value]
    return float(value) if isinstance(value, FloatText) else value


def dumps(value: Any) -> str:
    """Return the JSON text of a value. A `FloatText` is written as it was in the input, an infinite float as 1e999 or
    -1e999, a value that JSON does not have as the string `str(value)`."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {dumps(value[key])}" for key in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps, value)) + "]"
    if isinstance(value, FloatText):
        return value.text
    if isinstance(value, float) and not isfinite(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, ensure_ascii=False, default=str)


FENCE_LABEL = r"[^`\s{\[<\"'][^`\n]{0,63}+"  # a non-empty info string
FENCE_INFO = rf"[ \t\r]{{0,8}}+(?:{FENCE_LABEL})?+"  # an optional one
FENCE_START = rf"```{FENCE_INFO}\n"

begins_fence = re.compile(FENCE_START).match


def unfence(text: str) -> str | None:
    """Return the content of the Markdown code fence that encloses the whole text, without the last line break; None if
    the text, apart from white space around it, is not one fence. A fence inside the content stays."""
    inner = text.strip()
    begin = begins_fence(inner)
    if begin is None or not inner.endswith("```") or len(inner) - 3 < begin.end():
        return None
    return inner[begin.end() : -3].rstrip(" \t").removesuffix("\n").removesuffix("\r")


MOST_OBJECTS = 9
# A key given twice with the same value (json_repair's test_parse_object.py): a non-blocking problem, not a receipt.
AGAIN = "again"
SHOWN = 200  # characters of a receipt; `Call.raw` has the whole text


class Deviation(msgspec.Struct, frozen=True):
    """A deviation from strict JSON: its repair rule and its first occurrence, before and after the repair."""

    rule: str
    before: str
    after: str
    guess: bool = False  # another interpretation is as likely


Spelling = tuple[tuple[str | int, ...], str]  # the path of a value and the text it was parsed from


class UnreadableJson(Exception):
    """The text cannot be parsed as a value. `cut`: it ended too early. `code`: the problem code, if one is certain."""

    def __init__(self, reason: str, *, cut: bool = False, code: str = "") -> None:
        super().__init__(reason)
        self.cut, self.code = cut, code


class LooseValue(msgspec.Struct, frozen=True):
    """A parsed value and where its text ends.

    - `spellings`: numbers and words in an unusual spelling, with path and text: only the schema tells whether the
      number or the text was meant.
    - `missing_closers`: how many brackets were not closed.
    - `open_at_end`: the objects and lists that were open at the end of the text; None among them if the text ends in a
      number or a word, which may be incomplete.
    - `mixed`: the depth of an object whose keys are quoted in another style than those of the object around it.
    """

    value: Any
    end: int
    deviations: tuple[Deviation, ...]
    spellings: tuple[Spelling, ...] = ()
    missing_closers: int = 0
    open_at_end: tuple[Any, ...] = ()
    mixed: int = 0


def merge_equal_objects(objects: list[dict[str, Any]]) -> tuple[dict[str, Any], Deviation]:
    """Return the object that all non-empty ones of a sequence are equal to, and the deviation "concatenated"; {} if all
    are empty. Raises `UnreadableJson` if two of them differ."""
    filled = [found for found in objects if found]
    if not all(is_same_json(found, filled[0]) for found in filled[1:]):
        raise UnreadableJson("several objects follow each other, and they differ")
    before = "".join([json.dumps(found, ensure_ascii=False)[:100] for found in objects])[:200]
    value = filled[0] if filled else {}
    return value, Deviation("concatenated", before, json.dumps(value, ensure_ascii=False)[:200])


_match_escape = re.compile(rf'\\(?:["\\/bfnrt]|{SURROGATE_PAIR}|u[0-9a-fA-F]{{4}})').match
_CONTROL_ESCAPE = re.compile(r"\\[bfnrtu]").match  # `\u` may be one
_ESCAPED_QUOTES = frozenset(("\\'", "\\`"))
# `C:\dir`, `\\host\share\dir`: only the first backslash of a host is doubled; no operator of a regular expression.
_path = re.compile(r"[A-Za-z]:(?:\\(?!\\)[^\\]*+)++|\\\\[\w.\-]{2,64}+(?:\\(?!\\)[^\\+*?()\[\]{}|^]*+){2,}+").fullmatch
# A repeated character class that is not the end of a word: a regular expression whose backslashes were not doubled.
_pattern = re.compile(r"(?<![\w\\])\\[dDwWsS](?:[+*]|\{[0-9])").search
# Next to an invalid escape these belong to a regular expression and are no control characters.
_NEVER_MEANT = frozenset(("\\b", "\\f"))


def _join_pieces(pieces: list[str], source: str, has_lone_backslash: bool) -> str:
    """Return the content of a string, decoded. `pieces`: its escapes and the text between them, in order; `source`: all
    of it as written; `has_lone_backslash`: it has a backslash that begins no escape.

    With such a backslash, a path (`C:\\dir\\new`) is returned as written: nothing in it is an escape.
    """
    if has_lone_backslash and _path(source):
        return source
    return "".join([_decode_piece(piece, has_lone_backslash) for piece in pieces])


def _decode_piece(piece: str, has_lone_backslash: bool) -> str:
    """Return the character that one escape means; the piece itself if it is no escape, or is `\\b` or `\\f` in a string
    that has a lone backslash. `\\'` and a backslash before a backtick give the quote."""
    if piece in _ESCAPED_QUOTES:
        return piece[1]
    is_escape = _match_escape(piece, 0) and not (has_lone_backslash and piece in _NEVER_MEANT)
    return PYTHON_ESCAPES.read(piece) if is_escape else piece


def _has_bare_quote(pieces: list[str], escapes: set[str], quote: str) -> bool:
    """Return whether the same quote, `'` or a backtick but not `quote`, is escaped in one place of a string and
    unescaped in another. `pieces`: the escapes and the text between them; `escapes`: the escapes among them."""
    marks = {piece[1] for piece in escapes & _ESCAPED_QUOTES} - {quote}
    return any(mark in piece for mark in marks for piece in pieces if piece not in escapes)


def _are_escapes_sure(pieces: list[str], source: str, quote: str) -> bool:
    """Return whether the meaning of all backslashes in a string between two `quote`s is certain.

    It is if each begins an escape of JSON or escapes `quote`, or if the invalid ones are literal because the whole
    string is a path or it contains a regular expression and no escape of JSON. An escaped quote of another kind (`\\'`
    in double quotes) is certain too, unless such a quote is also unescaped in this string.

    `pieces`: the escapes and the text between them; `source`: all of it as written.
    """
    escapes = {piece for piece in pieces if piece.startswith("\\")}
    if all(piece == "\\" + quote or _match_escape(piece, 0) for piece in escapes):
        return True
    if _has_bare_quote(pieces, escapes, quote):
        return False
    escapes -= _ESCAPED_QUOTES | {'\\"'}
    is_pattern = _pattern(source) is not None and not any(map(_match_escape, escapes))
    return not escapes or is_pattern or _path(source) is not None


def decode_escaped(text: str, depth: int) -> Any:
    """Return the value of JSON whose quotes are escaped as inside a string, such as `[{\\"a\\": 1}]`; None if no quote
    is escaped or the text cannot be the inside of a JSON string, `Undecodable` if that string is no JSON or deeper than
    `depth`."""
    inner = decode(f'"{text}"', depth) if '\\"' in text else None
    return decode(inner, depth) if isinstance(inner, str) else None


_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*+').match,
    "'": re.compile(r"[^'\\\x00-\x1f]*+").match,
    "\u201d": re.compile(r"[^\u201c\u201d\\\x00-\x1f]*+").match,
    "\u2019": re.compile(r"[^\u2018\u2019\\\x00-\x1f]*+").match,
    "`": re.compile(r"[^`\\\x00-\x1f]*+").match,
}
CLOSING = {mark: mark for mark in "\"'`\u201d\u2019"} | {"\u201c": "\u201d", "\u2018": "\u2019"}


# White space between values that is written as an escape (OpenHands/software-agent-sdk#2488), not the beginning of an
# unquoted path such as `\new`.
_ESCAPED_BLANK = re.compile(r"\\[nrt](?!(?!(?:true|false|null)\b)[A-Za-z_])").match
_BLANK = re.compile(r"[ \t\r\n]*+").match
_COMMENT = re.compile(r"//[^\n]*+|#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/", re.S).match
_BARE_VALUE = re.compile(r"[^,\]}{\[\n\"':]++").match
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.\-]*+|[0-9]++").match
_WORDS = JSON_WORDS | {"True": True, "False": False, "None": None, "undefined": None}
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*+(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.])").match
_ZEROS = re.compile(r"[+-]?0[0-9]").match
_OUTSIDE = re.compile(r"\][ \t\r\n]*+(?:\}[ \t\r\n]*+)?\Z").match
_IN_WORD = re.compile(r"[\w.+\-]").fullmatch


def read_loose(text: str, pos: int = 0, *, depth: int = MAX_DEPTH, closed: bool = False) -> LooseValue:
    """Parse one value of loose JSON from index `pos` on and return it with its deviations and its end; text behind it
    is not looked at. Raises `UnreadableJson` if there is no value, it is nested deeper than `depth`, a key has two
    values, or the text ends in it.

    `closed`: the end of the text is known to be the end of the input, so that open brackets there were forgotten, not
    cut off. A closing bracket of another kind than expected means that the brackets before it are missing.
    """
    reader = _LooseReader(text, pos, depth, closed)
    try:
        value = reader.read_value(0)
    except RecursionError:
        raise UnreadableJson(f"nested deeper than {depth} levels") from None
    if len(reader.word_kinds) > 1 and "python_literal" in reader.found:
        reader.mark_as_guess("python_literal")
    if reader.has_lone_backslash and reader.has_control_escapes:
        reader.mark_as_guess("bad_escape")
    found = tuple(reader.found.values())
    spellings, open_at_end = tuple(reader.spellings), tuple(reader.open_at_end)
    return LooseValue(value, reader.pos, found, spellings, reader.missing_closers, open_at_end, reader.mixed)


def skip_comments(text: str, pos: int) -> tuple[int, tuple[Deviation, ...]]:
    """Skip white space, also in the form of escapes such as a literal `\\n`, and comments from index `pos` on; return
    the new index and the skipped comments and escapes as deviations."""
    reader = _LooseReader(text, pos, 0, True)
    reader.skip_blanks()
    return reader.pos, tuple(reader.found.values())


class _LooseReader:
    """Reads one value from `pos` on and records its deviations."""

    def __init__(self, text: str, pos: int, depth: int, closed: bool) -> None:
        self.text, self.pos, self.depth, self.closed = text, pos, depth, closed
        self.found: dict[str, Deviation] = {}
        # If one backslash is not doubled, that of a line break or a tab may not be an escape either.
        self.has_lone_backslash = self.has_control_escapes = False
        self.path: list[str | int] = []  # of the value being read
        self.spellings: list[Spelling] = []
        self.expected_closers: list[str] = []  # of the open objects and lists
        self.word_kinds: set[bool] = set()  # True: a literal of JSON was read; False: one of Python
        self.open_at_end: list[Any] = []
        self.missing_closers = self.mixed = 0
        self.key_styles: list[str | None] = []  # the quote of the keys of each open value; "" without quotes

    def _record(self, rule: str, before: str, after: str, *, guess: bool = False) -> None:
        """Record a deviation. Only one of each rule is kept: the first guess, or without guesses the first."""
        if rule not in self.found or (guess and not self.found[rule].guess):
            self.found[rule] = Deviation(rule, before[:SHOWN], after[:SHOWN], guess)

    def mark_as_guess(self, rule: str) -> None:
        """Mark the recorded deviation of this rule as a guess. Raises `KeyError` if there is none."""
        self.found[rule] = msgspec.structs.replace(self.found[rule], guess=True)

    def skip_blanks(self) -> str:
        """Skip white space, also in the form of escapes, and comments; the latter two are recorded as deviations.
        Return the next character, which is not consumed; "" at the end."""
        while True:
            self.pos = _BLANK(self.text, self.pos).end()  # type: ignore[union-attr]
            if (escape := _ESCAPED_BLANK(self.text, self.pos)) is not None:
                self._record("bad_escape", escape.group(), "")
                self.pos = escape.end()
                continue
            comment = _COMMENT(self.text, self.pos)
            if comment is None:
                return self.text[self.pos : self.pos + 1]
            self._record("comment", comment.group(), "")
            self.pos = comment.end()

    def read_value(self, level: int) -> Any:
        """Read the value at `pos`, after white space and comments, and return it; `pos` is then behind it. `level`: the
        number of objects and lists around it. Raises `UnreadableJson` if there is none or it is nested too deep."""
        if level > self.depth:
            raise UnreadableJson(f"nested deeper than {self.depth} levels")
        char = self.skip_blanks()
        if char in ("{", "["):
            return self._read_container(char, level)
        if self.text.startswith("```", self.pos):
            raise UnreadableJson("a code fence is inside the JSON")
        if char in CLOSING:
            return self._read_string(char)
        if not char:
            raise UnreadableJson("the text ends where a value should be", cut=True)
        return self._read_scalar()

    def _read_scalar(self) -> Any:
        """Read a number, a word such as `true` or `None`, or a string without quotes, and return its value. A number
        with leading zeros is a string. Python's words and bare strings are recorded as deviations. Raises
        `UnreadableJson` if there is none of these."""
        number = _NUMBER(self.text, self.pos)
        # Leading zeros: a code or a telephone number without quotes.
        if number is not None and not _ZEROS(number.group()):
            self.pos = number.end()
            return self._convert_number(number.group())
        word = _BARE_KEY(self.text, self.pos)
        if word is not None and word.group() in _WORDS:
            self.pos = word.end()
            value = _WORDS[word.group()]
            self.word_kinds.add(word.group() in JSON_WORDS)
            if word.group() not in JSON_WORDS:
                self._record("python_literal", word.group(), {True: "true", False: "false", None: "null"}[value])
                if value is not None:
                    self.spellings.append((tuple(self.path), word.group()))
            return value
        bare = _BARE_VALUE(self.text, self.pos)
        if bare is None:
            raise UnreadableJson(f"no value can be read at {self.text[self.pos :][:30]!r}")
        self.pos = bare.end()
        text = bare.group().rstrip()
        self._record("unquoted_value", text, f'"{text}"')
        return text

    def _convert_number(self, text: str) -> int | float:
        """Return the value of the number written as `text`, and record text and path in `spellings` if Python would
        write it otherwise (`1.10`). Raises `UnreadableJson` if it is infinite or not a number of strict JSON (`+3`,
        `.5`)."""
        if STRICT_NUMBER(text) is None:
            raise UnreadableJson(f"{text[:30]} is not a JSON number")
        value = programmers_number(text)
        if value in (float("inf"), float("-inf")):
            code = "" if text.lstrip("-").isdigit() else "not_finite"
            raise UnreadableJson(f"{text[:30]} is not a number that JSON can represent", code=code)
        if text != repr(value):
            self.spellings.append((tuple(self.path), text))
        return value

    def _read_container(self, opener: str, level: int) -> Any:
        """Read the object or list that begins at `pos` with `opener`, "{" or "[", and return it as a dict or list. A
        missing comma is recorded as a deviation. `level`: the number of objects and lists around it. Raises
        `UnreadableJson` if it cannot be read."""
        self.pos += 1
        self.expected_closers.append("}" if opener == "{" else "]")
        self.key_styles.append(None)
        found: Any = {} if opener == "{" else []
        comma = True
        if self.skip_blanks() == ",":  # josdejong/jsonrepair#125; a value may be missing there
            self.pos += 1
            self._record("trailing_comma", ",", "", guess=True)
        while True:
            char = self.skip_blanks()
            if char == "," and not comma:
                self.pos += 1
                comma = True
            elif self._close_if_at_end(char, found, comma):
                return found
            else:
                if not comma:
                    self._record("missing_comma", char, "," + char)
                if opener == "{":
                    self._read_member(found, char, level)
                else:
                    self.path.append(len(found))
                    found.append(self.read_value(level + 1))
                    self.path.pop()
                comma = False

    def _read_member(self, found: dict[str, Any], char: str, level: int) -> None:
        """Read a key that begins with `char`, and its value, into the object `found`, which has `level` objects and
        lists around it. A key repeated with the same value is recorded. Raises `UnreadableJson` if it has another value
        already."""
        self._note_key_style(char, level)
        key = self._read_key(char)
        self.path.append(key)
        value = self.read_value(level + 1)
        self.path.pop()
        if key in found and not is_same_json(found[key], value):
            values = [json.dumps(each, ensure_ascii=False)[:80] for each in (found[key], value)]
            reason = f"{key[:80]!r} is given twice, as {values[0]} and as {values[1]}; send it once"
            raise UnreadableJson(reason, code="duplicate_key" if level else "duplicate_argument")
        if key in found:
            self._record(AGAIN, key, key)
        found[key] = value

    def _close_if_at_end(self, char: str, value: Any, comma: bool) -> bool:
        """Close the current object or list, `value`, and return True if it ends at `char`: its closing bracket, which
        is consumed, that of an object or list around it, or the end of the text (""). Return False if `char` is no
        closing bracket. `comma`: a comma or the opening bracket is directly before. A missing bracket and a comma
        before one are recorded. Raises `UnreadableJson` if the text was cut off or the bracket closes nothing."""
        if char not in ("", "}", "]", ")"):
            return False
        closer = self.expected_closers[-1]
        if char == closer:
            self.pos += 1
        elif char in self.expected_closers:
            self._record_missing_closer(char, value)
        elif not char or (self.closed and _OUTSIDE(self.text, self.pos)):
            self._close_at_end(value, comma)  # also before the bracket of a list around this value
        else:
            raise UnreadableJson(f"{char!r} closes nothing that is open")
        if comma and value and char:
            self._record("trailing_comma", "," + char, char)
        self.expected_closers.pop()
        self.key_styles.pop()
        return True

    def _close_at_end(self, value: Any, comma: bool) -> None:
        """Record that `value`, an object or list, is open at the end of the text and lacks its closing bracket.
        `comma`: a comma or the opening bracket is directly before. Raises `UnreadableJson` if the text may have been
        cut off: it is not `closed`, or a comma follows a member (`comma`, and `value` is not empty)."""
        if not self.closed or (comma and value):
            raise UnreadableJson("the text ends inside a value", cut=True)
        if not self.open_at_end and _IN_WORD(self.text[max(0, self.pos - 64) : self.pos].rstrip()[-1:]):
            self.open_at_end.append(None)
        self.open_at_end.append(value)
        self._record_missing_closer(self.text[self.pos : self.pos + 1], value)

    def _record_missing_closer(self, char: str, value: Any) -> None:
        """Record that `value`, an object or list, lacks its closing bracket before `char` ("" at the end of the text).
        It is a guess if it is empty, or a list that ends in an empty one: in `[{]` and `[{}` the `{` may be superfluous
        instead."""
        self.missing_closers += 1
        is_empty = not value or (isinstance(value, list) and value[-1] in ({}, []))
        self._record("missing_closer", char, self.expected_closers[-1] + char, guess=is_empty)

    def _note_key_style(self, char: str, level: int) -> None:
        """Record how the current object quotes its first key, which begins with `char`, and set `mixed` if an object
        around it does so differently: such a key may be in a text without quotes. Later keys do nothing. `level`: the
        number of objects and lists around this one."""
        if self.key_styles[-1] is None:
            self.key_styles[-1] = char if char in CLOSING else ""
            around = next((style for style in reversed(self.key_styles[:-1]) if style is not None), self.key_styles[-1])
            if around != self.key_styles[-1]:
                self.mixed = max(self.mixed, level)

    def _read_key(self, char: str) -> str:
        """Read a key that begins with `char`, quoted or not, and the colon behind it; return the key. A key without
        quotes is recorded as a deviation. Raises `UnreadableJson` if either is missing."""
        if char in CLOSING:
            key = self._read_string(char)
        else:
            bare = _BARE_KEY(self.text, self.pos)
            if bare is None:
                raise UnreadableJson(f"no key can be read at {self.text[self.pos :][:30]!r}")
            key = bare.group()
            self.pos = bare.end()
            self._record("unquoted_key", key, f'"{key}"')
        separator = self.skip_blanks()
        if separator != ":":
            raise UnreadableJson(f"the key {key[:40]!r} has no ':'", cut=not separator)
        self.pos += 1
        return key

    def _read_string(self, quote: str) -> str:
        """Read the string that begins here with the character `quote`, record its deviations, and return its content.
        Raises `UnreadableJson` if it is not closed."""
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
                raise UnreadableJson("a string is not closed", cut=True)
            if char == "\\":
                pieces.append(self._read_escape(odd))
            else:
                odd.add("raw_newline")
                pieces.append(char)
                self.pos += 1
        return self._decode_string(pieces, quote, start, odd)

    def _read_escape(self, odd: set[str]) -> str:
        """Consume an escape at the backslash here and return its text, not decoded. An invalid one (a backslash and one
        character) is returned too, and its rule, "bad_escape" or "python_escape", is added to the set `odd`."""
        found = _match_escape(self.text, self.pos)
        size = 2 if found is None else found.end() - found.start()
        piece = self.text[self.pos : self.pos + size]
        self.pos += size
        if found is None:
            odd.add("python_escape" if piece in _ESCAPED_QUOTES else "bad_escape")
        return piece

    def _decode_string(self, pieces: list[str], quote: str, start: int, odd: set[str]) -> str:
        """Return the content of a string from its `pieces`, and record its deviations: other quotes than `"`, raw
        control characters, and invalid escapes (a guess if their meaning is not certain). Note in the two `has_` fields
        whether it has a lone backslash, and escapes of control characters.

        `quote`: the opening quote, at index `start`; the position is after the closing one. `odd`: those of the rules
        `raw_newline`, `python_escape` and `bad_escape` that were found in it.
        """
        source = "".join(pieces)
        has_lone_backslash = "bad_escape" in odd
        value = _join_pieces(pieces, source, has_lone_backslash) if odd else PYTHON_ESCAPES.read(source)
        self.has_lone_backslash |= has_lone_backslash
        self.has_control_escapes |= value is not source and any(map(_CONTROL_ESCAPE, pieces))
        if quote != '"' or odd:
            before, after = self.text[start : self.pos], json.dumps(value[:SHOWN], ensure_ascii=False)
            if quote != '"':
                self._record("single_quotes" if quote in "'`" else "smart_quotes", before, after)
            if "raw_newline" in odd:
                self._record("raw_newline", before, after)
            if odd - {"raw_newline"}:
                self._record("bad_escape", before, after, guess=not _are_escapes_sure(pieces, source, quote))
        return value
