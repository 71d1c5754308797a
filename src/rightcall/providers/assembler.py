"""Deltas in, events and a reply out: one answer of a provider, native calls and text alike.

Native calls win: calls that stand in the text count only if the answer has none of its own. So a call found in the text
waits until the answer is over. With `live` it is shown as it comes, and only its end waits: if native calls follow, it
ends as a call that may not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from rightcall.formats import known_formats
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.ending import OPENED, last_calls, withheld_notes
from rightcall.parsing.fold import Fold
from rightcall.parsing.how_ended import CUT
from rightcall.parsing.near import near_calls
from rightcall.parsing.options import Limits
from rightcall.parsing.parser import Parser, Policy, ReasoningCalls, Rescue, format_of
from rightcall.providers.deltas import Delta, DeltaPiece, End, Fault, Said, Stop, Thought
from rightcall.providers.native_calls import Calls
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, CallEnd, CallStart, Done, Event, Problem, Reasoning, Recast, Reply, Span, Text


class Manner(msgspec.Struct, frozen=True):
    """How an answer is to be read."""

    tools: Toolset | None = None
    format: str | Format = "auto"
    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Policy | Mapping[str, Policy] = "safe"
    rescue: Rescue = "safe"
    reasoning_calls: ReasoningCalls = "safe"
    choice: str | Mapping[str, Any] | None = None
    live: bool = False
    limits: Limits = Limits()


class _AsReceived(Ids):
    """Ids are taken when a call is known to count, not when it is found in the text."""

    def take(self, received: str = "") -> str:
        return received


class Assembler:
    """Reads one answer (one choice, one candidate)."""

    def __init__(self, api: str, manner: Manner, ids: Ids, first: int = 0) -> None:
        self._manner, self._ids = manner, ids
        self._format = api
        self._out: list[Event] = []
        self._fold = Fold()
        self._first = first
        self._count = first  # calls found in the text, the one that comes next
        self._given_ids: dict[int, str] = {}  # of calls found in the text
        self._calls: Calls | None = None  # of its own, once there is one
        self._parser: Parser | None = None
        self._base = first  # index of the first call in the text being read
        self._held: list[Event] = []
        self._holds = False  # everything that follows
        self._again = False  # what follows was given out as text before
        self._said = False  # something, or a call was opened
        self._thoughts: list[str] = []
        self._finish: str | None = None  # as the provider said, or "error" once something of the answer was lost

    def chunk(self, deltas: Iterable[Delta]) -> None:
        """What one chunk holds."""
        if self._calls is not None:
            self._calls.gather.chunk += 1
        for delta in deltas:
            self.add(delta)

    def add(self, delta: Delta) -> None:
        if isinstance(delta, Said):
            self._text(delta.text)
        elif isinstance(delta, Thought):
            self._thought(delta.text)
        elif isinstance(delta, DeltaPiece):
            self._native().add(delta)
        elif isinstance(delta, End):
            if self._calls is not None:
                self._calls.end(delta.slot)
        elif isinstance(delta, Stop):
            self._finish = self._finish if self._finish in CUT else delta.finish
        elif isinstance(delta, Fault):
            if delta.code in _LOSSES:
                self._finish = "error"
            self._hold_or_give(Problem(delta.code, delta.message, blocking=delta.blocking))

    def close(self) -> None:
        self._end_text(self._finish)
        if self._calls is not None:
            self._calls.close(self._finish in CUT)
        self._give_held()
        self._look_into_reasoning()

    def take(self) -> list[Event]:
        """The events since the last time."""
        events = list(self._out)
        self._out.clear()
        self._fold.add(events)
        return events

    @property
    def reply(self) -> Reply:
        return self._fold.reply(self._format, finish=self._finish)

    @property
    def count(self) -> int:
        """The index that the next call would have."""
        return self._count if self._calls is None else self._calls.next

    @property
    def is_native(self) -> bool:
        return self._calls is not None

    # -- native calls --------------------------------------------------------------------------------------------------

    def _native(self) -> Calls:
        if self._calls is None:
            self._end_text()
            held, self._held, self._holds = self._held, [], False
            self._count = self._first + len(self._given_ids)
            manner = self._manner
            self._calls = Calls(
                self._out,
                self._ids,
                self._count,
                tools=manner.tools,
                repair=manner.repair,
                live=manner.live,
                limits=manner.limits,
            )
            for event in held:
                self._lose(event)
        self._end_text()
        return self._calls

    def _lose(self, event: Event) -> None:
        """An event that was held, of an answer that has calls of its own: a call that was shown already may not run,
        any other is text."""
        number = event.call if isinstance(event, Problem) else getattr(event, "index", None)
        if number not in self._given_ids:
            self._out.extend(self._event_as_text(event))
        elif isinstance(event, CallEnd):
            lost = Problem("call_in_text", _SHOWN_CALL_IN_TEXT, call=event.index)
            self._out.append(lost)
            problems = (*event.call.problems, lost)
            self._give(CallEnd(event.index, msgspec.structs.replace(event.call, problems=problems)))
        else:
            self._give(event)

    def _as_text(self, events: Iterable[Event]) -> list[Event]:
        """What was found in the text of an answer that has calls of its own: its calls are text."""
        return [out for event in events for out in self._event_as_text(event)]

    def _event_as_text(self, event: Event) -> list[Event]:
        if event is _END_OF_TEXT:
            self._again = False
        elif isinstance(event, Recast) and event.kind != "reasoning":
            self._again = True
        elif isinstance(event, Problem):
            self._again |= event.code == "call_in_reasoning"
            return [msgspec.structs.replace(event, blocking=False)] if event.call is None else []
        elif isinstance(event, CallEnd):
            said: list[Event] = [] if self._again else [Text(event.call.raw)]
            return [*said, Problem("call_in_text", _CALL_IN_TEXT, blocking=False)]
        elif isinstance(event, (Text, Reasoning, Recast, Done)) and not self._again:
            return [event]
        return []

    # -- text ----------------------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._calls is not None:
            self._calls.end_whole()
        if self._parser is None:
            manner = self._manner
            self._base = self._count
            self._parser = Parser(
                manner.format,
                tools=manner.tools,
                reasoning=manner.reasoning,
                repair=manner.repair,
                rescue=manner.rescue,
                reasoning_calls=manner.reasoning_calls,
                choice=manner.choice,
                ids=_AsReceived(),
                live=manner.live,
                limits=manner.limits,
            )
        self._from_text(self._parser.feed(text))

    def _end_text(self, finish: str | None = None) -> None:
        """A run of text is over. `finish` says how the answer ended, if it is over too."""
        parser = self._parser
        if parser is None:
            return
        self._from_text(_closed(parser, finish))
        self._parser = None
        self._again = False
        if self._holds:
            self._held.append(_END_OF_TEXT)
        name = format_of(parser)
        if self._calls is None and (self._count > self._base or _has_protocol(name)):
            self._format = name

    def _from_text(self, events: list[Event]) -> None:
        if self._calls is not None:
            self._out.extend(self._as_text(events))
            return
        for event in events:
            if type(event) is Text and not self._holds:
                self._give(event)  # most are such
                continue
            if isinstance(event, CallStart):
                self._count += 1
            self._holds = self._holds or _takes_back(event) or (isinstance(event, CallStart) and not self._manner.live)
            self._hold_or_give(_renumbered(event, self._base) if self._base else event)

    def _hold_or_give(self, event: Event) -> None:
        if self._holds or _settles(event) or (self._held and isinstance(event, Problem)):  # problems keep their order
            self._held.append(event)
        else:
            self._give(event)

    def _give_held(self) -> None:
        for event in self._held:
            if event is not _END_OF_TEXT:
                self._give(event)
        self._held = []

    def _give(self, event: Event) -> None:
        """An event goes out; a call found in the text gets the id it will keep."""
        if type(event) is Text:
            self._said = self._said or bool(event.text.strip())
        elif isinstance(event, CallStart):
            id = self._given_ids[event.index] = self._ids.take(event.id)
            event = CallStart(event.index, id, event.name)
        elif isinstance(event, Problem):
            self._said = self._said or event.code in OPENED
        elif isinstance(event, CallEnd):
            call: Call = msgspec.structs.replace(event.call, id=self._given_ids[event.index])
            event = CallEnd(event.index, call)
        self._out.append(event)

    # -- reasoning -----------------------------------------------------------------------------------------------------

    def _thought(self, text: str) -> None:
        if text:
            self._end_text()
            if self._calls is not None:
                self._calls.end_whole()
            self._thoughts.append(text)
            self._hold_or_give(Reasoning(text))

    def _look_into_reasoning(self) -> None:
        """An answer that has nothing but reasoning: the calls count that it ends with, unless it was cut off. What does
        not count is told."""
        manner = self._manner
        if self._said or self._calls is not None or self._count > self._first or not self._thoughts:
            return
        if manner.reasoning == "off":
            return
        parser = Parser(
            manner.format,
            tools=manner.tools,
            repair=manner.repair,
            rescue="off",
            reasoning_calls="never",
            choice=manner.choice,
            ids=_AsReceived(),
            spans=True,
            limits=manner.limits,
        )
        text = "".join(self._thoughts)
        events = [*parser.feed(text), *_closed(parser, self._finish)]
        if manner.reasoning_calls == "never" or self._finish in CUT or not self._take_last(events, parser.reply):
            near = near_calls(text, [Span(0, len(text), "reasoning")], manner.tools)
            self._out += withheld_notes(parser.reply, list(parser.reply.spans or ())) or near

    def _take_last(self, events: list[Event], thought: Reply) -> bool:
        """The calls that the reasoning ends with; what is followed by more thoughts was thought, not done. False where
        there are none."""
        taken, first = last_calls(thought)
        if not taken:
            return False
        skipped = len(thought.attempts) - taken
        self._give(Recast(sum(map(len, self._thoughts)) - first, "thought"))
        self._format = thought.format
        self._count += taken
        for event in events:
            number = event.call if isinstance(event, Problem) else getattr(event, "index", None)
            if number is not None and number >= skipped:
                self._give_thought(_renumbered(event, self._first - skipped))
        return True

    def _give_thought(self, event: Event) -> None:
        """An event of a call that stood in the reasoning, which the call's end tells."""
        if isinstance(event, CallEnd):
            note = Problem("call_in_reasoning", _CALL_IN_REASONING, call=event.index, blocking=False)
            self._out.append(note)
            event = CallEnd(event.index, msgspec.structs.replace(event.call, problems=(*event.call.problems, note)))
        self._give(event)


