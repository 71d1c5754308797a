"""A scanner for JSON text that arrives in pieces: incomplete, complete or invalid. Each character is read once.

    state = JsonState()
    state.feed('{"city": "Par')
    state.is_incomplete    # True: the text may become JSON

`JsonState(may_emit)` also counts how much of an object is final and may be emitted before the object is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rightcall.strict_json import scan_once

_BLANKS = re.compile(r"[ \t\r\n]*+").match
_RUN = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+').match
_ESCAPE_START = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match
_WORD = re.compile(r"[-+.0-9A-Za-z]*+").match
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_CLOSERS = {"{": "}", "[": "]"}
_MAX_DEPTH = 2_000  # brackets; every reader rejects deeper nesting


class JsonState:
    """A scanner for strict JSON: no NaN, no control characters in strings, no trailing commas, nothing after the value.

    - `may_emit`: decides by a top-level key whether its string value may be emitted while it arrives.
    - `final`: the number of characters that may be emitted.
    """

    __slots__ = ("_closers", "_escape", "_expected", "_fed", "_in_final_string", "_token", "final", "may_emit")

    def __init__(self, may_emit: Callable[[str], bool] | None = None) -> None:
        # value, first (value or closing bracket), key, first_key, colon, more (comma or closing bracket), string,
        # key_string, word, end, invalid
        self._expected = "value"
        self._closers: list[str] = []  # closing brackets of the open containers
        self._escape = ""  # the beginning of an escape sequence
        self._token: list[str] = []  # pieces of the current key or scalar
        self.may_emit = may_emit
        self._in_final_string = False  # in a string that may be emitted while it arrives
        self._fed = 0  # number of characters
        self.final = 0

    @property
    def is_complete(self) -> bool:
        """Return True if the value has ended. At the top, a number or a word may continue, so it is complete only when
        a blank follows."""
        return self._expected == "end"

    @property
    def is_invalid(self) -> bool:
        """Return True if no continuation of the text can be JSON; also for a second value, and deeper nesting than
        `_MAX_DEPTH`."""
        return self._expected == "invalid"

    @property
    def is_incomplete(self) -> bool:
        """Return True if the text may become JSON and the value has not ended; an empty text is incomplete."""
        return self._expected not in ("end", "invalid")

    @property
    def is_inside(self) -> bool:
        """Return True if the text is incomplete inside a string, a list or an object. A number at the top is not."""
        return self.is_incomplete and (bool(self._closers) or self._expected == "string")

    def would_invalidate(self, text: str) -> bool:
        """Return True if this text would make the value invalid if it came next. The scanner is not changed."""
        ahead = JsonState()
        ahead._expected, ahead._closers, ahead._escape = self._expected, list(self._closers), self._escape
        ahead._token = list(self._token) if self._expected == "word" else []
        ahead.feed(text)
        return ahead.is_invalid

    def feed(self, text: str) -> None:
        """Read the next piece of the text, which may be empty or end anywhere. Nothing is raised; invalid text sets
        `is_invalid`."""
        may_be_whole = self._expected == "value" and not self._closers and self.may_emit is None
        if may_be_whole and text[:1] in _CLOSERS and text[-1] in "}]" and len(text) <= 2 * _MAX_DEPTH:
            # Most texts are a whole list or object. One of this length cannot exceed the maximum depth.
            try:
                if scan_once(text, 0)[1] == len(text):
                    self._fed, self._expected = self._fed + len(text), "end"
                    return
            except (StopIteration, ValueError, RecursionError):
                pass
        base = self._fed - len(self._escape)
        self._fed += len(text)
        text, self._escape = self._escape + text, ""
        pos = 0
        while pos < len(text) and self._expected != "invalid":
            pos = self._read_token(text, pos, base)

    def _read_token(self, text: str, pos: int, base: int) -> int:
        """Read the next token, or a part of one, at `pos`; return the position after it.

        `base` is the number of characters before `text`, which `final` includes.
        """
        expected = self._expected
        if expected == "string" or expected == "key_string":
            return self._read_string(text, pos, base)
        if expected == "word":
            return self._read_word(text, pos)
        pos = _BLANKS(text, pos).end()  # type: ignore[union-attr]
        if pos == len(text):
            return pos
        char = text[pos]
        if expected == "more":
            self._end_member(char, base + pos)
        elif expected == "value" or (expected == "first" and char != "]"):
            return self._begin_value(char, pos)
        elif expected == "colon":
            self._expected = "value" if char == ":" else "invalid"
        elif expected in ("first", "first_key") and char == self._closers[-1]:
            self._close_container()
        elif expected == "key" or expected == "first_key":
            self._expected = "key_string" if char == '"' else "invalid"
        else:
            self._expected = "invalid"
        return pos + 1

    def _begin_value(self, char: str, pos: int) -> int:
        """Read the first character `char` of a value at `pos` and return the position after it. A character that begins
        no value makes the text invalid. The first character of a number or word is not consumed: `_read_word` reads
        it."""
        if char in _CLOSERS and len(self._closers) == _MAX_DEPTH:
            self._expected = "invalid"
        elif char in _CLOSERS:
            self._closers.append(_CLOSERS[char])
            self._expected = "first_key" if char == "{" else "first"
        elif char == '"':
            self._expected = "string"
            is_member = self.may_emit is not None and self._closers == ["}"]
            self._in_final_string = is_member and self.may_emit("".join(self._token))  # type: ignore[misc]
        elif _WORD(char):
            self._expected, self._token = "word", []
            return pos
        else:
            self._expected = "invalid"
        return pos + 1

    def _read_string(self, text: str, pos: int, base: int) -> int:
        """Read a string or key, or a part of one, and return the position after it. An escape sequence at the end of
        the text is kept until the next piece."""
        end = _RUN(text, pos).end()  # type: ignore[union-attr]
        is_key = self._expected == "key_string"
        if is_key and self.may_emit is not None and self._closers == ["}"]:
            self._token.append(text[pos:end])
        if end == len(text):
            pass
        elif text[end] == '"':
            self._expected = "colon" if is_key else ("more" if self._closers else "end")
            end += 1
        elif _ESCAPE_START(text, end):
            self._escape = text[end:]
            end = len(text)
        else:
            self._expected = "invalid"
        if self._in_final_string:
            self.final = base + end - len(self._escape)
            self._in_final_string = self._expected == "string"
        return end

    def _read_word(self, text: str, pos: int) -> int:
        """Read a number, `true`, `false` or `null`, or a part of one, and return the position after it. Once it ends,
        any other word makes the text invalid."""
        end = _WORD(text, pos).end()  # type: ignore[union-attr]
        self._token.append(text[pos:end])
        if end < len(text):
            is_scalar = _SCALAR("".join(self._token)) is not None
            self._token = []
            self._expected = ("more" if self._closers else "end") if is_scalar else "invalid"
        return end

    def _end_member(self, char: str, at: int) -> None:
        """Read `char`, the character after a value in a list or object: a comma or the closing bracket; any other makes
        the text invalid. After a comma of the top-level object, everything so far is final: `final` becomes the
        position after it, counted from the position `at`."""
        if char == self._closers[-1]:
            self._close_container()
        elif char == ",":
            if self._closers == ["}"]:
                self.final, self._token = at + 1, []
            self._expected = "key" if self._closers[-1] == "}" else "value"
        else:
            self._expected = "invalid"

    def _close_container(self) -> None:
        """Close the innermost list or object, whose closing bracket was read."""
        self._closers.pop()
        self._expected = "more" if self._closers else "end"


_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.S)


def ends_early(text: str) -> bool:
    """Return True if this JSON text was truncated: it is the beginning of JSON inside a string, list or object; or it
    is invalid, does not end with a bracket, and has more opening than closing brackets."""
    state = JsonState()
    state.feed(text)
    if not state.is_invalid:
        return state.is_inside
    if text.rstrip(" \t\r\n`").endswith(("}", "]")):
        return False
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        depth += (match.group() in "[{") - (match.group() in "]}")
    return depth > 0


def is_repeated(text: str) -> bool:
    """Return True if the text is one complete JSON text two or more times without anything between, as some servers
    send it."""
    size = (text + text).find(text, 1)
    if not 0 < size < len(text):
        return False
    state = JsonState()
    state.feed(text[:size])
    return state.is_complete
