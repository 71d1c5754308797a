"""Files that appear complete or not at all.

with WholeFile("train.jsonl", ROWS) as out:    # a hidden file beside it, renamed when the block ends without an error
    out.write(row)

with Outputs(train, validation) as outputs:    # several: none is renamed before all are complete and on disk
    outputs.open()
    train.write(row)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rightcall.errors import CallerError, FileFailed
from rightcall.storage.draft import Draft, delete_stale_drafts
from rightcall.storage.file_kinds import FileKind, existing, failed
from rightcall.storage.jsonl import encode_row, ensure_parent_dir
from rightcall.storage.streams import is_stream, open_stream
from rightcall.types import Json

PRIVATE, PUBLIC = 0o600, 0o644


class WholeFile:
    """A file that appears complete or not at all. After an error or Ctrl-C, the old file is unchanged.

    It replaces a file of its own kind or an empty file; anything else only with `force`, and otherwise `NotOurs` is
    raised. It never replaces one of its `sources`: the output of a model cannot be produced again. Without a mode, that
    of the old file is kept; a new file is readable by its owner only."""

    def __init__(
        self,
        path: str | Path,
        kind: FileKind,
        *,
        sources: Iterable[str | Path] = (),
        mode: int | None = None,
        force: bool = False,
    ) -> None:
        self.path, self.kind, self.rows = Path(path), kind, 0
        self._sources, self._mode, self._force = sources, mode, force
        self._folder = -1
        self._draft: Draft | None = None
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Create the hidden file to write to, and the folder above it; a stream is opened itself. Raises `FileFailed`,
        and what `check` raises."""
        if is_stream(self.path):
            self._file = self._open_buffered(self._call("open", open_stream, self.path))
            return
        self.check()
        ensure_parent_dir(self.path)
        self._folder = self._call("open", os.open, self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            before = self.check()
            self._call("open", delete_stale_drafts, self._folder)
            mode = PRIVATE if self._mode is None and before is None else self._mode
            like = before if mode is None else None
            self._draft = self._call("open", lambda: Draft(self._folder, self.path.name, mode=mode, like=like))
            self._file = self._open_buffered(os.dup(self._draft.handle))
        except BaseException:
            self.discard()
            raise

    def check(self) -> os.stat_result | None:
        """Return the status of the file to be replaced; None if there is none, or the path is a stream. Raises
        `NotOurs` if it must not be replaced, and `CallerError` if it is a source."""
        if is_stream(self.path):
            return None
        refuse_source_as_output(self.path, self._sources)
        folder = self._folder if self._folder >= 0 else None
        return existing(self.path, self.kind, force=self._force, folder=folder)

    def write(self, row: Json) -> None:
        """Append a row as a JSON line and count it in `rows`. Raises `FileFailed`."""
        self.write_bytes(encode_row(row))
        self.rows += 1

    def write_bytes(self, data: bytes) -> None:
        """Append bytes. Raises `FileFailed`."""
        self._call("write", self.file.write, data)

    def write_json(self, value: Json) -> None:
        """Append a value as indented JSON with a newline. Raises `FileFailed`."""
        self.write_bytes((json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode())

    @property
    def file(self) -> IO[bytes]:
        """Return the open file object for writing bytes; only valid between `open` and `discard`."""
        assert self._file is not None, "outside its with block"
        return self._file

    def sha256(self) -> str:
        """Return the hexadecimal SHA-256 of all that has been written so far. Must not be called for a stream. Raises
        `FileFailed`."""
        self._call("write", self.file.flush)
        found, place = sha256(), 0
        assert self._draft is not None, "a stream cannot be read again"
        while data := os.pread(self._draft.handle, 1 << 16, place):
            found.update(data)
            place += len(data)
        return found.hexdigest()

    # -- ending --------------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Flush the buffer and sync the hidden file to disk, without renaming it yet; a stream is only flushed. Raises
        `FileFailed`."""
        self._call("write", self.file.flush)
        if self._draft is not None:
            self._call("write", os.fsync, self._draft.handle)

    def publish(self) -> None:
        """Sync the hidden file and rename it to its final name; nothing happens for a stream. Raises `FileFailed`."""
        if self._draft is not None:
            self._call("write", self._draft.publish)

    def discard(self) -> None:
        """Delete the hidden file unless it was published, and close all handles."""
        if self._file is not None:
            with suppress(OSError):  # a full disk has been reported already
                self._file.close()
        if self._draft is not None:
            self._draft.discard()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def __enter__(self) -> WholeFile:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _publish_or_discard([self], error)

    def _open_buffered(self, handle: int) -> IO[bytes]:
        """Return a file object that writes bytes to the handle through a buffer of 1 MiB, and closes the handle."""
        return os.fdopen(handle, "wb", 1 << 20)

    def _call(self, name: str, do: Any, *given: Any) -> Any:
        """Return `do(*given)`. If that raises `OSError` or `ValueError`, raise a `FileFailed` that names the file and
        the step, which is `name`, such as "write"; `BrokenPipeError` is raised unchanged."""
        try:
            return do(*given)
        except BrokenPipeError:  # of a stream: its reader has exited, which ends the whole command
            raise
        except (OSError, ValueError) as error:
            raise FileFailed(failed(name, self.path, error)) from error


class Outputs:
    """Several files that appear together, in this order: none before all are complete and on disk.

    Files that must not be replaced are refused when the block begins; folders and files are created by `open`."""

    def __init__(self, *outputs: WholeFile) -> None:
        self._outputs = outputs

    def open(self) -> None:
        """Create the hidden files of all outputs, to be written to. Raises `FileFailed`, and what `WholeFile.check`
        raises."""
        for each in self._outputs:
            each.open()

    def __enter__(self) -> Outputs:
        for each in self._outputs:
            each.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _publish_or_discard(self._outputs, error)


def _publish_or_discard(outputs: Sequence[WholeFile], error: BaseException | None) -> None:
    """Sync and check all outputs, then publish them in order, and close them. With an `error`, or at the first failure,
    which is raised, discard those that are not published yet."""
    try:
        if error is None:
            for each in outputs:
                each.sync()
            for each in outputs:
                each.check()  # another program may have created the file meanwhile
            for each in outputs:
                each.publish()
    finally:
        for each in outputs:
            each.discard()


def refuse_source_as_output(path: Path, sources: Iterable[str | Path]) -> None:
    """Raise `CallerError` if the file to write at `path` exists and is one of the files to read, also under another
    name."""
    if any(path.exists() and Path(each).exists() and path.samefile(each) for each in sources):
        raise CallerError(f"{path} is an input of this command and would be overwritten; name another output file")
