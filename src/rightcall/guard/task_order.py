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
    """Return a policy that requires that each of these tools was called with success since the last message of the
    user, before the task may end.

    - `steps`: the names of the tools; any order is allowed.
    - `before`: tools that may only be called after all steps: their calls are refused until then.

    A reply without calls gets a nudge while a step is missing; the sixth turn in a row with an intervention of this
    policy stops the task if its reply has no calls."""

    def policy(turn: Turn) -> Iterator[Intervention]:
        """While a step is missing, yield a refusal for each call of a tool in `before`, and for a reply without calls a
        nudge or a stop."""
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
    """Return a policy that requires that other tools were called with success before a tool, in an earlier turn since
    the last message of the user. A call without them is refused.

    - `needs`: for each tool one prerequisite or a list of them, all required: a tool's name, or a tuple of a tool's
      name and an argument that must have the same value in both calls (`{"edit_file": ("read_file", "path")}`).
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield a refusal for each valid call of which a prerequisite is missing; the message names the calls to make
        first."""
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
    """Return the prerequisites of one tool as a list, also if a single one (a name, or a tuple of name and argument) is
    given; empty for an empty value."""
    return [needs] if isinstance(needs, (str, tuple)) and needs else list(needs)


def _is_met(turn: Turn, call: Call, need: str | tuple[str, str]) -> bool:
    """Return whether the needed tool was called with success in an earlier turn since the last message of the user; if
    the need is a tuple of name and argument, with the same value of this argument as in `call`."""
    name, argument = (need, "") if isinstance(need, str) else need
    done = [past for past in turn.calls if past.name == name and past.outcome == "ok"]
    if not argument:
        return bool(done)
    return any(past.arguments.get(argument) == call.arguments.get(argument) for past in done)


def _describe_need(call: Call, need: str | tuple[str, str]) -> str:
    """Return a prerequisite as text for the model: the tool's name; for a tuple of name and argument also the value
    that the argument has in `call`, cut to 80 characters."""
    if isinstance(need, str):
        return need
    return f"{need[0]} with {need[1]} = {call.arguments.get(need[1])!r:.80}"


def terminal_tools(*names: str, required: bool = True) -> GuardPolicy:
    """Return a policy that ends the task once one of these tools was called with success.

    - `names`: the tools that end it.
    - `required`: nothing else ends it: a reply without calls gets a nudge to call one of them, and the sixth in a row
      stops the task.
    """

    def policy(turn: Turn) -> Iterator[Intervention]:
        """Yield an intervention "end" for each valid call of these tools; for a reply without calls, with `required`, a
        nudge or a stop."""
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
    """Return the intervention of this policy that refuses the call at index `at`. `reason` is for the operator, `words`
    the message to the model; it becomes more urgent with `again`, the number of turns in a row with the same message
    before."""
    return Intervention(
        policy=policy, action="refuse", call=at, reason=reason, message=policy_message(policy, words, again)
    )
