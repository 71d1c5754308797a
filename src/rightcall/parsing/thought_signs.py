"""What opens and closes a thought, and markers that close or mean nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from rightcall.parsing.buffer import Steps
from rightcall.parsing.channels import first_header
from rightcall.parsing.closes_of_calls import leave_section, settle_calls, take_cut_token
from rightcall.parsing.format_markers import Sign, is_sentence
from rightcall.parsing.markers import Pat, Probe
from rightcall.parsing.states import InReasoning, InText

if TYPE_CHECKING:
    from rightcall.parsing.machine import Machine

# What ends a code span, a quotation or a code fence.
_FENCE = r"[ \t]{0,16}+\r?\n[ \t]{0,3}+"
SHOWN_ENDS = Probe(
    Pat(rf"(?:[`'\"”’»›」』]|{_FENCE}(?:`{{3}}|~{{3}}))", rf"(?:{_FENCE}(?:`{{0,2}}+|~{{0,2}}+)|[ \t]{{0,16}}+\r?+)")
)


def drop_stray(m: Machine, marker: str, sign: Sign) -> None:
    """A marker that closes nothing: dropped with a note if it is a special token or stands behind other markers;
    else it is text."""
    end = m.p.pos + len(marker)
    if not (sign.special or m.output.fresh):
        m.say_exactly(end)
        return
    if sign.is_token and take_cut_token(m, marker):
        return
    if marker in m.compiled.opening_tokens and not isinstance(m.state, InReasoning):
        m.forget_thought()  # a call was about to begin behind it
    message = f"{marker[:60]!r} at {m.p.at} closes nothing; it was dropped"
    m.p.note("stray_marker", message)
    m.marker(end)
    m.output.go_on_line()  # nothing that a line begins with shows what follows


def on_stray(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    """A token that means nothing alone."""
    if not m.is_shown(found, sign):
        drop_stray(m, found.group(), sign)
    return ()


def on_think(m: Machine, found: re.Match[str], sign: Sign) -> Iterable[None]:
    if m.is_shown(found, sign):
        if isinstance(m.state, InText):
            m.state = msgspec.structs.replace(m.state, mentions=True)
        return ()
    if isinstance(m.state, InReasoning):
        drop_stray(m, found.group(), Sign("think", True))
        return ()
    if is_sentence(found.group()) and (m.output.text_chars or m.has_thought):
        m.say_exactly(found.end())  # a sentence, not a tag: behind other text, or a thought, it is text as well
        return ()
    settle_calls(m)
    leave_section(m)
    m.trust()
    m.marker(found.end())
    m.think()
    return ()


def on_think_close(m: Machine, found: re.Match[str], sign: Sign) -> Steps[None]:
    state, marker = m.state, found.group()
    if not isinstance(state, InReasoning):
        if is_sentence(marker) and m.rehearsal is None:
            m.say_exactly(m.p.pos + len(marker))  # not a tag: where no thought is open it closes none
            return
        if isinstance(state, InText) and state.late and not (yield from _is_mentioned(m, marker, state.mentions)):
            # A closing tag without its opener: the prompt had opened it.
            m.output.recast(m.p.at)
        elif not _ends_rehearsal(m, marker):
            return
    elif _closes_shown(m, marker):
        return
    m.thought_end = m.p.at
    m.marker(m.p.pos + len(marker))
    m.output.say_from(m.p.at)
    m.output.turn(thinking=False)
    m.output.at_start = True
    m.state = InText()
    if m.compiled.first_header is not None and m.output.is_silent:
        yield from first_header(m, m.compiled.first_header)


def _closes_shown(m: Machine, marker: str) -> bool:
    """Where it closes a call as well: does it close one here that is shown? Then it is text of the thought."""
    closes = bool(m.compiled.ends_thought) and m.output.shown.is_closing(marker)
    if closes:
        m.say_exactly(m.p.pos + len(marker))
    return closes


def _ends_rehearsal(m: Machine, marker: str) -> bool:
    """A close of a thought outside of one: of one that calls were read behind, or shown, or of nothing."""
    if m.output.shows():
        m.say_exactly(m.p.pos + len(marker))
    elif m.rehearsal is None:
        drop_stray(m, marker, Sign("think_close", True))
    else:
        m.rehearsed(m.rehearsal)
        return True
    return False


def _is_mentioned(m: Machine, marker: str, is_opened: bool) -> Steps[bool]:
    """Does a text only show what closes a thought? It does in code or quotes, if it showed the opener too, or if what
    shows it ends right behind it: a thought that the prompt opened may leave a quotation mark open."""
    if not m.output.shows() or is_opened:
        return is_opened and m.output.shows()
    p = m.p
    while True:
        behind = SHOWN_ENDS.at(p.buf, p.pos + len(marker), p.ended)
        if behind is not None:
            return bool(behind)
        yield
