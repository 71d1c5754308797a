"""What the caller asked for, held whatever the server does: which tool, how many at once, how large a result."""

from __future__ import annotations

from collections.abc import Iterator

from rightcall.dispatching.bounded_output import Bounds, bound
from rightcall.dispatching.trace import Intervention
from rightcall.guard.intervention import GuardPolicy, asked, told
from rightcall.guard.turn import Turn, content_text

_ONE = "One call at a time: look at the first result, then send this again."


def tool_choice() -> GuardPolicy:
    """The turn's `choice` holds: no call with "none", a call with "required", and no other tool than the one named.
    The sixth reply in a row without the call stops the task."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        if turn.reply is None or turn.choice == "auto":
            return
        attempts = turn.reply.attempts
        if turn.choice == "none":
            words = "No tool may be called now. Answer in words."
        elif turn.choice == "required":
            words = "A call is required now. Make one, and nothing else."
        else:
            words = f"Only {turn.choice} may be called now. Make that call, and nothing else."
        for at, call in enumerate(attempts):
            if turn.choice == "none" or turn.choice not in ("required", call.name):
                yield Intervention(
                    policy="tool_choice",
                    action="refuse",
                    call=at,
                    reason=f"tool_choice is {turn.choice!r:.60}, and {call.name!r:.60} was called",
                    message=told("tool_choice", words, turn.told("tool_choice")),
                )
        if not attempts and turn.choice != "none":
            yield asked("tool_choice", turn, f"tool_choice is {turn.choice!r:.60}, and nothing was called", words)

    return policy


def one_at_a_time() -> GuardPolicy:
    """Where the turn is not `parallel`, the first call that may run does, and the others wait."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        if turn.reply is None or turn.parallel:
            return
        able = [at for at, call in enumerate(turn.reply.attempts) if call.ok]
        for at in able[1:]:
            yield Intervention(
                policy="one_at_a_time",
                action="refuse",
                call=at,
                reason="several calls at once, where one is allowed",
                message=told("one_at_a_time", _ONE, turn.told("one_at_a_time")),
            )

    return policy


def oversized_results(*, chars: int = 16_000) -> GuardPolicy:
    """Results of the history that are longer than this are sent with their head and their tail only.

    - `chars`: how long a result may be.
    """
    bounds = Bounds(string_chars=chars, total_bytes=4 * chars)

    def policy(turn: Turn) -> Iterator[Intervention]:
        if turn.reply is not None:
            return
        for at, message in enumerate(turn.messages):
            if message.get("role") != "tool":
                continue
            said = content_text(message.get("content"))
            if len(said) > chars:
                short = bound(said, bounds).text
                hint = told("oversized_results", "the result was cut here; ask for less, or for a part of it")
                yield Intervention(
                    policy="oversized_results",
                    action="cut",
                    at=at,
                    reason=f"a result of {len(said):,} characters, where {chars:,} are allowed",
                    message=f"{short}\n{hint}",
                )

    return policy
