"""One tool, run once, within its time: async tools here, others in a thread of their own.

A thread cannot be stopped. One that outlives its time is named in the error; it is a daemon, so it does not keep the
program alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from rightcall.errors import ToolError, ToolTimedOut
from rightcall.tools.functions import Binding, Typed, binding, is_async
from rightcall.types import Tool

_numbers = itertools.count(1)


def bound_to(tool: Tool) -> Binding | None:
    """How this tool is run; None if it has no code. A callable of the user's own takes JSON as it is."""
    run = tool.run
    if run is None:
        return None
    return binding(run) or Binding(None, lambda typed: run(**typed), run, is_async(run))


async def timed(tool: str, waiting: Awaitable[Any], seconds: float | None, thread: str = "") -> Any:
    if seconds is None:
        return await waiting
    try:
        async with asyncio.timeout(seconds) as clock:
            return await waiting
    except TimeoutError:
        if not clock.expired():  # the tool's own
            raise
        raise ToolTimedOut(tool, seconds, thread) from None


class Begun:
    """A coroutine that waits for the first time, to be awaited from there."""

    __slots__ = ("coroutine", "first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self.coroutine, self.first = coroutine, first

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self.first
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001 - cancelled, or what it waited for failed: for the tool
                    waits_for = self.coroutine.throw(error)
                else:
                    waits_for = self.coroutine.send(sent)
        except StopIteration as done:
            return done.value


async def in_thread(tool: str, call: Callable[[Typed], Any], typed: Typed, seconds: float | None) -> Any:
    """What a tool that is not async gives. If that is an awaitable, it is waited for here."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        given: Any = None
        error: BaseException | None = None
        try:
            given = context.run(call, typed)
        except StopIteration as stop:  # which a future cannot carry
            error = ToolError(f"StopIteration: {stop}")
        except BaseException as raised:  # noqa: BLE001 - carried over to the waiting side
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_hand_over, future, given, error)

    thread = threading.Thread(target=work, name=f"rightcall-{tool}-{next(_numbers)}", daemon=True)
    started = loop.time()
    thread.start()
    try:
        given = await timed(tool, future, seconds, thread.name)
    except asyncio.CancelledError as cancelled:
        cancelled.add_note(f"its thread {thread.name!r} cannot be stopped and may still be running")
        raise
    if not inspect.isawaitable(given):
        return given
    return await timed(tool, given, None if seconds is None else max(0.0, seconds - (loop.time() - started)))


def _hand_over(future: asyncio.Future[Any], given: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(given)
    else:
        future.set_exception(error)
