"""JSON Pointers (RFC 6901): a path into a value, one step for each key or index.

step("a/b") == "/a~1b"        unescaped("a~1b") == "a/b"
"""

from __future__ import annotations

from typing import Any


def step(key: Any) -> str:
    """One step of a pointer, with its slash."""
    return "/" + escaped(key)


def escaped(key: Any) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    """What a step names, without its slash."""
    return part.replace("~1", "/").replace("~0", "~")
