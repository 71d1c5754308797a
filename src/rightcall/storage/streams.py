"""Outputs that are not regular files: /dev/stdout, /dev/null and similar.

Written data cannot be taken back, so it is written directly: there is no hidden file, no replacement and no resuming.
"""

from __future__ import annotations

import os
import re

_NAMED = {"/dev/stdout": 1, "/dev/stderr": 2}
_DEVICES = {"/dev/null", "/dev/full", "/dev/tty"}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names a known device (/dev/null, /dev/full, /dev/tty) or an open file descriptor, such as
    /dev/stdout or /dev/fd/3. Only the name is looked at."""
    name = os.path.normpath(path)
    return name in _DEVICES or _parse_descriptor(name) is not None


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is standard output under any of its names, such as /dev/fd/1."""
    return _parse_descriptor(os.path.normpath(path)) == 1


def open_stream(path: str | os.PathLike[str]) -> int:
    """Return a new handle for writing to a stream. An open descriptor is duplicated, because opening its file again
    would overwrite it. Raises `OSError`."""
    name = os.path.normpath(path)
    descriptor = _parse_descriptor(name)
    return os.open(name, os.O_WRONLY | os.O_CLOEXEC) if descriptor is None else os.dup(descriptor)


def _parse_descriptor(name: str) -> int | None:
    """Return the number of the file descriptor that a path such as /dev/stdout or /dev/fd/3 names; None for other
    paths."""
    found = _DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else _NAMED.get(name)
