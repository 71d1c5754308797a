"""Work with the events of a reply: add them up, hold back what may be recast, iterate over a stream."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Protocol

import msgspec

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
