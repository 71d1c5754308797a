"""A policy: a function of a turn that says what should become of it, and the words it says it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rightcall.dispatching.trace import Intervention
from rightcall.guard.turn import Turn

LONGEST_NUDGE = 1_200
GuardPolicy = Callable[[Turn], Iterable[Intervention]]


def told(policy: str, words: str) -> str:
    """The message of a policy, known by its first word when it is met in a history."""
    said = f"[{policy}] {words}"
    return said if len(said) <= LONGEST_NUDGE else said[: LONGEST_NUDGE - 3] + "..."
