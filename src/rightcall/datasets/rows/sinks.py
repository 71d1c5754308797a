"""Sinks: where the lines of parts go, in order.

    with sink_to("out.jsonl", REPLIES, resume=True) as sink:
        map_rows(sources, work, sink)

`StreamSink` passes lines on. `FileSink` and `RemoteSink` make a file that appears when it is complete; what an
interrupted run had written stays beside it, and a run with `resume` continues it. `RowSpool` holds what the same run
reads again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from rightcall.datasets.rows.stores import RemoteStore
from rightcall.errors import FileFailed, NotOurs, WorkerLost
from rightcall.storage.draft import write_all
from rightcall.storage.file_kinds import FileKind, failed
from rightcall.storage.parted_file import PartedFile
from rightcall.storage.streams import is_stream, open_stream
from rightcall.types import Json


class Sink(Protocol):
    """Where the lines of parts go, in order."""

    def begin(self, run: str) -> list[Json]:
        """Return the notes of the parts that an earlier run with the same key has written; they are not made again."""
        ...

    def write(self, data: bytes, note: Json) -> None:
        """Write the lines of one part, and the note that a resumed run needs of it."""
        ...

    def finish(self) -> None:
        """Complete the output: all parts have been written."""
        ...


class StreamSink:
    """Standard output, or another place that is no file."""

    def __init__(self, path: str = "/dev/stdout") -> None:
        self.path, self._handle = path, -1

    def begin(self, run: str) -> list[Json]:
        """Open the stream. Return no notes: a stream cannot be resumed."""
        self._handle = open_stream(self.path)
        return []

    def write(self, data: bytes, note: Json) -> None:
        """Write the lines of a part; the note is not kept. Raises `FileFailed`, and `BrokenPipeError` if the reader has
        exited."""
        try:
            write_all(self._handle, data)
        except BrokenPipeError:  # the reader has exited, which the command handles
            raise
        except OSError as error:
            raise FileFailed(failed("write", self.path, error)) from error

    def finish(self) -> None:
        """Do nothing: each write is complete."""

    def discard(self) -> None:
        """Do nothing: what was written to a stream cannot be taken back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle >= 0:
            os.close(self._handle)


class FileSink:
    """A file of this machine, written beside its place, that appears when it is complete."""

    def __init__(
        self,
        path: str | Path,
        kind: FileKind,
        *,
        sources: Iterable[str | Path] = (),
        resume: bool = False,
        force: bool = False,
    ) -> None:
        self._file, self._resume = PartedFile(path, kind, sources=sources, force=force), resume

    def begin(self, run: str) -> list[Json]:
        """Open the unfinished file and return the notes of the parts that are kept: those of an earlier run with the
        key `run`, if this run resumes. Otherwise there are none, and earlier parts are discarded."""
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        """Append the lines of a part and its note."""
        self._file.append(data, note)

    def finish(self) -> None:
        """Rename the complete file to its final name."""
        self._file.publish()

    def discard(self) -> None:
        """Delete the incomplete file."""
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


# -- files of remote stores --------------------------------------------------------------------------------------------

_UPLOAD_PIECE = 8 << 20


class RemoteSink(FileSink):
    """A file of a store, such as `s3://bucket/out.jsonl`: made on this machine, and sent when it is complete.

    Until then it is in `$XDG_STATE_HOME/rightcall/unfinished`. An existing file is replaced only with `force`.
    """

    def __init__(self, path: str, kind: FileKind, *, resume: bool = False, force: bool = False) -> None:
        super().__init__(unfinished_path(path), kind, resume=resume, force=True)
        self._path, self._force = path, force

    def begin(self, run: str) -> list[Json]:
        """Open the unfinished local file, and return the notes of the parts that are kept if the run is resumed. Raises
        `NotOurs` if the file exists in the store, unless `force`."""
        refuse_existing(self._path, force=self._force)
        return super().begin(run)

    def finish(self) -> None:
        """Send the complete file to the store and delete it here. Raises `FileFailed`."""
        _upload(self._file.part, self._path)
        self._file.publish()
        self._file.path.unlink()


def refuse_existing(path: str, *, force: bool) -> None:
    """Raise `NotOurs` if the file exists in a store, unless `force`: its kind cannot be determined without reading
    it."""
    if not force and RemoteStore().exists(path):
        raise NotOurs(f"{path} already exists; name another file, or --force (force=True) to replace it")


def move_to_store(made: Path, path: str) -> None:
    """Send a file of this machine to the name `path` in a store, and then delete it here. Raises `FileFailed`."""
    _upload(made, path)
    made.unlink()


def _upload(made: Path, path: str) -> None:
    """Copy a file of this machine to the name `path` in a store, in pieces, so that memory does not grow with it.
    Raises `FileFailed`."""
    with RemoteStore().writing(path) as write, made.open("rb") as file:
        while data := file.read(_UPLOAD_PIECE):
            write(data)


