"""Where files lie. Everything that reads a source opens, measures and lists it here, in the parent and in workers.

    with open_source("logs.jsonl") as file: ...

A store is chosen by what stands before `://`; a name without that is a file of this machine.
"""

from __future__ import annotations

import glob
import os
import sys
from typing import BinaryIO, Protocol

from rightcall.errors import FileFailed

STDIN = "-"


class RowStore(Protocol):
    """Where files lie: each method is given a whole name, and raises `FileFailed` with it and the reason."""

    def open(self, path: str) -> BinaryIO:
        """To be read, from any place in it."""
        ...

    def size(self, path: str) -> int:
        """In bytes."""
        ...

    def stamp(self, path: str) -> str:
        """Something that changes when the file does."""
        ...

    def time_ms(self, path: str) -> int | None:
        """When it was changed last, in milliseconds since 1970; None where nobody knows."""
        ...

    def matching(self, pattern: str) -> list[str]:
        """The names that fit a glob, sorted; a name without one as it is."""
        ...


class LocalFiles:
    """Files of this machine, and standard input as `-`."""

    def open(self, path: str) -> BinaryIO:
        if path == STDIN:
            return sys.stdin.buffer
        try:
            return open(path, "rb")
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error

    def size(self, path: str) -> int:
        return 0 if path == STDIN else self._stat(path).st_size

    def stamp(self, path: str) -> str:
        found = self._stat(path)
        return f"{found.st_size}:{found.st_mtime_ns}"

    def time_ms(self, path: str) -> int | None:
        return None if path == STDIN else self._stat(path).st_mtime_ns // 1_000_000

    def matching(self, pattern: str) -> list[str]:
        if pattern == STDIN or os.path.lexists(pattern) or not glob.has_magic(pattern):
            return [pattern]
        return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))

    def _stat(self, path: str) -> os.stat_result:
        try:
            return os.stat(path)
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error


_HERE = LocalFiles()


def store_of(path: str) -> RowStore:
    """The store that a name belongs to."""
    if "://" not in path:
        return _HERE
    from rightcall.datasets.rows.remote_store import RemoteStore

    return RemoteStore()


def whole_name(path: str) -> str:
    """The name as a process calls it that works in another folder."""
    return path if "://" in path else os.path.abspath(path)


def open_source(path: str) -> BinaryIO:
    return store_of(path).open(path)


def unreadable(path: str, error: Exception) -> FileFailed:
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return FileFailed(f"cannot read {path}: {reason}")
