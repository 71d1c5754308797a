"""Group commit: whoever appends waits until the row is on disk, and rows that wait together share one sync.

    rows = Commits(Journal("capture.jsonl"))
    await rows.append(row)                   # on disk when it returns

While a sync is under way others gather, and go with the next one. Alone, a row costs one sync, as it should.
"""

from __future__ import annotations

import asyncio

from rightcall.errors import FileFailed
from rightcall.storage.journal import Journal
from rightcall.types import Json


class Commits:
    """Appends to one file for many tasks of one event loop. After a failure nothing more is taken."""

    def __init__(self, file: Journal, *, alone: bool = False) -> None:
        self._file, self._alone = file, alone
        self._waiting: list[tuple[Json, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None
        self._failed: FileFailed | OSError | None = None
        self.syncs = 0

    async def append(self, row: Json) -> None:
        """Raises `FileFailed`, naming step, path and cause."""
        if self._failed is not None:
            raise self._failed
        if self._alone:  # nobody else waits, so nobody is held up
            self._write([row])
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((row, done))
        if self._work is None:
            self._work = asyncio.create_task(self._drain())
        await done

    async def flush(self) -> None:
        """Waits for what is being written; whoever asked for it may be gone."""
        if self._work is not None:
            await self._work

    async def _drain(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, [row for row, _ in taken])
            except (FileFailed, OSError) as error:
                self._failed = error
                taken += self._waiting  # nobody may wait for what will not come
                self._waiting = []
            for _, done in taken:
                if not done.done():
                    done.set_result(None) if self._failed is None else done.set_exception(self._failed)
        self._work = None

    def _write(self, rows: list[Json]) -> None:
        self._file.append_all(rows)
        self.syncs += 1
