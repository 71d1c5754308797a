"""Files of rows: what the dataset commands read and write, and how they work on rows with an engine.

A command may replace files of the kind that it writes, and no others; the kind is recognized by the first line.
What does not fit into memory is kept in a `Scratch` database.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import msgspec

from rightcall.capture.capture_journal import journal_path
from rightcall.capture.captured_rows import FORGE, SCHEMA
from rightcall.datasets.rows.engines import make_engine
from rightcall.datasets.rows.mapping import RowOutcome, RowWork, Totals, map_rows, refuse_stdin
from rightcall.datasets.rows.sinks import RowSpool, Sink, discarding_on_error, make_scratch_folder, sink_to
from rightcall.datasets.rows.sources import LineGroups, Part, PartSource, RowBatch, RowSource, sources_of
from rightcall.datasets.rows.stores import STDIN
from rightcall.datasets.schemas import CONFLICT, PROMPT, REJECT, SCHEMAS, TRAINING, first_fault
from rightcall.errors import CallerError, FileFailed
from rightcall.storage.file_kinds import FileKind, FoundFile, beginning, json_lines
from rightcall.storage.jsonl import LineFault, read_at, read_lines
from rightcall.types import Json

Seen = Callable[[int], None]


class Where(NamedTuple):
    """A line of one of several files: its `path`, and its `number` from 1. As text it is `path:number`."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


class BadRows(CallerError):
    """Invalid rows; nothing is written then. The message names the first and the cure."""


def read_row_files(
    paths: Iterable[str | Path], *, seen: Seen | None = None
) -> Iterator[tuple[Where, Json | LineFault]]:
    """Yield the place and the row of each line of several files, or a `LineFault` in place of a row. `seen` is
    called with the bytes of each line."""
    for path in paths:
        for line in read_lines(path, seen=seen):
            yield Where(str(path), line.number), line.row


class RowReader:
    """Reads single rows of several files by their position."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = [Path(path) for path in paths]
        self._files: dict[int, BinaryIO] = {}

    def row(self, file: int, place: int, size: int) -> Json:
        """Return the row of a line, given the index of the file and the line's byte offset and size. Raises
        `FileFailed` if there is no row there."""
        if file not in self._files:
            self._files[file] = self._paths[file].open("rb")
        return read_at(self._files[file], place, size)

    def close(self) -> None:
        """Close the files that were read."""
        for file in self._files.values():
            file.close()


MOST_NAMES = 1_000  # a hostile file must not fill the memory with names


def count_name(counter: Counter[str], value: Any, most: int = MOST_NAMES) -> None:
    """Add 1 to the count of a name, cut to 200 characters. A value that is no text, or blank, counts as "unknown"; a
    new name beyond the first `most` as "(others)"."""
    name = value if isinstance(value, str) and value.strip() else "unknown"
    name = name[:200]
    counter[name if name in counter or len(counter) < most else "(others)"] += 1


# -- temporary data ----------------------------------------------------------------------------------------------------


def digest(text: str | bytes) -> bytes:
    """Return a digest of sixteen bytes, which identifies a text or bytes of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, digest_size=16).digest()


class Scratch:
    """A temporary SQLite database with these tables. Its file has no name once it is open, so that nothing of it
    remains however the process ends. Errors of SQLite leave the block as `FileFailed`."""

    def __init__(self, *tables: str) -> None:
        folder = make_scratch_folder()
        self.db = sqlite3.connect(os.path.join(folder, "scratch.db"), isolation_level=None)
        settings = ("journal_mode=OFF", "synchronous=OFF", "temp_store=FILE", "cache_size=-2000")
        try:
            for statement in (*[f"PRAGMA {setting}" for setting in settings], *tables):
                self.db.execute(statement)
        except sqlite3.Error as error:
            self.__exit__(type(error), error, None)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the database. An error of SQLite is raised as `FileFailed` with the folder and the cure; any other
        error passes."""
        self.db.close()
        if isinstance(error, sqlite3.Error):
            place = tempfile.gettempdir()
            raise FileFailed(f"cannot write to the scratch folder {place}: {error}; set TMPDIR") from error

    def insert(self, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement once for each tuple of values, in one transaction. Raises `sqlite3.Error`, which leaves the
        block as `FileFailed`."""
        self.db.execute("BEGIN")
        self.db.executemany(statement, values)
        self.db.execute("COMMIT")


