"""Open files in one folder, and none outside it.

    root = Root("/home/me/project")
    with root.file(root.parts("src/main.py")) as handle: ...

A path is opened from the root's own handle, one folder at a time, and no link is followed. Therefore neither `..`, nor
a link, nor a folder that is replaced by a link meanwhile leads outside. Only regular files are opened.
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
# Not real files: a read may never end, and a write changes the machine.
_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")


class Root:
    """A folder that all paths are relative to. Raises `ToolError` for a path outside it.

    Code that changes a file in it holds the lock `changing`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(os.fspath(path))
        self._given = os.path.abspath(os.fspath(path))
        if not os.path.isdir(self.path):
            raise CallerError(f"the workspace {self._given!r} is not a folder; create it first, or name another")
        self._system_devices = _find_system_devices()
        self.changing = threading.Lock()

    def parts(self, path: str) -> list[str]:
        """Return the names of the folders and the file on a path, relative to the root, with `..` and a leading `~`
        resolved; an empty list for the root itself. Links are not resolved, and nothing need exist. Raises `ToolError`
        for a path outside the root and for an invalid one."""
        if "\0" in path or len(path) > _LONGEST or not _is_encodable(path):
            cause = "it contains a null character or a lone surrogate, or is too long"
            raise ToolError(f"{_quote_path(path)} is not a valid path: {cause}")
        path = expand_home(path)
        for root in (self.path, self._given):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                path = path[len(root) :]
                break
        else:
            if path.startswith("/"):
                raise ToolError(
                    f"{_quote_path(path)} is outside the workspace {self.path}; only files in it can be reached"
                )
        return _resolve_dots(path, self.path)

    @contextmanager
    def folder(self, parts: list[str], *, make: bool = False) -> Iterator[int]:
        """Open the folder with these names below the root and yield its handle, which is closed at the end. With
        `make`, missing folders are created. Raises `ToolError`."""
        at = _open(self.path, _FOLDER, None)
        try:
            for name in parts:
                self._refuse_system_folder(at)
                if make:
                    _make_folder(name, at)
                inner = _open(name, _FOLDER, at)
                os.close(at)
                at = inner
            self._refuse_system_folder(at)
            yield at
        finally:
            os.close(at)

    def _refuse_system_folder(self, folder: int) -> None:
        """Raise `ToolError` for an open folder in /proc, /sys or /dev. Every folder on a path is checked, because
        other file systems may be mounted below."""
        if os.fstat(folder).st_dev in self._system_devices:
            raise ToolError("that folder is part of /proc, /sys or /dev, not of the workspace")

    @contextmanager
    def file(self, parts: list[str]) -> Iterator[int]:
        """Open the regular file with these names below the root for reading and yield its handle, which is closed at
        the end. Raises `ToolError` if there is none, and for a folder, a link or a device."""
        if not parts:
            raise ToolError("the workspace itself is a folder; name a file in it")
        with self.folder(parts[:-1]) as folder:
            handle = _open(parts[-1], os.O_RDONLY | _FILE, folder)
            try:
                _require_regular(os.fstat(handle), parts)
                yield handle
            finally:
                os.close(handle)

    def existing(self, name: str, folder: int, parts: list[str]) -> os.stat_result | None:
        """Return the status of the regular file `name` in the open folder; None if there is no such entry. Raises
        `ToolError` for an entry of another type, such as a link. `parts` is its path in messages."""
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"cannot open {_quote_path(name)}: {error_reason(error)}") from error
        _require_regular(found, parts)
        return found


def expand_home(path: str) -> str:
    """Return a path with `~` or `$HOME` at its start replaced by the user's home folder; other paths unchanged."""
    for prefix in ("~", "$HOME"):
        if path == prefix or path.startswith(prefix + "/"):
            return os.path.expanduser("~") + path[len(prefix) :]
    return path


def error_reason(error: OSError) -> str:
    """Return the cause of an operating system error as a clause for the model."""
    return _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())


_REASONS = {
    errno.ENOENT: "it does not exist",
    errno.ELOOP: "it is a link, and links are not followed",
    errno.ENOTDIR: "it is no folder, or a link to one, and links are not followed",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.ENXIO: "it is no regular file",
}


def _resolve_dots(path: str, root: str) -> list[str]:
    """Return the names of a path relative to the root, without empty names and `.`, and with `..` resolved. Raises
    `ToolError` if `..` leads out of the root."""
    names: list[str] = []
    for name in path.split("/"):
        if name in ("", "."):
            continue
        if name != "..":
            names.append(name)
        elif names:
            names.pop()
        else:
            raise ToolError(f"{_quote_path(path)} leads out of the workspace {root}; only files in it can be reached")
    return names


def _is_encodable(path: str) -> bool:
    """Return whether a path can be passed to the operating system: it has no lone surrogate that stands for no byte."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _open(name: str, flags: int, folder: int | None) -> int:
    """Open a name in an open folder and return its handle. Raises `ToolError`."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"cannot open {_quote_path(name)}: {error_reason(error)}") from error


def _make_folder(name: str, folder: int) -> None:
    """Create a folder with this name in an open folder; do nothing if an entry of this name exists, whatever it is.
    Raises `ToolError`."""
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass  # opening it fails if it is no folder
    except OSError as error:
        raise ToolError(f"cannot make the folder {_quote_path(name)}: {error_reason(error)}") from error


def _require_regular(found: os.stat_result, parts: list[str]) -> None:
    """Raise `ToolError` unless this is the status of a regular file. `parts` is its path in the message."""
    if stat.S_ISREG(found.st_mode):
        return
    kind = next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "something else")
    raise ToolError(f"{_quote_path('/'.join(parts))} is {kind}, not a regular file")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link (links are not followed)"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _find_system_devices() -> frozenset[int]:
    """Return the device numbers of the mounted /proc, /sys and /dev; in some containers they are not mounted."""
    plain = os.stat("/").st_dev
    found = {os.stat(path).st_dev for path in _SYSTEM_FOLDERS if os.path.isdir(path)}
    return frozenset(found - {plain})


def _quote_path(path: str) -> str:
    """Return a path in quotes and ASCII for a message, cut to 200 characters."""
    return ascii(path) if len(path) <= 200 else ascii(path[:200]) + "..."
