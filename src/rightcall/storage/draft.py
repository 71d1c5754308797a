"""A new file beside the old one, renamed when it is complete: readers see the old file or the new one.

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
    """A new file with an unpredictable name in the folder that is open as `folder`.

    A given `mode` is set regardless of the umask. With `like`, the file to be replaced, its owner and mode are kept.
    Without both, the file has the default mode of the process."""

    def __init__(self, folder: int, name: str, *, mode: int | None = None, like: os.stat_result | None = None) -> None:
        self._folder, self._name, self._like = folder, name, like
        # A private file must not be readable by everyone before it has its final mode.
        self._beside, self.handle = _make(folder, 0o666 if mode is None and like is None else 0o600)
        try:
            if mode is not None:
                os.fchmod(self.handle, mode)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        """Sync the file and rename it to its final name. The handle stays open."""
        if self._like is not None:
            keep_owner_and_mode(self.handle, self._like)
        os.fsync(self.handle)
        os.rename(self._beside, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._beside = ""
        os.fsync(self._folder)

    def discard(self) -> None:
        """Delete the draft unless it was published, and close its handle. Must be called in both cases."""
        if self._beside:
            with suppress(FileNotFoundError):
                os.unlink(self._beside, dir_fd=self._folder)
            self._beside = ""
        if self.handle >= 0:
            handle, self.handle = self.handle, -1
            with suppress(OSError):  # a full disk has been reported already
                os.close(handle)


def _make(folder: int, mode: int) -> tuple[str, int]:
    """Create a file and return its name and handle. The creator holds a lock on it, so that `sweep` does not delete
    it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        name = f".{secrets.token_hex(8)}.rightcall"
        handle = os.open(name, flags, mode, dir_fd=folder)
        with suppress(OSError):  # a file system without locks is not swept either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return name, handle
        os.close(handle)  # swept before it was locked


def sweep(folder: int) -> None:
    """Delete the drafts that killed processes left in a folder."""
    for name in filter(_NAME.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`: one `os.write` may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def keep_owner_and_mode(handle: int, before: os.stat_result) -> None:
    """Set the owner and mode of an open file to those of the file that it replaces."""
    own = os.fstat(handle)
    mode = stat.S_IMODE(before.st_mode)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            mode &= 0o777  # the file changes its owner, so it must not keep setuid or setgid
    os.fchmod(handle, mode)
