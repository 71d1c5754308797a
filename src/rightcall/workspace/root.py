"""One folder, and nothing outside it.

    root = Root("/home/me/project")
    with root.file(root.parts("src/main.py")) as handle: ...

A path is walked from the root's own handle, one folder at a time, and no link is followed on the way or at its end. So
neither `..`, nor a link, nor a folder that is swapped for a link meanwhile leads out. Only regular files are opened.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rightcall.errors import CallerError, ToolError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO must not make the open wait
_LONGEST = 4096
# Their files are no files: reading one may wait for ever, and writing one changes the machine.
_MACHINE = ("/proc", "/sys", "/dev")


class Root:
    """A folder that paths are taken to be in. Raises `ToolError` for a path that is not. Who changes a file in it holds
    `changing` meanwhile."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(os.fspath(path))
        self._given = os.path.abspath(os.fspath(path))
        if not os.path.isdir(self.path):
            raise CallerError(f"the workspace {self._given!r} is no folder; make it first, or name another")
        self._machine = _devices_of_the_machine()
        self.changing = threading.Lock()

    def parts(self, path: str) -> list[str]:
        """The names that lead from the root to there. An absolute path must lie inside it."""
        if "\0" in path or len(path) > _LONGEST or not _is_whole(path):
            cause = "it holds a null character, half a character, or is too long"
            raise ToolError(f"{_shown(path)} is no path: {cause}")
        path = expanded(path)
        for root in (self.path, self._given):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                path = path[len(root) :]
                break
        else:
            if path.startswith("/"):
                raise ToolError(f"{_shown(path)} is outside the workspace {self.path}; only files in it can be reached")
        return _names(path, self.path)

    @contextmanager
    def folder(self, parts: list[str], *, make: bool = False) -> Iterator[int]:
        """A handle of that folder. `make` makes the folders that are missing."""
        at = _open(self.path, _FOLDER, None)
        try:
            for name in parts:
                self._must_not_be_the_machine(at)
                if make:
                    _make(name, at)
                inner = _open(name, _FOLDER, at)
                os.close(at)
                at = inner
            self._must_not_be_the_machine(at)
            yield at
        finally:
            os.close(at)

    def _must_not_be_the_machine(self, folder: int) -> None:
        """Asked at every step: below /sys and /dev other file systems are mounted."""
        if os.fstat(folder).st_dev in self._machine:
            raise ToolError("that folder belongs to the machine (/proc, /sys or /dev), not to the workspace")

    @contextmanager
    def file(self, parts: list[str]) -> Iterator[int]:
        """A handle to read that file by."""
        if not parts:
            raise ToolError("the workspace itself is a folder; name a file in it")
        with self.folder(parts[:-1]) as folder:
            handle = _open(parts[-1], os.O_RDONLY | _FILE, folder)
            try:
                _must_be_regular(os.fstat(handle), parts)
                yield handle
            finally:
                os.close(handle)

    def existing(self, name: str, folder: int, parts: list[str]) -> os.stat_result | None:
        """What stands there now, which must be a regular file; None for nothing."""
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"cannot open {_shown(name)}: {reason(error)}") from error
        _must_be_regular(found, parts)
        return found


def expanded(path: str) -> str:
    """`~` and `$HOME` at the beginning of a path, and nothing else."""
    for sign in ("~", "$HOME"):
        if path == sign or path.startswith(sign + "/"):
            return os.path.expanduser("~") + path[len(sign) :]
    return path


def reason(error: OSError) -> str:
    """What went wrong, in words for the model."""
    return _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())


_REASONS = {
    errno.ENOENT: "it does not exist",
    errno.ELOOP: "it is a link, and links are not followed",
    errno.ENOTDIR: "it is no folder, or a link to one, and links are not followed",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.ENXIO: "it is no regular file",
}


def _names(path: str, root: str) -> list[str]:
    names: list[str] = []
    for name in path.split("/"):
        if name in ("", "."):
            continue
        if name != "..":
            names.append(name)
        elif names:
            names.pop()
        else:
            raise ToolError(f"{_shown(path)} leads out of the workspace {root}; only files in it can be reached")
    return names


def _is_whole(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _open(name: str, flags: int, folder: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"cannot open {_shown(name)}: {reason(error)}") from error


def _make(name: str, folder: int) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass  # opening it tells whether it is a folder
    except OSError as error:
        raise ToolError(f"cannot make the folder {_shown(name)}: {reason(error)}") from error


def _must_be_regular(found: os.stat_result, parts: list[str]) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kind = next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "something else")
    raise ToolError(f"{_shown('/'.join(parts))} is {kind}, not a regular file")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link (links are not followed)"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _devices_of_the_machine() -> frozenset[int]:
    """Where the machine's own file systems are mounted. In some containers they are not."""
    plain = os.stat("/").st_dev
    found = {os.stat(path).st_dev for path in _MACHINE if os.path.isdir(path)}
    return frozenset(found - {plain})


def _shown(path: str) -> str:
    return ascii(path) if len(path) <= 200 else ascii(path[:200]) + "..."
