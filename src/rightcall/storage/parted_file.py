"""A file that is written part by part, can be resumed after any interruption, and appears when it is complete.

with PartedFile("out.jsonl", REPLIES) as out:
    notes = out.begin("id of the run", resume=True)        # the notes of the parts that exist already
    out.append(b"...lines...", {"rows": 1000})
    out.publish()

Until then there are two files: `out.jsonl.part` with the bytes, and `out.jsonl.part.journal` with one line per part:
its size, its checksum, and a note. A part is valid if it has a complete line and its bytes match the checksum; a
resumed run cuts off everything after the last valid part. So nothing must be synced before the end.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from rightcall.errors import FileFailed, NotOurs
from rightcall.storage.draft import keep_owner_and_mode, write_all
from rightcall.storage.file_kinds import FileKind, existing, failed, json_lines
from rightcall.storage.jsonl import LineFault, decode_row, encode_row, ensure_parent_dir
from rightcall.storage.whole_files import refuse_source_as_output
from rightcall.types import Json

VERSION = "rightcall-parts/v1"
JOURNAL = json_lines("journal of parts", "schema_version", VERSION)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_PRIVATE = 0o600
_NOT_OURS = FileKind("part of a file that is being written", lambda found: False)


class PartedFile:
    """A file that one process writes part by part. Files that must not be replaced are refused as by `WholeFile`."""

    def __init__(
        self, path: str | Path, kind: FileKind, *, sources: Iterable[str | Path] = (), force: bool = False
    ) -> None:
        self.path, self.kind = Path(path), kind
        self.part = self.path.with_name(self.path.name + ".part")
        self.journal = self.path.with_name(self.path.name + ".part.journal")
        self._sources, self._force = list(sources), force
        self._data = self._notes = -1
        self._is_whole = self._is_published = False

    def begin(self, run: str, *, resume: bool) -> list[Json]:
        """Open the file for appending. With `resume`, keep the valid parts of an earlier run and return their notes;
        without it, or if there are none, start anew and return an empty list.

        `run` identifies what determines the bytes: raises `FileFailed` if the resumed journal has another one, and
        while another process writes here; raises `NotOurs` for foreign files at any of the three paths, and
        `CallerError` if the file is one of its sources."""
        self._check_replaceable()
        ensure_parent_dir(self.path)
        self._notes = self._call("open", os.open, self.journal, _FLAGS, _PRIVATE)
        self._lock()
        entries = list(self._read_entries()) if resume else []
        if not entries or entries[0][0].get("schema_version") != VERSION:
            self._start_anew(run)
            return []
        if entries[0][0].get("run") != run:
            raise FileFailed(
                f"{self.journal} belongs to another run: files, options or version differ; run without --resume to "
                "start again"
            )
        self._data = self._open_data(is_whole=entries[-1][0].get("whole") is True)
        return self._keep_valid_parts(entries)

    @property
    def is_whole(self) -> bool:
        """Return whether the resumed run was complete, except for the renaming of its file; False before `begin`."""
        return self._is_whole

    def append(self, data: bytes, note: Json) -> None:
        """Append one part: its bytes, and a journal line with its size, checksum and `note`. Nothing is synced. Raises
        `FileFailed`; the earlier parts then remain."""
        self._call("write", write_all, self._data, data)
        self._append_entry({"size": len(data), "crc": zlib.crc32(data), "note": note})

    def publish(self) -> None:
        """Mark the run as complete, sync the file, rename it to its final name, and delete its journal. It replaces
        what `WholeFile` would replace, with that file's owner and mode. For a run that was interrupted after the
        renaming, only delete the journal. Raises `FileFailed`, and `NotOurs` if a file that must not be replaced has
        appeared at the final name."""
        if not self._is_published:
            before = self._check_replaceable()
            if not self._is_whole:
                self._append_entry({"whole": True})
            if before is not None:
                self._call("write", keep_owner_and_mode, self._data, before)
            self._call("write", os.fsync, self._data)
            self._call("write", os.rename, self.part, self.path)
        self._call("write", os.unlink, self.journal)
        folder = self._call("write", os.open, self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._call("write", os.fsync, folder)
        finally:
            os.close(folder)

    def pieces(self, size: int = 1 << 16) -> Iterator[bytes]:
        """Yield all bytes of the data file, from the first part on, in pieces of at most `size` bytes. Raises
        `FileFailed`."""
        place = 0
        while data := self._call("read", os.pread, self._data, size, place):
            yield data
            place += len(data)

    def parts(self) -> Iterator[tuple[int, bytes, Json]]:
        """Yield the offset, the bytes and the note of each part that was appended, also by the resumed run. Raises
        `FileFailed`."""
        place = 0
        for entry, _ in islice(self._read_entries(), 1, None):
            if "size" in entry:
                yield place, self.at(place, entry["size"]), entry["note"]
                place += entry["size"]

    def at(self, place: int, size: int) -> bytes:
        """Return the `size` bytes of the data at the offset `place`; fewer if the file ends before. Raises
        `FileFailed`."""
        found: list[bytes] = []
        while size and (data := self._call("read", os.pread, self._data, size, place)):
            found.append(data)
            place, size = place + len(data), size - len(data)
        return found[0] if len(found) == 1 else b"".join(found)

    def discard(self) -> None:
        """Delete the incomplete file and its journal, also those of a resumed run. Nothing happens before `begin`
        has opened them or after `close`; an existing final file is kept."""
        if self._data < 0:
            return
        for path in (self.part, self.journal):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def close(self) -> None:
        """Close the file and its journal without deleting them, so that the run can be resumed."""
        for handle in (self._data, self._notes):
            if handle >= 0:
                os.close(handle)
        self._data = self._notes = -1

    def __enter__(self) -> PartedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- opening -------------------------------------------------------------------------------------------------------

    def _check_replaceable(self) -> os.stat_result | None:
        """Return the status of the existing final file, None if there is none. Raises `CallerError` if it is a source,
        `NotOurs` if it must not be replaced; before the journal is open, also if the journal must not be."""
        refuse_source_as_output(self.path, self._sources)
        if self._notes < 0:
            existing(self.journal, JOURNAL, force=self._force)
        return existing(self.path, self.kind, force=self._force)

    def _lock(self) -> None:
        """Lock the journal against other processes until it is closed. Raises `FileFailed` if another process holds the
        lock or has replaced the journal."""
        try:
            fcntl.flock(self._notes, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine, there = os.fstat(self._notes), os.stat(self.journal)
        except OSError as error:
            raise FileFailed(self._lock_message()) from error
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise FileFailed(self._lock_message())

    def _lock_message(self) -> str:
        """Return the error message for a journal that another process has locked."""
        return f"cannot lock {self.journal}: another run writes to {self.path}; wait, or name another file"

    def _start_anew(self, run: str) -> None:
        """Start a new run: delete the part file of an earlier run, truncate and begin the journal, then create the part
        file. The journal is written first, because a part file without a journal belongs to another program. Raises
        `NotOurs` for such a part file, unless `force`, and `FileFailed`."""
        if os.path.lexists(self.part):
            self._check_leftover_part()
            self._call("write", os.unlink, self.part)
        self._call("write", os.ftruncate, self._notes, 0)
        self._append_entry({"schema_version": VERSION, "run": run})
        self._data = self._call("open", os.open, self.part, _FLAGS | os.O_EXCL, _PRIVATE)

    def _check_leftover_part(self) -> None:
        """Raise `NotOurs` if the existing part file must not be deleted: it has no journal, and `force` is not set. The
        new, empty journal is deleted then."""
        try:
            existing(self.part, _NOT_OURS, force=self._force or os.fstat(self._notes).st_size > 0)
        except NotOurs:
            if not os.fstat(self._notes).st_size:
                os.unlink(self.journal)  # `begin` has just created it
            raise

    def _open_data(self, *, is_whole: bool) -> int:
        """Return a handle of the bytes of the resumed run: of the final file, for reading, if that run was interrupted
        after renaming it (this sets `_is_published`), else of the part file. Raises `FileFailed`."""
        self._is_published = is_whole and not os.path.lexists(self.part) and self.path.exists()
        if self._is_published:
            handle: int = self._call("open", os.open, self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            handle = self._call("open", os.open, self.part, _FLAGS, _PRIVATE)
        return handle

    def _read_entries(self) -> Iterator[tuple[Json, int]]:
        """Yield each complete line of the journal with the offset of its end, up to the first incomplete one. The
        journal may be written meanwhile."""
        place = 0
        with open(self.journal, "rb") as file:
            for line in file:
                row = decode_row(line) if line.endswith(b"\n") else LineFault("")
                if isinstance(row, LineFault):
                    return
                place += len(line)
                yield row, place

    def _keep_valid_parts(self, entries: list[tuple[Json, int]]) -> list[Json]:
        """Return the notes of the parts whose bytes match their checksums, up to the first that does not match, and
        truncate both files after them. `entries` are the journal's lines with the offsets of their ends. For a
        published file that was changed since, start a new part file and return an empty list."""
        notes: list[Json] = []
        place, (_, end) = 0, entries[0]
        for entry, behind in entries[1:]:
            self._is_whole = entry.get("whole") is True
            if not self._is_whole and not self._matches_checksum(entry):
                break
            end = behind
            if not self._is_whole:
                place += entry["size"]
                notes.append(entry["note"])
        if self._is_published and not self._is_whole:
            return self._discard_changed_file()
        self._truncate(place, end)
        return notes

    def _discard_changed_file(self) -> list[Json]:
        """Open a new part file instead of the published file, which was changed since and stays as it is, truncate the
        journal to its first line, and return an empty list: there are no parts."""
        os.close(self._data)
        self._is_published = False
        self._data = self._call("open", os.open, self.part, _FLAGS, _PRIVATE)
        return self._keep_valid_parts(list(self._read_entries())[:1])

    def _matches_checksum(self, entry: Json) -> bool:
        """Read the bytes of the next part from the current position, and return whether they match the size and
        checksum of its journal entry."""
        left, found = int(entry["size"]), 0
        while left:
            block = os.read(self._data, min(left, 1 << 20))
            if not block:
                return False
            found, left = zlib.crc32(block, found), left - len(block)
        return bool(found == entry["crc"])

    def _truncate(self, place: int, end: int) -> None:
        """Truncate the data to `place` bytes and the journal to `end` bytes, and seek to their ends. Raises
        `FileFailed`."""
        for handle, size in ((self._notes, end), (self._data, place)):
            if os.fstat(handle).st_size != size:
                self._call("cut", os.ftruncate, handle, size)
            os.lseek(handle, size, os.SEEK_SET)

    def _append_entry(self, entry: Json) -> None:
        """Append a line to the journal, without syncing. Raises `FileFailed`."""
        self._call("write", write_all, self._notes, encode_row(entry))

    def _call(self, name: str, do: Any, *given: Any) -> Any:
        """Return `do(*given)`. If that raises `OSError` or `ValueError`, raise a `FileFailed` that names the final file
        and the step, which is `name`, such as "write"."""
        try:
            return do(*given)
        except (OSError, ValueError) as error:
            raise FileFailed(failed(name, self.path, error)) from error
