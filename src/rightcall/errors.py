"""What rightcall raises. What a *model* got wrong is a `Problem`, not an exception, unless the caller asks for one.

    RightcallError
    |-- WorkerLost             processes that did the work were killed again and again
    |-- CallerError            the calling code passed something that cannot work
    |   |-- UnknownFormat      no format of that name; names the nearest
    |   |-- BadFormat          a format definition that breaks its own rules
    |   |-- BadTools           a tool definition that cannot be used
    |   |-- BadCassette        a recording that cannot be read
    |   |-- FileFailed         a file could not be opened, read, written or synced
    |   |   `-- NotOurs        the file to write is of another kind, read-only, a link, a folder or a device
    |   |-- EmptyToolList      tools are needed here, and there are none
    |   |-- MissingExtra       this needs a package that is not installed; names the extra that brings it
    |   |-- GrammarCompileError  a grammar cannot say what the caller insists on
    |   |-- CannotCarry        this reply cannot be written in that format without changing it
    |   |-- HookFailed *       a hook raised, or answered with something that is no action
    |   `-- NotRunnable *      the tool has no code to run, or none that can run in a process of its own
    |-- ModelError             what the model wrote, where the caller asked for an exception
    |   |-- NoToolCallFound    there is no call in it
    |   |-- UnknownTool        the call is for no tool that may be called
    |   |-- MalformedArguments the call was cut off, cannot be read or does not fit its schema
    |   `-- CallRefused *      a call that must not run, where the batch was to stop at one
    |-- ToolError              a tool's own code failed
    |   |-- ToolFailed *       the same, where the batch was to stop at one
    |   |-- ToolTimedOut       a tool took longer than it may
    |   `-- NotApplicable      raised by a tool: there was nothing to do, which is no failure
    |-- BackendError           a model server or the way to it failed
    |   |-- TransportError     no connection, or it broke before an answer began
    |   |   `-- TimedOut       a time limit ended it; says which
    |   |-- BodyError          the answer began and could not be read to its end
    |   |   `-- AnswerTooLarge it is longer than anything that is read
    |   |-- StatusError        the server refused: a status other than 2xx
    |   |   |-- Unauthorised   401 or 403: the key
    |   |   `-- RateLimited    429: too many requests
    |   |-- DecodeError        the answer is no JSON, or none of this API
    |   |-- ProviderError      the server said 200, and sent an error in place of an answer
    |   |-- Unsupported        this server cannot do what was asked
    |   `-- NotRecorded        a recording has no answer to this request; names the nearest
    `-- DispatchStopped        a batch of calls ended early, and these are its `results`: every * above, and
        `-- DispatchTerminated *   a hook said so: nobody's fault

Every message names the culprit, the cause and the cure.
"""

from __future__ import annotations

from typing import Any


class RightcallError(Exception):
    """Anything this package raises on purpose. Comparable: two that say the same are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.args == self.args

    def __hash__(self) -> int:
        return hash((type(self), self.args))

    def __reduce__(self) -> tuple[Any, ...]:
        """Out of a process and back it is the same, whatever made it."""
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(kind: type[RightcallError], args: tuple[Any, ...], fields: dict[str, Any]) -> RightcallError:
    made = kind.__new__(kind)
    made.args = args
    made.__dict__.update(fields)
    return made


class CallerError(RightcallError):
    """The calling code passed something that cannot work. The message says what to pass."""


class UnknownFormat(CallerError):
    """There is no format of that name. The message names the nearest."""


class BadFormat(CallerError):
    """A format definition that breaks its own rules. The message names the key and the cure."""


class BadTools(CallerError):
    """A tool definition that cannot be used. The message names the tool, the place in its schema and the cure."""


class CannotCarry(CallerError):
    """This reply cannot be written in that format without changing it.

    - `format`: its name.
    - `path`: where it cannot, in the reply: `/parts/0/arguments/city`.
    - `cause`: what the wire would change.
    """

    def __init__(self, format: str, path: str, cause: str) -> None:
        super().__init__(
            f"format {format!r} cannot carry {path}: {cause}; send it in another format or change the value"
        )
        self.format, self.path, self.cause = format, path, cause


class BadCassette(CallerError):
    """A recording that cannot be read or written. The message names the file and the cure."""


class FileFailed(CallerError):
    """A file could not be opened, read, written or synced. The message names the step, the path and the cause."""


class NotOurs(FileFailed):
    """The file to write is of another kind, read-only, a link, a folder or a device; nothing has been written. The
    message names the file, what it looks like and the cure."""


class EmptyToolList(CallerError):
    """Tools are needed here, and there are none."""

    def __init__(self) -> None:
        super().__init__("tool list is empty: pass at least one tool")


class MissingExtra(CallerError):
    """Something that is needed here is not installed. `extra` is what to install, `pip install 'rightcall[extra]'`;
    `message` is what is said."""

    def __init__(self, extra: str, message: str) -> None:
        super().__init__(message)
        self.extra = extra


class GrammarCompileError(CallerError):
    """A grammar cannot say what the caller insists on. `reason` names the tool and the part of its schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"grammar compile error: {reason}")
        self.reason = reason


