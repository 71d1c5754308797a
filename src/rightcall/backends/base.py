"""The interface of every backend, and its synchronous form.

async with Backend(url) as backend:        # connections stay open
    answer = await backend.complete(request)
    async with backend.stream(request) as stream:
        async for event in stream: ...
    stream.answer

Backend(url).complete_sync(request)        # also inside a running loop: it runs on another thread
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

from rightcall.backends.request import Answer, Request
from rightcall.errors import CallerError
from rightcall.types import Event

T = TypeVar("T")


class LoopThread:
    """Run awaitables one after the other on an event loop in another thread. An interrupt while waiting (Ctrl-C)
    cancels the awaitable."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rightcall", daemon=True)
        self._thread.start()
        return self

    def start(self, work: Awaitable[T]) -> Future[T]:
        """Start the awaitable on the loop's thread without waiting, and return a future of its result. Cancelling the
        future cancels the awaitable."""
        return asyncio.run_coroutine_threadsafe(_await_as_coroutine(work), self._loop)

    def run(self, work: Awaitable[T]) -> T:
        """Run the awaitable on the loop's thread, wait for it, and return its result or raise its exception. An
        exception in the waiting thread, such as Ctrl-C, cancels it."""
        done = self.start(work)
        try:
            return done.result()
        except BaseException:
            done.cancel()
            raise

    def __exit__(self, *_: object) -> None:
        self.run(_cancel_all_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _await_as_coroutine(work: Awaitable[T]) -> T:
    """Return the result of an awaitable; as a coroutine, since an event loop takes no other awaitables from another
    thread."""
    return await work


async def _cancel_all_tasks() -> None:
    """Cancel all other tasks of the running loop, wait for them, and close abandoned async generators. Exceptions of
    the tasks are ignored."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()


class Streaming(AsyncIterator[Event]):
    """The events of one answer as they arrive, then `.answer`. An async iterator and context manager; leaving it early,
    or cancelling, closes the connection. `events` yields the events, then the answer."""

    def __init__(self, events: AsyncGenerator[Event | Answer]) -> None:
        self._events = events
        self._answer: Answer | None = None

    async def __anext__(self) -> Event:
        async for event in self._events:
            if not isinstance(event, Answer):
                return event
            self._answer = event
        raise StopAsyncIteration

    @property
    def answer(self) -> Answer:
        """The complete answer. Raises `CallerError` until every event was consumed."""
        if self._answer is None:
            raise CallerError("the stream has not ended; take all of its events first")
        return self._answer

    async def aclose(self) -> None:
        """Stop the answer and close its connection. May be called twice."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SyncStreaming(Iterator[Event]):
    """`Streaming` for programs without an event loop: an iterator and context manager over `events`."""

    def __init__(self, events: Generator[Event | Answer]) -> None:
        self._events = events
        self._answer: Answer | None = None

    def __next__(self) -> Event:
        for event in self._events:
            if not isinstance(event, Answer):
                return event
            self._answer = event
        raise StopIteration

    @property
    def answer(self) -> Answer:
        """The complete answer. Raises `CallerError` until every event was consumed."""
        if self._answer is None:
            raise CallerError("the stream has not ended; take all of its events first")
        return self._answer

    def close(self) -> None:
        """Stop the answer and close its connection. May be called twice."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BaseBackend:
    """The interface of a model that answers requests. A subclass implements `stream`, and `complete` if it has a
    cheaper implementation. As a context manager (`async with`) it keeps its connections open between requests."""

    def stream(self, request: Request) -> Streaming:
        """Stream the events of the answer to `request`, the same as those of a `Parser`. Raises a `BackendError` before
        the first event or not at all: a later failure is a problem of the answer."""
        raise NotImplementedError

    async def complete(self, request: Request) -> Answer:
        """Return the complete answer to `request`. Raises a `BackendError` if there is none."""
        async with self.stream(request) as stream:
            async for _ in stream:
                pass
        return stream.answer

    async def aclose(self) -> None:
        """Release what the backend holds open. The backend can be used again afterwards."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def complete_sync(self, request: Request) -> Answer:
        """Return the complete answer to `request`, for programs without an event loop. It also works inside a running
        loop, since it runs on another thread."""
        with LoopThread() as thread:
            return thread.run(self.complete(request))

    def stream_sync(self, request: Request) -> SyncStreaming:
        """Stream the events of the answer to `request`, for programs without an event loop."""
        return SyncStreaming(self._stream_sync(request))

    def _stream_sync(self, request: Request) -> Generator[Event | Answer]:
        """Yield the events of the answer to a request, then the `Answer`, while an event loop in another thread
        receives them. Closing the generator closes the stream."""
        with LoopThread() as thread:
            stream = self.stream(request)
            try:
                while (event := thread.run(anext(stream, None))) is not None:
                    yield event
                yield stream.answer
            finally:
                thread.run(stream.aclose())
