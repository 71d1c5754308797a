"""Calls and thoughts that begin without their marker: where a reply begins, where a line does, behind another call.

The prompt may have ended with the token that belongs to what the reply begins with. Calls without any marker count only
if nothing else follows: they are held until that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.parsing.buffer import Steps
from rightcall.parsing.channels import first_header, hear_name
from rightcall.parsing.compile import THINK_OPENS, Compiled
from rightcall.parsing.declared_names import declared, names_in
from rightcall.parsing.markers import BLANKS, Probe
from rightcall.parsing.protocol_lines import PLAIN_LINES, line
from rightcall.parsing.shown import Shown
from rightcall.parsing.states import Held, InChannel, InReasoning, InText

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import CallBuilder
    from rightcall.parsing.machine import Machine

_OPENS = frozenset(("section", "call", "body"))


def open_reasoning(m: Machine) -> None:
    """The prompt has begun the reasoning."""
    channels = m.compiled.channels
    if channels is not None and "reasoning" in channels.kinds.values():
        m.state = InChannel("reasoning")
        m.output.turn(thinking=True)
    else:
        m.think_in_tags()


def may_be_tag(text: str) -> bool:
    """May a reply that begins so begin with `<think>`, with blanks before it?"""
    begun = text[:2] if text[:1] > " " else text.lstrip(BLANKS)[:2]
    return THINK_OPENS.startswith(begun)


def _take_blanks(m: Machine) -> Steps[str]:
    """The next character that is not blank, "" at the end of the text."""
    taken = m.p.capture()
    char = yield from m.p.peek()
    m.output.hold_blanks(m.p.release(taken), m.p.at)
    return char


def first_tag(m: Machine, tag: Probe) -> Steps[bool]:
    """Many models write `<think>` first, whatever their format has for reasoning. True if it stood here."""
    p = m.p
    if p.base or isinstance(m.state, InReasoning):
        return False
    if p.buf[:1] <= " ":
        yield from _take_blanks(m)
    found = tag.at(p.buf, p.pos, p.ended)
    if found is None:
        found = yield from p.test(tag)
    if found:
        m.marker(found.end())
        m.think_in_tags()
    return bool(found)


def first_of_reply(m: Machine, compiled: Compiled) -> Steps[None]:
    """The prompt may have ended with a token that belongs to what the reply begins with."""
    p = m.p
    if compiled.first_header is not None and not isinstance(m.state, InReasoning):
        yield from first_header(m, compiled.first_header)
    if compiled.first_opener is None and compiled.first_thought is None:
        return
    if p.buf[p.pos : p.pos + 1] <= " ":
        yield from _take_blanks(m)
    if compiled.first_opener is not None:
        opener = compiled.first_opener.at(p.buf, p.pos, p.ended)
        if opener is None:
            opener = yield from p.test(compiled.first_opener)
        if opener and not p.is_letters(opener.start(), opener.end()):
            hear_name(m, opener.group())
            yield from m.block(opener.end(), special=True, headless=True)
    elif compiled.first_thought is not None:
        label = yield from p.test(compiled.first_thought)
        if label:
            m.marker(label.end())
            m.think()


def try_bare(m: Machine) -> Steps[bool]:
    """Where a reply may begin, a body without a marker may stand. True if one may stand here again."""
    p, output, compiled = m.p, m.output, m.compiled
    char = p.buf[p.pos : p.pos + 1]
    if char <= " ":
        char = yield from _take_blanks(m)
    if compiled.between is not None and p.index:
        found = compiled.between.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(compiled.between)
        if found:
            m.marker(found.end())
            char = p.buf[p.pos]
    output.at_start = False
    fence, clash = compiled.fence, compiled.clash
    if char and char in compiled.bare:
        found = clash.at(p.buf, p.pos, p.ended) if clash is not None else False
        if found is None and clash is not None:
            found = yield from p.test(clash)
        if not found:
            yield from m.block(p.pos, bare=True)
    elif fence is not None and char == "`" and (found := (yield from p.test(fence))):
        first, at = p.index, p.at
        yield from m.block(found.end(), bare=True)
        if p.index == first and compiled.writes_fence:
            p.note("opener_without_call", f"the fence at {at} is what opens a call, and none follows; it is text")
    return output.at_start


def try_headless(m: Machine, headless: Probe) -> Steps[bool]:
    """The first call of a reply may stand without its opener, if the prompt ended with it:  f[ARGS]{"x": 1}"""
    p, output = m.p, m.output
    output.at_start = False
    if p.buf[p.pos : p.pos + 1] <= " ":
        yield from _take_blanks(m)
    found = headless.at(p.buf, p.pos, p.ended)
    if found is None:
        found = yield from p.test(headless)
    if not found or p.is_letters(found.start(), found.end()) or not _names_tool(p, found.group()):
        return False
    yield from m.block(p.pos, special=True)
    return True


def _names_tool(p: CallBuilder, opener: str) -> bool:
    return any(declared(word, p.tools) for word in names_in(opener))


def try_line(m: Machine) -> Steps[bool]:
    """Outside all blocks, at the beginning of a line: a call may stand here. True if one may stand here again."""
    p = m.p
    plain = None if m.output.fresh or m.output.tag or m.held is not None else PLAIN_LINES(p.buf, p.pos)
    if plain is not None:
        m.say(plain.end())
        m.output.at_start = True
        return True
    first = p.index
    start = yield from line(m)
    if start >= 0:
        yield from m.block(start, bare=True)
        if p.index == first:
            m.refused += 1
    return start >= 0 or m.output.at_start


def hold_calls(m: Machine) -> None:
    """What was, before the first call without a marker, is kept; `Machine.release` lets go of it."""
    ready, m.output.events = m.output.events, []
    m.held = Held(m.p.capture(), ready, m.output.snapshot())


def unhold_calls(m: Machine, held: Held) -> None:
    """Text follows: what was held is text as well."""
    p = m.p
    m.held = None
    text = p.release(held.start)
    m.output.restore(held.before, held.ready)
    m.output.shown = Shown()  # nothing was said before them
    p.index, p.pending = 0, None
    m.state = InText(late=isinstance(m.state, InText) and m.state.late)
    if any(m.compiled.text.actions[found.lastindex or 0].action in _OPENS for found in m.compiled.text.finditer(text)):
        p.note("opener_without_call", "what opens a call stands in text that no marker makes a call")
    m.output.say(text, p.at)
