"""The rows of files, worked on by an engine: what `label`, `dedupe`, `mutate` and the others have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec

from rightcall.datasets.row_files import BadRows, Seen
from rightcall.errors import WorkerLost
from rightcall.files.file_kinds import FileKind
from rightcall.files.parted_file import PartedFile
from rightcall.files.streams import is_stream
from rightcall.rows.engine_names import engine_of
from rightcall.rows.mapping import map_rows
from rightcall.rows.outcomes import RowWork, Totals
from rightcall.rows.remote_sink import unfinished
from rightcall.rows.row_sources import RowSource, sources_of
from rightcall.rows.sinks import Sink, sink_to
from rightcall.types import Json

PART = 1 << 20  # bytes of a file that are worked on at a time


class RowRun(msgspec.Struct, frozen=True):
    """Who works on rows (`engine`), how many at a time (`jobs`), whether a run that was broken off is gone on with
    (`resume`), and who is told how many bytes were read (`seen`)."""

    engine: str = "local"
    jobs: int | None = None
    resume: bool = False
    seen: Seen | None = None

    def sources(self, paths: Sequence[str]) -> list[RowSource]:
        """Files of JSON lines, unless their names say something else."""
        return sources_of(paths, rows_as="jsonl")

    def work(self, paths: Sequence[str], work: RowWork, sink: Sink) -> Totals:
        """Works on all rows. Raises `BadRows` at the first that is not as it should be."""
        read = 0

        def watch(totals: Totals) -> None:
            nonlocal read
            if totals.faults:
                raise BadRows(str(totals.faults[0]))
            if self.seen is not None:
                self.seen(totals.bytes - read)
                read = totals.bytes

        engine = engine_of(self.engine, self.jobs)
        return map_rows(self.sources(paths), work, sink, engine, part_size=PART, watch=watch)


@contextmanager
def whole_output(
    output: str | Path, kind: FileKind, sources: Iterable[str], *, resume: bool = False, force: bool = False
) -> Iterator[Sink]:
    """Where rows go: a file, here or in a store, or a stream. What was broken off stays, to be gone on with; what was
    wrong does not."""
    with sink_to(str(output), kind, sources=sources, resume=resume, force=force) as sink, _left_if_broken_off(sink):
        yield sink


class RowSpool:
    """What is made of rows and read again by the same run, beside the output. `resume` goes on with it."""

    def __init__(self, output: str | Path, what: str, *, resume: bool) -> None:
        name = str(output)
        place = unfinished(name) if "://" in name or is_stream(name) else Path(name)
        kind = FileKind(f"file of {what}", lambda found: False)
        self._file, self._resume = PartedFile(place.with_name(f"{place.name}.{what}"), kind), resume
        self._broken_off = _left_if_broken_off(self)

    def begin(self, run: str) -> list[Json]:
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        self._file.append(data, note)

    def finish(self) -> None:
        pass

    def discard(self) -> None:
        self._file.discard()

    def pieces(self) -> Iterator[bytes]:
        return self._file.pieces()

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


class Discardable(Protocol):
    def discard(self) -> None: ...


@contextmanager
def _left_if_broken_off(made: Discardable) -> Iterator[None]:
    """An interrupted run, and one whose workers were lost, can be gone on with; nothing is left of any other."""
    try:
        yield
    except (KeyboardInterrupt, WorkerLost):
        raise
    except BaseException:
        made.discard()
        raise
