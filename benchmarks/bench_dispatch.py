"""Measure the cost of dispatch: an empty tool with two hooks and a trace, against a plain `await` of it.

Target: `dispatch` of such calls at most 25 times the bare `await`, per call. That includes `check`, the binding of
arguments, both hooks before and after, five trace events and the result. Beside it: the same without hooks, one call
per `dispatch`, and with arguments.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable

from measure import table, verdict
from rightcall import Call, Toolset, Trace, dispatch
from rightcall.dispatching.hook import Hook, Invocation
from rightcall.dispatching.result import Result

MOST = 25.0
CALLS = 100


async def nothing() -> None:
    pass


async def add(a: int, b: int) -> int:
    return a + b


class CountingHook(Hook):
    async def before(self, invocation: Invocation) -> None:
        pass

    async def after(self, invocation: Invocation, result: Result) -> None:
        pass


TOOLS = Toolset([nothing, add])
EMPTY = [Call("nothing", {}, "{}", f"call_{at}") for at in range(CALLS)]
FILLED = [Call("add", {"a": at, "b": 1}, "", f"call_{at}") for at in range(CALLS)]
HOOKS = (CountingHook(), CountingHook())


async def bare() -> None:
    for _ in range(CALLS):
        await nothing()


async def one_by_one() -> None:
    for call in EMPTY:
        await dispatch(call, TOOLS, hooks=HOOKS, trace=Trace())


WAYS: dict[str, Callable[[], Awaitable[object]]] = {
    "a bare await": bare,
    "dispatch, two hooks, traced": lambda: dispatch(EMPTY, TOOLS, hooks=HOOKS, trace=Trace()),
    "the same, one call at a time": one_by_one,
    "the same, with arguments": lambda: dispatch(FILLED, TOOLS, hooks=HOOKS, trace=Trace()),
    "dispatch, no hooks, no trace": lambda: dispatch(EMPTY, TOOLS),
}


async def seconds(run: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU seconds per call."""
    start = time.process_time()
    for _ in range(10):
        await run()
    return (time.process_time() - start) / 10 / CALLS


async def measure_modes(runs: int = 40) -> dict[str, float]:
    """Return the minimum of several runs of alternating modes, so that a slow moment affects all of them."""
    assert [result.output for result in await dispatch(FILLED, TOOLS)] == [at + 1 for at in range(CALLS)]
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    gc.disable()
    try:
        for _ in range(runs):
            for name, run in WAYS.items():
                found[name].append(await seconds(run))
            gc.collect()
    finally:
        gc.enable()
    return {name: max(min(each), 1e-9) for name, each in found.items()}


def main() -> int:
    found = asyncio.run(measure_modes())
    base = found["a bare await"]
    table(("", "ns per call", "x await"), [(n, f"{s * 1e9:,.0f}", f"{s / base:.1f}") for n, s in found.items()])
    ratio = found["dispatch, two hooks, traced"] / base
    missed = [f"dispatch ({ratio:.1f})"] if ratio > MOST else []
    return verdict(f"two hooks and a trace at most {MOST:.0f}x a bare await", missed)


if __name__ == "__main__":
    sys.exit(main())
