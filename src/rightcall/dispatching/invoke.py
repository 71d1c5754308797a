"""Execute one tool call: validate and bind the arguments, run the hooks and the tool, record the trace."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from time import perf_counter
from types import CoroutineType, MappingProxyType
from typing import Any, NamedTuple

import msgspec

from rightcall.dispatching.bounded_output import BoundedOutput, Bounds, bound
from rightcall.dispatching.hook import Continue, Hook, Invocation, Skip, Terminate
from rightcall.dispatching.result import Kind, Result, describe_error, failed_result, not_run_result, rejected_result
from rightcall.dispatching.trace import (
    COMPLETED,
    HookAfter,
    HookAfterError,
    HookBefore,
    HookBeforeError,
    HookCleanup,
    HookCleanupError,
    Outcome,
    Row,
)
from rightcall.errors import (
    CallRefused,
    DispatchStopped,
    DispatchTerminated,
    HookFailed,
    NotApplicable,
    NotRunnable,
    ToolError,
    ToolFailed,
    ToolTimedOut,
)
from rightcall.schema.validation import fits_schema
from rightcall.tools.checks import check
from rightcall.tools.functions import Binding, Typed, get_binding, is_async
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Problem, Tool

_numbers = itertools.count(1)


def binding_of(tool: Tool) -> Binding | None:
    """Return the function of this tool and how its arguments are bound and validated; None if it has no code. A
    callable that was set as `Tool.run` by the user gets the JSON arguments unchanged, as keywords."""
    run = tool.run
    if run is None:
        return None
    return get_binding(run) or Binding(None, lambda typed: run(**typed), run, is_async(run))


async def await_with_timeout(tool: str, waiting: Awaitable[Any], seconds: float | None, thread: str = "") -> Any:
    """Await a tool's output and return it. Raises `ToolTimedOut` after `seconds` (None: no limit); a `TimeoutError`
    of the tool itself is raised unchanged."""
    if seconds is None:
        return await waiting
    try:
        async with asyncio.timeout(seconds) as clock:
            return await waiting
    except TimeoutError:
        if not clock.expired():  # raised by the tool itself
            raise
        raise ToolTimedOut(tool, seconds, thread) from None


class StartedCoroutine:
    """A coroutine that has run to its first wait, to be awaited from there."""

    __slots__ = ("coroutine", "first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self.coroutine, self.first = coroutine, first

    def __await__(self) -> Generator[Any, Any, Any]:
        """Continue the coroutine from its first wait, and return its result."""
        waits_for = self.first
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001 - cancelled, or what it waited for failed: for the tool
                    waits_for = self.coroutine.throw(error)
                else:
                    waits_for = self.coroutine.send(sent)
        except StopIteration as done:
            return done.value


async def in_thread(tool: str, call: Callable[[Typed], Any], typed: Typed, seconds: float | None) -> Any:
    """Run a tool that is not async in a new daemon thread and return its output; an output that is awaitable is awaited
    here, in the event loop. Raises `ToolTimedOut` after `seconds` (None: no limit), and what the tool raises. The
    thread cannot be stopped: after a timeout or a cancellation it may run on."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def run_in_thread() -> None:
        """Run the tool in the thread and pass its output or error to the event loop."""
        given: Any = None
        error: BaseException | None = None
        try:
            given = context.run(call, typed)
        except StopIteration as stop:  # which a future cannot carry
            error = ToolError(f"StopIteration: {stop}")
        except BaseException as raised:  # noqa: BLE001 - carried over to the waiting side
            error = raised
        with contextlib.suppress(RuntimeError):  # the event loop is closed: no task awaits the result
            loop.call_soon_threadsafe(_set_future, future, given, error)

    thread = threading.Thread(target=run_in_thread, name=f"rightcall-{tool}-{next(_numbers)}", daemon=True)
    started = loop.time()
    thread.start()
    try:
        given = await await_with_timeout(tool, future, seconds, thread.name)
    except asyncio.CancelledError as cancelled:
        cancelled.add_note(f"its thread {thread.name!r} cannot be stopped and may still be running")
        raise
    if not inspect.isawaitable(given):
        return given
    return await await_with_timeout(
        tool, given, None if seconds is None else max(0.0, seconds - (loop.time() - started))
    )


