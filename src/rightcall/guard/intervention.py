"""A policy: a function of a turn that says what should become of it, and the words it says it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rightcall.dispatching.trace import Intervention
from rightcall.guard.turn import Turn

LONGEST_NUDGE = 1_200
UNHEEDED = 5  # turns in a row in which the same was asked for; a loop must end also where nobody listens
GuardPolicy = Callable[[Turn], Iterable[Intervention]]


_TIERS = ("{words}", "You were told before. {words}", "STOP. {words} Do just that, and nothing else.")


def told(policy: str, words: str, again: int = 0) -> str:
    """The message of a policy, known by its first words when it is met in a history; plainer where it was said in so
    many turns before (`again`)."""
    said = f"[guard: {policy}] {_TIERS[min(again, len(_TIERS) - 1)].replace('{words}', words)}"
    return said if len(said) <= LONGEST_NUDGE else said[: LONGEST_NUDGE - 3] + "..."


def asked(policy: str, turn: Turn, reason: str, words: str, *, tier: int | None = None) -> Intervention:
    """The model is asked for what is missing, plainer each time unless the words do that themselves (`tier` 0); after
    so many turns in a row in which it did not heed that, the task stops."""
    again = turn.told(policy)
    tier = again if tier is None else tier
    if again < UNHEEDED:
        return Intervention(policy=policy, action="nudge", reason=reason, message=told(policy, words, tier))
    why = f"{reason}, {again + 1} times in a row"
    return Intervention(policy=policy, action="stop", reason=why, message=told(policy, f"The task was stopped: {why}."))
