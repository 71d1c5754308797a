"""Shapes in the braces of the Gemma family:  call:f{city:<|"|>Oslo<|"|>,days:3}"""

from __future__ import annotations

import json
import re

from rightcall.parsing.values.notation import BRACED_KEY
from rightcall.shapes.algebra import NEVER, Lexeme, Lit, Node, Token, Upto, Word, alt, chars, inverse, seq
from rightcall.shapes.builder import Builder
from rightcall.shapes.value_shapes import NOTHING, Array, Field, Number, Object, OneOf, Shape, TextShape, options
from rightcall.shapes.write_json import CONTROL, Json

_BRACED_KEY = re.compile(BRACED_KEY).fullmatch
_BLANKS = " \t\r\n"


class Braces(Json):
    """Bare keys, and strings between two quotes of the format's own. `raw`: inside a list or an object a quoted text
    that is valid JSON would be read as that."""

    kind = "braces"

    def __init__(
        self, book: Builder, quote: tuple[Lit | Token, ...], raw: bool, prefix: str, named: dict[str, Shape | None]
    ) -> None:
        super().__init__(book, prefix, named)
        self.quote, self.raw = quote, raw
        self.inside = False

    def separator(self) -> Node:
        return Lit(",")

    def quoted(self, shape: TextShape, *, bare: bool) -> Node:
        most = self.most(shape)
        if shape.pattern is not None:
            return seq(*self.quote, Lexeme(shape.pattern), *self.quote)
        if not bare or not self.raw:
            return seq(*self.quote, Upto(self.quote, shape.least, most))
        return seq(*self.quote, _no_json(self.quote, shape.least, most))

    def text(self, shape: TextShape) -> Node:
        key = ("quoted", self.raw, shape)
        return self.book.shared(key, "quoted", lambda: self.quoted(shape, bare=True))

    def constant(self, text: str) -> Node:
        if text[0] == '"':
            value = json.loads(text)
            return seq(*self.quote, Lit(value), *self.quote) if not self.raw or not _is_json(value) else NEVER
        return super().constant(text)

    def argument(self, shape: Shape) -> Node:
        """A value right under the call where the schema wants text: a quoted one stays as it is, a bare number becomes
        text."""
        parts = [one for one in options(shape) if not isinstance(one, Number)]
        return alt(
            *[self.quoted(one, bare=False) if isinstance(one, TextShape) else self.top_constants(one) for one in parts]
        )

    def top_constants(self, shape: Shape) -> Node:
        if not isinstance(shape, OneOf):
            return self.value(shape)
        texts = [json.loads(text) for text in shape.texts if text[0] == '"']
        others = self.constants([text for text in shape.texts if text[0] not in '"-0123456789'])
        return alt(others, *[seq(*self.quote, Lit(text), *self.quote) for text in texts])

    def object(self, shape: Object) -> Node:
        inside = self.members(shape.fields, shape)
        return NEVER if inside == NEVER else seq(Lit("{"), inside, Lit("}"))

    def array(self, shape: Array) -> Node:
        return seq(Lit("["), self.items(shape, self.value, self.separator()), Lit("]"))

    def member(self, field: Field) -> Node:
        return seq(Lit(field.name + ":"), self.value(field.shape)) if _BRACED_KEY(field.name) else NEVER

    def extra(self, shape: Object) -> Node | None:
        if shape.extra == NOTHING or shape.keys is not None:
            return None
        names = tuple(field.name for field in shape.fields)
        word = Word(
            "",
            inverse(
                chars(
                    CONTROL,
                    " :{}[],<>\"'\x7f\x85\xa0\u2028\u2029\u3000",
                    (0x1680, 0x1680),
                    (0x2000, 0x200F),
                    "\u202f\u205f",
                )
            ),
            ":",
            names,
            64,
            least=1,
        )
        return seq(word, self.value(shape.extra))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _no_json(stop: tuple[Lit | Token, ...], least: int, most: int | None) -> Node:
    """Text up to the quote that no JSON reader takes for something other than text."""
    rest = None if most is None else max(most - 1, 0)
    tail = Upto(stop, max(least - 1, 0), rest)
    odd = chars('-0123456789"[{' + _BLANKS)
    parts: list[Node] = [seq(inverse(chars(*odd.spans, "tfn")), tail)]
    for word in ("true", "false", "null"):
        for at in range(1, len(word)):
            parts.append(seq(Lit(word[:at]), inverse(chars(word[at])), tail))
            if at >= least:
                parts.append(seq(Lit(word[:at]), *stop))
        parts.append(seq(Lit(word), inverse(chars(_BLANKS)), tail))
    return alt(*parts, *([] if least else [seq(*stop)]))
