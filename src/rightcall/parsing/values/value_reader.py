"""Where a value ends, found while it arrives: by brackets, strings and comments alone, each character looked at once.

`Ends.step(text, pos, ended)` answers yes (True: `pos` is behind the value), need more (False: `pos` is how far it came)
or no (`BadValue`). A bare value, which begins with neither quote nor bracket, ends before one of `until`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import Any

import msgspec

from rightcall.parsing.values.notation import (
    HEREDOC,
    HOLE,
    NOT_FINITE,
    SIMPLE_STRINGS,
    STRICT_NUMBER,
    Heredoc,
    Match,
    Notation,
    Quoted,
    StringText,
    Template,
)
from rightcall.strict_json import MAX_DEPTH

_MOST_DIGITS = 4_000
# In a bare string, an entry that lost the comma before it.
_ENTRY = re.compile(r"\s[\w'\"]+\s*+:").search
_SIMPLE = {quote: re.compile(simple).match for quote, simple in SIMPLE_STRINGS.items()}
_NEXT_ITEM = re.compile(r", ?(?=[\w\"'<{\[-])").match
_ANY_WORD = re.compile(r"\w").search
_SOLID = frozenset(map(chr, range(0x21, 0x7F))) - {"/"}  # what is neither white space nor a comment's
_JSON_WORD = {True: "true", False: "false", None: "null"}

Path = tuple[str | int, ...]


class Unfinished(Exception):
    """The text ends before the value does."""


class BadValue(Exception):
    """No value can be made of the text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Odd(msgspec.Struct, frozen=True):
    """A number in a spelling that is not ours, or a string without quotes: where, and as it was written. Only the
    schema can tell what was meant."""

    path: Path
    text: str


def not_finite(text: str) -> BadValue:
    """Return, not raise, the error for a number that is not finite."""
    return BadValue("not_finite", f"{text[:40]!r} is not a finite number; send a finite one")


def too_deep(depth: int) -> BadValue:
    """Return, not raise, the error for nesting deeper than `depth`."""
    return BadValue("too_deep", f"the arguments are nested deeper than {depth} levels")


class _Open(msgspec.Struct):
    """A list or an object being read."""

    closer: str
    members: dict[str, Any] | None
    items: list[Any] | None
    key: str = ""
    comma: bool = True  # nothing stands between here and the bracket or comma before it


