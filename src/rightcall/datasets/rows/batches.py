"""The rows of one part, decoded where they are worked on.

for line, row in batch_of(part).rows(): ...        # a dict, or a `LineFault` that says why it is none
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from rightcall.datasets.rows.parts import ByteRange, JoinedLines, Lines, Part, RowSlice
from rightcall.datasets.rows.stores import open_source, unreadable
from rightcall.errors import FileFailed
from rightcall.storage.file_kinds import LONGEST
from rightcall.storage.jsonl import LineFault, decode_row, encode_row
from rightcall.types import Json

_BOM = b"\xef\xbb\xbf"


class RowBatch:
    """The rows of a part. Blank lines are passed over, and counted: `span` is how many lines there are.

    A line's number counts from 0 in the part; where the part knows the numbers of its file, `numbers` has them.
    `source` says which of the sources it is of. Of rows that were gathered each is a group, `{"rows": [...]}`, with the
    `place` of its first.
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
        """The line of a row as it travels: in the part, or in the file where the part knows that."""
        return number if self.numbers is None else self.numbers[number]

    def data(self, number: int) -> bytes:
        """A row as a line of JSON without its newline."""
        line = self._lines[number]
        return encode_row(line)[:-1] if isinstance(line, dict) else line

    def rows(self) -> Iterator[tuple[int, Json | LineFault]]:
        """Each row with the number of its line."""
        for number, line in enumerate(self._lines):
            if number in self._faults:
                yield number, LineFault(self._faults[number])
            elif isinstance(line, dict):
                yield number, line
            elif len(line) > LONGEST:
                yield number, LineFault(f"longer than {LONGEST:,} bytes")
            elif line and not line.isspace():
                yield number, decode_row(line)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each row as a line of JSON without its newline, as it was written where it was JSON; not decoded."""
        for number, line in enumerate(self._lines):
            if isinstance(line, dict):
                yield number, encode_row(line)[:-1]
            elif line and not line.isspace():
                yield number, line


def batch_of(part: Part) -> RowBatch:
    """Reads a part. Raises `FileFailed` if that cannot be done."""
    if isinstance(part, Lines):
        return RowBatch(_split(part.data), source=part.source, faults=part.faults, numbers=part.numbers)
    if isinstance(part, JoinedLines):
        return RowBatch([_group(*each) for each in zip(part.groups, part.places, strict=True)], source=part.source)
    try:
        if isinstance(part, RowSlice):
            return RowBatch(_GROUPS.rows(part), source=part.source)
        with open_source(part.path) as file:
            data = _range(file, part)
    except (OSError, ValueError) as error:
        raise unreadable(part.path, error) from error
    return RowBatch(_split(data.removeprefix(_BOM) if part.start == 0 else data), source=part.source)


def _group(lines: list[bytes], place: tuple[int, int]) -> Json:
    """Lines that were rows when they were gathered."""
    return {"rows": [decode_row(line) for line in lines], "place": place}


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _range(file: BinaryIO, part: ByteRange) -> bytes:
    """The lines that begin in the range: the first may have begun before it, the last may end behind it."""
    start = part.start and _next_line(file, part.start - 1, part.end)
    if start >= part.end:
        return b""
    file.seek(start)
    data = file.read(part.end - start)
    if len(data) < part.end - start:
        raise FileFailed(f"{part.path} became shorter while it was read; run the command again")
    return data if data.endswith(b"\n") else data + _rest(file, data)


def _next_line(file: BinaryIO, place: int, end: int) -> int:
    """Where the first line behind this place begins; `end` if none does before that."""
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


def _rest(file: BinaryIO, data: bytes) -> bytes:
    """What is missing of the last line; of one that is too long, just so much that this shows."""
    held = len(data) - (data.rfind(b"\n") + 1)
    return file.readline(max(LONGEST + 2 - held, 1))


class _RowGroups:
    """The row groups that this process reads, each gone on with where the last slice ended."""

    def __init__(self) -> None:
        self._at: tuple[str, int] | None = None
        self._place, self._batches = 0, iter(())  # type: tuple[int, Iterator[Any]]
        self._rest: Any = None
        self._file: BinaryIO | None = None

    def rows(self, part: RowSlice) -> list[Json]:
        if self._at != (part.path, part.group) or self._place > part.first:
            self._open(part)
        found: list[Json] = []
        end = part.first + part.count
        while self._place < end:
            piece = self._rest if self._rest is not None else next(self._batches, None)
            if piece is None:
                raise FileFailed(f"{part.path} changed while it was read; run the command again")
            skipped = min(max(part.first - self._place, 0), piece.num_rows)
            taken = min(piece.num_rows - skipped, end - self._place - skipped)
            found += piece.slice(skipped, taken).to_pylist()
            used = skipped + taken
            self._place += used
            self._rest = piece.slice(used) if used < piece.num_rows else None
        return found

    def _open(self, part: RowSlice) -> None:
        from pyarrow import parquet  # type: ignore[import-untyped]

        if self._file is not None:
            self._file.close()
        self._file = open_source(part.path)
        opened: Any = parquet.ParquetFile(self._file)
        self._batches = opened.iter_batches(batch_size=min(part.count, 1 << 14), row_groups=[part.group])
        self._at, self._place, self._rest = (part.path, part.group), 0, None


_GROUPS = _RowGroups()
