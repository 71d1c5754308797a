"""What a policy says of a turn: a value, for the trace, for the log and for the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from rightcall.guard.turn import Turn

GuardAction = Literal[
    "tell",  # the call runs, and its result says this too
    "answer",  # the call is not run: this is its result
    "refuse",  # the call is not run, and the model is told why
    "nudge",  # the model is told this, and asked again
    "end",  # once its calls have gone well the task is done
    "stop",  # the task ends here, undone
    "cut",  # a result of the history is sent shorter
]
LONGEST_NUDGE = 1_200


class Intervention(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of a turn.

    - `policy`: its name.
    - `action`: what is to happen.
    - `reason`: why, for the people who run the model.
    - `message`: for the model; never longer than 1,200 characters, but for an answer and a cut.
    - `call`: the index of the call among the reply's attempts; None for the whole reply.
    - `at`: of a cut, the index of the message in the history.
    """

    policy: str
    action: GuardAction
    reason: str
    message: str = ""
    call: int | None = None
    at: int | None = None


GuardPolicy = Callable[[Turn], Iterable[Intervention]]


def told(policy: str, words: str) -> str:
    """The message of a policy, known by its first word when it is met in a history."""
    said = f"[{policy}] {words}"
    return said if len(said) <= LONGEST_NUDGE else said[: LONGEST_NUDGE - 3] + "..."
