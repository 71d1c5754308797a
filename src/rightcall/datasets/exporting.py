"""`dataset export`: captured rows as a file for a trainer, JSON lines or Parquet.

    export(["capture.jsonl"], "train.jsonl", to="trl-sft")

Workers first collect the rows of each conversation, then make its examples. What a shape cannot represent is counted
with the reason. Files are private (mode 0600, and the manifest beside them says so) unless every row was released and
`public` is set.
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
from rightcall.datasets.conversations import CapturedConversation, conversation_key
from rightcall.datasets.releasing import explain_not_public
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
    capture_rows,
    count_name,
    digest,
    file_names,
    manifest,
    manifest_path,
)
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool, move_to_store, pack_frame, refuse_existing, unfinished_path
from rightcall.datasets.rows.sources import RowBatch, RowSource
from rightcall.datasets.rows.stores import STDIN, open_source
from rightcall.datasets.training_shapes import SHAPES, LeftOut, ShapeOptions
from rightcall.errors import CallerError
from rightcall.formats.registered import FormatCarrier
from rightcall.storage.jsonl import encode_row
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import PRIVATE, PUBLIC, Outputs, WholeFile
from rightcall.types import Json

_MOST_UNRELEASED = 1_000  # unreleased rows in an error
_MOST_ROWS = 1_000  # rows of one conversation; later ones are left out
_MOST_REASONS = 100  # reasons that are counted separately
_CURES = {
    "without a label": "`rightcall dataset label` gives labels",
    "nothing to compare": "pairs are made from rows with repairs or retries",
    "no user turn": "import requests together with their answers",
}


class Exported(msgspec.Struct, frozen=True):
    """The result of an export.

    - `examples`: their number; `conversations`: the number of conversations that were read.
    - `left_out`: counts of what the shape cannot represent, by reason.
    - `unlabelled`: the number of rows without a label.
    - `path`, `manifest`: the files.
    - `public`: whether everybody may read them.
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
        """The reason why there is no example, and the cure; "" if there is one."""
        if self.examples:
            return ""
        if not self.conversations:
            return "the input has no rows; check that it is the right file"
        reasons = list(self.left_out.items())[:5]
        cures = dict.fromkeys([cure for reason, _ in reasons for part, cure in _CURES.items() if part in reason])
        listing = ", ".join([f"{reason} ({number:,})" for reason, number in reasons])
        return "; ".join([f"of {self.conversations:,} conversations none is an example: {listing}", *cures])