class ValueReader:
    """Reads one value of `text` from index `pos` on. `json` is its JSON: numbers that are JSON keep their spelling.
    `depth`: how many lists and objects may be open at once; `ended`: no more text comes."""

    def __init__(
        self, notation: Notation, text: str, pos: int = 0, *, depth: int = MAX_DEPTH, ended: bool = True
    ) -> None:
        self.notation, self.text, self.pos, self.depth, self.ended = notation, text, pos, depth, ended
        self.out: list[str] = []
        self.odd: list[Odd] = []  # numbers
        self.bare: list[Odd] = []  # strings without quotes
        self.escaped: list[Odd] = []  # strings with an escape that is none
        self._stack: list[_Open] = []
        self._result: Any = None

    @property
    def json(self) -> str:
        """Return the JSON of what was read."""
        return "".join(self.out)

    def value(self) -> Any:
        """Read one value from `pos` on and return it; `pos` is behind it then, and `out`, `odd`, `bare` and `escaped`
        have what was read of it. Raises `BadValue` if it is invalid, nested too deep or has a repeated key,
        `Unfinished` if more text is needed."""
        brackets, usual, stack = self.notation.brackets, self.notation.usual_value, self._stack
        while True:
            found = usual(self.text, self.pos)
            if found is not None:
                self.pos = found.end()
                self._place(*self._usual(found))
            elif (char := self.peek()) in brackets:
                self._open(char)
            else:
                self._place(*self._atom(char))
            while stack and not self._read_to_next_value():
                done = stack.pop()
                self._place("", done.items if done.members is None else done.members)
            if not stack:
                return self._result

    def peek(self) -> str:
        """Move `pos` behind white space and comments and return the next character, which is not read. At the end of
        the text return "", or raise `Unfinished` if more may come; in a notation with comments one that is not closed,
        or a last `/` that may begin one, always raises it."""
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char in _SOLID:
            return char
        if char == " ":
            self.pos = pos = pos + 1
            char = text[pos : pos + 1]
            if char in _SOLID:
                return char
        notation = self.notation
        self.pos = pos = notation.space(self.text, self.pos).end()  # type: ignore[union-attr]
        if pos == len(self.text):
            if not self.ended:
                raise Unfinished
            return ""
        char = self.text[pos]
        if char == "/" and notation.open_comment is not None and notation.open_comment(self.text, pos):
            raise Unfinished
        return char

    # -- lists and objects ---------------------------------------------------------------------------------------------

    def _open(self, char: str) -> None:
        """Read the opening bracket `char` at `pos` and put a new list or object on the stack. Raises `BadValue` if it
        is nested too deep."""
        if len(self._stack) >= self.depth:
            raise too_deep(self.depth)
        self.pos += 1
        closer = self.notation.brackets[char]
        self.out.append("{" if char == "{" else "[")
        self._stack.append(_Open(closer, {}, None) if char == "{" else _Open(closer, None, []))

    def _place(self, json: str, value: Any) -> None:
        """Put a value that was read into the innermost list or object, behind which a comma must follow then, or, if
        none is open, make it the result. Append `json`, its JSON, to `out`; "" if that was written already. Raises
        `BadValue` for a repeated key."""
        if json:
            self.out.append(json)
        if not self._stack:
            self._result = value
            return
        top = self._stack[-1]
        top.comma = False
        if top.members is None:
            assert top.items is not None
            top.items.append(value)
        elif top.key in top.members:
            raise BadValue("duplicate_key", f"the object key {top.key[:40]!r} is given twice")
        else:
            top.members[top.key] = value

    def _read_to_next_value(self) -> bool:
        """Read what precedes the next value of the innermost list or object (a comma, a key), and return True; at its
        closing bracket, also behind a comma, read that and return False; the caller takes the container off the stack.
        The JSON of what was read is appended to `out`, and the key is set. Superfluous commas are skipped only where
        the notation allows gaps; in a list each is recorded in `bare`. Raises `BadValue` for anything else,
        `Unfinished` if more text is needed."""
        top = self._stack[-1]
        if top.members is not None and top.comma is not bool(top.members):
            usual = self.notation.entries[bool(top.members)](self.text, self.pos)
            if usual is not None:
                self.pos, top.comma = usual.end(), True
                self._begin_entry(top, usual[usual.lastindex or 0])
                return True
        elif top.items and not top.comma and (usual := _NEXT_ITEM(self.text, self.pos)) is not None:
            self.pos, top.comma = usual.end(), True
            self.out.append(", ")
            return True
        while (char := self.peek()) == "," and (not top.comma or self.notation.gaps):
            if top.comma and top.members is None:
                self.bare.append(Odd(self._path(), ""))  # an item may have stood here
            self.pos += 1
            top.comma = True
        if char == top.closer:
            self.pos += 1
            self.out.append("}" if top.members is not None else "]")
            return False
        if not char or char in ")]}":
            raise BadValue("invalid_value", f"{top.closer!r} must follow here, not {char or 'the end'!r}")
        if not top.comma:
            what = "entries of an object" if top.closer == "}" else "items of a list"
            raise BadValue("invalid_value", f"the {what} must be separated by commas, found {char!r}")
        if top.members is not None:
            self._entry(top, char)
        elif top.items:
            self.out.append(", ")
        return True

    def _entry(self, top: _Open, char: str) -> None:
        """Read a key, which begins with `char`, and the colon behind it, set the key and append its JSON to `out`.
        Raises `BadValue` without a valid key or a colon, `Unfinished` if more text is needed."""
        key = self._key(char)
        after = ":" if self.text.startswith(":", self.pos) else self.peek()
        if after != ":":
            raise BadValue("invalid_value", f"the key {key[:60]!r} needs ':' and a value, not {after!r}")
        self.pos += 1
        self._begin_entry(top, key)

    def _begin_entry(self, top: _Open, key: str) -> None:
        """Set the key of the next value of the object `top`, and append the key's JSON, with the comma before it, to
        `out`."""
        top.key = key
        self.out.append((", " if top.members else "") + quoted(key) + ": ")

    def _key(self, char: str) -> str:
        """Read a key, which begins with `char`, a string or a bare key, and return its text; `out` is not changed.
        Raises `BadValue` if none is here, its string is invalid or, where the notation has typed keys, a bare key is
        anything but a valid bare string; `Unfinished` if more text is needed."""
        if char in self.notation.heads and (text := self._text(char)) is not None:
            return text
        found = self.notation.bare_key(self.text, self.pos)
        if found is None:
            raise BadValue("invalid_argument_name", f"a key must be a name or a string, not {char!r}")
        if found.end() == len(self.text) and not self.ended:
            raise Unfinished
        self.pos = found.end()
        word = found.group()
        if self.notation.typed_keys and not isinstance(self.scalar(word, record=False)[1], str):
            raise BadValue("invalid_value", f"an object key must be a string, not {word[:40]}")
        return word

    # -- strings, numbers, words ---------------------------------------------------------------------------------------

    def _usual(self, found: re.Match[str]) -> tuple[str, Any]:
        """Return the JSON and the value of `found`, a match of `Notation.usual_value`; `pos` is not moved. `True` and
        `False` are added to `odd`, because JSON spells them in another way; `None` is not. The content of a string is
        interpreted by `string_value`."""
        kind = found.lastindex or 0
        text = found[kind]
        if kind == 1:
            return text, int(text)
        return self.scalar(text) if kind == 2 else self.string_value(text)

    def _atom(self, char: str) -> tuple[str, Any]:
        """Read the string, number, word or bare string that begins with `char` at `pos`, and return its JSON and its
        value; `out` is not changed. Where the notation allows gaps, a missing value of an object is "", which is
        recorded in `bare`, and nothing is read. Raises `BadValue` if no value, or an invalid one, is here, `Unfinished`
        if more text is needed."""
        if char in self.notation.heads and (text := self._text(char)) is not None:
            return self.string_value(text)
        found = self.notation.bare_value(self.text, self.pos)
        if found is None:
            if self.notation.gaps and char in (",", "}") and self._stack and self._stack[-1].members is not None:
                self.bare.append(Odd(self._path(), ""))
                return '""', ""
            raise BadValue("invalid_value", f"no value can be read at {self.text[self.pos : self.pos + 40] or char!r}")
        if found.end() == len(self.text) and not self.ended:
            raise Unfinished
        self.pos = found.end()
        return self.scalar(found.group().strip())

    def string_value(self, text: str) -> tuple[str, Any]:
        """Return JSON and value of `text`, a string between quotes: itself, unless a subclass interprets it."""
        return quoted(text), text

    def _text(self, char: str) -> str | None:
        """Read the string that begins with `char` and return its content, which may be ""; None, with `pos` unchanged,
        if none begins here. A string with an invalid escape is recorded in `escaped`; `record_string` is called for all
        but simple strings (for these too where the notation has shy quotes). Raises `BadValue` if it is not closed, is
        an f-string with braces or an invalid heredoc, `Unfinished` if more text is needed."""
        simple = _SIMPLE[char](self.text, self.pos) if char in _SIMPLE and not self.notation.shy else None
        if simple is not None:
            self.pos = simple.end()
            return simple.group(1)
        found = opening(self.notation, self.text, self.pos, self.ended)
        if found is None:
            return None
        begin, (string, start) = self.pos, found
        self.pos, text, closed = string.take(self.text, start, self.ended)
        if not closed:
            if not self.ended:
                raise Unfinished
            mark = self.text[start - 1]
            raise BadValue("unterminated_string", f"a string that starts with {mark} is not closed")
        if string.has_hole:
            raise BadValue("invalid_value", HOLE)
        if string.odd:
            self.escaped.append(Odd(self._path(), self.text[start : self.pos - 1]))
        self.record_string(string, begin)
        return text

    def record_string(self, string: StringText, begin: int) -> None:
        """Do nothing; a subclass records the string that begins at index `begin` and ends at `pos`. Strings of
        `SIMPLE_STRINGS` are only reported where the notation has shy quotes."""

    def _path(self) -> Path:
        """Return the keys and indexes that lead to the value being read."""
        return tuple([top.key if top.members is not None else len(top.items or ()) for top in self._stack])

    def scalar(self, text: str, *, record: bool = True) -> tuple[str, Any]:
        """Return JSON and value of `text`, a word, a number or, where the notation allows it, a bare string with a
        letter or digit; `pos` is not moved. With `record`, a spelling other than JSON's is added to `odd` (not that of
        a null), a bare string to `bare`. Raises `BadValue` if it is none of these, is not finite, has too many digits,
        or is a bare string in an object that contains a further entry (`k:`)."""
        notation = self.notation
        if text in notation.words:
            value = notation.words[text]
            if record and value is not None and text != _JSON_WORD[value]:
                self.odd.append(Odd(self._path(), text))
            return _JSON_WORD[value], value
        json, number = number_of(text, notation)
        if number is not None:
            if record and json != text:
                self.odd.append(Odd(self._path(), text))
            return json, number
        if text.lower() in NOT_FINITE:
            raise not_finite(text)
        if not notation.bare_strings or not _ANY_WORD(text):
            raise BadValue("invalid_value", f"{text[:60]!r} is no value; a string needs quotes")
        if self._stack and self._stack[-1].members is not None and _ENTRY(text):
            raise BadValue("invalid_value", "the entries of an object must be separated by commas")
        if record:
            self.bare.append(Odd(self._path(), text))
        return quoted(text), text


