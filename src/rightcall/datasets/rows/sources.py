"""Sources of rows: which files there are, how they are cut into parts, and the rows of a part.

    sources = sources_of(["logs/*.jsonl", "more.csv.gz"])      # "-" is standard input
    for part in parts_of(sources):                             # in the parent, which decodes nothing
        for number, row in batch_of(part).rows(): ...          # in a worker; `row` is a dict or a `LineFault`

A source is always cut in the same places. A plain file of JSON lines is cut without being read: a part is a range of
bytes, and owns the lines that begin in it. Parquet is cut by row groups, and large groups by rows. Other sources
(compressed files, CSV, standard input) can only be read from their beginning; their lines travel in the part.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, Protocol, cast

import msgspec

from rightcall.datasets.rows.stores import STDIN, absolute_name, open_source, read_failure, store_of
from rightcall.errors import CallerError, FileFailed
from rightcall.extras import require_extra
from rightcall.storage.file_kinds import LONGEST
from rightcall.storage.jsonl import LineFault, decode_row, encode_row
from rightcall.types import Json

PART_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"

# -- files -------------------------------------------------------------------------------------------------------------

Kind = Literal["jsonl", "csv", "parquet"]
Compression = Literal["", "gz", "zst"]
KINDS: dict[str, Kind] = {"jsonl": "jsonl", "ndjson": "jsonl", "csv": "csv", "parquet": "parquet"}
COMPRESSIONS: dict[str, Compression] = {"gz": "gz", "zst": "zst"}
SUFFIXES = tuple(kind + compression for kind in KINDS for compression in ("", ".gz", ".zst"))


class RowSource(msgspec.Struct, frozen=True):
    """A file of rows: its name (`-` is standard input), the kind of its content, and its compression."""

    path: str
    kind: Kind = "jsonl"
    compression: Compression = ""

    @property
    def name(self) -> str:
        """The name in messages."""
        return "standard input" if self.path == STDIN else self.path

    @property
    def is_seekable(self) -> bool:
        """Whether a worker can begin to read at any position."""
        return self.kind == "jsonl" and not self.compression and self.path != STDIN


def sources_of(paths: Sequence[str], *, rows_as: str | None = None) -> list[RowSource]:
    """Return the files that these names and globs match, in this order. Raise `CallerError` for a glob that matches
    nothing and for an unknown kind, `MissingExtra` for a kind that needs a package.

    - `rows_as`: the kind of standard input, and of names without a known suffix: `jsonl`, `csv.gz` ...
    """
    found: list[RowSource] = []
    for path in paths:
        names = store_of(path).matching(path)
        if not names:
            raise CallerError(f"no file matches {path!r}; name an existing file")
        found += [_resolve_source(name, rows_as) for name in names]
    if any(each.kind == "parquet" or each.compression == "zst" for each in found):
        require_extra("parquet")
    return found


def _resolve_source(path: str, rows_as: str | None) -> RowSource:
    """Return the source of one file: its kind by the suffix of its name, else by `rows_as`. Raises `CallerError` if
    neither names a kind."""
    kind = _parse_suffixes(path.rpartition("/")[2]) if path != STDIN else None
    kind = kind or (_parse_suffixes(f".{rows_as}") if rows_as else None)
    if kind is not None:
        return RowSource(path, *kind)
    if rows_as:
        raise CallerError(f"{rows_as!r} is no kind of rows; it is one of {', '.join(SUFFIXES)}")
    name = "standard input" if path == STDIN else repr(path)
    raise CallerError(
        f"unknown kind of rows in {name}; name it with --rows-as (jsonl, csv, parquet, each also with .gz or .zst)"
    )


def _parse_suffixes(name: str) -> tuple[Kind, Compression] | None:
    """Return the kind and the compression that the suffixes of a file name mean, ignoring case; None for an unknown
    kind."""
    stem, _, suffix = name.lower().rpartition(".")
    compression = COMPRESSIONS.get(suffix, "")
    kind = KINDS.get(stem.rpartition(".")[2] if compression else suffix)
    return None if kind is None else (kind, compression)


# -- parts -------------------------------------------------------------------------------------------------------------


class ByteRange(msgspec.Struct, frozen=True, tag="range"):
    """The lines that begin in this range of a file. `source` is the index of the source; `weight` is how many bytes of
    the source the part covers."""

    source: int
    path: str
    start: int
    end: int
    weight: int


class RowSlice(msgspec.Struct, frozen=True, tag="slice"):
    """`count` rows of one row group of a Parquet file, from the row `first`."""

    source: int
    path: str
    group: int
    first: int
    count: int
    weight: int


class Lines(msgspec.Struct, frozen=True, tag="lines"):
    """Lines that were read from a stream. Rows of CSV have their line `numbers` in the file, and may have faults."""

    source: int
    data: bytes
    weight: int
    numbers: list[int] | None = None
    faults: dict[int, str] = {}


class LineGroups(msgspec.Struct, frozen=True, tag="joined"):
    """Groups of lines that belong together, each with the place (source and line) of its first line."""

    source: int
    groups: list[list[bytes]]
    places: list[tuple[int, int]]
    weight: int


Part = ByteRange | RowSlice | Lines | LineGroups


class PartSource(Protocol):
    """Rows that are not a file: their owner cuts them, always in the same places. `identity` names them: a resumed run
    must have the same."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def parts(self, at: int, size: int) -> Iterator[Part]: ...


