"""Assemble the deltas of one answer: deltas in, events and a reply out, for native calls and text alike.

Native calls take precedence: calls in the text count only if the answer has no native calls. So a call in the text is
held back until the answer ends. With `live` it is emitted as it arrives, and only its end is held back: if native calls
follow, it ends as a rejected call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.formats import known_formats
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.ending import UNUSED_OPENER, last_calls, withheld_notes
from rightcall.parsing.events import Fold
from rightcall.parsing.near_misses import find_near_misses
from rightcall.parsing.options import CUT, Limits, Policy, ReasoningCalls, Rescue
from rightcall.parsing.parser import Parser, format_of, is_plain_sentence
from rightcall.providers.dialect import CallClosed, CallDelta, Delta, Fault, Finish, ReasoningDelta, TextDelta
from rightcall.providers.native_calls import NativeCalls
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, CallEnd, CallStart, Done, Event, Problem, Reasoning, Recast, Reply, Span, Text


class AnswerOptions(msgspec.Struct, frozen=True):
    """The options of `read` and `Stream`."""

    tools: Toolset | None = None
    format: str | Format = "auto"
    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Policy | Mapping[str, Policy] = "safe"
    rescue: Rescue = "safe"
    reasoning_calls: ReasoningCalls = "safe"
    choice: str | Mapping[str, Any] | None = None
    live: bool = False
    limits: Limits = Limits()


class _UnchangedIds(Ids):
    """Ids for the parser of the text, which returns received ids: a call gets its final id when it is emitted."""

    def take(self, received: str = "") -> str:
        """Return the received id unchanged, also if it is empty or repeated."""
        return received


class Assembler:
    """Assembles one answer: one choice, or one candidate.

    `add_chunk` takes deltas, and `take_events` returns the events so far. `reply` is complete after `close` and a last
    `take_events`.
    """

    def __init__(self, api: str, options: AnswerOptions, ids: Ids, first: int = 0) -> None:
        self._options, self._ids = options, ids
        self._format = api
        self._out: list[Event] = []
        self._fold = Fold()
        self._finish: str | None = None  # the provider's finish reason, or "error" after a part of the answer was lost
        self._native: NativeCalls | None = None  # once there is a native call
        self._reasoning: list[str] = []
        self._has_output = False  # text, or an opener of a call, was emitted

        # Calls in the text:
        self._parser: Parser | None = None
        self._first = first  # index of the first call
        self._count = first  # index of the next call
        self._base = first  # index of the first call in the current text
        self._ids_by_index: dict[int, str] = {}  # of calls that were emitted
        self._held: list[Event] = []
        self._holds_all = False  # hold back everything that follows
        self._is_repeat = False  # what follows was emitted as text before

    def read(self, chunks: Iterable[Sequence[Delta]], *, is_lost: bool) -> None:
        """Read all chunks of a whole answer and close it; `take_events` returns the events afterwards. `is_lost`: a
        part of the answer was lost, so its finish reason is "error"."""
        for deltas in chunks:
            self.add_chunk(deltas)
        if is_lost:
            self._add_delta(Finish("error"))
        self.close()

    def add_chunk(self, deltas: Sequence[Delta]) -> None:
        """Read the deltas of one chunk; `take_events` returns what they made certain."""
        if self._native is not None:
            self._native.begin_chunk()
        for at, delta in enumerate(deltas):
            if type(delta) is TextDelta and self._is_plain_text(delta.text, deltas[at + 1 : at + 2]):
                self._emit(Text(delta.text))
            else:
                self._add_delta(delta)

    def close(self) -> None:
        """End the answer: end its text and its native calls, and emit the events that were held back. An answer with
        nothing but reasoning is searched for calls. Call this once."""
        self._end_text(self._finish)
        if self._native is not None:
            self._native.close(self._finish in CUT)
        for event in self._held:
            if event is not _END_OF_TEXT:
                self._emit(event)
        self._held = []
        if self._reasoning and not self._has_output and self._native is None and self._count == self._first:
            self._read_calls_in_reasoning()

    def take_events(self) -> list[Event]:
        """Return the events since the previous call of this method, and add them to `reply`. Events that are held back
        are not among them."""
        events = list(self._out)
        self._out.clear()
        self._fold.add(events)
        return events

    @property
    def reply(self) -> Reply:
        """Return the reply made of the events that were taken so far."""
        return self._fold.reply(self._format, finish=self._finish)

    @property
    def next_index(self) -> int:
        """Return the index of the next call: the index of the first one and the number of calls so far."""
        return self._count if self._native is None else self._native.next_index

    @property
    def has_native_calls(self) -> bool:
        """Return True once a delta of a native call was read."""
        return self._native is not None

    def _add_delta(self, delta: Delta) -> None:
        """Read one delta of any kind. Empty text and empty reasoning are ignored.

        A `Finish` sets the finish reason, unless the current one says that the answer was truncated. A `Fault` becomes
        a problem; after one that means a loss, the finish reason is "error"."""
        if isinstance(delta, TextDelta):
            if delta.text:
                self._add_text(delta.text)
        elif isinstance(delta, ReasoningDelta):
            if delta.text:
                self._add_reasoning(delta.text)
        elif isinstance(delta, CallDelta):
            if self._native is None:
                self._native = self._make_native_reader()
            self._end_text()
            self._native.add(delta)
        elif isinstance(delta, CallClosed):
            if self._native is not None:
                self._native.close_slot(delta.slot)
        elif isinstance(delta, Finish):
            self._finish = self._finish if self._finish in CUT else delta.reason
        elif isinstance(delta, Fault):
            if delta.code in _LOSSES:
                self._finish = "error"
            self._hold_or_emit(Problem(delta.code, delta.message, blocking=delta.blocking))

    def _is_plain_text(self, text: str, following: Sequence[Delta]) -> bool:
        """Return True if this text stands directly before the first native call, is all the text so far, and cannot
        contain a call or reasoning: it is then emitted without a parser. `following` has the next delta of the chunk,
        if there is one."""
        if not (following and isinstance(following[0], CallDelta)):
            return False
        if self._parser is not None or self._native is not None or self._holds_all:
            return False
        options = self._options
        is_auto = options.format == "auto" and options.reasoning != "open"
        return is_auto and len(text) < options.limits.reply and is_plain_sentence(text)

    # -- native calls --------------------------------------------------------------------------------------------------

    def _make_native_reader(self) -> NativeCalls:
        """End the text before the first native call and return a new reader of native calls; the caller stores it.

        Calls in that text do not run: one whose start was emitted is rejected, any other becomes text."""
        self._end_text()
        held, self._held, self._holds_all = self._held, [], False
        self._count = self._first + len(self._ids_by_index)
        options = self._options
        for event in held:
            self._emit_rejected(event)
        return NativeCalls(
            self._out,
            self._ids,
            self._count,
            tools=options.tools,
            repair=options.repair,
            live=options.live,
            limits=options.limits,
        )

    def _emit_rejected(self, event: Event) -> None:
        """Emit an event that was held back before a native call: a call whose start was emitted ends with a blocking
        problem, and the events of any other call become text."""
        number = event.call if isinstance(event, Problem) else getattr(event, "index", None)
        if number not in self._ids_by_index:
            self._emit_as_text(event)
        elif isinstance(event, CallEnd):
            problem = Problem("call_in_text", _LIVE_CALL_IN_TEXT, call=event.index)
            self._out.append(problem)
            problems = (*event.call.problems, problem)
            self._emit(CallEnd(event.index, msgspec.structs.replace(event.call, problems=problems)))
        else:
            self._emit(event)

    def _emit_as_text(self, event: Event) -> None:
        """Emit an event from the text of an answer with native calls. A call becomes its raw text and a problem that
        does not block; its other events, and text that a `Recast` repeats, are dropped."""
        if event is _END_OF_TEXT:
            self._is_repeat = False
        elif _is_recast_to_call(event):
            self._is_repeat = True
        elif isinstance(event, Problem):
            self._is_repeat |= event.code == "call_in_reasoning"
            if event.call is None:
                self._out.append(msgspec.structs.replace(event, blocking=False))
        elif isinstance(event, CallEnd):
            if not self._is_repeat:
                self._out.append(Text(event.call.raw))
            self._out.append(Problem("call_in_text", _CALL_IN_TEXT, blocking=False))
        elif isinstance(event, (Text, Reasoning, Recast, Done)) and not self._is_repeat:
            self._out.append(event)

    # -- text ----------------------------------------------------------------------------------------------------------

    def _add_text(self, text: str) -> None:
        """Parse a piece of the answer's text, with a new parser if no text is open. Native calls that are complete end
        before."""
        if self._native is not None:
            self._native.end_complete()
        if self._parser is None:
            options = self._options
            self._base = self._count
            self._parser = Parser(
                options.format,
                tools=options.tools,
                reasoning=options.reasoning,
                repair=options.repair,
                rescue=options.rescue,
                reasoning_calls=options.reasoning_calls,
                choice=options.choice,
                ids=_UnchangedIds(),
                live=options.live,
                limits=options.limits,
            )
        self._add_parsed(self._parser.feed(text))

    def _end_text(self, finish: str | None = None) -> None:
        """End the current text, if one is open. `finish` is the finish reason if the answer ends too; no other text
        gets one. Sets the reply's format if the text had calls, or if a reply without calls has a meaning in its
        format."""
        parser = self._parser
        if parser is None:
            return
        self._add_parsed(parser.close(finish))
        self._parser = None
        self._is_repeat = False
        if self._holds_all:
            self._held.append(_END_OF_TEXT)
        if self._native is not None:
            return
        name = format_of(parser)
        format = known_formats().formats.get(name)
        # In a format with a protocol, a reply without calls has a meaning too.
        if self._count > self._base or (format is not None and format.protocol is not None):
            self._format = name

    def _add_parsed(self, events: list[Event]) -> None:
        """Emit or hold back the events that the text's parser returned, with their calls renumbered for the whole
        answer. After native calls, calls in the text become text.

        Without `live`, everything from the first start of a call on is held back."""
        if self._native is not None:
            for event in events:
                self._emit_as_text(event)
            return
        for event in events:
            if type(event) is Text and not self._holds_all:
                self._emit(event)  # most events
                continue
            if isinstance(event, CallStart):
                self._count += 1
                self._holds_all = self._holds_all or not self._options.live
            self._holds_all = self._holds_all or _is_recast_to_call(event)
            self._hold_or_emit(_renumber(event, self._base) if self._base else event)

    def _hold_or_emit(self, event: Event) -> None:
        """Hold back the end of a call, a problem of a call, and any problem after these, so that problems keep their
        order; emit any other event. Everything is held back while `_holds_all` is set."""
        decides = isinstance(event, CallEnd) or (isinstance(event, Problem) and event.call is not None)
        if self._holds_all or decides or (self._held and isinstance(event, Problem)):
            self._held.append(event)
        else:
            self._emit(event)

    def _emit(self, event: Event) -> None:
        """Append an event to the output; nothing holds it back. A call in the text gets its final id with its start,
        and its end gets the same."""
        if type(event) is Text:
            self._has_output = self._has_output or bool(event.text.strip())
        elif isinstance(event, CallStart):
            id = self._ids_by_index[event.index] = self._ids.take(event.id)
            event = CallStart(event.index, id, event.name)
        elif isinstance(event, Problem):
            self._has_output = self._has_output or event.code in UNUSED_OPENER
        elif isinstance(event, CallEnd):
            call: Call = msgspec.structs.replace(event.call, id=self._ids_by_index[event.index])
            event = CallEnd(event.index, call)
        self._out.append(event)

    # -- reasoning -----------------------------------------------------------------------------------------------------

    def _add_reasoning(self, text: str) -> None:
        """Add a piece of reasoning: emit it, or hold it back if everything is held back. Before that, end the current
        text and the native calls that are complete."""
        self._end_text()
        if self._native is not None:
            self._native.end_complete()
        self._reasoning.append(text)
        self._hold_or_emit(Reasoning(text))

    def _read_calls_in_reasoning(self) -> None:
        """Emit the calls at the end of an answer that has only reasoning, unless the answer was truncated or the option
        `reasoning_calls` forbids it.

        Calls that do not count, and text that is almost a call, are reported as problems. With `reasoning="off"`
        nothing is done.
        """
        options = self._options
        if options.reasoning == "off":
            return
        parser = Parser(
            options.format,
            tools=options.tools,
            repair=options.repair,
            rescue="off",
            reasoning_calls="never",
            choice=options.choice,
            ids=_UnchangedIds(),
            spans=True,
            limits=options.limits,
        )
        text = "".join(self._reasoning)
        events = [*parser.feed(text), *parser.close(self._finish)]
        may_count = options.reasoning_calls != "never" and self._finish not in CUT
        if not (may_count and self._emit_last_calls(events, parser.reply)):
            near = find_near_misses(text, [Span(0, len(text), "reasoning")], options.tools)
            self._out += withheld_notes(parser.reply, list(parser.reply.spans or ())) or near

    def _emit_last_calls(self, events: list[Event], reasoning: Reply) -> bool:
        """Emit the calls at the end of the reasoning, each with a problem that does not block, and a `Recast` before
        them. Return True; False if there are none, and then nothing is emitted.

        `events` and `reasoning` (a reply) are those of a parser that has read the reasoning. A call that more reasoning
        follows was only considered by the model and is not emitted."""
        count, first = last_calls(reasoning)
        if not count:
            return False
        skipped = len(reasoning.attempts) - count
        self._emit(Recast(sum(map(len, self._reasoning)) - first, "thought"))
        self._format = reasoning.format
        self._count += count
        for event in events:
            number = event.call if isinstance(event, Problem) else getattr(event, "index", None)
            if number is None or number < skipped:
                continue
            event = _renumber(event, self._first - skipped)
            if isinstance(event, CallEnd):
                note = Problem("call_in_reasoning", _CALL_IN_REASONING, call=event.index, blocking=False)
                self._out.append(note)
                event = CallEnd(event.index, msgspec.structs.replace(event.call, problems=(*event.call.problems, note)))
            self._emit(event)
        return True


# After one of these problems, the end of the answer may be missing.
_LOSSES = ("provider_error", "malformed_chunk", "truncated", "too_large")
_END_OF_TEXT = Recast(0, "reasoning")  # marks the end of a text among the events that are held back
_CALL_IN_TEXT = "the text contains a call too; it remains text because the answer has native calls"
_LIVE_CALL_IN_TEXT = "the call is in the text of an answer that has native calls; only those are run"
_CALL_IN_REASONING = "the call is in the reasoning; write calls after it"


def _is_recast_to_call(event: Event) -> bool:
    """Return True for a `Recast` that turns text or reasoning which was emitted before into a part of a call."""
    return isinstance(event, Recast) and event.kind != "reasoning"


def _renumber(event: Event, base: int) -> Event:
    """Return the event with `base` added to the number of its call; an event without a call is returned unchanged."""
    if isinstance(event, (Text, Reasoning, Recast, Done)):
        return event
    if isinstance(event, Problem):
        return _renumber_problem(event, base)
    if isinstance(event, CallEnd) and event.call.problems:
        problems = tuple([_renumber_problem(problem, base) for problem in event.call.problems])
        return CallEnd(event.index + base, msgspec.structs.replace(event.call, problems=problems))
    return msgspec.structs.replace(event, index=event.index + base)


def _renumber_problem(problem: Problem, base: int) -> Problem:
    """Return the problem with `base` added to the number of its call, if it has one."""
    return problem if problem.call is None else msgspec.structs.replace(problem, call=problem.call + base)
