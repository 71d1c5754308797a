"""Who does the work. An engine has one method, over bytes, so that any of them can carry any work anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol


class Engine(Protocol):
    """Runs work over items, in other processes or on other machines.

    - `work` can be pickled, and gives the same result for the same item: an item may be worked on again when whoever
      had it was killed.
    - `items` is read as results are taken, a bounded number ahead, so that memory stays flat.
    - Results come in the order of the items. What `work` raises is raised here.
    - Closing the iterator ends what was started.
    """

    def map(self, work: Callable[[bytes], bytes], items: Iterable[bytes]) -> Iterator[bytes]: ...


class InlineEngine:
    """This process alone."""

    def map(self, work: Callable[[bytes], bytes], items: Iterable[bytes]) -> Iterator[bytes]:
        return map(work, items)
