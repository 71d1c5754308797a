"""Inspect files of rows: report every fault (`dataset validate`), and count what they hold (`dataset stats`).

    report = validate(["capture.jsonl"], tell=print)     # capture.jsonl:3 candidate_call.name must be a string
    report.rows, report.bad, report.schemas
    stats = statistics(["capture.jsonl"])
    stats.counts["label"].most_common(3), stats.lengths["reply"].median

Both read each file once, in memory that does not grow with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rightcall.capture.captured_rows import FORGE, OUTCOME, SCHEMA, LineFault
from rightcall.datasets.row_files import Seen, Where, count_name, read_row_files
from rightcall.datasets.schemas import SCHEMAS, TRAINING, bucket_of, faults, label_of
from rightcall.providers.sdk_view import compact_json
from rightcall.types import Json

# -- faults ------------------------------------------------------------------------------------------------------------


class Report(msgspec.Struct):
    """The result of a validation: the number of `rows`, of `bad` rows and of `faults`; and rows by schema, label and
    bucket (`schemas`, `labels`, `buckets`)."""

    rows: int = 0
    bad: int = 0
    faults: int = 0
    schemas: dict[str, int] = {}
    labels: dict[str, int] = {}
    buckets: dict[str, int] = {}


def validate(paths: Iterable[str | Path], *, tell: Callable[[Where, str], None], seen: Seen | None = None) -> Report:
    """Check every line of every file. Return the numbers of rows, bad rows and faults, and of the rows by schema, label
    and bucket. A fault does not end the check.

    - `paths`: files of any known schema.
    - `tell`: is called with the place and the text of each fault.
    - `seen`: is called with the number of bytes read since the last call, to show progress.
    """
    schemas: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    buckets: Counter[str] = Counter()
    report = Report()
    for where, row in read_row_files(paths, seen=seen):
        report.rows += 1
        found = [row.message] if isinstance(row, LineFault) else faults(row)
        report.bad += bool(found)
        report.faults += len(found)
        for fault in found:
            tell(where, fault)
        if not isinstance(row, LineFault):
            version = row.get("schema_version")
            count_name(schemas, version if isinstance(version, str) and version in SCHEMAS else None)
            for counter, value in ((labels, label_of(row)), (buckets, bucket_of(row))):
                if value is not None or version == TRAINING:
                    count_name(counter, value)
    report.schemas, report.labels, report.buckets = dict(schemas), dict(labels), dict(buckets)
    return report


# -- statistics --------------------------------------------------------------------------------------------------------


class Histogram:
    """Counts of values by powers of two: 0, 1, 2-3, 4-7, ..."""

    def __init__(self) -> None:
        self.bins: Counter[int] = Counter()
        self.total = self.sum = self.largest = 0

    def add(self, value: int) -> None:
        """Count one value, which must not be negative."""
        self.bins[value.bit_length()] += 1
        self.total += 1
        self.sum += value
        self.largest = max(self.largest, value)

    @property
    def mean(self) -> float:
        """The mean of the values; 0.0 without values."""
        return self.sum / self.total if self.total else 0.0

    @property
    def median(self) -> int:
        """The upper edge of the bin of the middle value, at most the largest value; 0 without values."""
        left = (self.total + 1) // 2
        for size in sorted(self.bins):
            left -= self.bins[size]
            if left <= 0:
                return min(bin_edges(size)[1], self.largest)
        return 0

    def to_json(self) -> Json:
        """Return mean, median, largest value and the counts of the bins (`from`, `to`, `count`) as JSON data."""
        bins = [(*bin_edges(size), count) for size, count in sorted(self.bins.items())]
        rows = [{"from": low, "to": high, "count": count} for low, high, count in bins]
        return {"mean": round(self.mean, 1), "median": self.median, "largest": self.largest, "bins": rows}


def bin_edges(size: int) -> tuple[int, int]:
    """Return the smallest and the largest integer of `size` bits: the edges of a histogram's bin."""
    return (0, 0) if size == 0 else (1 << (size - 1), (1 << size) - 1)