_LOSSES = (
    "provider_error",
    "malformed_chunk",
    "truncated",
    "too_large",
)  # after one of these the end of the answer may be missing
_END_OF_TEXT = Recast(0, "reasoning")  # where a run of text ended, among the events that are held
_CALL_IN_TEXT = "the text holds a call too; it stays text, since the answer has calls of its own"
_SHOWN_CALL_IN_TEXT = "the call stands in the text of an answer that has calls of its own; only those are run"
_CALL_IN_REASONING = "the call stood in the reasoning; write calls after it"


def _has_protocol(name: str) -> bool:
    """A reply in such a format is one even without a call: what its text is depends on where it stands."""
    format = known_formats().formats.get(name)
    return format is not None and format.protocol is not None


def _takes_back(event: Event) -> bool:
    """Is text that was given out given again, as a call?"""
    return isinstance(event, Recast) and event.kind != "reasoning"


def _settles(event: Event) -> bool:
    """Does the event say whether a call may run?"""
    return isinstance(event, CallEnd) or (isinstance(event, Problem) and event.call is not None)


def _closed(parser: Parser, finish: str | None) -> list[Event]:
    """The last events of a text. Here, and nowhere else in this package, a text is told how its answer ended."""
    return parser.close(finish)


def _renumbered(event: Event, base: int) -> Event:
    """A call's number in its text becomes its number in the reply."""
    if isinstance(event, (Text, Reasoning, Recast, Done)):
        return event
    if isinstance(event, Problem):
        return _moved(event, base)
    if isinstance(event, CallEnd) and event.call.problems:
        problems = tuple([_moved(problem, base) for problem in event.call.problems])
        return CallEnd(event.index + base, msgspec.structs.replace(event.call, problems=problems))
    return msgspec.structs.replace(event, index=event.index + base)


def _moved(problem: Problem, base: int) -> Problem:
    return problem if problem.call is None else msgspec.structs.replace(problem, call=problem.call + base)
