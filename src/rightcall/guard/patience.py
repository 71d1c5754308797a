"""How long to go on: budgets of their own for calls that are wrong, for tools that fail, and for turns."""

from __future__ import annotations

from collections.abc import Iterator

from rightcall.dispatching.trace import Intervention
from rightcall.guard.intervention import GuardPolicy, told
from rightcall.guard.turn import Turn


def malformed_budget(most: int = 5) -> GuardPolicy:
    """The task stops when this many turns in a row (`most`) made only calls that could not run, and another does."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        attempts = turn.reply.attempts if turn.reply else ()
        if attempts and not any(call.ok for call in attempts) and turn.streak("refused") >= most:
            yield _stop("malformed_budget", f"{most + 1} turns in a row made only calls that cannot run")

    return policy


def failing_budget(most: int = 6) -> GuardPolicy:
    """The task stops when this many turns in a row (`most`) made only calls that failed, and the next makes calls of
    the same tools."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        attempts = turn.reply.attempts if turn.reply else ()
        if not attempts or turn.streak("failed") < most:
            return
        failed = {call.name for past in turn.past[-most:] for call in past.calls}
        if all(call.name in failed for call in attempts):
            yield _stop("failing_budget", f"the calls of {most} turns in a row failed")

    return policy


def turn_budget(most: int = 30) -> GuardPolicy:
    """The task stops when the model has had this many turns (`most`) since the user last spoke, and calls again."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        if turn.reply is not None and turn.reply.attempts and len(turn.past) >= most:
            yield _stop("turn_budget", f"{most} turns were not enough")

    return policy


def _stop(policy: str, reason: str) -> Intervention:
    return Intervention(
        policy=policy, action="stop", reason=reason, message=told(policy, f"The task was stopped: {reason}.")
    )