class WorkerLost(RightcallError):
    """Processes that worked on one part of the rows ended before they were done, again and again. The message names the
    part and how they ended."""


class ModelError(RightcallError):
    """What the model wrote is wrong, and the caller asked for an exception. `problems` are the `Problem`s that it
    stands for."""

    problems: tuple[Any, ...] = ()


class NoToolCallFound(ModelError):
    """There is no call in what the model wrote."""

    def __init__(self) -> None:
        super().__init__("no tool call found in model output")


class UnknownTool(ModelError):
    """The call is for no tool that may be called. `name` is what it called; `hint` goes into the message."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"unknown tool: {name!r}" + (f" ({hint})" if hint else ""))
        self.name = name


class MalformedArguments(ModelError):
    """The call was cut off, cannot be read or does not fit its schema. `reason` says which, and what to send."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed tool arguments: {reason}")
        self.reason = reason


class ToolError(RightcallError):
    """A tool's own code failed. For tools to raise too: the message goes to the model as it is."""


class ToolTimedOut(ToolError):
    """A tool took longer than it may.

    - `tool`: its name.
    - `seconds`: how long it had.
    - `thread`: the name of the thread that may still be running, since Python cannot stop one; empty where it was
      stopped.
    """

    def __init__(self, tool: str, seconds: float, thread: str = "") -> None:
        still = f"; its thread {thread!r} cannot be stopped and may still be running" if thread else " and was stopped"
        super().__init__(f"the tool {tool!r} took longer than {seconds:g} seconds{still}")
        self.tool, self.seconds, self.thread = tool, seconds, thread


class NotApplicable(ToolError):
    """For tools to raise: the call was fine, and there is nothing to do. The model is told; nothing has failed."""


class BackendError(RightcallError):
    """A model server, or the way to it, failed. `tries` are those that were made, each with what came of it. Never
    holds a key."""

    tries: tuple[object, ...] = ()


class TransportError(BackendError):
    """There was no connection, or it broke before an answer began."""


class TimedOut(TransportError):
    """A time limit ended it. `message` is what is said, and `stage` the limit: "connect", "first_byte", "idle" or
    "total"."""

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.stage = stage


class BodyError(BackendError):
    """The answer began and could not be read to its end."""


class AnswerTooLarge(BodyError):
    """The answer is longer than anything that is read."""


class StatusError(BackendError):
    """The server refused: a status other than 2xx.

    - `message`: what is said.
    - `status`: the HTTP status.
    - `body`: what the server said, whole up to a limit.
    - `retry_after`: how many seconds it asked to wait; None where it did not.
    """

    def __init__(self, message: str, status: int, body: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.body, self.retry_after = status, body, retry_after


class Unauthorised(StatusError):
    """Status 401 or 403: the key is missing, wrong, or good for something else."""


class RateLimited(StatusError):
    """Status 429: too many requests, also after the retries."""


class DecodeError(BackendError):
    """The answer is no JSON, or none of this API. `message` is what is said, `body` the beginning of what came."""

    def __init__(self, message: str, body: str = "") -> None:
        super().__init__(message)
        self.body = body


class ProviderError(BackendError):
    """The server said 200, and sent an error in place of an answer. `message` is what it said, `kind` what it calls the
    error: its type or code."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Unsupported(BackendError):
    """This server cannot do what was asked. The message says what it can."""


class NotRecorded(BackendError):
    """A recording has no answer to this request. The message names the nearest one."""


class DispatchStopped(RightcallError):
    """A batch of calls ended early. `results` has one result for each call of the batch, in order; those that were not
    reached say so."""

    results: tuple[Any, ...] = ()


class ToolFailed(DispatchStopped, ToolError):
    """A tool failed, and the batch was to stop at that. `tool` is its name, `cause` what it raised."""

    def __init__(self, tool: str, cause: str) -> None:
        super().__init__(f"tool invocation failed: {tool}: {cause}")
        self.tool = tool


class CallRefused(DispatchStopped, ModelError):
    """A call must not run, and the batch was to stop at one. `tool` is what it called, `cause` what is wrong."""

    def __init__(self, tool: str, cause: str) -> None:
        super().__init__(f"the call of {tool!r} must not run: {cause}")
        self.tool = tool


class DispatchTerminated(DispatchStopped):
    """A hook ended the batch: nobody's fault. `reason` is what it said."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"tool dispatch terminated: {reason}")
        self.reason = reason


class HookFailed(DispatchStopped, CallerError):
    """A hook raised, or answered with something that is no action; nothing more was run. `hook` is its place among the
    hooks, from 0, `cause` what happened."""

    def __init__(self, hook: int, cause: str) -> None:
        super().__init__(f"hook {hook + 1} failed: {cause}; nothing more was run, because a broken hook guards nothing")
        self.hook = hook


class NotRunnable(DispatchStopped, CallerError):
    """The tool has no code to run, or none that can run in a process of its own."""