def _set_future(future: asyncio.Future[Any], given: Any, error: BaseException | None) -> None:
    """Set the output or, if there is one, the error of a future; do nothing if it is done already."""
    if future.done():
        return
    if error is None:
        future.set_result(given)
    else:
        future.set_exception(error)


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long calls may take, how many run at once, how much of a result is kept. Seconds; None means no limit.

    - `call`: the time of one tool without hooks, which may wait for a person.
    - `batch`: the time of all calls of one `dispatch`.
    - `result`: bounds on outputs; None keeps them whole.
    - `together`: how many calls run at the same time with `parallel`.
    """

    call: float | None = 120.0
    batch: float | None = None
    result: Bounds | None = None
    together: int = 8


NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})

_TOO_LATE = "the time for this batch is over"


class RunPlan(msgspec.Struct, frozen=True, eq=False):
    """How a tool is run.

    `binding` is None for a tool without code; one that `runs_here` is async, and runs in the event loop.
    """

    tool: Tool
    binding: Binding | None
    runs_here: bool
    call: Callable[[Typed], Any]


class Batch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What the calls of one batch have in common. `quick` has the tools that need no check when called without
    arguments."""

    tools: Toolset
    hooks: list[Hook]
    limits: RunLimits
    deadline: float | None
    isolate: bool
    quick: dict[str, RunPlan]
    keeps_whole: bool

    @property
    def seconds(self) -> float | None:
        """Return the time limit in seconds of a tool that starts now; None without a limit."""
        if self.deadline is None:
            return self.limits.call
        left = max(0.0, self.remaining_seconds)
        return left if self.limits.call is None else min(self.limits.call, left)

    @property
    def remaining_seconds(self) -> float:
        """Return how many seconds of the batch are left: negative when it is late, infinity without a limit."""
        return float("inf") if self.deadline is None else self.deadline - asyncio.get_running_loop().time()


class RunRefusal(msgspec.Struct, frozen=True):
    """A call that is rejected before the hooks: its result, the reason for the trace, and the error to stop with."""

    result: Result
    reason: str
    stop: DispatchStopped


Prepared = tuple[RunPlan, Invocation, Typed]


class Plans(NamedTuple):
    """The run plans of a toolset, filled as tools are called. `quick` has those that need no check without
    arguments."""

    tools: Toolset
    known: dict[str, RunPlan]
    quick: dict[str, RunPlan]


# Kept with the toolset: an id is only unique among living objects.
_PLANS: dict[int, Plans] = {}


def plans_of(tools: Toolset) -> Plans:
    """Return the cache of run plans of this toolset object, which `_plan_of` fills; a new empty one at the first call.
    At most about 64 toolsets are kept."""
    found = _PLANS.get(id(tools))
    if found is None:
        if len(_PLANS) > 64:
            _PLANS.clear()
        found = _PLANS[id(tools)] = Plans(tools, {}, {})
    return found


def _plan_of(tools: Toolset, tool: Tool) -> RunPlan:
    """Return how a tool of this toolset is run. The plan is made at the first call and kept with the toolset; a tool
    that can be called without arguments and without a check is also added to `quick`."""
    plans = plans_of(tools)
    found = plans.known.get(tool.name)
    if found is None:
        binding = binding_of(tool)
        call = _raise_no_code if binding is None else binding.call
        found = plans.known[tool.name] = RunPlan(tool, binding, binding is not None and binding.is_async, call)
        if (binding is None or binding.validate is None or binding.no_parameters) and fits_schema(tool, {}):
            plans.quick[tool.name] = found
    return found


def _raise_no_code(typed: Typed) -> Any:
    """Stand in for the function of a tool without code. Never called: raises `AssertionError`."""
    raise AssertionError("a tool without code is not run here")


def prepare(batch: Batch, index: int, call: Call) -> Prepared | RunRefusal:
    """Check a call and bind its arguments; nothing is run. Return the plan, the invocation and the bound arguments, or
    a `RunRefusal` if the call is rejected, its own validator raises, or the batch is out of time."""
    tool = batch.tools.get(call.name)
    found = _find_problems(batch, index, call)
    if tool is None or any(problem.blocking for problem in found):
        return _make_rejection(call, found)
    if batch.remaining_seconds <= 0:
        return RunRefusal(not_run_result(call, _TOO_LATE), _TOO_LATE, ToolFailed(call.name, _TOO_LATE))
    plan = _plan_of(batch.tools, tool)
    try:
        typed = plan.binding.typed(call.arguments) if plan.binding is not None else call.arguments
    except Exception as error:  # noqa: BLE001 - a validator is the tool's own code: its error is the call's result
        return RunRefusal(
            failed_result(call, "failed", describe_error(error)), describe_error(error), tool_failed(call, error)
        )
    if isinstance(typed, tuple):
        return _make_rejection(call, [msgspec.structs.replace(problem, call=index) for problem in typed])
    return plan, Invocation(index, call, tool, MappingProxyType(typed), tuple(found)), typed


