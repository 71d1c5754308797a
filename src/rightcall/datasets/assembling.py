"""`dataset assemble`: merge files of training rows, without duplicates and contradictions.

Of rows with the same input and the same label, the first is kept. A row with the same input and another label is a
conflict: it is written to conflicts.jsonl, and with `drop_conflicts` every row with that input is dropped. Invalid
rows, and rows that are marked as public, are written to quarantine.jsonl with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from rightcall.capture.captured_rows import LineFault, unix_ms
from rightcall.datasets.forge_rows import model_input, notebook_row
from rightcall.datasets.row_files import (
    ASSEMBLED,
    CONFLICTS,
    MERGED,
    NOTEBOOK,
    QUARANTINE,
    RowReader,
    Scratch,
    Seen,
    count_name,
    digest,
    manifest,
)
from rightcall.datasets.schemas import CONFLICT, REJECT, TRAINING, faults
from rightcall.errors import CallerError
from rightcall.storage.jsonl import Line, read_lines
from rightcall.storage.whole_files import Outputs, WholeFile
from rightcall.types import Json

COMBINED, MANIFEST = "training.jsonl", "dataset_manifest.json"


class Assembled(msgspec.Struct, frozen=True):
    """The result of an assembly, in rows: `accepted`, `duplicates`, `conflicts`, `dropped` because of a conflict, and
    in `quarantine`. `combined_path` is the merged file."""

    accepted: int
    duplicates: int
    conflicts: int
    dropped: int
    quarantine: int
    combined_path: str


def assemble(
    paths: Iterable[str | Path],
    out_dir: str | Path,
    *,
    combined: str = COMBINED,
    drop_conflicts: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Assembled:
    """Merge files of training rows without duplicates and contradictions. Writes the combined rows, notebook.jsonl (the
    same rows flattened), conflicts.jsonl, quarantine.jsonl and dataset_manifest.json.

    - `paths`: the files; of rows with the same input and label the first is kept.
    - `out_dir`: the folder to write into.
    - `combined`: the name of the merged file.
    - `drop_conflicts`: drop all rows of an input with two labels; otherwise its first row is kept.
    - `seen`, `force`: as in `export`.

    Raises `CallerError` if `combined` is the name of another of these files."""
    files, folder = [Path(path) for path in paths], Path(out_dir)
    names = _output_names(combined)
    if len({*names.values(), MANIFEST}) <= len(names):
        raise CallerError(f"{combined} is the name of another file that is written; name the merged file otherwise")
    outs = {name: WholeFile(folder / names[name], _KINDS[name], sources=files, force=force) for name in names}
    summary = WholeFile(folder / MANIFEST, manifest(ASSEMBLED), sources=files, force=force)
    with (
        Scratch() as scratch,
        Outputs(*outs.values(), summary) as outputs,
        closing(RowReader(files)) as reader,
    ):
        outputs.open()
        merge = _Merge(scratch, files, reader, seen)
        stats = [merge.read(at, outs["conflicts"], outs["quarantine"]) for at in range(len(files))]
        labels, dropped = merge.write(outs["training"], outs["notebook"], drop_conflicts)
        totals: Counter[str] = sum(stats, Counter())
        summary.write_json(_build_manifest(files, folder, names, stats, totals, labels, dropped, drop_conflicts))
    named = {name: totals[name] for name in ("duplicates", "conflicts", "quarantine")}
    accepted = sum(labels.values())
    return Assembled(accepted=accepted, dropped=dropped, combined_path=str(folder / combined), **named)


def _build_manifest(
    files: list[Path],
    folder: Path,
    names: dict[str, str],
    stats: list[Counter[str]],
    totals: Counter[str],
    labels: Counter[str],
    dropped: int,
    drop_conflicts: bool,
) -> Json:
    """Return the manifest of an assembly: its inputs and outputs, and counts of rows and labels."""
    counts = {name: totals[name] for name in _COUNTED}
    return {
        "schema_version": ASSEMBLED,
        "created_unix_ms": unix_ms(),
        "drop_conflicts": drop_conflicts,
        "inputs": [{"path": str(file), **each} for file, each in zip(files, stats, strict=True)],
        "outputs": {name: str(folder / file) for name, file in names.items()},
        "counts": {**counts, "accepted": sum(labels.values()), "dropped": dropped},
        "labels": dict(sorted(labels.items())),
    }


_COUNTED = ("rows_seen", "accepted", "duplicates", "conflicts", "quarantine")


_KINDS = {"training": MERGED, "notebook": NOTEBOOK, "conflicts": CONFLICTS, "quarantine": QUARANTINE}


def _output_names(combined: str) -> dict[str, str]:
    """Return the file name of each output: training, notebook, conflicts, quarantine. `combined` is that of the
    training rows."""
    files = {name: f"{name}.jsonl" for name in ("notebook", "conflicts", "quarantine")}
    return {"training": combined, **files}


class _Merge:
    """Merges files of training rows. The digest, label and position of each input seen so far are in the database
    `scratch`, in a table that the constructor creates."""

    def __init__(self, scratch: Scratch, files: list[Path], reader: RowReader, seen: Seen | None) -> None:
        self.db, self.files, self.reader, self.seen = scratch.db, files, reader, seen
        self.db.execute(
            "CREATE TABLE inputs (key BLOB, label TEXT, file INT, number INT, place INT, size INT, bad INT)"
        )
        self.db.execute("CREATE UNIQUE INDEX by_key ON inputs (key)")

    def read(self, at: int, conflicts: WholeFile, quarantine: WholeFile) -> Counter[str]:
        """Read the file with this index: record its accepted rows in the database, write conflicts and rejected rows to
        the two outputs, and return the counts of its rows by `_COUNTED`."""
        stats: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self.db.execute("BEGIN")
        for line in read_lines(self.files[at], seen=self.seen):
            stats["rows_seen"] += 1
            wrong = _find_rejection(line.row)
            if wrong is not None:
                stats["quarantine"] += 1
                quarantine.write(_make_quarantine_row(str(self.files[at]), line, *wrong))
            else:
                assert not isinstance(line.row, LineFault)
                stats[self._add(at, line, line.row, conflicts)] += 1
        self.db.execute("COMMIT")
        return stats

    def _add(self, at: int, line: Line, row: Json, conflicts: WholeFile) -> str:
        """Record a valid row if its input is new, and return the count that it belongs to: "accepted", "duplicates"
        (same label) or "conflicts" (another label). For a conflict both rows are written to `conflicts`, and the input
        is marked."""
        text = model_input(row["input"])
        key = digest(text)
        known = self.db.execute("SELECT label, file, number, place, size FROM inputs WHERE key = ?", (key,)).fetchone()
        if known is None:
            values = (key, row["label"], at, line.number, line.place, line.size)
            self.db.execute("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?, 0)", values)
            return "accepted"
        if known[0] == row["label"]:
            return "duplicates"
        self.db.execute("UPDATE inputs SET bad = 1 WHERE key = ?", (key,))
        conflicts.write(
            {
                "schema_version": CONFLICT,
                "scorer_input": text,
                "kept": self._describe_conflict_row(known[1], known[2], self.reader.row(known[1], known[3], known[4])),
                "conflict": self._describe_conflict_row(at, line.number, row),
            }
        )
        return "conflicts"

    def _describe_conflict_row(self, file: int, number: int, row: Json) -> Json:
        """Return an object with the path, line number, label and content of a row; `file` is the index of its file."""
        return {"path": str(self.files[file]), "line_number": number, "label": row["label"], "row": row}

    def write(self, out: WholeFile, notebook: WholeFile, drop: bool) -> tuple[Counter[str], int]:
        """Write the accepted rows to both outputs, in their order. Return the counts of their labels, and how many
        rows were dropped because of a conflict (only with `drop`)."""
        labels: Counter[str] = Counter()
        dropped = 0
        for file, place, size, bad in self.db.execute("SELECT file, place, size, bad FROM inputs ORDER BY rowid"):
            if bad and drop:
                dropped += 1
                continue
            row = _mark_private(self.reader.row(file, place, size))
            count_name(labels, row["label"])
            out.write(row)
            notebook.write(notebook_row(row))
        return labels, dropped


def _find_rejection(row: Json | LineFault) -> tuple[str, str] | None:
    """Return the code and the message of the reason why a line is rejected: no JSON, no valid training row, or marked
    as public; None if it is accepted."""
    if isinstance(row, LineFault):
        return "invalid_json", row.message
    if row.get("schema_version") != TRAINING:
        return "invalid_training_row", f"schema_version must be {TRAINING}"
    found = faults(row)
    if found:
        return "invalid_training_row", "; ".join(found)
    public = find_public_mark(row)
    return ("public_row", public) if public else None


def find_public_mark(row: Json) -> str:
    """Return a message with the path of the first field that marks a row as public, at any depth; "" if none does."""
    pending: list[tuple[str, Any]] = [("", row)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            if value.get("public_export_allowed") is True:
                return f"{path}/public_export_allowed must not be true"
            if value.get("private_agent_log") is False:
                return f"{path}/private_agent_log must not be false"
            pending += [(f"{path}/{name}", each) for name, each in value.items() if isinstance(each, dict | list)]
        else:
            pending += [(f"{path}/{at}", each) for at, each in enumerate(value) if isinstance(each, dict | list)]
    return ""


def _mark_private(row: Json) -> Json:
    """Return a copy of a training row whose `review` says that it is private and must not be exported publicly."""
    return {**row, "review": {**row["review"], "private_agent_log": True, "public_export_allowed": False}}


def _make_quarantine_row(path: str, line: Line, reason: str, detail: str) -> Json:
    """Return the row of quarantine.jsonl for a rejected line: its file, number, content and the reason."""
    row = None if isinstance(line.row, LineFault) else line.row
    return {
        "schema_version": REJECT,
        "reason": reason,
        "detail": detail,
        "path": path,
        "line_number": line.number,
        "row": row,
    }
