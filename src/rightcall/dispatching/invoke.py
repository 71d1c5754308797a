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
from rightcall.dispatching.result import Kind, Result, failed, not_run, refused, said
from rightcall.dispatching.trace import (
    WENT_WELL,
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
from rightcall.tools.checks import check, fits
from rightcall.tools.functions import Binding, Typed, binding, is_async
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Problem, Tool

_numbers = itertools.count(1)


def bound_to(tool: Tool) -> Binding | None:
    """How this tool is run; None if it has no code. A callable of the user's own takes JSON as it is."""
    run = tool.run
    if run is None:
        return None
    return binding(run) or Binding(None, lambda typed: run(**typed), run, is_async(run))


async def timed(tool: str, waiting: Awaitable[Any], seconds: float | None, thread: str = "") -> Any:
    if seconds is None:
        return await waiting
    try:
        async with asyncio.timeout(seconds) as clock:
            return await waiting
    except TimeoutError:
        if not clock.expired():  # the tool's own
            raise
        raise ToolTimedOut(tool, seconds, thread) from None


class Begun:
    """A coroutine that waits for the first time, to be awaited from there."""

    __slots__ = ("coroutine", "first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self.coroutine, self.first = coroutine, first

    def __await__(self) -> Generator[Any, Any, Any]:
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
    """What a tool that is not async gives. If that is an awaitable, it is waited for here."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        given: Any = None
        error: BaseException | None = None
        try:
            given = context.run(call, typed)
        except StopIteration as stop:  # which a future cannot carry
            error = ToolError(f"StopIteration: {stop}")
        except BaseException as raised:  # noqa: BLE001 - carried over to the waiting side
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_hand_over, future, given, error)

    thread = threading.Thread(target=work, name=f"rightcall-{tool}-{next(_numbers)}", daemon=True)
    started = loop.time()
    thread.start()
    try:
        given = await timed(tool, future, seconds, thread.name)
    except asyncio.CancelledError as cancelled:
        cancelled.add_note(f"its thread {thread.name!r} cannot be stopped and may still be running")
        raise
    if not inspect.isawaitable(given):
        return given
    return await timed(tool, given, None if seconds is None else max(0.0, seconds - (loop.time() - started)))


def _hand_over(future: asyncio.Future[Any], given: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(given)
    else:
        future.set_exception(error)


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long calls may take, how many run at once, how much of a result is kept. Seconds; None is without end.

    - `call`: the time of one tool, hooks not counted: a person may be asked there.
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
    """How a tool is run. `way` is None for one that has no code; one that `runs_here` is async."""

    tool: Tool
    way: Binding | None
    runs_here: bool
    call: Callable[[Typed], Any]


class Batch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What the calls of one batch have in common. `quick` has the tools that need not be judged when they are called
    without arguments."""

    tools: Toolset
    hooks: list[Hook]
    limits: RunLimits
    deadline: float | None
    isolate: bool
    quick: dict[str, RunPlan]
    keeps_whole: bool

    @property
    def seconds(self) -> float | None:
        """How long a tool that starts now may take."""
        if self.deadline is None:
            return self.limits.call
        left = max(0.0, self.left)
        return left if self.limits.call is None else min(self.limits.call, left)

    @property
    def left(self) -> float:
        return float("inf") if self.deadline is None else self.deadline - asyncio.get_running_loop().time()


class RunRefusal(msgspec.Struct, frozen=True):
    """A call that does not come to the hooks: its result, the reason for the trace, and what to stop with."""

    result: Result
    reason: str
    stop: DispatchStopped


Prepared = tuple[RunPlan, Invocation, Typed]


class Plans(NamedTuple):
    """What is known of the tools of a toolset; filled as they are called. `quick` has those that take nothing."""

    tools: Toolset
    known: dict[str, RunPlan]
    quick: dict[str, RunPlan]


# Kept with the toolset: an id is only unique among living objects.
_PLANS: dict[int, Plans] = {}


def plans_of(tools: Toolset) -> Plans:
    found = _PLANS.get(id(tools))
    if found is None:
        if len(_PLANS) > 64:
            _PLANS.clear()
        found = _PLANS[id(tools)] = Plans(tools, {}, {})
    return found


def _plan(tools: Toolset, tool: Tool) -> RunPlan:
    plans = plans_of(tools)
    found = plans.known.get(tool.name)
    if found is None:
        way = bound_to(tool)
        call = _no_code if way is None else way.call
        found = plans.known[tool.name] = RunPlan(tool, way, way is not None and way.is_async, call)
        if (way is None or way.validate is None or way.no_parameters) and fits(tool, {}):
            plans.quick[tool.name] = found
    return found


def _no_code(typed: Typed) -> Any:
    raise AssertionError("a tool without code is not run here")


def prepared(batch: Batch, index: int, call: Call) -> Prepared | RunRefusal:
    tool = batch.tools.get(call.name)
    found = list(call.problems)
    if not any(problem.blocking for problem in found):
        found += check(call, batch.tools, index=index)
    if tool is None or any(problem.blocking for problem in found):
        return _refused(call, found)
    if batch.left <= 0:
        return RunRefusal(not_run(call, _TOO_LATE), _TOO_LATE, ToolFailed(call.name, _TOO_LATE))
    plan = _plan(batch.tools, tool)
    try:
        typed = plan.way.typed(call.arguments) if plan.way is not None else call.arguments
    except Exception as error:  # noqa: BLE001 - a validator is the tool's own code: its error is the call's result
        return RunRefusal(failed(call, "failed", said(error)), said(error), tool_failed(call, error))
    if isinstance(typed, tuple):
        return _refused(call, [msgspec.structs.replace(problem, call=index) for problem in typed])
    return plan, Invocation(index, call, tool, MappingProxyType(typed), tuple(found)), typed


def _refused(call: Call, problems: Sequence[Problem]) -> RunRefusal:
    codes = ", ".join(dict.fromkeys([problem.code for problem in problems if problem.blocking]))
    result = refused(call, problems)
    return RunRefusal(result, codes, CallRefused(call.name, result.reason))


def tool_failed(call: Call, error: BaseException) -> ToolFailed:
    stop = ToolFailed(call.name, said(error))
    stop.__cause__ = error
    return stop


Ended = tuple[Result, DispatchStopped | None]
Raised = dict[int, BaseException]

_RAISED = (Exception, SystemExit, asyncio.CancelledError)


class _Stage(NamedTuple):
    """When hooks are told: by which method, and the events for told and for raised."""

    method: str
    told: type[HookAfter | HookCleanup]
    raised: type[HookAfterError | HookCleanupError]


_AFTER = _Stage("after", HookAfter, HookAfterError)
_CLEANUP = _Stage("cleanup", HookCleanup, HookCleanupError)


async def invoke(batch: Batch, index: int, call: Call, rows: list[Row]) -> Ended:
    plan = batch.quick.get(call.name)
    if plan is not None and call.json == "{}" and not call.arguments and call.complete and not call.problems:
        invocation = Invocation(index, call, plan.tool, NO_ARGUMENTS)
        typed: Typed = {}
    else:
        ready = prepared(batch, index, call)
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
                answer = await (answer if type(answer) is CoroutineType else _waited(answer))
                if answer is not None and _stops(answer):
                    break
            at += 1
    except _RAISED as error:
        return await _broken(batch, invocation, rows, at, error)
    if at < len(batch.hooks):
        return await _stopped(batch, invocation, rows, at, answer)
    started = perf_counter()
    try:
        if plan.runs_here and not batch.isolate:
            made = plan.call(typed)
            try:  # The first step is taken at once: a tool that never waits needs no clock.
                first = made.send(None)
            except StopIteration as done:
                output = done.value
            else:
                output = await timed(call.name, Begun(made, first), batch.seconds)
        else:
            output = await _run(batch, plan, invocation, typed)
        result = Result(call, output, False, "completed", "", (), perf_counter() - started)
    except NotApplicable as nothing:
        result = Result(call, str(nothing), kind="not_applicable", duration=perf_counter() - started)
    except _RAISED as error:
        return await _failed(batch, invocation, rows, error, perf_counter() - started)
    wrong: Raised | None = None
    told = 0
    try:
        for hook in batch.hooks:
            waiting = hook.after(invocation, result)
            if waiting is not None:
                await (waiting if type(waiting) is CoroutineType else _waited(waiting))
            told += 1
    except _RAISED as error:
        rest = await _notify(batch.hooks[told + 1 :], _AFTER, invocation, result) or {}
        wrong = {told: error, **{told + 1 + later: each for later, each in rest.items()}}
    if wrong is not None or result.kind != "completed":
        return _told(batch, invocation, rows, result, at, wrong)
    rows.append((WENT_WELL, index, call.name, at))
    return (result if batch.keeps_whole and type(result.output) is not BoundedOutput else _bounded(batch, result)), None


async def _waited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _stops(answer: Any) -> bool:
    """Is this an answer that does not let the call run? Raises TypeError if it is none at all."""
    if not isinstance(answer, (Continue, Skip, Terminate)):
        raise TypeError(f"a hook answers with Continue, Skip, Terminate or None, not {answer!r:.80}")
    return not isinstance(answer, Continue)


async def _run(batch: Batch, plan: RunPlan, invocation: Invocation, typed: Typed) -> Any:
    name, way = plan.tool.name, plan.way
    if way is None:
        raise NotRunnable(f"the tool {name!r} has no code to run: declare it with a function, or set Tool.run")
    if not batch.isolate:
        return await in_thread(name, way.call, typed, batch.seconds)
    from rightcall.dispatching.isolate import in_process

    return await in_process(name, way, invocation.call.arguments, typed, batch.seconds)


def _bounded(batch: Batch, result: Result) -> Result:
    """What the hooks have seen whole, cut to size."""
    if batch.limits.result is None and type(result.output) is not BoundedOutput:
        return result
    envelope = bound(result.output, batch.limits.result)
    return msgspec.structs.replace(result, output=envelope.payload, envelope=envelope)


# -- telling the hooks -------------------------------------------------------------------------------------------------


async def _notify(hooks: Sequence[Hook], stage: _Stage, invocation: Invocation, about: Any) -> Raised | None:
    """Tells every hook, whatever the others do; those that raised, with what they raised."""
    wrong: Raised | None = None
    method = stage.method
    at = 0
    for hook in hooks:
        try:
            waiting = getattr(hook, method)(invocation, about)
            if waiting is not None:
                await (waiting if type(waiting) is CoroutineType else _waited(waiting))
        except _RAISED as error:
            wrong = wrong or {}
            wrong[at] = error
        at += 1  # noqa: SIM113 - counted by hand: `enumerate` costs more
    return wrong


# The events of a call are written without an await between them: two dispatches may share a trace.


def _asked(rows: list[Row], index: int, count: int) -> None:
    """So many hooks said that it may go on."""
    rows += [(HookBefore, index, at, "continue") for at in range(count)]


def _listed(rows: list[Row], index: int, stage: _Stage, count: int, wrong: Raised | None) -> None:
    """So many hooks were told."""
    wrong = wrong or {}
    rows += [
        (stage.raised, index, at, said(wrong[at])) if at in wrong else (stage.told, index, at) for at in range(count)
    ]


def _told(
    batch: Batch, invocation: Invocation, rows: list[Row], result: Result, asked: int, wrong: Raised | None
) -> Ended:
    _asked(rows, invocation.index, asked)
    _listed(rows, invocation.index, _AFTER, len(batch.hooks), wrong)
    return _closed(invocation, _bounded(batch, result), rows, wrong, None, result.reason)


async def _stopped(batch: Batch, invocation: Invocation, rows: list[Row], at: int, answer: Skip | Terminate) -> Ended:
    """Hook `at` did not let it run."""
    call, index, reason = invocation.call, invocation.index, answer.reason
    if isinstance(answer, Skip):
        result = Result(call, answer.output, kind="skipped", reason=reason)
        wrong = await _notify(batch.hooks, _AFTER, invocation, result)
        _asked(rows, index, at)
        rows.append((HookBefore, index, at, "skip", reason))
        return _told(batch, invocation, rows, result, 0, wrong)
    stop = DispatchTerminated(reason)
    wrong = await _notify(batch.hooks, _CLEANUP, invocation, stop)
    _asked(rows, index, at)
    rows.append((HookBefore, index, at, "terminate", reason))
    _listed(rows, index, _CLEANUP, len(batch.hooks), wrong)
    result = failed(call, "terminated", f"the call was not run: {reason}")
    return _closed(invocation, result, rows, wrong, stop, reason)


async def _broken(batch: Batch, invocation: Invocation, rows: list[Row], at: int, error: BaseException) -> Ended:
    """Hook `at` raised when it was asked: those before it clean up."""
    wrong = await _notify(batch.hooks[:at], _CLEANUP, invocation, error)
    _asked(rows, invocation.index, at)
    rows.append((HookBeforeError, invocation.index, at, said(error)))
    _listed(rows, invocation.index, _CLEANUP, at, wrong)
    _raise_if_cancelled(invocation, rows, error, wrong)
    result = failed(invocation.call, "failed", "the call was not run: a check before it failed")
    return _closed(invocation, result, rows, wrong, _hook_failed(at, error), said(error))


async def _failed(
    batch: Batch, invocation: Invocation, rows: list[Row], error: BaseException, duration: float
) -> Ended:
    """The tool raised, took too long, or was cancelled."""
    wrong = await _notify(batch.hooks, _CLEANUP, invocation, error)
    _asked(rows, invocation.index, len(batch.hooks))
    _listed(rows, invocation.index, _CLEANUP, len(batch.hooks), wrong)
    _raise_if_cancelled(invocation, rows, error, wrong)
    kind: Kind = "timed_out" if isinstance(error, ToolTimedOut) else "failed"
    message = str(error) if isinstance(error, (ToolTimedOut, NotRunnable)) else said(error)
    thread = error.thread if isinstance(error, ToolTimedOut) else ""
    result = failed(invocation.call, kind, message, duration=duration, thread=thread)
    # One that has results already comes from a dispatch inside the tool: for this one, the tool failed.
    is_ours = isinstance(error, NotRunnable) and not error.results
    stop: Any = error if is_ours else tool_failed(invocation.call, error)
    return _closed(invocation, result, rows, wrong, stop, message)


def _closed(
    invocation: Invocation,
    result: Result,
    rows: list[Row],
    wrong: Raised | None,
    stop: DispatchStopped | None,
    reason: str,
) -> Ended:
    """The outcome, whatever the hooks did. A hook that raised when it was told ends the batch."""
    if not wrong:
        rows.append((Outcome, invocation.index, invocation.call.name, result.kind, reason))
        return result, stop
    at, error = min(wrong.items(), key=lambda each: each[0])
    rows.append((Outcome, invocation.index, invocation.call.name, result.kind, reason, said(error)))
    for each in wrong.values():
        if isinstance(each, asyncio.CancelledError) and _is_being_cancelled():
            raise each
    return result, _hook_failed(at, error)


def _raise_if_cancelled(invocation: Invocation, rows: list[Row], error: BaseException, wrong: Raised | None) -> None:
    """A tool that was cancelled from inside has failed; one that is cancelled from outside is not waited for."""
    if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
        why = "; ".join(getattr(error, "__notes__", ()))
        broken = said(wrong[min(wrong)]) if wrong else ""
        rows.append((Outcome, invocation.index, invocation.call.name, "cancelled", why, broken))
        raise error


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _hook_failed(at: int, error: BaseException) -> HookFailed:
    stop = HookFailed(at, said(error))
    stop.__cause__ = error
    return stop
