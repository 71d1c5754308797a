"""`dataset split`: training and validation rows, where what belongs together stays together.

Rows of one group (the same conversation) go to the same side. Which groups are for validation depends on the seed and
their names alone: the hash FNV-1a of seed, NUL and group, lowest first, until there are enough rows. So a row that is
added to a file does not move the others about. By tool, it is tools that are held out: see `tool_split`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from rightcall.capture.captured_rows import LineFault
from rightcall.datasets.row_files import BadRows, Scratch, Seen, Where, digest
from rightcall.datasets.schemas import faults
from rightcall.datasets.tool_split import MOST_TOLD, ToolNotes, ToolUse, tool_use
from rightcall.datasets.validating import bucket_of, count, label_of
from rightcall.datasets.written_kinds import SIDE, SPLIT, manifest
from rightcall.errors import CallerError
from rightcall.storage.jsonl import Line, encode_row, read_lines
from rightcall.storage.whole_files import Outputs, WholeFile
from rightcall.types import Json

RATIO, SEED = 0.10, "forge-dataset-v1"
_GROUPS = ("example_group_id", "task_group_id", "capture_key", "row_key")
_MASK = (1 << 64) - 1


class Split(msgspec.Struct, frozen=True):
    """What a split wrote: how many `rows` of how many `groups`, how many rows for `train` and `validation`, and the
    files: `train_path`, `validation_path`, `manifest_path`. By tool, `left_out` rows are on neither side, and
    `held_out` tools are for validation alone."""

    rows: int
    groups: int
    train: int
    validation: int
    left_out: int
    held_out: int
    train_path: str
    validation_path: str
    manifest_path: str


def split(
    paths: Iterable[str | Path],
    out_dir: str | Path,
    *,
    ratio: float = RATIO,
    seed: str = SEED,
    by: Literal["conversation", "tool"] = "conversation",
    seen: Seen | None = None,
    force: bool = False,
) -> Split:
    """Writes train.jsonl, validation.jsonl and split_manifest.json. Rows are not changed, and rows of one conversation
    stay on one side. A row that is added later does not move the others.

    - `paths`: the files.
    - `out_dir`: the folder to write into.
    - `ratio`: how much is for validation, from 0 to 1.
    - `seed`: which conversations, or tools, are; the same give the same.
    - `by`: "tool" holds out tools: none that a conversation for validation calls is so much as offered in training.
      Conversations that would break that, on whichever side, are left out.
    - `seen`, `force`: as in `export`.

    Raises `BadRows` for rows that are not sound.
    """
    if not 0 <= ratio <= 1:
        raise CallerError(f"the ratio must be between 0 and 1, not {ratio}")
    files, folder = [Path(path) for path in paths], Path(out_dir)
    sides = {"train": _Side(), "validation": _Side()}
    outs = {name: WholeFile(folder / f"{name}.jsonl", SIDE, sources=files, force=force) for name in sides}
    told = WholeFile(folder / "split_manifest.json", manifest(SPLIT), sources=files, force=force)
    with Scratch() as scratch, Outputs(*outs.values(), told) as outputs:
        chosen = _choose(scratch, files, ratio, seed, by, seen)
        outputs.open()
        for line, name in _sided(scratch, files, seen):
            assert not isinstance(line.row, LineFault)
            sides[name].add(line.row)
            outs[name].write_bytes(line.data.rstrip(b"\r\n") + b"\n")
        train, validation = sides["train"].rows, sides["validation"].rows
        left_out = chosen.rows - train - validation
        counts = {"rows": chosen.rows, "groups": chosen.groups, **{name: side.told() for name, side in sides.items()}}
        if by == "tool":
            counts |= {"by": by, "left_out": left_out, "held_out_tools": chosen.held_out[:MOST_TOLD]}
        inputs = [str(file) for file in files]
        told.write_json({"schema_version": SPLIT, "inputs": inputs, "ratio": ratio, "seed": seed, **counts})
    names = [str(folder / name) for name in ("train.jsonl", "validation.jsonl", "split_manifest.json")]
    return Split(chosen.rows, chosen.groups, train, validation, left_out, len(chosen.held_out), *names)


class _Chosen(NamedTuple):
    rows: int
    groups: int
    held_out: list[str]


class _Side:
    """Counts of one side for the manifest."""

    def __init__(self) -> None:
        self.rows = 0
        self.counts: dict[str, Counter[str]] = {"labels": Counter(), "buckets": Counter(), "schemas": Counter()}

    def add(self, row: Json) -> None:
        self.rows += 1
        count(self.counts["labels"], label_of(row))
        count(self.counts["buckets"], bucket_of(row))
        count(self.counts["schemas"], row.get("schema_version"))

    def told(self) -> Json:
        return {"rows": self.rows, **{name: dict(sorted(counts.items())) for name, counts in self.counts.items()}}


def _choose(scratch: Scratch, files: list[Path], ratio: float, seed: str, by: str, seen: Seen | None) -> _Chosen:
    """Notes the group of every row, and which groups are for validation."""
    scratch.db.execute("CREATE TABLE rows (key BLOB, hash BLOB)")
    for table in ("chosen", "torn"):
        scratch.db.execute(f"CREATE TABLE {table} (key BLOB PRIMARY KEY) WITHOUT ROWID")
    if by == "tool":
        return _by_tool(scratch, files, ratio, seed, seen)
    scratch.insert("INSERT INTO rows VALUES (?, ?)", ((digest(key), _hash(seed, key)) for key, _ in _rows(files, seen)))
    total: int = scratch.db.execute("SELECT count(*) FROM rows").fetchone()[0]
    wanted, groups = math.ceil(total * ratio), 0
    chosen: list[tuple[bytes]] = []
    for key, size in scratch.db.execute("SELECT key, count(*) FROM rows GROUP BY key ORDER BY min(hash), key"):
        groups += 1
        if wanted > 0:
            wanted -= size
            chosen.append((key,))
            if len(chosen) == 10_000:
                scratch.db.executemany("INSERT INTO chosen VALUES (?)", chosen)
                chosen.clear()
    scratch.db.executemany("INSERT INTO chosen VALUES (?)", chosen)
    return _Chosen(total, groups, [])


def _by_tool(scratch: Scratch, files: list[Path], ratio: float, seed: str, seen: Seen | None) -> _Chosen:
    notes, total = ToolNotes(scratch), 0
    scratch.db.execute("BEGIN")
    for key, row in _rows(files, seen):
        total += 1
        scratch.db.execute("INSERT INTO rows VALUES (?, NULL)", (digest(key),))
        use = tool_use(row)
        if not use.called | use.offered:  # without tools, a conversation stands for itself
            use = ToolUse(frozenset({key}), frozenset())
        notes.add(digest(key), use, {name: _hash(seed, name) for name in use.called | use.offered})
    scratch.db.execute("COMMIT")
    held_out = notes.choose(math.ceil(total * ratio))
    groups: int = scratch.db.execute("SELECT count(*) FROM sizes").fetchone()[0]
    return _Chosen(total, groups, held_out)


def _hash(seed: str, key: str) -> bytes:
    return rank(seed, key).to_bytes(8, "big")


def _rows(files: list[Path], seen: Seen | None) -> Iterator[tuple[str, Json]]:
    """Every row with the key of its group. Raises `BadRows` for one that is not sound."""
    for file in files:
        for line in read_lines(file, seen=seen):
            where = Where(str(file), line.number)
            if isinstance(line.row, LineFault):
                raise BadRows(f"{where} {line.row.message}; `rightcall dataset validate` lists every fault")
            found = faults(line.row)
            if found:
                raise BadRows(f"{where} {found[0]}; `rightcall dataset validate` lists every fault")
            yield group_key(line.row), line.row


def _sided(scratch: Scratch, files: list[Path], seen: Seen | None) -> Iterator[tuple[Line, str]]:
    """Every row again, in order, with its side; those on neither are passed over."""
    sides = scratch.db.execute(
        "SELECT key IN (SELECT key FROM chosen), key IN (SELECT key FROM torn) FROM rows ORDER BY rowid"
    )
    for file in files:
        for line, (chosen, torn) in zip(read_lines(file, seen=seen), sides, strict=False):
            if isinstance(line.row, LineFault):
                raise BadRows(f"{file} changed while it was read; run the command again")
            if not torn:
                yield line, "validation" if chosen else "train"


def group_key(row: Json) -> str:
    """What must not be torn apart: the group that the row names, else what it was given as input."""
    review = row.get("review")
    for holder in (review if isinstance(review, dict) else {}, row):
        for name in _GROUPS:
            if isinstance(holder.get(name), str) and holder[name]:
                return str(holder[name])
    return encode_row(row["input"] if isinstance(row.get("input"), dict) else row).decode().strip()


@lru_cache(4096)
def rank(seed: str, key: str) -> int:
    """FNV-1a, 64 bits, of seed, NUL and key."""
    value = 0xCBF29CE484222325
    for byte in f"{seed}\0{key}".encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value
