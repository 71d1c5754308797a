"""How long calls may take, how many run at once, how much of a result is kept."""

from __future__ import annotations

import msgspec

from rightcall.dispatching.bounded_output import Bounds


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long calls may take, how many run at once, how much of a result is kept. Seconds; None is without end.

    - `call`: the time of one tool, hooks not counted: a person may be asked there.
    - `batch`: the time of all calls of one `dispatch`.
    - `result`: bounds on outputs; None keeps them whole.
    - `together`: how many calls run at the same time with `parallel`.
    """

    call: float | None = 120.0
    batch: float | None = None
    result: Bounds | None = None
    together: int = 8
