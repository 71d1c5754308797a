"""What the work on a part gives, and what is known of all parts together."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import msgspec

from rightcall.datasets.rows.batches import RowBatch

TOLD = 3  # faults that are told with their place; the rest is counted


class RowOutcome(msgspec.Struct):
    """What came of one part.

    - `data`: the lines to write, each with its newline.
    - `rows`: how many rows were read.
    - `bad`: how many of them hold nothing that can be worked on.
    - `faults`: the first few of these: the line, counted from 0 in the part, and why.
    - `counts`: whatever the work counts; added up over all parts.
    - `span`: how many lines of the source the part had, blank ones too. Set by whoever reads the part.
    """

    data: bytes = b""
    rows: int = 0
    bad: int = 0
    faults: list[tuple[int, str]] = []
    counts: dict[str, int] = {}
    span: int = 0

    def fault(self, line: int, why: str) -> None:
        self.bad += 1
        if len(self.faults) < TOLD:
            self.faults.append((line, why))


class RowWork(Protocol):
    """What is done with rows: a value that can be pickled, called with the rows of one part in some process.

    The same rows must give the same outcome, wherever and how often they are worked on.
    """

    @property
    def key(self) -> str:
        """Everything that the outcome depends on but the rows: a run goes on only with the same."""
        ...

    def __call__(self, batch: RowBatch) -> RowOutcome: ...


class RowFault(msgspec.Struct, frozen=True):
    """A row that could not be worked on: as text, `logs.jsonl:17 not JSON: ...`."""

    source: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line} {self.why}"


class Totals(msgspec.Struct):
    """Of all parts so far: `bytes` of the sources, `rows`, `bad` ones, and the first `faults`. `resumed` is how many
    rows an earlier run had done."""

    parts: int = 0
    bytes: int = 0
    rows: int = 0
    bad: int = 0
    resumed: int = 0
    faults: list[RowFault] = []
    counts: Counter[str] = msgspec.field(default_factory=Counter)
