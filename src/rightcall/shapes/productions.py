"""The rules of a grammar as people read them: the notation of the picture and of `str(grammar)`.

Rule("calls", Repeat(Ref("call"), 1))  ->  calls ::= call+
"""

from __future__ import annotations

import msgspec

from rightcall.shapes.algebra import (
    Alt,
    AnyOrder,
    Chars,
    Free,
    Lexeme,
    Lit,
    Node,
    Ref,
    Repeat,
    Seq,
    Span,
    Token,
    Upto,
    Word,
)


class Rule(msgspec.Struct, frozen=True):
    """One production. Several with the same `lhs` are alternatives."""

    lhs: str
    rhs: Node

    def __str__(self) -> str:
        return f"{self.lhs} ::= {show(self.rhs)}"


def show(node: Node) -> str:
    """The piece in the notation of the picture and of `str(grammar)`."""
    match node:
        case Seq(items):
            return " ".join(map(_inside, items)) or "''"
        case Alt(items):
            return " | ".join(map(show, items)) or "never"
        case Repeat(item, least, most):
            return _inside(item) + _times(least, most)
        case Lexeme(item):
            return show(item)
        case AnyOrder():
            return _show_members(node)
        case Upto() | Free() | Word():
            return _show_text(node)
    return _show_leaf(node)


def _show_leaf(node: Lit | Token | Chars | Ref) -> str:
    match node:
        case Lit(text):
            return repr(text)
        case Token(text):
            return f"<{text}>"
        case Chars(spans):
            return "[" + "".join(map(_shown, spans)) + "]"
    return node.name


def _show_text(node: Upto | Free | Word) -> str:
    match node:
        case Upto(stop):
            return "text-up-to(" + " ".join(map(show, stop)) + ")"
        case Free(without):
            return "text" + (f"-without({', '.join(map(repr, without))})" if without else "")
    other = f"-other-than({', '.join(node.without)})" if node.without else ""
    return f"{node.open!r} word{other} {node.close!r}"


def _show_members(node: AnyOrder) -> str:
    parts = [show(member.node) + ("" if member.required else "?") for member in node.members]
    extra = [] if node.extra is None else [f"({show(node.extra)})*"]
    return "any-order(" + ", ".join(parts + extra) + ")"


def _inside(node: Node) -> str:
    text = show(node)
    single = type(node) in (Lit, Token, Chars, Ref, AnyOrder, Upto, Free) or type(node) is Repeat
    return text if single or (type(node) is Lexeme and " " not in text) else f"({text})"


def _times(least: int, most: int | None) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most), f"{{{least},{'' if most is None else most}}}")


def _shown(span: Span) -> str:
    low, high = (chr(n) if chr(n).isprintable() else f"\\x{n:02x}" for n in span)
    return low if span[0] == span[1] else f"{low}-{high}"
