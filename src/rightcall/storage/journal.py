"""A file to which lines are appended, each complete or not at all.

with Journal("run/capture.jsonl", CAPTURE) as journal:
    journal.append(row)                        # on disk when it returns

It is readable by its owner only. Its content is never cut, except for a last line that a crash left incomplete, on
request, and only if the file is of the expected kind. A file of another kind is refused, or replaced with `force`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from rightcall.errors import FileFailed, NotOurs
from rightcall.storage.draft import Draft, delete_stale_drafts
from rightcall.storage.file_kinds import LINES, LONGEST, FileKind, FoundFile, check_kind, existing, failed
from rightcall.storage.jsonl import LineFault, decode_row, encode_row, ensure_parent_dir
from rightcall.storage.streams import is_stream, open_stream
from rightcall.types import Json

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has only the second
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class Journal:
    """A file to which lines are appended. When `append` returns, its rows are on disk; a failed write leaves no partial
    line.

    An incomplete last line is refused, or removed with `torn="cut"`; `cut` is then its length. With `fresh`, or with
    `force` and a file of another kind, the first appended line replaces the old file, which exists until then. `alone`
    locks the file against other processes that also pass it."""

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
        self._draft: Draft | None = None  # replaces the existing file with the first line
        self._folder = self._file = -1
        self._is_broken = False
        self._is_stream = is_stream(path)
        try:
            if self._is_stream:
                self._file = _call_naming_errors("open", self.path, open_stream, self.path)
            else:
                self._open(kind, fresh=fresh, force=force, alone=alone, torn=torn)
        except BaseException:
            self.close()
            raise

    @property
    def is_empty(self) -> bool:
        """Return whether the file has no content; a stream always counts as empty."""
        return self._is_stream or os.fstat(self._file).st_size == 0

    @property
    def begins_anew(self) -> bool:
        """Return whether the first appended line will replace the existing file."""
        return self._draft is not None

    def append(self, row: Json) -> None:
        """Append one row as a JSON line and sync it to disk. Raises `FileFailed`."""
        self.append_all((row,))

    def append_all(self, rows: Iterable[Json]) -> None:
        """Append several rows as JSON lines, all or none, with one sync. Raises `FileFailed`."""
        self.append_bytes(b"".join([encode_row(row) for row in rows]))

    def append_bytes(self, lines: bytes) -> None:
        """Append bytes that are complete lines and sync them to disk; nothing happens for b"". The first lines of a
        journal that begins anew replace the existing file. Raises `FileFailed`."""
        if not lines:
            return
        self._write(lines)
        if self._draft is not None:
            _call_naming_errors("write", self.path, self._replace_old_file, self._draft)
        elif not self._is_stream:
            _call_naming_errors("sync", self.path, _sync, self._file)

    def make_private(self) -> None:
        """Set the mode of the file so that only its owner can read and write it; nothing happens for a stream. Raises
        `FileFailed`."""
        if not self._is_stream:
            _call_naming_errors("change", self.path, os.fchmod, self._file, _PRIVATE)

    def close(self) -> None:
        """Close the file, release its lock, and discard a replacement that was not written: the existing file is then
        unchanged. A second call does nothing."""
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
        """Open the file for appending, after checking its kind and its last line; a missing file is created. If its
        content is to be replaced (`fresh`, or another kind with `force`), create the replacement instead. Raises
        `NotOurs` for a file that must not be appended to or replaced, and `FileFailed`."""
        ensure_parent_dir(self.path)
        begin_anew = fresh | self._must_replace_other_kind(kind, force)
        self._file = _call_naming_errors("open", self.path, os.open, self.path, _FLAGS, _PRIVATE)
        if alone:
            self._lock()
        if begin_anew and os.fstat(self._file).st_size:
            parent = self.path.parent
            self._folder = _call_naming_errors(
                "open", parent, os.open, parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            )
            self._draft = _call_naming_errors("open", self.path, self._create_replacement)
            return
        if os.fstat(self._file).st_size:
            # The open file itself is checked: the path may have been replaced since.
            check_kind(FoundFile(self._file, self.path), kind)
        self._repair_last_line(torn)
        _call_naming_errors("sync", self.path, os.fsync, self._file)

    def _must_replace_other_kind(self, kind: FileKind, force: bool) -> bool:
        """Return True if the existing file is of another kind and `force` allows to replace it; False if it may be
        appended to, or there is none. Raises `NotOurs` for another kind without `force`, and for what `force` does not
        allow either."""
        try:
            existing(self.path, kind)
        except NotOurs:
            if not force:
                raise
            existing(self.path, kind, force=True)
            return True
        return False

    def _lock(self) -> None:
        """Lock the file against other processes until it is closed. Raises `FileFailed` if another process holds the
        lock or has replaced the file."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine, there = os.fstat(self._file), os.stat(self.path)
        except OSError as error:
            raise FileFailed(self._lock_message()) from error
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise FileFailed(self._lock_message())

    def _lock_message(self) -> str:
        """Return the error message for a file that another process has locked."""
        return f"cannot lock {self.path}: another program writes to it; wait, or name another file"

    def _create_replacement(self) -> Draft:
        """Return a draft beside the file, opened for appending, that will replace it. Stale drafts in the folder are
        deleted first. Raises `OSError`."""
        delete_stale_drafts(self._folder)
        draft = Draft(self._folder, self.path.name, mode=_PRIVATE)
        fcntl.fcntl(draft.handle, fcntl.F_SETFL, os.O_APPEND)
        return draft

    def _repair_last_line(self, torn: str) -> None:
        """Repair a last line without a newline: add the newline if the row is complete; otherwise remove the line
        with `torn="cut"`, or raise `FileFailed`."""
        size = os.fstat(self._file).st_size
        extra = _count_after_last_newline(self._file, size)
        if not extra:
            return
        if not isinstance(decode_row(os.pread(self._file, min(extra, LONGEST), size - extra)), LineFault):
            self._write(b"\n")  # only the newline was lost
        elif torn == "cut":
            _call_naming_errors("cut", self.path, os.ftruncate, self._file, size - extra)
            self.cut = extra
        else:
            raise FileFailed(f"{self.path}: the last line is incomplete; resume the run, which removes it")

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """Write all of `data` to the file, or to its replacement, without a sync. If that fails, remove what was
        written of it and raise `FileFailed`; every later write raises if it could not be removed."""
        if self._is_broken:
            raise FileFailed(f"cannot write {self.path}: an earlier line is incomplete")
        handle = self._file if self._draft is None else self._draft.handle
        start, written = 0 if self._is_stream else os.fstat(handle).st_size, 0
        try:
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError as error:
            self._remove_partial_write(handle, start, written)
            raise FileFailed(failed("write", self.path, error)) from error
        except BaseException:
            self._remove_partial_write(handle, start, written)
            raise

    def _remove_partial_write(self, handle: int, start: int, written: int) -> None:
        """Truncate the file to `start`, its size before a failed write of which `written` bytes arrived. If that fails
        too, every later write raises, and the next reader finds an incomplete last line. Nothing is raised here."""
        try:
            if written and not self._is_stream and os.fstat(handle).st_size == start + written:
                os.ftruncate(handle, start)
        except OSError:
            self._is_broken = True

    def _replace_old_file(self, draft: Draft) -> None:
        """Rename the draft over the old file, and use it as the journal's file from now on. Raises `OSError`."""
        draft.publish()
        os.close(self._file)
        self._file, draft.handle, self._draft = draft.handle, -1, None


def append_jsonl(path: str | Path, row: Json) -> None:
    """Append one row to the file of JSON lines at `path`, which is created if it is missing, and sync it to disk.
    Raises `NotOurs` for a file that is not JSON lines and `FileFailed`, also for an incomplete last line."""
    with Journal(path) as journal:
        journal.append(row)


def touch_jsonl(path: str | Path) -> None:
    """Create an empty file of JSON lines if it is missing, and check that rows can be appended to it. Raises `NotOurs`
    for another kind of file and `FileFailed`, also for an incomplete last line, which is never removed."""
    Journal(path).close()


def _count_after_last_newline(file: int, size: int) -> int:
    """Return the number of bytes after the last newline of an open file of this size; all of them if there is none."""
    end = size
    while end > 0:
        start = max(0, end - 65_536)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return size - (start + found + 1)
        end = start
    return size


def _call_naming_errors(name: str, path: Path, do: Any, *given: Any) -> Any:
    """Return `do(*given)`. If that raises `OSError` or `ValueError`, raise a `FileFailed` that names the file and the
    step, which is `name`, such as "open"."""
    try:
        return do(*given)
    except (OSError, ValueError) as error:
        raise FileFailed(failed(name, path, error)) from error
