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
        if path == STDIN:
            return sys.stdin.buffer
        try:
            return open(path, "rb")
        except (OSError, ValueError) as error:
            raise read_failure(path, error) from error

    def size(self, path: str) -> int:
        return 0 if path == STDIN else self._stat(path).st_size

    def stamp(self, path: str) -> str:
        found = self._stat(path)
        return f"{found.st_size}:{found.st_mtime_ns}"

    def time_ms(self, path: str) -> int | None:
        return None if path == STDIN else self._stat(path).st_mtime_ns // 1_000_000

    def matching(self, pattern: str) -> list[str]:
        if pattern == STDIN or os.path.lexists(pattern) or not glob.has_magic(pattern):
            return [pattern]
        return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))

    def _stat(self, path: str) -> os.stat_result:
        try:
            return os.stat(path)
        except (OSError, ValueError) as error:
            raise read_failure(path, error) from error


_LOCAL_FILES = LocalFiles()


def store_of(path: str) -> FileStore:
    """Return the store that a name belongs to."""
    return RemoteStore() if "://" in path else _LOCAL_FILES


def absolute_name(path: str) -> str:
    """Return the name under which a process in another folder finds the file."""
    return path if "://" in path else os.path.abspath(path)


def open_source(path: str) -> BinaryIO:
    """Open a file of any store."""
    return store_of(path).open(path)


def read_failure(path: str, error: Exception) -> FileFailed:
    """Return the error for a file that cannot be read."""
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return FileFailed(f"cannot read {path}: {reason}")


# -- stores on other machines ------------------------------------------------------------------------------------------

_BUFFER = 1 << 20
_WILDCARDS = "*[?"
_Result = TypeVar("_Result")


class RemoteStore:
    """Any store with a scheme before `://`."""

    def open(self, path: str) -> BinaryIO:
        system, place = _locate(path)
        return cast(BinaryIO, io.BufferedReader(_attempt("read", path, system.open_input_file, place), _BUFFER))

    def size(self, path: str) -> int:
        return int(self._info(path).size or 0)

    def stamp(self, path: str) -> str:
        found = self._info(path)
        return f"{found.size}:{found.mtime_ns}"

    def time_ms(self, path: str) -> int | None:
        changed = self._info(path).mtime_ns
        return None if changed is None else int(changed) // 1_000_000

    def matching(self, pattern: str) -> list[str]:
        scheme, _, place = pattern.partition("://")
        if not _has_wildcard(place):
            return [pattern]
        parts = place.split("/")
        folder = "/".join(parts[: next(at for at, part in enumerate(parts) if _has_wildcard(part))])
        system, root = _locate(f"{scheme}://{folder}")
        from pyarrow import fs  # type: ignore[import-untyped]

        listed = _attempt("list", pattern, system.get_file_info, fs.FileSelector(root, recursive=True))
        before = "" if root == folder and parts[0] else f"{parts[0]}/"  # only some stores repeat the host in a path
        names = [before + each.path.lstrip("/") for each in listed if each.is_file]
        return sorted([f"{scheme}://{name}" for name in names if matches_glob(name, place)])

    def exists(self, path: str) -> bool:
        system, place = _locate(path)
        return bool(_attempt("read", path, system.get_file_info, place).is_file)

    @contextmanager
    def writing(self, path: str) -> Iterator[Callable[[bytes], None]]:
        """Yield a function that writes. The file appears when the block ends without an error, and not before."""
        system, place = _locate(path)
        file = _attempt("write", path, system.open_output_stream, place)
        try:
            yield lambda data: _attempt("write", path, file.write, data)
        except BaseException:
            with suppress(AttributeError, OSError):  # only some stores can abandon a file
                file.abort()
            raise
        _attempt("write", path, file.close)

    def _info(self, path: str) -> Any:
        system, place = _locate(path)
        found = _attempt("read", path, system.get_file_info, place)
        if not found.is_file:
            raise FileFailed(f"cannot read {path}: there is no such file")
        return found


def _has_wildcard(name: str) -> bool:
    return any(sign in name for sign in _WILDCARDS)


def matches_glob(name: str, pattern: str) -> bool:
    """Return whether a name matches, part by part: `*` stays within a part, `**` is any number of folders."""
    parts = pattern.split("/")
    reached = _skip_folders({0}, parts)  # the positions of the pattern that the name so far can have reached
    for part in name.split("/"):
        stays = {at for at in reached if at < len(parts) and parts[at] == "**"}
        moves = {at + 1 for at in reached - stays if at < len(parts) and fnmatchcase(part, parts[at])}
        reached = _skip_folders(stays | moves, parts)
    return len(parts) in reached


def _skip_folders(reached: set[int], parts: list[str]) -> set[int]:
    """Add the positions behind each `**` that is reached: it may stand for no folder."""
    found = set(reached)
    for at, part in enumerate(parts):
        if at in found and part == "**":
            found.add(at + 1)
    return found


@lru_cache(64)
def _connect(scheme: str, host: str) -> tuple[Any, bool]:
    """Return a file system, and whether its names begin with the host."""
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
        raise CallerError(f"files of {scheme}:// cannot be reached: {error}") from error


def _locate(path: str) -> tuple[Any, str]:
    """Return the file system of a file, and its name there."""
    scheme, _, place = path.partition("://")
    host, _, rest = place.partition("/")
    system, has_host = _attempt("open", path, _connect, scheme, host)
    return system, place if has_host else f"/{rest}"


def _attempt(what: str, path: str, operation: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run an operation of a store; its errors become `FileFailed`."""
    try:
        return operation(*arguments)
    except CallerError:
        raise
    except (OSError, ValueError, ImportError) as error:  # pyarrow's errors are of these classes
        raise FileFailed(f"cannot {what} {path}: {' '.join(str(error).split())[:300]}") from error
