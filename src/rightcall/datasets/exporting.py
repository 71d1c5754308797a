"""`dataset export`: captured rows as a file for a trainer, JSON lines or Parquet.

    export(["capture.jsonl"], "train.jsonl", to="trl-sft")

What is left out is counted with its reason. Files are private (mode 0600, and the manifest beside them says so) unless
every row was released and `public` is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Protocol

import msgspec

from rightcall import formats
from rightcall.capture.captured_rows import unix_ms
from rightcall.datasets.conversations import CapturedConversations
from rightcall.datasets.example_work import examples
from rightcall.datasets.message_shapes import SHAPES, LeftOut, MessageOptions
from rightcall.datasets.releasing import is_released
from rightcall.datasets.row_files import BadRows, Seen, Where
from rightcall.datasets.validating import count
from rightcall.datasets.written_kinds import EXPORT, EXPORTED, PARQUET, manifest, manifest_of
from rightcall.errors import CallerError
from rightcall.files.streams import is_stream
from rightcall.files.whole_files import PRIVATE, PUBLIC, Outputs, WholeFile
from rightcall.rows.engine_names import engine_of
from rightcall.types import Json


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote.

    - `examples`: how many, of so many `conversations`.
    - `left_out`: what could not be said in the shape, counted by reason.
    - `unlabelled`: rows without a label.
    - `path`, `manifest`: the files.
    - `public`: whether anybody may read them.
    """

    examples: int
    conversations: int
    left_out: dict[str, int]
    unlabelled: int
    path: str
    manifest: str
    public: bool

    @property
    def why_empty(self) -> str:
        """Why there is no example, and what would help; "" if there is one."""
        if self.examples:
            return ""
        if not self.conversations:
            return "there are no rows in what was given; see that the file is the right one"
        reasons = list(self.left_out.items())[:5]
        cures = dict.fromkeys([cure for reason, _ in reasons for sign, cure in _CURES.items() if sign in reason])
        told = ", ".join([f"{reason} ({number:,})" for reason, number in reasons])
        return "; ".join([f"of {self.conversations:,} conversations none is an example: {told}", *cures])


_CURES = {
    "without a label": "`rightcall dataset label` gives labels",
    "nothing to compare": "pairs come of rows with repairs or with retries",
    "no user turn": "import requests together with their answers",
}


class Unreleased(BadRows):
    """Rows that may not be exported publicly. `rows` says which and why, of the first thousand; `total` is how many
    there are."""

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


class ExportWriter(Protocol):
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
    keep_system: bool = False,
    engine: str = "local",
    jobs: int | None = None,
    seen: Seen | None = None,
    force: bool = False,
) -> Exported:
    """Writes the rows of captures as a file for a trainer, and a manifest beside it. What cannot be said in the shape
    is left out and counted with its reason; so is every example in which nobody asks or the answer is empty.

    - `paths`: captures, labelled or not.
    - `output`: the file, JSON lines; a name that ends in .parquet is written as Parquet (extra `parquet`).
    - `to`: the shape: "openai-sft", "trl-sft", "trl-preference", "trl-kto", "sharegpt", "verifier",
      "forge-capture" or "text".
    - `turns`: for "trl-sft": an example for each turn instead of the whole conversation.
    - `format`: for "text", and needed there: the format to write calls in.
    - `public`: every row must be released; the files may then be read by anybody, otherwise by you alone.
    - `keep_system`: leave in what a capture, or a backend that asks for text, told the model of its own accord.
    - `engine`, `jobs`: who makes the examples ("local" or "ray"), and how many at a time.
    - `seen`: is called after every line with the bytes it took, to show progress.
    - `force`: also write over a file of another kind.

    Raises `Unreleased` if a row may not be public, `BadRows` for rows that are not sound; then nothing is written.
    """
    files, how = [Path(path) for path in paths], _how(to, turns, format)
    mode = PUBLIC if public else PRIVATE
    out = WholeFile(output, PARQUET if _is_parquet(output) else EXPORT, sources=files, mode=mode, force=force)
    beside = WholeFile(manifest_of(out.path), manifest(EXPORTED), sources=files, mode=mode, force=force)
    # The manifest goes first: it is what an export is known by, should the two be torn apart.
    with Outputs(*([] if is_stream(output) else [beside]), out) as outputs:
        gate = _Gate(public)
        conversations = CapturedConversations(files, each=gate, seen=seen, keep_system=keep_system)
        stream = iter(conversations)
        first = next(stream, None)  # every row has passed the gate by now
        gate.open()
        outputs.open()
        left_out: Counter[str] = Counter()
        number = 0
        with _writer(out, to, how, public) as writer:
            whole = stream if first is None else chain([first], stream)
            for made in examples(whole, to, how, engine_of(engine, jobs)):
                number += 1
                for example in made:
                    if isinstance(example, LeftOut):
                        count(left_out, str(example), 100)
                    else:
                        writer.write(example)
        if conversations.left_out:
            left_out["rows behind the first thousand of a conversation"] = conversations.left_out
        if not is_stream(output):
            beside.write_json(_manifest(files, out, to, how, public, writer.rows, left_out))
    reasons, told = dict(left_out.most_common()), "" if is_stream(output) else str(beside.path)
    return Exported(writer.rows, number, reasons, gate.unlabelled, str(output), told, public)


def _is_parquet(output: str | Path) -> bool:
    return str(output).endswith(".parquet")


def _how(to: str, turns: bool, format: str | None) -> MessageOptions:
    if to not in SHAPES:
        raise CallerError(f"no shape {to!r:.40}; there are {', '.join(SHAPES)}")
    if (format is not None) != (to == "text"):
        raise CallerError("plain text needs a format, such as --format hermes, and only plain text takes one")
    if turns and to != "trl-sft":
        raise CallerError("--turns is for trl-sft: the other shapes have their own unit")
    return MessageOptions(turns, formats.find(format) if format is not None else None)


def _writer(out: WholeFile, to: str, how: MessageOptions, public: bool) -> AbstractContextManager[ExportWriter]:
    if not _is_parquet(out.path):
        return nullcontext(out)
    from rightcall.datasets.parquet import ParquetRows

    return ParquetRows(out, shape="trl-turns" if how.turns else to, public=public)


def _manifest(
    files: list[Path], out: WholeFile, to: str, how: MessageOptions, public: bool, examples: int, left_out: Counter[str]
) -> Json:
    return {
        "schema_version": EXPORTED,
        "private": not public,
        "shape": to,
        "format": None if how.format is None else how.format.name,
        "turns": how.turns,
        "inputs": [{"path": str(file), "sha256": _sha256(file)} for file in files],
        "output": {"path": str(out.path), "sha256": out.sha256(), "examples": examples},
        "left_out": dict(left_out.most_common()),
        "created_unix_ms": unix_ms(),
    }


def _sha256(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 16):
            found.update(data)
    return found.hexdigest()