class RowNumbers:
    """A set of numbers from 0, with one bit for each."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self.count = 0

    def add(self, number: int) -> None:
        """Add a number; `count` grows if it is new."""
        byte, bit = number >> 3, 1 << (number & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(max(byte + 1 - len(self._bits), len(self._bits) // 8)))
        if not self._bits[byte] & bit:
            self._bits[byte] |= bit
            self.count += 1

    def __contains__(self, number: int) -> bool:
        """Return whether a number was added."""
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & 1 << (number & 7))


# -- kinds of files ----------------------------------------------------------------------------------------------------

MANIFEST = ".manifest.json"  # suffix of the manifest beside an export
ASSEMBLED, SPLIT, EXPORTED = (f"rightcall-{name}-manifest/v1" for name in ("assembled", "split", "export"))


def _make_file_kind(command: str, *versions: str, also: Callable[[Json], bool] | None = None) -> FileKind:
    """Return the kind of files of rows that a command writes, recognized by the `schema_version` of the first row, one
    of `versions`, and by `also`. A capture whose journal exists is never of that kind: the output of a model cannot be
    produced again."""
    found = json_lines(f"file that `dataset {command}` wrote", "schema_version", *versions, also=also)
    return FileKind(found.name, lambda file: found.knows(file) and not journal_path(file.path).exists())


def _make_mark_predicate(mark: str) -> Callable[[Json], bool]:
    """Return a predicate that returns whether the `metadata` of a row has the key `mark`."""

    def has_mark(row: Json) -> bool:
        marks: Any = row.get("metadata")
        return isinstance(marks, dict) and mark in marks

    return has_mark


PROMPTS = _make_file_kind("prompts", PROMPT)
LABELLED = _make_file_kind("label", SCHEMA, FORGE)
DEDUPED = _make_file_kind("dedupe", *SCHEMAS)
IMPORTED = _make_file_kind("import", SCHEMA, also=lambda row: row.get("source_bucket") == "imported_log")
MUTATED = _make_file_kind("mutate", SCHEMA, also=_make_mark_predicate("mutation"))
REDACTED = _make_file_kind("redact", *SCHEMAS, also=_make_mark_predicate("redaction"))
RELEASED = _make_file_kind("release", *SCHEMAS, also=_make_mark_predicate("release"))
SIDE = _make_file_kind("split", *SCHEMAS)
MERGED = _make_file_kind("assemble", TRAINING)
CONFLICTS = _make_file_kind("assemble", CONFLICT)
QUARANTINE = _make_file_kind("assemble", REJECT)
NOTEBOOK = json_lines(MERGED.name, "kind", "tool_call", also=lambda row: "rank_score" in row)


def manifest(version: str) -> FileKind:
    """Return the kind of a manifest with this schema version, as `WholeFile.write_json` writes it: the version comes
    first."""
    return beginning("manifest of `rightcall dataset`", json.dumps({"schema_version": version}, indent=2)[:-2].encode())


def manifest_path(path: Path) -> Path:
    """Return the path of the manifest beside an export."""
    return path.with_name(path.name + MANIFEST)


def _has_manifest(found: FoundFile) -> bool:
    """Return whether a file of JSON lines is an export, by the manifest beside it: the lines themselves do not show
    that."""
    try:
        start = manifest_path(found.path).read_bytes()[:200]
    except OSError:
        return False
    return found.row is not None and f'"{EXPORTED}"'.encode() in start


_LONGEST_FOOTER = 16_000_000


def _is_parquet_export(found: FoundFile) -> bool:
    """Return whether a Parquet file is an export: its footer, whose size is in the last bytes, has the metadata of
    rightcall."""
    end = found.at(max(0, found.size - 8), 8)
    size = int.from_bytes(end[:4], "little")
    if found.at(0, 4) != b"PAR1" or end[4:] != b"PAR1" or not 0 < size < min(found.size, _LONGEST_FOOTER):
        return False
    return b'{"private": ' in found.at(found.size - 8 - size, size).partition(b"rightcall")[2][:40]


EXPORT = FileKind("export of `rightcall dataset`", _has_manifest)
PARQUET = FileKind("Parquet export of `rightcall dataset`", _is_parquet_export)


# -- runs --------------------------------------------------------------------------------------------------------------

PART = 1 << 20  # bytes of a file that are worked on at a time


class RowRun(msgspec.Struct, frozen=True):
    """How a command works on rows: the `engine`, the number of workers (`jobs`), whether an interrupted run is resumed
    (`resume`), and the callback that gets the bytes that were read (`seen`)."""

    engine: str = "local"
    jobs: int | None = None
    resume: bool = False
    seen: Seen | None = None

    def sources(self, paths: Iterable[str | Path]) -> list[RowSource]:
        """Return the files that these names and globs match; without a known suffix they are JSON lines. Raises
        `CallerError` if a glob matches nothing, and for standard input if the run is to be resumed."""
        found = sources_of([str(path) for path in paths], rows_as="jsonl")
        if self.resume:
            refuse_stdin(found)
        return found

    def map(self, sources: Sequence[RowSource | PartSource], work: RowWork, sink: Sink) -> Totals:
        """Run the work on all rows, write its output to the sink, and return the totals. Raises `BadRows` at the first
        bad row, and what the work and the sink raise."""
        read = 0

        def watch(totals: Totals) -> None:
            """Raise `BadRows` if a row was bad, and report the bytes that were read since the last call."""
            nonlocal read
            if totals.faults:
                raise BadRows(str(totals.faults[0]))
            if self.seen is not None:
                self.seen(totals.bytes - read)
                read = totals.bytes

        engine = make_engine(self.engine, self.jobs)
        return map_rows(sources, work, sink, engine, part_size=PART, watch=watch)


def capture_rows(batch: RowBatch, outcome: RowOutcome) -> Iterator[tuple[int, Json]]:
    """Yield the number and the row of each valid row of a capture in a part. All rows are counted in `outcome`, and
    the others are recorded there as faults."""
    for number, row in batch.rows():
        outcome.rows += 1
        fault = first_fault(row, SCHEMA, FORGE)
        if fault or isinstance(row, LineFault):
            outcome.add_fault(number, fault)
        else:
            yield number, row


@contextmanager
def output_sink(
    output: str | Path, kind: FileKind, sources: Sequence[RowSource], *, resume: bool = False, force: bool = False
) -> Iterator[Sink]:
    """Yield the sink of an output: a file, here or in a store, or a stream. Unfinished output is kept after Ctrl-C and
    lost workers, so that the run can be resumed, and discarded after any other error."""
    names = file_names(sources)
    with sink_to(str(output), kind, sources=names, resume=resume, force=force) as sink, discarding_on_error(sink):
        yield sink


def file_names(sources: Sequence[RowSource]) -> list[str]:
    """Return the paths of the sources without standard input."""
    return [source.path for source in sources if source.path != STDIN]


# -- groups of rows ----------------------------------------------------------------------------------------------------

_LINES = "CREATE TABLE lines (key BLOB, source INT, line INT, offset INT, size INT)"
_GROUPED = """
    SELECT key, source, line, offset, size FROM (
        SELECT rowid AS number, *, min(rowid) OVER (PARTITION BY key) AS first FROM lines
    ) ORDER BY first, number
