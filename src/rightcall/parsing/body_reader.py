"""What a reader of a body gives: how the calls of one block are read, step by step, as the text arrives."""

from __future__ import annotations

from collections.abc import Callable

from rightcall.parsing.buffer import Steps
from rightcall.parsing.call_builder import CallBuilder, Whole
from rightcall.parsing.markers import Pat, Probe
from rightcall.repairs.envelope_repair import Sketch

# The calls of a block, its end, and whether it is over: else only what follows decides whether that is all.
WholeBlock = tuple[list[Whole], int, bool]
# The block that begins there, if all of it is there and as usual; what it gives is what `read` would give.
Quick = Callable[[CallBuilder, int, bool], WholeBlock | None]


class BodyReader:
    """Reads one block of calls. `begins` tells a body from its siblings, `tells` from prose behind a marker, where
    that needs more.

    `closers` are the markers that end a value or the body where values are raw text: behind a call they say that it did
    not end where it seemed to. `quick` is a short cut for whole texts that the laws hold to `read`.
    """

    begins: Probe
    tells: Probe | None = None
    closers: tuple[Pat, ...] = ()
    labels: frozenset[str] = frozenset()  # words that may stand before a call
    quick: Quick | None = None

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        """Reads the calls; `bare` says that no marker stood before them."""
        raise NotImplementedError

    def read_choice(self, p: CallBuilder, name: str) -> Steps[None]:
        """Reads the arguments of a call whose name the request said."""
        raise NotImplementedError

    def is_over(self, p: CallBuilder, end: int) -> bool:
        """Is a block over that `quick` found to end there, as far as what follows now tells?"""
        return False

    def sketch(self, p: CallBuilder, text: str, closed: bool) -> list[Sketch]:
        """The calls of a block that could not be read, read loosely; none where that does not help."""
        return []

    def tail(self, text: str, end: int) -> int:
        """Where a block ends whose last call, read loosely, ends there."""
        return end
