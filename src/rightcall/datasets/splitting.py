"""`dataset split`: training and validation rows that share no conversation, or no tool.

By conversation: rows of one group go to the same side. Groups are ranked by the hash FNV-1a of seed, NUL and group;
those of lowest rank are for validation, until there are enough rows. A row that is added does not move the others.

By tool: no tool that a conversation for validation calls is so much as offered in training. Tools are ranked as groups
are; those of lowest rank are held out until the conversations that call one of them have enough rows. Conversations
that call no other tool are for validation; those that offer no held-out tool are for training; all others are left out.
A conversation without a call counts as calling every tool that it offers: that no tool helps is what it teaches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall.capture.captured_rows import RESPOND, LineFault
from rightcall.datasets.row_files import SIDE, SPLIT, BadRows, Scratch, Seen, Where, count_name, digest, manifest
from rightcall.datasets.schemas import bucket_of, first_fault, label_of
from rightcall.errors import CallerError
from rightcall.storage.jsonl import Line, encode_row, read_lines
from rightcall.storage.whole_files import Outputs, WholeFile
from rightcall.types import Json

RATIO, SEED = 0.10, "forge-dataset-v1"
_MOST_LISTED = 1_000  # names of held-out tools in the manifest
_GROUPS = ("example_group_id", "task_group_id", "capture_key", "row_key")
_MASK = (1 << 64) - 1


class Split(msgspec.Struct, frozen=True):
    """The result of a split: the number of `rows` and `groups`, of rows for `train` and `validation`, and the files:
    `train_path`, `validation_path`, `manifest_path`. By tool, `left_out` rows are on neither side, and `held_out` tools
    are for validation alone."""

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
    """Write train.jsonl, validation.jsonl and split_manifest.json. Rows are not changed, and rows of one conversation
    stay on one side. A row that is added later does not move the others.

    - `paths`: the files.
    - `out_dir`: the folder to write into.
    - `ratio`: the share of rows for validation, from 0 to 1.
    - `seed`: chooses the conversations, or tools; the same seed chooses the same.
    - `by`: "tool" holds out tools: none that a conversation for validation calls is so much as offered in training.
      Conversations that would break that, on whichever side, are left out.
    - `seen`, `force`: as in `export`.

    Raise `BadRows` for rows with faults, and `CallerError` if `ratio` is out of range; nothing is written then.
    """
    if not 0 <= ratio <= 1:
        raise CallerError(f"the ratio must be between 0 and 1, not {ratio}")
    files, folder = [Path(path) for path in paths], Path(out_dir)
    sides = {"train": _Side(), "validation": _Side()}
    outs = {name: WholeFile(folder / f"{name}.jsonl", SIDE, sources=files, force=force) for name in sides}
    summary = WholeFile(folder / "split_manifest.json", manifest(SPLIT), sources=files, force=force)
    with Scratch(*_TABLES) as scratch, Outputs(*outs.values(), summary) as outputs:
        choose = _choose_by_tool if by == "tool" else _choose_by_conversation
        choice = choose(scratch, _read_rows(files, seen), ratio, seed)
        outputs.open()
        for line, name in _assign_sides(scratch, files, seen):
            assert not isinstance(line.row, LineFault)
            sides[name].add(line.row)
            outs[name].write_bytes(line.data.rstrip(b"\r\n") + b"\n")
        train, validation = sides["train"].rows, sides["validation"].rows
        left_out = choice.rows - train - validation
        counts: Json = {"rows": choice.rows, "groups": choice.groups}
        counts |= {name: side.to_json() for name, side in sides.items()}
        if by == "tool":
            counts |= {"by": by, "left_out": left_out, "held_out_tools": choice.held_out[:_MOST_LISTED]}
        inputs = [str(file) for file in files]
        summary.write_json({"schema_version": SPLIT, "inputs": inputs, "ratio": ratio, "seed": seed, **counts})
    names = [str(folder / name) for name in ("train.jsonl", "validation.jsonl", "split_manifest.json")]
    return Split(choice.rows, choice.groups, train, validation, left_out, len(choice.held_out), *names)


class _Side:
    """Counts of one side for the manifest."""

    def __init__(self) -> None:
        self.rows = 0
        self.counts: dict[str, Counter[str]] = {"labels": Counter(), "buckets": Counter(), "schemas": Counter()}

    def add(self, row: Json) -> None:
        """Count a row of this side, also by label, bucket and schema."""
        self.rows += 1
        count_name(self.counts["labels"], label_of(row))
        count_name(self.counts["buckets"], bucket_of(row))
        count_name(self.counts["schemas"], row.get("schema_version"))

    def to_json(self) -> Any:
        """Return the number of rows and the counts by label, bucket and schema, sorted by name, as JSON data."""
        return {"rows": self.rows, **{name: dict(sorted(counts.items())) for name, counts in self.counts.items()}}


def _read_rows(files: list[Path], seen: Seen | None) -> Iterator[tuple[str, Json]]:
    """Yield every row with the key of its group. Raises `BadRows` for the first invalid row."""
    for file in files:
        for line in read_lines(file, seen=seen):
            if fault := first_fault(line.row):
                raise BadRows(f"{Where(str(file), line.number)} {fault}")
            assert not isinstance(line.row, LineFault)
            yield group_key(line.row), line.row


def group_key(row: Json) -> str:
    """Return the key of the group of a row, whose rows stay on one side: the first text under the names in `_GROUPS`,
    in `review` or else in the row itself. Without one, return the JSON of its input, or of the row if it has no
    input."""
    review = row.get("review")
    for holder in (review if isinstance(review, dict) else {}, row):
        for name in _GROUPS:
            if isinstance(holder.get(name), str) and holder[name]:
                return str(holder[name])
    return encode_row(row["input"] if isinstance(row.get("input"), dict) else row).decode().strip()


@lru_cache(4096)
def rank(seed: str, key: str) -> int:
    """Return the 64-bit hash FNV-1a of seed, NUL and key, by which groups and tools are ordered. Cached."""
    value = 0xCBF29CE484222325
    for byte in f"{seed}\0{key}".encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value


def _rank_bytes(seed: str, key: str) -> bytes:
    """Return `rank(seed, key)` as eight bytes, which sort as the number does."""
    return rank(seed, key).to_bytes(8, "big")


# -- choosing the groups -----------------------------------------------------------------------------------------------

_TABLES = (
    "CREATE TABLE rows (key BLOB, hash BLOB)",  # the group of every row, in the order of the rows
    "CREATE TABLE chosen (key BLOB PRIMARY KEY) WITHOUT ROWID",  # groups for validation
    "CREATE TABLE left_out (key BLOB PRIMARY KEY) WITHOUT ROWID",  # groups on neither side
)
_TOOL_TABLES = (
    "CREATE TABLE calls (tool BLOB, key BLOB, PRIMARY KEY (tool, key)) WITHOUT ROWID",
    "CREATE TABLE offers (tool BLOB, key BLOB, PRIMARY KEY (tool, key)) WITHOUT ROWID",
    "CREATE TABLE tools (tool BLOB PRIMARY KEY, name TEXT, hash BLOB) WITHOUT ROWID",
    "CREATE TABLE held_out (tool BLOB PRIMARY KEY) WITHOUT ROWID",
)
_COUNT_GROUPS = "CREATE TABLE sizes AS SELECT key, count(*) AS size FROM rows GROUP BY key"
_COUNT_OFFERS_AS_CALLS = (
    "INSERT OR IGNORE INTO calls SELECT tool, key FROM offers WHERE key NOT IN (SELECT key FROM calls)"
)
_RANKED_TOOLS = "SELECT tool, name FROM tools WHERE tool IN (SELECT tool FROM calls) ORDER BY hash, tool"
_CALLING = "SELECT key FROM calls WHERE tool = ? AND key NOT IN (SELECT key FROM chosen)"
_DROP_CALLING_OTHERS = (
    "DELETE FROM chosen WHERE key IN (SELECT key FROM calls WHERE tool NOT IN (SELECT tool FROM held_out))"
)
_LEAVE_OUT = """INSERT INTO left_out SELECT DISTINCT key FROM offers
                WHERE tool IN (SELECT tool FROM held_out) AND key NOT IN (SELECT key FROM chosen)"""


class _Choice(NamedTuple):
    rows: int
    groups: int
    held_out: list[str]


def _choose_by_conversation(scratch: Scratch, rows: Iterable[tuple[str, Json]], ratio: float, seed: str) -> _Choice:
    """Read all rows and fill the table `rows`, and `chosen` with the groups for validation: those of lowest rank
    until they have the wanted share of rows. Return the numbers of rows and groups."""
    entries = ((digest(key), _rank_bytes(seed, key)) for key, _ in rows)
    scratch.insert("INSERT INTO rows VALUES (?, ?)", entries)
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
    return _Choice(total, groups, [])


def _choose_by_tool(scratch: Scratch, rows: Iterable[tuple[str, Json]], ratio: float, seed: str) -> _Choice:
    """Read all rows and fill the tables `rows`, `chosen` with the groups for validation, and `left_out` with those on
    neither side. Return the numbers of rows and groups and the names of the held-out tools: those of lowest rank, until
    the groups that call one have the wanted share of rows."""
    db, total = scratch.db, 0
    for table in _TOOL_TABLES:
        db.execute(table)
    db.execute("BEGIN")
    for group, row in rows:
        total += 1
        key = digest(group)
        db.execute("INSERT INTO rows VALUES (?, NULL)", (key,))
        called, offered = _called_and_offered_tools(row)
        if not offered:  # without tools, a conversation counts as calling a tool of its own
            called = offered = {group}
        tools = [(digest(name), name, _rank_bytes(seed, name)) for name in offered]
        db.executemany("INSERT OR IGNORE INTO tools VALUES (?, ?, ?)", tools)
        db.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?)", [(digest(name), key) for name in called])
        db.executemany("INSERT OR IGNORE INTO offers VALUES (?, ?)", [(tool, key) for tool, _, _ in tools])
    db.execute("COMMIT")
    db.execute(_COUNT_GROUPS)
    db.execute("CREATE UNIQUE INDEX by_key ON sizes (key)")
    db.execute(_COUNT_OFFERS_AS_CALLS)
    wanted, names = math.ceil(total * ratio), list[str]()
    for tool, name in db.execute(_RANKED_TOOLS).fetchall():
        if wanted <= 0:
            break
        (size,) = db.execute(f"SELECT sum(size) FROM sizes WHERE key IN ({_CALLING})", (tool,)).fetchone()
        wanted -= size or 0
        db.execute(f"INSERT INTO chosen {_CALLING}", (tool,))
        db.execute("INSERT INTO held_out VALUES (?)", (tool,))
        names.append(name)
    db.execute(_DROP_CALLING_OTHERS)
    db.execute(_LEAVE_OUT)
    groups: int = db.execute("SELECT count(*) FROM sizes").fetchone()[0]
    return _Choice(total, groups, names)


def _called_and_offered_tools(row: Json) -> tuple[set[str], set[str]]:
    """Return the names of the tools that a row of any schema calls, and of those that it offers or calls. `respond`,
    which every capture offers, is left out."""
    entry = row["input"] if isinstance(row.get("input"), dict) else row
    tools = entry.get("available_tools")
    called = {_name_of_tool(entry.get("candidate_call"))} - {"", RESPOND.name}
    offered = {_name_of_tool(tool) for tool in tools} if isinstance(tools, list) else set()
    return called, (offered | called) - {"", RESPOND.name}


def _name_of_tool(value: Any) -> str:
    """Return the name of a call or tool; "" if it has none."""
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _assign_sides(scratch: Scratch, files: list[Path], seen: Seen | None) -> Iterator[tuple[Line, str]]:
    """Yield every line again, in order, with its side, "train" or "validation"; lines on neither side are skipped.
    Raises `BadRows` if a line can no longer be decoded, because its file was changed."""
    sides = scratch.db.execute(
        "SELECT key IN (SELECT key FROM chosen), key IN (SELECT key FROM left_out) FROM rows ORDER BY rowid"
    )
    for file in files:
        for line, (is_chosen, is_left_out) in zip(read_lines(file, seen=seen), sides, strict=False):
            if isinstance(line.row, LineFault):
                raise BadRows(f"{file} changed while it was read; run the command again")
            if not is_left_out:
                yield line, "validation" if is_chosen else "train"