def _find_problems(batch: Batch, index: int, call: Call) -> list[Problem]:
    """Return the problems that a call has already, and, if none of them is blocking, those of a check against the
    batch's tools."""
    found = list(call.problems)
    if not any(problem.blocking for problem in found):
        found += check(call, batch.tools, index=index)
    return found


def _make_rejection(call: Call, problems: Sequence[Problem]) -> RunRefusal:
    """Return the `RunRefusal` for a call with these problems: a "refused" result, the codes of the blocking problems as
    the reason, and a `CallRefused`."""
    codes = ", ".join(dict.fromkeys([problem.code for problem in problems if problem.blocking]))
    result = rejected_result(call, problems)
    return RunRefusal(result, codes, CallRefused(call.name, result.reason))


def tool_failed(call: Call, error: BaseException) -> ToolFailed:
    """Return (not raise) a `ToolFailed` for a call whose tool raised `error`, with that error as its cause."""
    stop = ToolFailed(call.name, describe_error(error))
    stop.__cause__ = error
    return stop


Ended = tuple[Result, DispatchStopped | None]
Raised = dict[int, BaseException]

_RAISED = (Exception, SystemExit, asyncio.CancelledError)


class _Stage(NamedTuple):
    """A stage in which hooks are notified: the name of their method, and the events for its success and for its
    exception."""

    method: str
    notified: type[HookAfter | HookCleanup]
    raised: type[HookAfterError | HookCleanupError]


_AFTER = _Stage("after", HookAfter, HookAfterError)
_CLEANUP = _Stage("cleanup", HookCleanup, HookCleanupError)


async def invoke(batch: Batch, index: int, call: Call, rows: list[Row]) -> Ended:
    """Execute one call: check it, run the hooks and the tool, and append the events to `rows`.

    Return the result and the error that may end the batch, None if there is none. What the tool or a hook raises
    becomes a result; only a cancellation of this task is raised."""
    plan = batch.quick.get(call.name)
    if plan is not None and call.json == "{}" and not call.arguments and call.complete and not call.problems:
        invocation = Invocation(index, call, plan.tool, NO_ARGUMENTS)
        typed: Typed = {}
    else:
        ready = prepare(batch, index, call)
        if isinstance(ready, RunRefusal):
            rows.append((Outcome, index, call.name, ready.result.kind, ready.reason))
            return ready.result, ready.stop
        plan, invocation, typed = ready
    at = 0
    answer: Any = None
    try:
        for hook in batch.hooks:
            answer = hook.before(invocation)
            if answer is not None:
                answer = await (answer if type(answer) is CoroutineType else _await_if_awaitable(answer))
                if answer is not None and _blocks_call(answer):
                    break
            at += 1
    except _RAISED as error:
        return await _finish_hook_error(batch, invocation, rows, at, error)
    if at < len(batch.hooks):
        return await _finish_blocked_call(batch, invocation, rows, at, answer)
    started = perf_counter()
    try:
        if plan.runs_here and not batch.isolate:
            coroutine = plan.call(typed)
            try:  # The first step is taken at once: a tool that never waits needs no clock.
                first = coroutine.send(None)
            except StopIteration as done:
                output = done.value
            else:
                output = await await_with_timeout(call.name, StartedCoroutine(coroutine, first), batch.seconds)
        else:
            output = await _run_tool(batch, plan, invocation, typed)
        result = Result(call, output, False, "completed", "", (), perf_counter() - started)
    except NotApplicable as nothing:
        result = Result(call, str(nothing), kind="not_applicable", duration=perf_counter() - started)
    except _RAISED as error:
        return await _finish_failed(batch, invocation, rows, error, perf_counter() - started)
    errors: Raised | None = None
    notified = 0
    try:
        for hook in batch.hooks:
            waiting = hook.after(invocation, result)
            if waiting is not None:
                await (waiting if type(waiting) is CoroutineType else _await_if_awaitable(waiting))
            notified += 1
    except _RAISED as error:
        rest = await _notify_hooks(batch.hooks[notified + 1 :], _AFTER, invocation, result) or {}
        errors = {notified: error, **{notified + 1 + later: each for later, each in rest.items()}}
    if errors is not None or result.kind != "completed":
        return _record_after_hooks(batch, invocation, rows, result, at, errors)
    rows.append((COMPLETED, index, call.name, at))
    return (
        result if batch.keeps_whole and type(result.output) is not BoundedOutput else _bound_output(batch, result)
    ), None


