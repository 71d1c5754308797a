"""How far a JSON text that arrives in pieces has come: still open, whole, or broken. Each character is looked at once.

    state = JsonState()
    state.feed('{"city": "Par')
    state.open    # True: it may become JSON, and is none yet

With `plain`, `final` says how much of an object may be passed on while the rest is still coming.
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
_MOST_OPEN = 2_000  # brackets; what is nested deeper is refused wherever it is read


def _is_whole(text: str) -> bool:
    """Is this a whole list or object, as most come? What is so short has no more brackets open than may be."""
    if not 0 < len(text) <= 2 * _MOST_OPEN or text[0] not in _CLOSERS or text[-1] not in "}]":
        return False
    try:
        return scan_once(text, 0)[1] == len(text)
    except (StopIteration, ValueError, RecursionError):
        return False


class JsonState:
    """Strict: no NaN, no control characters in strings, no trailing commas, nothing behind the value."""

    __slots__ = ("_at", "_held", "_key", "_live", "_stack", "_want", "final", "plain")

    def __init__(self, plain: Callable[[str], bool] | None = None) -> None:
        self._want = (
            "value"  # value, first (value or close), key, first_key, colon, more, string, key_string, word, end, broken
        )
        self._stack: list[str] = []  # closers of what is open
        self._held = ""  # the beginning of an escape, whose rest has not arrived
        self._key: list[str] = []  # pieces of the key or the scalar being read
        self.plain = plain
        self._live = False  # in a string that may be passed on while it arrives
        self._at = 0  # how much was fed
        self.final = 0

    @property
    def whole(self) -> bool:
        """The value's own end was seen. Never so for a number or a word: it might go on."""
        return self._want == "end"

    @property
    def broken(self) -> bool:
        return self._want == "broken"

    @property
    def open(self) -> bool:
        """What has come may go on to be JSON, and has not ended."""
        return self._want not in ("end", "broken")

    @property
    def nested(self) -> bool:
        """It is open inside a string, a list or an object."""
        return self.open and (bool(self._stack) or self._want == "string")

    def would_break(self, text: str) -> bool:
        """Would this text break it, if it came next?"""
        ahead = JsonState()
        ahead._want, ahead._stack, ahead._held = self._want, list(self._stack), self._held
        ahead._key = list(self._key) if self._want == "word" else []
        ahead.feed(text)
        return ahead.broken

    def feed(self, text: str) -> None:
        if self._want == "value" and not self._stack and self.plain is None and _is_whole(text):
            self._at, self._want = self._at + len(text), "end"
            return
        base = self._at - len(self._held)
        self._at += len(text)
        text, self._held = self._held + text, ""
        pos = 0
        while pos < len(text) and self._want != "broken":
            pos = self._step(text, pos, base)

    def _step(self, text: str, pos: int, base: int) -> int:
        want = self._want
        if want == "string" or want == "key_string":
            return self._string(text, pos, base)
        if want == "word":
            return self._word(text, pos)
        pos = _BLANKS(text, pos).end()  # type: ignore[union-attr]
        if pos == len(text):
            return pos
        char = text[pos]
        if want == "more":
            self._more(char, base + pos)
        elif want == "value" or (want == "first" and char != "]"):
            return self._value(char, pos)
        else:
            self._sign(want, char)
        return pos + 1

    def _sign(self, want: str, char: str) -> None:
        """A character that is no value's, nor a comma."""
        if want == "colon":
            self._want = "value" if char == ":" else "broken"
        elif want in ("first", "first_key") and char == self._stack[-1]:
            self._close()
        elif want == "key" or want == "first_key":
            self._want = "key_string" if char == '"' else "broken"
        else:
            self._want = "broken"

    def _value(self, char: str, pos: int) -> int:
        if char in _CLOSERS and len(self._stack) == _MOST_OPEN:
            self._want = "broken"
        elif char in _CLOSERS:
            self._stack.append(_CLOSERS[char])
            self._want = "first_key" if char == "{" else "first"
        elif char == '"':
            self._want = "string"
            self._live = self._at_member and self.plain is not None and self.plain("".join(self._key))
        elif _WORD(char):
            self._want, self._key = "word", []
            return pos
        else:
            self._want = "broken"
        return pos + 1

    @property
    def _at_member(self) -> bool:
        return self._stack == ["}"]

    def _string(self, text: str, pos: int, base: int) -> int:
        end = _RUN(text, pos).end()  # type: ignore[union-attr]
        is_key = self._want == "key_string"
        if is_key and self.plain is not None and self._at_member:
            self._key.append(text[pos:end])
        if end == len(text):
            pass
        elif text[end] == '"':
            self._want = "colon" if is_key else ("more" if self._stack else "end")
            end += 1
        elif _ESCAPE_START(text, end):
            self._held = text[end:]
            end = len(text)
        else:
            self._want = "broken"
        if self._live:
            self.final = base + end - len(self._held)
            self._live = self._want == "string"
        return end

    def _word(self, text: str, pos: int) -> int:
        end = _WORD(text, pos).end()  # type: ignore[union-attr]
        self._key.append(text[pos:end])
        if end < len(text):
            sound = _SCALAR("".join(self._key)) is not None
            self._key = []
            self._want = ("more" if self._stack else "end") if sound else "broken"
        return end

    def _more(self, char: str, at: int) -> None:
        if char == self._stack[-1]:
            self._close()
        elif char == ",":
            if self._at_member:
                self.final, self._key = at + 1, []
            self._want = "key" if self._stack[-1] == "}" else "value"
        else:
            self._want = "broken"

    def _close(self) -> None:
        self._stack.pop()
        self._want = "more" if self._stack else "end"


_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.S)


def ends_early(text: str) -> bool:
    """Was this cut off? It is the beginning of JSON; or, where it is broken anyway, it ends with brackets open."""
    state = JsonState()
    state.feed(text)
    if not state.broken:
        return state.nested
    if text.rstrip(" \t\r\n`").endswith(("}", "]")):
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        char = found.group()
        depth += (char in "[{") - (char in "]}")
    return depth > 0


def is_repeated(text: str) -> bool:
    """Is this JSON that was sent again in the very same letters, as some servers do?"""
    size = (text + text).find(text, 1)
    if not 0 < size < len(text):
        return False
    state = JsonState()
    state.feed(text[:size])
    return state.whole