def number_of(text: str, notation: Notation) -> tuple[str, int | float | None]:
    """Return JSON and value of a number, written as in JSON (then the JSON is `text`) or in this notation; ("", None)
    if `text` is no number, also for a word such as `nan`. Raises `BadValue` if the number is beyond a float or has too
    many digits."""
    strict = STRICT_NUMBER(text)
    if strict is not None and not (strict.group(1) or strict.group(2)):
        return (text, int(text)) if len(text) < 4000 else _huge(text)
    if strict is None and (notation.number is None or notation.number(text) is None):
        return "", None
    if strict is not None:
        value: int | float = float(text)
    else:
        value = programmers_number(text.removesuffix("n").replace("_", ""))
    if isinstance(value, float) and not isfinite(value):
        raise not_finite(text)
    try:
        return (text if strict is not None else repr(value)), value
    except ValueError:
        return _huge(text)


def programmers_number(digits: str) -> int | float:
    """Return the value of a number as programmers write it, without `_`: `+3`, `0x1f`, `.5`. With a decimal point or an
    exponent it is a float; if it ends with the point and the float is not exact, an integer. Raises `ValueError` if it
    is no number."""
    try:
        return int(digits, 0 if digits.lstrip("+-")[1:2] in tuple("xXoObB") else 10)
    except ValueError:
        value = float(digits)
    whole = int(digits[:-1]) if digits.endswith(".") and len(digits) < _MOST_DIGITS else value
    return value if value == whole else whole


