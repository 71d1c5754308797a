"""`dataset export`: captured rows as a file for a trainer, JSON lines or Parquet.

    export(["capture.jsonl"], "train.jsonl", to="trl-sft")

What is left out is counted with its reason. Files are private (mode 0600, and the manifest beside them says so) unless
every row was released and `public` is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from rightcall import formats
from rightcall.capture.captured_rows import unix_ms
from rightcall.datasets.export_work import LONGEST, ROW, UNRELEASED, ConversationWork, ExampleWork, reasons
from rightcall.datasets.message_shapes import SHAPES, MessageOptions
from rightcall.datasets.row_files import (
    EXPORT,
    EXPORTED,
    MANIFEST,
    PARQUET,
    BadRows,
    GroupedRows,
    RowRun,
    Seen,
    Where,
    file_names,
    manifest,
    manifest_of,
)
from rightcall.datasets.rows.sinks import RowSpool, move_to_store, refuse_existing, unfinished_path
from rightcall.datasets.rows.sources import RowSource
from rightcall.datasets.rows.stores import STDIN, open_source
from rightcall.errors import CallerError
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import PRIVATE, PUBLIC, Outputs, WholeFile
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


def export(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    to: str,
    turns: bool = False,
    format: str | None = None,
    contract: Literal["auto", "required"] | None = None,
    public: bool = False,
    keep_system: bool = False,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
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
    - `contract`: for "text": the prompt is what a `Backend` with mode="text" sends for this choice, so that a model is
      trained on what it will be asked.
    - `public`: every row must be released; the files may then be read by anybody, otherwise by you alone.
    - `keep_system`: leave in what a capture, or a backend that asks for text, told the model of its own accord.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`: is called now and then with the bytes that were read since, to show progress.
    - `force`: also write over a file of another kind.

    Raises `Unreleased` if a row may not be public, `BadRows` for rows that are not sound; then nothing is written.
    """
    how, run = _how(to, turns, format, contract), RowRun(engine, jobs, resume, seen)
    sources = run.sources(paths)
    columns = (SHAPES[to].turns if turns else SHAPES[to].columns) if _is_parquet(output) else None
    with (
        _placed(output, sources, public=public, force=force) as (beside, out),
        RowSpool(output, "rows", resume=resume) as rows,
        RowSpool(output, "examples", resume=resume) as made,
    ):
        counts = run.map(sources, ConversationWork(public=public), rows).counts
        if counts["unreleased"]:
            raise _unreleased(rows, sources, counts["unreleased"])
        with GroupedRows(rows, ROW, most=LONGEST) as grouped:
            counts += run.map([grouped], ExampleWork(to, how, keep_system=keep_system, columns=columns), made).counts
        left_out = reasons(counts)
        if grouped.left_out:
            left_out["rows behind the first thousand of a conversation"] = grouped.left_out
        _write(made, out, to, how, columns, public=public)
        if beside is not None:
            beside.write_json(_manifest(sources, output, out, to, how, public, counts["examples"], left_out))
    told = "" if beside is None else f"{output}{MANIFEST}"
    given = dict(left_out.most_common())
    return Exported(counts["examples"], counts["conversations"], given, counts["unlabelled"], str(output), told, public)


@contextmanager
def _placed(
    output: str | Path, sources: Sequence[RowSource], *, public: bool, force: bool
) -> Iterator[tuple[WholeFile | None, WholeFile]]:
    """The manifest, unless the rows go to a stream, and the file. Both appear when the block ends well; for a store,
    they are made here and then sent."""
    name = str(output)
    place = unfinished_path(name) if "://" in name else Path(name)
    if "://" in name:
        refuse_existing(name, force=force)
    shared: dict[str, Any] = {"sources": file_names(sources), "mode": PUBLIC if public else PRIVATE, "force": force}
    out = WholeFile(place, PARQUET if _is_parquet(output) else EXPORT, **shared)
    beside = None if is_stream(place) else WholeFile(manifest_of(place), manifest(EXPORTED), **shared)
    # The manifest goes first: it is what an export is known by, should the two be torn apart.
    files = [each for each in (beside, out) if each is not None]
    with Outputs(*files) as outputs:
        outputs.open()
        yield beside, out
    if "://" in name:
        move_to_store(manifest_of(place), f"{name}{MANIFEST}")
        move_to_store(place, name)


def _unreleased(rows: RowSpool, sources: Sequence[RowSource], total: int) -> Unreleased:
    found = (frame for frame in rows.frames() if frame.tag == UNRELEASED)
    told = [(Where(sources[frame.source].name, frame.line), frame.data.decode()) for frame in islice(found, _MOST_TOLD)]
    return Unreleased(told, total)


def _write(made: RowSpool, out: WholeFile, to: str, how: MessageOptions, columns: Json | None, *, public: bool) -> None:
    if columns is None:
        for piece in made.pieces():
            out.write_bytes(piece)
        return
    from rightcall.datasets.parquet import write_tables

    write_tables((data for data, _ in made.parts()), out, shape=to, turns=how.turns, columns=columns, public=public)


def _is_parquet(output: str | Path) -> bool:
    return str(output).endswith(".parquet")


def _how(to: str, turns: bool, format: str | None, contract: str | None) -> MessageOptions:
    if to not in SHAPES:
        raise CallerError(f"no shape {to!r:.40}; there are {', '.join(SHAPES)}")
    if (format is not None) != SHAPES[to].takes_format:
        raise CallerError("plain text needs a format, such as --format hermes, and only plain text takes one")
    if turns and SHAPES[to].turns is None:
        able = [name for name, shape in SHAPES.items() if shape.turns is not None]
        raise CallerError(f"--turns is for {', '.join(able)}: the other shapes have their own unit")
    if contract and not SHAPES[to].takes_format:
        raise CallerError("--contract is for --to text: trainers that read the other shapes show the tools themselves")
    return MessageOptions(turns, formats.find(format) if format is not None else None, contract or "")


def _manifest(
    sources: Sequence[RowSource],
    output: str | Path,
    out: WholeFile,
    to: str,
    how: MessageOptions,
    public: bool,
    examples: int,
    left_out: Counter[str],
) -> Json:
    return {
        "schema_version": EXPORTED,
        "private": not public,
        "shape": to,
        "format": None if how.format is None else how.format.name,
        "turns": how.turns,
        "contract": how.contract or None,
        "inputs": [{"path": source.path, "sha256": _sha256(source.path)} for source in sources],
        "output": {"path": str(output), "sha256": out.sha256(), "examples": examples},
        "left_out": dict(left_out.most_common()),
        "created_unix_ms": unix_ms(),
    }


def _sha256(path: str) -> str | None:
    """None of standard input, which cannot be read again."""
    if path == STDIN:
        return None
    found = sha256()
    with open_source(path) as file:
        while data := file.read(1 << 16):
            found.update(data)
    return found.hexdigest()
