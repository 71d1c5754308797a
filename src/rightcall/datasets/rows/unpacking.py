"""Packed sources read as if they were not: gzip by the standard library, Zstandard by pyarrow."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from rightcall.datasets.rows.row_sources import RowSource
from rightcall.datasets.rows.stores import STDIN, open_source
from rightcall.errors import FileFailed


@contextmanager
def unpacked(source: RowSource) -> Iterator[tuple[BinaryIO, Callable[[], int]]]:
    """The bytes of a source, and a function that says how far in the packed file one is."""
    file = open_source(source.path)
    counted = Counted(file)
    try:
        yield _stream(counted, source), lambda: counted.read_so_far
    finally:
        if source.path != STDIN:
            file.close()


def _stream(file: Counted, source: RowSource) -> BinaryIO:
    if source.packing == "gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=cast(Any, file)))
    if source.packing == "zst":
        import pyarrow  # type: ignore[import-untyped]

        return cast(BinaryIO, pyarrow.input_stream(file, compression="zstd"))
    return cast(BinaryIO, file)


class Counted:
    """A file that is read from its beginning to its end, and knows how much of it has been."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.read_so_far = file, 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.read_so_far += len(data)
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@contextmanager
def unpacking(source: RowSource) -> Iterator[None]:
    """What a file that is not what its name says makes its reader raise becomes `FileFailed`, which names it."""
    try:
        yield
    except (EOFError, OSError, ValueError, zlib.error) as error:
        told = " ".join(str(error).split())[:200]
        packing = {"gz": "gzip", "zst": "Zstandard", "": ""}[source.packing]
        what = f"{packing} data of {source.kind}" if packing else source.kind
        raise FileFailed(f"cannot read {source.name} as {what}: {told or type(error).__name__}") from error
