"""The order of a task: steps that come before others, and tools that end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightcall.dispatching.trace import Intervention
from rightcall.guard.policies import GuardPolicy, nudge_or_stop, policy_message
from rightcall.guard.turn import Turn
from rightcall.types import Call

_TEMPLATES = (
    "Before {name} you must call: {missing}. Call {first} now.",
    "{name} was not run, because {missing} was not called. Send a call of {first}, and nothing else.",
    "STOP. {name} cannot run yet. The only call that helps now is {first}; still missing: {missing}.",
)


def required_steps(*steps: str, before: Sequence[str] = ()) -> GuardPolicy:
    """Require that each of these tools was called with success before the task may end.

    - `steps`: their names; any order is allowed.
    - `before`: the tools that end the task and wait for the steps; without any, a reply without calls waits.

    The sixth early answer in a row stops the task."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each call that is too early, or a nudge for an early answer."""
        missing = [step for step in steps if step not in turn.done]
        if not missing or turn.reply is None:
            return
        template = _TEMPLATES[min(turn.told("required_steps"), len(_TEMPLATES) - 1)]
        for at, call in enumerate(turn.reply.attempts):
            if call.name in before:
                words = template.format(name=call.name, missing=", ".join(missing), first=missing[0])
                yield _refuse_call("required_steps", at, f"{call.name} before {', '.join(missing)}", words)
        if not turn.reply.attempts:
            words = template.format(name="your answer", missing=", ".join(missing), first=missing[0])
            yield nudge_or_stop("required_steps", turn, f"an answer before {', '.join(missing)}", words, tier=0)

    return policy


def prerequisites(needs: Mapping[str, str | tuple[str, str] | Sequence[str | tuple[str, str]]]) -> GuardPolicy:
    """Require that other tools were called in earlier turns before a tool.

    - `needs`: for each tool what must have been called with success: a name, or a name and an argument that must
      have had the same value (`{"edit_file": ("read_file", "path")}`), or several of these.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each call whose prerequisites are missing."""
        for at, call in enumerate(turn.reply.attempts if turn.reply else ()):
            missing = [each for each in _to_needs_list(needs.get(call.name, ())) if not _is_met(turn, call, each)]
            if missing and call.ok:
                named = " and ".join([_describe_need(call, each) for each in missing])
                words = (
                    f"{call.name} was not run: call {named} first, look at what it gives, then call {call.name} again."
                )
                yield _refuse_call(
                    "prerequisites", at, f"{call.name} before {named}", words, turn.told("prerequisites")
                )

    return policy


def _to_needs_list(needs: Any) -> list[str | tuple[str, str]]:
    """Return the needs of one tool as a list, also if a single one is given."""
    return [needs] if isinstance(needs, (str, tuple)) and needs else list(needs)


def _is_met(turn: Turn, call: Call, need: str | tuple[str, str]) -> bool:
    """Return whether the needed tool was called with success in an earlier turn, with an equal argument if one is
    named."""
    name, argument = (need, "") if isinstance(need, str) else need
    done = [past for past in turn.calls if past.name == name and past.outcome == "ok"]
    if not argument:
        return bool(done)
    return any(past.arguments.get(argument) == call.arguments.get(argument) for past in done)


def _describe_need(call: Call, need: str | tuple[str, str]) -> str:
    """Return a needed call as text for the model: the tool's name, and the argument with the value of this call if
    one is named."""
    if isinstance(need, str):
        return need
    return f"{need[0]} with {need[1]} = {call.arguments.get(need[1])!r:.80}"


def terminal_tools(*names: str, required: bool = True) -> GuardPolicy:
    """End the task once one of these tools was called with success.

    - `names`: the tools that end it.
    - `required`: nothing else ends it: a reply without calls is asked for one of them, and the sixth in a row stops
      the task.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield an end for each call of these tools, and a nudge for a reply without calls."""
        if turn.reply is None:
            return
        for at, call in enumerate(turn.reply.attempts):
            if call.name in names and call.ok:
                yield Intervention(policy="terminal_tools", action="end", call=at, reason=f"{call.name} ends the task")
        if required and not turn.reply.attempts:
            listed = " or ".join(names)
            words = f"The task is not over until you call {listed}. Go on with it, or call {listed} now."
            yield nudge_or_stop("terminal_tools", turn, f"an answer without {listed}", words)

    return policy


def _refuse_call(policy: str, at: int, reason: str, words: str, again: int = 0) -> Intervention:
    """Return the intervention of this policy that refuses the call at index `at`; `again` is the number of turns in
    a row with the same message."""
    return Intervention(
        policy=policy, action="refuse", call=at, reason=reason, message=policy_message(policy, words, again)
    )
