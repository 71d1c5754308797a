"""The rows of files, worked on by an engine: what `label`, `dedupe`, `mutate` and the others have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rightcall.datasets.row_files import BadRows, Seen
from rightcall.datasets.rows.engines import make_engine
from rightcall.datasets.rows.mapping import RowWork, Totals, map_rows, refuse_stdin
from rightcall.datasets.rows.sinks import Sink, discarding_on_error, sink_to
from rightcall.datasets.rows.sources import PartSource, RowSource, sources_of
from rightcall.datasets.rows.stores import STDIN
from rightcall.storage.file_kinds import FileKind

PART = 1 << 20  # bytes of a file that are worked on at a time


class RowRun(msgspec.Struct, frozen=True):
    """Who works on rows (`engine`), how many at a time (`jobs`), whether a run that was broken off is gone on with
    (`resume`), and who is told how many bytes were read (`seen`)."""

    engine: str = "local"
    jobs: int | None = None
    resume: bool = False
    seen: Seen | None = None

    def sources(self, paths: Iterable[str | Path]) -> list[RowSource]:
        """Files of JSON lines, unless their names say something else."""
        found = sources_of([str(path) for path in paths], rows_as="jsonl")
        if self.resume:
            refuse_stdin(found)
        return found

    def work(self, sources: Sequence[RowSource | PartSource], work: RowWork, sink: Sink) -> Totals:
        """Works on all rows. Raises `BadRows` at the first that is not as it should be."""
        read = 0

        def watch(totals: Totals) -> None:
            nonlocal read
            if totals.faults:
                raise BadRows(str(totals.faults[0]))
            if self.seen is not None:
                self.seen(totals.bytes - read)
                read = totals.bytes

        engine = make_engine(self.engine, self.jobs)
        return map_rows(sources, work, sink, engine, part_size=PART, watch=watch)


@contextmanager
def whole_output(
    output: str | Path, kind: FileKind, sources: Sequence[RowSource], *, resume: bool = False, force: bool = False
) -> Iterator[Sink]:
    """Where rows go: a file, here or in a store, or a stream. What was broken off stays, to be gone on with; what was
    wrong does not."""
    names = read_files(sources)
    with sink_to(str(output), kind, sources=names, resume=resume, force=force) as sink, discarding_on_error(sink):
        yield sink


def read_files(sources: Sequence[RowSource]) -> list[str]:
    """The names of those that are files: none of them may be written over."""
    return [source.path for source in sources if source.path != STDIN]
