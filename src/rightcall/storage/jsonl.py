"""JSON lines: a row as bytes and back, and a file of them read one at a time.

for number, row in read_rows("run/capture.jsonl"):
    ...                                        # a dict, or a `LineFault` where the line holds none
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
    """A line that holds no row. `torn`: it is the last one and was not written to its end."""

    message: str
    torn: bool = False


# -- one line ----------------------------------------------------------------------------------------------------------


def encode_row(row: Json) -> bytes:
    """Compact JSON and a newline. Integers of any size and lone surrogates stay exact; what is no number is null."""
    try:
        return msgspec.json.encode(row) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(finite(row), separators=(",", ":")).encode() + b"\n"


def finite(value: Any) -> Any:
    """The same JSON data with null for what is no finite number."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def decode_row(line: bytes) -> Json | LineFault:
    """The object of a line, or what is wrong with it."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = _slowly(line)  # lone surrogates, numbers beyond a float
    except RecursionError:
        return LineFault("nested too deeply to be read")
    if isinstance(value, dict):
        return value
    return value if isinstance(value, LineFault) else LineFault(f"a row is a JSON object, not {_kind(value)}")


def _slowly(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return LineFault(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        return LineFault(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}")
    except (ValueError, RecursionError) as error:
        return LineFault(f"not JSON that can be read: {str(error)[:100]}")


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
    row: Json | LineFault
    data: bytes


def read_rows(path: str | Path, *, seen: Callable[[int], None] | None = None) -> Iterator[tuple[int, Json | LineFault]]:
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
            yield Line(number, place, size, LineFault(f"longer than {LONGEST:,} bytes"), b"")
        elif line.strip():
            row = decode_row(line)
            if isinstance(row, LineFault) and not line.endswith(b"\n"):
                row = LineFault("the last line was not written to its end", torn=True)
            yield Line(number, place, size, row, line)
        place += size


def read_at(file: BinaryIO, place: int, size: int) -> Json:
    """The row of a line whose place in the file is known from an earlier reading."""
    file.seek(place)
    row = decode_row(file.read(size))
    if isinstance(row, LineFault):
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


# -- folders -----------------------------------------------------------------------------------------------------------


def ensure_parent_dir(path: str | Path) -> None:
    parent = Path(path).parent
    try:
        os.makedirs(parent, 0o777, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileFailed(failed("make the folder", parent, error)) from error