class Unreleased(BadRows):
    """Rows that may not be exported publicly. `rows` are the places and the reasons of the first thousand of `total`
    rows."""

    def __init__(self, rows: list[tuple[Where, str]], total: int) -> None:
        first = f"; the first is {rows[0][0]}: {rows[0][1]}"
        super().__init__(f"{total} rows are not released, so nothing is exported with --public{first}")
        self.rows = rows


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
    """Write the rows of captures as a file for a trainer, and a manifest beside it. What the shape cannot represent is
    left out and counted with its reason, as are examples without a request or with an empty answer.

    - `paths`: captures, labelled or not.
    - `output`: the file, JSON lines; a name that ends in .parquet is written as Parquet (extra `parquet`).
    - `to`: the shape: "openai-sft", "trl-sft", "trl-preference", "trl-kto", "sharegpt", "verifier",
      "forge-capture" or "text".
    - `turns`: for "trl-sft": an example for each turn instead of the whole conversation.
    - `format`: for "text", and required there: the format of calls.
    - `contract`: for "text": the prompt is what a `Backend` with mode="text" sends for this choice, so that a model is
      trained on what it will be asked.
    - `public`: every row must be released; then everybody may read the files, otherwise only their owner.
    - `keep_system`: keep the prompts that a capture, or a text backend, added to the conversation.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`: is called with the bytes that were read since the last call, to show progress.
    - `force`: also overwrite a file of another kind.

    Raise `Unreleased` if a row may not be public, and `BadRows` for rows with faults; then nothing is written.
    """
    options, run = _check_options(to, turns, format, contract), RowRun(engine, jobs, resume, seen)
    sources = run.sources(paths)
    columns = (SHAPES[to].turn_columns if turns else SHAPES[to].columns) if _is_parquet_name(output) else None
    with (
        _open_outputs(output, sources, public=public, force=force) as (beside, out),
        RowSpool(output, "rows", resume=resume) as rows,
        RowSpool(output, "examples", resume=resume) as examples,
    ):
        counts = run.map(sources, _CollectWork(public=public), rows).counts
        if total := counts["unreleased"]:
            frames = islice((frame for frame in rows.frames() if frame.tag == _UNRELEASED), _MOST_UNRELEASED)
            places = [(Where(sources[frame.source].name, frame.line), frame.data.decode()) for frame in frames]
            raise Unreleased(places, total)
        with GroupedRows(rows, _ROW, most=_MOST_ROWS) as grouped:
            work = _ExampleWork(to, options, keep_system=keep_system, columns=columns)
            counts += run.map([grouped], work, examples).counts
        left_out = _sum_reasons(counts)
        if grouped.left_out:
            left_out["rows behind the first thousand of a conversation"] = grouped.left_out
        by_reason = dict(left_out.most_common())
        if columns is None:
            for piece in examples.pieces():
                out.write_bytes(piece)
        else:
            from rightcall.datasets.parquet import write_tables

            tables = (data for data, _ in examples.parts())
            write_tables(tables, out, shape=to, turns=turns, columns=columns, public=public)
        if beside is not None:
            beside.write_json(
                {
                    "schema_version": EXPORTED,
                    "private": not public,
                    "shape": to,
                    "format": None if options.format is None else options.format.name,
                    "turns": turns,
                    "contract": contract or None,
                    "inputs": [{"path": source.path, "sha256": _hash_source(source.path)} for source in sources],
                    "output": {"path": str(output), "sha256": out.sha256(), "examples": counts["examples"]},
                    "left_out": by_reason,
                    "created_unix_ms": unix_ms(),
                }
            )
    name = "" if beside is None else f"{output}{MANIFEST}"
    numbers = (counts["examples"], counts["conversations"], by_reason, counts["unlabelled"])
    return Exported(*numbers, str(output), name, public)


def _check_options(to: str, turns: bool, format: str | None, contract: str | None) -> ShapeOptions:
    """Return the options for the examples of a shape. Raises `CallerError` for an unknown shape or format, if a format
    is missing or not taken, and for `turns` or a `contract` that the shape does not take."""
    if to not in SHAPES:
        raise CallerError(f"no shape {to!r:.40}; there are {', '.join(SHAPES)}")
    if (format is not None) != SHAPES[to].takes_format:
        raise CallerError("plain text needs a format, such as --format hermes, and only plain text takes one")
    if turns and SHAPES[to].turn_columns is None:
        able = [name for name, shape in SHAPES.items() if shape.turn_columns is not None]
        raise CallerError(f"--turns is for {', '.join(able)}: the other shapes have a fixed unit; leave it out")
    if contract and not SHAPES[to].takes_format:
        raise CallerError(
            "--contract is for --to text: trainers that read the other shapes show the tools themselves; leave it out"
        )
    return ShapeOptions(turns, formats.find(format) if format is not None else None, contract or "")


def _is_parquet_name(output: str | Path) -> bool:
    """Return whether the output is written as Parquet: its name ends in ".parquet"."""
    return str(output).endswith(".parquet")


@contextmanager
def _open_outputs(
    output: str | Path, sources: Sequence[RowSource], *, public: bool, force: bool
) -> Iterator[tuple[WholeFile | None, WholeFile]]:
    """Yield the manifest file, None if the output is a stream, and the output file. Both appear when the block ends
    without an error; for a store, they are written to local files first and then sent. Raises `NotOurs` for an existing
    file of another kind unless `force`."""
    name = str(output)
    place = unfinished_path(name) if "://" in name else Path(name)
    if "://" in name:
        refuse_existing(name, force=force)
    shared: dict[str, Any] = {"sources": file_names(sources), "mode": PUBLIC if public else PRIVATE, "force": force}
    out = WholeFile(place, PARQUET if _is_parquet_name(output) else EXPORT, **shared)
    beside = None if is_stream(place) else WholeFile(manifest_path(place), manifest(EXPORTED), **shared)
    # The manifest is first, because an export is recognized by it if only one of the two files is written.
    files = [each for each in (beside, out) if each is not None]
    with Outputs(*files) as outputs:
        outputs.open()
        yield beside, out
    if "://" in name:
        move_to_store(manifest_path(place), f"{name}{MANIFEST}")
        move_to_store(place, name)


