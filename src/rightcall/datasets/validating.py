"""`dataset validate`: everything that is wrong in files of rows, each with its path and line.

report = validate(["capture.jsonl"], tell=print)     # capture.jsonl:3 candidate_call.name must be a string
report.rows, report.bad, report.schemas
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from rightcall.capture.captured_rows import LineFault
from rightcall.datasets.row_files import Seen, Where, read_all
from rightcall.datasets.schemas import SCHEMAS, TRAINING, faults
from rightcall.types import Json

MOST_NAMES = 1_000  # a hostile file must not fill the memory with names


class Report(msgspec.Struct):
    """What a validation found: how many `rows`, how many of them `bad`, how many `faults`; and rows by schema, label
    and bucket (`schemas`, `labels`, `buckets`)."""

    rows: int = 0
    bad: int = 0
    faults: int = 0
    schemas: dict[str, int] = {}
    labels: dict[str, int] = {}
    buckets: dict[str, int] = {}


def validate(paths: Iterable[str | Path], *, tell: Callable[[Where, str], None], seen: Seen | None = None) -> Report:
    """Reads every line of every file and says what is wrong with it.

    - `paths`: files of any schema that is known.
    - `tell`: gets each fault with its place.
    - `seen`: as in `export`.
    """
    schemas: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    buckets: Counter[str] = Counter()
    report = Report()
    for where, row in read_all(paths, seen=seen):
        report.rows += 1
        found = [row.message] if isinstance(row, LineFault) else faults(row)
        report.bad += bool(found)
        report.faults += len(found)
        for fault in found:
            tell(where, fault)
        if not isinstance(row, LineFault):
            version = row.get("schema_version")
            count(schemas, version if isinstance(version, str) and version in SCHEMAS else None)
            for counter, value in ((labels, label_of(row)), (buckets, bucket_of(row))):
                if value is not None or row.get("schema_version") == TRAINING:
                    count(counter, value)
    report.schemas, report.labels, report.buckets = dict(schemas), dict(labels), dict(buckets)
    return report


def count(counter: Counter[str], value: Any, most: int = MOST_NAMES) -> None:
    """One more of it; whatever is no text, or one name too many, goes under a name for all such."""
    name = value if isinstance(value, str) and value.strip() else "unknown"
    name = name[:200]
    counter[name if name in counter or len(counter) < most else "(others)"] += 1


def label_of(row: Json) -> str | None:
    """The label of a row of any schema, or None."""
    label = row.get("label")
    if isinstance(label, dict):
        label = label.get("label")
    return label if isinstance(label, str) else None


def bucket_of(row: Json) -> str | None:
    review = row.get("review") if row.get("schema_version") == TRAINING else None
    found = review.get("source_bucket") if isinstance(review, dict) else row.get("source_bucket")
    return found if isinstance(found, str) else None
