"""What a backslash means in a string: JSON's, Python's and TypeScript's escapes.

`Escapes.read` gives what stands between two quotes. `Escapes.short` are the escapes of two characters: they are final
as soon as both are there, however the text is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
LONGEST = 12  # a pair of surrogates: an escape that has so much room is whole


class Escapes(msgspec.Struct, frozen=True):
    """How the escapes of a kind of string are read."""

    read: Callable[[str], str]
    short: str  # characters that make an escape with one backslash before them
    is_odd: Callable[[str], object] = lambda text: None  # has it an escape that is begun and not whole?


def _pair(text: str) -> str:
    """The character of `uD83D\\uDE00`."""
    return chr(0x10000 + ((int(text[1:5], 16) & 0x3FF) << 10) + (int(text[7:], 16) & 0x3FF))


_PYTHON = re.compile(rf"\\({_PAIR}|\n|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|[0-7]{{1,3}}|.)", re.S).sub
_PYTHON_CHARS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\n": ""}
_PYTHON_CHARS |= {"\\": "\\", "'": "'", '"': '"', "/": "/"}


def _python(text: str) -> str:
    """An escape that Python does not know stays as it is."""
    return _PYTHON(_python_one, text) if "\\" in text else text


def _python_one(found: re.Match[str]) -> str:
    code = found.group(1)
    if code in _PYTHON_CHARS:
        return _PYTHON_CHARS[code]
    if len(code) == LONGEST - 1:
        return _pair(code)
    if len(code) > 1 and code[0] in "xuU":
        point = int(code[1:], 16)
        return chr(point) if point <= 0x10FFFF else found.group()
    return chr(int(code, 8)) if code[0] in "01234567" else found.group()


_TYPESCRIPT = re.compile(
    rf"\\(?:u\{{([0-9a-fA-F]{{1,6}})\}}|({_PAIR})|u([0-9a-fA-F]{{4}})|x([0-9a-fA-F]{{2}})|(\r\n|.))", re.S
).sub
_TYPESCRIPT_CHARS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v"}
_TYPESCRIPT_CHARS |= {"\n": "", "\r": "", "\r\n": ""}


def _typescript(text: str) -> str:
    return _TYPESCRIPT(_typescript_one, text) if "\\" in text else text


def _typescript_one(found: re.Match[str]) -> str:
    braced, pair, four, two, char = found.groups()
    if char is not None:
        return _TYPESCRIPT_CHARS.get(char, char)
    if pair is not None:
        return _pair(pair)
    code = int(braced or four or two, 16)
    return chr(code) if code <= 0x10FFFF else found.group()[1:]


_TEMPLATE = re.compile(r"\\(\r\n|.)", re.S).sub
_TEMPLATE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "\r": "", "\r\n": "", "`": "`", "$": "$", "\\": "\\"}


def template_text(text: str) -> str:
    """Of a template's text; an escape that means nothing in one keeps its backslash."""
    return _TEMPLATE(_template_one, text) if "\\" in text else text


def _template_one(found: re.Match[str]) -> str:
    return _TEMPLATE_CHARS.get(found.group(1), found.group())


_ODD = re.compile(r"(?<!\\)(?:\\\\)*+\\(?:x(?![0-9a-fA-F]{2})|u(?![0-9a-fA-F]{4})|U(?![0-9a-fA-F]{8})|N(?!\{))").search

PYTHON = Escapes(_python, "ntr\\'\"/", _ODD)
TYPESCRIPT = Escapes(_typescript, "nt\\'\"`")
