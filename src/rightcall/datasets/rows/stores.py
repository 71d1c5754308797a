"""Stores: where files are read from and listed, on this machine or elsewhere.

    with open_source("logs.jsonl") as file: ...
    open_source("s3://logs/2026/replies.jsonl")

The text before `://` chooses the store; a name without it is a file of this machine. `s3://`, `gs://`, `abfs://` and
`hdfs://` go through pyarrow, other stores through fsspec. Credentials are configured as each store documents it.
`AWS_ENDPOINT_URL` names an S3-compatible store other than Amazon's.
"""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, BinaryIO, Protocol, TypeVar, cast

from rightcall.errors import CallerError, FileFailed
from rightcall.extras import require_extra

STDIN = "-"


class FileStore(Protocol):
    """A place of files. Each method takes a full name and raises `FileFailed` with the name and the reason."""

    def open(self, path: str) -> BinaryIO:
        """Open a file to be read from any position."""
        ...

    def size(self, path: str) -> int:
        """Return the size in bytes."""
        ...

    def stamp(self, path: str) -> str:
        """Return a text that changes when the file changes."""
        ...

    def time_ms(self, path: str) -> int | None:
        """Return the time of the last change, in milliseconds since 1970; None if it is unknown."""
        ...

    def matching(self, pattern: str) -> list[str]:
        """Return the names that match a glob, sorted; a name without wildcards is returned as it is."""
        ...


class LocalFiles:
    """Files of this machine, and standard input as `-`."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; `-` is standard input. Raises `FileFailed`."""
        if path == STDIN:
            return sys.stdin.buffer
        try:
            return open(path, "rb")
        except (OSError, ValueError) as error:
            raise read_failure(path, error) from error

    def size(self, path: str) -> int:
        """Return the size in bytes; 0 for standard input. Raises `FileFailed`."""
        return 0 if path == STDIN else self._stat(path).st_size

    def stamp(self, path: str) -> str:
        """Return size and time of change of a file as a text. Raises `FileFailed`."""
        found = self._stat(path)
        return f"{found.st_size}:{found.st_mtime_ns}"

    def time_ms(self, path: str) -> int | None:
        """Return the time of the last change, in milliseconds since 1970; None for standard input. Raises
        `FileFailed`."""
        return None if path == STDIN else self._stat(path).st_mtime_ns // 1_000_000

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a glob matches, sorted; the pattern itself if it is an existing name or has no
        wildcards."""
        if pattern == STDIN or os.path.lexists(pattern) or not glob.has_magic(pattern):
            return [pattern]
        return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))

    def _stat(self, path: str) -> os.stat_result:
        """Return the status of a file. Raises `FileFailed`."""
        try:
            return os.stat(path)
        except (OSError, ValueError) as error:
            raise read_failure(path, error) from error


_LOCAL_FILES = LocalFiles()


def store_of(path: str) -> FileStore:
    """Return the store of a file: a remote one for a name with `://`, else the files of this machine."""
    return RemoteStore() if "://" in path else _LOCAL_FILES


def absolute_name(path: str) -> str:
    """Return the absolute path of a file, with which a process in another folder finds it; the name of a file in a
    store unchanged."""
    return path if "://" in path else os.path.abspath(path)


def open_source(path: str) -> BinaryIO:
    """Open a file of any store for reading. Raises `FileFailed`."""
    return store_of(path).open(path)


def read_failure(path: str, error: Exception) -> FileFailed:
    """Return, without raising it, the error for a file that cannot be read: its name and the reason."""
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return FileFailed(f"cannot read {path}: {reason}")


# -- stores on other machines ------------------------------------------------------------------------------------------

_BUFFER = 1 << 20
_WILDCARDS = "*[?"
_Result = TypeVar("_Result")


class RemoteStore:
    """Any store with a scheme before `://`."""

    def open(self, path: str) -> BinaryIO:
        """Open a file to be read from any position, with a buffer. Raises `FileFailed`."""
        system, place = _resolve(path)
        return cast(BinaryIO, io.BufferedReader(_call_store("read", path, system.open_input_file, place), _BUFFER))

    def size(self, path: str) -> int:
        """Return the size in bytes. Raises `FileFailed` if there is no such file."""
        return int(self._info(path).size or 0)

    def stamp(self, path: str) -> str:
        """Return size and time of change of a file as a text. Raises `FileFailed`."""
        found = self._info(path)
        return f"{found.size}:{found.mtime_ns}"

    def time_ms(self, path: str) -> int | None:
        """Return the time of the last change, in milliseconds since 1970; None if it is unknown. Raises
        `FileFailed`."""
        changed = self._info(path).mtime_ns
        return None if changed is None else int(changed) // 1_000_000

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a glob matches, sorted; the pattern itself if it has no wildcards. Raises `FileFailed`
        if the store fails."""
        scheme, _, place = pattern.partition("://")
        if not _has_wildcard(place):
            return [pattern]
        parts = place.split("/")
        folder = "/".join(parts[: next(at for at, part in enumerate(parts) if _has_wildcard(part))])
        system, root = _resolve(f"{scheme}://{folder}")
        from pyarrow import fs  # type: ignore[import-untyped]

        listed = _call_store("list", pattern, system.get_file_info, fs.FileSelector(root, recursive=True))
        before = "" if root == folder and parts[0] else f"{parts[0]}/"  # only some stores repeat the host in a path
        names = [before + each.path.lstrip("/") for each in listed if each.is_file]
        return sorted([f"{scheme}://{name}" for name in names if matches_glob(name, place)])

    def exists(self, path: str) -> bool:
        """Return whether there is a file with this name."""
        system, place = _resolve(path)
        return bool(_call_store("read", path, system.get_file_info, place).is_file)

    @contextmanager
    def writing(self, path: str) -> Iterator[Callable[[bytes], None]]:
        """Yield a function that writes bytes to a file. The file appears when the block ends without an error, and not
        before. Raises `FileFailed`."""
        system, place = _resolve(path)
        file = _call_store("write", path, system.open_output_stream, place)
        try:
            yield lambda data: _call_store("write", path, file.write, data)
        except BaseException:
            with suppress(AttributeError, OSError):  # only some stores can abandon a file
                file.abort()
            raise
        _call_store("write", path, file.close)

    def _info(self, path: str) -> Any:
        """Return pyarrow's information about a file. Raises `FileFailed` if there is none."""
        system, place = _resolve(path)
        found = _call_store("read", path, system.get_file_info, place)
        if not found.is_file:
            raise FileFailed(f"cannot read {path}: there is no such file; name an existing one")
        return found


