"""A reply is the fold of its events: calls begin and end in order, and their pieces are their arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rightcall.testing.laws.case import Violation
from rightcall.testing.laws.reading import Reading
from rightcall.types import (
    Arguments,
    Call,
    CallEnd,
    CallStart,
    Done,
    Event,
    Part,
    Problem,
    Reasoning,
    Recast,
    Reply,
    Span,
    Text,
)


def events_law(got: Reading, text: str, *, live: bool = False) -> list[Violation]:
    """Whoever has seen all events knows the reply; what was given out of a call is what the call holds.

    - `got`: the events and the reply, as they were read.
    - `text`: what was read.
    - `live`: it was read live, so pieces are a preview.
    """
    what = _against_reply(got) or _against_calls(got, live)
    return [Violation("events", what, text)] if what else []


def _against_reply(got: Reading) -> str:
    folded = fold(got.events, got.reply.format, got.reply.spans)
    for name in ("parts", "problems", "done"):
        a, b = getattr(folded, name), getattr(got.reply, name)
        if a != b:
            return f"the {name} of the events are {a!r}, those of the reply {b!r}"
    return ""


def _against_calls(got: Reading, live: bool) -> str:
    pieces: dict[int, str] = {}
    ended: dict[int, Call] = {}
    for event in got.events:
        if isinstance(event, Arguments):
            if event.index in ended:
                return "arguments behind the end of their call"
            pieces[event.index] = pieces.get(event.index, "") + event.json
        elif isinstance(event, CallEnd):
            ended[event.index] = event.call
    started = [event for event in got.events if isinstance(event, CallStart)]
    return _against_order(started, ended, got.reply) or _against_pieces(started, ended, pieces, live)


def _against_order(started: list[CallStart], ended: dict[int, Call], reply: Reply) -> str:
    if [start.index for start in started] != list(range(len(started))) or set(ended) != set(range(len(started))):
        return f"calls began as {[start.index for start in started]} and ended as {list(ended)}"
    if [ended[i] for i in range(len(started))] != list(reply.attempts):
        return "the calls that ended are not the attempts of the reply"
    return ""


def _against_pieces(started: list[CallStart], ended: dict[int, Call], pieces: dict[int, str], live: bool) -> str:
    for start in started:
        what = _against_call(start, ended[start.index], pieces.get(start.index, ""), live)
        if what:
            return f"call {start.index + 1}: {what}"
    return ""


def _against_cut(call: Call) -> str:
    if call.arguments or call.ok:
        return "it was cut off and has arguments"
    return "" if any(problem.blocking for problem in call.problems) else "it was cut off and nothing blocks it"


def _against_call(start: CallStart, call: Call, pieces: str, live: bool) -> str:
    if (start.name, start.id) != (call.name, call.id):
        return f"it began as {start.name!r} ({start.id}) and is {call.name!r} ({call.id})"
    if not call.complete:
        return _against_cut(call)
    # Live pieces are a preview: they are the call's unless a receipt says what was changed.
    if pieces != call.json and not (live and call.repairs):
        return f"the joined pieces are {pieces!r}, not {call.json!r}"
    if call.ok and json.loads(call.json) != call.arguments:
        return f"its json is {call.json!r}, its arguments are {call.arguments!r}"
    return ""


# -- joining and folding -----------------------------------------------------------------------------------------------


def joined(events: Iterable[Event]) -> list[Event]:
    """Events with neighbours of a kind made one."""
    out: list[Event] = []
    for event in events:
        one = _one(out[-1], event) if out else None
        if one is None:
            out.append(event)
        else:
            out[-1] = one
    return out


def _one(last: Event, event: Event) -> Event | None:
    """The two as one, where they are pieces of the same thing."""
    if isinstance(event, Text) and isinstance(last, Text) and last.tag == event.tag:
        return Text(last.text + event.text, event.tag)
    if isinstance(event, Reasoning) and isinstance(last, Reasoning):
        return Reasoning(last.text + event.text)
    if isinstance(event, Arguments) and isinstance(last, Arguments) and last.index == event.index:
        return Arguments(event.index, last.json + event.json)
    return None


def fold(events: Iterable[Event], format: str, spans: tuple[Span, ...] | None) -> Reply:
    """The reply, from its events alone. A call stands where it began, whatever came before its end."""
    parts: list[Part | int] = []
    ended: dict[int, Call] = {}
    problems: list[Problem] = []
    done: str | None = None
    for event in joined(events):
        if isinstance(event, (Text, Reasoning)):
            parts.append(event)
        elif isinstance(event, CallStart):
            parts.append(event.index)
        elif isinstance(event, CallEnd):
            ended[event.index] = event.call
        elif isinstance(event, Problem):
            problems.append(event)
        elif isinstance(event, Recast):
            parts = _recast(parts, event)
        elif isinstance(event, Done):
            done = event.text
    settled: list[Part] = []
    for part in parts:
        if not isinstance(part, int):
            settled.append(part)
        elif part in ended:
            settled.append(ended[part])
    return Reply(tuple(_merged(settled)), tuple(problems), format, done, spans)


def _merged(parts: list[Any]) -> list[Any]:
    """Where a problem stood between two pieces of text, they are one part all the same."""
    return joined(parts)


def _recast(parts: list[Part | int], event: Recast) -> list[Part | int]:
    """The last characters of text turn into reasoning, or go: a call that follows was made of them. So may those of
    reasoning, if that is what was given last."""
    chars, out = event.chars, list[Part | int]()
    if event.kind == "thought":
        rest = "".join([part.text for part in parts if isinstance(part, Reasoning)])[: -chars or None]
        return _shortened(parts, len(rest))
    for part in reversed(parts):
        if isinstance(part, Text) and chars:
            taken = min(chars, len(part.text))
            chars -= taken
            if event.kind == "reasoning":
                out.append(Reasoning(part.text[len(part.text) - taken :]))
            if taken < len(part.text):
                out.append(Text(part.text[: len(part.text) - taken], part.tag))
        else:
            out.append(part)
    return out[::-1]


def _shortened(parts: list[Part | int], keep: int) -> list[Part | int]:
    """The same parts, with only so many characters of reasoning."""
    out: list[Part | int] = []
    for part in parts:
        if isinstance(part, Reasoning):
            if keep:
                out.append(Reasoning(part.text[:keep]))
            keep = max(0, keep - len(part.text))
        else:
            out.append(part)
    return out
