"""Before the hooks: is this call one that may run, and with which values?

What `check` or the tool's own types refuse is a result at once. No hook is asked about a call that cannot run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from rightcall.dispatching.hook import Hook, Invocation
from rightcall.dispatching.result import Result, failed, not_run, refused, said
from rightcall.dispatching.run_limits import RunLimits
from rightcall.dispatching.running import bound_to
from rightcall.errors import CallRefused, DispatchStopped, ToolFailed
from rightcall.tools.checks import check, fits
from rightcall.tools.functions import Binding, Typed
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Problem, Tool

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