async def _await_if_awaitable(answer: Any) -> Any:
    """Return the answer, awaited if it is awaitable."""
    return await answer if inspect.isawaitable(answer) else answer


def _blocks_call(answer: Any) -> bool:
    """Return True for `Skip` and `Terminate`, False for `Continue`. Raises `TypeError` for anything else, also for
    None, which the caller handles."""
    if not isinstance(answer, (Continue, Skip, Terminate)):
        raise TypeError(f"a hook answers with Continue, Skip, Terminate or None, not {answer!r:.80}")
    return not isinstance(answer, Continue)


async def _run_tool(batch: Batch, plan: RunPlan, invocation: Invocation, typed: Typed) -> Any:
    """Run a tool in a thread or, with `isolate`, in a process, and return its output. Raises `NotRunnable` for a tool
    without code, `ToolTimedOut` at the time limit, and what the tool raises."""
    name, binding = plan.tool.name, plan.binding
    if binding is None:
        raise NotRunnable(f"the tool {name!r} has no code to run: declare it with a function, or set Tool.run")
    if not batch.isolate:
        return await in_thread(name, binding.call, typed, batch.seconds)
    from rightcall.dispatching.isolate import in_process

    return await in_process(name, binding, invocation.call.arguments, typed, batch.seconds)


def _bound_output(batch: Batch, result: Result) -> Result:
    """Return the result with its output cut to the limit, and the cut output as its `envelope`; unchanged without a
    limit, unless the tool itself bounded its output. The hooks have seen the whole output."""
    if batch.limits.result is None and type(result.output) is not BoundedOutput:
        return result
    envelope = bound(result.output, batch.limits.result)
    return msgspec.structs.replace(result, output=envelope.payload, envelope=envelope)


# -- notifying the hooks -----------------------------------------------------------------------------------------------


async def _notify_hooks(hooks: Sequence[Hook], stage: _Stage, invocation: Invocation, about: Any) -> Raised | None:
    """Call the method of this stage on every hook, also after one has raised. Return the errors by position among
    these hooks; None if none raised."""
    errors: Raised | None = None
    method = stage.method
    at = 0
    for hook in hooks:
        try:
            waiting = getattr(hook, method)(invocation, about)
            if waiting is not None:
                await (waiting if type(waiting) is CoroutineType else _await_if_awaitable(waiting))
        except _RAISED as error:
            errors = errors or {}
            errors[at] = error
        at += 1  # noqa: SIM113 - counted by hand: `enumerate` costs more
    return errors


# The events of a call are written without an await between them: two dispatches may share a trace.


def _record_continues(rows: list[Row], index: int, count: int) -> None:
    """Append an event for each of the first `count` hooks: its `before` let the call run."""
    rows += [(HookBefore, index, at, "continue") for at in range(count)]


def _record_notified(rows: list[Row], index: int, stage: _Stage, count: int, errors: Raised | None) -> None:
    """Append an event for each of the first `count` hooks, which were notified in this stage: success, or the exception
    that `errors` has at the hook's index."""
    errors = errors or {}
    rows += [
        (stage.raised, index, at, describe_error(errors[at])) if at in errors else (stage.notified, index, at)
        for at in range(count)
    ]


def _record_after_hooks(
    batch: Batch, invocation: Invocation, rows: list[Row], result: Result, continued: int, errors: Raised | None
) -> Ended:
    """Append to `rows` the events of the hooks, whose `before` and `after` were called already, and the outcome.
    Return the bounded result, and the error that ends the batch if a hook raised (`errors`), else None."""
    _record_continues(rows, invocation.index, continued)
    _record_notified(rows, invocation.index, _AFTER, len(batch.hooks), errors)
    return _record_outcome(invocation, _bound_output(batch, result), rows, errors, None, result.reason)


async def _finish_blocked_call(
    batch: Batch, invocation: Invocation, rows: list[Row], at: int, answer: Skip | Terminate
) -> Ended:
    """End a call that `before` of hook `at` blocked with this answer, and append the events. `Skip`: return its output
    as a "skipped" result, after calling `after` of all hooks. `Terminate`: return a failed result and the
    `DispatchTerminated` that ends the batch, after calling `cleanup` of all hooks. An exception of a hook is returned
    as the error that ends the batch."""
    call, index, reason = invocation.call, invocation.index, answer.reason
    if isinstance(answer, Skip):
        result = Result(call, answer.output, kind="skipped", reason=reason)
        errors = await _notify_hooks(batch.hooks, _AFTER, invocation, result)
        _record_continues(rows, index, at)
        rows.append((HookBefore, index, at, "skip", reason))
        return _record_after_hooks(batch, invocation, rows, result, 0, errors)
    stop = DispatchTerminated(reason)
    errors = await _notify_hooks(batch.hooks, _CLEANUP, invocation, stop)
    _record_continues(rows, index, at)
    rows.append((HookBefore, index, at, "terminate", reason))
    _record_notified(rows, index, _CLEANUP, len(batch.hooks), errors)
    result = failed_result(call, "terminated", f"the call was not run: {reason}")
    return _record_outcome(invocation, result, rows, errors, stop, reason)


