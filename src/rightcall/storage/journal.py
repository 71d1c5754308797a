"""A file that lines are appended to, each whole or not at all.

with Journal("run/capture.jsonl", CAPTURE) as journal:
    journal.append(row)                        # on disk when it returns

It is made for its owner alone. What it held stays: it is never cut, but for a last line that was torn by a crash, when
asked, and only if the file begins as one of its kind. A file of another kind is refused, or replaced when forced to.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from rightcall.errors import FileFailed, NotOurs
from rightcall.storage.draft import Draft, sweep
from rightcall.storage.file_kinds import LINES, LONGEST, FileKind, FoundFile, existing, failed, refuse_others
from rightcall.storage.jsonl import LineFault, decode_row, encode_row, ensure_parent_dir
from rightcall.storage.streams import is_stream, open_stream
from rightcall.types import Json

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has only the second
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class Journal:
    """What `append` was given is on disk when it returns; what could not be written is not there in part.

    A torn last line is refused, or cut off with `torn="cut"`: `cut` says how many bytes that were. With `fresh`, or
    with `force` a file of another kind, the first line that is appended begins a new file in the place of the old one,
    which is there until then. `alone`: no other process that says so writes to the file meanwhile.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        kind: FileKind = LINES,
        *,
        torn: Literal["refuse", "cut"] = "refuse",
        fresh: bool = False,
        force: bool = False,
        alone: bool = False,
    ) -> None:
        self.path, self.cut = Path(path), 0
        self._draft: Draft | None = None  # takes the place of what is there with the first line
        self._folder = self._file = -1
        self._is_broken = False
        self._is_stream = is_stream(path)
        try:
            if self._is_stream:
                self._file = _step("open", self.path, open_stream, self.path)
            else:
                self._open(kind, fresh=fresh, force=force, alone=alone, torn=torn)
        except BaseException:
            self.close()
            raise

    @property
    def is_empty(self) -> bool:
        return self._is_stream or os.fstat(self._file).st_size == 0

    @property
    def begins_anew(self) -> bool:
        """Is what is there still the old file, which the first line will take the place of?"""
        return self._draft is not None

    def append(self, row: Json) -> None:
        self.append_all((row,))

    def append_all(self, rows: Iterable[Json]) -> None:
        """Several rows for the price of one sync."""
        self.append_bytes(b"".join([encode_row(row) for row in rows]))

    def append_bytes(self, lines: bytes) -> None:
        """Whole lines, as they are."""
        if not lines:
            return
        self._write(lines)
        if self._draft is not None:
            _step("write", self.path, self._take_place, self._draft)
        elif not self._is_stream:
            _step("sync", self.path, _sync, self._file)

    def make_private(self) -> None:
        """Nobody but its owner may read it from now on."""
        if not self._is_stream:
            _step("change", self.path, os.fchmod, self._file, _PRIVATE)

    def close(self) -> None:
        if self._draft is not None:
            self._draft.discard()
        for handle in (self._file, self._folder):
            if handle >= 0:
                os.close(handle)
        self._draft, self._file, self._folder = None, -1, -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- opening -------------------------------------------------------------------------------------------------------

    def _open(self, kind: FileKind, *, fresh: bool, force: bool, alone: bool, torn: str) -> None:
        ensure_parent_dir(self.path)
        begin_anew = fresh | self._is_strange(kind, force)
        self._file = _step("open", self.path, os.open, self.path, _FLAGS, _PRIVATE)
        if alone:
            self._lock()
        if begin_anew and os.fstat(self._file).st_size:
            parent = self.path.parent
            self._folder = _step("open", parent, os.open, parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._draft = _step("open", self.path, self._beside)
            return
        if os.fstat(self._file).st_size:
            refuse_others(
                FoundFile(self._file, self.path), kind
            )  # the very file that is open: nobody can have swapped it
        self._mend(torn)
        _step("sync", self.path, os.fsync, self._file)

    def _is_strange(self, kind: FileKind, force: bool) -> bool:
        """Is a file of another kind to be replaced? Raises `NotOurs` if it may not be."""
        try:
            existing(self.path, kind)
        except NotOurs:
            if not force:
                raise
            existing(self.path, kind, force=True)
            return True
        return False

    def _lock(self) -> None:
        """The lock ends with the process, however it ends."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine, there = os.fstat(self._file), os.stat(self.path)
        except OSError as error:
            raise FileFailed(self._in_use()) from error
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise FileFailed(self._in_use())

    def _in_use(self) -> str:
        return f"cannot lock {self.path}: another program writes to it; wait, or name another file"

    def _beside(self) -> Draft:
        """It is locked, as the file whose place it takes."""
        sweep(self._folder)
        draft = Draft(self._folder, self.path.name, mode=_PRIVATE)
        fcntl.fcntl(draft.handle, fcntl.F_SETFL, os.O_APPEND)
        return draft

    def _mend(self, torn: str) -> None:
        size = os.fstat(self._file).st_size
        extra = _after_last_newline(self._file, size)
        if not extra:
            return
        if not isinstance(decode_row(os.pread(self._file, min(extra, LONGEST), size - extra)), LineFault):
            self._write(b"\n")  # only the newline was lost
        elif torn == "cut":
            _step("cut", self.path, os.ftruncate, self._file, size - extra)
            self.cut = extra
        else:
            raise FileFailed(
                f"{self.path}: the last line was not written to its end; resume the run, which cuts it off"
            )

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """All of it, or nothing: a disk that is full must not leave half a line behind."""
        if self._is_broken:
            raise FileFailed(f"cannot write {self.path}: an earlier line was not written to its end")
        handle = self._file if self._draft is None else self._draft.handle
        start, written = 0 if self._is_stream else os.fstat(handle).st_size, 0
        try:
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError as error:
            self._cut_back(handle, start, written)
            raise FileFailed(failed("write", self.path, error)) from error
        except BaseException:
            self._cut_back(handle, start, written)
            raise

    def _cut_back(self, handle: int, start: int, written: int) -> None:
        """If even that fails, nothing more is written, and whoever opens the file next finds a torn last line."""
        try:
            if written and not self._is_stream and os.fstat(handle).st_size == start + written:
                os.ftruncate(handle, start)
        except OSError:
            self._is_broken = True

    def _take_place(self, draft: Draft) -> None:
        draft.publish()
        os.close(self._file)
        self._file, draft.handle, self._draft = draft.handle, -1, None


def append_jsonl(path: str | Path, row: Json) -> None:
    """One row, durably, to a file that is opened for it."""
    with Journal(path) as journal:
        journal.append(row)


def touch_jsonl(path: str | Path) -> None:
    """The file is there afterwards, and can be appended to. Never cuts it."""
    Journal(path).close()


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
    except (OSError, ValueError) as error:
        raise FileFailed(failed(name, path, error)) from error
