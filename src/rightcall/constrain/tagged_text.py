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
    Lit,
    Member,
    Node,
    Token,
    Upto,
    Word,
    alt,
    chars,
    inverse,
    lengths,
    maybe,
    seq,
)
from rightcall.constrain.builder import BLANKS, Builder, first, pieces, split_marker, stop_sequence, text_of
from rightcall.constrain.json_text import Json, members_in_any_order
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
    """Writes the arguments of one tool, each in its tags. What cannot be expressed is reported to the builder."""

    def __init__(self, body: Params, book: Builder, tool: str, values: Json, kinds: dict[str, Kind]) -> None:
        self.body, self.book, self.tool, self.json, self.kinds = body, book, tool, values, kinds
        self.keyed = "{key}" in first(body.value_close)

    def arguments(self, shape: Object) -> Node:
        """Return the node of all arguments; `NEVER` if a required one cannot be written. Optional ones that cannot be
        written are left out and reported."""
        made = [Member(self.argument(field), field.required) for field in shape.fields]
        self.book.report_lost_arguments(self.tool, shape.fields, made)
        return members_in_any_order(made, EMPTY, self.undeclared_argument(shape), shape)

    def undeclared_argument(self, shape: Object) -> Node | None:
        """Return the node of an argument with an undeclared name, in its tags; None if the shape allows none or their
        names must match a pattern, or if the end tag would have to repeat the name."""
        if shape.extra == NOTHING or shape.keys is not None or self.keyed:
            return None  # no grammar makes a free name agree with the same name in its end tag
        names = tuple(field.name for field in shape.fields)
        word = Word("", _KEY_CHAR, "", names, 64, least=1)
        return self.parameter(word, "", lambda stop: self.value_of_kind("any", shape.extra, stop), shape.extra)

    def argument(self, field: Field) -> Node:
        """Return the node of a declared argument in its tags; `NEVER` if its name or any value cannot be written in
        tags."""
        if not (_QUOTED if self.body.escapes else _KEY)(field.name) or field.name != field.name.strip():
            return NEVER
        kind = self.kinds.get(field.name, "any")
        return self.parameter(
            field.name, field.name, lambda stop: self.value_of_kind(kind, field.shape, stop), field.shape
        )

    def _space_after_value(self, rendered: str) -> Node:
        """Return the node of the white space after a value's closing tag, which a format renders as `rendered`. For
        none or a line break it is an optional line break, since more would make the end of the body ambiguous; else
        optional white space. In an `exact` grammar it is `rendered`."""
        return maybe(Lit("\n")) if rendered in ("", "\n") and not self.book.exact else self.book.gap(rendered)

    def parameter(self, key: str | Node, name: str, write: object, shape: Shape) -> Node:
        """Return the node of an argument in its tags, with the type word if the format has one. `key` is the name to
        write in the opening tag, `name` the one in the closing tag; `write`, a function of the closing tag, returns the
        value followed by that tag. `NEVER` if there is no such value."""
        close = split_marker(first(self.body.value_close))
        opener = split_marker(first(self.body.param))
        line = opener.after if "\n" in opener.after else ""
        stop = stop_sequence(
            [Lit(close.before), *pieces(close.core, key=name)] if close.before else pieces(close.core, key=name)
        )
        if self.body.types:
            return alt(
                *[
                    seq(*self._opening_tag(opener, key, word, line), value, self._space_after_value(close.after))
                    for word, value in self.typed_values(shape, stop)
                ]
            )
        value = write(stop)  # type: ignore[operator]
        return (
            seq(*self._opening_tag(opener, key, "", line), value, self._space_after_value(close.after))
            if value != NEVER
            else NEVER
        )

    def _opening_tag(self, opener: tuple[str, str, str], key: str | Node, word: str, line: str) -> list[Node]:
        """Return the nodes of the opening tag, given split into its edges, with the name `key` and the type word
        `word`, followed by the text `line`."""
        nodes = pieces(opener[1], key=escape_name(self.body, key) if isinstance(key, str) else key, type=word)
        if isinstance(key, Word):
            nodes = _merge_literals(nodes, key)
        return [*nodes, Lit(line)]

    # -- values --------------------------------------------------------------------------------------------------------

    def value_of_kind(self, kind: Kind, shape: Shape, stop: Stop) -> Node:
        """Return the node of a value followed by its closing tag `stop`, written as the parser reads an argument of
        this kind: JSON, text, text or null, or either. Values of the shape that cannot be read that way are left out;
        `NEVER` if none remain."""
        if kind == "any":
            return self.value_of_unknown_kind(shape, stop)
        parts = options(self.unfold(shape))
        if kind == "json":
            return self.containers(_without_texts(parts), stop)
        words, nulls = _text_constants(parts), []
        if kind == "nullable":
            words = [word for word in words if word not in ("null", "None")]
            nulls = [seq(Lit("null"), *stop)] if _has_null(parts) else []
        texts = [self.free_text(one, stop) for one in parts if isinstance(one, TextShape)]
        return alt(*texts, *[self.text_constant(word, stop) for word in words], *nulls)

    def value_of_unknown_kind(self, shape: Shape, stop: Stop) -> Node:
        """Return the node of a value followed by its closing tag `stop`; free text if the shape is `ANYTHING`. The
        parser reads such a value as JSON if it is valid JSON, else as text: it is written as JSON, and a text that
        begins as no JSON does also as it is, unless it must match a pattern."""
        if shape == ANYTHING:
            return self.free_text(TextShape(), stop)
        parts = options(self.unfold(shape))
        texts = [one for one in parts if isinstance(one, TextShape) and one.pattern is None]
        plain = [text_that_is_not_json(stop, one.least, self.json.max_length(one)) for one in texts]
        words = [word for word in _text_constants(parts) if not is_json(word) and word == word.strip()]
        return alt(
            seq(alt(*map(self.json.value, parts)), *stop),
            *plain,
            *[self.text_constant(word, stop) for word in words],
        )

    def typed_values(self, shape: Shape, stop: Stop) -> list[tuple[str, Node]]:
        """Return, for each alternative of a shape, the type word of its opening tag and the node of the value followed
        by its closing tag `stop`. Alternatives that cannot be written are left out."""
        words = {"string": "", "json": ""}
        for word, kind in self.body.types.items():
            words[kind] = words[kind] or word
        found: list[tuple[str, Node]] = []
        for one in options(self.unfold(shape)):
            if isinstance(one, TextShape):
                found.append((words["string"], self.free_text(one, stop)))
            elif isinstance(one, OneOf):
                for text in one.texts:
                    value = json.loads(text)
                    if isinstance(value, str):
                        found.append((words["string"], self.text_constant(value, stop)))
                    else:
                        found.append(
                            (self.type_word(_json_type_of(value), words["json"]), seq(self.json.constant(text), *stop))
                        )
            else:
                word = self.type_word(_JSON_TYPES.get(type(one), "object"), words["json"])
                found.append((word, seq(self.json.value(one), *stop)))
        return [(word, node) for word, node in found if node != NEVER]

    def type_word(self, name: str, default: str) -> str:
        """Return the word for a JSON type in the tag; `default` if the format has none of its own."""
        return name if self.body.types.get(name) == "json" else default

    def unfold(self, shape: Shape) -> Shape:
        """Return a shape with references at its top level, and those among its alternatives, replaced by the shapes
        that they name; after 32 references in a row, a reference remains."""
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

    def free_text(self, shape: TextShape, stop: Stop) -> Node:
        """Return the node of a text of the shape's length followed by its closing tag `stop`. If the format has quotes,
        the text may also be in them, and without them does not contain the opening quote. For a shape with a pattern,
        it is a matching text without quotes."""
        if shape.pattern is not None:
            return Upto(stop, inside=shape.pattern)
        most = self.json.max_length(shape)
        without = (self.body.quote[0],) if self.body.quote else ()
        text: Node = Upto(stop, shape.least, most, without)
        if self.body.quote:
            quoted = stop_sequence([Lit(self.body.quote[1]), *stop])
            text = alt(text, seq(Lit(self.body.quote[0]), Upto(quoted, shape.least, most)))
        return text

    def text_constant(self, word: str, stop: Stop) -> Node:
        """Return the node of this text with its closing tag; `NEVER` if the text contains the tag."""
        return NEVER if text_of(stop) in word else seq(Lit(word), *stop)

    # -- containers ----------------------------------------------------------------------------------------------------

    def containers(self, shapes: list[Shape], stop: Stop) -> Node:
        """Return the node of a value of one of these shapes, which are no texts, followed by its closing tag `stop`: as
        nested tags if the format has them, else as JSON."""
        if not self.body.item:
            return seq(alt(*map(self.json.value, shapes)), *stop)
        return alt(*[self.nested_tags(one, stop, 0) for one in shapes])

    def nested_tags(self, shape: Shape, stop: Stop, depth: int) -> Node:
        """Return the node of a list or an object as nested tags, or of a scalar as text, followed by the closing tag
        `stop`; `NEVER` if it cannot be written. A union or an object with undeclared names, whose end tags a grammar
        cannot match, is JSON at the top level; further inside, and deeper than eight levels, only scalars are
        written."""
        if isinstance(shape, ShapeReference):
            shape = self.unfold(shape)
        if depth > 8 or _has_free_names(shape):
            return seq(self.json.value(shape), *stop) if depth == 0 else self.scalar_with_closing_tag(shape, stop)
        if isinstance(shape, Array):
            inside = self.json.items(shape, lambda one: self.nested_tag(self.body.item, one, depth), EMPTY)
        elif isinstance(shape, Object):
            made = [Member(self.nested_tag(field.name, field.shape, depth), field.required) for field in shape.fields]
            inside = members_in_any_order(made, EMPTY, None, shape)
        else:
            return self.scalar_with_closing_tag(shape, stop)
        return NEVER if inside == NEVER else seq(inside, *stop)

    def nested_tag(self, name: str, shape: Shape, depth: int) -> Node:
        """Return the node of a member or item of this name and shape between its opening and closing tag; `NEVER` if
        its name cannot be written in a tag, or its value cannot be written."""
        if not re.fullmatch(r'[^<>"\s/]{1,64}', name):
            return NEVER
        opener, close = first(self.body.param), first(self.body.value_close)
        return seq(
            *pieces(opener, key=name), self.nested_tags(shape, stop_sequence(pieces(close, key=name)), depth + 1)
        )

    def scalar_with_closing_tag(self, shape: Shape, stop: Stop) -> Node:
        """Return the node of a value that is neither object nor list, followed by its closing tag `stop`: only raw text
        if the shape allows text, else only its text constants if it has some, else JSON."""
        parts = options(self.unfold(shape))
        texts = [one for one in parts if isinstance(one, TextShape)]
        if texts:
            return self.text_with_closing_tag(texts, stop)
        words = _text_constants(parts)
        if words:
            return alt(*[self.text_constant(word, stop) for word in words])
        return seq(alt(*[self.json.value(one) for one in parts if not isinstance(one, (Array, Object))]), *stop)

    def text_with_closing_tag(self, texts: list[TextShape], stop: Stop) -> Node:
        """Return the node of a text of one of these shapes inside nested tags, followed by its closing tag `stop`. A
        text without a pattern contains nothing that would be parsed as a further tag."""
        without = self.tags_in_text(stop)
        found = [Upto(stop, one.least, self.json.max_length(one), without) for one in texts if one.pattern is None]
        return alt(*found, *[Upto(stop, inside=one.pattern) for one in texts if one.pattern is not None])

    def tags_in_text(self, stop: Stop) -> tuple[str, ...]:
        """Return the texts that a text inside tags must not contain, because they would be parsed as further tags;
        those in `stop` are left out."""
        opens = first(self.body.param).partition("{key}")[0].strip(BLANKS)
        return tuple(opens + char for char in _NAME_BEGINS if opens + char not in text_of(stop))