def parts_of(sources: Sequence[RowSource | PartSource], *, size: int = PART_BYTES) -> Generator[Part, None, None]:
    """Yield the parts of all sources in order, of about `size` bytes each. They are cut as the caller takes them.
    Raises `FileFailed` for a source that cannot be read."""
    for at, source in enumerate(sources):
        if not isinstance(source, RowSource):
            yield from source.parts(at, size)
        elif source.is_seekable:
            path, end = absolute_name(source.path), store_of(source.path).size(source.path)
            for start in range(0, end, size):
                stop = min(start + size, end)
                yield ByteRange(at, path, start, stop, stop - start)
        elif source.kind == "parquet":
            yield from _cut_parquet(at, source, size)
        else:
            yield from _cut_stream(at, source, size)


_Cut = tuple[bytes, list[int] | None, dict[int, str]]


def _cut_stream(at: int, source: RowSource, size: int) -> Iterator[Part]:
    """Yield the parts of a source that can only be read from its beginning; each contains its lines. `at` is the index
    of the source. Raises `FileFailed`."""
    with _open_decompressed(source) as (file, position), _convert_read_errors(source):
        before = 0
        for data, numbers, faults in _cut_csv(file, size) if source.kind == "csv" else _cut_jsonl(file, size):
            after = position()
            yield Lines(at, data, after - before, numbers, faults)
            before = after


def _cut_jsonl(file: BinaryIO, size: int) -> Iterator[_Cut]:
    """Yield blocks of whole lines of about `size` bytes, without line numbers and faults. A line over the limit is cut
    just after the limit, so that decoding reports it."""
    pending: list[bytes] = []
    pending_size, is_skipping, is_first = 0, False, True
    while block := file.read(size):
        if is_first:
            block, is_first = block.removeprefix(_BOM), False
        if is_skipping:
            _, newline, block = block.partition(b"\n")
            is_skipping = not newline
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*pending, block[:cut])), None, {}
            pending, pending_size = [], 0
        pending.append(block[cut:])
        pending_size += len(block) - cut
        if pending_size > LONGEST:
            yield b"".join(pending)[: LONGEST + 1] + b"\n", None, {}
            pending, pending_size, is_skipping = [], 0, True
    if pending_size:
        yield b"".join(pending), None, {}


def _cut_csv(file: BinaryIO, size: int) -> Iterator[_Cut]:
    """Yield the records as blocks of JSON lines of about `size` bytes, with the number of the line on which each
    begins, and a fault for each with more fields than the header, by its index in the block. Empty records are
    skipped."""
    csv.field_size_limit(LONGEST)
    text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
    reader = csv.reader(text)
    header = next(reader, [])
    lines: list[bytes] = []
    numbers: list[int] = []
    faults: dict[int, str] = {}
    pending_size, number = 0, reader.line_num + 1
    for record in reader:
        if record:
            if len(record) > len(header):
                faults[len(lines)] = f"it has {len(record)} fields, and the first line names {len(header)}"
            lines.append(encode_row(dict(zip(header, record, strict=False))))
            numbers.append(number)
            pending_size += len(lines[-1])
        number = reader.line_num + 1
        if pending_size >= size:
            yield b"".join(lines), numbers, faults
            lines, numbers, faults, pending_size = [], [], {}, 0
    if lines:
        yield b"".join(lines), numbers, faults
    text.detach()


