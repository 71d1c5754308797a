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
        self._draft_name, self.handle = _create_locked_file(folder, 0o666 if mode is None and like is None else 0o600)
        try:
            if mode is not None:
                os.fchmod(self.handle, mode)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        """Sync the draft to disk and rename it to its final name, which replaces an existing file, with the owner and
        mode of `like` if given. The handle stays open. Raises `OSError`."""
        if self._like is not None:
            keep_owner_and_mode(self.handle, self._like)
        os.fsync(self.handle)
        os.rename(self._draft_name, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._draft_name = ""
        os.fsync(self._folder)

    def discard(self) -> None:
        """Delete the draft unless it was published, and close its handle. Must be called in both cases; a second
        call does nothing."""
        if self._draft_name:
            with suppress(FileNotFoundError):
                os.unlink(self._draft_name, dir_fd=self._folder)
            self._draft_name = ""
        if self.handle >= 0:
            handle, self.handle = self.handle, -1
            with suppress(OSError):  # a full disk has been reported already
                os.close(handle)


def _create_locked_file(folder: int, mode: int) -> tuple[str, int]:
    """Create a file with a random name in the open folder and return its name and handle. It is locked exclusively, so
    that `delete_stale_drafts` does not delete it. Raises `OSError`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        name = f".{secrets.token_hex(8)}.rightcall"
        handle = os.open(name, flags, mode, dir_fd=folder)
        with suppress(OSError):  # on a file system without locks, stale drafts are not deleted either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return name, handle
        os.close(handle)  # `delete_stale_drafts` of another process deleted it before it was locked


def delete_stale_drafts(folder: int) -> None:
    """Delete the draft files in an open folder that no running process has locked: processes that were killed left
    them. Errors of single files are ignored; raises `OSError` if the folder cannot be listed."""
    for name in filter(_NAME.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data` to an open file: one `os.write` may write only a part. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def keep_owner_and_mode(handle: int, before: os.stat_result) -> None:
    """Set the owner and mode of an open file to those in `before`, the status of the file that it replaces. If the
    owner may not be changed, the mode is set without setuid and setgid. Raises `OSError`."""
    own = os.fstat(handle)
    mode = stat.S_IMODE(before.st_mode)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            mode &= 0o777  # the file changes its owner, so it must not keep setuid or setgid
    os.fchmod(handle, mode)
