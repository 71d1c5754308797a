"""Events of a reply: emit them, add them up, hold back what may be recast, iterate over a stream.

`Output` emits the events of one machine in order, with spans that tile the text; `Fold` adds events up to a reply.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from rightcall.parsing.markers import BLANKS
from rightcall.parsing.shown import OUTSIDE, Shown
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

Tile = tuple[int, SpanKind]  # where a span ends that begins where the one before it does


class Snapshot(msgspec.Struct, frozen=True):
    """The state of an output, to which `Output.restore` returns."""

    tiles: list[Tile]  # the output's own list, which only grows: the first `over` of it count
    over: int
    kind: SpanKind
    tiled: int
    blanks: list[str]
    after_marker: bool
    is_silent: bool
    last: type[Text | Reasoning] | None
    last_tag: str
    text_chars: int
    text_start: int | None
    is_placed: bool
    in_reasoning: bool
    shown: Shown


class Output:
    """Collect events and spans. `events` is what goes out next; the caller that takes them puts a new list there."""

    __slots__ = (
        *("_blanks", "_is_behind_call", "_kind", "_last", "_last_tag", "_seamless", "_tiles", "after_marker"),
        *("at_start", "events", "gap", "in_reasoning", "is_placed", "is_silent", "shown", "tag", "text_chars"),
        *("text_start", "tiled"),
    )

    def __init__(self) -> None:
        self.gap = 0  # characters that separate the last run of text from the one before it
        self.is_placed = False  # text was where only text belongs: it is not rescued
        self.in_reasoning = False  # what follows is reasoning, not text
        self.tag = ""  # the block of a protocol around the text
        self.after_marker = False  # a marker was last: blanks that follow belong to it
        self.text_chars = 0  # characters emitted as text
        self.at_start = True  # a body without opener may begin here: nothing was emitted in this reply, or this line
        self.is_silent = True  # no text and no call was emitted yet
        self.text_start: int | None = 0  # where the text of the reply begins; None: some is before reasoning
        self._last: type[Text | Reasoning] | None = None  # what was emitted last
        self._last_tag = ""  # the tag of the text emitted last
        self._seamless: set[int] | None = None  # where text continues behind a mark inside it
        self.tiled = 0  # characters that the spans cover
        self.events: list[Event] = []
        self._tiles: list[Tile] = []  # those that are over
        self._kind: SpanKind = "marker"  # of the last one, which ends where `tiled` says
        self.shown = Shown()
        self._is_behind_call = False  # what comes next stands on the line that a call ends on
        self._blanks: list[str] = []  # white space read but not yet known to be text or a marker's

    def problem(self, made: Problem) -> None:
        self.events.append(made)

    def mark(self, kind: SpanKind, end: int) -> None:
        """Cover the text up to `end`, as far as no span covers it yet, with a span of this kind."""
        if end > self.tiled:
            if kind != self._kind:
                self._tiles.append((self.tiled, self._kind))
                self._kind = kind
            self.tiled = end

    @property
    def ends_in_reasoning(self) -> bool:
        """Was the last text that was emitted reasoning?"""
        return self._last is Reasoning

    @property
    def spans(self) -> list[Span]:
        """The spans of the text so far."""
        tiles = [*self._tiles, (self.tiled, self._kind)]
        starts = [0, *[end for end, _ in tiles]]
        return [Span(start, end, kind) for start, (end, kind) in zip(starts, tiles, strict=False) if end > start]

    @spans.setter
    def spans(self, spans: list[Span]) -> None:
        self._tiles = [(span.end, span.kind) for span in spans]
        self.tiled, self._kind = self._tiles.pop() if self._tiles else (0, "marker")

    # -- text and reasoning --------------------------------------------------------------------------------------------

    def emit(self, text: str, end: int) -> None:
        """Emit text or reasoning that ends at `end`. Behind a marker its leading blanks belong to the marker."""
        if self.after_marker:
            trimmed = text.lstrip(BLANKS)
            self.mark("marker", end - len(trimmed))
            if self._is_behind_call:
                self._go_on(text[: len(text) - len(trimmed)], bool(trimmed))
            if not trimmed:
                return
            text, self.after_marker, self.gap = trimmed, False, 0
            if self._last is (Reasoning if self.in_reasoning else Text) and self._last_tag == self.tag:
                # A marker stood between two texts: they are told apart as two parts would be.
                self.gap = 2 if self.tag else 1
                self._append("\n" * self.gap, self.tiled)
        self._emit_text(text, end)

    def emit_exact(self, text: str, end: int) -> None:
        """Emit text that ends at `end` with all its blanks: it was taken for the beginning of a call."""
        if self.after_marker:
            self.gap = 0
        self.after_marker = self.at_start = False
        self._emit_text(text, end)

    def emit_after_call(self, text: str, end: int) -> None:
        """Emit text behind a call that was taken before the end of the call was certain."""
        trimmed = text.lstrip(BLANKS)
        self.mark("marker", end - len(trimmed))
        if self._is_behind_call:
            self._go_on(text[: len(text) - len(trimmed)], bool(trimmed))
        self.after_marker, self.gap = False, 0
        self._emit_text(trimmed, end)

    def _go_on(self, blanks: str, is_text: bool) -> None:
        """Note whether the text behind a call begins a line: only if a line break is between them."""
        if is_text and "\n" not in blanks:
            self.shown.go_on()
        self._is_behind_call = not is_text and "\n" not in blanks

    def content(self, text: str, start: int, end: int) -> None:
        """Emit text that the format carries as a JSON value, which is between these positions."""
        self.drop_blanks()
        self.is_placed = True
        if text:
            self.events.append(Text(text))
            self.is_silent = False
        self.mark("marker", start)
        self.mark("text", end)

    def _emit_text(self, text: str, end: int) -> None:
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
        if self.in_reasoning:
            self._last = Reasoning
            self.events.append(Reasoning(text))
            self.begin_text(end)
            self.mark("reasoning", end)
            return
        self._last, self._last_tag = Text, self.tag
        self.is_silent = self.at_start = False
        self.text_chars += len(text)
        self.events.append(Text(text, self.tag))
        self.mark("text", end)

    def begin_text(self, end: int) -> None:
        """Note that the text of the reply begins behind reasoning that ends at `end`, if no text was before it."""
        self.text_start = end if self.is_silent else None

    def snapshot(self) -> Snapshot:
        """Return the current state. What follows counts as the beginning of a text of its own."""
        taken = Snapshot(
            self._tiles,
            len(self._tiles),
            self._kind,
            self.tiled,
            self._blanks[:],
            self.after_marker,
            self.is_silent,
            self._last,
            self._last_tag,
            self.text_chars,
            self.text_start,
            self.is_placed,
            self.in_reasoning,
            self.shown,
        )
        self.shown = Shown()
        return taken

    def restore(self, before: Snapshot, events: list[Event]) -> None:
        """Return to an earlier state. `events` are still to go out."""
        self.events = events
        del before.tiles[before.over :]
        self._tiles, self._kind, self.tiled, self._blanks = before.tiles, before.kind, before.tiled, before.blanks
        self.after_marker, self.is_silent, self._last = before.after_marker, before.is_silent, before.last
        self._last_tag, self.text_chars = before.last_tag, before.text_chars
        self.text_start, self.is_placed = before.text_start, before.is_placed
        self.in_reasoning, self.shown = before.in_reasoning, before.shown
        self._is_behind_call = False

    # -- markers -------------------------------------------------------------------------------------------------------

    def drop_marker(self, end: int) -> None:
        """Drop a marker that ends at `end`, with the blanks around it."""
        if self._blanks:
            self.drop_blanks()
        self.after_marker = True
        if not self.shown.is_new:
            self.shown = Shown()
        self.mark("marker", end)

    def continue_line(self) -> None:
        """Note that what follows continues the line of a closing marker."""
        self._is_behind_call = True

    def skip_mark(self, end: int) -> None:
        """Drop a mark inside text that ends at `end`. The text around it stays one piece."""
        self.gap = 0
        self.mark("marker", end)
        if self.after_marker:
            return  # the marker before it tells the texts apart
        if self._seamless is None:
            self._seamless = set()
        self._seamless.add(end)

    def reasoning_since(self, start: int) -> int:
        """Count the characters of reasoning that were emitted from this position on."""
        given = [span for span in self.spans if span.kind == "reasoning" and span.end > start]
        breaks = sum(span.start not in (self._seamless or ()) for span in given[1:])
        return sum(span.end - max(span.start, start) for span in given) + breaks

    def drop_blanks(self) -> None:
        """Drop the waiting blanks: a marker follows."""
        self._blanks.clear()
        if self.shown.is_new:
            self.shown = Shown()  # it may have taken them

    def hold_blanks(self, blanks: str, end: int) -> None:
        """Hold blanks that end at `end`: they belong to the last marker, or wait for what follows."""
        if self.after_marker:
            self.mark("marker", end)
            self._is_behind_call = self._is_behind_call and "\n" not in blanks
        elif blanks:
            self.shown.take(blanks)
            self._blanks.append(blanks)

    def shows(self, level: int = OUTSIDE, *, special: bool = False) -> bool:
        """Is the marker that comes next only shown, by the text so far?"""
        return self.shown.shows(level, special=special)

    def call(self, start: int) -> None:
        """Begin a call at this position."""
        if self._blanks:
            self.drop_blanks()
        self.is_silent = False
        self._is_behind_call = True
        self._last = None
        if not self.shown.is_new:
            self.shown = Shown()
        self.mark("marker", start)

    def whole_call(self, start: int, end: int) -> None:
        """Cover a whole call. The same as `call` and `mark`, in fewer steps."""
        if self._blanks:
            self.drop_blanks()
        self.is_silent = False
        self._is_behind_call = True
        self._last = None
        if not self.shown.is_new:
            self.shown = Shown()
        if start > self.tiled:
            if self._kind != "marker":
                self._tiles.append((self.tiled, self._kind))
                self._kind = "marker"
            self.tiled = start
        if self._kind != "call":
            self._tiles.append((self.tiled, self._kind))
            self._kind = "call"
        self.tiled = end

    def flush_blanks(self, end: int) -> None:
        """Emit the blanks at the end of the reply: no marker follows."""
        if self._blanks:
            if not self.after_marker:
                self._append("".join(self._blanks), end)
            self._blanks.clear()
        self.mark("marker", end)

    def switch(self, *, reasoning: bool) -> None:
        """Switch to reasoning, or back to text. An open code fence ends."""
        self.in_reasoning = reasoning
        self._is_behind_call = False
        self.shown = Shown()

    def recast(self, end: int) -> None:
        """Recast all text so far, up to `end`, as reasoning."""
        if self.text_chars:
            self.events.append(Recast(self.text_chars, "reasoning"))
        self.text_chars = 0
        self.is_silent = True
        self.text_start = end
        self._last = Reasoning if self._last is Text else None
        self._tiles = [(end, "reasoning" if kind == "text" else kind) for end, kind in self._tiles]
        self._kind = "reasoning" if self._kind == "text" else self._kind


# -- events that were emitted ------------------------------------------------------------------------------------------


class Fold:
    """Adds events up. Neighbouring pieces of text, or of reasoning, are one part."""

    __slots__ = ("_done", "_parts", "_pieces", "_places", "_problems", "_tag")

    def __init__(self) -> None:
        self._parts: list[Part | None] = []  # None is the place of a call that is not settled
        self._places: dict[int, int] = {}  # of those calls, by their index: text may follow one before it is settled
        self._pieces: list[str] = []  # of the part being added to
        self._tag: str | None = ""  # of that part, where it is text; None where it is reasoning
        self._done: str | None = None
        self._problems: list[Problem] = []

    def add(self, events: Iterable[Event]) -> None:
        parts, places = self._parts, self._places
        for event in events:
            kind = type(event)
            if kind is Arguments:  # a preview of what the call's end tells
                continue
            if kind is CallStart:
                if self._pieces:
                    self._flush()
                places[event.index] = len(parts)  # type: ignore[union-attr]
                parts.append(None)
            elif kind is CallEnd:
                place = places.pop(event.index, -1) if places else -1  # type: ignore[union-attr]
                if place >= 0:
                    parts[place] = event.call  # type: ignore[union-attr, assignment]
                else:  # nobody was told that it began
                    if self._pieces:
                        self._flush()
                    parts.append(event.call)  # type: ignore[union-attr, arg-type]
            elif kind is Text or kind is Reasoning:
                tag = event.tag if kind is Text else None  # type: ignore[union-attr]
                if self._tag != tag:
                    self._flush()
                self._tag = tag
                self._pieces.append(event.text)  # type: ignore[union-attr]
            else:
                self._add_of_reply(event)

    def _add_of_reply(self, event: Event) -> None:
        match event:
            case Problem():
                self._problems.append(event)
            case Recast():
                self._recast(event)
            case Done(text=text):
                self._done = text

    def _flush(self) -> None:
        if self._pieces:
            self._parts.append(self._part())
            self._pieces = []

    def _part(self) -> Part:
        text = "".join(self._pieces)
        return Reasoning(text) if self._tag is None else Text(text, self._tag)

    def _put(self, i: int, made: list[Part | None]) -> None:
        """These parts for the one at that place."""
        self._parts[i : i + 1] = made
        for index, place in self._places.items():
            self._places[index] = place + (len(made) - 1 if place > i else 0)

    def _recast(self, event: Recast) -> None:
        """The last so many characters of text were reasoning, or belong to a call that follows; or those of reasoning
        belong to one."""
        self._flush()
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
            self._put(i, made)
        if self._parts and isinstance(last := self._parts[-1], (Text, Reasoning)):
            # What follows of the same kind belongs to the same part, as it does where the text was held back.
            self._parts.pop()
            self._pieces, self._tag = [last.text], last.tag if isinstance(last, Text) else None

    def reply(self, format: str, spans: tuple[Span, ...] | None = None, finish: str | None = None) -> Reply:
        """What the events so far add up to; more may still be added."""
        last = (self._part(),) if self._pieces else ()
        parts = [part for part in self._parts if part is not None] if self._places else self._parts
        return Reply((*parts, *last), tuple(self._problems), format, self._done, spans, finish)


class Hold:
    """Text waits for the first call; reasoning for whatever is said or called behind it; both for the end."""

    __slots__ = ("_has_call", "_held")

    def __init__(self) -> None:
        self._held: list[Event] = []
        self._has_call = False

    def pass_on(self, events: list[Event], *, closed: bool) -> list[Event]:
        """Of what was held and these, the events that may go out now."""
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
        """What was held, as it came out in the end: nothing of it is recast."""
        held, self._held = self._held, []
        of_calls = [event for event in held if isinstance(event, (Arguments, CallEnd))]
        settled = Fold()
        settled.add([event for event in held if not isinstance(event, (Arguments, CallEnd))])
        reply = settled.reply("", None)
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
    """An iterator over an ordinary stream, an async one over an async stream."""
    return _async_events(reader, chunks) if isinstance(chunks, AsyncIterable) else _events(reader, chunks)


def _events(reader: EventReader, chunks: Iterable[Any]) -> Iterator[Event]:
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.close()


async def _async_events(reader: EventReader, chunks: AsyncIterable[Any]) -> AsyncIterator[Event]:
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
    for event in reader.close():
        yield event
