"""`dataset dedupe`: every row once. The rows that stay are written as they were, in their order.

dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl")                 # the same
dedupe_files(["a.jsonl", "b.jsonl"], "once.jsonl", near=0.8)       # and those that are nearly the same
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, LineFault
from rightcall.datasets import row_files
from rightcall.datasets.row_files import DEDUPED, BadRows, RowRun, Seen, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool, Sink
from rightcall.datasets.rows.sources import RowBatch, RowSource, batch_of, parts_of
from rightcall.datasets.schemas import first_fault
from rightcall.datasets.twins import Twins, fingerprint
from rightcall.errors import CallerError
from rightcall.types import Json

LEAST = 0.3  # how alike two rows may be asked to be: below, everything is like everything


class Deduped(msgspec.Struct, frozen=True):
    """What came of it: how many `rows` there were, how many are `kept`, and how many were dropped as the `same` as an
    earlier one, or `near` to it; `output` is where they are."""

    rows: int
    kept: int
    same: int
    near: int
    output: str


def dedupe_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    near: float | None = None,
    keys: Sequence[str] = (),
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Deduped:
    """Writes every row once: the first of several that are the same. Of captures whole conversations are compared, by
    what a trainer sees of them; of other rows, each by itself. Memory does not grow with the number of rows but for one
    bit of each.

    - `paths`: files of rows, of any schema or none.
    - `output`: the file; rows are in it as they were, in their order.
    - `near`: how alike two rows must be to be taken for the same, from 0.3 to 1; None: they must be the same. Calls
      must be the same in any case, but for the prose in their arguments, and labels too.
    - `keys`: compare only what stands at these paths (`text`, `request.messages`).
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raises `BadRows`.
    """
    if near is not None and not LEAST <= near <= 1:
        raise CallerError(f"how alike rows must be is a number from {LEAST} to 1, not {near}")
    how, twins = RowRun(engine, jobs, resume, seen), Twins(near)
    files = how.sources(paths)
    with output_sink(output, DEDUPED, files, force=force) as sink, RowSpool(output, "prints", resume=resume) as spool:
        sink.begin("dedupe")
        how.map(files, PrintWork(tuple(keys), near is not None), spool)
        for record in _records(spool.pieces(), twins.size):
            twins.add(record)
        twins.find()
        _write_once(files, twins, sink)
        sink.finish()
    return Deduped(twins.rows, twins.rows - twins.dropped.count, twins.exact, twins.near, str(output))


class PrintWork:
    """The fingerprints of the rows of a part."""

    def __init__(self, keys: tuple[str, ...], near: bool) -> None:
        self.key = f"dedupe {keys} {near}"
        self._keys, self._near = keys, near

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, prints = RowOutcome(), list[bytes]()
        for number, row in batch.rows():
            made.rows += 1
            found = self._print(row)
            if isinstance(found, str):
                made.add_fault(number, found)
            else:
                prints.append(found)
        made.data = b"".join(prints)
        return made

    def _print(self, row: Json | LineFault) -> bytes | str:
        """A fingerprint, or why there is none."""
        if isinstance(row, LineFault):
            return f"{row.message}; `rightcall dataset validate` lists every fault"
        if row.get("schema_version") in (SCHEMA, FORGE) and not self._keys and (why := first_fault(row, SCHEMA, FORGE)):
            return why
        try:
            return fingerprint(row, keys=self._keys, near=self._near)
        except RecursionError:
            return "is nested too deeply to be compared"
        except CallerError as error:
            return str(error)


def _records(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        data = rest + piece
        end = len(data) - len(data) % size
        yield from (data[at : at + size] for at in range(0, end, size))
        rest = data[end:]


def _write_once(sources: Sequence[RowSource], twins: Twins, sink: Sink) -> None:
    number = 0
    for part in parts_of(sources, size=row_files.PART):
        kept: list[bytes] = []
        for line in batch_of(part).lines():
            if number not in twins.dropped:
                kept.append(line.rstrip(b"\r") + b"\n")
            number += 1
        sink.write(b"".join(kept), {})
    if number != twins.rows:
        raise BadRows("the files changed while they were read; run the command again")
