"""A name, then JSON arguments:  f[ARGS]{"x": 1}   functions.f:0<|tool_call_argument_begin|>{"x": 1}"""

from __future__ import annotations

import re

from rightcall.formats.spec import NameThenJson, alternatives
from rightcall.repair.sketch import Sketch, sketch_arguments
from rightcall.strict_json import Undecodable, decode, is_deep, scan_once
from rightcall.wire.engine import Engine, Whole
from rightcall.wire.interrupts import Broken, Cut, NotACall
from rightcall.wire.json_stream import LostEnd
from rightcall.wire.live import read_arguments
from rightcall.wire.markers import BLANKS, RUN, Holes, Pat, Probe, alt, literal, seq, templates
from rightcall.wire.prose import Steps
from rightcall.wire.reader import BodyReader

_B = r"[ \t\r\n]*+"
_BLANK_RUN = re.compile(_B).match
_COMMENTED = re.compile(r"/\*|//|#").search
_FENCE = Probe(seq(literal("```"), Pat(r"[A-Za-z_]{1,16}+", r"[A-Za-z_]{0,16}+", sure=RUN), literal("\n")))


class NameThenJsonReader(BodyReader):
    def __init__(self, body: NameThenJson, ends: list[Pat]) -> None:
        self.body = body
        self.open = Holes(body.open) if any(alternatives(body.open)) else None
        closes = templates(body.close)
        self.close = Probe(alt(*closes)) if closes else None
        close = f"(?:{'|'.join(pat.whole for pat in closes)}){_B}" if closes else ""
        end = f"(?:{'|'.join(pat.whole for pat in ends)})" if ends else ""
        self._block_end = re.compile(_B + close + end).match
        self._open_ended = not (closes or ends)  # what follows the arguments decides whether they are all
        self._id_holes = re.findall(r"\{(\w+)\}", body.id)
        self.begins = self.open.probe if self.open else Probe.never()

    def quick(self, p: Engine, start: int, bare: bool) -> tuple[list[Whole], int] | None:
        """The call of a block and its end, if all of it is there and as usual."""
        buf = p.buf
        pos = _BLANK_RUN(buf, start).end()  # type: ignore[union-attr]
        opener = self.open.probe.whole(buf, pos) if self.open else None
        if not opener:
            return None
        try:
            value, end = scan_once(buf, _BLANK_RUN(buf, opener.end()).end())  # type: ignore[union-attr]
        except (StopIteration, ValueError, RecursionError):
            return None
        last = self._block_end(buf, end)
        if (
            last is None
            or (self._open_ended and last.end() == len(buf) and not p.ended)
            or (last.end() < len(buf) and buf[last.end()] in "{}])")
            or type(value) is not dict
            or is_deep(buf, opener.end(), end, p.limits.depth)
        ):
            return None
        assert self.open is not None
        holes = self.open.fill(opener)
        json = buf[opener.end() : end].lstrip(BLANKS)
        return [(pos, end, holes.get("name", ""), json, value, self._id(holes))], last.end()

    def sketch(self, p: Engine, text: str, closed: bool) -> list[Sketch]:
        """A call whose arguments are not valid JSON, read loosely."""
        if p.call is None:
            return []
        start = p.args_at - p.raw_at
        return sketch_arguments(text, start, p.call.name, tools=p.tools, depth=p.limits.depth, closed=closed)

    def read(self, p: Engine, *, bare: bool) -> Steps[None]:
        if self.open is None:
            raise NotACall
        p.raw_begin()
        found = yield from p.test(self.open.probe)
        if found is None:
            # At the end of the text a name without what follows it is a call that was cut off, not text.
            if p.ended and re.match(r"[\w.:-]*\Z", p.buf[p.pos :]):
                p.pos = len(p.buf)
                raise Cut
            raise NotACall
        holes = self.open.fill(found)
        p.pos = found.end()
        name = holes.get("name", "")
        if found.group().endswith(name) and (yield from p.peek()) != "{":
            raise NotACall
        p.begin(name, self._id(holes))
        yield from read_arguments_of(p, self.close)

    def read_choice(self, p: Engine, name: str) -> Steps[None]:
        """The request named the tool: all the model had to write are its arguments."""
        p.raw_begin()
        p.begin(name)
        yield from read_arguments_of(p, None)

    def _id(self, holes: dict[str, str]) -> str:
        if self.body.id and all(map(holes.get, self._id_holes)):
            return self.body.id.format_map(holes)
        return holes.get("id", "")


def read_arguments_of(p: Engine, close: Probe | None) -> Steps[None]:
    """The JSON arguments of a call that has begun, and what closes them."""
    if not (yield from p.peek()):
        raise Cut
    fenced = p.char() == "`" and (yield from p.test(_FENCE))  # not the close, where that is a fence too
    for end in (close, p.compiled.call_close):
        if end is not None and not fenced and (yield from p.test(end)):
            p.raw_end()
            p.finish(empty=True)
            break
    else:
        try:
            value = yield from read_arguments(p)
        except LostEnd:
            raise Broken("invalid_json", "the arguments are not valid JSON from here on; send a JSON object") from None
        if value is Undecodable:
            assert p.call is not None
            sent = "".join(p.call.parts)
            value = decode(sent, p.limits.depth)
            if isinstance(value, Undecodable) and _COMMENTED(sent):
                raise Broken(value.code, value.message)  # a bracket in a comment is none
        yield from p.take_extra_closers()
        p.raw_end()
        char = yield from p.peek()
        # A comment is one only where a marker must follow; elsewhere it is text.
        if char == "{" or (char and char in "/#" and (close is not None or p.compiled.call_close is not None)):
            raise Broken("trailing_content", "something stands behind the arguments; send one JSON object and no more")
        p.finish(value)
    if close is not None:
        yield from p.peek()
        found = yield from p.test(close)
        if found:
            p.pos = found.end()
