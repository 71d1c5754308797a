"""`dataset mutate`: of rows that are right, rows that are wrong, so that a verifier has something to refuse.

    mutate_files(["labelled.jsonl"], "wrong.jsonl", kinds={"wrong_tool": 500, "broken_syntax": 100})

Which rows are taken depends on the seed and their keys alone: another order of the files, or more processes, choose the
same. If a kind has more than its cap, those with the lowest rank stay.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, LineFault, capture_key
from rightcall.datasets.label import Labeller
from rightcall.datasets.mutations import KINDS
from rightcall.datasets.mutations.truth import BUCKET, Truth
from rightcall.datasets.row_files import MUTATED, RowRun, Seen, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool
from rightcall.datasets.rows.sources import RowBatch
from rightcall.datasets.schemas import first_fault
from rightcall.datasets.spilling import RowNumbers, Sorted
from rightcall.errors import CallerError
from rightcall.formats import FORMATS, NAMED_ONLY, find
from rightcall.storage.jsonl import encode_row
from rightcall.types import Json

MOST, SEED = 1_000, "rightcall-mutate-v1"
_RANK, _NUMBER = 8, 8
_FRAME = struct.Struct(f">B{_RANK}sI")  # kind, rank, bytes of the line


class Mutated(msgspec.Struct, frozen=True):
    """What was made: how many `rows`, by `kinds`, of how many `sources`; and how many more of each kind there could
    have been (`over`). `output` is where they are."""

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
    """Writes calls that are wrong, made of calls that are right: those labelled valid, or without a label and without
    anything that blocks. Each has its label, what was changed and why that is wrong, and was looked at: it differs from
    the truth, and `check`, and the scenario where one is known, say of it what its label says.

    - `paths`: captures.
    - `output`: the file.
    - `kinds`: how many of each kind there may be, of "wrong_tool", "wrong_arguments", "not_needed", "ask_back" and
      "broken_syntax"; None: a thousand of each.
    - `formats`: the wire formats that broken calls are written in; without any, all of them.
    - `seed`: the same give the same rows.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raises `BadRows`.
    """
    caps = dict.fromkeys(KINDS, MOST) if kinds is None else dict(kinds)
    known_kinds(caps)
    how, counts = RowRun(engine, jobs, resume, seen), Counter[str]()
    files = how.sources(paths)
    with output_sink(output, MUTATED, files, force=force) as sink, RowSpool(output, "made", resume=resume) as spool:
        sink.begin("mutate")
        totals = how.map(files, MutateWork(Mutator(caps, formats, seed)), spool)
        chosen = Chosen(caps, spool)
        for kind, line in chosen:
            counts[kind] += 1
            sink.write(line, {})
        sink.finish()
    told = {kind: counts[kind] for kind in caps}
    over = {kind: chosen.made[kind] - counts[kind] for kind in caps if chosen.made[kind] > counts[kind]}
    return Mutated(sum(told.values()), totals.rows, told, over, str(output))


class MutateWork:
    """The negatives of the rows of a part."""

    def __init__(self, maker: Mutator) -> None:
        self.key = f"mutate {maker.kinds} {maker.seed} {digest(repr(maker.formats)).hex()}"
        self._maker = maker

    def __call__(self, batch: RowBatch) -> RowOutcome:
        made, frames = RowOutcome(), list[bytes]()
        for number, row in batch.rows():
            made.rows += 1
            why = first_fault(row, SCHEMA, FORGE)
            if why or isinstance(row, LineFault):
                made.add_fault(number, why)
            else:
                frames.append(self._maker.frames(row))
        made.data = b"".join(frames)
        return made


def known_kinds(caps: Mapping[str, int]) -> None:
    """Raises `CallerError` for a kind that there is not, and for a cap that is none."""
    for kind, most in caps.items():
        if kind not in KINDS:
            raise CallerError(f"no kind {kind!r:.40}; there are {', '.join(KINDS)}")
        if most < 0:
            raise CallerError(f"at most {most} rows of {kind} cannot be had; say 0 or more")


class Mutator:
    """Makes the negatives of one row at a time. It can be pickled."""

    def __init__(self, kinds: Iterable[str], formats: Sequence[str] = (), seed: str = SEED) -> None:
        self.kinds, self.seed = list(kinds), seed
        chosen = formats or [name for name in FORMATS if name not in NAMED_ONLY]
        self.formats = [find(name) for name in chosen]  # whole: a worker may not know a format of the caller's
        self._labeller = Labeller()

    def negatives(self, row: Json) -> Iterator[tuple[str, bytes, Json]]:
        """Kind, rank and row. What was made by a mutation is not mutated again."""
        if row.get("source_bucket") == BUCKET:
            return
        truth, key = Truth(row, self._labeller, self.formats), capture_key(row)
        for kind in self.kinds:
            rank = digest(f"{self.seed}\0{kind}\0{key}")
            made = KINDS[kind](truth, random.Random(int.from_bytes(rank, "big")))
            if made is not None:
                yield kind, rank, made.row(truth, kind, self.seed)

    def frames(self, row: Json) -> bytes:
        """The negatives as bytes, for `Chosen`."""
        return b"".join([self._frame(*each) for each in self.negatives(row)])

    def _frame(self, kind: str, rank: bytes, row: Json) -> bytes:
        line = encode_row(row)
        return _FRAME.pack(self.kinds.index(kind), rank[:_RANK], len(line)) + line


class Chosen:
    """Of all negatives those within their caps, in the order in which they came. They wait on disk: `pieces` gives
    their frames, as often as it is asked. `made` says how many there were of each kind."""

    def __init__(self, caps: Mapping[str, int], frames: FrameSource) -> None:
        self._kinds, self._caps, self._frames = list(caps), caps, frames
        self.made: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        within = self._within()
        for number, (kind, _, line) in enumerate(_read_frames(self._frames.pieces())):
            if number in within:
                yield self._kinds[kind], line

    def _within(self) -> RowNumbers:
        taken, within = Counter[int](), RowNumbers()
        with Sorted(1 + _RANK + _NUMBER) as ranks:
            for number, (kind, rank, _) in enumerate(_read_frames(self._frames.pieces())):
                ranks.add(bytes([kind]) + rank + number.to_bytes(_NUMBER, "big"))
                self.made[self._kinds[kind]] += 1
            for record in ranks:
                kind = record[0]
                if taken[kind] < self._caps[self._kinds[kind]]:
                    taken[kind] += 1
                    within.add(int.from_bytes(record[-_NUMBER:], "big"))
        return within


class FrameSource(Protocol):
    def pieces(self) -> Iterator[bytes]: ...


def _read_frames(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Kind, rank and line."""
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
