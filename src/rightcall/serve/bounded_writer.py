"""Rows that are written beside the traffic: by a thread of its own, from a queue that is never long.

    writer = BoundedWriter(to_file("capture.jsonl"), row_of)
    writer.put(exchanged, size)      # at once, always; False if there was no room

Nothing that happens to a disk is felt by whoever puts: what has no room is dropped, what cannot be written is lost, and
both are counted and told, at most once a minute.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from rightcall.errors import FileFailed
from rightcall.storage.journal import Journal

Item = TypeVar("Item")
MOST_ROWS, MOST_BYTES = 10_000, 64_000_000
_TELL_EVERY = 60.0
_BATCH = 200


class LineSink:
    """Where lines go: a file that is appended to, each line whole and on disk, or standard error for "-"."""

    def __init__(self, path: str) -> None:
        """Raises `FileFailed` if it cannot be written to."""
        self.path = path
        self._journal = None if path == "-" else Journal(path, torn="cut")

    def write(self, lines: bytes) -> None:
        """Raises `FileFailed`."""
        if self._journal is not None:
            return self._journal.append_bytes(lines)
        try:
            sys.stderr.buffer.write(lines)
            sys.stderr.buffer.flush()
        except (OSError, ValueError) as error:
            raise FileFailed(f"cannot write to standard error: {error}") from None

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()


class BoundedWriter(Generic[Item]):
    """Makes rows of items and writes them, in a thread. `row_of` is asked there too: it may take its time.

    - `written`, `dropped`, `failed`: how many rows were, had no room, could not be made or written.
    """

    def __init__(
        self,
        sink: LineSink,
        row_of: Callable[[Item], bytes],
        *,
        tell: Callable[[str], None] | None = None,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._sink, self._row_of, self._tell = sink, row_of, tell or _say
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self.written = self.dropped = self.failed = 0
        self._waiting: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._is_closing = False
        self._told = -_TELL_EVERY
        self._thread = threading.Thread(target=self._run, name=f"rightcall {sink.path}", daemon=True)
        self._thread.start()

    def put(self, item: Item, size: int = 0) -> bool:
        """Takes an item of about so many bytes, if there is room."""
        with self._changed:
            full = len(self._waiting) >= self._most_rows or self._bytes + size > self._most_bytes
            if full or self._is_closing:
                self.dropped += 1
                return False
            self._waiting.append((item, size))
            self._bytes += size
            self._changed.notify()
        return True

    def close(self, seconds: float = 5.0) -> None:
        """What waits is written, if that does not take longer than this."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(seconds)
        if not self._thread.is_alive():
            self._sink.close()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._taken():
            rows = [row for item, _ in batch if (row := self._made(item))]
            try:
                self._sink.write(b"".join(rows))
                self.written += len(rows)
            except FileFailed as error:
                self.failed += len(rows)
                self._complain(f"{error}; {self.failed} rows are lost so far, and requests are answered as before")
            with self._changed:
                self._bytes -= sum([size for _, size in batch])
            if self.dropped:
                self._complain(f"{self._sink.path}: {self.dropped} rows were dropped so far: the disk is too slow")

    def _taken(self) -> list[tuple[Item, int]]:
        """The next items; none when it is over."""
        with self._changed:
            while not self._waiting and not self._is_closing:
                self._changed.wait()
            return [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]

    def _made(self, item: Item) -> bytes:
        try:
            return self._row_of(item)
        except Exception as error:  # noqa: BLE001 - a row that cannot be made is counted and told; the thread goes on
            self.failed += 1
            self._complain(f"{self._sink.path}: a row could not be made: {type(error).__name__}")
            return b""

    def _complain(self, said: str) -> None:
        if time.monotonic() - self._told >= _TELL_EVERY:
            self._told = time.monotonic()
            self._tell(said)


def _say(said: str) -> None:
    sys.stderr.write(f"rightcall: {said}\n")