def is_json(text: str) -> bool:
    """Return whether a text is valid JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def text_that_is_not_json(stop: Stop, least: int, most: int | None) -> Node:
    """Return the node of text of `least` to `most` characters followed by `stop`, which a parser does not read as JSON.
    Excluded, so also some harmless text, are texts that begin with white space, a digit, `-`, `"`, `[` or `{`, and
    `true`, `false` and `null`, also before white space."""
    odd = chars('-0123456789"[{' + BLANKS)
    begins: list[Node] = [inverse(chars(*odd.spans, "tfn"))]
    whole = [] if least else [""]
    for word in ("true", "false", "null"):
        begins += [seq(Lit(word[:at]), inverse(chars(word[at]))) for at in range(1, len(word))]
        begins.append(seq(Lit(word), inverse(chars(BLANKS))))
        whole += [word[:at] for at in range(max(least, 1), len(word)) if most is None or at <= most]
    sizes = [(begin, lengths(begin)[0]) for begin in begins]
    parts = [
        seq(begin, Upto(stop, max(least - size, 0), None if most is None else most - size))
        for begin, size in sizes
        if most is None or size <= most
    ]
    return alt(*[seq(Lit(word), *stop) for word in whole], *parts)


def _text_constants(parts: Iterable[Shape]) -> list[str]:
    """Return the constants that are texts."""
    return [json.loads(text) for one in parts if isinstance(one, OneOf) for text in one.texts if text[0] == '"']


def _without_texts(parts: Iterable[Shape]) -> list[Shape]:
    """Return the shapes without texts and text constants."""
    unworded = [_without_text_constants(one) for one in parts if not isinstance(one, TextShape)]
    return [one for one in unworded if one != NOTHING]


def _has_null(parts: Iterable[Shape]) -> bool:
    """Return whether one of the shapes is a set of constants with null."""
    return any(isinstance(one, OneOf) and "null" in one.texts for one in parts)


def _has_free_names(shape: Shape) -> bool:
    """Return whether a shape allows members with undeclared names; True for a union and for `ANYTHING`, of which that
    is not checked."""
    if isinstance(shape, Union) or shape == ANYTHING:
        return True
    return isinstance(shape, Object) and shape.extra != NOTHING


def _without_text_constants(shape: Shape) -> Shape:
    """Return a shape of constants without those that are texts, `NOTHING` if none remain; any other shape unchanged."""
    if not isinstance(shape, OneOf):
        return shape
    texts = tuple(text for text in shape.texts if text[0] != '"')
    return OneOf(texts) if texts else NOTHING


def _json_type_of(value: object) -> str:
    """Return the JSON type of a value that is no text: "boolean", "null", "object", "array" or "number"."""
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def _merge_literals(nodes: list[Node], word: Word) -> list[Node]:
    """Return the nodes of an opening tag with the undeclared name `word`, which is one of them, and the literals next
    to it merged into one `Word`, which becomes one terminal."""
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