def _huge(text: str) -> tuple[str, int | float | None]:
    """Raise `BadValue` because a number has too many digits."""
    raise BadValue("invalid_value", f"{text[:20]}... has too many digits")


def opening(notation: Notation, text: str, pos: int, ended: bool) -> tuple[StringText, int] | None:
    """Return the reader of the string that begins at `pos`, maybe with a prefix, and the index behind its opening
    quote or heredoc opener; None if no string begins here. Raises `Unfinished` if more text is needed to tell,
    `BadValue` for a `<` that begins no heredoc in a notation that has them."""
    prefix = ""
    if notation.prefixes is not None:
        lead = notation.prefixes(text, pos)
        if lead is None:
            return None
        prefix, pos = lead.group().lower(), lead.end()
    char = text[pos : pos + 1]
    if not char:
        if prefix and not ended:
            raise Unfinished
        return None
    if notation.templates and char in "'\"<":
        found = _match_heredoc_opener(text, pos, ended)
        if found is not None:
            return found
    if notation.templates and char == "`":
        return Template(), pos + 1
    return _match_quote_opener(notation, text, pos, ended, prefix)


def _match_quote_opener(
    notation: Notation, text: str, pos: int, ended: bool, prefix: str
) -> tuple[StringText, int] | None:
    """Return the reader of the string whose quote is at `pos`, and the index behind the quote; None if no quote is
    here. `prefix`: the lower-case letters before it: with `r` the string has no escapes, with `f` it has holes (not for
    a quote with a reader of its own). Raises `Unfinished` if the text ends in what may become a longer quote."""
    for quote in notation.quotes:
        if text.startswith(quote.open, pos):
            if quote.make is not None:
                return quote.make(), pos + len(quote.open)
            made = Quoted(quote.open, None if "r" in prefix else quote.escapes, holes="f" in prefix)
            return made, pos + len(quote.open)
        if not ended and len(text) - pos < len(quote.open) and quote.open.startswith(text[pos:]):
            raise Unfinished
    return None


