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
    """The outcome of one call.

    - `call`: as it was given.
    - `output`: the output of the tool, or a message where there is none.
    - `error`: the model must treat the output as a failure.
    - `kind`: "completed", or what happened instead.
    - `reason`: the reason as text; empty for a completed call.
    - `problems`: why a call was rejected, and notes.
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
        """Return the id of the call."""
        return self.call.id

    @property
    def name(self) -> str:
        """Return the name of the tool."""
        return self.call.name

    @property
    def text(self) -> str:
        """Return the text for the model: the output, bounded also if it was not before, after "ERROR: " for an
        error."""
        text = (self.envelope or bound(self.output)).text
        return f"ERROR: {text}" if self.error else text

    def message(self, api: str = "chat") -> Json:
        """Return the one message that answers the call, as this `api` wants it. For several results of one turn use
        `answers`, since some APIs want them in one message. Raises `CallerError` for an unknown API."""
        return write_results(api, [self.outcome])[0]

    @property
    def outcome(self) -> CallOutcome:
        """Return the call, the text for the model (bounded, without "ERROR: "), and whether it is an error, as the
        writers of history messages take them."""
        return CallOutcome(self.call, (self.envelope or bound(self.output)).text, self.error)

    def to_json(self) -> Json:
        """Return the result as plain JSON data, to be stored or sent; `omitted` lists what was cut from the output."""
        fields: Json = to_json(msgspec.structs.replace(self, output=None, envelope=None))
        omitted = self.envelope.omitted if self.envelope is not None else ()
        del fields["envelope"]
        return {**fields, "output": plain(self.output), "omitted": [to_json(each) for each in omitted]}


def failed_result(call: Call, kind: Kind, message: str, *, duration: float = 0.0, thread: str = "") -> Result:
    """Return an error result of this `kind` for a call; the message, cut to `LONGEST_ERROR`, is both its output and its
    reason."""
    message = message[:LONGEST_ERROR]
    return Result(call, message, True, kind, message, duration=duration, thread=thread)


def rejected_result(call: Call, problems: Sequence[Problem]) -> Result:
    """Return the "refused" result of a call: the text for the model has the messages of the blocking problems, and the
    arguments that were sent if they were no object. All `problems` are kept in it."""
    message = "the call was not run: " + "; ".join([problem.message for problem in problems if problem.blocking])
    message += _input_note(call)
    return Result(call, message[:LONGEST_ERROR], True, "refused", message[:LONGEST_ERROR], tuple(problems))


def _input_note(call: Call) -> str:
    """Return a clause that quotes the arguments text of a call (at most 500 characters) if it was no JSON object, since
    a history contains only objects; "" if the call has arguments or sent none."""
    if call.arguments or not call.json.strip("{} \t\r\n"):
        return ""
    sent = call.json if len(call.json) <= _LONGEST_SENT else call.json[:_LONGEST_SENT] + "..."
    return f"; the arguments you sent: {sent}"


def not_run_result(call: Call, why: str) -> Result:
    """Return the "not_run" result, an error, of a call that was not reached; `why` is a clause for the model."""
    return failed_result(call, "not_run", f"the call was not run: {why}; send it again if it is still needed")


def cancelled_result(call: Call, cancelled: BaseException) -> Result:
    """Return the "cancelled" result, an error, of a call that was cancelled after it had begun, so that its effects may
    remain. The notes of the exception `cancelled` are included."""
    notes = "".join([f"; {note}" for note in getattr(cancelled, "__notes__", ())])
    return failed_result(call, "cancelled", f"the call was cancelled; it may have done a part of its work{notes}")


def describe_error(error: BaseException) -> str:
    """Return an exception as text for the model, of at most `LONGEST_ERROR` characters: its type and message, without a
    traceback; for a `ToolError` itself the message alone. Never raises."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception whose `str` fails still has a type
        text = ""
    if text and type(error) is ToolError:  # raised intentionally, with a message for the model
        return text[:LONGEST_ERROR]
    return f"{type(error).__name__}: {text}"[:LONGEST_ERROR] if text else type(error).__name__


_CUSTOM = ("custom", "custom_tool_call")


def answers(reply: Reply, results: Iterable[Result] = (), *, api: str = "chat") -> list[Json]:
    """Return the messages to append to the history after `reply.message()`.

    One answer for each attempt, in order: its result, or its rejection; then, if something else is wrong with the
    reply, a message that says so. Empty where there is nothing to answer.

    - `reply`: the reply that was read.
    - `results`: those of `dispatch(reply)` or of `dispatch(reply.calls)`; they are matched by the ids of their calls.
    - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or the name of its SDK.
    """
    given = list(results)
    outcomes = [_mark_custom(_take_result(call, given).outcome, reply) for call in reply.attempts]
    return write_results(api, outcomes, feedback(_keep_reply_problems(reply)))


def _take_result(call: Call, given: list[Result]) -> Result:
    """Remove the result of this call from `given` and return it: the one with the call's id or, without an id, its
    name. If there is none, return a rejection with the call's problems for an invalid call, and a `not_run` result for
    a valid one."""
    for at, result in enumerate(given):
        if result.id == call.id and (call.id or result.name == call.name):
            return given.pop(at)
    return not_run_result(call, "it has no result") if call.ok else rejected_result(call, call.problems)


def _mark_custom(outcome: CallOutcome, reply: Reply) -> CallOutcome:
    """Return the outcome with `custom` set if the provider sent its call in `reply` as one of a custom tool, for which
    APIs expect another shape; otherwise unchanged."""
    kind = reply.extras.get(outcome.call.id, {}).get("type")
    return outcome._replace(custom=True) if kind in _CUSTOM else outcome


def _keep_reply_problems(reply: Reply) -> Reply:
    """Return a copy of the reply with only its blocking problems that belong to no call, because the results report the
    others; the reply itself if it has no calls."""
    if not reply.attempts:
        return reply
    kept = [problem for problem in reply.problems if problem.call is None and problem.blocking]
    return msgspec.structs.replace(reply, problems=tuple(kept))
