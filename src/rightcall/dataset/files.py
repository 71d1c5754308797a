"""Files that appear whole or not at all, and the places of rows that do not fit into memory.

with Output("train.jsonl") as out:       # a hidden file beside it, moved into place when the block ends well
    out.write(row)
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, NamedTuple

from rightcall.capture.lines import FileFailed, encode_row, ensure_parent_dir, read_at, read_lines
from rightcall.capture.rows import Fault
from rightcall.errors import CallerError
from rightcall.types import Json

Seen = Callable[[int], None]
PRIVATE, PUBLIC = 0o600, 0o644


class Where(NamedTuple):
    """A line of one of several files."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


def read_all(paths: Iterable[str | Path], *, seen: Seen | None = None) -> Iterator[tuple[Where, Json | Fault]]:
    """The rows of several files, one after the other."""
    for path in paths:
        for line in read_lines(path, seen=seen):
            yield Where(str(path), line.number), line.row


class BadRows(CallerError):
    """Rows that are not as they should be. The message names the first of them and the cure."""


# -- writing -----------------------------------------------------------------------------------------------------------


class Output:
    """A file of rows in the making. Others see it when it is whole and on disk; an error leaves nothing behind.

    It never takes the place of a file of `sources`, those that it is made from: rows of a model cannot be had again.
    """

    def __init__(self, path: str | Path, *, sources: Iterable[str | Path] = (), mode: int = PRIVATE) -> None:
        self.path, self.rows = Path(path), 0
        self._sources = sources
        self._mode = mode
        self._draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Output:
        ensure_parent_dir(self.path)
        if self.path.is_dir():
            raise FileFailed(f"cannot open {self.path}: Is a directory")
        keep_apart(self.path, self._sources)
        try:
            file = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, self._mode)
            os.fchmod(file, self._mode)
        except OSError as error:
            raise FileFailed(f"cannot open {self.path}: {error.strerror or error}") from error
        self._file = os.fdopen(file, "wb", 1 << 20)
        return self

    def write(self, row: Json) -> None:
        self.write_bytes(encode_row(row))
        self.rows += 1

    def write_bytes(self, data: bytes) -> None:
        try:
            self.file.write(data)
        except OSError as error:
            raise FileFailed(f"cannot write {self.path}: {error.strerror or error}") from error

    @property
    def file(self) -> IO[bytes]:
        assert self._file is not None, "outside its with block"
        return self._file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self._finish()
        except OSError as failed:
            raise FileFailed(f"cannot write {self.path}: {failed.strerror or failed}") from failed
        finally:
            self._discard()

    def _finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self._draft, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _discard(self) -> None:
        with suppress(OSError):  # a disk that is full has been reported already
            self.file.close()
        self._draft.unlink(missing_ok=True)


def keep_apart(path: Path, sources: Iterable[str | Path]) -> None:
    """Raises `CallerError` if the file to write is one of those that are read."""
    if any(path.exists() and Path(each).exists() and path.samefile(each) for each in sources):
        raise CallerError(f"{path} is a file that is read, and would be lost; name another one to write to")


def write_json(path: str | Path, value: Json, *, mode: int = PRIVATE) -> None:
    """A small JSON file, whole or not at all."""
    with Output(path, mode=mode) as out:
        out.write_bytes((json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode())


# -- places ------------------------------------------------------------------------------------------------------------


def digest(text: str | bytes) -> bytes:
    """Sixteen bytes that stand for a key of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, digest_size=16).digest()


class Scratch:
    """A database in a folder of its own that is gone afterwards. Only keys and places are kept in it, never rows."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="rightcall-")
        self.db = sqlite3.connect(os.path.join(self._folder, "scratch.db"), isolation_level=None)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "temp_store=FILE", "cache_size=-2000"):
            self.db.execute(f"PRAGMA {setting}")

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.db.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, sqlite3.Error):
            raise FileFailed(f"cannot write to the scratch folder {self._folder}: {error}; set TMPDIR") from error

    def insert(self, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(statement, values)
        self.db.execute("COMMIT")


class Reader:
    """Rows by their place, out of several files."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = [Path(path) for path in paths]
        self._files: dict[int, BinaryIO] = {}

    def row(self, file: int, place: int, size: int) -> Json:
        if file not in self._files:
            self._files[file] = self._paths[file].open("rb")
        return read_at(self._files[file], place, size)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
