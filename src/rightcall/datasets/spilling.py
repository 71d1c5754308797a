"""Sorting more than memory holds: records of one size, and one bit for every row.

keys = Sorted(24)
keys.add(digest + number)         # any number of times, in any order
for record in keys: ...           # in ascending order, out of memory that does not grow with their number
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from types import TracebackType
from typing import IO

from rightcall.errors import FileFailed

_MEMORY = 32_000_000  # bytes of records in memory, what Python needs for each among them
_EACH = 41  # bytes that it needs for a record, beside the record


class Sorted:
    """Records of `size` bytes in ascending order. They lie in a file without a name, which is gone afterwards."""

    def __init__(self, size: int, *, run: int | None = None) -> None:
        self._size, self._fitting = size, _MEMORY // (size + _EACH)
        self._most = run or self._fitting
        self._waiting: list[bytes] = []
        self._runs: list[tuple[int, int]] = []  # where each begins and ends, in records
        self._file: IO[bytes] | None = None
        self._written = 0

    def add(self, record: bytes) -> None:
        self._waiting.append(record)
        if len(self._waiting) >= self._most:
            self._spill()

    def _spill(self) -> None:
        self._waiting.sort()
        if self._file is None:
            self._file = scratch_file()
        _write(self._file, b"".join(self._waiting))
        end = self._written + len(self._waiting)
        self._runs.append((self._written, end))
        self._written = end
        self._waiting.clear()

    def __iter__(self) -> Iterator[bytes]:
        if not self._runs:
            self._waiting.sort()
            yield from self._waiting
            return
        if self._waiting:
            self._spill()
        for batch in self._merged():
            yield from batch

    def _merged(self) -> Iterator[list[bytes]]:
        """Whatever is not above the lowest last record of the pieces in memory can go: nothing below it comes later."""
        most = max(64, self._fitting // len(self._runs))
        runs = [_Run(self._pieces(start, end, most)) for start, end in self._runs]
        while runs:
            bound = min([run.piece[-1] for run in runs])
            batch = [record for run in runs for record in run.until(bound)]
            batch.sort()
            yield batch
            runs = [run for run in runs if run.piece]

    def _pieces(self, start: int, end: int, most: int) -> Iterator[list[bytes]]:
        assert self._file is not None
        size = self._size
        for first in range(start, end, most):
            self._file.seek(first * size)
            data = self._file.read((min(first + most, end) - first) * size)
            yield [data[at : at + size] for at in range(0, len(data), size)]

    def close(self) -> None:
        self._waiting.clear()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Sorted:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Run:
    """A sorted run, of which one piece is in memory."""

    def __init__(self, pieces: Iterator[list[bytes]]) -> None:
        self._pieces = pieces
        self.piece, self._at = next(pieces), 0

    def until(self, bound: bytes) -> list[bytes]:
        """What is not above the bound, of this piece."""
        end = bisect_right(self.piece, bound, self._at)
        taken = self.piece[self._at : end]
        self._at = end
        if end == len(self.piece):
            self.piece, self._at = next(self._pieces, []), 0
        return taken


class RowNumbers:
    """A set of numbers from 0, a bit each."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self.count = 0

    def add(self, number: int) -> None:
        byte, bit = number >> 3, 1 << (number & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(max(byte + 1 - len(self._bits), len(self._bits) // 8)))
        if not self._bits[byte] & bit:
            self._bits[byte] |= bit
            self.count += 1

    def __contains__(self, number: int) -> bool:
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & 1 << (number & 7))


def scratch_file() -> IO[bytes]:
    """A file without a name in the folder for such. Raises `FileFailed`."""
    try:
        return tempfile.TemporaryFile(prefix="rightcall-")
    except OSError as error:
        raise FileFailed(_cannot(error)) from error


def _write(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
        file.flush()
    except OSError as error:
        raise FileFailed(_cannot(error)) from error


def _cannot(error: OSError) -> str:
    return f"cannot write to the scratch folder {tempfile.gettempdir()}: {error.strerror or error}; set TMPDIR"
