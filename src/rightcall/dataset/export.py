"""`dataset export`: captured rows as a file for a trainer, JSON lines or Parquet.

    export(["capture.jsonl"], "train.jsonl", to="trl-sft")

What is left out is counted with its reason. Files are private (mode 0600, and the manifest beside them says so) unless
every row was released and `public` is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from rightcall import formats
from rightcall.capture.rows import unix_ms
from rightcall.dataset.conversations import Conversation, Conversations
from rightcall.dataset.files import PRIVATE, PUBLIC, BadRows, Output, Seen, Where, write_json
from rightcall.dataset.redact import is_released
from rightcall.dataset.shapes import SHAPES, Found, How, LeftOut
from rightcall.dataset.validate import count
from rightcall.errors import CallerError
from rightcall.types import Json


class Exported(msgspec.Struct, frozen=True):
    """What was written; `left_out` counts by reason."""

    examples: int
    conversations: int
    left_out: dict[str, int]
    unlabelled: int
    path: str
    manifest: str
    public: bool


class Unreleased(BadRows):
    """Rows that may not be exported publicly. `rows` says which and why."""

    def __init__(self, rows: list[tuple[Where, str]], total: int) -> None:
        first = f"; the first is {rows[0][0]}: {rows[0][1]}"
        super().__init__(f"{total} rows are not released, so nothing is exported with --public{first}")
        self.rows = rows


_MOST_TOLD = 1_000


class _Gate:
    """Looks at every row before the first example is written."""

    def __init__(self, public: bool) -> None:
        self.public, self.unlabelled, self.count = public, 0, 0
        self.refused: list[tuple[Where, str]] = []

    def __call__(self, where: Where, row: Json) -> None:
        self.unlabelled += "label" not in row
        why = is_released(row) if self.public else ""
        if why:
            self.count += 1
            if len(self.refused) < _MOST_TOLD:
                self.refused.append((where, why))

    def open(self) -> None:
        if self.count:
            raise Unreleased(self.refused, self.count)


class Writer(Protocol):
    rows: int

    def write(self, row: Json) -> None: ...


def export(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    to: str,
    turns: bool = False,
    format: str | None = None,
    public: bool = False,
    seen: Seen | None = None,
) -> Exported:
    """Writes the rows of captures in a shape; a name that ends in .parquet is written as Parquet.

    Raises `Unreleased` if a row may not be public, `BadRows` for rows that are not sound; then nothing is written.
    """
    files, how = [Path(path) for path in paths], _how(to, turns, format)
    gate = _Gate(public)
    conversations = Conversations(files, each=gate, seen=seen)
    left_out: Counter[str] = Counter()
    number = 0
    stream = iter(conversations)
    first = next(stream, None)  # every row has passed the gate by now
    gate.open()
    with _writer(output, files, to, how, public) as out:
        while first is not None:
            number += 1
            for example in _examples(first, to, how):
                if isinstance(example, LeftOut):
                    count(left_out, str(example), 100)
                else:
                    out.write(example)
            first = next(stream, None)
    if conversations.left_out:
        left_out["rows behind the first thousand of a conversation"] = conversations.left_out
    manifest = _manifest(files, Path(output), to, how, public, out.rows, left_out)
    reasons = dict(left_out.most_common())
    return Exported(out.rows, number, reasons, gate.unlabelled, str(output), manifest, public)


def _how(to: str, turns: bool, format: str | None) -> How:
    if to not in SHAPES:
        raise CallerError(f"no shape {to!r:.40}; there are {', '.join(SHAPES)}")
    if (format is not None) != (to == "text"):
        raise CallerError("plain text needs a format, such as --format hermes, and only plain text takes one")
    if turns and to != "trl-sft":
        raise CallerError("--turns is for trl-sft: the other shapes have their own unit")
    return How(turns, formats.find(format) if format is not None else None)


def _examples(conversation: Conversation, to: str, how: How) -> Found:
    try:
        yield from SHAPES[to](conversation, how)
    except LeftOut as reason:
        yield reason


def _writer(output: str | Path, files: list[Path], to: str, how: How, public: bool) -> AbstractContextManager[Writer]:
    mode = PUBLIC if public else PRIVATE
    if str(output).endswith(".parquet"):
        from rightcall.dataset.parquet import ParquetOutput

        shape = "trl-turns" if how.turns else to
        return ParquetOutput(output, sources=files, shape=shape, public=public, mode=mode)
    return Output(output, sources=files, mode=mode)


def _manifest(
    files: list[Path], output: Path, to: str, how: How, public: bool, examples: int, left_out: Counter[str]
) -> str:
    path = output.with_name(output.name + ".manifest.json")
    manifest = {
        "schema_version": "rightcall-export-manifest/v1",
        "private": not public,
        "shape": to,
        "format": None if how.format is None else how.format.name,
        "turns": how.turns,
        "inputs": [{"path": str(file), "sha256": _sha256(file)} for file in files],
        "output": {"path": str(output), "sha256": _sha256(output), "examples": examples},
        "left_out": dict(left_out.most_common()),
        "created_unix_ms": unix_ms(),
    }
    write_json(path, manifest, mode=PUBLIC if public else PRIVATE)
    return str(path)


def _sha256(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 16):
            found.update(data)
    return found.hexdigest()