def _has_wildcard(name: str) -> bool:
    """Return whether a name contains `*`, `[` or `?`."""
    return any(sign in name for sign in _WILDCARDS)


def matches_glob(name: str, pattern: str) -> bool:
    """Return whether a name matches a glob, folder by folder: `*` matches within a name, `**` any number of folders."""
    parts = pattern.split("/")
    reached = _extend_over_double_stars({0}, parts)  # positions of the pattern that the name can have reached so far
    for part in name.split("/"):
        stays = {at for at in reached if at < len(parts) and parts[at] == "**"}
        moves = {at + 1 for at in reached - stays if at < len(parts) and fnmatchcase(part, parts[at])}
        reached = _extend_over_double_stars(stays | moves, parts)
    return len(parts) in reached


def _extend_over_double_stars(reached: set[int], parts: list[str]) -> set[int]:
    """Return these positions in the pattern and, for each `**` at one of them, the position after it, because `**` also
    matches no folder."""
    found = set(reached)
    for at, part in enumerate(parts):
        if at in found and part == "**":
            found.add(at + 1)
    return found


@lru_cache(64)
def _connect(scheme: str, host: str) -> tuple[Any, bool]:
    """Return the file system of a scheme and host, and whether its names begin with the host. Raises `CallerError` for
    an unknown scheme, and `MissingExtra` without pyarrow. Cached."""
    require_extra("parquet")
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if scheme == "s3" and endpoint:
        protocol, _, address = endpoint.partition("://")
        return fs.S3FileSystem(endpoint_override=address.rstrip("/"), scheme=protocol), True
    try:
        found, place = fs.FileSystem.from_uri(f"{scheme}://{host}/")
        return found, place.strip("/") == host
    except (ValueError, NotImplementedError):
        pass
    try:
        import fsspec  # type: ignore[import-untyped]

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme))), True
    except (ImportError, ValueError) as error:
        raise CallerError(
            f"files of {scheme}:// cannot be reached: {error}; install the package that fsspec needs for it"
        ) from error


def _resolve(path: str) -> tuple[Any, str]:
    """Return the file system of a file in a store, and the file's name in it. Raises `FileFailed` if the store cannot
    be opened, `CallerError` for an unknown scheme."""
    scheme, _, place = path.partition("://")
    host, _, rest = place.partition("/")
    system, has_host = _call_store("open", path, _connect, scheme, host)
    return system, place if has_host else f"/{rest}"


def _call_store(what: str, path: str, operation: Callable[..., _Result], *arguments: Any) -> _Result:
    """Return the result of an operation of a store with these arguments. Its errors are raised as `FileFailed`; `what`
    is the verb in the message, `path` the file. `CallerError` passes."""
    try:
        return operation(*arguments)
    except CallerError:
        raise
    except (OSError, ValueError, ImportError) as error:  # pyarrow's errors are of these classes
        raise FileFailed(f"cannot {what} {path}: {' '.join(str(error).split())[:300]}") from error
