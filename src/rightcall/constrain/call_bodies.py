"""The grammar of one call in each body kind, and shapes as Python, TypeScript and Gemma literals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

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
    alt,
    chars,
    inverse,
    repeat,
    seq,
)
from rightcall.constrain.builder import QUOTED_ID, Builder, first, nodes_around_arguments, pieces, stop_sequence
from rightcall.constrain.json_text import CONTROL, PLAIN_CHAR, ArgumentsShape, Json, json_string, members_in_any_order
from rightcall.constrain.tagged_text import TagShapes, is_json, text_that_is_not_json
from rightcall.constrain.value_shapes import NOTHING, Array, Field, Number, Object, OneOf, Shape, TextShape, options
from rightcall.formats.body_kinds import write_literal
from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Params, Pythonic, TsCall
from rightcall.parsing.values.notation import BRACED_KEY

_SINGLE = inverse(chars(CONTROL, "'\\"))
_WORDS = {"true": "True", "false": "False", "null": "None"}
_PYTHON_KEY = re.compile(r"[\w.\-]+").fullmatch


class Python(Json):
    """Values as Python literals. A string may be in single quotes if nothing in it needs an escape."""

    kind = "python"

    def constant(self, text: str) -> Node:
        """Return the node of a constant, given as JSON text, as a Python literal: `true` as `True`, and a text in
        double quotes, and also in single ones if it needs no escape there. Other constants are written as by
        `Json.constant`."""
        if text in _WORDS:
            return Lit(_WORDS[text])
        if text[0] == '"':
            value = json.loads(text)
            simple = "'" not in value and "\\" not in value and value.isprintable()
            return alt(json_string(value), Lit(f"'{value}'")) if simple else json_string(value)
        return super().constant(text)

    def text(self, shape: TextShape) -> Node:
        """Return a reference to the rule for a text of the shape's length, in double quotes, or in single ones without
        escapes; with a pattern, for its matches, in double quotes alone."""
        if shape.pattern is not None:
            return super().text(shape)
        most = self.max_length(shape)
        double = seq(Lit('"'), repeat(PLAIN_CHAR, shape.least, most), Lit('"'))
        single = seq(Lit("'"), repeat(_SINGLE, max(shape.least, 1), most), Lit("'"))
        single = alt(single, *([] if shape.least else [Lit("''")]))
        name = f"python_string_{shape.least}_{'' if most is None else most}"
        # An empty string must not look like the beginning of three quotes.
        return self.book.define_rule(name, lambda: Lexeme(alt(double, single) if most != 0 else double))

    def arguments(self, name: str, shape: Object) -> Node:
        """Return the node of the whole call `name(key=value, ...)` with arguments in any order, and undeclared ones if
        the shape allows them under any name. Optional arguments that cannot be written are left out and reported; with
        a required one the node is `NEVER`."""
        made = [Member(self.keyword(field), field.required) for field in shape.fields]
        self.book.report_lost_arguments(name, shape.fields, made)
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
        return seq(Lit(f"{name}("), gap, members_in_any_order(made, self.separator(), extra, shape), gap, Lit(")"))

    def keyword(self, field: Field) -> Node:
        """Return the node of `key=value`; `NEVER` if the name of the field cannot be a keyword, or its value cannot be
        written."""
        if not _PYTHON_KEY(field.name):
            return NEVER
        return seq(Lit(f"{field.name}="), self.value(field.shape))


_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*").fullmatch
_LETTERS = chars((0x41, 0x5A), (0x61, 0x7A), "_$")
_TAG = "EOF"


class Ts(Json):
    """Values as TypeScript literals. `literal` writes a value as `render` does."""

    kind = "ts"

    def __init__(
        self, book: Builder, prefix: str, named: dict[str, Shape | None], literal: Callable[[Any], str]
    ) -> None:
        super().__init__(book, prefix, named)
        self.literal = literal

    def text(self, shape: TextShape) -> Node:
        """Return the node of a text in double quotes, and, if it may have fewer than two characters, also as a heredoc,
        which may be empty; with a pattern, of its matches in double quotes."""
        if shape.pattern is not None:
            return super().text(shape)
        most = self.max_length(shape)
        name = f"ts_string_{shape.least}_{'' if most is None else most}"
        quoted = self.book.define_rule(
            name, lambda: Lexeme(seq(Lit('"'), repeat(PLAIN_CHAR, shape.least, most), Lit('"')))
        )
        return alt(quoted, self._heredoc(most)) if shape.least < 2 else quoted

    def constant(self, text: str) -> Node:
        """Return the node of a constant, given as JSON text, as `Json.constant` does. A text of several lines may also
        be a heredoc, as `render` writes it."""
        value = json.loads(text)
        if not isinstance(value, str) or "\n" not in value:
            return super().constant(text)
        return alt(super().constant(text), Lit(self.literal(value)))

    def _heredoc(self, most: int | None) -> Node:
        """Return the node of a heredoc of at most about `most` characters (None: no limit). No line of its text begins
        with the tag, not even after blanks."""
        stop = (Lit(f"\n{_TAG}"),)
        rest = Upto(stop, 0, None if most is None else max(most - 1, 0), (f" {_TAG}", f"\t{_TAG}"))
        heads = [_TAG[:at] for at in range(len(_TAG))]
        begins = [seq(Lit(head), inverse(chars(_TAG[len(head)] + " \t\n")), rest) for head in heads]
        short = [seq(Lit(head), *stop) for head in heads]
        indent = Lexeme(repeat(chars(" \t"), 1, 64))
        indented = seq(indent, inverse(chars(_TAG[0] + " \t\n")), rest)
        return seq(Lit(f"<<{_TAG}\n"), repeat(Lit("\n"), 0, 8), alt(*begins, *short, indented))

    def object(self, shape: Object) -> Node:
        """Return the node of an object in braces, `{}` if it has no members; `NEVER` if a required member cannot be
        written."""
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
        """Return the node of `key: value`, where the key is in quotes, or also bare if it is an identifier; `NEVER` if
        the value cannot be written."""
        key: Node = json_string(field.name, ":")
        if _IDENTIFIER(field.name):
            key = alt(Lit(f"{field.name}:"), key)
        return seq(key, self.book.gap(" "), self.value(field.shape))

    def undeclared_member(self, shape: Object) -> Node | None:
        """Return the node of an undeclared member, with a bare or a quoted name; None if the shape allows none. A name
        that must match a pattern is quoted."""
        if shape.extra == NOTHING or shape.keys is not None:
            return super().undeclared_member(shape)
        quoted = super().undeclared_member(shape)
        names = tuple(field.name for field in shape.fields if _IDENTIFIER(field.name))
        bare = seq(Word("", _LETTERS, ":", names, 64, least=1), self.book.gap(" "), self.value(shape.extra))
        return bare if quoted is None else alt(bare, quoted)


_BRACED_KEY = re.compile(BRACED_KEY).fullmatch


class Braces(Json):
    """Values with bare keys, and strings between two quotes that the format defines. `raw`: inside a list or an object,
    a quoted text that is valid JSON would be parsed as JSON."""

    kind = "braces"

    def __init__(
        self, book: Builder, quote: tuple[Lit | Token, ...], raw: bool, prefix: str, named: dict[str, Shape | None]
    ) -> None:
        super().__init__(book, prefix, named)
        self.quote, self.raw = quote, raw
        self.inside = False

    def separator(self) -> Node:
        """Return the comma between members and items, without white space."""
        return Lit(",")

    def quoted_text(self, shape: TextShape, *, bare: bool) -> Node:
        """Return the node of a text of this shape in the format's quotes. With `bare` and in raw mode, texts that would
        be parsed as JSON are excluded, unless the shape has a pattern, which is written as it is."""
        most = self.max_length(shape)
        if shape.pattern is not None:
            return seq(*self.quote, Upto(self.quote, inside=shape.pattern))
        if not bare or not self.raw:
            return seq(*self.quote, Upto(self.quote, shape.least, most))
        return seq(*self.quote, text_that_is_not_json(self.quote, shape.least, most))

    def text(self, shape: TextShape) -> Node:
        """Return a reference to the rule for a text inside a list or an object, in the format's quotes. In raw mode,
        texts that would be parsed as JSON are excluded."""
        key = ("quoted", self.raw, shape)
        return self.book.share_rule(key, "quoted", lambda: self.quoted_text(shape, bare=True))

    def constant(self, text: str) -> Node:
        """Return the node of a constant, given as JSON text; `NEVER` for a string that the parser would read as JSON in
        raw mode."""
        if text[0] == '"':
            value = json.loads(text)
            return seq(*self.quote, Lit(value), *self.quote) if not self.raw or not is_json(value) else NEVER
        return super().constant(text)

    def text_argument(self, shape: Shape) -> Node:
        """Return the node of the value of a top-level argument that is always parsed as text: strings and constants in
        the format's quotes, other values unquoted. Numbers are left out, because they would be parsed as text too."""
        parts = [one for one in options(shape) if not isinstance(one, Number)]
        return alt(
            *[
                self.quoted_text(one, bare=False) if isinstance(one, TextShape) else self.text_argument_constants(one)
                for one in parts
            ]
        )

    def text_argument_constants(self, shape: Shape) -> Node:
        """Return the node of the constants of an argument that is always parsed as text: strings in the format's
        quotes, other constants bare, numbers left out. A shape that is not a set of constants is written as any of its
        values."""
        if not isinstance(shape, OneOf):
            return self.value(shape)
        texts = [json.loads(text) for text in shape.texts if text[0] == '"']
        others = self.constants([text for text in shape.texts if text[0] not in '"-0123456789'])
        return alt(others, *[seq(*self.quote, Lit(text), *self.quote) for text in texts])

    def object(self, shape: Object) -> Node:
        """Return the node of an object in braces; `NEVER` if a required member cannot be written."""
        inside = self.members(shape.fields, shape)
        return NEVER if inside == NEVER else seq(Lit("{"), inside, Lit("}"))

    def array(self, shape: Array) -> Node:
        """Return the node of a list in square brackets, without white space."""
        return seq(Lit("["), self.items(shape, self.value, self.separator()), Lit("]"))

    def member(self, field: Field) -> Node:
        """Return the node of `key:value`; `NEVER` for a name that cannot be written as a bare key, or if the value
        cannot be written."""
        return seq(Lit(field.name + ":"), self.value(field.shape)) if _BRACED_KEY(field.name) else NEVER

    def undeclared_member(self, shape: Object) -> Node | None:
        """Return the node of an undeclared member with a bare key of at most 64 characters; None if the shape allows
        none, or if the names must match a pattern."""
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


