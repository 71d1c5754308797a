"""A file in a store: made on this machine part by part, so that it can be gone on with, and sent when it is whole."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from rightcall.datasets.rows.remote_store import RemoteStore
from rightcall.errors import NotOurs
from rightcall.storage.file_kinds import FileKind
from rightcall.storage.parted_file import PartedFile
from rightcall.types import Json

_PIECE = 8 << 20


class RemoteSink:
    """As `FileSink`, for a name such as `s3://bucket/out.jsonl`. A file that is there is replaced if that is forced.

    What is not sent yet lies in `$XDG_STATE_HOME/rightcall/unfinished`.
    """

    def __init__(self, path: str, kind: FileKind, *, resume: bool = False, force: bool = False) -> None:
        self._path, self._resume, self._force = path, resume, force
        self._file = PartedFile(unfinished(path), kind, force=True)

    def begin(self, run: str) -> list[Json]:
        refuse_existing(self._path, force=self._force)
        return self._file.begin(run, resume=self._resume)

    def write(self, data: bytes, note: Json) -> None:
        self._file.append(data, note)

    def finish(self) -> None:
        _sent(self._file.part, self._path)
        self._file.publish()
        self._file.path.unlink()

    def discard(self) -> None:
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


def refuse_existing(path: str, *, force: bool) -> None:
    """Raises `NotOurs` for a file that is there; what it is cannot be told without reading it."""
    if not force and RemoteStore().exists(path):
        raise NotOurs(f"{path} is there already; name another file, or --force (force=True) to replace it")


def send(made: Path, path: str) -> None:
    """A file of this machine to its place in a store; it is gone from here then."""
    _sent(made, path)
    made.unlink()


def _sent(made: Path, path: str) -> None:
    """In pieces, so that memory does not grow with the file."""
    with RemoteStore().writing(path) as write, made.open("rb") as file:
        while data := file.read(_PIECE):
            write(data)


def unfinished(path: str) -> Path:
    """Where a file lies until it is sent."""
    told = os.environ.get("XDG_STATE_HOME", "")
    folder = (Path(told) if os.path.isabs(told) else Path.home() / ".local" / "state") / "rightcall" / "unfinished"
    return folder / f"{blake2b(path.encode(), digest_size=12).hexdigest()}.jsonl"
