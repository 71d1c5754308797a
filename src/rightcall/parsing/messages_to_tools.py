"""A message to a tool: its arguments, whole or as they arrive, and what else may stand there."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rightcall.parsing.blocks import Block
from rightcall.parsing.bodies.behind import ARGUMENTS
from rightcall.parsing.bodies.name_then_json import read_arguments_of
from rightcall.parsing.buffer import Steps
from rightcall.parsing.interrupts import Broken, Cut, NotACall, broken_by
from rightcall.parsing.json_stream import whole_value
from rightcall.parsing.markers import Pat, Probe, blanks, seq
from rightcall.parsing.states import InText
from rightcall.parsing.unread_calls import resync

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import CallBuilder
    from rightcall.parsing.machine import Machine


def _is_end(p: CallBuilder) -> bool:
    """Is it certain that a message is over here?"""
    if not p.char():
        return p.ended
    return p.compiled.turn_end is not None and bool(p.compiled.turn_end.at(p.buf, p.pos, p.ended))


def _whole_call(m: Machine, name: str) -> bool:
    """Reads a message to a tool at once, where the text is whole and the message as usual; else takes nothing."""
    p = m.p
    start = p.pos
    alone = p.compiled.call_close is None and p.index < p.limits.calls
    found = whole_value(p) if alone and p.char() == "{" else None
    end = p.pos
    if found is None or type(found[1]) is not dict or not _is_end(p):
        p.pos = start
        return False
    p.whole_call((start, end, name, *found, ""))
    p.pos = end
    return True


def read_message_to(m: Machine, name: str) -> Steps[None]:
    """The message to a tool."""
    p = m.p
    taken = p.capture()
    if not _whole_call(m, name):
        p.raw_begin()
        block = p.block = Block(p, bare=True)
        block.holds = True
        block.reader = p.compiled.readers[0]
        try:
            yield from _message(m, name, block)
        finally:
            p.block = None
        if p.full:
            yield from m.rest_is_text()
            return
        m.output.mark("marker", p.at)  # the blanks behind it were looked past
        m.state = InText(due="late" if p.pending is not None else "")
    m.output.fresh = True
    m.end_block(taken)
    m.forget_thought()


def _message(m: Machine, name: str, block: Block) -> Steps[None]:
    p = m.p
    try:
        p.begin(name)
        char = yield from p.peek()
        if not char or char in '{["':
            yield from read_arguments_of(p, None)
        elif p.compiled.turn_end and (end := (yield from p.test(p.compiled.turn_end))):
            yield from _refuse_late_arguments(p, end.end() - p.pos)
            p.raw_end()
            p.finish(empty=True)
        else:
            yield from _raw(m, block)
    except NotACall:
        p.raw_drop()
    except Cut:
        p.pos = len(p.buf)
        p.fail("truncated", "the text ended before the call did; send the whole call again")
    except (Broken, RecursionError) as error:
        broken = broken_by(error, p.limits.depth)
        found = yield from resync(block, headed=True)
        if not p.mend(closed=found):
            p.fail(broken.code, broken.message, broken.path)


def _refuse_late_arguments(p: CallBuilder, ahead: int) -> Steps[None]:
    assert p.compiled.channels is not None
    if (yield from p.test(_late_arguments(p.compiled.channels.channel), ahead)):
        raise Broken("trailing_content", "the message ends before the call's arguments; send them inside of it")


@lru_cache(8)
def _late_arguments(channel: str) -> Probe:
    """Arguments behind the end of their message, with tokens of its header before them, but for those that begin
    another."""
    other = rf"<\|start\|>|{re.escape(channel)}" if channel else r"<\|"
    tokens = rf"(?:(?!{other})<\|[^<>|\s]{{1,32}}+\|>\w{{0,16}}+[ \t\r\n]{{0,8}}+){{0,3}}+"
    return Probe(seq(blanks(), Pat(tokens, r"(?:<[^<>\s]{0,36}+>?+\w{0,16}+[ \t\r\n]{0,8}+){0,3}+"), ARGUMENTS.pat))


def _raw(m: Machine, block: Block) -> Steps[None]:
    """A message that is not JSON, such as code for an interpreter: kept as it is."""
    p = m.p
    p.args_at = p.at
    found = yield from resync(block, headed=True)
    if p.mend(closed=found):
        return
    assert p.call is not None and p.raw is not None
    p.call.parts.append(p.captured(p.raw))
    if not found:
        raise Cut
    p.fail("arguments_not_object", "the arguments must be a JSON object")
