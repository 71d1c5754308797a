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
    """Return whether a path is a device or an open file descriptor, such as /dev/null or /dev/stdout."""
    name = os.path.normpath(path)
    return name in _DEVICES or _descriptor(name) is not None


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    return _descriptor(os.path.normpath(path)) == 1


def open_stream(path: str | os.PathLike[str]) -> int:
    """Return a new handle of a stream. An open descriptor is duplicated: opening its file again would overwrite it."""
    name = os.path.normpath(path)
    descriptor = _descriptor(name)
    return os.open(name, os.O_WRONLY | os.O_CLOEXEC) if descriptor is None else os.dup(descriptor)


def _descriptor(name: str) -> int | None:
    found = _DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else _NAMED.get(name)
