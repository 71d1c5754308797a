"""The exceptions of rightcall. A *model's* mistake is a `Problem`, not an exception, unless the caller asks for one.

    RightcallError
    |-- WorkerLost             worker processes were killed repeatedly
    |-- CallerError            the calling code passed an invalid value
    |   |-- UnknownFormat      no format has that name; names the most similar one
    |   |-- BadFormat          a format definition is invalid
    |   |-- BadTools           a tool definition that cannot be used
    |   |-- BadCassette        a recording that cannot be read
    |   |-- FileFailed         a file could not be opened, read, written or synced
    |   |   `-- NotOurs        the file to write is of another kind, read-only, a link, a folder or a device
    |   |-- EmptyToolList      at least one tool is required, and there is none
    |   |-- MissingExtra       a required package is not installed; names its extra
    |   |-- GrammarCompileError  a grammar cannot express the caller's constraints
    |   |-- CannotCarry        the reply cannot be written in that format without changing it
    |   |-- HookFailed *       a hook raised, or returned something that is not an action
    |   `-- NotRunnable *      the tool has no function, or none that can run in a separate process
    |-- ModelError             a mistake of the model, for callers who asked for an exception
    |   |-- NoToolCallFound    the output has no call
    |   |-- UnknownTool        the call names a tool that is not callable
    |   |-- MalformedArguments the call was cut off, is unreadable or does not match its schema
    |   `-- CallRefused *      a call is not runnable, and the batch was to stop at such a call
    |-- ToolError              a tool's own code failed
    |   |-- ToolFailed *       a tool failed, and the batch was to stop at a failure
    |   |-- ToolTimedOut       a tool exceeded its time limit
    |   `-- NotApplicable      raised by a tool: there was nothing to do; not a failure
    |-- BackendError           a model server, or the connection to it, failed
    |   |-- TransportError     no connection, or it broke before an answer began
    |   |   `-- TimedOut       a time limit was exceeded
    |   |-- BodyError          the answer began and could not be read to its end
    |   |   `-- AnswerTooLarge it exceeds the size limit
    |   |-- StatusError        a status other than 2xx
    |   |   |-- Unauthorised   401 or 403: the key
    |   |   `-- RateLimited    429: too many requests
    |   |-- DecodeError        the answer is not JSON, or does not belong to this API
    |   |-- ProviderError      status 200 with an error instead of an answer
    |   |-- Unsupported        the server does not support the request
    |   `-- NotRecorded        a recording has no answer to this request
    `-- DispatchStopped        a batch of calls ended early; has its `results`: every * above, and
        `-- DispatchTerminated *   a hook ended it intentionally

Every message names the culprit, the cause and the cure.
"""

from __future__ import annotations

from typing import Any


class RightcallError(Exception):
    """Any exception that this package raises on purpose. Two of equal type and message are equal."""

    def __eq__(self, other: object) -> bool:
        """Return whether both are of the same class and have equal arguments; other attributes do not count."""
        return type(other) is type(self) and other.args == self.args

    def __hash__(self) -> int:
        return hash((type(self), self.args))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the exception: by class, arguments and attributes, whatever the signature of its
        `__init__`."""
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(kind: type[RightcallError], args: tuple[Any, ...], fields: dict[str, Any]) -> RightcallError:
    """Return the exception of a pickle, made of its class, arguments and attributes without calling its `__init__`."""
    made = kind.__new__(kind)
    made.args = args
    made.__dict__.update(fields)
    return made


class CallerError(RightcallError):
    """The calling code passed an invalid value. The message says what to pass."""


class UnknownFormat(CallerError):
    """No format has that name. The message names the most similar one."""


class BadFormat(CallerError):
    """A format definition is invalid. The message names the key and the cure."""


class BadTools(CallerError):
    """A tool definition cannot be used. The message names the tool, the place in its schema and the cure."""


class CannotCarry(CallerError):
    """The reply cannot be written in that format without changing it.

    - `format`: the name of the format.
    - `path`: the place in the reply: `/parts/0/arguments/city`.
    - `cause`: what the format would change.
    """

    def __init__(self, format: str, path: str, cause: str) -> None:
        super().__init__(
            f"format {format!r} cannot carry {path}: {cause}; send it in another format or change the value"
        )
        self.format, self.path, self.cause = format, path, cause


class BadCassette(CallerError):
    """A recording cannot be read or written. The message names the file and the cure."""


class FileFailed(CallerError):
    """A file could not be opened, read, written or synced. The message names the step, the path and the cause."""


class NotOurs(FileFailed):
    """The file to write is of another kind, read-only, a link, a folder or a device; nothing was written. The message
    names the file, what it seems to be, and the cure."""


class EmptyToolList(CallerError):
    """At least one tool is required, and there is none."""

    def __init__(self) -> None:
        super().__init__("tool list is empty: pass at least one tool")


class MissingExtra(CallerError):
    """A required package is not installed. `extra` is the extra to install, `pip install 'rightcall[extra]'`; `message`
    is the error text."""

    def __init__(self, extra: str, message: str) -> None:
        super().__init__(message)
        self.extra = extra


class GrammarCompileError(CallerError):
    """A grammar cannot express the caller's constraints. `reason` names the tool and the part of its schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"grammar compile error: {reason}")
        self.reason = reason