def _match_heredoc_opener(text: str, pos: int, ended: bool) -> tuple[StringText, int] | None:
    """Return the reader of the heredoc whose opener `<<TAG` is at `pos`, maybe behind a quotation mark, and the index
    behind the opener, at the line break; None if a quotation mark without one is here. Raises `Unfinished` if more text
    is needed to decide, `BadValue` for any other `<`. `pos` must be in the text."""
    found = HEREDOC.match(text, pos)
    if found is not None:
        return Heredoc(found["tag"], found["quote"]), found.end()
    if not ended and may_be_heredoc(text, pos):
        raise Unfinished
    if text[pos] == "<":
        raise BadValue("invalid_heredoc", "a heredoc is <<TAG, a line break, the text, and TAG at a line's beginning")
    return None


may_be_heredoc = re.compile(r"(?:['\"]?<(?:<(?:['\"]?[A-Za-z0-9_]{0,64}+['\"]?[ \t]{0,16}+\r?)?)?|['\"])\Z").match


OPEN_CODE = {")": "invalid_call", "]": "invalid_value", "}": "invalid_value"}
Stop = Callable[[str, int, bool], object]  # is what ends the whole call here? None where more text is needed to tell
_LINE = re.compile(r"[^\n]*+").match
_TO_STAR = re.compile(r"[^*]*+").match


@lru_cache(256)
def _run(odd: str) -> Match:
    """Return a function that matches a run of characters that are none of `odd`, also an empty one."""
    return re.compile(f"[^{re.escape(odd)}]*+").match


def _odd(notation: Notation, until: str, stops: str) -> str:
    """Return all characters at which something may begin or end in this notation, with those in `until` and `stops`,
    sorted, as one string."""
    heads = {quote.open[0] for quote in notation.quotes}
    marks = {"`", "<"} if notation.templates else set()
    marks |= {"/"} if notation.open_comment is not None else set()
    marks |= set(",:") if notation.shy else set()
    brackets = {*notation.brackets, *notation.brackets.values()}
    return "".join(sorted(heads | marks | brackets | set(until) | set(stops)))


