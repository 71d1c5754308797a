"""`Result`: the outcome of one call, and `answers`: results as the messages that a provider expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from rightcall.contracts.protocol import feedback
from rightcall.dispatching.bounded_output import BoundedOutput, bound
from rightcall.dispatching.plain_json_values import plain
from rightcall.errors import ToolError
from rightcall.providers.dialect import CallOutcome
from rightcall.providers.history_messages import write_results
from rightcall.types import Call, Json, Problem, Reply, to_json

Kind = Literal[
    "completed",  # the tool ran
    "skipped",  # a hook gave the output instead
    "not_applicable",  # the tool said that there is nothing to do
    "failed",  # the tool, or a hook before it, raised
    "timed_out",
    "refused",  # the call must not run: `problems` says why
    "terminated",  # a hook ended the batch here
    "cancelled",
    "not_run",  # the batch ended before it came to this call
]
FINE = frozenset({"completed", "skipped", "not_applicable"})
LONGEST_ERROR = 2_000
_LONGEST_SENT = 500


class Result(msgspec.Struct, frozen=True):
    """What became of one call.

    - `call`: as it was given.
    - `output`: what the tool gave, or what is told where it gave nothing.
    - `error`: the model is to take it for a failure.
    - `kind`: "completed", or why it did not come to that.
    - `reason`: the same in words.
    - `problems`: why a call was refused, and notes.
    - `duration`: seconds, of the tool alone.
    - `envelope`: the output cut to size, where a limit was set.
    - `thread`: the name of a thread that outlived its time limit.
    """

    call: Call
    output: Any = None
    error: bool = False
    kind: Kind = "completed"
    reason: str = ""
    problems: tuple[Problem, ...] = ()
    duration: float = 0.0
    envelope: BoundedOutput | None = None
    thread: str = ""

    @property
    def id(self) -> str:
        """The call's."""
        return self.call.id

    @property
    def name(self) -> str:
        """The tool's."""
        return self.call.name

    @property
    def text(self) -> str:
        """What to tell the model; bounded, also when the output was not."""
        said = (self.envelope or bound(self.output)).text
        return f"ERROR: {said}" if self.error else said

    def message(self, api: str = "chat") -> Json:
        """The message that answers the call, as this `api` wants it. Several results of one turn: `answers`."""
        return write_results(api, [self.outcome])[0]

    @property
    def outcome(self) -> CallOutcome:
        """What to tell the model, and whether it is an error."""
        return CallOutcome(self.call, (self.envelope or bound(self.output)).text, self.error)

    def to_json(self) -> Json:
        """Plain JSON data, to be kept or sent."""
        fields: Json = to_json(msgspec.structs.replace(self, output=None, envelope=None))
        omitted = self.envelope.omitted if self.envelope is not None else ()
        del fields["envelope"]
        return {**fields, "output": plain(self.output), "omitted": [to_json(each) for each in omitted]}


def failed(call: Call, kind: Kind, message: str, *, duration: float = 0.0, thread: str = "") -> Result:
    message = message[:LONGEST_ERROR]
    return Result(call, message, True, kind, message, duration=duration, thread=thread)


def refused(call: Call, problems: Sequence[Problem]) -> Result:
    """The call did not run; the model is told why, and what to send instead."""
    message = "the call was not run: " + "; ".join([problem.message for problem in problems if problem.blocking])
    message += _what_was_sent(call)
    return Result(call, message[:LONGEST_ERROR], True, "refused", message[:LONGEST_ERROR], tuple(problems))


def _what_was_sent(call: Call) -> str:
    """A history holds arguments that are an object: where they were none, the model is shown what it wrote."""
    if call.arguments or not call.json.strip("{} \t\r\n"):
        return ""
    sent = call.json if len(call.json) <= _LONGEST_SENT else call.json[:_LONGEST_SENT] + "..."
    return f"; the arguments you sent: {sent}"


def not_run(call: Call, why: str) -> Result:
    return failed(call, "not_run", f"the call was not run: {why}; send it again if it is still needed")


def cut_short(call: Call, cancelled: BaseException) -> Result:
    """It had begun. What it did until then is done, so the model must not take it for a call that never ran."""
    notes = "".join([f"; {note}" for note in getattr(cancelled, "__notes__", ())])
    return failed(call, "cancelled", f"the call was cancelled; it may have done a part of its work{notes}")


def said(error: BaseException) -> str:
    """An exception in one line, for the model: no traceback, nothing endless."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is still has a type
        text = ""
    if text and type(error) is ToolError:  # raised on purpose, and worded for the model
        return text[:LONGEST_ERROR]
    return f"{type(error).__name__}: {text}"[:LONGEST_ERROR] if text else type(error).__name__


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
    return write_results(api, outcomes, feedback(_without_calls(reply)))


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
