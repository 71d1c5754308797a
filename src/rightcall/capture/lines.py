"""JSON lines on disk: appended so that they survive, read back one at a time.

    with Journal("run/capture.jsonl") as journal:
        journal.append(row)                        # on disk when it returns
    for number, row in read_rows("run/capture.jsonl"):
        ...                                        # a dict, or a `Fault` where the line holds none

A file is created for its owner alone and never cut, but for a last line that was torn by a crash, when asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from rightcall.errors import CallerError
from rightcall.types import Json

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has only the second
LONGEST = 64_000_000  # bytes of one line: a reply of the largest size and its conversation


class FileFailed(CallerError):
    """A file could not be opened, written or synced. The message names the step, the path and the cause."""


class Fault(msgspec.Struct, frozen=True):
    """A line that holds no row. `torn`: it is the last one and was not written to its end."""

    message: str
    torn: bool = False


# -- one line ----------------------------------------------------------------------------------------------------------


def encode_row(row: Json) -> bytes:
    """Compact JSON and a newline. Integers of any size and lone surrogates stay exact; what is no number is null."""
    try:
        return msgspec.json.encode(row) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(_finite(row), separators=(",", ":")).encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def decode_row(line: bytes) -> Json | Fault:
    """The object of a line, or what is wrong with it."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = _slowly(line)  # lone surrogates, numbers beyond a float
    except RecursionError:
        return Fault("nested too deeply to be read")
    if isinstance(value, dict):
        return value
    return value if isinstance(value, Fault) else Fault(f"a row is a JSON object, not {_kind(value)}")


def _slowly(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return Fault(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        return Fault(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}")
    except (ValueError, RecursionError) as error:
        return Fault(f"not JSON that can be read: {str(error)[:100]}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# -- reading -----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a file: its number from 1, where it lies, its row, and its bytes."""

    number: int
    place: int
    size: int
    row: Json | Fault
    data: bytes


def read_rows(path: str | Path, *, seen: Callable[[int], None] | None = None) -> Iterator[tuple[int, Json | Fault]]:
    """Line numbers from 1 and their rows. Memory holds one line; blank lines are passed over.

    Raises `FileFailed` if the file cannot be read. A last line without its newline is a row if it is whole. `seen` is
    told how many bytes each line had.
    """
    return ((line.number, line.row) for line in read_lines(path, seen=seen))


def read_lines(path: str | Path, *, seen: Callable[[int], None] | None = None) -> Iterator[Line]:
    """As `read_rows`, with the place of each line."""
    place = 0
    for number, (line, size) in enumerate(_lines(Path(path)), 1):
        if seen is not None:
            seen(size)
        if line is None:
            yield Line(number, place, size, Fault(f"longer than {LONGEST:,} bytes"), b"")
        elif line.strip():
            row = decode_row(line)
            if isinstance(row, Fault) and not line.endswith(b"\n"):
                row = Fault("the last line was not written to its end", torn=True)
            yield Line(number, place, size, row, line)
        place += size


def read_at(file: BinaryIO, place: int, size: int) -> Json:
    """The row of a line whose place in the file is known from an earlier reading."""
    file.seek(place)
    row = decode_row(file.read(size))
    if isinstance(row, Fault):
        raise FileFailed(f"{getattr(file, 'name', 'the file')} changed while it was read; run the command again")
    return row


def _lines(path: Path) -> Iterator[tuple[bytes | None, int]]:
    """Each line with its size; None in place of one that is too long."""
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST + 1):
                size = len(line)
                if size <= LONGEST:
                    yield line, size
                    continue
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST)
                    size += len(line)
                yield None, size
    except OSError as error:
        raise FileFailed(f"{path}: cannot be read: {error.strerror or error}") from error


# -- appending ---------------------------------------------------------------------------------------------------------


class Journal:
    """A file that rows are appended to. What `append` was given is on disk when it returns.

    A torn last line is refused, or cut off with `torn="cut"`: `cut` says how many bytes that were.
    """

    def __init__(self, path: str | Path, *, torn: Literal["refuse", "cut"] = "refuse") -> None:
        self.path = Path(path)
        self.cut = 0
        ensure_parent_dir(self.path)
        self._file = _step("open", self.path, os.open, self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            self._mend(torn)
            _step("sync", self.path, os.fsync, self._file)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, row: Json) -> None:
        self.append_all((row,))

    def append_all(self, rows: Iterable[Json]) -> None:
        """Several rows for the price of one sync."""
        data = b"".join([encode_row(row) for row in rows])
        if data:
            self._write(data)
            _step("sync", self.path, _sync, self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        """All of it, or nothing: a disk that is full must not leave half a line behind."""
        start = os.fstat(self._file).st_size
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            if written and os.fstat(self._file).st_size == start + written:
                os.ftruncate(self._file, start)
            raise FileFailed(_failed("write", self.path, error)) from error

    def _mend(self, torn: str) -> None:
        size = os.fstat(self._file).st_size
        extra = _after_last_newline(self._file, size)
        if not extra:
            return
        if not isinstance(decode_row(os.pread(self._file, min(extra, LONGEST), size - extra)), Fault):
            self._write(b"\n")  # only the newline was lost
        elif torn == "cut":
            os.ftruncate(self._file, size - extra)
            self.cut = extra
        else:
            raise FileFailed(
                f"{self.path}: the last line was not written to its end; resume the run, which cuts it off"
            )


def append_jsonl(path: str | Path, row: Json) -> None:
    """One row, durably, to a file that is opened for it."""
    with Journal(path) as journal:
        journal.append(row)


def touch_jsonl(path: str | Path) -> None:
    """The file is there afterwards, and can be appended to. Never cuts it."""
    Journal(path).close()


def ensure_parent_dir(path: str | Path) -> None:
    parent = Path(path).parent
    if str(parent):
        _step("make the folder", parent, os.makedirs, parent, 0o777, True)


def _after_last_newline(file: int, size: int) -> int:
    """How many bytes stand behind the last newline."""
    end = size
    while end > 0:
        start = max(0, end - 65_536)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return size - (start + found + 1)
        end = start
    return size


def _step(name: str, path: Path, do: Any, *given: Any) -> Any:
    try:
        return do(*given)
    except OSError as error:
        raise FileFailed(_failed(name, path, error)) from error


def _failed(step: str, path: Path, error: OSError) -> str:
    return f"cannot {step} {path}: {error.strerror or error}"
