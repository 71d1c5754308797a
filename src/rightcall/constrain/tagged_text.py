"""Arguments in tags:  <parameter=city>\\nOslo\\n</parameter>

A value's text is parsed by its schema's kind (`schema.places`), or by the type in its tag, so it is written by the same
rule. A text never contains the marker that closes it: a model could not end such a value.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable

from rightcall.constrain.algebra import (
    EMPTY,
    NEVER,
    Lexeme,
    Lit,
    Member,
    Node,
    Token,
    Upto,
    Word,
    alphabet,
    alt,
    chars,
    has,
    maybe,
    repeat,
    seq,
)
from rightcall.constrain.builder import BLANKS, Builder, first, pieces, split_marker, stop_sequence, text_of
from rightcall.constrain.json_text import Json, in_any_order
from rightcall.constrain.value_shapes import (
    ANYTHING,
    NOTHING,
    Array,
    Field,
    Number,
    Object,
    OneOf,
    Shape,
    ShapeReference,
    TextShape,
    Union,
    options,
)
from rightcall.formats.spec import Params, escape_name
from rightcall.schema.places import Kind

Stop = tuple[Lit | Token, ...]
_KEY = re.compile(r'[^<>"\r\n/][^<>"\r\n]{0,255}').fullmatch
_QUOTED = re.compile(r"[^\r\n]{1,40}").fullmatch  # in quotation marks, with escapes
_KEY_CHAR = chars((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_")
_JSON_TYPES = {Number: "number", Object: "object", Array: "array"}
_NAME_BEGINS = string.ascii_letters + string.digits + "_"


class TagShapes:
    """Writes the arguments of one tool. What cannot be expressed is reported to the builder."""

    def __init__(self, body: Params, book: Builder, tool: str, values: Json, kinds: dict[str, Kind]) -> None:
        self.body, self.book, self.tool, self.json, self.kinds = body, book, tool, values, kinds
        self.keyed = "{key}" in first(body.value_close)

    def arguments(self, shape: Object) -> Node:
        made = [Member(self.argument(field), field.required) for field in shape.fields]
        return in_any_order(made, EMPTY, self.extra(shape), shape)

    def extra(self, shape: Object) -> Node | None:
        if shape.extra == NOTHING or shape.keys is not None or self.keyed:
            return None  # no grammar makes a free name agree with the same name in its end tag
        names = tuple(field.name for field in shape.fields)
        word = Word("", _KEY_CHAR, "", names, 64, least=1)
        return self.parameter(word, "", lambda stop: self.by_kind("any", shape.extra, stop, ""), shape.extra)

    def argument(self, field: Field) -> Node:
        if not (_QUOTED if self.body.escapes else _KEY)(field.name) or field.name != field.name.strip():
            return NEVER
        kind = self.kinds.get(field.name, "any")
        return self.parameter(
            field.name, field.name, lambda stop: self.by_kind(kind, field.shape, stop, field.name), field.shape
        )

    def _space_after_value(self, rendered: str) -> Node:
        """Return the white space after a value. Other than a line break, it would make the end of the body
        ambiguous."""
        return maybe(Lit("\n")) if rendered in ("", "\n") and not self.book.exact else self.book.gap(rendered)

    def parameter(self, key: str | Node, name: str, write: object, shape: Shape) -> Node:
        """Return an argument in its tags."""
        close = split_marker(first(self.body.value_close))
        opener = split_marker(first(self.body.param))
        line = opener.after if "\n" in opener.after else ""
        stop = stop_sequence(
            [Lit(close.before), *pieces(close.core, key=name)] if close.before else pieces(close.core, key=name)
        )
        if self.body.types:
            return alt(
                *[
                    seq(*self._open(opener, key, word, line), value, self._space_after_value(close.after))
                    for word, value in self.typed(shape, stop, name)
                ]
            )
        value = write(stop)  # type: ignore[operator]
        return (
            seq(*self._open(opener, key, "", line), value, self._space_after_value(close.after))
            if value != NEVER
            else NEVER
        )

    def _open(self, opener: tuple[str, str, str], key: str | Node, word: str, line: str) -> list[Node]:
        nodes = pieces(opener[1], key=escape_name(self.body, key) if isinstance(key, str) else key, type=word)
        if isinstance(key, Word):
            nodes = _merge_literals(nodes, key)
        return [*nodes, Lit(line)]

    # -- values --------------------------------------------------------------------------------------------------------

    def by_kind(self, kind: Kind, shape: Shape, stop: Stop, name: str) -> Node:
        """Return a value with its closing tag, written as the parser reads an argument of this kind."""
        if kind == "any":
            return self.any(shape, stop)
        parts = options(self.unfold(shape))
        if kind == "json":
            return self.containers(_without_texts(parts), stop)
        words, nulls = _text_constants(parts), []
        if kind == "nullable":
            words = [word for word in words if word not in ("null", "None")]
            nulls = [seq(Lit("null"), *stop)] if _has_null(parts) else []
        texts = [self.text(one, stop, name) for one in parts if isinstance(one, TextShape)]
        return alt(*texts, *[self.word(word, stop) for word in words], *nulls)

    def any(self, shape: Shape, stop: Stop) -> Node:
        """Return a value of unknown kind: the parser reads it as JSON if it is valid JSON."""
        if shape == ANYTHING:
            return self.free(TextShape(), stop)
        return seq(alt(*map(self.json.value, options(self.unfold(shape)))), *stop)

    def typed(self, shape: Shape, stop: Stop, name: str) -> list[tuple[str, Node]]:
        """Return the type word of the tag and the value for each alternative of a shape."""
        words = {"string": "", "json": ""}
        for word, kind in self.body.types.items():
            words[kind] = words[kind] or word
        found: list[tuple[str, Node]] = []
        for one in options(self.unfold(shape)):
            if isinstance(one, TextShape):
                found.append((words["string"], self.text(one, stop, name)))
            elif isinstance(one, OneOf):
                for text in one.texts:
                    value = json.loads(text)
                    if isinstance(value, str):
                        found.append((words["string"], self.word(value, stop)))
                    else:
                        found.append(
                            (self.type_word(_type_of(value), words["json"]), seq(self.json.constant(text), *stop))
                        )
            else:
                word = self.type_word(_JSON_TYPES.get(type(one), "object"), words["json"])
                found.append((word, seq(self.json.value(one), *stop)))
        return [(word, node) for word, node in found if node != NEVER]

    def type_word(self, name: str, default: str) -> str:
        """Return the word for a type in the tag."""
        return name if self.body.types.get(name) == "json" else default

    def unfold(self, shape: Shape) -> Shape:
        """Return a shape with its top-level references resolved."""
        for _ in range(32):
            if not isinstance(shape, ShapeReference):
                break
            shape = self.json._named.get(shape.name) or ANYTHING
        if isinstance(shape, Union) and any(isinstance(one, ShapeReference) for one in shape.options):
            return Union(
                tuple(
                    piece
                    for one in shape.options
                    for piece in (options(self.unfold(one)) if isinstance(one, ShapeReference) else (one,))
                )
            )
        return shape

    def text(self, shape: TextShape, stop: Stop, name: str) -> Node:
        if shape.pattern is not None:
            if not has(alphabet(shape.pattern), text_of(stop)[0]):
                return (
                    seq(Lexeme(shape.pattern), *stop)
                    if isinstance(stop[0], Token)
                    else seq(Lexeme(seq(shape.pattern, stop[0])), *stop[1:])
                )
            self.book.limit(
                self.tool,
                f"/properties/{name}/pattern",
                "pattern",
                "any text: it may hold the beginning of the closing tag",
            )
            shape = TextShape()
        return self.free(shape, stop)

    def free(self, shape: TextShape, stop: Stop) -> Node:
        most = self.json.most(shape)
        without = (self.body.quote[0],) if self.body.quote else ()
        text: Node = Upto(stop, shape.least, most, without)
        if self.body.quote:
            quoted = stop_sequence([Lit(self.body.quote[1]), *stop])
            text = alt(text, seq(Lit(self.body.quote[0]), Upto(quoted, shape.least, most)))
        return text

    def word(self, word: str, stop: Stop) -> Node:
        return NEVER if text_of(stop) in word else seq(Lit(word), *stop)

    # -- containers ----------------------------------------------------------------------------------------------------

    def containers(self, shapes: list[Shape], stop: Stop) -> Node:
        if not self.body.item:
            return seq(alt(*map(self.json.value, shapes)), *stop)
        return alt(*[self.nested(one, stop, 0) for one in shapes])

    def nested(self, shape: Shape, stop: Stop, depth: int) -> Node:
        """Return a list or an object as nested tags, and a scalar as text. An object with undeclared names is written
        as JSON, since a grammar cannot make a free name agree with its closing tag."""
        if isinstance(shape, ShapeReference):
            shape = self.unfold(shape)
        if depth > 8 or _has_free_names(shape):
            return seq(self.json.value(shape), *stop) if depth == 0 else self.scalar_with_closing_tag(shape, stop)
        if isinstance(shape, Array):
            inside = self.row(shape, depth)
        elif isinstance(shape, Object):
            made = [Member(self.child(field.name, field.shape, depth), field.required) for field in shape.fields]
            inside = in_any_order(made, EMPTY, None, shape)
        else:
            return self.scalar_with_closing_tag(shape, stop)
        return NEVER if inside == NEVER else seq(inside, *stop)

    def row(self, shape: Array, depth: int) -> Node:
        if shape.prefix:
            return NEVER  # the tags of a list are all alike, and are read by one schema
        most = shape.most if shape.most is not None else self.book.bounds.array
        child = self.child(self.body.item, shape.items, depth) if shape.items != NOTHING else NEVER
        return repeat(child, shape.least, most)

    def child(self, name: str, shape: Shape, depth: int) -> Node:
        if not re.fullmatch(r'[^<>"\s/]{1,64}', name):
            return NEVER
        opener, close = first(self.body.param), first(self.body.value_close)
        return seq(*pieces(opener, key=name), self.nested(shape, stop_sequence(pieces(close, key=name)), depth + 1))

    def scalar_with_closing_tag(self, shape: Shape, stop: Stop) -> Node:
        """Return the node of a value that is neither object nor list, with its closing tag: raw text if the shape
        allows any text, else its text constants, else JSON."""
        parts = options(self.unfold(shape))
        texts = [one for one in parts if isinstance(one, TextShape)]
        if texts:
            return self.text_with_closing_tag(texts, stop)
        words = _text_constants(parts)
        if words:
            return alt(*[self.word(word, stop) for word in words])
        return seq(alt(*[self.json.value(one) for one in parts if not isinstance(one, (Array, Object))]), *stop)

    def text_with_closing_tag(self, texts: list[TextShape], stop: Stop) -> Node:
        """Return a text inside nested tags, with its closing tag."""
        without = self.tags_in_text(stop)
        found = [Upto(stop, one.least, self.json.most(one), without) for one in texts if one.pattern is None]
        return alt(*found, *[seq(Lexeme(one.pattern), *stop) for one in texts if one.pattern is not None])

    def tags_in_text(self, stop: Stop) -> tuple[str, ...]:
        """Return the texts that a text inside tags must not contain, because they would be parsed as further tags."""
        opens = first(self.body.param).partition("{key}")[0].strip(BLANKS)
        return tuple(opens + char for char in _NAME_BEGINS if opens + char not in text_of(stop))


def _text_constants(parts: Iterable[Shape]) -> list[str]:
    """Return the constants that are texts."""
    return [json.loads(text) for one in parts if isinstance(one, OneOf) for text in one.texts if text[0] == '"']


def _without_texts(parts: Iterable[Shape]) -> list[Shape]:
    """Return the shapes without texts and text constants."""
    unworded = [_without_text_constants(one) for one in parts if not isinstance(one, TextShape)]
    return [one for one in unworded if one != NOTHING]


def _has_null(parts: Iterable[Shape]) -> bool:
    return any(isinstance(one, OneOf) and "null" in one.texts for one in parts)


def _has_free_names(shape: Shape) -> bool:
    if isinstance(shape, Union) or shape == ANYTHING:
        return True
    return isinstance(shape, Object) and shape.extra != NOTHING


def _without_text_constants(shape: Shape) -> Shape:
    if not isinstance(shape, OneOf):
        return shape
    texts = tuple(text for text in shape.texts if text[0] != '"')
    return OneOf(texts) if texts else NOTHING


def _type_of(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _merge_literals(nodes: list[Node], word: Word) -> list[Node]:
    """Merge the name of an undeclared argument with the literals next to it into one terminal."""
    at = nodes.index(word)
    before = nodes[at - 1] if at and isinstance(nodes[at - 1], Lit) else None
    after = nodes[at + 1] if at + 1 < len(nodes) and isinstance(nodes[at + 1], Lit) else None
    made = Word(
        before.text if isinstance(before, Lit) else "",
        word.char,
        after.text if isinstance(after, Lit) else "",
        word.without,
        word.most,
        least=1,
    )
    return [*nodes[: at - (before is not None)], made, *nodes[at + 1 + (after is not None) :]]
