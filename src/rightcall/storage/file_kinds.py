"""Recognise the kind of a file by its beginning. A command replaces a file of its own kind or an empty file; any other
file only with `force`.

CAPTURE = json_lines("capture", "schema_version", "rightcall-capture/v1")
found = existing(Path("notes.txt"), CAPTURE, force=False)     # raises NotOurs: it looks like text ...
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from rightcall.errors import FileFailed, NotOurs
from rightcall.types import Json

LONGEST = 64_000_000  # bytes of one line: a reply of the largest size and its conversation
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not block


class FoundFile:
    """An existing file, open for reading."""

    def __init__(self, handle: int, path: Path) -> None:
        self.handle, self.path = handle, path
        self.size = os.fstat(handle).st_size

    def at(self, place: int, size: int) -> bytes:
        """Return up to `size` bytes of the file from the offset `place`; fewer at the end of the file. Raises
        `OSError`."""
        return os.pread(self.handle, size, place)

    @cached_property
    def first(self) -> bytes:
        """Return the first line of the file with its newline, or its first `LONGEST` bytes if the line is longer; read
        once. Raises `OSError`."""
        read: list[bytes] = []
        place = 0
        while place < LONGEST and (piece := self.at(place, min(1 << 16, LONGEST - place))):
            line, newline, _ = piece.partition(b"\n")
            read.append(line + newline)
            if newline:
                break
            place += len(piece)
        return b"".join(read)

    @cached_property
    def row(self) -> Json | None:
        """Return the first line as a JSON object; None if it is anything else. Raises `OSError`."""
        try:
            value = json.loads(self.first.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class FileKind(msgspec.Struct, frozen=True):
    """A kind of file: its `name` in messages, and a predicate that recognises it (`knows`)."""

    name: str
    knows: Callable[[FoundFile], bool]


def json_lines(name: str, key: str, *values: Any, also: Callable[[Json], bool] | None = None) -> FileKind:
    """Return the kind of JSON lines files whose first row has this `key`, with one of `values` if any are given, and
    for which `also`, if given, returns True. `name` is its name in messages.

    A file that is only an incomplete first line is of this kind if it begins as the package writes it: with this key
    and value."""
    begins = [json.dumps({key: value}, separators=(",", ":"))[:-1].encode() for value in values]
    begins = begins or [json.dumps({key: 0})[:-2].encode()]

    def knows(found: FoundFile) -> bool:
        """Return whether an open file is of this kind."""
        row = found.row
        if row is not None:
            return key in row and (not values or row[key] in values) and (also is None or also(row))
        is_torn = len(found.first) == found.size and not found.first.endswith(b"\n")
        return is_torn and any(found.first.startswith(mark) or mark.startswith(found.first) for mark in begins)

    return FileKind(name, knows)


def beginning(name: str, mark: bytes) -> FileKind:
    """Return the kind of files that begin with the bytes `mark`; `name` is its name in messages."""
    return FileKind(name, lambda found: found.at(0, len(mark)) == mark)


LINES = FileKind("file of JSON lines", lambda found: found.row is not None)


# -- checking ----------------------------------------------------------------------------------------------------------


def existing(path: Path, kind: FileKind, *, force: bool = False, folder: int | None = None) -> os.stat_result | None:
    """Return the status of the file at `path` if a file of this `kind` may replace it; None if there is none.

    Raises `NotOurs` if it must not be replaced: a file of another kind that is not empty (unless `force`), a read-only
    file, a folder, a link, a device; and `FileFailed` if it cannot be read. `folder` is the handle of its open
    folder."""
    name = path if folder is None else path.name or "."
    try:
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileFailed(failed("open", path, error)) from error
    _refuse_unwritable(path, before)
    if not force and before.st_size:
        _check_kind_on_disk(path, name, kind, folder)
    return before


def _refuse_unwritable(path: Path, before: os.stat_result) -> None:
    """Raise `NotOurs` unless `before` is the status of a writable regular file. `path` is for the message."""
    mode = before.st_mode
    if stat.S_ISDIR(mode):
        raise NotOurs(f"cannot open {path}: Is a directory; name a file")
    if stat.S_ISLNK(mode):
        raise NotOurs(
            f"{path} is a link to {_read_link(path)}, and links are not written through; name the file itself"
        )
    if not stat.S_ISREG(mode):
        kind = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(mode), "a device")
        raise NotOurs(f"{path} is {kind}; name a file, or /dev/stdout")
    if not mode & 0o222:
        raise NotOurs(
            f"cannot open {path}: Permission denied, it is read-only (mode {stat.S_IMODE(mode):04o}); "
            "make it writable, or name another file"
        )


def _read_link(path: Path) -> str:
    """Return where a link points, for a message; "something else" if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return "something else"


