"""Shapes as Python literals:  f(city="Oslo", days=3, ok=True)"""

from __future__ import annotations

import json
import re

from rightcall.shapes.algebra import NEVER, Lexeme, Lit, Member, Node, Word, alt, chars, inverse, repeat, seq
from rightcall.shapes.value_shapes import NOTHING, Field, Object, TextShape
from rightcall.shapes.write_json import CONTROL, PLAIN_CHAR, Json, in_any_order, json_string

_SINGLE = inverse(chars(CONTROL, "'\\"))
_WORDS = {"true": "True", "false": "False", "null": "None"}
_PYTHON_KEY = re.compile(r"[\w.\-]+").fullmatch


class Python(Json):
    """Values as Python writes them; a string may stand in single quotes if nothing in it needs an escape."""

    kind = "python"

    def constant(self, text: str) -> Node:
        if text in _WORDS:
            return Lit(_WORDS[text])
        if text[0] == '"':
            value = json.loads(text)
            simple = "'" not in value and "\\" not in value and value.isprintable()
            return alt(json_string(value), Lit(f"'{value}'")) if simple else json_string(value)
        return super().constant(text)

    def text(self, shape: TextShape) -> Node:
        if shape.pattern is not None:
            return super().text(shape)
        most = self.most(shape)
        double = seq(Lit('"'), repeat(PLAIN_CHAR, shape.least, most), Lit('"'))
        single = seq(Lit("'"), repeat(_SINGLE, max(shape.least, 1), most), Lit("'"))
        single = alt(single, *([] if shape.least else [Lit("''")]))
        name = f"python_string_{shape.least}_{'' if most is None else most}"
        # An empty string must not look like the beginning of three quotes.
        return self.book.named(name, lambda: Lexeme(alt(double, single) if most != 0 else double))

    def arguments(self, name: str, shape: Object) -> Node:
        """`name(key=value, ...)`."""
        made = [Member(self.keyword(field), field.required) for field in shape.fields]
        extra = None
        if shape.extra != NOTHING and shape.keys is None:
            word = Word(
                "",
                chars((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_"),
                "=",
                tuple(f.name for f in shape.fields),
                64,
                least=1,
            )
            extra = seq(word, self.value(shape.extra))
        gap = self.book.gap()
        return seq(Lit(f"{name}("), gap, in_any_order(made, self.separator(), extra, shape), gap, Lit(")"))

    def keyword(self, field: Field) -> Node:
        if not _PYTHON_KEY(field.name):
            return NEVER
        return seq(Lit(f"{field.name}="), self.value(field.shape))
