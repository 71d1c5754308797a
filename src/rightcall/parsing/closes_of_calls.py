"""What closes calls: that comes late, that never comes, that words stand before.

Words between a call's arguments and the call's own close refuse the call; they may be a part of it. Words behind that
close are text, also where nothing but calls belongs: then a note says so. A close that never comes leaves a note too,
where other text stands in its place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rightcall.parsing.bodies.behind import ARGUMENTS
from rightcall.parsing.buffer import Steps
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.states import InSection, InText

if TYPE_CHECKING:
    from rightcall.parsing.call_builder import CallBuilder
    from rightcall.parsing.machine import Machine

_BRACKETS = tuple(")]}")  # what arguments end with, were they none
_WORD = re.compile(r"[\w.\-]++").fullmatch
_LONGEST = 512  # characters of a marker behind its first token, the names in it included


def is_due(m: Machine) -> bool:
    return isinstance(m.state, (InText, InSection)) and bool(m.state.due)


def close_late(m: Machine) -> None:
    """The close of a call that is over comes here. Words before it may belong to the call."""
    p, state = m.p, m.state
    assert isinstance(state, (InText, InSection))
    m.state = msgspec.structs.replace(state, due="")
    refuse_words(m)
    if not (p.in_doubt or any(reader.closers for reader in m.compiled.readers)):
        p.settle_pending()


def refuse_words(m: Machine) -> None:
    """Words that stand between a call's arguments and what closes the call may be a part of it."""
    if m.p.pending is not None and not m.output.fresh:
        message = "words stand between the call's arguments and what closes the call"
        m.p.block_pending("trailing_content", f"{message}; send them as an argument, or behind the call")


def end_before_arguments(p: CallBuilder) -> Steps[None]:
    """A call has ended. If it has no arguments, those that stand behind its close are its own."""
    call = p.pending[1] if p.pending is not None else None
    if call is None or call.arguments:
        return
    if call.raw.rstrip()[-1:] not in _BRACKETS and (yield from p.test(ARGUMENTS)):
        p.block_pending("trailing_content", "the call ends before its arguments; send them inside of it")


def tell_unclosed(m: Machine) -> None:
    """The close of a call that a marker opened has not come, and will not."""
    state, pending = m.state, m.p.pending
    is_due = isinstance(state, (InText, InSection)) and state.due == "due"
    if is_due and pending is not None and not pending[1].problems:
        m.p.note("unclosed", f"the marker that closes the call is missing; what stands there up to {m.p.at} is text")


def settle_calls(m: Machine) -> None:
    """Nothing that follows can change the last call any more."""
    tell_unclosed(m)
    m.p.settle_pending()


def settle_ended(m: Machine) -> None:
    """As `settle_calls`, where the end of a turn or an opener ends the last call. One whose own close never came may
    go on behind it: what closes its values there tells, until another call begins."""
    pending = m.p.pending
    if pending is None:
        tell_unclosed(m)
    elif not any(each.code == "unclosed" for each in pending[1].problems) or not any(
        reader.closers for reader in m.compiled.readers
    ):
        settle_calls(m)


def begin_calls(m: Machine) -> None:
    """From here on nothing but calls belongs. In a message to a tool nothing else did before."""
    if m.due_to is not None:
        tell_words(m, "message to a tool")
    m.words_from = m.output.text_chars


def tell_words(m: Machine, where: str) -> None:
    """Words that stand where nothing but calls belongs are text: they are told, and no call is refused for them."""
    if m.output.text_chars > m.words_from and not m.p.full:
        message = f"words stand in the {where} before {m.p.at}; they are text, and no part of a call"
        m.p.note("trailing_content", message)
    m.words_from = m.output.text_chars


def leave_section(m: Machine) -> None:
    """What surrounds calls was opened, and its close has not come: where words follow, they may be what is left of
    it."""
    if type(m.state) is InSection and m.state.is_open and not m.p.full and m.output.text_chars > m.words_from:
        m.p.note("unclosed", f"the marker that closes the calls is missing; what follows them up to {m.p.at} is text")


def end_to_tool(m: Machine, *, marked: bool = True) -> None:
    """A message ends; all of one to a tool is the call's. `marked`: a marker says so, and not the text's end."""
    channels = m.compiled.channels
    is_over = channels is not None and (marked or bool(channels.messages["call"][1]))
    if is_over and isinstance(m.state, InText) and m.state.due:
        refuse_words(m)
        m.state = InText()


def end_message(m: Machine) -> None:
    """A message ends. One to a tool holds a call."""
    if m.due_to == m.p.index and not m.p.full:
        m.p.note("opener_without_call", f"the message to a tool that ends at {m.p.at} holds no call")
    elif m.due_to is not None and not m.compiled.is_named_by_header:
        tell_words(m, "message to a tool")
    m.due_to = None


def end_cut_message(m: Machine) -> None:
    """The text ends in a message. One to a tool that holds nothing was cut off before its call."""
    p = m.p
    if m.due_to == p.index and not p.full and p.known_name() and m.output.text_chars == m.words_from:
        fail_unread(p)
    end_message(m)


def fail_unread(p: CallBuilder) -> None:
    """The text ends before a call that was named, or in its first characters, which are left to take. Where there is no
    room for one more call, they are text."""
    if p.index >= p.limits.calls:
        tell_too_many(p)
        return
    if p.raw is None:
        p.raw_begin()
    p.pos = len(p.buf)
    p.fail("truncated", "the text ended before the call did; send the whole call again")


def tell_too_many(p: CallBuilder, much: str = "") -> None:
    """There is more than there may be, by itself of calls."""
    p.full = True
    p.problem("too_large", f"the reply has {much or f'more than {p.limits.calls} calls'}; the rest was not read")


def take_cut_marker(m: Machine) -> None:
    """Behind a call the text may end inside a marker that closes something; in a message to a tool, inside its
    opener."""
    p = m.p
    rest = p.buf[p.pos :].lstrip(BLANKS)
    if rest and m.due_to == p.index and p.known_name() and m.compiled.begins.is_begun(rest, 0):
        m.marker(len(p.buf))
    elif rest and p.index and m.compiled.closes_calls.is_begun(rest, 0):
        p.note("unclosed", "the text ended inside a marker that closes calls")
        p.settle_pending()
        m.marker(len(p.buf))


def take_cut_token(m: Machine, token: str) -> bool:
    """The text may end inside a marker that is more than its first token: what came of it is no text. Where a call may
    have begun, that is told."""
    p = m.p
    left = len(p.buf) - p.pos - len(token)
    rest = p.buf[p.pos + len(token) :].strip(BLANKS) if p.ended and 0 < left < _LONGEST else ""
    if not rest or (_WORD(rest) and _may_go_on(m, token + rest)):
        return False  # no tool's name, or a call had begun: a message may be one word
    opens = token.startswith(m.compiled.first_tokens) and m.compiled.cut_openers.is_begun(p.buf, p.pos)
    if not opens and not m.compiled.cut_marks.is_begun(p.buf, p.pos):
        return False
    if opens:
        m.forget_thought()
        p.problem("truncated", "the text ended where a tool call was about to begin")
    else:
        p.note("stray_marker", f"the text ends inside the marker at {p.at}; it was dropped")
    m.marker(len(p.buf))
    return True


def _may_go_on(m: Machine, text: str) -> bool:
    """Does it end where a marker has a name, so that any letter may follow?"""
    return any(probe.is_begun(text + "\u0294", 0) for probe in (m.compiled.cut_openers, m.compiled.cut_marks))