class WorkerLost(RightcallError):
    """The worker processes for one part of the rows ended repeatedly before they were done. The message names the part
    and how they ended."""


class ModelError(RightcallError):
    """The model made a mistake, and the caller requested an exception. `problems` are the `Problem`s found."""

    problems: tuple[Any, ...] = ()


class NoToolCallFound(ModelError):
    """The model's output has no call."""

    def __init__(self) -> None:
        super().__init__("no tool call found in model output")


class UnknownTool(ModelError):
    """The call names a tool that is not callable. `name` is the name in the call; `hint` is added to the message."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"unknown tool: {name!r}" + (f" ({hint})" if hint else ""))
        self.name = name


class MalformedArguments(ModelError):
    """The call was cut off, is unreadable, or does not match its schema. `reason` says which, and what to send."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed tool arguments: {reason}")
        self.reason = reason


class ToolError(RightcallError):
    """A tool's own code failed. Tools may raise it too: the message goes to the model unchanged."""


class ToolTimedOut(ToolError):
    """A tool exceeded its time limit.

    - `tool`: its name.
    - `seconds`: the limit.
    - `thread`: the name of the thread that may still be running, since Python cannot stop a thread; empty if the tool
      was stopped.
    """

    def __init__(self, tool: str, seconds: float, thread: str = "") -> None:
        still = f"; its thread {thread!r} cannot be stopped and may still be running" if thread else " and was stopped"
        super().__init__(f"the tool {tool!r} took longer than {seconds:g} seconds{still}")
        self.tool, self.seconds, self.thread = tool, seconds, thread


class NotApplicable(ToolError):
    """For tools to raise: the call was valid, but there is nothing to do. The model receives the message; the call does
    not count as failed."""


class BackendError(RightcallError):
    """A model server, or the connection to it, failed. `tries` are all tries with their outcomes. Never contains a
    key."""

    tries: tuple[object, ...] = ()


class TransportError(BackendError):
    """There was no connection, or it broke before an answer began."""


class TimedOut(TransportError):
    """A time limit was exceeded. `message` is the error text, and `stage` the limit: "connect", "first_byte", "idle" or
    "total"."""

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.stage = stage


class BodyError(BackendError):
    """The answer began and could not be read to its end."""


class AnswerTooLarge(BodyError):
    """The answer exceeds the size limit."""


class StatusError(BackendError):
    """The server answered with a status other than 2xx.

    - `message`: the error text.
    - `status`: the HTTP status.
    - `body`: the body of the answer, up to a limit.
    - `retry_after`: the seconds that the server asks to wait; None if it does not.
    """

    def __init__(self, message: str, status: int, body: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.body, self.retry_after = status, body, retry_after


class Unauthorised(StatusError):
    """Status 401 or 403: the key is missing, wrong, or not sufficient."""


class RateLimited(StatusError):
    """Status 429: too many requests, also after the retries."""


class DecodeError(BackendError):
    """The answer is not JSON, or does not belong to this API. `message` is the error text, `body` the start of the
    answer."""

    def __init__(self, message: str, body: str = "") -> None:
        super().__init__(message)
        self.body = body


class ProviderError(BackendError):
    """The server answered with status 200 and an error instead of an answer. `message` is the provider's text, `kind`
    its type or code of the error."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Unsupported(BackendError):
    """This server does not support the request. The message says what it supports."""


class NotRecorded(BackendError):
    """A recording has no answer to this request. The message names the nearest one."""


class DispatchStopped(RightcallError):
    """A batch of calls ended early. `results` has one result per call of the batch, in order; a call that was not run
    has a result that says so."""

    results: tuple[Any, ...] = ()


class ToolFailed(DispatchStopped, ToolError):
    """A tool failed, and the batch was to stop at a failure. `tool` is its name, `cause` the exception."""

    def __init__(self, tool: str, cause: str) -> None:
        super().__init__(f"tool invocation failed: {tool}: {cause}")
        self.tool = tool


class CallRefused(DispatchStopped, ModelError):
    """A call is not runnable, and the batch was to stop at such a call. `tool` is its tool, `cause` the reason."""

    def __init__(self, tool: str, cause: str) -> None:
        super().__init__(f"the call of {tool!r} must not run: {cause}")
        self.tool = tool


class DispatchTerminated(DispatchStopped):
    """A hook ended the batch intentionally. `reason` is the hook's reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"tool dispatch terminated: {reason}")
        self.reason = reason


class HookFailed(DispatchStopped, CallerError):
    """A hook raised, or returned something that is not an action; no further call was run. `hook` is its position among
    the hooks, from 0, `cause` what happened."""

    def __init__(self, hook: int, cause: str) -> None:
        super().__init__(f"hook {hook + 1} failed: {cause}; nothing more was run, because a broken hook guards nothing")
        self.hook = hook


class NotRunnable(DispatchStopped, CallerError):
    """The tool has no function, or none that can run in a separate process."""
