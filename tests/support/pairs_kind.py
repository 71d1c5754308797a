"""A body kind that rightcall does not have, in one file:  f: name=value;name=value.

Values are JSON. `test_body_kinds.py` adds it to `BODIES` and runs all tests of the other body kinds on it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rightcall.constrain.algebra import NEVER, Lit, Member, Node, seq
from rightcall.constrain.builder import Builder
from rightcall.constrain.json_text import ArgumentsShape, Json, members_in_any_order
from rightcall.formats.body_kinds import BodyKind
from rightcall.formats.spec import Body, Format, Marker
from rightcall.formats.toml_rules import LITERAL, check_marker_text
from rightcall.parsing.bodies.body_reader import Around, BodyReader
from rightcall.parsing.buffer import Broken, Cut, LostJsonEnd, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import Pat, Probe, blanks, literal
from rightcall.parsing.markers import seq as patterns
from rightcall.strict_json import Undecodable
from rightcall.types import Call

_NAME = Pat(r"[\w.\-]++", r"[\w.\-]*+")  # no colon: the first colon ends the name
_WORD = re.compile(r"[\w.\-]*\s*\Z").match


class Pairs(Body, frozen=True):
    """`is_` separates a name and its value, `then` separates two arguments."""

    is_: str = "="
    then: str = ";"


class PairsReader(BodyReader):
    begins = Probe(patterns(_NAME, literal(":")))

    def __init__(self, body: Pairs, format: Format, around: Around) -> None:
        self.then = Probe(patterns(blanks(), literal(body.then)))
        self.key = Probe(patterns(blanks(), _NAME, literal(body.is_)))
        self.size = len(body.is_)

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        builder.begin_text()
        opened = yield from builder.test(self.begins)
        if not opened:
            raise NotACall
        builder.pos = opened.end()
        builder.begin(opened.group()[:-1])
        found: dict[str, Any] = {}
        while key := (yield from builder.test(self.key)):
            builder.pos = key.end()
            name = key.group()[: -self.size].strip()
            if name in found:
                raise Broken("duplicate_argument", f"the argument {name} stands twice; send it once")
            found[name] = yield from self._value(builder)
            more = yield from builder.test(self.then)
            if not more:
                break
            builder.pos = more.end()
        builder.end_text()
        yield from self._end(builder)
        builder.give(json.dumps(found, ensure_ascii=False))
        builder.finish(found)

    def _end(self, builder: CallBuilder) -> Steps[None]:
        """Require the call's close: a truncated name looks like the end of the arguments."""
        close = builder.compiled.call_ends.close
        yield from builder.peek()
        if close is None or (yield from builder.test(close)):
            return
        if builder.ended and _WORD(builder.buf, builder.pos):
            raise Cut
        raise Broken("trailing_content", "something stands behind the arguments; send name=value pairs and no more")

    def _value(self, builder: CallBuilder) -> Steps[Any]:
        if not (yield from builder.peek()):
            raise Cut
        try:
            _, value = yield from builder.take_json()
        except LostJsonEnd:
            value = Undecodable
        if value is Undecodable or isinstance(value, Undecodable):
            raise Broken("invalid_json", "a value is not valid JSON; send the call again with JSON values")
        return value


class PairsKind(BodyKind[Pairs]):
    def write(self, body: Pairs, call: Call, arguments: str, index: int) -> str:
        pairs = [f"{key}{body.is_}{json.dumps(value, ensure_ascii=False)}" for key, value in call.arguments.items()]
        return f"{call.name}:{body.then.join(pairs)}"

    def markers(self, body: Pairs) -> tuple[Marker, ...]:
        return (body.is_, body.then)

    def check(self, body: Pairs, where: str, format: Format) -> None:
        check_marker_text(f"{where}.is_", body.is_, LITERAL)
        check_marker_text(f"{where}.then", body.then, LITERAL)


def pairs_grammar(body: Pairs, tool: ArgumentsShape, builder: Builder) -> list[Node]:
    shape = tool.object_shape()
    if shape is None:
        return [NEVER]
    values = Json(builder, tool.prefix, tool.named)
    members = [
        Member(seq(Lit(f"{field.name}{body.is_}"), values.value(field.shape)), field.required) for field in shape.fields
    ]
    return [Lit(f"{tool.name}:"), members_in_any_order(members, Lit(body.then), None, shape)]
