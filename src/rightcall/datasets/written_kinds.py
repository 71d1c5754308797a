"""What each command of `rightcall dataset` writes, and so may write over: a file is known by its first line.

A capture whose journal lies beside it is never taken for one of them: what a model said cannot be had again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import FORGE, SCHEMA
from rightcall.capture.journal import journal_path
from rightcall.datasets.schemas import CONFLICT, PROMPT, REJECT, SCHEMAS, TRAINING
from rightcall.storage.file_kinds import FileKind, FoundFile, beginning, json_lines
from rightcall.types import Json

MANIFEST = ".manifest.json"  # behind the name of the file that it is about
ASSEMBLED, SPLIT, EXPORTED = (f"rightcall-{name}-manifest/v1" for name in ("assembled", "split", "export"))


def _rows(command: str, *versions: str, also: Callable[[Json], bool] | None = None) -> FileKind:
    found = json_lines(f"file that `dataset {command}` wrote", "schema_version", *versions, also=also)
    return FileKind(found.name, lambda file: found.knows(file) and not journal_path(file.path).exists())


def _marked(mark: str) -> Callable[[Json], bool]:
    def is_marked(row: Json) -> bool:
        marks: Any = row.get("metadata")
        return isinstance(marks, dict) and mark in marks

    return is_marked


PROMPTS = _rows("prompts", PROMPT)
LABELLED = _rows("label", SCHEMA, FORGE)
DEDUPED = _rows("dedupe", *SCHEMAS)
IMPORTED = _rows("import", SCHEMA, also=lambda row: row.get("source_bucket") == "imported_log")
MUTATED = _rows("mutate", SCHEMA, also=_marked("mutation"))
REDACTED = _rows("redact", *SCHEMAS, also=_marked("redaction"))
RELEASED = _rows("release", *SCHEMAS, also=_marked("release"))
SIDE = _rows("split", *SCHEMAS)
MERGED = _rows("assemble", TRAINING)
CONFLICTS = _rows("assemble", CONFLICT)
QUARANTINE = _rows("assemble", REJECT)
NOTEBOOK = json_lines(MERGED.name, "kind", "tool_call", also=lambda row: "rank_score" in row)


def manifest(version: str) -> FileKind:
    """A manifest as `Output.write_json` writes it: what it is comes first."""
    return beginning("manifest of `rightcall dataset`", json.dumps({"schema_version": version}, indent=2)[:-2].encode())


# -- exports -----------------------------------------------------------------------------------------------------------


def _has_manifest(found: FoundFile) -> bool:
    """Lines for a trainer say nothing of who wrote them; the manifest beside them does."""
    try:
        start = manifest_of(found.path).read_bytes()[:200]
    except OSError:
        return False
    return found.row is not None and f'"{EXPORTED}"'.encode() in start


def manifest_of(path: Path) -> Path:
    return path.with_name(path.name + MANIFEST)


_LONGEST = 16_000_000


def _is_parquet(found: FoundFile) -> bool:
    """The end of a Parquet file says what the writer noted of it; its last bytes say how long that is."""
    end = found.at(max(0, found.size - 8), 8)
    size = int.from_bytes(end[:4], "little")
    if found.at(0, 4) != b"PAR1" or end[4:] != b"PAR1" or not 0 < size < min(found.size, _LONGEST):
        return False
    return b'{"private": ' in found.at(found.size - 8 - size, size).partition(b"rightcall")[2][:40]


EXPORT = FileKind("export of `rightcall dataset`", _has_manifest)
PARQUET = FileKind("Parquet export of `rightcall dataset`", _is_parquet)
