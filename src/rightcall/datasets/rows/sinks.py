"""Where lines go: a stream, which they pass through, or a file, which a run can be gone on with.

with FileSink("out.jsonl", REPLIES, resume=True) as sink: map_rows(sources, work, sink)
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rightcall.errors import FileFailed
from rightcall.storage.draft import write_all
from rightcall.storage.file_kinds import FileKind, failed
from rightcall.storage.parted_file import PartedFile
from rightcall.storage.streams import is_stream, open_stream
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.datasets.rows.remote_sink import RemoteSink


class Sink(Protocol):
    """Where the lines of parts go, in order."""

    def begin(self, run: str) -> list[Json]:
        """The notes of the parts that an earlier run, which was the same, has written; they are not made again."""
        ...

    def write(self, data: bytes, note: Json) -> None:
        """The lines of one part, and what is to be known of it later."""
        ...

    def finish(self) -> None:
        """All parts have been written."""
        ...


class StreamSink:
    """Standard output, or another place that is no file."""

    def __init__(self, path: str = "/dev/stdout") -> None:
        self.path, self._handle = path, -1

    def begin(self, run: str) -> list[Json]:
        self._handle = open_stream(self.path)
        return []

    def write(self, data: bytes, note: Json) -> None:
        try:
            write_all(self._handle, data)
        except BrokenPipeError:  # whoever read it has enough: that is for the whole command to know
            raise
        except OSError as error:
            raise FileFailed(failed("write", self.path, error)) from error

    def finish(self) -> None:
        pass

    def discard(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle >= 0:
            os.close(self._handle)


class FileSink:
    """A file, written beside its place, that appears when it is whole. What was written before a run was ended stays
    beside it, and `resume` goes on with it."""

    def __init__(
        self,
        path: str | Path,
        kind: FileKind,
        *,
        sources: Iterable[str | Path] = (),
        resume: bool = False,
        force: bool = False,
    ) -> None:
        self._file, self._resume = PartedFile(path, kind, sources=sources, force=force), resume

    def begin(self, run: str) -> list[Json]:
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        self._file.append(data, note)

    def finish(self) -> None:
        self._file.publish()

    def discard(self) -> None:
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def sink_to(
    path: str | None,
    kind: FileKind,
    *,
    sources: Iterable[str | Path] = (),
    resume: bool = False,
    force: bool = False,
) -> StreamSink | FileSink | RemoteSink:
    """A file, here or in a store (`s3://...`), or a stream where `path` is none: None is standard output."""
    if path is None or is_stream(path):
        return StreamSink(path or "/dev/stdout")
    if "://" in path:
        from rightcall.datasets.rows.remote_sink import RemoteSink

        return RemoteSink(path, kind, resume=resume, force=force)
    return FileSink(path, kind, sources=sources, resume=resume, force=force)
