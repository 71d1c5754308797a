"""`dispatch`: run the calls of a reply, one after another or in parallel, and return one result per call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from rightcall.dispatching.hook import HookLike, as_hooks
from rightcall.dispatching.invoke import Batch, Ended, RunLimits, invoke, plans_of
from rightcall.dispatching.result import Result, cancelled_result, not_run_result
from rightcall.dispatching.trace import Row, Trace
from rightcall.errors import CallerError, CallRefused, DispatchStopped, ToolFailed
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call, Reply

_LIMITS = RunLimits()


async def dispatch(
    calls: Reply | Call | Iterable[Call],
    tools: Tools,
    *,
    hooks: Iterable[HookLike] = (),
    trace: Trace | None = None,
    limits: RunLimits = _LIMITS,
    parallel: bool = False,
    stop_on_error: bool = False,
    isolate: bool = False,
) -> list[Result]:
    """Run the runnable calls in order, each once, and return one result per call.

    Each call is checked by itself: one that is not `ok` is rejected with its problems, and so is one that does not fit
    these tools.

    - `calls`: a `Reply` (for every attempt of it), one `Call`, or several.
    - `tools`: the tools that may be called; each must have code to run.
    - `hooks`: run before each call, in this order, and after it: see `rightcall.hooks`. A function is a hook with only
      a `before`.
    - `trace`: records what happened.
    - `limits`: how long calls may take, how many run at once, how much of an output is kept; by default two minutes a
      call, and whole outputs.
    - `parallel`: consecutive calls of `read_only` tools run at the same time.
    - `stop_on_error`: a call that fails or is rejected ends the batch. Otherwise its result says so, and the next one
      runs.
    - `isolate`: each tool runs in its own process, which is killed at the time limit.

    Raises a `DispatchStopped` when the batch ends early: a hook terminates it or raises, a tool has no code, or with
    `stop_on_error` a call fails. Its `results`, and those of a `CancelledError`, have one result per call. Raises
    `CallerError` if `tools` is None or a hook is unusable, and `BadTools` for unusable tools."""
    batch, given = _make_batch(calls, tools, hooks, limits, isolate)
    rows: list[Row] = trace._rows if trace is not None else []
    results: list[Result] = []
    try:
        if parallel:
            for group in _parallel_groups(given, batch.tools):
                for stop in await _run_parallel(batch, group, rows, results):
                    _raise_if_batch_ends(stop, stop_on_error, results, given)
            return results
        for index, call in enumerate(given):
            result, stop = await invoke(batch, index, call, rows)
            results.append(result)
            if stop is not None:
                _raise_if_batch_ends(stop, stop_on_error, results, given)
    except asyncio.CancelledError as cancelled:
        if not parallel:
            results.append(cancelled_result(given[len(results)], cancelled))
        cancelled.results = _complete_results(results, given, "it was cancelled")  # type: ignore[attr-defined]
        raise
    return results


def _raise_if_batch_ends(
    stop: DispatchStopped | None, stop_on_error: bool, results: list[Result], given: Sequence[Call]
) -> None:
    """Raise `stop`, with a result for every call as its `results`, if the batch ends: `stop` is no failure or rejection
    of a call, or `stop_on_error` is set. Do nothing otherwise, or if `stop` is None."""
    if stop is not None and (stop_on_error or not isinstance(stop, (ToolFailed, CallRefused))):
        stop.results = _complete_results(results, given, f"an earlier call ended the batch ({type(stop).__name__})")
        raise stop


def _complete_results(results: list[Result], given: Sequence[Call], why: str) -> tuple[Result, ...]:
    """Return a result for every call: the results so far, and a `not_run` result with the reason `why` for each
    later call."""
    return (*results, *[not_run_result(call, why) for call in given[len(results) :]])


def dispatch_sync(
    calls: Reply | Call | Iterable[Call],
    tools: Tools,
    *,
    hooks: Iterable[HookLike] = (),
    trace: Trace | None = None,
    limits: RunLimits = _LIMITS,
    parallel: bool = False,
    stop_on_error: bool = False,
    isolate: bool = False,
) -> list[Result]:
    """Run `dispatch` in a new event loop, for a program without one, and return its results.

    `calls`, `tools`, `hooks`, `trace`, `limits`, `parallel`, `stop_on_error` and `isolate` are those of `dispatch`, and
    so are the exceptions. Raises `CallerError` inside a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(
            dispatch(
                calls,
                tools,
                hooks=hooks,
                trace=trace,
                limits=limits,
                parallel=parallel,
                stop_on_error=stop_on_error,
                isolate=isolate,
            )
        )
    raise CallerError("dispatch_sync cannot wait inside a running event loop; write `await dispatch(...)` there")


def _make_batch(
    calls: Reply | Call | Iterable[Call], tools: Tools, hooks: Iterable[HookLike], limits: RunLimits, isolate: bool
) -> tuple[Batch, Sequence[Call]]:
    """Return what the calls of a batch have in common, and the calls: those of a `Reply` are its attempts. Must be
    called in a running event loop if there is a limit for the batch. Raises `CallerError` if `tools` is None or a hook
    is unusable, and `BadTools` for unusable tools."""
    toolset = Toolset.of(tools)
    if toolset is None:
        raise CallerError("tools is None: dispatch runs declared tools only; pass the tools that may be called")
    if isinstance(calls, Reply):
        calls = calls.attempts
    given = (calls,) if isinstance(calls, Call) else tuple(calls)
    deadline = None if limits.batch is None else asyncio.get_running_loop().time() + limits.batch
    quick = plans_of(toolset).quick if deadline is None else {}
    whole = limits.result is None
    return Batch(toolset, as_hooks(hooks), limits, deadline, isolate, quick, whole), given


def _parallel_groups(calls: Sequence[Call], tools: Toolset) -> Iterator[Sequence[Call]]:
    """Yield the calls in order, in groups that may run at the same time: consecutive calls of read-only tools are one
    group, every other call, also of an unknown tool, is a group of its own."""
    group: list[Call] = []
    for call in calls:
        tool = tools.get(call.name)
        if tool is not None and tool.read_only:
            group.append(call)
            continue
        if group:
            yield group
        group = []
        yield (call,)
    if group:
        yield group


async def _run_parallel(
    batch: Batch, calls: Sequence[Call], rows: list[Row], results: list[Result]
) -> list[DispatchStopped | None]:
    """Run calls at the same time, at most `limits.together` of them, and append their results to `results`. Return for
    each call the error that may end the batch, or None.

    A call that has started is finished, also if another one fails. The trace (`rows`) and the results are in the order
    of the calls, and every call gets a result, also on cancellation, which is raised."""
    first = len(results)
    room = asyncio.Semaphore(max(1, batch.limits.together))
    ended: list[Ended] = [(not_run_result(call, "it was cancelled"), None) for call in calls]
    traced: list[list[Row]] = [[] for _ in calls]

    async def run(at: int, call: Call) -> None:
        """Run one call once there is room, and store its result and events at its position `at`."""
        async with room:
            try:
                ended[at] = await invoke(batch, first + at, call, traced[at])
            except asyncio.CancelledError as cancelled:
                ended[at] = cancelled_result(call, cancelled), None
                raise

    try:
        if len(calls) == 1:
            await run(0, calls[0])
            return [ended[0][1]]
        async with asyncio.TaskGroup() as group:
            for at, call in enumerate(calls):
                group.create_task(run(at, call))
    finally:
        for own in traced:
            rows += own
        results += [result for result, _ in ended]
    return [stop for _, stop in ended]
