"""Split a text of values into tokens, in any notation, so that one kind of damage applies to all notations.

tokens('{"a": [1]}')  ->  "{"  '"a"'  ":"  " "  "["  "1"  "]"  "}"
"""

from __future__ import annotations

import re

import msgspec

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')|(?P<number>-?[0-9][0-9.eE+\-]*+)|(?P<word>[\w.]++)"""
    r"""|(?P<open>[\[{(])|(?P<close>[\]})])|(?P<comma>,)|(?P<colon>[:=])|(?P<blank>\s++)|(?P<other>.)""",
    re.S,
)


class Token(msgspec.Struct, frozen=True):
    """`kind`: string, number, word, open, close, comma, colon, blank, other; key for a value before a colon."""

    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    found = [Token(each.lastgroup or "", each.group()) for each in _TOKEN.finditer(text)]
    behind = ""
    for index in range(len(found) - 1, -1, -1):
        token = found[index]
        if token.kind in ("string", "word", "number") and behind == "colon":
            found[index] = Token("key", token.text)
        behind = token.kind if token.kind != "blank" else behind
    return found


def join_tokens(parts: list[Token]) -> str:
    return "".join([token.text for token in parts])


def places(parts: list[Token], *kinds: str) -> list[int]:
    return [index for index, token in enumerate(parts) if token.kind in kinds]


def partner(parts: list[Token], start: int) -> int | None:
    """Return the index of the bracket that closes the one at `start`."""
    level = 0
    for index in range(start, len(parts)):
        level += {"open": 1, "close": -1}.get(parts[index].kind, 0)
        if level == 0:
            return index
    return None
