"""What the backslashes of a string mean in which one of them begins no escape of JSON's:  "C:\\dir"  "\\d+"  "it\\'s"

Such a backslash has lost the one before it, or is one too many; which of the two, only what the string is can tell.
"""

from __future__ import annotations

import re
from typing import Any

from rightcall.parsing.values.escapes import PYTHON
from rightcall.strict_json import decode

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
escape = re.compile(rf'\\(?:["\\/bfnrt]|{_PAIR}|u[0-9a-fA-F]{{4}})').match
QUOTES = frozenset(("\\'", "\\`"))
# `C:\dir`, `\\host\share\dir`: no backslash is doubled but the first of a host's, and no sign of a regular expression.
_path = re.compile(r"[A-Za-z]:(?:\\(?!\\)[^\\]*+)++|\\\\[\w.\-]{2,64}+(?:\\(?!\\)[^\\+*?()\[\]{}|^]*+){2,}+").fullmatch
# A class of characters that is repeated, and not the end of a word: a regular expression that lost its doubling.
_pattern = re.compile(r"(?<![\w\\])\\[dDwWsS](?:[+*]|\{[0-9])").search
# Beside an escape that is none, these are what a regular expression has, and no control characters.
_NEVER_MEANT = frozenset(("\\b", "\\f"))


def read(pieces: list[str], source: str, *, single: bool) -> str:
    """The string; `pieces` are its escapes and the text between them. Where one backslash stands alone (`single`) and
    the string is a path, none of them is an escape: then it is `source` itself."""
    if single and _path(source):
        return source
    return "".join([_piece(piece, single) for piece in pieces])


def _piece(piece: str, single: bool) -> str:
    if not piece.startswith("\\"):
        return piece
    if piece in QUOTES:
        return piece[1]
    return PYTHON.read(piece) if escape(piece, 0) and not (single and piece in _NEVER_MEANT) else piece


def has_control(pieces: list[str]) -> bool:
    """Is one of them the escape of a line break, a tab or the like?"""
    return any(piece.startswith("\\") and piece[1:2] in tuple("bfnrtu") for piece in pieces)


def _has_bare_quote(pieces: list[str], escapes: set[str], quote: str) -> bool:
    """Does a quote that is escaped somewhere stand without a backslash elsewhere?"""
    marks = {piece[1] for piece in escapes & QUOTES} - {quote}
    return any(mark in piece for mark in marks for piece in pieces if piece not in escapes)


def is_sure(pieces: list[str], source: str, quote: str) -> bool:
    """Is it certain what they mean? They are themselves in a path or a regular expression; `\\'` is a quote where no
    other quote stands without one, and always in a string between such quotes."""
    escapes = {piece for piece in pieces if piece.startswith("\\")}
    if all(piece == "\\" + quote or escape(piece, 0) for piece in escapes):
        return True
    if _has_bare_quote(pieces, escapes, quote):
        return False
    escapes -= QUOTES | {'\\"'}
    if not escapes or _path(source):
        return True
    return _pattern(source) is not None and not any(escape(piece, 0) for piece in escapes)


def decode_escaped(text: str, depth: int) -> Any:
    """What JSON holds that stands as in a string, without the quotation marks around it: `[{\\"a\\": 1}]`. None where
    it is none."""
    inner = decode(f'"{text}"', depth) if '\\"' in text else None
    return decode(inner, depth) if isinstance(inner, str) else None