def _cut_parquet(at: int, source: RowSource, size: int) -> Iterator[Part]:
    """Yield slices of the row groups of a Parquet source, each of about `size` bytes. `at` is the index of the source.
    Raises `FileFailed`."""
    with _seekable_copy(source) as path, _convert_read_errors(source):
        from pyarrow import parquet  # type: ignore[import-untyped]

        with open_source(path) as file:
            metadata: Any = parquet.ParquetFile(file).metadata
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            shapes = [(group.num_rows, max(group.total_byte_size, 1)) for group in groups]
        for number, (rows, weight) in enumerate(shapes):
            step = max(1, size * rows // weight) if rows else 1
            for first in range(0, rows, step):
                count = min(step, rows - first)
                yield RowSlice(at, absolute_name(path), number, first, count, weight * count // rows)


@contextmanager
def _seekable_copy(source: RowSource) -> Iterator[str]:
    """Yield the name of a file that can be read from any position: the source itself, or, for a compressed one and for
    standard input, a temporary copy of its content, deleted when the block ends. Raises `FileFailed`."""
    if not source.compression and source.path != STDIN:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(prefix="rightcall-", suffix=".parquet") as copy:
        with _open_decompressed(source) as (file, _), _convert_read_errors(source):
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield copy.name


# -- compressed files --------------------------------------------------------------------------------------------------


@contextmanager
def _open_decompressed(source: RowSource) -> Iterator[tuple[BinaryIO, Callable[[], int]]]:
    """Yield the decompressed content of a source, and a function that returns how many bytes of its file were read. The
    file is closed when the block ends. Raises `FileFailed` if it cannot be opened."""
    file = open_source(source.path)
    reader = _CountingReader(file)
    stream: Any = reader
    if source.compression == "gz":
        stream = gzip.GzipFile(fileobj=cast(Any, reader))
    elif source.compression == "zst":
        import pyarrow

        stream = pyarrow.input_stream(reader, compression="zstd")
    try:
        yield cast(BinaryIO, stream), lambda: reader.position
    finally:
        if source.path != STDIN:
            file.close()


class _CountingReader:
    """A file that is read once from its beginning, and counts the bytes that were read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.position = file, 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, all for -1, and add them to `position`."""
        data = self._file.read(size)
        self.position += len(data)
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@contextmanager
def _convert_read_errors(source: RowSource) -> Iterator[None]:
    """Turn errors of reading in the block into `FileFailed` with the name of the source and the kind that it is read
    as."""
    try:
        yield
    except (EOFError, OSError, ValueError, zlib.error) as error:
        message = " ".join(str(error).split())[:200]
        compression = {"gz": "gzip", "zst": "Zstandard", "": ""}[source.compression]
        what = f"{compression} data of {source.kind}" if compression else source.kind
        raise FileFailed(f"cannot read {source.name} as {what}: {message or type(error).__name__}") from error


# -- the rows of a part ------------------------------------------------------------------------------------------------


class RowBatch:
    """The rows of a part. Blank lines are skipped but counted: `span` is the number of lines.

    A line's number counts from 0 in the part; `numbers` has the numbers in the file where the part knows them.
    `source` is the index of the source. A row of `LineGroups` is a group: `{"rows": [...]}` with the `place` of its
    first row.
    """

    def __init__(
        self,
        lines: Sequence[bytes | Json],
        *,
        source: int = 0,
        faults: dict[int, str] | None = None,
        numbers: list[int] | None = None,
    ) -> None:
        self._lines, self._faults, self.numbers = lines, faults or {}, numbers
        self.source, self.span = source, len(lines)

    def line(self, number: int) -> int:
        """Return the line number of a row: in the file if the part knows it, otherwise in the part, from 0."""
        return number if self.numbers is None else self.numbers[number]

    def data(self, number: int) -> bytes:
        """Return a row as a line of JSON without its newline."""
        line = self._lines[number]
        return encode_row(line)[:-1] if isinstance(line, dict) else line

    def rows(self) -> Iterator[tuple[int, Json | LineFault]]:
        """Yield the number in the part and the decoded row of each line that is not blank, or a `LineFault` for one
        that cannot be decoded or is longer than `LONGEST`."""
        for number, line in enumerate(self._lines):
            if number in self._faults:
                yield number, LineFault(self._faults[number])
            elif isinstance(line, dict):
                yield number, line
            elif len(line) > LONGEST:
                yield number, LineFault(f"longer than {LONGEST:,} bytes")
            elif line and not line.isspace():
                yield number, decode_row(line)

    def lines(self) -> Iterator[bytes]:
        """Yield each row as a line of JSON without its newline; blank lines are skipped, and lines are not decoded."""
        for line in self._lines:
            if isinstance(line, dict):
                yield encode_row(line)[:-1]
            elif line and not line.isspace():
                yield line


def batch_of(part: Part) -> RowBatch:
    """Return the rows of a part, read from its file if it is a range or a slice. Raises `FileFailed`."""
    if isinstance(part, Lines):
        return RowBatch(_split_lines(part.data), source=part.source, faults=part.faults, numbers=part.numbers)
    if isinstance(part, LineGroups):
        groups = [[decode_row(line) for line in group] for group in part.groups]
        places = zip(groups, part.places, strict=True)
        return RowBatch([{"rows": rows, "place": place} for rows, place in places], source=part.source)
    try:
        if isinstance(part, RowSlice):
            return RowBatch(_GROUP_READER.rows(part), source=part.source)
        with open_source(part.path) as file:
            data = _read_range(file, part)
    except (OSError, ValueError) as error:
        raise read_failure(part.path, error) from error
    return RowBatch(_split_lines(data.removeprefix(_BOM) if part.start == 0 else data), source=part.source)


def _split_lines(data: bytes) -> list[bytes]:
    """Return the lines of data without their newlines; a last newline does not begin a line."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _read_range(file: BinaryIO, part: ByteRange) -> bytes:
    """Return the lines that begin in the range, b"" if none does. The range may begin within a line of the part before
    it, and its last line may end behind it. Raises `FileFailed` if the file became shorter."""
    start = part.start and _find_next_line(file, part.start - 1, part.end)
    if start >= part.end:
        return b""
    file.seek(start)
    data = file.read(part.end - start)
    if len(data) < part.end - start:
        raise FileFailed(f"{part.path} became shorter while it was read; run the command again")
    if data.endswith(b"\n"):
        return data
    last_line_size = len(data) - (data.rfind(b"\n") + 1)  # of a line over the limit, read no more than shows this
    return data + file.readline(max(LONGEST + 2 - last_line_size, 1))


def _find_next_line(file: BinaryIO, place: int, end: int) -> int:
    """Return the offset of the first line that begins after the offset `place`; `end` if none begins before that."""
    file.seek(place)
    while place < end:
        block = file.read(min(1 << 16, end - place))
        found = block.find(b"\n")
        if found >= 0:
            return place + found + 1
        if not block:
            break
        place += len(block)
    return end


class _RowGroupReader:
    """Reads slices of row groups, and continues where the last slice of the same group ended."""

    def __init__(self) -> None:
        self._group: tuple[str, int] | None = None
        self._position, self._batches = 0, iter(())  # type: tuple[int, Iterator[Any]]
        self._remainder: Any = None
        self._file: BinaryIO | None = None

    def rows(self, part: RowSlice) -> list[Json]:
        """Return the rows of a slice. A slice after the last one of the same group continues there; any other opens the
        file again. Raises `FileFailed` if the group has fewer rows."""
        if self._group != (part.path, part.group) or self._position > part.first:
            self._open(part)
        found: list[Json] = []
        end = part.first + part.count
        while self._position < end:
            piece = self._remainder if self._remainder is not None else next(self._batches, None)
            if piece is None:
                raise FileFailed(f"{part.path} changed while it was read; run the command again")
            skipped = min(max(part.first - self._position, 0), piece.num_rows)
            taken = min(piece.num_rows - skipped, end - self._position - skipped)
            found += piece.slice(skipped, taken).to_pylist()
            used = skipped + taken
            self._position += used
            self._remainder = piece.slice(used) if used < piece.num_rows else None
        return found

    def _open(self, part: RowSlice) -> None:
        """Close the last file, open that of a slice, and start at the beginning of its row group. Raises
        `FileFailed`."""
        from pyarrow import parquet

        if self._file is not None:
            self._file.close()
        self._file = open_source(part.path)
        opened: Any = parquet.ParquetFile(self._file)
        self._batches = opened.iter_batches(batch_size=min(part.count, 1 << 14), row_groups=[part.group])
        self._group, self._position, self._remainder = (part.path, part.group), 0, None


_GROUP_READER = _RowGroupReader()  # one for each process