class RowStats:
    """The result of `statistics`: `rows`, the number of `bad` ones, `counts` by name (label, tool, domain ...) and
    `lengths` as histograms. Rows of other schemas than a capture's are counted by schema and label alone."""

    def __init__(self) -> None:
        self.rows = self.bad = 0
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in ("schema", *_COUNTED)}
        self.lengths: dict[str, Histogram] = {name: Histogram() for name in _MEASURED}

    def add(self, row: Json | LineFault) -> None:
        """Count one more `row`; an invalid row, or a `LineFault` in place of one, is only counted as bad."""
        self.rows += 1
        if isinstance(row, LineFault) or faults(row):
            self.bad += 1
            return
        count_name(self.counts["schema"], row["schema_version"])
        if row["schema_version"] not in (SCHEMA, FORGE):
            count_name(self.counts["label"], label_of(row) or "unlabelled")
            return
        for name, values in _COUNTED.items():
            for value in values(row):
                count_name(self.counts[name], value)
        for name, size in _MEASURED.items():
            found = size(row)
            if found is not None:
                self.lengths[name].add(found)

    def to_json(self) -> Json:
        """Return rows, bad rows, counts (the most frequent names first) and lengths as JSON data."""
        counted = {name: dict(counts.most_common()) for name, counts in self.counts.items()}
        lengths = {name: histogram.to_json() for name, histogram in self.lengths.items()}
        return {"rows": self.rows, "bad": self.bad, "counts": counted, "lengths": lengths}


def statistics(paths: Iterable[str | Path], *, seen: Seen | None = None) -> RowStats:
    """Count what files of rows hold, in one pass: `counts` by label, tool, domain and more, `lengths` of requests and
    replies.

    - `paths`: the files; rows with faults are counted as bad.
    - `seen`: as in `export`.
    """
    stats = RowStats()
    for _, row in read_row_files(paths, seen=seen):
        stats.add(row)
    return stats


def _called_tools(row: Json) -> Iterator[Any]:
    """Yield the name of the called tool; nothing for an outcome."""
    if row["kind"] != OUTCOME:
        yield row["candidate_call"]["name"]


def _repair_rules(row: Json) -> Iterator[Any]:
    """Yield each rule that repaired the row's call, once."""
    yield from dict.fromkeys(repair["rule"] for repair in row.get("repairs") or ())


def _problem_codes(row: Json) -> Iterator[Any]:
    """Yield the code of each problem of the row, once."""
    yield from dict.fromkeys(problem["code"] for problem in row.get("problems") or ())


def _make_field_reader(name: str) -> Callable[[Json], Iterable[Any]]:
    """Return a function that gives a row's value under this key in a list; [] if it is missing or empty."""
    return lambda row: [row[name]] if row.get(name) else []


def _measure_size(value: Any) -> int | None:
    """Return the number of characters of a text, or of any other value as compact JSON; None for None."""
    return len(value) if isinstance(value, str) else None if value is None else len(compact_json(value))


_COUNTED: dict[str, Callable[[Json], Iterable[Any]]] = {
    "label": lambda row: [label_of(row) or "unlabelled"],
    "kind": lambda row: [row["kind"]],
    "tool": _called_tools,
    "domain": lambda row: [row["proxy_trace"]["domain"]],
    "scenario kind": _make_field_reader("scenario_kind"),
    "format": _make_field_reader("format"),
    "mode": _make_field_reader("mode"),
    "guard": _make_field_reader("guard"),
    "repair": _repair_rules,
    "problem": _problem_codes,
    "model": lambda row: [row["proxy_trace"]["model"]],
}

_MEASURED: dict[str, Callable[[Json], int | None]] = {
    "request": lambda row: len(row["user_request"]),
    "reply": lambda row: _measure_size(row.get("reply")),
    "arguments": lambda row: _measure_size(row["candidate_call"]["arguments"]) if row["kind"] != OUTCOME else None,
    "messages": lambda row: len(row["messages"]) if "messages" in row else None,
}