def _check_kind_on_disk(path: Path, name: Path | str, kind: FileKind, folder: int | None) -> None:
    """Open the file `name`, relative to the handle `folder` unless that is None, and raise `NotOurs` if it is of
    another kind than `kind`, `FileFailed` if it cannot be opened or read. `path` is for messages."""
    try:
        handle = os.open(name, _FLAGS, dir_fd=folder)
    except OSError as error:
        raise FileFailed(failed("open", path, error)) from error
    try:
        check_kind(FoundFile(handle, path), kind)
    finally:
        os.close(handle)


def check_kind(found: FoundFile, kind: FileKind) -> None:
    """Raise `NotOurs` if an open file is of another kind than `kind`, `FileFailed` if it cannot be read."""
    try:
        if not kind.knows(found):
            raise NotOurs(
                f"{found.path} is no {kind.name}: it looks like {describe_content(found)}; name another file, or "
                "--force (force=True) to replace it"
            )
    except OSError as error:
        raise FileFailed(failed("read", found.path, error)) from error


def failed(step: str, path: Path | str, error: Exception) -> str:
    """Return (not raise) an error message that the step (a verb such as "open") failed for the file: the cause and, for
    known error numbers, the cure."""
    if not isinstance(error, OSError):
        return f"cannot {step} {path}: {error}"
    cure = _CURES.get(error.errno or 0, "")
    return f"cannot {step} {path}: {error.strerror or error}" + (f"; {cure}" if cure else "")


_CURES = {
    errno.ENOSPC: "make room on the disk, or name a file on another",
    errno.EDQUOT: "make room within your quota, or name a file elsewhere",
    errno.EFBIG: "files may not be larger here (`ulimit -f`); name a file elsewhere",
    errno.EIO: "the disk failed; name a file on another",
    errno.EROFS: "name a file on a disk that can be written to",
    errno.EACCES: "name a place that you may write to",
}


# -- describing --------------------------------------------------------------------------------------------------------

_BEGINNINGS: dict[bytes, str] = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip data",
    b"\x7fELF": "a program",
    b"GGUF": "a model",
    b"SQLite format 3": "an SQLite database",
    b"PAR1": "a Parquet file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"<!doctype html": "a page of HTML",
    b"<!DOCTYPE html": "a page of HTML",
}


def describe_content(found: FoundFile) -> str:
    """Return a short description of a file's content for an error message: its type by its first bytes, the schema or
    keys of its first row, or its first characters. Raises `OSError`."""
    for mark, name in _BEGINNINGS.items():
        if found.at(0, len(mark)) == mark:
            return name
    if found.row is not None:
        return _describe_row(found.row)
    start = found.at(0, 256)
    if not start.strip(b"\0"):
        return "zero bytes"
    text = _decode_beginning(start)
    return "binary data" if text is None else f"text, {text.strip()[:40]!r}"


def _describe_row(row: Json) -> str:
    """Return a description of the first row of a file for an error message: its `schema_version`, or else its first
    three keys."""
    version = row.get("schema_version")
    if isinstance(version, str):
        return f"rows of {version!r:.80}"
    return "JSON with " + (f"the keys {', '.join([repr(key)[:40] for key in list(row)[:3]])}" if row else "no keys")


def _decode_beginning(start: bytes) -> str | None:
    """Return the first bytes of a file as text, without an incomplete last character; None for bytes that are not UTF-8
    or contain a null byte."""
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3:
            return None
        text = start[: error.start].decode("utf-8")  # cut inside a character
    return None if "\0" in text else text
