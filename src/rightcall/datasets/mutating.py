"""`dataset mutate`: wrong rows made of right ones, so that a verifier has something to reject.

    mutate_files(["labelled.jsonl"], "wrong.jsonl", kinds={"wrong_tool": 500, "broken_syntax": 100})

The rows that are written depend on the seed and the keys of the rows alone: another order of the files, or more
processes, choose the same. If a kind has more rows than its cap, those of lowest rank are written.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, LineFault, capture_key
from rightcall.datasets.label import Labeller
from rightcall.datasets.mutations import BUCKET, KINDS, SourceRow
from rightcall.datasets.row_files import MUTATED, RowNumbers, RowRun, Scratch, Seen, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool
from rightcall.datasets.rows.sources import RowBatch
from rightcall.datasets.schemas import first_fault
from rightcall.errors import CallerError
from rightcall.formats import FORMATS, NAMED_ONLY, find
from rightcall.storage.jsonl import encode_row
from rightcall.types import Json

MOST, SEED = 1_000, "rightcall-mutate-v1"
_RANK = 8  # bytes
_FRAME = struct.Struct(f">B{_RANK}sI")  # kind, rank, size of the line


class Mutated(msgspec.Struct, frozen=True):
    """The result: the number of `rows`, also by `kinds`, made of so many `sources`; and how many rows of each kind were
    over its cap (`over`). `output` is the file."""

    rows: int
    sources: int
    kinds: dict[str, int]
    over: dict[str, int]
    output: str


def mutate_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kinds: Mapping[str, int] | None = None,
    formats: Sequence[str] = (),
    seed: str = SEED,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Mutated:
    """Write wrong calls, made of right ones: of calls labelled valid, or without a label and without a blocking
    problem. Each has its label, the change and the reason why it is wrong, and is verified: it differs from the right
    call, and `check`, and the scenario where it is known, agree with its label.

    - `paths`: captures.
    - `output`: the file.
    - `kinds`: the most rows of each kind ("wrong_tool", "wrong_arguments", "not_needed", "ask_back", "broken_syntax");
      None: a thousand of each.
    - `formats`: the wire formats of calls with broken syntax; without any, all of them.
    - `seed`: the same seed gives the same rows.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raise `BadRows`.
    """
    caps = dict.fromkeys(KINDS, MOST) if kinds is None else dict(kinds)
    _check_caps(caps)
    run, counts = RowRun(engine, jobs, resume, seen), Counter[str]()
    files = run.sources(paths)
    with output_sink(output, MUTATED, files, force=force) as sink, RowSpool(output, "made", resume=resume) as spool:
        sink.begin("mutate")
        totals = run.map(files, _MutateWork(Mutator(caps, formats, seed)), spool)
        chosen = ChosenRows(caps, spool.pieces)
        for kind, line in chosen:
            counts[kind] += 1
            sink.write(line, {})
        sink.finish()
    written = {kind: counts[kind] for kind in caps}
    over = {kind: chosen.made[kind] - counts[kind] for kind in caps if chosen.made[kind] > counts[kind]}
    return Mutated(sum(written.values()), totals.rows, written, over, str(output))


class _MutateWork:
    """Make the negatives of the rows of a part."""

    def __init__(self, maker: Mutator) -> None:
        self.key = f"mutate {maker.kinds} {maker.seed} {digest(repr(maker.formats)).hex()}"
        self._maker = maker

    def __call__(self, batch: RowBatch) -> RowOutcome:
        outcome, frames = RowOutcome(), list[bytes]()
        for number, row in batch.rows():
            outcome.rows += 1
            fault = first_fault(row, SCHEMA, FORGE)
            if fault or isinstance(row, LineFault):
                outcome.add_fault(number, fault)
            else:
                frames.append(self._maker.frames(row))
        outcome.data = b"".join(frames)
        return outcome


def _check_caps(caps: Mapping[str, int]) -> None:
    """Raise `CallerError` for an unknown kind, and for a negative cap."""
    for kind, most in caps.items():
        if kind not in KINDS:
            raise CallerError(f"no kind {kind!r:.40}; there are {', '.join(KINDS)}")
        if most < 0:
            raise CallerError(f"at most {most} rows of {kind} cannot be had; say 0 or more")


class Mutator:
    """Makes the negatives of single rows. It can be pickled."""

    def __init__(self, kinds: Iterable[str], formats: Sequence[str] = (), seed: str = SEED) -> None:
        self.kinds, self.seed = list(kinds), seed
        chosen = formats or [name for name in FORMATS if name not in NAMED_ONLY]
        self.formats = [find(name) for name in chosen]  # the values: a worker may not know a format of the caller
        self._labeller = Labeller()

    def negatives(self, row: Json) -> Iterator[tuple[str, bytes, Json]]:
        """Yield kind, rank and row of each negative. A row that a mutation made is not mutated again."""
        if row.get("source_bucket") == BUCKET:
            return
        source, key = SourceRow(row, self._labeller, self.formats), capture_key(row)
        for kind in self.kinds:
            rank = digest(f"{self.seed}\0{kind}\0{key}")
            made = KINDS[kind](source, random.Random(int.from_bytes(rank, "big")))
            if made is not None:
                yield kind, rank, made.row(source, kind, self.seed)

    def frames(self, row: Json) -> bytes:
        """Return the negatives as bytes, for `ChosenRows`."""
        frames: list[bytes] = []
        for kind, rank, made in self.negatives(row):
            line = encode_row(made)
            frames.append(_FRAME.pack(self.kinds.index(kind), rank[:_RANK], len(line)) + line)
        return b"".join(frames)


class ChosenRows:
    """Of all negatives those within their caps, in the order in which they were made. `pieces` returns their bytes, and
    is called twice, so that no row is in memory. `made` has the number of rows of each kind."""

    def __init__(self, caps: Mapping[str, int], pieces: Callable[[], Iterator[bytes]]) -> None:
        self._kinds, self._caps, self._pieces = list(caps), caps, pieces
        self.made: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        chosen = self._choose()
        for number, (kind, _, line) in enumerate(_read_frames(self._pieces())):
            if number in chosen:
                yield self._kinds[kind], line

    def _choose(self) -> RowNumbers:
        """Return the numbers of the rows of lowest rank."""
        chosen = RowNumbers()
        with Scratch("CREATE TABLE ranks (kind INT, rank BLOB, number INT)") as scratch:
            frames = enumerate(_read_frames(self._pieces()))
            scratch.insert("INSERT INTO ranks VALUES (?, ?, ?)", ((kind, rank, at) for at, (kind, rank, _) in frames))
            for kind, count in scratch.db.execute("SELECT kind, count(*) FROM ranks GROUP BY kind"):
                self.made[self._kinds[kind]] = count
            for at, kind in enumerate(self._kinds):
                ranked = "SELECT number FROM ranks WHERE kind = ? ORDER BY rank, number LIMIT ?"
                for (number,) in scratch.db.execute(ranked, (at, self._caps[kind])):
                    chosen.add(number)
        return chosen


def _read_frames(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield kind, rank and line of each negative."""
    data, at = b"", 0
    for piece in pieces:
        data, at = data[at:] + piece, 0
        while len(data) - at >= _FRAME.size:
            kind, rank, size = _FRAME.unpack_from(data, at)
            if len(data) - at < _FRAME.size + size:
                break
            start = at + _FRAME.size
            yield kind, rank, data[start : start + size]
            at = start + size
