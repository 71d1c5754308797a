"""The interface of the readers of bodies: each parses the calls of one block, step by step, as the text arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rightcall.formats.spec import Format
from rightcall.parsing.buffer import Steps
from rightcall.parsing.call_builder import CallBuilder, Whole
from rightcall.parsing.markers import Pat, Probe
from rightcall.repairs.envelope_repair import LooseCall


class Around(NamedTuple):
    """The markers around the body of a format."""

    after: list[Pat]  # those that may follow its end
    turns: list[Pat]  # those that end a turn


# The calls of a block, its end, and whether the block is over; if not, the text that follows decides.
WholeBlock = tuple[list[Whole], int, bool]
# Parse a block that has arrived completely and is written as usual. The result is the same as that of `read`.
Quick = Callable[[CallBuilder, int, bool], WholeBlock | None]


class BodyReader:
    """Parses one block of calls.

    - `begins` tells a body from the other bodies of its format, `tells` from prose that follows a marker.
    - `closers` are the markers that end a raw value or the body. One of them after a call shows that the call did not
      end where it seemed to.
    - `labels` are words that may precede a call.
    - `quick` is a shortcut for complete texts. The laws compare it with `read`.
    """

    begins: Probe
    tells: Probe | None = None
    closers: tuple[Pat, ...] = ()
    labels: frozenset[str] = frozenset()
    quick: Quick | None = None

    def __init__(self, body: Any, format: Format, around: Around) -> None:
        """Compile the patterns of a body of this kind."""

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish all calls of the block, from behind its opener; with `bare` no marker precedes them. Raises
        `NotACall` where the text is no call and beyond the limit of calls, `Broken` (or `RecursionError`) where a call
        cannot be parsed any further, `Cut` where the text ends in one; calls before that are finished, and the current
        one may have begun."""
        raise NotImplementedError

    def read_choice(self, builder: CallBuilder, name: str) -> Steps[None]:
        """Begin a call of the tool `name`, which the request names, parse its arguments, which begin here, and finish
        it. Only for bodies that have no name of their own. Raises `Broken`, `Cut` or `NotACall` as `read` does."""
        raise NotImplementedError

    def is_over(self, builder: CallBuilder, end: int) -> bool:
        """Return whether the text that has arrived shows that a block which `quick` parsed up to index `end` is over,
        so that its calls count; False if more text must tell."""
        return False

    def read_loose_calls(self, builder: CallBuilder, text: str, closed: bool) -> list[LooseCall]:
        """Parse `text`, that of a broken call or block, with the tolerant reader and return its calls, which are not
        emitted; none if that does not help. `closed`: the end of the text is the end of the block, so that open
        brackets are missing, not truncated."""
        return []

    def tail(self, text: str, end: int) -> int:
        """Return the index in `text` of the end of a block whose last call, parsed tolerantly, ends at `end`."""
        return end

    @staticmethod
    def find_damaged_openers(body: Any, format: Format) -> list[Pat]:
        """Return patterns of damaged opening tags that only a call can follow."""
        return []
