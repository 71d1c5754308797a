"""JSON lines: encode and decode a row, and read a file line by line.

for number, row in read_rows("run/capture.jsonl"):
    ...                                        # a dict, or a `LineFault` if the line has no valid row
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from rightcall.errors import FileFailed
from rightcall.storage.file_kinds import LONGEST, failed
from rightcall.types import Json


class LineFault(msgspec.Struct, frozen=True):
    """A line without a valid row. `torn`: it is the last line and incomplete."""

    message: str
    torn: bool = False


# -- one line ----------------------------------------------------------------------------------------------------------


def encode_row(row: Json) -> bytes:
    """Encode a row as compact JSON and a newline. Integers of any size and lone surrogates are exact; NaN and infinity
    become null."""
    try:
        return msgspec.json.encode(row) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(finite(row), separators=(",", ":")).encode() + b"\n"


def finite(value: Any) -> Any:
    """Return a copy of JSON data with null in place of each NaN and infinity; tuples become lists."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def decode_row(line: bytes) -> Json | LineFault:
    """Return the JSON object in a line, or a `LineFault` with the reason why there is none. Never raises."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = _decode_leniently(line)
    except RecursionError:
        return LineFault("nested too deeply to be read")
    if isinstance(value, dict):
        return value
    return value if isinstance(value, LineFault) else LineFault(f"a row is a JSON object, not {_describe_type(value)}")


def _decode_leniently(line: bytes) -> Any:
    """Decode a line that msgspec rejects with the JSON module, which accepts lone surrogates and large numbers.
    Return the value, or a `LineFault` with the reason."""
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_reject_constant)
    except UnicodeDecodeError as error:
        return LineFault(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        return LineFault(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}")
    except (ValueError, RecursionError) as error:
        return LineFault(f"not JSON that can be read: {str(error)[:100]}")


def _reject_constant(constant: str) -> None:
    """Raise `ValueError` for a constant that is not JSON: NaN or Infinity."""
    raise ValueError(f"{constant} is not JSON")


def _describe_type(value: Any) -> str:
    """Return the type of a JSON value that is not an object, for a message: "a list", "true or false"."""
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# -- reading -----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a file: its number from 1, its byte offset and size, its row, and its bytes."""

    number: int
    place: int
    size: int
    row: Json | LineFault
    data: bytes


def read_rows(path: str | Path, *, seen: Callable[[int], None] | None = None) -> Iterator[tuple[int, Json | LineFault]]:
    """Yield the number of each line, from 1, and its row, or a `LineFault` if the line is no JSON object, too long, or
    an incomplete last line. Blank lines are skipped.

    One line is in memory at a time. A last line without a newline is a row if it is complete. `seen` is called with the
    size of each line in bytes. Raises `FileFailed` if the file cannot be read.
    """
    return ((line.number, line.row) for line in read_lines(path, seen=seen))


def read_lines(path: str | Path, *, seen: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Yield each line that is not blank as a `Line`: its number from 1, byte offset, size, row and bytes.

    The row is a `LineFault` if the line is no JSON object, too long (then without its bytes), or an incomplete last
    line. A last line without a newline is a row if it is complete. `seen` is called with the size of each line in
    bytes, also of a blank one. Raises `FileFailed` if the file cannot be read."""
    place = 0
    for number, (line, size) in enumerate(_read_raw_lines(Path(path)), 1):
        if seen is not None:
            seen(size)
        if line is None:
            yield Line(number, place, size, LineFault(f"longer than {LONGEST:,} bytes"), b"")
        elif line.strip():
            row = decode_row(line)
            if isinstance(row, LineFault) and not line.endswith(b"\n"):
                row = LineFault("the last line is incomplete", torn=True)
            yield Line(number, place, size, row, line)
        place += size


def read_at(file: BinaryIO, place: int, size: int) -> Json:
    """Return the row of the line at the byte offset `place` and of this size, both known from an earlier reading of the
    open file. Raises `FileFailed` if there is no valid row any more."""
    file.seek(place)
    row = decode_row(file.read(size))
    if isinstance(row, LineFault):
        raise FileFailed(f"{getattr(file, 'name', 'the file')} changed while it was read; run the command again")
    return row


def _read_raw_lines(path: Path) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line of a file with its newline, and its size in bytes; None in place of a line that is longer than
    `LONGEST`. Raises `FileFailed` if the file cannot be read."""
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


# -- folders -----------------------------------------------------------------------------------------------------------


def ensure_parent_dir(path: str | Path) -> None:
    """Create the folder of a file, if it is missing. Raises `FileFailed`."""
    parent = Path(path).parent
    try:
        os.makedirs(parent, 0o777, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileFailed(failed("make the folder", parent, error)) from error
