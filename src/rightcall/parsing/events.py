"""Events of a reply: emit them, add them up, hold back what may be recast, iterate over a stream.

`Output` emits the events of one machine in order, with spans that tile the text; `Fold` adds events up to a reply.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from rightcall.parsing.markers import BLANKS
from rightcall.parsing.shown import Shown
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
    SpanKind,
    Text,
)

Tile = tuple[int, SpanKind]  # the end of a span that begins where the one before it ends


class SpanTiling:
    """The spans of the text so far. They tile it up to `end`; positions are counted from its beginning."""

    __slots__ = ("_joined", "_kind", "_tiles", "end")

    def __init__(self) -> None:
        self.end = 0
        self._kind: SpanKind = "marker"  # of the last span, which ends at `end`
        self._tiles: list[Tile] = []  # the spans before it
        self._joined: set[int] = set()  # positions where text continues behind a mark inside it

    def mark(self, kind: SpanKind, end: int) -> None:
        """Cover the text from `end` of the spans so far up to this position with a span of this kind, or extend the
        last span if that has this kind; nothing if it is covered already."""
        if end > self.end:
            if kind != self._kind:
                self._tiles.append((self.end, self._kind))
                self._kind = kind
            self.end = end

    def mark_call(self, start: int, end: int) -> None:
        """Cover a call from `start` to `end`, and with a marker what is between it and the spans so far, which must end
        before it."""
        self._tiles += ((self.end, self._kind), (start, "marker"))
        self._kind, self.end = "call", end

    def mark_inside_text(self, end: int) -> None:
        """Cover a mark that ends at `end` and is inside a text, so that the text around it counts as one piece."""
        self.mark("marker", end)
        self._joined.add(end)

    def to_list(self) -> list[Span]:
        """Return all spans so far, in order, without empty ones. Neighbours of one kind are one span."""
        found: list[Span] = []
        for end, kind in (*self._tiles, (self.end, self._kind)):
            start = found[-1].end if found else 0
            if end > start:
                start = found.pop().start if found and found[-1].kind == kind else start
                found.append(Span(start, end, kind))
        return found

    def replace(self, spans: list[Span]) -> None:
        """Set all spans, which must tile the text from its beginning; an empty list resets them. Marks inside text stay
        recorded."""
        self._tiles = [(span.end, span.kind) for span in spans]
        self.end, self._kind = self._tiles.pop() if self._tiles else (0, "marker")

    def recast_text(self) -> None:
        """Change the kind of all text spans so far to reasoning."""
        self._tiles = [(end, "reasoning" if kind == "text" else kind) for end, kind in self._tiles]
        self._kind = "reasoning" if self._kind == "text" else self._kind

    def reasoning_since(self, start: int) -> int:
        """Return how many characters of reasoning were emitted from the position `start` on, with one line break
        between any two separate pieces. Pieces around a mark inside text (`mark_inside_text`) are not separate."""
        given = [span for span in self.to_list() if span.kind == "reasoning" and span.end > start]
        breaks = sum(span.start not in self._joined for span in given[1:])
        return sum(span.end - max(span.start, start) for span in given) + breaks

    def snapshot(self) -> tuple[list[Tile], int, SpanKind, int]:
        """Return the current state for `restore`. It shares the list of spans, so only spans that are added later can
        be undone."""
        return self._tiles, len(self._tiles), self._kind, self.end

    def restore(self, before: tuple[list[Tile], int, SpanKind, int]) -> None:
        """Remove all spans that were added since the snapshot `before`, and shorten the last one to its end then. Marks
        inside text stay recorded."""
        self._tiles, count, self._kind, self.end = before
        del self._tiles[count:]


# The state of an output that `Output.restore` brings back, beside its events and spans.
_RESTORED = "_blanks _last after_marker in_reasoning is_placed is_silent shown text_chars text_start".split()
_restored_values = attrgetter(*_RESTORED)


# The state of an output, to which `Output.restore` returns: of its spans, and the values of `_RESTORED`.
Snapshot = tuple[tuple[list[Tile], int, SpanKind, int], tuple[Any, ...]]


class Output:
    """Emit text, reasoning and markers as events and spans.

    Blanks next to a marker belong to the marker, so blanks at the end of a text wait for what follows.

    - `events`: the events that are not yet taken.
    - `after_marker`: a marker was last; blanks that follow belong to it.
    - `at_start`: a body without opener may begin here, at the beginning of the reply or of a line.
    - `gap`: how many line breaks separate the last run of text from the one before it.
    - `in_reasoning`: text that follows is reasoning.
    - `is_placed`: text was where only text belongs; it is not searched for calls.
    - `is_silent`: neither text nor a call was emitted yet.
    - `tag`: the block of a protocol around the text.
    - `text_chars`: how many characters were emitted as text.
    - `text_start`: where the text of the reply begins; None if some is before reasoning.
    """

    __slots__ = (
        *("_blanks", "_is_behind_call", "_last", "after_marker", "at_start", "events", "gap", "in_reasoning"),
        *("is_placed", "is_silent", "shown", "spans", "tag", "text_chars", "text_start"),
    )

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans = SpanTiling()
        self.shown = Shown()
        self.gap = 0
        self.is_placed = False
        self.in_reasoning = False
        self.tag = ""
        self.after_marker = False
        self.text_chars = 0
        self.at_start = True
        self.is_silent = True
        self.text_start: int | None = 0
        self._last: tuple[type[Text | Reasoning], str] | None = None  # kind and tag of the text emitted last
        self._is_behind_call = False  # what follows is on the line on which a call ends
        self._blanks: list[str] = []  # blanks that may still belong to a marker

    @property
    def ends_in_reasoning(self) -> bool:
        """Whether the last text that was emitted is reasoning."""
        return self._last is not None and self._last[0] is Reasoning

    def take_events(self) -> list[Event]:
        """Return the events that were not yet taken, and forget them."""
        events, self.events = self.events, []
        return events

    def prepend_events(self, events: list[Event]) -> None:
        """Put `events` before those that are not yet taken. The list `events` is extended and becomes the list of the
        output."""
        events.extend(self.events)  # in place: there may be many of them, and many times
        self.events = events

    # -- text and reasoning --------------------------------------------------------------------------------------------

    def emit(self, text: str, end: int) -> None:
        """Emit text or reasoning that ends at position `end`; its trailing blanks wait. Behind a marker its leading
        blanks belong to the marker, and a line break (two in a protocol's block) separates it from text of the same
        kind and block before the marker, unless a call is in between. Blank text behind a marker is not emitted at
        all."""
        if self.after_marker:
            trimmed = text.lstrip(BLANKS)
            self.spans.mark("marker", end - len(trimmed))
            if self._is_behind_call:
                # Text behind a call begins a line only if a line break separates them.
                continues = "\n" not in text[: len(text) - len(trimmed)]
                if continues and trimmed:
                    self.shown.continue_line()
                self._is_behind_call = continues and not trimmed
            if not trimmed:
                return
            text, self.after_marker, self.gap = trimmed, False, 0
            if self._last == ((Reasoning if self.in_reasoning else Text), self.tag):
                # A marker separates two texts of one kind: a line break in between keeps them apart, as two parts.
                self.gap = 2 if self.tag else 1
                self._append("\n" * self.gap, self.spans.end)
        self._emit_text(text, end)

    def emit_exact(self, text: str, end: int) -> None:
        """Emit text that ends at position `end` with its leading blanks and without a line break before it, also behind
        a marker (`gap` is 0 then): it was parsed as the beginning of a call. Its trailing blanks wait. A body without
        opener does not begin behind it."""
        if self.after_marker:
            self.gap = 0
        self.after_marker = self.at_start = False
        self._emit_text(text, end)

    def emit_after_call(self, text: str, end: int) -> None:
        """Emit text that ends at position `end` and follows a call, without its leading blanks: it was taken before the
        end of the call was certain."""
        self.after_marker = True
        self.emit(text, end)

    def emit_json_text(self, text: str, start: int, end: int) -> None:
        """Emit `text`, which the format carries as a JSON value between the positions `start` and `end`; what is before
        that is a marker. An empty text has no event, but a span. It is not counted in `text_chars`. Waiting blanks are
        dropped; the reply's text is not searched for calls any more."""
        self.drop_blanks()
        self.is_placed = True
        if text:
            self.events.append(Text(text))
            self.is_silent = False
        self.spans.mark("marker", start)
        self.spans.mark("text", end)

    def emit_behind_token(self, start: int, text: str, end: int) -> None:
        """Drop a special token that ends at position `start` and opens no call, and emit the text behind it, which ends
        at `end`, without its leading blanks. A body without opener does not begin behind it."""
        self.drop_marker(start)
        self.emit(text, end)
        self.at_start = False

    def _emit_text(self, text: str, end: int) -> None:
        """Emit text that ends at position `end`, with the blanks that waited before it, but hold its trailing blanks.
        Blank text is only held."""
        self.shown.take(text)
        solid = text.rstrip(BLANKS)
        if not solid:
            if text:
                self._blanks.append(text)
            return
        given = "".join(self._blanks) + solid if self._blanks else solid
        self._blanks = [text[len(solid) :]] if len(solid) < len(text) else []
        self._append(given, end - (len(text) - len(solid)))

    def _append(self, text: str, end: int) -> None:
        """Append an event for `text`, which ends at position `end`, as reasoning or text, whichever is current, and
        cover it with a span. Behind text a body without opener does not begin, and the reply is not silent; reasoning
        moves the beginning of the text behind it."""
        if self.in_reasoning:
            self._last = Reasoning, self.tag
            self.events.append(Reasoning(text))
            self.begin_text(end)
            self.spans.mark("reasoning", end)
            return
        self._last = Text, self.tag
        self.is_silent = self.at_start = False
        self.text_chars += len(text)
        self.events.append(Text(text, self.tag))
        self.spans.mark("text", end)

    def begin_text(self, end: int) -> None:
        """Set where the text of the reply begins, behind reasoning that ends at `end`; to None if text or a call was
        emitted before that reasoning."""
        self.text_start = end if self.is_silent else None

    def switch(self, *, reasoning: bool) -> None:
        """Switch to reasoning, or back to text. Code fences and quotations that are open end, and text is no longer on
        the line of a call. Blanks that wait and earlier events stay; no event is emitted."""
        self.in_reasoning = reasoning
        self._is_behind_call = False
        self.shown = Shown()

    def recast(self, end: int) -> None:
        """Turn all text so far into reasoning that ends at position `end`, with a `Recast` event if there is text. The
        text of the reply begins there, and the reply counts as silent. Whether text that follows is reasoning does not
        change."""
        if self.text_chars:
            self.events.append(Recast(self.text_chars, "reasoning"))
        self.text_chars = 0
        self.is_silent = True
        self.text_start = end
        self._last = (Reasoning, self._last[1]) if self._last is not None and self._last[0] is Text else None
        self.spans.recast_text()

    # -- blanks --------------------------------------------------------------------------------------------------------

    def drop_blanks(self) -> None:
        """Drop the waiting blanks, because a marker follows. They have no event; their span belongs to what follows."""
        self._blanks.clear()
        if self.shown.is_new:
            self.shown = Shown()  # it may have taken them

    def hold_blanks(self, blanks: str, end: int) -> None:
        """Hold blanks that end at position `end` until it is known what follows; no event is emitted. Directly behind a
        marker they belong to it and are not held; a line break in them lets text behind them begin a line."""
        if self.after_marker:
            self.spans.mark("marker", end)
            self._is_behind_call = self._is_behind_call and "\n" not in blanks
        elif blanks:
            self.shown.take(blanks)
            self._blanks.append(blanks)

    def flush_blanks(self, end: int) -> None:
        """Emit the waiting blanks at the end of the reply, because no marker follows; behind a marker they are dropped.
        What no span covers up to `end`, the end of the text, becomes a marker."""
        if self._blanks:
            if not self.after_marker:
                self._append("".join(self._blanks), end)
            self._blanks.clear()
        self.spans.mark("marker", end)

    # -- markers and calls ---------------------------------------------------------------------------------------------

    def drop_marker(self, end: int, *, begins_line: bool = False, continues_line: bool = False) -> None:
        """Cover a marker that ends at position `end`, with the blanks around it, and emit nothing for it. Waiting
        blanks are dropped; code fences and quotations that are open end.

        `begins_line`: a body without opener may follow. `continues_line`: what follows is on the line of the marker.
        """
        if self._blanks or not self.shown.is_new:
            self._blanks.clear()
            self.shown = Shown()
        self.after_marker = True
        self.spans.mark("marker", end)
        self.at_start = self.at_start or begins_line
        self._is_behind_call = self._is_behind_call or continues_line

    def drop_inline_mark(self, end: int) -> None:
        """Cover a mark inside text that ends at position `end`, such as a citation tag, without an event. The text
        around it stays one piece (`gap` becomes 0); directly behind a marker it is part of that marker. Waiting blanks
        stay."""
        self.gap = 0
        if self.after_marker:
            self.spans.mark("marker", end)  # the marker before it separates the texts
        else:
            self.spans.mark_inside_text(end)

    def begin_line(self) -> None:
        """Allow a body without opener at this place, the beginning of a line; inside a block of a protocol's text
        forbid it."""
        self.at_start = not self.tag

    def take_start(self) -> bool:
        """Return whether a body without opener may begin here, and forget it: the next call returns False unless a line
        begins."""
        at_start, self.at_start = self.at_start, False
        return at_start

    def set_tag(self, tag: str) -> None:
        """Begin a block of a protocol's text, or end it with "": what follows is text, no reasoning. Code fences and
        quotations that are open end. Once a block has begun, the reply's text is not searched for calls, also behind
        the block."""
        self.switch(reasoning=False)
        self.tag = tag
        self.is_placed = self.is_placed or bool(tag)

    def begin_message(self, kind: str | None) -> None:
        """Begin a message that holds "reasoning", "content" or (None) a call. Open code fences and quotations end;
        before a call the waiting blanks are dropped. Once a message of content has begun, the reply's text is not
        searched for calls."""
        self.switch(reasoning=kind == "reasoning")
        self.is_placed = self.is_placed or kind == "content"
        if kind is None:
            self.drop_blanks()

    def call(self, start: int, end: int | None = None) -> None:
        """Begin a call at position `start`, which ends at `end` if that is known: the blanks before it belong to a
        marker, text behind it is a new piece, and code fences and quotations that are open end. The reply is not silent
        any more. Only spans are made, no event; without `end` none for the call."""
        if self._blanks or not self.shown.is_new:
            self._blanks.clear()
            self.shown = Shown()
        self.is_silent = False
        self._is_behind_call = True
        self._last = None
        if end is None:
            self.spans.mark("marker", start)
        else:
            self.spans.mark_call(start, end)

    def end_calls(self, end: int | None = None) -> None:
        """End a block of calls at position `end`: a body without opener may follow, what no span covers is a marker,
        and waiting blanks are dropped. None if the text ended inside it: none of these holds then. Either way blanks
        that follow belong to its marker."""
        self.after_marker = True
        if end is not None:
            if self._blanks:
                self.drop_blanks()
            self.at_start = True
            self.spans.mark("marker", end)

    def done(self, text: str, end: int) -> None:
        """Emit the end of a protocol's task with its text; the block that reports it ends at position `end`. A body
        without opener may follow, and the reply's text is not searched for calls."""
        self.events.append(Done(text))
        self.is_placed = True
        self.drop_marker(end, begins_line=True)

    # -- speculation ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the current state for `restore`, and begin to look for code fences and quotations anew."""
        taken = self.spans.snapshot(), _restored_values(self)
        self.shown, self._blanks = Shown(), self._blanks[:]
        return taken

    def restore(self, before: Snapshot, events: list[Event]) -> None:
        """Return to the state of the snapshot `before`, except for `at_start`, `gap` and `tag`, which stay. `events`
        become the events that are not yet taken."""
        self.events = events
        self.spans.restore(before[0])
        for name, value in zip(_RESTORED, before[1], strict=True):
            setattr(self, name, value)
        self._is_behind_call = False


# -- events that were emitted ------------------------------------------------------------------------------------------


class Fold:
    """Add events up to a reply. Neighbouring pieces of text, or of reasoning, are one part."""

    __slots__ = ("_done", "_parts", "_pieces", "_places", "_problems", "_tag")

    def __init__(self) -> None:
        self._parts: list[Part | None] = []  # None is the place of a call that has not ended
        self._places: dict[int, int] = {}  # of those calls, by their index: text may follow a call before it ends
        self._pieces: list[str] = []  # of the current part
        self._tag: str | None = ""  # of the current part if it is text; None if it is reasoning
        self._done: str | None = None
        self._problems: list[Problem] = []

    def add(self, events: Iterable[Event]) -> None:
        """Add events, in order, to the reply. Deltas of arguments are ignored, because the end of a call has all of
        them. A call is placed where it began, or, without a start, where it ends; a `Recast` changes the parts so far.
        The last `Done` counts."""
        parts, places = self._parts, self._places
        for event in events:
            kind = type(event)
            if kind is Arguments:  # a preview of what the end of the call holds
                continue
            if kind is CallStart:
                if self._pieces:
                    self._end_part()
                places[event.index] = len(parts)  # type: ignore[union-attr]
                parts.append(None)
            elif kind is CallEnd:
                place = places.pop(event.index, -1) if places else -1  # type: ignore[union-attr]
                if place >= 0:
                    parts[place] = event.call  # type: ignore[union-attr, assignment]
                else:  # without a preview
                    if self._pieces:
                        self._end_part()
                    parts.append(event.call)  # type: ignore[union-attr, arg-type]
            elif kind is Text or kind is Reasoning:
                tag = event.tag if kind is Text else None  # type: ignore[union-attr]
                if self._tag != tag:
                    self._end_part()
                self._tag = tag
                self._pieces.append(event.text)  # type: ignore[union-attr]
            elif isinstance(event, Problem):
                self._problems.append(event)
            elif isinstance(event, Recast):
                self._recast(event)
            elif isinstance(event, Done):
                self._done = event.text

    def _end_part(self) -> None:
        """End the current part of text or reasoning, if there is one: the next piece begins a new part."""
        if self._pieces:
            self._parts.append(self._part())
            self._pieces = []

    def _part(self) -> Part:
        """Return the current part as text or reasoning."""
        text = "".join(self._pieces)
        return Reasoning(text) if self._tag is None else Text(text, self._tag)

    def _recast(self, event: Recast) -> None:
        """Apply a `Recast`: turn the last `chars` characters of text into reasoning, or drop the last characters of
        text (kind "call") or of reasoning (kind "thought"), because a call replaces them. Calls and parts of the other
        kind in between stay. A text or reasoning that is last then becomes the current part."""
        self._end_part()
        chars = event.chars
        for i in range(len(self._parts) - 1, -1, -1):
            part = self._parts[i]
            if chars <= 0:
                break
            if not isinstance(part, Reasoning if event.kind == "thought" else Text):
                continue
            keep = max(0, len(part.text) - chars)
            chars -= len(part.text)
            made: list[Part | None] = [msgspec.structs.replace(part, text=part.text[:keep])] if keep else []
            made += [Reasoning(part.text[keep:])] if event.kind == "reasoning" else []
            self._parts[i : i + 1] = made
            for index, place in self._places.items():
                self._places[index] = place + (len(made) - 1 if place > i else 0)
        if self._parts and isinstance(last := self._parts[-1], (Text, Reasoning)):
            # Text of the same kind that follows belongs to the same part, as it does if the text was held back.
            self._parts.pop()
            self._pieces, self._tag = [last.text], last.tag if isinstance(last, Text) else None

    def reply(self, format: str, spans: tuple[Span, ...] | None = None, finish: str | None = None) -> Reply:
        """Return the reply that the events so far make, without calls that have not ended; more events may still be
        added. The arguments are fields of the reply."""
        last = (self._part(),) if self._pieces else ()
        parts = [part for part in self._parts if part is not None] if self._places else self._parts
        return Reply((*parts, *last), tuple(self._problems), format, self._done, spans, finish)


class Hold:
    """Hold back events that a `Recast` may change: text until the first call, reasoning until something follows it."""

    __slots__ = ("_has_call", "_held")

    def __init__(self) -> None:
        self._held: list[Event] = []
        self._has_call = False

    def pass_on(self, events: list[Event], *, closed: bool) -> list[Event]:
        """Add events and return those, held or new, that can go out now: everything up to and with a call's beginning,
        or, behind a call, text; all of them if `closed`. Behind a call other events go out at once, unless reasoning
        before them is held. The others are held."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, CallStart) or (self._has_call and isinstance(event, Text)):
                out += self._release()
                out.append(event)
                self._has_call = True
            elif self._held or not self._has_call or isinstance(event, Reasoning):
                self._held.append(event)
            else:
                out.append(event)
        return [*out, *self._release()] if closed else out

    def _release(self) -> list[Event]:
        """Return and forget the held events with every `Recast` applied: one event for each part, then problems, the
        last `Done`, and deltas and ends of calls."""
        held, self._held = self._held, []
        of_calls = [event for event in held if isinstance(event, (Arguments, CallEnd))]
        others = Fold()
        others.add([event for event in held if not isinstance(event, (Arguments, CallEnd))])
        reply = others.reply("", None)
        parts = [part for part in reply.parts if not isinstance(part, Call)]
        done = [Done(reply.done)] if reply.done is not None else []
        return [*parts, *reply.problems, *done, *of_calls]


class EventReader(Protocol):
    """A `Parser` or a `Stream`."""

    def feed(self, chunk: Any, /) -> list[Event]: ...
    def close(self) -> list[Event]: ...


def all_events(
    reader: EventReader, chunks: Iterable[Any] | AsyncIterable[Any]
) -> Iterator[Event] | AsyncIterator[Event]:
    """Feed all chunks to a reader and close it at their end. Return an iterator over its events, an async one for async
    chunks; nothing is fed before it is iterated."""
    return _async_events(reader, chunks) if isinstance(chunks, AsyncIterable) else _events(reader, chunks)


def _events(reader: EventReader, chunks: Iterable[Any]) -> Iterator[Event]:
    """Yield the events of each chunk that is fed to the reader, then those of its `close`."""
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.close()


async def _async_events(reader: EventReader, chunks: AsyncIterable[Any]) -> AsyncIterator[Event]:
    """Yield the events of each chunk that is fed to the reader, then those of its `close`."""
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
    for event in reader.close():
        yield event
