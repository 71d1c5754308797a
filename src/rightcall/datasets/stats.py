"""`dataset stats`: what lies in files of rows, counted in one pass and in memory that does not grow with them.

stats = statistics(["capture.jsonl"])
stats.counts["label"].most_common(3), stats.lengths["reply"].median
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import FORGE, OUTCOME, SCHEMA, LineFault
from rightcall.datasets.row_files import Seen, read_all
from rightcall.datasets.schemas import faults
from rightcall.datasets.validating import count, label_of
from rightcall.providers.sdk_view import dumps
from rightcall.types import Json


class Histogram:
    """How often values of each power of two came: 0, 1, 2-3, 4-7, ..."""

    def __init__(self) -> None:
        self.bins: Counter[int] = Counter()
        self.total = self.sum = self.largest = 0

    def add(self, value: int) -> None:
        self.bins[value.bit_length()] += 1
        self.total += 1
        self.sum += value
        self.largest = max(self.largest, value)

    @property
    def mean(self) -> float:
        return self.sum / self.total if self.total else 0.0

    @property
    def median(self) -> int:
        """The upper edge of the bin in which the middle value lies."""
        left = (self.total + 1) // 2
        for size in sorted(self.bins):
            left -= self.bins[size]
            if left <= 0:
                return min(edges(size)[1], self.largest)
        return 0

    def told(self) -> Json:
        rows = [{"from": edges(size)[0], "to": edges(size)[1], "count": self.bins[size]} for size in sorted(self.bins)]
        return {"mean": round(self.mean, 1), "median": self.median, "largest": self.largest, "bins": rows}


def edges(size: int) -> tuple[int, int]:
    """The smallest and the largest value of so many bits."""
    return (0, 0) if size == 0 else (1 << (size - 1), (1 << size) - 1)


class RowStats:
    """What `statistics` gives: `rows`, how many of them are `bad`, `counts` by name (label, tool, domain ...) and
    `lengths` as histograms. Rows of other schemas than a capture's are counted by schema alone."""

    def __init__(self) -> None:
        self.rows = self.bad = 0
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in ("schema", *COUNTED)}
        self.lengths: dict[str, Histogram] = {name: Histogram() for name in MEASURED}

    def add(self, row: Json | LineFault) -> None:
        """One more `row`, or what stands in place of one."""
        self.rows += 1
        if isinstance(row, LineFault) or faults(row):
            self.bad += 1
            return
        count(self.counts["schema"], row["schema_version"])
        if row["schema_version"] not in (SCHEMA, FORGE):
            count(self.counts["label"], label_of(row) or "unlabelled")
            return
        for name, values in COUNTED.items():
            for value in values(row):
                count(self.counts[name], value)
        for name, size in MEASURED.items():
            found = size(row)
            if found is not None:
                self.lengths[name].add(found)

    def told(self) -> Json:
        """As JSON data, the most frequent first."""
        counted = {name: dict(counts.most_common()) for name, counts in self.counts.items()}
        lengths = {name: histogram.told() for name, histogram in self.lengths.items()}
        return {"rows": self.rows, "bad": self.bad, "counts": counted, "lengths": lengths}


def statistics(paths: Iterable[str | Path], *, seen: Seen | None = None) -> RowStats:
    """Counts what lies in files of rows, in one pass: `counts` by label, tool, domain and more, `lengths` of requests
    and replies.

    - `paths`: the files; rows that are not sound are counted as bad.
    - `seen`: as in `export`.
    """
    stats = RowStats()
    for _, row in read_all(paths, seen=seen):
        stats.add(row)
    return stats


# -- what is counted and measured --------------------------------------------------------------------------------------


def _tool(row: Json) -> Iterator[Any]:
    if row["kind"] != OUTCOME:
        yield row["candidate_call"]["name"]


def _repairs(row: Json) -> Iterator[Any]:
    yield from dict.fromkeys(repair["rule"] for repair in row.get("repairs") or ())


def _problems(row: Json) -> Iterator[Any]:
    yield from dict.fromkeys(problem["code"] for problem in row.get("problems") or ())


def _beside(name: str) -> Callable[[Json], Iterable[Any]]:
    return lambda row: [row[name]] if row.get(name) else []


COUNTED: dict[str, Callable[[Json], Iterable[Any]]] = {
    "label": lambda row: [label_of(row) or "unlabelled"],
    "kind": lambda row: [row["kind"]],
    "tool": _tool,
    "domain": lambda row: [row["proxy_trace"]["domain"]],
    "scenario kind": _beside("scenario_kind"),
    "format": _beside("format"),
    "mode": _beside("mode"),
    "guard": _beside("guard"),
    "repair": _repairs,
    "problem": _problems,
    "model": lambda row: [row["proxy_trace"]["model"]],
}

MEASURED: dict[str, Callable[[Json], int | None]] = {
    "request": lambda row: len(row["user_request"]),
    "reply": lambda row: _size(row.get("reply")),
    "arguments": lambda row: _size(row["candidate_call"]["arguments"]) if row["kind"] != OUTCOME else None,
    "messages": lambda row: len(row["messages"]) if "messages" in row else None,
}


def _size(value: Any) -> int | None:
    return len(value) if isinstance(value, str) else None if value is None else len(dumps(value))
