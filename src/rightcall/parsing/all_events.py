"""All the events of a stream, so that a handler is written once: every chunk is fed, then the end is told."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Protocol

from rightcall.types import Event


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
