"""A source cut into parts that can be worked on apart. The same source is always cut in the same places.

A plain file of JSON lines is cut without being read: a part is a range of bytes, and the lines that begin in it are
its own. Parquet is cut by row groups, and large groups by rows. What can only be read from its beginning (packed files,
CSV, standard input) is read here, and its lines travel in the part; nothing of them is decoded but the quotes of CSV.
"""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import msgspec

from rightcall.datasets.rows.row_sources import RowSource
from rightcall.datasets.rows.stores import STDIN, open_source, store_of, whole_name
from rightcall.datasets.rows.unpacking import unpacked, unpacking
from rightcall.storage.file_kinds import LONGEST
from rightcall.storage.jsonl import encode_row

PART = 1 << 20  # bytes
_BOM = b"\xef\xbb\xbf"


class ByteRange(msgspec.Struct, frozen=True, tag="range"):
    """The lines that begin at these places of a file. `weight` is how many bytes of the source a part is."""

    source: int
    path: str
    start: int
    end: int
    weight: int


class RowSlice(msgspec.Struct, frozen=True, tag="slice"):
    """Rows of one row group of a Parquet file."""

    source: int
    path: str
    group: int
    first: int
    count: int
    weight: int


class Lines(msgspec.Struct, frozen=True, tag="lines"):
    """Lines that came out of a stream. For CSV each has its line number in the file, and may have a fault."""

    source: int
    data: bytes
    weight: int
    numbers: list[int] | None = None
    faults: dict[int, str] = {}


class JoinedLines(msgspec.Struct, frozen=True, tag="joined"):
    """Groups of lines that belong together, each with the place (source and line) of its first."""

    source: int
    groups: list[list[bytes]]
    places: list[tuple[int, int]]
    weight: int


Part = ByteRange | RowSlice | Lines | JoinedLines


class PartSource(Protocol):
    """Rows that are no file as they are: whoever has them cuts them, the same always in the same places. `told` says
    what they are, for a run that is gone on with."""

    @property
    def name(self) -> str: ...

    @property
    def told(self) -> str: ...

    def parts(self, at: int, size: int) -> Iterator[Part]: ...


def parts_of(sources: Sequence[RowSource | PartSource], *, size: int = PART) -> Generator[Part, None, None]:
    """All parts in order, of about `size` bytes each, cut as they are asked for."""
    for at, source in enumerate(sources):
        if not isinstance(source, RowSource):
            yield from source.parts(at, size)
        elif source.can_be_cut:
            yield from _ranges(at, source, size)
        elif source.kind == "parquet":
            yield from _slices(at, source, size)
        else:
            yield from _streamed(at, source, size)


def _ranges(at: int, source: RowSource, size: int) -> Iterator[Part]:
    whole = store_of(source.path).size(source.path)
    for start in range(0, whole, size):
        end = min(start + size, whole)
        yield ByteRange(at, whole_name(source.path), start, end, end - start)


# -- streams -----------------------------------------------------------------------------------------------------------


def _streamed(at: int, source: RowSource, size: int) -> Iterator[Part]:
    with unpacked(source) as (file, place), unpacking(source):
        before = 0
        for data, numbers, faults in _csv(file, size) if source.kind == "csv" else _jsonl(file, size):
            after = place()
            yield Lines(at, data, after - before, numbers, faults)
            before = after


_Cut = tuple[bytes, list[int] | None, dict[int, str]]


def _jsonl(file: BinaryIO, size: int) -> Iterator[_Cut]:
    """Whole lines. One that is longer than any may be is cut off, so that whoever decodes it says so."""
    waiting: list[bytes] = []
    held, dropping, first = 0, False, True
    while block := file.read(size):
        if first:
            block, first = block.removeprefix(_BOM), False
        if dropping:
            _, newline, block = block.partition(b"\n")
            dropping = not newline
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*waiting, block[:cut])), None, {}
            waiting, held = [], 0
        waiting.append(block[cut:])
        held += len(block) - cut
        if held > LONGEST:
            yield b"".join(waiting)[: LONGEST + 1] + b"\n", None, {}
            waiting, held, dropping = [], 0, True
    if held:
        yield b"".join(waiting), None, {}


def _csv(file: BinaryIO, size: int) -> Iterator[_Cut]:
    """Records as JSON lines, each with the number of the line that it begins on."""
    csv.field_size_limit(LONGEST)
    text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
    reader = csv.reader(text)
    header = next(reader, [])
    lines: list[bytes] = []
    numbers: list[int] = []
    faults: dict[int, str] = {}
    held, number = 0, reader.line_num + 1
    for record in reader:
        if record:
            if len(record) > len(header):
                faults[len(lines)] = f"it has {len(record)} fields, and the first line names {len(header)}"
            lines.append(encode_row(dict(zip(header, record, strict=False))))
            numbers.append(number)
            held += len(lines[-1])
        number = reader.line_num + 1
        if held >= size:
            yield b"".join(lines), numbers, faults
            lines, numbers, faults, held = [], [], {}, 0
    if lines:
        yield b"".join(lines), numbers, faults
    text.detach()


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _slices(at: int, source: RowSource, size: int) -> Iterator[Part]:
    with _seekable(source) as path, unpacking(source):
        from pyarrow import parquet  # type: ignore[import-untyped]

        with open_source(path) as file:
            found: Any = parquet.ParquetFile(file).metadata
            groups = [found.row_group(number) for number in range(found.num_row_groups)]
            shapes = [(group.num_rows, max(group.total_byte_size, 1)) for group in groups]
        for number, (rows, weight) in enumerate(shapes):
            most = max(1, size * rows // weight) if rows else 1
            for first in range(0, rows, most):
                count = min(most, rows - first)
                yield RowSlice(at, whole_name(path), number, first, count, weight * count // rows)


@contextmanager
def _seekable(source: RowSource) -> Iterator[str]:
    """A file that can be read from any place: its own, or an unpacked copy that is gone afterwards."""
    if not source.packing and source.path != STDIN:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(prefix="rightcall-", suffix=".parquet") as copy:
        with unpacked(source) as (file, _), unpacking(source):
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield copy.name
