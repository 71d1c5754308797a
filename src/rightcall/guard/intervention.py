"""A policy: a function of a turn that says what should become of it, and the words it says it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rightcall.dispatching.trace import Intervention
from rightcall.guard.turn import Turn

LONGEST_NUDGE = 1_200
UNHEEDED = 5  # turns in a row in which the same was asked for; a loop must end also where nobody listens
GuardPolicy = Callable[[Turn], Iterable[Intervention]]


def told(policy: str, words: str) -> str:
    """The message of a policy, known by its first words when it is met in a history."""
    said = f"[guard: {policy}] {words}"
    return said if len(said) <= LONGEST_NUDGE else said[: LONGEST_NUDGE - 3] + "..."


def asked(policy: str, turn: Turn, reason: str, words: str) -> Intervention:
    """The model is asked for what is missing; after so many turns in a row in which it did not heed that, the task
    stops."""
    again = turn.told(policy)
    if again < UNHEEDED:
        return Intervention(policy=policy, action="nudge", reason=reason, message=told(policy, words))
    why = f"{reason}, {again + 1} times in a row"
    return Intervention(policy=policy, action="stop", reason=why, message=told(policy, f"The task was stopped: {why}."))