# -- one call of each body kind ----------------------------------------------------------------------------------------

Pieces = list[Node]  # of one call; one that is `NEVER` means that the call cannot be written


def _write_envelope(body: Envelope, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the nodes of the JSON object of a call: the name and the arguments under the format's keys, and an id
    where `body.write_id` asks for one. If the format has no key for the name, the tool's name is the only key and has
    the arguments as its value. The arguments are `NEVER` if they cannot be written."""
    gap = builder.gap(" ")
    arguments = tool.write_json(builder)
    opens, closes = [Lit("{"), builder.gap()], [builder.gap(), Lit("}")]
    if not body.names:
        return [*opens, json_string(tool.name, ":"), gap, arguments, *closes]
    comma: list[Node] = [Lit(","), gap]
    fields = [Lit(f'"{body.names[0]}":'), gap, json_string(tool.name, ","), gap]
    fields += [Lit(f'"{body.args[0]}":'), gap, arguments]
    id: list[Node] = [Lit(f'"{body.ids[0]}":'), gap, QUOTED_ID] if body.write_id else []
    if body.write_id == "first":
        return [*opens, *id, *comma, *fields, *closes]
    return [*opens, *fields, *(comma if id else []), *id, *closes]


def _write_name_then_json(body: NameThenJson, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the nodes of a call with the name in its opening marker, then JSON arguments and the closing marker; only
    the arguments if the format has no opening marker. The arguments are `NEVER` if they cannot be written."""
    arguments = tool.write_json(builder)
    if not first(body.open):
        return [arguments]
    opens, closes = nodes_around_arguments(body.open, body.close, builder, tool.name)
    return [*opens, arguments, *closes]


def _write_params(body: Params, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the nodes of a call with each argument in tags, between the markers of the body; `[NEVER]` if the
    arguments are not an object. Optional arguments that cannot be written are left out and reported; with a required
    one, the node of the arguments is `NEVER`."""
    shape = tool.object_shape()
    if shape is None:
        return [NEVER]
    tags = TagShapes(body, builder, tool.name, Json(builder, tool.prefix, tool.named), tool.kinds())
    opens, closes = nodes_around_arguments(body.open, body.close, builder, tool.name)
    return [*opens, tags.arguments(shape), *closes]


def _write_pythonic(body: Pythonic, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the call `name(key=value, ...)` as a list of one node; `[NEVER]` if the arguments are not an object, or a
    required one cannot be written. Optional ones that cannot be written are left out and reported."""
    shape = tool.object_shape()
    writer = Python(builder, tool.prefix, tool.named)
    return [NEVER if shape is None else writer.arguments(tool.name, shape)]


def _write_braced(body: Braced, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the nodes of a call: its opening marker with the name, then the arguments in braces with bare keys;
    `[NEVER]` if the arguments are not an object. Optional arguments that cannot be written are left out and reported;
    with a required one, the node of the members is `NEVER`."""
    shape = tool.object_shape()
    if shape is None:
        return [NEVER]
    writer = Braces(builder, stop_sequence(pieces(body.quote)), body.quoted == "raw", tool.prefix, tool.named)
    kinds = tool.kinds()
    members = []
    for field in shape.fields:
        node = writer.member(field)
        if node != NEVER:
            texts = kinds.get(field.name) in ("plain", "string", "nullable")
            value = writer.text_argument(field.shape) if texts else writer.value(field.shape)
            node = seq(Lit(f"{field.name}:"), value)
        members.append(Member(node, field.required))
    builder.report_lost_arguments(tool.name, shape.fields, members)
    inside = members_in_any_order(members, Lit(","), writer.undeclared_member(shape), shape)
    return [*pieces(first(body.open), name=tool.name), Lit("{"), inside, Lit("}")]


def _write_ts_call(body: TsCall, tool: ArgumentsShape, builder: Builder) -> Pieces:
    """Return the call `name({...})` in TypeScript as a list of one node; `[NEVER]` if its arguments cannot be
    written."""
    arguments = Ts(builder, tool.prefix, tool.named, write_literal).value(tool.shape)
    return [NEVER if arguments == NEVER else seq(Lit(f"{tool.name}("), arguments, Lit(")"))]


CALL_GRAMMARS: dict[type[Body], Callable[[Any, ArgumentsShape, Builder], Pieces]] = {
    Envelope: _write_envelope,
    NameThenJson: _write_name_then_json,
    Params: _write_params,
    Pythonic: _write_pythonic,
    Braced: _write_braced,
    TsCall: _write_ts_call,
}
