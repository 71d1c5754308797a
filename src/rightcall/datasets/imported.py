"""`dataset import`: files of logs of others as rows of ours. Each line is read apart; what lines have to do with each
other is settled afterwards, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from rightcall.capture.captured_rows import unix_ms
from rightcall.datasets.gathering import GatheredRows
from rightcall.datasets.import_work import (
    ASIDE,
    MADE,
    MOST_JOINED,
    ImportFrame,
    ImportWork,
    JoinedImportWork,
    read_frame,
)
from rightcall.datasets.imported_line import ImportOptions
from rightcall.datasets.linked_turns import LinkedTurns
from rightcall.datasets.logs import log_kind
from rightcall.datasets.row_files import Seen, Where, digest
from rightcall.datasets.row_runs import RowRun, whole_output
from rightcall.datasets.rows.sinks import RowSpool, Sink
from rightcall.datasets.rows.sources import RowSource
from rightcall.datasets.rows.stores import store_of
from rightcall.datasets.written_kinds import IMPORTED
from rightcall.formats import find
from rightcall.tools.toolset import Toolset

_TOGETHER = 1 << 18  # bytes that are written at a time
Told = Callable[[Where, str], None]


def import_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kind: str = "auto",
    tools: Toolset | None = None,
    format: str = "auto",
    repair: str = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    model: str = "unknown",
    refused: Callable[[Where, str], None],
    passed_over: Callable[[Where, str], None] | None = None,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Counter[str]:
    """Writes logs of others as rows of ours, through the same reading, repair and check as a live model. Gives counts
    of what was found.

    - `paths`: files of JSON lines: cassettes, batches, logs, datasets; a file may hold lines of several kinds.
    - `output`: the file.
    - `kind`: what the lines are; "auto" tells by their keys.
    - `tools`: what could be called, where the logs do not say.
    - `format`, `repair`, `rescue`, `reasoning_calls`: as in `parse`.
    - `model`: the model's name, where the logs do not say. Their time is then that of the file.
    - `refused`: is told of each line in which nothing is found, with its place and the reason.
    - `passed_over`: is told of each line that is as it should be and holds no conversation, such as the head of a
      cassette.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.
    """
    run = RowRun(engine, jobs, resume, seen)
    sources = run.sources(paths)
    how = ImportOptions(
        kind=log_kind(kind),
        tools=tools,
        format=format if format == "auto" else find(format),
        repair=repair,
        rescue=rescue,
        reasoning_calls=reasoning_calls,
        model=model,
    )
    with (
        whole_output(output, IMPORTED, sources, force=force) as sink,
        RowSpool(output, "read", resume=resume) as alone,
        RowSpool(output, "joined", resume=resume) as joined,
        LinkedTurns() as linked,
    ):
        sink.begin("import")
        _read(run, sources, how, alone, joined)
        placed = _Placed(sources, linked, refused, passed_over or (lambda where, why: None))
        _write(placed.lines(chain(_frames(alone), _frames(joined))), sink)
        sink.finish()
    return placed.counts


def _read(run: RowRun, sources: list[RowSource], how: ImportOptions, alone: RowSpool, joined: RowSpool) -> None:
    times = [store_of(source.path).time_ms(source.path) or unix_ms() for source in sources]
    run.work(sources, ImportWork(how, times), alone)
    with GatheredRows(alone, ASIDE, most=MOST_JOINED) as gathered:
        run.work([gathered], JoinedImportWork(how, times), joined)


def _frames(spool: RowSpool) -> Iterator[tuple[int, int, ImportFrame]]:
    for each in spool.frames():
        if each.tag == MADE:
            frame = read_frame(each.data)
            source, line = frame.place or (each.source, each.line)
            yield source, line, frame


def _write(lines: Iterator[bytes], sink: Sink) -> None:
    waiting, size = list[bytes](), 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _TOGETHER:
            sink.write(b"".join(waiting), {})
            waiting, size = [], 0
    sink.write(b"".join(waiting), {})


class _Placed:
    """What lines came to, put in their places: each exchange in its conversation."""

    def __init__(self, sources: list[RowSource], linked: LinkedTurns, refused: Told, passed_over: Told) -> None:
        self._names, self._linked = [source.name for source in sources], linked
        self._refused, self._passed_over = refused, passed_over
        self.counts: Counter[str] = Counter()

    def lines(self, frames: Iterable[tuple[int, int, ImportFrame]]) -> Iterator[bytes]:
        for source, line, frame in frames:
            where = Where(self._names[source], line)
            if not frame.rows:
                self.counts["refused" if frame.is_refused else "passed_over"] += 1
                (self._refused if frame.is_refused else self._passed_over)(where, frame.why)
                continue
            own = frame.group or group_of(where)
            name = self._linked.name(own, frame.ends, frame.end)
            self.counts["conversations"] += name == own
            self.counts.update(frame.counts)
            yield from [row.line(own + row.suffix if row.suffix else name) for row in frame.rows]


def group_of(where: Where) -> str:
    """The name of the conversation that begins with this line."""
    return f"import-{digest(where.path).hex()[:8]}-{where.number:08d}"
