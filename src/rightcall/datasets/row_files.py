"""The rows of several files, and the places of rows that do not fit into memory."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from rightcall.errors import CallerError, FileFailed
from rightcall.storage.jsonl import LineFault, read_at, read_lines
from rightcall.types import Json

Seen = Callable[[int], None]


class Where(NamedTuple):
    """A line of one of several files: its `path`, and its `number` from 1. As text it is `path:number`."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


def read_all(paths: Iterable[str | Path], *, seen: Seen | None = None) -> Iterator[tuple[Where, Json | LineFault]]:
    """The rows of several files, one after the other."""
    for path in paths:
        for line in read_lines(path, seen=seen):
            yield Where(str(path), line.number), line.row


class BadRows(CallerError):
    """Rows that are not as they should be; nothing is written then. The message names the first and the cure."""


# -- places ------------------------------------------------------------------------------------------------------------


def digest(text: str | bytes) -> bytes:
    """Sixteen bytes that stand for a key of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, digest_size=16).digest()


def running_digest() -> blake2b:
    """The same of what is fed to it bit by bit."""
    return blake2b(digest_size=16)


class Scratch:
    """A database with these tables. Only keys and places are kept in it, never rows. Its file has no name once it is
    open, so that nothing is left of it however the process ends."""

    def __init__(self, *tables: str) -> None:
        try:
            folder = tempfile.mkdtemp(prefix="rightcall-")
        except OSError as error:
            raise FileFailed(f"cannot make a scratch folder: {error.strerror}; set TMPDIR") from error
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
        self.db.close()
        if isinstance(error, sqlite3.Error):
            place = tempfile.gettempdir()
            raise FileFailed(f"cannot write to the scratch folder {place}: {error}; set TMPDIR") from error

    def insert(self, statement: str, values: Iterable[tuple[Any, ...]]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany(statement, values)
        self.db.execute("COMMIT")


class RowReader:
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
