"""What is kept for a while, and never more of it than fits: answers that a request may go on from, and what a server
wants back with its calls when a client drops it.

    kept = KeptAnswers(seconds=3600, most=64_000_000)
    kept.put("resp_1", messages)
    kept.get("resp_1")       None once it is forgotten
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class KeptAnswers(Generic[T]):
    """Values by name: the oldest go first, those that are too old or too large at once.

    - `seconds`: how long a value is kept.
    - `most`: bytes of all of them together, as JSON.
    - `clock`: tells the time in seconds.
    """

    def __init__(self, *, seconds: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._kept: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._size = 0

    def put(self, name: str, value: T) -> None:
        """Keeps it, and forgets what there is no more room for."""
        self.forget(name)
        size = len(name) + _size(value)
        if size > self._most or not self._seconds:
            return
        self._kept[name] = (self._clock() + self._seconds, size, value)
        self._size += size
        while self._size > self._most or self._is_old(next(iter(self._kept))):
            self.forget(next(iter(self._kept)))

    def get(self, name: str) -> T | None:
        """The value, if it is still kept."""
        if name in self._kept and self._is_old(name):
            self.forget(name)
        found = self._kept.get(name)
        return None if found is None else found[2]

    def forget(self, name: str) -> bool:
        """Was it there?"""
        found = self._kept.pop(name, None)
        if found is not None:
            self._size -= found[1]
        return found is not None

    def __len__(self) -> int:
        return len(self._kept)

    def _is_old(self, name: str) -> bool:
        return self._kept[name][0] < self._clock()


def _size(value: object) -> int:
    """About how many bytes it is as JSON, also where that has no word for it: half a character, a very long integer."""
    try:
        return len(msgspec.json.encode(value, enc_hook=repr))
    except (UnicodeEncodeError, OverflowError):
        return len(repr(value))
