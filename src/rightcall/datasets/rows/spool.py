"""What is made of rows and read again by the same run: on disk, part by part, so that the run can be gone on with.

with RowSpool("out.jsonl", "prints", resume=True) as spool:
    map_rows(sources, work, spool)
    for frame in spool.frames(): ...

Work that says something of single rows writes it as frames; `frames` knows of which file and line each is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import NamedTuple, Protocol

from rightcall.datasets.rows.remote_sink import unfinished
from rightcall.errors import FileFailed, WorkerLost
from rightcall.storage.file_kinds import FileKind
from rightcall.storage.parted_file import PartedFile
from rightcall.storage.streams import is_stream
from rightcall.types import Json

NO_KEY = bytes(16)
_HEAD = Struct("<B16sQQ")  # tag, key, line, bytes that follow


class RowFrame(NamedTuple):
    """What was said of one row: a `tag` and a `key` that mean what the work means by them, the row's place (`source`,
    `line` from 1), the bytes, and where these lie in the spool (`place`)."""

    tag: int
    key: bytes
    source: int
    line: int
    place: int
    data: bytes


def row_frame(tag: int, line: int, data: bytes, key: bytes = NO_KEY) -> bytes:
    """A frame as work writes it; `line` is what `RowBatch.line` gives."""
    return _HEAD.pack(tag, key, line, len(data)) + data


class RowSpool:
    """A sink whose bytes are read again, beside the output; that of a stream lies in the folder for scratch files.
    Nothing is left of it when the block ends, but after a run that was broken off. `run` is what `begin` was told."""

    run = ""

    def __init__(self, output: str | Path, what: str, *, resume: bool) -> None:
        name, self._scratch = str(output), ""
        if is_stream(name):
            self._scratch = _scratch_folder()
            place = Path(self._scratch, "rows")
        else:
            place = unfinished(name) if "://" in name else Path(name)
        kind = FileKind(f"file of {what}", lambda found: False)
        self._file, self._resume = PartedFile(place.with_name(f"{place.name}.{what}"), kind), resume
        self._broken_off = left_if_broken_off(self)

    def begin(self, run: str) -> list[Json]:
        self.run = run
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        self._file.append(data, note)

    def finish(self) -> None:
        pass

    def discard(self) -> None:
        self._file.discard()

    def pieces(self) -> Iterator[bytes]:
        """All bytes, as they come."""
        return self._file.pieces()

    def parts(self) -> Iterator[tuple[bytes, Json]]:
        """The bytes and the note of each part."""
        return ((data, note) for _, data, note in self._file.parts())

    def frames(self) -> Iterator[RowFrame]:
        """What work said of single rows, in order."""
        for start, data, note in self._file.parts():
            at = 0
            while at < len(data):
                tag, key, line, size = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                yield RowFrame(tag, key, note["source"], note["before"] + line, start + at, data[at : at + size])
                at += size

    def at(self, place: int, size: int) -> bytes:
        """The bytes of a frame whose place is known."""
        return self._file.at(place, size)

    def __enter__(self) -> RowSpool:
        self._broken_off.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._broken_off.__exit__(kind, error, at)
            if error is None:
                self.discard()
        finally:
            self._file.close()
            if self._scratch:
                shutil.rmtree(self._scratch, ignore_errors=True)


def _scratch_folder() -> str:
    try:
        return tempfile.mkdtemp(prefix="rightcall-")
    except OSError as error:
        raise FileFailed(f"cannot make a scratch folder: {error.strerror}; set TMPDIR") from error


class Discardable(Protocol):
    def discard(self) -> None: ...


@contextmanager
def left_if_broken_off(made: Discardable) -> Iterator[None]:
    """An interrupted run, and one whose workers were lost, can be gone on with; nothing is left of any other."""
    try:
        yield
    except (KeyboardInterrupt, WorkerLost):
        raise
    except BaseException:
        made.discard()
        raise
