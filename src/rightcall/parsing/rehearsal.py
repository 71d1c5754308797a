"""A call that was only thought of:  `<think>I could send <|call|>f{}<|end|>, but no</think>`

A special token says that the model has stopped thinking, so that what follows it is read as if the thought were closed.
Only a close that comes later shows that the thought went on; until then nothing that was read since goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rightcall.parsing.buffer import Capture
from rightcall.parsing.output import Snapshot
from rightcall.parsing.shown import Shown
from rightcall.types import CallEnd, CallStart, Event

if TYPE_CHECKING:
    from rightcall.parsing.machine import Machine


class Rehearsal(msgspec.Struct, frozen=True):
    """What was, before the special token that seemed to end a thought."""

    start: Capture
    ready: list[Event]  # what may go out
    before: Snapshot
    shown: Shown
    index: int
    notes: dict[str, int]
    thought: int | None


def begin(m: Machine) -> Rehearsal:
    """A special token stands here, inside a thought."""
    p, output = m.p, m.output
    ready, output.events = output.events, []
    p.in_thought = True
    return Rehearsal(p.capture(), ready, output.snapshot(), output.shown, p.index, dict(p.notes), m.thought)


def stands(m: Machine, kept: Rehearsal) -> None:
    """The thought was not closed later: what was read since stands."""
    m.p.drop(kept.start)
    m.p.in_thought = False
    kept.ready.extend(m.output.events)
    m.output.events = kept.ready


def take_back(m: Machine, kept: Rehearsal) -> None:
    """The thought is closed here: all since then was part of it."""
    p, output = m.p, m.output
    text = p.release(kept.start)
    ends = [event.call.id for event in output.events if isinstance(event, CallEnd)]
    p.ids.forget([*ends, *[event.id for event in output.events if isinstance(event, CallStart)]])
    p.index, p.pending, p.notes, p.in_thought = kept.index, None, kept.notes, False
    output.restore(kept.before, kept.ready)
    output.thinking, output.shown = True, kept.shown
    m.thought = kept.thought
    output.say(text, p.at)