async def _finish_hook_error(
    batch: Batch, invocation: Invocation, rows: list[Row], at: int, error: BaseException
) -> Ended:
    """End a call for which `before` of hook `at` raised: call `cleanup` of the hooks before it, and append the
    events. Return a failed result and the error that ends the batch. Raises the error again if this task is being
    cancelled."""
    errors = await _notify_hooks(batch.hooks[:at], _CLEANUP, invocation, error)
    _record_continues(rows, invocation.index, at)
    rows.append((HookBeforeError, invocation.index, at, describe_error(error)))
    _record_notified(rows, invocation.index, _CLEANUP, at, errors)
    _raise_if_cancelled(invocation, rows, error, errors)
    result = failed_result(invocation.call, "failed", "the call was not run: a check before it failed")
    return _record_outcome(invocation, result, rows, errors, _make_hook_error(at, error), describe_error(error))


async def _finish_failed(
    batch: Batch, invocation: Invocation, rows: list[Row], error: BaseException, duration: float
) -> Ended:
    """End a call whose tool raised, timed out, or was cancelled: call `cleanup` of all hooks, and append the events.
    Return a failed result, and the error to raise if failures end the batch. Raises `error` again if this task is being
    cancelled."""
    errors = await _notify_hooks(batch.hooks, _CLEANUP, invocation, error)
    _record_continues(rows, invocation.index, len(batch.hooks))
    _record_notified(rows, invocation.index, _CLEANUP, len(batch.hooks), errors)
    _raise_if_cancelled(invocation, rows, error, errors)
    kind: Kind = "timed_out" if isinstance(error, ToolTimedOut) else "failed"
    message = str(error) if isinstance(error, (ToolTimedOut, NotRunnable)) else describe_error(error)
    thread = error.thread if isinstance(error, ToolTimedOut) else ""
    result = failed_result(invocation.call, kind, message, duration=duration, thread=thread)
    # One that has results already comes from a dispatch inside the tool: for this one, the tool failed.
    is_ours = isinstance(error, NotRunnable) and not error.results
    stop: Any = error if is_ours else tool_failed(invocation.call, error)
    return _record_outcome(invocation, result, rows, errors, stop, message)


def _record_outcome(
    invocation: Invocation,
    result: Result,
    rows: list[Row],
    errors: Raised | None,
    stop: DispatchStopped | None,
    reason: str,
) -> Ended:
    """Append the outcome to `rows`, and return the result with the error that may end the batch: a `HookFailed` for the
    first hook in `errors`, or else `stop`, which may be None. Raises a cancellation in `errors` again if this task is
    being cancelled."""
    if not errors:
        rows.append((Outcome, invocation.index, invocation.call.name, result.kind, reason))
        return result, stop
    at, error = min(errors.items(), key=lambda each: each[0])
    rows.append((Outcome, invocation.index, invocation.call.name, result.kind, reason, describe_error(error)))
    for each in errors.values():
        if isinstance(each, asyncio.CancelledError) and _is_being_cancelled():
            raise each
    return result, _make_hook_error(at, error)


def _raise_if_cancelled(invocation: Invocation, rows: list[Row], error: BaseException, errors: Raised | None) -> None:
    """Append a cancelled outcome and raise the error again, if it is a cancellation of this task and not only of the
    tool. Otherwise do nothing."""
    if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
        why = "; ".join(getattr(error, "__notes__", ()))
        broken = describe_error(errors[min(errors)]) if errors else ""
        rows.append((Outcome, invocation.index, invocation.call.name, "cancelled", why, broken))
        raise error


def _is_being_cancelled() -> bool:
    """Return whether the cancellation of the current task was requested, and so a `CancelledError` is not only the
    tool's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _make_hook_error(at: int, error: BaseException) -> HookFailed:
    """Return (not raise) the `HookFailed` that ends the batch because the hook at index `at` raised `error`, which is
    its cause."""
    stop = HookFailed(at, describe_error(error))
    stop.__cause__ = error
    return stop