def _hash_source(path: str) -> str | None:
    """Return the hexadecimal SHA-256 of a file; None for standard input, which cannot be read again."""
    if path == STDIN:
        return None
    found = sha256()
    with open_source(path) as file:
        while data := file.read(1 << 16):
            found.update(data)
    return found.hexdigest()


# -- the work on the rows of a part ------------------------------------------------------------------------------------

_ROW, _UNRELEASED = 0, 1  # tags of frames: a row, and the reason why a row may not be public
_LEFT_OUT = "left out: "  # prefix of the counts of reasons


class _CollectWork:
    """Collect the rows of a part by their conversations. Count those without a label, and, if all must be public, those
    that are not released."""

    def __init__(self, *, public: bool) -> None:
        self.key, self._public = f"conversations {public}", public

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return a frame for each valid row of a part, with its conversation as the key; if all rows must be public, an
        unreleased row gives a frame with the reason instead. Unlabelled and unreleased rows are counted. Other rows are
        recorded as faults."""
        outcome, frames = RowOutcome(), list[bytes]()
        unlabelled = unreleased = 0
        for number, row in capture_rows(batch, outcome):
            unlabelled += "label" not in row
            line, why = batch.line(number), explain_not_public(row) if self._public else ""
            if why:
                unreleased += 1
                frames.append(pack_frame(_UNRELEASED, line, why.encode()))
            else:
                frames.append(pack_frame(_ROW, line, batch.data(number), digest(conversation_key(row))))
        outcome.data, outcome.counts = b"".join(frames), {"unlabelled": unlabelled, "unreleased": unreleased}
        return outcome


class _ExampleWork(FormatCarrier):
    """Make the examples of conversations, as JSON lines, or as a table with these `columns`. Count conversations,
    examples, and the reasons why there is none."""

    def __init__(self, to: str, options: ShapeOptions, *, keep_system: bool, columns: Json | None) -> None:
        self._to, self._options, self._keep_system, self._columns = to, options, keep_system, columns
        self.key = f"export {to} {digest(repr(options)).hex()} {keep_system} {columns is None}"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return the examples of the conversations of a part, encoded, with the counts of conversations, examples and
        reasons. Each row of the batch is a group, `{"rows": [...]}`."""
        outcome, examples, left_out = RowOutcome(), list[Json](), Counter[str]()
        for _, group in batch.rows():
            assert isinstance(group, dict)
            outcome.rows += 1
            conversation = CapturedConversation(group["rows"], keep_system=self._keep_system)
            try:
                for example in SHAPES[self._to].examples(conversation, self._options):
                    if isinstance(example, LeftOut):
                        count_name(left_out, str(example), _MOST_REASONS)
                    else:
                        examples.append(example)
            except LeftOut as reason:
                count_name(left_out, str(reason), _MOST_REASONS)
        if self._columns is None:
            outcome.data = b"".join(map(encode_row, examples))
        elif examples:
            from rightcall.datasets.parquet import pack_table

            outcome.data = pack_table(examples, self._columns)
        outcome.counts = {"conversations": outcome.rows, "examples": len(examples)}
        outcome.counts |= {f"{_LEFT_OUT}{reason}": number for reason, number in left_out.items()}
        return outcome


def _sum_reasons(counts: Counter[str]) -> Counter[str]:
    """Return how many examples were left out for each reason, from the counts of all parts; reasons beyond the first
    hundred are counted as "(others)"."""
    reasons: Counter[str] = Counter()
    for name, number in counts.items():
        if name.startswith(_LEFT_OUT):
            reason = name.removeprefix(_LEFT_OUT)
            reasons[reason if reason in reasons or len(reasons) < _MOST_REASONS else "(others)"] += number
    return reasons
