"""`answers`: what to append to the history behind a reply, so that every call in it has an answer.

messages.append(reply.message())
messages += answers(reply, await dispatch(reply, tools))
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rightcall.contracts.protocol import feedback
from rightcall.dispatching.result import Result, not_run, refused
from rightcall.providers.dialect import CallOutcome
from rightcall.providers.history_messages import results as written
from rightcall.types import Call, Json, Reply

_CUSTOM = ("custom", "custom_tool_call")


def answers(reply: Reply, results: Iterable[Result] = (), *, api: str = "chat") -> list[Json]:
    """The messages to append to the history behind `reply.message()`: one answer for each attempt, in order, its result
    or where there is none its refusal; then, if something is wrong with the reply that is about no call, a message that
    says so. Empty where there is nothing to say.

    - `reply`: what was read.
    - `results`: those of `dispatch(reply)` or of `dispatch(reply.calls)`; they are found by the ids of their calls.
    - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or the name of its SDK.
    """
    given = list(results)
    outcomes = [_custom(_result(call, given).outcome, reply) for call in reply.attempts]
    return written(api, outcomes, feedback(_without_calls(reply)))


def _result(call: Call, given: list[Result]) -> Result:
    """The result of a call; the first of those that fit is taken away, so that none answers two calls."""
    for at, result in enumerate(given):
        if result.id == call.id and (call.id or result.name == call.name):
            return given.pop(at)
    return not_run(call, "it has no result") if call.ok else refused(call, call.problems)


def _custom(outcome: CallOutcome, reply: Reply) -> CallOutcome:
    kind = reply.extras.get(outcome.call.id, {}).get("type")
    return outcome._replace(custom=True) if kind in _CUSTOM else outcome


def _without_calls(reply: Reply) -> Reply:
    """What the answers of the calls do not say. What nearly is a call is told only where none was made."""
    if not reply.attempts:
        return reply
    kept = [problem for problem in reply.problems if problem.call is None and problem.blocking]
    return msgspec.structs.replace(reply, problems=tuple(kept))
