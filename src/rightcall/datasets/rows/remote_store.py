"""Files that lie elsewhere: `s3://`, `gs://`, `abfs://`, `hdfs://` through pyarrow, other stores through fsspec.

    RemoteStore().open("s3://logs/2026/replies.jsonl")

Who may read is said where each store says it (environment, files of its own). `AWS_ENDPOINT_URL` names a store that
speaks S3 and is not Amazon's.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar, cast

from rightcall.errors import CallerError, FileFailed
from rightcall.extras import needs

_BUFFER = 1 << 20
_MAGIC = "*[?"
_Found = TypeVar("_Found")


class RemoteStore:
    """Any store with a name before `://`."""

    def open(self, path: str) -> BinaryIO:
        system, place = _at(path)
        return cast(BinaryIO, io.BufferedReader(_step("read", path, system.open_input_file, place), _BUFFER))

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
        if not any(sign in place for sign in _MAGIC):
            return [pattern]
        folder, host = _folder(place), place.partition("/")[0]
        system, root = _at(f"{scheme}://{folder}")
        found = [each.path.lstrip("/") for each in _listed(system, root, pattern) if each.is_file]
        before = "" if root == folder and host else f"{host}/"  # some stores name the host in a path, and some do not
        names = [before + name for name in found]
        return sorted([f"{scheme}://{name}" for name in names if fits(name, place)])

    def exists(self, path: str) -> bool:
        system, place = _at(path)
        return bool(_step("read", path, system.get_file_info, place).is_file)

    @contextmanager
    def writing(self, path: str) -> Iterator[Callable[[bytes], None]]:
        """Gives a function that writes. The file is there when the block ends well, and not before."""
        system, place = _at(path)
        file = _step("write", path, system.open_output_stream, place)
        try:
            yield lambda data: _step("write", path, file.write, data)
        except BaseException:
            _abort(file)
            raise
        _step("write", path, file.close)

    def _info(self, path: str) -> Any:
        system, place = _at(path)
        found = _step("read", path, system.get_file_info, place)
        if not found.is_file:
            raise FileFailed(f"cannot read {path}: there is no such file")
        return found


def _folder(place: str) -> str:
    """What stands before the first part with a sign of a glob."""
    parts = place.split("/")
    plain = next(at for at, part in enumerate(parts) if any(sign in part for sign in _MAGIC))
    return "/".join(parts[:plain])


def fits(name: str, pattern: str) -> bool:
    """Part by part: a star does not go over a slash, but for `**`, which is any number of folders."""
    return _parts_fit(name.split("/"), pattern.split("/"))


def _parts_fit(parts: list[str], pattern: list[str]) -> bool:
    """Which places of the pattern can have been reached, after each part of the name."""
    reached = _skipped({0}, pattern)
    for part in parts:
        after = {at for at in reached if at < len(pattern) and pattern[at] == "**"}
        after |= {
            at + 1 for at in reached if at < len(pattern) and pattern[at] != "**" and fnmatchcase(part, pattern[at])
        }
        reached = _skipped(after, pattern)
    return len(pattern) in reached


def _skipped(reached: set[int], pattern: list[str]) -> set[int]:
    found = set(reached)
    for at in range(len(pattern)):
        if at in found and pattern[at] == "**":
            found.add(at + 1)
    return found


def _listed(system: Any, root: str, pattern: str) -> list[Any]:
    from pyarrow import fs  # type: ignore[import-untyped]

    found: list[Any] = _step("list", pattern, system.get_file_info, fs.FileSelector(root, recursive=True))
    return found


@lru_cache(64)
def _system(scheme: str, host: str) -> tuple[Any, bool]:
    """A store, and whether its names begin with the host."""
    needs("parquet")
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if scheme == "s3" and endpoint:
        protocol, _, address = endpoint.partition("://")
        return fs.S3FileSystem(endpoint_override=address.rstrip("/"), scheme=protocol), True
    try:
        found, place = fs.FileSystem.from_uri(f"{scheme}://{host}/")
        return found, place.strip("/") == host
    except (ValueError, NotImplementedError):
        return _by_fsspec(scheme), True


def _by_fsspec(scheme: str) -> Any:
    from pyarrow import fs

    try:
        import fsspec  # type: ignore[import-untyped]

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme)))
    except (ImportError, ValueError) as error:
        raise CallerError(f"files of {scheme}:// cannot be reached: {error}") from error


def _at(path: str) -> tuple[Any, str]:
    """The store of a file, and its name there."""
    scheme, _, place = path.partition("://")
    host, _, rest = place.partition("/")
    system, with_host = _step("open", path, _system, scheme, host)
    return system, place if with_host else f"/{rest}"


def _step(what: str, path: str, do: Callable[..., _Found], *given: Any) -> _Found:
    try:
        return do(*given)
    except CallerError:
        raise
    except (OSError, ValueError, ImportError) as error:  # pyarrow's own errors are these
        told = " ".join(str(error).split())[:300]
        raise FileFailed(f"cannot {what} {path}: {told}") from error


def _abort(file: Any) -> None:
    """What was not finished does not appear, in a store that can take it back."""
    with suppress(AttributeError, OSError):
        file.abort()
