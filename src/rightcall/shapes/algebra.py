"""The pieces a grammar is made of: immutable, hashable, printable.

    Seq((Lit('{"city":'), Ref("space"), Ref("string"), Lit("}")))     prints as     '{"city":' space string '}'

What no engine can be told in its own words is a piece of its own (`Upto`, `Free`, `Word`, `AnyOrder`): each emitter
says it in the best way its engine has. A `Lexeme` is regular and meant to be read as one terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

TOP = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
Span = tuple[int, int]


class Lit(msgspec.Struct, frozen=True):
    """Exactly this text."""

    text: str


class Token(msgspec.Struct, frozen=True):
    """One token of the model's vocabulary, or its text where an engine knows no tokens."""

    text: str


class Chars(msgspec.Struct, frozen=True):
    """One character out of these spans of code points, sorted and apart from each other; never a surrogate."""

    spans: tuple[Span, ...]


class Ref(msgspec.Struct, frozen=True):
    """Another rule."""

    name: str


class Seq(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Alt(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True):
    """So often; `most=None` means without end."""

    item: Node
    least: int = 0
    most: int | None = None


class Lexeme(msgspec.Struct, frozen=True):
    """Regular, and one terminal: nothing outside it depends on where inside it one is."""

    item: Node


class Upto(msgspec.Struct, frozen=True):
    """Free text and then `stop`, which stands nowhere in the text; nor does any of `without`. `closed`: it
    opens nothing that would show `stop` instead of making it a call."""

    stop: tuple[Lit | Token, ...]
    least: int = 0
    most: int | None = None
    without: tuple[str, ...] = ()
    closed: bool = False


class Free(msgspec.Struct, frozen=True):
    """Free text up to where the reply ends. None of `without` stands in it."""

    without: tuple[str, ...] = ()
    most: int | None = None


class Word(msgspec.Struct, frozen=True):
    """Characters between two delimiters that are none of these words: the name of an undeclared argument.

    With `inside` they are in that regular language as well."""

    open: str
    char: Node
    close: str
    without: tuple[str, ...] = ()
    most: int | None = None
    inside: Node | None = None
    least: int = 0


class Member(msgspec.Struct, frozen=True):
    node: Node
    required: bool = False


class AnyOrder(msgspec.Struct, frozen=True):
    """Each member at most once, the required ones always, in any order; `extra` as often as wanted between them."""

    members: tuple[Member, ...]
    separator: Node
    extra: Node | None = None
    least: int = 0
    most: int | None = None


Node = Lit | Token | Chars | Ref | Seq | Alt | Repeat | Lexeme | Upto | Free | Word | AnyOrder
EMPTY = Seq(())
NEVER = Alt(())


# -- making them -------------------------------------------------------------------------------------------------------


def seq(*items: Node) -> Node:
    """In this order; literals that touch are one."""
    out: list[Node] = []
    for item in items:
        for piece in item.items if type(item) is Seq else (item,):
            if type(piece) is Lit:
                if not piece.text:
                    continue
                if out and type(out[-1]) is Lit:
                    out[-1] = Lit(out[-1].text + piece.text)
                    continue
            elif type(piece) is Alt and not piece.items:
                return NEVER
            out.append(piece)
    return out[0] if len(out) == 1 else Seq(tuple(out))


def alt(*items: Node) -> Node:
    """Any of these, each once; what can never be is left out."""
    if len(items) == 1:
        return items[0]
    out: dict[Node, None] = {}
    for item in items:
        for piece in item.items if type(item) is Alt else (item,):
            out[piece] = None
    return next(iter(out)) if len(out) == 1 else Alt(tuple(out))


def maybe(item: Node) -> Node:
    return EMPTY if type(item) in (Seq, Alt) and not item.items else Repeat(item, 0, 1)  # type: ignore[union-attr]


def repeat(item: Node, least: int = 0, most: int | None = None) -> Node:
    if most == 0 or item == EMPTY:
        return EMPTY
    if item == NEVER:
        return NEVER if least else EMPTY
    return item if least == most == 1 else Repeat(item, least, most)


@lru_cache(1024)
def chars(*spans: Span | str) -> Chars:
    """The characters of these spans and texts."""
    pairs = [
        pair for span in spans for pair in ([span] if isinstance(span, tuple) else [(ord(c), ord(c)) for c in span])
    ]
    return Chars(_merged(pairs))


def inverse(found: Chars) -> Chars:
    out: list[Span] = []
    at = 0
    for low, high in _merged([*found.spans, _SURROGATES], keep=True):
        if low > at:
            out.append((at, low - 1))
        at = high + 1
    if at <= TOP:
        out.append((at, TOP))
    return Chars(tuple(out))


def both(one: Chars, other: Chars) -> Chars:
    pairs = [(max(a, c), min(b, d)) for a, b in one.spans for c, d in other.spans if max(a, c) <= min(b, d)]
    return Chars(_merged(pairs))


def minus(one: Chars, other: Chars) -> Chars:
    return both(one, inverse(other))


def has(found: Chars, char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in found.spans)


def _merged(pairs: Iterable[Span], keep: bool = False) -> tuple[Span, ...]:
    out: list[Span] = []
    for low, high in sorted(pairs):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out) if keep else _without_surrogates(out)


def _without_surrogates(spans: list[Span]) -> tuple[Span, ...]:
    first, last = _SURROGATES
    if not any(low <= last and high >= first for low, high in spans):
        return tuple(spans)
    cut = [(low, min(high, first - 1)) for low, high in spans] + [(max(low, last + 1), high) for low, high in spans]
    return tuple(sorted({(low, high) for low, high in cut if low <= high}))


ANY = chars((0, TOP))
DIGIT = chars((0x30, 0x39))


# -- looking at them ---------------------------------------------------------------------------------------------------


def _of_order(node: AnyOrder) -> tuple[Node, ...]:
    return (*[member.node for member in node.members], node.separator, *(() if node.extra is None else (node.extra,)))


# By type, because every rule of a hundred tools is looked at.
_CHILDREN: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Seq: lambda node: node.items,
    Alt: lambda node: node.items,
    Repeat: lambda node: (node.item,),
    Lexeme: lambda node: (node.item,),
    Upto: lambda node: node.stop,
    Word: lambda node: (node.char,) if node.inside is None else (node.inside,),
    AnyOrder: _of_order,
}
_LEAVES = frozenset((Lit, Token, Chars, Free, Lexeme, Upto, Word))  # in these there is no other rule


def children(node: Node) -> tuple[Node, ...]:
    look = _CHILDREN.get(type(node))
    return look(node) if look is not None else ()


def references(node: Node) -> list[str]:
    """The rules that it mentions."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        kind = type(here)
        if kind is Ref:
            found.append(here.name)  # type: ignore[union-attr]
        elif kind is Seq or kind is Alt:
            waiting += here.items  # type: ignore[union-attr]
        elif kind not in _LEAVES:
            waiting += _CHILDREN[kind](here)
    return found
