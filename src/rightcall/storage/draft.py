"""A new file beside an old one, moved into its place when it is whole: others see the old one or the new one.

draft = Draft(folder, "train.jsonl", mode=0o600)
os.write(draft.handle, data)
draft.publish()         # or draft.discard()
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from contextlib import suppress

_NAME = re.compile(r"\.[0-9a-f]{16}\.rightcall")


class Draft:
    """A file with a name that nobody can know beforehand, in the folder that is open as `folder`.

    A given `mode` holds whatever the mask of the process; with `like`, the file that it takes the place of, its owner
    and mode are kept; with neither, it is as new files of the process are.
    """

    def __init__(self, folder: int, name: str, *, mode: int | None = None, like: os.stat_result | None = None) -> None:
        self._folder, self._name, self._like = folder, name, like
        # What few may read must not be there for all to read until it has its own mode.
        self._beside, self.handle = _make(folder, 0o666 if mode is None and like is None else 0o600)
        try:
            if mode is not None:
                os.fchmod(self.handle, mode)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        """Takes its place, on disk. The handle stays open."""
        if self._like is not None:
            keep_owner_and_mode(self.handle, self._like)
        os.fsync(self.handle)
        os.rename(self._beside, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._beside = ""
        os.fsync(self._folder)

    def discard(self) -> None:
        """Nothing is left of it, but what was published; to be called in either case."""
        if self._beside:
            with suppress(FileNotFoundError):
                os.unlink(self._beside, dir_fd=self._folder)
            self._beside = ""
        if self.handle >= 0:
            handle, self.handle = self.handle, -1
            with suppress(OSError):  # a disk that is full has been told of already
                os.close(handle)


def _make(folder: int, mode: int) -> tuple[str, int]:
    """The name and the handle of a new file. Whoever makes one holds a lock on it, so that `sweep` leaves it alone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        name = f".{secrets.token_hex(8)}.rightcall"
        handle = os.open(name, flags, mode, dir_fd=folder)
        with suppress(OSError):  # a disk that knows no locks is not swept either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return name, handle
        os.close(handle)  # swept before it was locked


def sweep(folder: int) -> None:
    """Throws away what processes that were killed have left in a folder."""
    for name in filter(_NAME.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Every byte: a write may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def keep_owner_and_mode(handle: int, before: os.stat_result) -> None:
    own = os.fstat(handle)
    mode = stat.S_IMODE(before.st_mode)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            mode &= 0o777  # somebody else's file: it becomes ours, and so must not run as theirs
    os.fchmod(handle, mode)
