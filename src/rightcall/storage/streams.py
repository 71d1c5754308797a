"""Places that are no files, and that people write to all the same: /dev/stdout, /dev/null and their like.

What is written there cannot be taken back, so it goes straight through: there is nothing beside it, nothing to keep,
nothing to go on with.
"""

from __future__ import annotations

import os
import re

_NAMED = {"/dev/stdout": 1, "/dev/stderr": 2}
_DEVICES = {"/dev/null", "/dev/full", "/dev/tty"}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


def is_stream(path: str | os.PathLike[str]) -> bool:
    name = os.path.normpath(path)
    return name in _DEVICES or _descriptor(name) is not None


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    return _descriptor(os.path.normpath(path)) == 1


def open_stream(path: str | os.PathLike[str]) -> int:
    """A handle of its own. An open file is gone on with where it is: opened anew, it would be written over."""
    name = os.path.normpath(path)
    descriptor = _descriptor(name)
    return os.open(name, os.O_WRONLY | os.O_CLOEXEC) if descriptor is None else os.dup(descriptor)


def _descriptor(name: str) -> int | None:
    found = _DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else _NAMED.get(name)