"""


class GroupedRows:
    """The frames of a spool with this tag, grouped by their keys: a source of rows for `map_rows`.

        with GroupedRows(spool, tag, most=1_000) as grouped:
            run.map([grouped], work, sink)          # each row of the work is a group: {"rows": [...]}

    The rows of one conversation may be anywhere in the files. Groups come in the order of their first rows, rows in
    their own order. `most` is how many rows of a group are used; later ones are counted in `left_out`. The positions
    of rows are on disk, the rows in the spool; memory holds the groups that are worked on.
    """

    name = "rows that belong together"

    def __init__(self, spool: RowSpool, tag: int, *, most: int) -> None:
        self._spool, self._tag, self._most = spool, tag, most
        self.identity = f"{spool.run} {tag} {most}"
        self.left_out = 0

    def __enter__(self) -> GroupedRows:
        """Read the frames of the spool with this tag and store their keys and positions in a scratch database. Raises
        `FileFailed`."""
        self._scratch = Scratch(_LINES)
        frames = (frame for frame in self._spool.frames() if frame.tag == self._tag)
        places = ((frame.key, frame.source, frame.line, frame.offset, len(frame.data)) for frame in frames)
        try:
            self._scratch.insert("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", places)
        except BaseException as error:
            self._scratch.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the scratch database. Raises `FileFailed` in place of an error of SQLite."""
        self._scratch.__exit__(kind, error, at)

    def parts(self, at: int, size: int) -> Iterator[Part]:
        """Yield the groups in parts of about `size` bytes; a group is never cut, so a part may be larger. Rows of a
        group beyond `most` are counted in `left_out`. `at` is the index of this source."""
        groups: list[list[bytes]] = []
        places: list[tuple[int, int]] = []
        weight = 0
        for _, lines in groupby(self._scratch.db.execute(_GROUPED), key=lambda line: line[0]):
            place, group = self._read_group(lines)
            groups.append(group)
            places.append(place)
            weight += sum(map(len, group))
            if weight >= size:
                yield LineGroups(at, groups, places, weight)
                groups, places, weight = [], [], 0
        if groups:
            yield LineGroups(at, groups, places, weight)

    def _read_group(self, lines: Iterator[tuple[Any, ...]]) -> tuple[tuple[int, int], list[bytes]]:
        """Return the source and line of the first row of a group, and the data of its first `most` rows; later rows are
        counted in `left_out`. `lines` are records of the scratch database."""
        group: list[bytes] = []
        first = (0, 0)
        for _, source, line, offset, size in lines:
            if len(group) < self._most:
                first = first if group else (source, line)
                group.append(self._spool.read(offset, size))
            else:
                self.left_out += 1
        return first, group
