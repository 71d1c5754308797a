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
from typing import IO

import msgspec

from rightcall.capture.captured_rows import FORGE, SCHEMA, capture_key
from rightcall.datasets.label import Labeller, sound
from rightcall.datasets.mutations import KINDS
from rightcall.datasets.mutations.truth import BUCKET, Truth
from rightcall.datasets.row_files import Seen, digest, read_all
from rightcall.datasets.spilling import RowNumbers, Sorted, scratch_file
from rightcall.datasets.written_kinds import MUTATED
from rightcall.errors import CallerError
from rightcall.files.jsonl import encode_row
from rightcall.files.whole_files import WholeFile
from rightcall.formats import FORMATS, NAMED_ONLY, find
from rightcall.types import Json

MOST, SEED = 1_000, "rightcall-mutate-v1"
_FRAME = struct.Struct(">B8sI")  # kind, rank, bytes of the line
_NUMBER = 8


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
    - `seen`, `force`: as in `export`.

    Raises `BadRows`.
    """
    caps = dict.fromkeys(KINDS, MOST) if kinds is None else dict(kinds)
    known_kinds(caps)
    maker = Mutator(caps, formats, seed)
    files, sources = list(paths), 0
    with WholeFile(output, MUTATED, sources=files, force=force) as out, Chosen(caps) as chosen:
        for where, row in read_all(files, seen=seen):
            sources += 1
            chosen.add(maker.frames(sound(where, row, SCHEMA, FORGE)))
        counts = Counter[str]()
        for kind, line in chosen:
            counts[kind] += 1
            out.write_bytes(line)
    told = {kind: counts[kind] for kind in caps}
    over = {kind: chosen.made[kind] - counts[kind] for kind in caps if chosen.made[kind] > counts[kind]}
    return Mutated(sum(told.values()), sources, told, over, str(output))


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
        self.formats = [find(name).name for name in formats] or [name for name in FORMATS if name not in NAMED_ONLY]
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
        return _FRAME.pack(self.kinds.index(kind), rank[:8], len(line)) + line


class Chosen:
    """Of all negatives those within their caps, in the order in which they came. They wait on disk."""

    def __init__(self, caps: Mapping[str, int]) -> None:
        self._kinds, self._caps = list(caps), caps
        self._waiting: IO[bytes] = scratch_file()
        self._ranks = Sorted(1 + 8 + _NUMBER)
        self._number = 0
        self.made: Counter[str] = Counter()

    def add(self, frames: bytes) -> None:
        at = 0
        while at < len(frames):
            kind, rank, size = _FRAME.unpack_from(frames, at)
            self._ranks.add(bytes([kind]) + rank + self._number.to_bytes(_NUMBER, "big"))
            self.made[self._kinds[kind]] += 1
            self._number += 1
            at += _FRAME.size + size
        self._waiting.write(frames)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        within = self._within()
        self._waiting.seek(0)
        for number in range(self._number):
            kind, _, size = _FRAME.unpack(self._waiting.read(_FRAME.size))
            line = self._waiting.read(size)
            if number in within:
                yield self._kinds[kind], line

    def _within(self) -> RowNumbers:
        taken, within = Counter[int](), RowNumbers()
        for record in self._ranks:
            kind = record[0]
            if taken[kind] < self._caps[self._kinds[kind]]:
                taken[kind] += 1
                within.add(int.from_bytes(record[-_NUMBER:], "big"))
        return within

    def __enter__(self) -> Chosen:
        return self

    def __exit__(self, *error: object) -> None:
        self._waiting.close()
        self._ranks.close()
