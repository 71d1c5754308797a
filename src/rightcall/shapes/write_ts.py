"""Shapes as TypeScript writes them:  { path: "a.py", text: <<EOF\\n...\\nEOF }

Keys are bare where they are identifiers. A text may also be a heredoc, up to the first line that begins with its tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from rightcall.shapes.algebra import (
    EMPTY,
    NEVER,
    Lexeme,
    Lit,
    Node,
    Upto,
    Word,
    alt,
    chars,
    inverse,
    repeat,
    seq,
)
from rightcall.shapes.builder import Builder
from rightcall.shapes.value_shapes import NOTHING, Field, Object, Shape, TextShape
from rightcall.shapes.write_json import PLAIN_CHAR, Json, json_string

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch
_LETTERS = chars((0x41, 0x5A), (0x61, 0x7A), "_$")
_TAG = "EOF"


class Ts(Json):
    """`literal` writes a value as this wire renders it."""

    kind = "ts"

    def __init__(
        self, book: Builder, prefix: str, named: dict[str, Shape | None], literal: Callable[[Any], str]
    ) -> None:
        super().__init__(book, prefix, named)
        self.literal = literal

    def text(self, shape: TextShape) -> Node:
        if shape.pattern is not None:
            return super().text(shape)
        most = self.most(shape)
        name = f"ts_string_{shape.least}_{'' if most is None else most}"
        quoted = self.book.named(name, lambda: Lexeme(seq(Lit('"'), repeat(PLAIN_CHAR, shape.least, most), Lit('"'))))
        return alt(quoted, self._heredoc(most)) if shape.least < 2 else quoted

    def constant(self, text: str) -> Node:
        """A string of several lines may be a heredoc, as `render` writes it."""
        value = json.loads(text)
        if not isinstance(value, str) or "\n" not in value:
            return super().constant(text)
        return alt(super().constant(text), Lit(self.literal(value)))

    def _heredoc(self, most: int | None) -> Node:
        """A text no line of which begins with the tag, blanks before it or not. A blank right before the tag stands
        nowhere in it."""
        stop = (Lit(f"\n{_TAG}"),)
        rest = Upto(stop, 0, None if most is None else max(most - 1, 0), (f" {_TAG}", f"\t{_TAG}"))
        heads = [_TAG[:at] for at in range(len(_TAG))]
        begins = [seq(Lit(head), inverse(chars(_TAG[len(head)] + " \t\n")), rest) for head in heads]
        short = [seq(Lit(head), *stop) for head in heads]
        indent = Lexeme(repeat(chars(" \t"), 1, 64))
        indented = seq(indent, inverse(chars(_TAG[0] + " \t\n")), rest)
        return seq(Lit(f"<<{_TAG}\n"), repeat(Lit("\n"), 0, 8), alt(*begins, *short, indented))

    def object(self, shape: Object) -> Node:
        inside = self.members(shape.fields, shape)
        if inside == NEVER:
            return NEVER
        gap = self.book.gap
        if inside == EMPTY:
            return Lit("{}")
        found = seq(Lit("{"), gap(" "), inside, gap(" "), Lit("}"))
        may_be_empty = not shape.least and not any(field.required for field in shape.fields)
        return alt(Lit("{}"), found) if self.book.exact and may_be_empty else found

    def member(self, field: Field) -> Node:
        key: Node = json_string(field.name, ":")
        if _IDENTIFIER(field.name):
            key = alt(Lit(f"{field.name}:"), key)
        return seq(key, self.book.gap(" "), self.value(field.shape))

    def extra(self, shape: Object) -> Node | None:
        if shape.extra == NOTHING or shape.keys is not None:
            return super().extra(shape)
        quoted = super().extra(shape)
        names = tuple(field.name for field in shape.fields if _IDENTIFIER(field.name))
        bare = seq(Word("", _LETTERS, ":", names, 64, least=1), self.book.gap(" "), self.value(shape.extra))
        return bare if quoted is None else alt(bare, quoted)
