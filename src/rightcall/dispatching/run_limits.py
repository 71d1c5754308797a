"""How long calls may take, how many run at once, how much of a result is kept."""

from __future__ import annotations

import msgspec

from rightcall.dispatching.bounded_output import Bounds


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; None is without end. `call` is the time of one tool, hooks not counted: a person may be asked there.
    `result` bounds outputs; without it they are kept whole. `together` is how many calls run in parallel at most."""

    call: float | None = 120.0
    batch: float | None = None
    result: Bounds | None = None
    together: int = 8
