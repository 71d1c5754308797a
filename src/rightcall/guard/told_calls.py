"""Calls that cannot run, and texts that nearly are one: the model is told, each time a little more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rightcall.contracts.protocol import feedback
from rightcall.dispatching.result import refused
from rightcall.dispatching.trace import Intervention
from rightcall.guard.intervention import GuardPolicy, told
from rightcall.guard.turn import Turn
from rightcall.types import Call

_UNKNOWN = ("unknown_tool", "not_authorised", "invalid_name")
_LISTED = 24


def unknown_tool() -> GuardPolicy:
    """A call of a tool that there is none of is refused, and the model is told which there are."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            found = [problem for problem in call.problems if problem.blocking and problem.code in _UNKNOWN]
            if found:
                names = _callable(turn)
                listed = ", ".join(names[:_LISTED]) + (" ..." if len(names) > _LISTED else "")
                words = f"{found[0].message}. The tools you can call: {listed or 'none'}."
                if turn.told("unknown_tool"):
                    words += " Call one of these by its exact name, or answer without a call."
                yield Intervention(
                    policy="unknown_tool",
                    action="refuse",
                    call=at,
                    reason=f"there is no tool {call.name!r:.60}",
                    message=told("unknown_tool", words, turn.told("unknown_tool")),
                )

    return policy


def _callable(turn: Turn) -> Sequence[str]:
    """The tools that may be called in this turn."""
    names = turn.tools.names if turn.tools else ()
    return names if turn.choice in ("auto", "required") else [name for name in names if name == turn.choice]


def problems() -> GuardPolicy:
    """A call that is wrong in another way is refused with what is wrong, and what to send instead."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        again = turn.told("problems")
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            if not call.ok:
                yield Intervention(
                    policy="problems",
                    action="refuse",
                    call=at,
                    reason=f"the call of {call.name!r:.60} is wrong: {_codes(call)}",
                    message=told("problems", refused(call, call.problems).reason + _urged(turn, call, again)),
                )

    return policy


def _codes(call: Call) -> str:
    return ", ".join(dict.fromkeys([problem.code for problem in call.problems if problem.blocking])) or "cut off"


def _urged(turn: Turn, call: Call, again: int) -> str:
    """The second time the arguments are named, the third time another way is offered."""
    tool = turn.tools.get(call.name) if turn.tools else None
    if not again or tool is None:
        return ""
    known = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    listed = ", ".join([f"{name} (required)" if name in required else name for name in list(known)[:_LISTED]])
    words = f". The arguments of {call.name}: {listed or 'none'}"
    return words + (". If you cannot make this call, do without it and say so" if again > 1 else "")


def near_calls(*, most: int = 4) -> GuardPolicy:
    """A text that nearly is a call, with no call beside it, is told so: otherwise a loop ends as if it had its answer.

    - `most`: in how many turns of one task.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        reply = turn.reply
        if reply is None or reply.attempts or turn.ever_told("near_call") >= most:
            return
        if any(problem.code == "looks_like_a_call" for problem in reply.problems):
            yield Intervention(
                policy="near_call",
                action="nudge",
                reason="the text looks like a call and is none",
                message=told("near_call", feedback(reply), turn.ever_told("near_call")),
            )

    return policy