def unfinished_path(path: str) -> Path:
    """Return where the file that will have the name `path` in a store is kept on this machine until it is sent. It
    depends on that name alone."""
    home = os.environ.get("XDG_STATE_HOME", "")
    folder = (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state") / "rightcall" / "unfinished"
    return folder / f"{blake2b(path.encode(), digest_size=12).hexdigest()}.jsonl"


def sink_to(
    path: str | None,
    kind: FileKind,
    *,
    sources: Iterable[str | Path] = (),
    resume: bool = False,
    force: bool = False,
) -> StreamSink | FileSink:
    """Return the sink for a file of this machine, a file of a store (`s3://...`), or a stream; None is standard
    output."""
    if path is None or is_stream(path):
        return StreamSink(path or "/dev/stdout")
    if "://" in path:
        return RemoteSink(path, kind, resume=resume, force=force)
    return FileSink(path, kind, sources=sources, resume=resume, force=force)


# -- intermediate files ------------------------------------------------------------------------------------------------

NO_KEY = bytes(16)
_HEAD = Struct("<B16sQQ")  # tag, key, line, size of the data


class RowFrame(NamedTuple):
    """What work wrote about one row: a `tag` and a `key` with a meaning of the work, the place of the row (`source`,
    `line` from 1), the data, and its `offset` in the spool."""

    tag: int
    key: bytes
    source: int
    line: int
    offset: int
    data: bytes


def pack_frame(tag: int, line: int, data: bytes, key: bytes = NO_KEY) -> bytes:
    """Return a frame, encoded as `RowSpool.frames` decodes it. `line` is what `RowBatch.line` returns for its row."""
    return _HEAD.pack(tag, key, line, len(data)) + data


class RowSpool:
    """A sink whose content the same run reads again.

        with RowSpool("out.jsonl", "prints", resume=True) as spool:
            map_rows(sources, work, spool)
            for frame in spool.frames(): ...

    Its file is beside the output; that of a stream is in the folder for temporary files. It is removed when the block
    ends, except after an interrupted run. `run` is the key that `begin` received.
    """

    run = ""

    def __init__(self, output: str | Path, what: str, *, resume: bool) -> None:
        name, self._scratch = str(output), ""
        if is_stream(name):
            self._scratch = make_scratch_folder()
            place = Path(self._scratch, "rows")
        else:
            place = unfinished_path(name) if "://" in name else Path(name)
        kind = FileKind(f"file of {what}", lambda found: False)
        self._file, self._resume = PartedFile(place.with_name(f"{place.name}.{what}"), kind), resume
        self._guard = discarding_on_error(self)

    def begin(self, run: str) -> list[Json]:
        """Open the file and return the notes of the parts that are kept, if the run is resumed and had this key. The
        key is kept as the attribute `run`."""
        self.run = run
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        """Append the data of a part, and its note."""
        self._file.append(data, note)

    def finish(self) -> None:
        """Do nothing: the file is read next, and never published."""

    def discard(self) -> None:
        """Delete the file."""
        self._file.discard()

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes in pieces of any size."""
        return self._file.pieces()

    def parts(self) -> Iterator[tuple[bytes, Json]]:
        """Yield the bytes and the note of each part."""
        return ((data, note) for _, data, note in self._file.parts())

    def frames(self) -> Iterator[RowFrame]:
        """Yield each frame of the spool, in order, with the line number of its row in its source."""
        for start, data, note in self._file.parts():
            at = 0
            while at < len(data):
                tag, key, line, size = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                yield RowFrame(tag, key, note["source"], note["before"] + line, start + at, data[at : at + size])
                at += size

    def read(self, offset: int, size: int) -> bytes:
        """Return the data of a frame whose offset is known."""
        return self._file.at(offset, size)

    def __enter__(self) -> RowSpool:
        self._guard.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file, and delete it except after Ctrl-C and lost workers, when a run with `resume` can continue
        it."""
        try:
            self._guard.__exit__(kind, error, at)
            if error is None:
                self.discard()
        finally:
            self._file.close()
            if self._scratch:
                shutil.rmtree(self._scratch, ignore_errors=True)


def make_scratch_folder() -> str:
    """Create a folder for temporary files and return its path. Raises `FileFailed`."""
    try:
        return tempfile.mkdtemp(prefix="rightcall-")
    except OSError as error:
        raise FileFailed(f"cannot make a scratch folder: {error.strerror}; set TMPDIR") from error


class Discardable(Protocol):
    def discard(self) -> None: ...


@contextmanager
def discarding_on_error(made: Discardable) -> Iterator[None]:
    """Discard unfinished output when the block raises, except when a run with `resume` can continue it: after Ctrl-C
    and after lost workers."""
    try:
        yield
    except (KeyboardInterrupt, WorkerLost):
        raise
    except BaseException:
        made.discard()
        raise