class Ends:
    """The search for the end of one value or comment.

    - `until`: characters one of which, outside brackets, ends the value; without them it ends with its own bracket.
    - `stack`: the closers of brackets that are open already; the value ends with the last of them.
    - `stop`: tells whether the call ends at a place, which is an error in a value; asked only at the characters
      `stops`.
    - `bare`: outside brackets a quote is only a character. `comment`: a comment begins here, and its end is looked for.
    """

    def __init__(
        self,
        notation: Notation,
        *,
        until: str = "",
        stack: tuple[str, ...] = (),
        stop: Stop | None = None,
        stops: str = "<`",
        bare: bool = False,
        comment: bool = False,
    ) -> None:
        self.pos = 0
        self._notation, self._until, self._stop, self._stops = notation, until, stop, stops
        self._stack = list(stack)
        self._bare = bare  # outside brackets a quote is only a character
        self._outer = bool(stack)
        self._only_comment = comment  # what begins here is a comment, and nothing but that is looked for
        self._string: StringText | None = None
        self._fresh = False  # a value begins here, if anything does
        self._comment = ""
        self._run = _run(_odd(notation, until, stops if stop is not None else ""))

    def step(self, text: str, pos: int, ended: bool) -> bool:
        """Continue the search from index `pos` of `text`. Return True at the end: `self.pos` is behind the closing
        bracket or comment (at the line break of a line comment), or at the character of `until`. Return False if the
        end is not in the text, also if `ended`; `self.pos` is how far it came. Raises `BadValue` if no end can be
        found."""
        self.pos = pos
        while self.pos < len(text):
            if self._string is not None:
                if not self._in_string(text, ended):
                    return False
            elif self._comment:
                if not self._in_comment(text):
                    return False
                if self._only_comment and not self._comment:
                    return True
            else:
                start, self.pos = self.pos, self._run(text, self.pos).end()  # type: ignore[union-attr]
                self._fresh = self._fresh and not text[start : self.pos].strip()
                if self.pos == len(text):
                    return False
                try:
                    if self._sign(text, ended):
                        return True
                except Unfinished:
                    return False
        return False

    def _in_string(self, text: str, ended: bool) -> bool:
        """Continue inside a string and move `pos`, at its end behind it, where the string is left. Return whether it is
        closed; if not, more text is needed. Raises `BadValue` if it cannot be closed any more."""
        assert self._string is not None
        self.pos, _, closed = self._string.take(text, self.pos, ended)
        if closed:
            self._string = None
        elif self._string.lost:
            raise BadValue("unterminated_string", "a string is not closed before the end of the call; close it")
        return closed

    def _in_comment(self, text: str) -> bool:
        """Continue inside a comment and move `pos`, up to the line break or behind `*/` at its end, where the comment
        is left (`_comment` is ""), or behind a `*` that does not end it. Return False if more text is needed, else
        True, also if the comment goes on."""
        line = self._comment == "/"
        self.pos = (_LINE if line else _TO_STAR)(text, self.pos).end()  # type: ignore[union-attr]
        if self.pos == len(text) or (not line and self.pos + 1 == len(text)):
            return False
        if line or text[self.pos + 1] == "/":
            self.pos += 0 if line else 2
            self._comment = ""
        else:
            self.pos += 1
        return True

    def _sign(self, text: str, ended: bool) -> bool:
        """Handle the character at `pos`, at which something may begin or end, and move behind it, or behind what opens
        the string or comment there. Return True only at the end of the value; a character of `until` is not passed, a
        closing bracket is. Raises `BadValue` for a bracket that closes nothing open or, at one of `stops`, the end of
        the call; `Unfinished`, with `pos` unchanged, if more text is needed."""
        char, stack = text[self.pos], self._stack
        if self._stop is not None and char in self._stops:
            self._look_for_stop(text, ended)
        if char not in self._notation.brackets and self._enter_string(text, ended):
            return False
        self._fresh = char in "[:" or (char == "," and stack[-1:] == ["]"])
        if char == "/" and self._notation.open_comment is not None:
            self._enter_comment(text, ended)
            return False
        if char in self._notation.brackets:
            stack.append(self._notation.brackets[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack and (self._outer or not self._until):
                self.pos += 1
                return True
        elif not stack and char in self._until:
            return True
        elif char in ")]}":
            raise BadValue(OPEN_CODE[stack[-1] if stack else ")"], f"{char!r} closes nothing that is open here")
        self.pos += 1
        return False

    def _look_for_stop(self, text: str, ended: bool) -> None:
        """Raise `BadValue` if what ends the whole call is here, because a bracket is missing; `Unfinished` if more text
        is needed to tell. Else do nothing."""
        assert self._stop is not None
        found = self._stop(text, self.pos, ended)
        if found is None:
            raise Unfinished
        if found:
            closer = self._stack[-1] if self._stack else ")"
            raise BadValue(OPEN_CODE[closer], f"{closer!r} is missing before the end of the call")

    def _enter_string(self, text: str, ended: bool) -> bool:
        """Enter the string that begins at `pos`, move behind its opening quote and return True. Return False, with
        nothing changed, if none begins here: also at an invalid heredoc, outside brackets of a bare value, at a shy
        quote where no value begins, and, in a notation with shy quotes, in a key. Raises `Unfinished` if more text is
        needed to tell."""
        if (self._bare and not self._stack) or (text[self.pos] in self._notation.shy and not self._fresh):
            return False
        if self._notation.shy and not self._fresh and self._stack[-1:] == ["}"]:
            return False  # a key, in quotes or not: it holds no bracket
        try:
            found = opening(self._notation, text, self.pos, ended)
        except BadValue:
            found = None
        if found is None:
            return False
        self._string, self.pos = found
        return True

    def _enter_comment(self, text: str, ended: bool) -> None:
        """Move into the comment that begins with the `/` at `pos`, or behind a `/` that begins none. Raises
        `Unfinished` if more text is needed to tell."""
        if self.pos + 1 == len(text) and not ended:
            raise Unfinished
        kind = text[self.pos + 1 : self.pos + 2]
        self._comment = kind if kind in ("/", "*") else ""
        self.pos += 2 if self._comment else 1
