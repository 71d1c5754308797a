"""An event loop on a thread of its own, so that a program may wait for it whether it runs a loop itself or not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Self, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs one awaitable after the other. What interrupts the waiting (Ctrl-C) cancels what is being waited for."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rightcall", daemon=True)
        self._thread.start()
        return self

    def start(self, work: Awaitable[T]) -> Future[T]:
        """Begins with it, and does not wait. Whoever lets go of what is given lets go of the work, too."""
        return asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)

    def run(self, work: Awaitable[T]) -> T:
        done = self.start(work)
        try:
            return done.result()
        except BaseException:
            done.cancel()
            raise

    def __exit__(self, *_: object) -> None:
        self.run(_ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _ended() -> None:
    """Waits for what was cancelled to be over, and for generators that were left in the middle."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
