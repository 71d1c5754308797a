"""One call in each body kind: what stands between its markers, from the tool's name to the last argument."""

from __future__ import annotations

import re

from rightcall.declare.kinds import Kind
from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Params, Pythonic, TsCall
from rightcall.shapes.algebra import NEVER, Lexeme, Lit, Member, Node, chars, inverse, repeat, seq
from rightcall.shapes.builder import Builder
from rightcall.shapes.markers import edges, first, pieces, plain
from rightcall.shapes.values import Object, Shape
from rightcall.shapes.write_braces import Braces
from rightcall.shapes.write_json import Json, in_any_order, json_string
from rightcall.shapes.write_params import Tags
from rightcall.shapes.write_python import Python
from rightcall.shapes.write_ts import Ts
from rightcall.wire.markers import HOLES
from rightcall.wire.writers import ts_literal

_NAME = re.compile(HOLES["name"]).fullmatch
_CALLED = re.compile(r"[A-Za-z_][\w.\-]{0,255}").fullmatch
_ID = Lexeme(seq(Lit('"'), repeat(inverse(chars((0, 0x1F), '"\\')), 1, 64), Lit('"')))


class Arguments:
    """What is known of one tool: its name, the shape of its arguments, and how their text is read."""

    def __init__(
        self, name: str, shape: Shape, named: dict[str, Shape | None], kinds: dict[str, Kind], prefix: str
    ) -> None:
        self.name, self.shape, self.named, self.kinds, self.prefix = name, shape, named, kinds, prefix
        self._written: list[Node] | None = None

    def written(self, body: Body, book: Builder) -> list[Node]:
        """Its call in this body, made once."""
        if self._written is None:
            self._written = call_body(body, self, book)
        return self._written


def carries_name(body: Body, name: str) -> bool:
    """Can this wire write the name so that it reads back?"""
    if isinstance(body, Envelope):
        return True
    return bool((_CALLED if isinstance(body, (Pythonic, TsCall)) else _NAME)(name))


def call_body(body: Body, tool: Arguments, book: Builder) -> list[Node]:
    """The pieces of one call; one that is `NEVER` means that it cannot be written."""
    if isinstance(body, Envelope):
        return _envelope(body, tool, book)
    if isinstance(body, NameThenJson):
        return _name_then_json(body, tool, book)
    if isinstance(body, Params):
        return _params(body, tool, book)
    if isinstance(body, Pythonic):
        shape = _object(tool)
        writer = Python(book, tool.prefix, tool.named)
        return [NEVER if shape is None else writer.arguments(tool.name, shape)]
    if isinstance(body, TsCall):
        arguments = Ts(book, tool.prefix, tool.named, ts_literal).value(tool.shape)
        return [NEVER if arguments == NEVER else seq(Lit(f"{tool.name}("), arguments, Lit(")"))]
    return _braced(body, tool, book)


def json_arguments(tool: Arguments, book: Builder) -> Node:
    return Json(book, tool.prefix, tool.named).value(tool.shape)


def _object(tool: Arguments) -> Object | None:
    """The shape of the arguments where members are written one by one. Of several the first: tools take one object."""
    shape = tool.shape
    for _ in range(32):
        name = getattr(shape, "name", None)
        if name is None or isinstance(shape, Object):
            break
        shape = tool.named.get(name) or Object()
    if isinstance(shape, Object):
        return shape
    found = [one for one in getattr(shape, "options", ()) if isinstance(one, Object)]
    return found[0] if found else None


def _envelope(body: Envelope, tool: Arguments, book: Builder) -> list[Node]:
    gap = book.gap(" ")
    arguments = json_arguments(tool, book)
    opens, closes = [Lit("{"), book.gap()], [book.gap(), Lit("}")]
    if not body.names:
        return [*opens, json_string(tool.name, ":"), gap, arguments, *closes]
    comma: list[Node] = [Lit(","), gap]
    fields: list[Node] = [
        Lit(f'"{body.names[0]}":'),
        gap,
        json_string(tool.name, ","),
        gap,
        Lit(f'"{body.args[0]}":'),
        gap,
        arguments,
    ]
    id: list[Node] = [Lit(f'"{body.ids[0]}":'), gap, _ID] if body.write_id else []
    if body.write_id == "first":
        return [*opens, *id, *comma, *fields, *closes]
    return [*opens, *fields, *(comma if id else []), *id, *closes]


def _name_then_json(body: NameThenJson, tool: Arguments, book: Builder) -> list[Node]:
    arguments = json_arguments(tool, book)
    if not first(body.open):
        return [arguments]
    opener, close = edges(first(body.open)), edges(first(body.close))
    opens = [*pieces(opener.core, name=tool.name), *([book.gap(opener.after)] if opener.after else [])]
    closes = [*([book.gap(close.before)] if close.before else []), *pieces(close.core)]
    return [*opens, arguments, *closes]


def _params(body: Params, tool: Arguments, book: Builder) -> list[Node]:
    shape = _object(tool)
    if shape is None:
        return [NEVER]
    tags = Tags(body, book, tool.name, Json(book, tool.prefix, tool.named), tool.kinds)
    opener, close = edges(first(body.open)), edges(first(body.close))
    opens = [*pieces(opener.core, name=tool.name), *([book.gap(opener.after)] if opener.after else [])]
    closes = [*([book.gap(close.before)] if close.before else []), *pieces(close.core)]
    return [*opens, tags.arguments(shape), *closes]


def _braced(body: Braced, tool: Arguments, book: Builder) -> list[Node]:
    shape = _object(tool)
    if shape is None:
        return [NEVER]
    writer = Braces(book, plain(pieces(body.quote)), body.quoted == "raw", tool.prefix, tool.named)
    members = []
    for field in shape.fields:
        node = writer.member(field)
        if node != NEVER:
            texts = tool.kinds.get(field.name) in ("plain", "string", "nullable")
            value = writer.argument(field.shape) if texts else writer.value(field.shape)
            node = seq(Lit(f"{field.name}:"), value)
        members.append(Member(node, field.required))
    inside = in_any_order(members, Lit(","), writer.extra(shape), shape)
    return [*pieces(first(body.open), name=tool.name), Lit("{"), inside, Lit("}")]
