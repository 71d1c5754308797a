"""A format's markers as pieces of a grammar: special tokens apart, holes filled, white space at the edges apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rightcall.formats.spec import Marker, Special, alternatives
from rightcall.shapes.algebra import DIGIT, Lexeme, Lit, Node, Token, chars, inverse, repeat, seq
from rightcall.shapes.builder import Builder

BLANKS = " \t\r\n"
_HOLE = re.compile(r"\{(name|key|type|id|index|number)\}")
_ID = Lexeme(repeat(chars((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_.:-"), 1, 64))
_COUNT = Lexeme(repeat(DIGIT, 1, 3))
HOLES: dict[str, Node] = {"id": _ID, "index": _COUNT, "number": _COUNT}


class Edges(NamedTuple):
    """A marker and the white space around it."""

    before: str
    core: str
    after: str


def first(marker: Marker) -> str:
    return alternatives(marker)[0]


def edges(marker: str) -> Edges:
    core = marker.strip(BLANKS)
    if not core:
        return Edges("", "", str(marker))
    at = marker.index(core)
    tokens = getattr(marker, "tokens", ())
    return Edges(str(marker)[:at], Special(core, tokens) if tokens else core, str(marker)[at + len(core) :])


def pieces(marker: str, **holes: str | Node) -> list[Node]:
    """The marker with its holes filled. A hole that is not given takes what may stand there."""
    out: list[Node] = []
    at, text = 0, str(marker)
    for token in getattr(marker, "tokens", ()):
        where = text.index(token, at)
        out += _filled(text[at:where], holes)
        out.append(Token(token))
        at = where + len(token)
    return out + _filled(text[at:], holes)


def _filled(text: str, holes: dict[str, str | Node]) -> list[Node]:
    out: list[Node] = []
    for i, piece in enumerate(_HOLE.split(text)):
        filling = holes.get(piece, HOLES.get(piece)) if i % 2 else piece
        assert filling is not None, f"nothing to put into {{{piece}}}"
        if filling != "":
            out.append(Lit(filling) if isinstance(filling, str) else filling)
    return out


def plain(nodes: Sequence[Node]) -> tuple[Lit | Token, ...]:
    """These pieces as what free text can stop at, literals that touch being one."""
    out: list[Lit | Token] = []
    for node in nodes:
        assert isinstance(node, (Lit, Token))
        if out and isinstance(node, Lit) and isinstance(out[-1], Lit):
            out[-1] = Lit(out[-1].text + node.text)
        else:
            out.append(node)
    return tuple(out)


def text_of(stop: tuple[Lit | Token, ...]) -> str:
    return "".join(piece.text for piece in stop)


QUOTED_ID = Lexeme(seq(Lit('"'), repeat(inverse(chars((0, 0x1F), '"\\')), 1, 64), Lit('"')))


def around(opens: Marker, closes: Marker, builder: Builder, name: str) -> tuple[list[Node], list[Node]]:
    """What stands before and behind the arguments of a call of this name, the white space inside optional."""
    opener, close = edges(first(opens)), edges(first(closes))
    before = [*pieces(opener.core, name=name), *([builder.gap(opener.after)] if opener.after else [])]
    return before, [*([builder.gap(close.before)] if close.before else []), *pieces(close.core)]
