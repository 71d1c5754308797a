"""Reduce a failing text: remove smaller and smaller slices, as long as the text still fails."""

from __future__ import annotations

import time
from collections.abc import Callable


def reduce_text(text: str, fails: Callable[[str], bool], *, seconds: float = 15.0) -> str:
    deadline = time.monotonic() + seconds
    pieces = 2
    while len(text) > 1 and time.monotonic() < deadline:
        size = max(1, len(text) // pieces)
        smaller = _remove_slice(text, size, fails, deadline)
        if smaller is not None:
            text, pieces = smaller, max(2, pieces - 1)
        elif size == 1:
            break
        else:
            pieces = min(pieces * 2, len(text))
    return text


def _remove_slice(text: str, size: int, fails: Callable[[str], bool], deadline: float) -> str | None:
    for start in range(0, len(text), size):
        smaller = text[:start] + text[start + size :]
        if time.monotonic() > deadline:
            return None
        if fails(smaller):
            return smaller
    return None
