"""Hooks: which hooks run before and after a call, which clean up, in which order, and what the trace records."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Result, Trace, dispatch, dispatch_sync, parse
from rightcall.dispatching.hook import Continue, Hook, Invocation, Skip, Terminate
from rightcall.dispatching.trace import (
    HookAfter,
    HookAfterError,
    HookBefore,
    HookBeforeError,
    HookCleanup,
    HookCleanupError,
    Outcome,
    TraceEvent,
)
from rightcall.errors import CallerError, DispatchStopped, DispatchTerminated, HookFailed, NotRunnable, ToolFailed
from rightcall.types import Tool

executed: list[Any] = []


async def t(x: int = 0) -> int:
    executed.append(x)
    if x < 0:
        raise ValueError("below zero")
    return x


@pytest.fixture(autouse=True)
def _clear_executed() -> None:
    executed.clear()


class Scripted(Hook):
    """Returns the given answer, or raises it if it is an exception; records which methods were called."""

    def __init__(self, answer: Any = None, *, after: Exception | None = None, cleanup: Exception | None = None) -> None:
        self.answer, self.fails_after, self.fails_cleanup = answer, after, cleanup
        self.seen: list[str] = []

    async def before(self, invocation: Invocation) -> Any:
        self.seen.append("before")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def after(self, invocation: Invocation, result: Result) -> None:
        self.seen.append(f"after {result.kind}")
        if self.fails_after:
            raise self.fails_after

    async def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        self.seen.append(f"cleanup {type(error).__name__}")
        if self.fails_cleanup:
            raise self.fails_cleanup


def run(hooks: list[Any], x: int = 1, **options: Any) -> tuple[list[Result], tuple[TraceEvent, ...], Exception | None]:
    trace = Trace()
    try:
        results = dispatch_sync(Call("t", {"x": x}, "", id="c1"), [t], hooks=hooks, trace=trace, **options)
    except DispatchStopped as stopped:
        return list(stopped.results), trace.events, stopped
    return results, trace.events, None


CONTINUED = (HookBefore(0, 0, "continue"), HookBefore(0, 1, "continue"))


def test_all_hooks_run_before_and_after_in_order() -> None:
    first, second = Scripted(), Scripted(Continue())
    results, events, error = run([first, second])
    assert events == (*CONTINUED, HookAfter(0, 0), HookAfter(0, 1), Outcome(0, "t", "completed"))
    assert error is None and results[0].output == 1 and executed == [1]
    assert first.seen == second.seen == ["before", "after completed"]


def test_a_skipping_hook_provides_the_output_and_all_hooks_are_notified() -> None:
    first, second = Scripted(), Scripted(Skip("from cache", "cached"))
    results, events, error = run([first, second])
    skipped = HookBefore(0, 1, "skip", "cached")
    assert events == (CONTINUED[0], skipped, HookAfter(0, 0), HookAfter(0, 1), Outcome(0, "t", "skipped", "cached"))
    assert error is None and not executed
    assert (results[0].output, results[0].kind, results[0].error) == ("from cache", "skipped", False)


def test_a_hook_after_the_skipping_one_is_notified_of_the_skip() -> None:
    first, second = Scripted(Skip(None)), Scripted()
    _, events, _ = run([first, second])
    assert events == (HookBefore(0, 0, "skip"), HookAfter(0, 0), HookAfter(0, 1), Outcome(0, "t", "skipped"))
    assert second.seen == ["after skipped"] and not executed


def test_a_terminating_hook_ends_the_batch_and_all_hooks_clean_up() -> None:
    first, second = Scripted(Terminate("no more")), Scripted()
    results, events, error = run([first, second])
    terminated = Outcome(0, "t", "terminated", "no more")
    assert events == (
        HookBefore(0, 0, "terminate", "no more"),
        HookCleanup(0, 0),
        HookCleanup(0, 1),
        terminated,
    )
    assert error == DispatchTerminated("no more") and "tool dispatch terminated: no more" in str(error)
    assert second.seen == ["cleanup DispatchTerminated"] and not executed and results[0].kind == "terminated"


def test_if_a_hook_raises_before_the_call_only_the_earlier_hooks_clean_up() -> None:
    first, second, third = Scripted(), Scripted(ValueError("broken")), Scripted()
    results, events, error = run([first, second, third])
    assert events == (
        CONTINUED[0],
        HookBeforeError(0, 1, "ValueError: broken"),
        HookCleanup(0, 0),
        Outcome(0, "t", "failed", "ValueError: broken"),
    )
    assert isinstance(error, HookFailed) and isinstance(error.__cause__, ValueError) and error.hook == 1
    assert (first.seen, second.seen, third.seen) == (["before", "cleanup ValueError"], ["before"], [])
    assert not executed and results[0].error


def test_if_the_tool_raises_all_hooks_clean_up() -> None:
    first, second = Scripted(), Scripted()
    results, events, error = run([first, second], -1, stop_on_error=True)
    failed = Outcome(0, "t", "failed", "ValueError: below zero")
    assert events == (*CONTINUED, HookCleanup(0, 0), HookCleanup(0, 1), failed)
    assert isinstance(error, ToolFailed) and str(error).startswith("tool invocation failed: ")
    assert isinstance(error.__cause__, ValueError)
    assert first.seen == second.seen == ["before", "cleanup ValueError"]
    assert results[0].error and results[0].output == "ValueError: below zero"


def test_a_hook_that_raises_after_a_call_does_not_stop_the_other_hooks_or_the_outcome() -> None:
    first, second, third = Scripted(), Scripted(after=OSError("disk full")), Scripted()
    results, events, error = run([first, second, third])
    assert events == (
        *CONTINUED,
        HookBefore(0, 2, "continue"),
        HookAfter(0, 0),
        HookAfterError(0, 1, "OSError: disk full"),
        HookAfter(0, 2),
        Outcome(0, "t", "completed", "", "OSError: disk full"),
    )
    assert third.seen[-1] == "after completed" and results[0].output == 1
    assert isinstance(error, HookFailed) and error.hook == 1 and isinstance(error.__cause__, OSError)


def test_if_a_hook_raises_in_cleanup_the_other_hooks_and_the_outcome_follow() -> None:
    first, second = Scripted(cleanup=OSError("disk full")), Scripted()
    results, events, error = run([first, second], -1)
    assert events == (
        *CONTINUED,
        HookCleanupError(0, 0, "OSError: disk full"),
        HookCleanup(0, 1),
        Outcome(0, "t", "failed", "ValueError: below zero", "OSError: disk full"),
    )
    assert isinstance(error, HookFailed) and results[0].output == "ValueError: below zero"


def test_the_exception_contains_a_result_for_every_call() -> None:
    calls = [Call("t", {"x": x}, "", id=f"c{x}") for x in (1, 2, 3, 4)]

    def hook(invocation: Invocation) -> Terminate | None:
        return Terminate("enough") if invocation.index == 2 else None

    with pytest.raises(DispatchTerminated) as caught:
        dispatch_sync(calls, [t], hooks=[hook])
    assert [result.kind for result in caught.value.results] == ["completed", "completed", "terminated", "not_run"]
    assert [result.id for result in caught.value.results] == ["c1", "c2", "c3", "c4"]
    assert executed == [1, 2]


def test_hooks_may_be_plain_functions_or_have_synchronous_methods() -> None:
    class Plain(Hook):
        told = 0

        def after(self, invocation: Invocation, result: Result) -> None:
            Plain.told += 1

    async def continue_later(invocation: Invocation) -> Continue:
        return Continue()

    results, events, _ = run([Plain(), lambda _: None, continue_later])
    assert results[0].output == 1 and Plain.told == 1 and len(events) == 7


def test_a_hook_that_returns_no_action_is_an_error() -> None:
    _, events, error = run([lambda _: "yes"])
    assert isinstance(error, HookFailed) and not executed and isinstance(events[0], HookBeforeError)


@pytest.mark.parametrize("hook", [Hook, 3, None])
def test_an_object_that_is_not_a_hook_is_rejected_before_any_call_runs(hook: Any) -> None:
    with pytest.raises(CallerError, match="hook 1"):
        run([hook])
    assert not executed


def test_hooks_are_not_called_for_rejected_calls() -> None:
    hook = Scripted()
    trace = Trace()
    calls = [Call("gone", {}, ""), Call("t", {"x": "one"}, ""), Call("t", {}, "", complete=False)]
    results = dispatch_sync(calls, [t], hooks=[hook], trace=trace)
    assert hook.seen == [] and [result.kind for result in results] == ["refused"] * 3
    assert [str(event.reason) for event in trace if isinstance(event, Outcome)] == [
        "unknown_tool",
        "wrong_type",
        "incomplete",
    ]


def test_hooks_receive_the_repairs_of_the_call() -> None:
    seen: list[str] = []
    reply = parse('<tool_call>{"name": "functions.t", "arguments": {"x": "7"}}</tool_call>', tools=[t])
    dispatch_sync(reply, [t], hooks=[lambda invocation: seen.extend(r.rule for r in invocation.repairs)])
    assert seen and executed == [7]


def test_a_hook_receives_the_bound_arguments_read_only() -> None:
    passed: list[Any] = []

    def book(day: date, guests: list[str]) -> None:
        passed.extend([day, guests])

    def inspect(invocation: Invocation) -> None:
        seen.append(invocation.arguments)
        with pytest.raises(TypeError):
            invocation.arguments["day"] = None  # type: ignore[index]

    seen: list[Any] = []
    dispatch_sync(Call("book", {"day": "2026-05-17", "guests": ["Ada"]}, ""), [book], hooks=[inspect])
    assert passed == [date(2026, 5, 17), ["Ada"]]
    assert seen[0]["day"] is passed[0] and seen[0]["guests"] is passed[1]


def test_a_hook_can_provide_the_output_of_a_tool_without_code() -> None:
    tool = Tool(name="remote", parameters={"type": "object"})
    results = dispatch_sync(Call("remote", {}, "{}"), [tool], hooks=[lambda _: Skip({"ok": True})])
    assert results[0].output == {"ok": True}
    with pytest.raises(NotRunnable, match="no code to run") as caught:
        dispatch_sync([Call("remote", {}, "{}"), Call("remote", {}, "{}")], [tool])
    assert [result.kind for result in caught.value.results] == ["failed", "not_run"]


def test_a_cancelled_call_cleans_up_and_has_an_outcome() -> None:
    hook, trace = Scripted(), Trace()

    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(dispatch(Call("slow", {}, "{}"), [slow], hooks=[hook], trace=trace))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert hook.seen == ["before", "cleanup CancelledError"]
    assert trace.events == (HookBefore(0, 0, "continue"), HookCleanup(0, 0), Outcome(0, "slow", "cancelled"))


def test_if_a_hook_is_cancelled_the_earlier_hooks_clean_up() -> None:
    first, trace, thinking = Scripted(), Trace(), asyncio.Event()

    async def think(invocation: Invocation) -> None:
        thinking.set()
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(dispatch(Call("t", {}, "{}"), [t], hooks=[first, think], trace=trace))
        await thinking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert first.seen == ["before", "cleanup CancelledError"] and not executed
    assert trace.events[-1] == Outcome(0, "t", "cancelled")


def test_two_dispatches_may_share_a_trace() -> None:
    class Slow(Hook):
        async def cleanup(self, invocation: Invocation, error: BaseException) -> None:
            await asyncio.sleep(0.001 * (1 + invocation.index))

    async def main() -> str:
        trace = Trace()
        one = dispatch([Call("t", {"x": -1}, "")] * 3, [t], hooks=[Slow(), Slow()], trace=trace)
        other = dispatch([Call("t", {"x": x}, "") for x in (1, -1, -2)], [t], hooks=[Slow()], trace=trace)
        await asyncio.gather(one, other)
        return str(trace)

    branches = asyncio.run(main()).split("call ")[1:]
    assert len(branches) == 6 and {branch.count("before") for branch in branches} == {1, 2}
    assert all(branch.count("before") == branch.count("cleanup") + branch.count("after") for branch in branches)


# -- the table as a property -------------------------------------------------------------------------------------------

answers = st.sampled_from(["continue", "skip", "terminate", "raise"])
scripts = st.lists(st.tuples(answers, st.booleans(), st.booleans()), max_size=4)


def expected_trace(script: list[tuple[str, bool, bool]], x: int) -> list[TraceEvent]:
    """Return the trace that the table in `hooks.py` prescribes."""
    events: list[TraceEvent] = []
    stopped = next(((at, answer) for at, (answer, _, _) in enumerate(script) if answer != "continue"), None)
    continued = len(script) if stopped is None else stopped[0]
    events += [HookBefore(0, at, "continue") for at in range(continued)]
    notified, kind, reason = script, "completed", ""
    if stopped is None and x < 0:
        kind, reason = "failed", "ValueError: below zero"
    elif stopped is not None and stopped[1] == "raise":
        events.append(HookBeforeError(0, continued, "LookupError: no"))
        notified, kind, reason = script[:continued], "failed", "LookupError: no"
    elif stopped is not None:
        answer: Any = stopped[1]
        events.append(HookBefore(0, continued, answer, "why"))
        kind, reason = {"skip": "skipped", "terminate": "terminated"}[answer], "why"
    first_error = ""
    for at, (_, fails_after, fails_cleanup) in enumerate(notified):
        after = kind in ("completed", "skipped")
        fails = fails_after if after else fails_cleanup
        message = f"OSError: {at}"
        first_error = first_error or (message if fails else "")
        if fails:
            events.append(HookAfterError(0, at, message) if after else HookCleanupError(0, at, message))
        else:
            events.append(HookAfter(0, at) if after else HookCleanup(0, at))
    return [*events, Outcome(0, "t", kind, reason, first_error)]  # type: ignore[arg-type]


@given(scripts, st.sampled_from([1, -1]))
def test_the_trace_of_every_hook_outcome_matches_the_table(script: list[tuple[str, bool, bool]], x: int) -> None:
    answers_by_name = {
        "continue": None,
        "skip": Skip(0, "why"),
        "terminate": Terminate("why"),
        "raise": LookupError("no"),
    }
    hooks = [
        Scripted(
            answers_by_name[answer], after=OSError(at) if after else None, cleanup=OSError(at) if cleanup else None
        )
        for at, (answer, after, cleanup) in enumerate(script)
    ]
    executed.clear()
    results, events, error = run(hooks, x)
    assert list(events) == expected_trace(script, x)
    assert len(results) == 1 and len(executed) == all(answer == "continue" for answer, _, _ in script)
    last = events[-1]
    assert isinstance(last, Outcome) and last.kind == results[0].kind
    broken = any(isinstance(event, (HookAfterError, HookCleanupError, HookBeforeError)) for event in events)
    assert isinstance(error, HookFailed) == broken
    assert isinstance(error, DispatchTerminated) == (last.kind == "terminated" and not broken)


@pytest.mark.parametrize("raising", [{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}, {1, 3}, {0, 1, 2, 3}], ids=str)
@pytest.mark.parametrize(
    "answer, x, kind",
    [
        (None, 1, HookAfterError),
        (Skip("cached"), 1, HookAfterError),
        (None, -1, HookCleanupError),
        (Terminate("no"), 1, HookCleanupError),
    ],
    ids=["completed", "skipped", "failed", "terminated"],
)
def test_each_of_several_hooks_that_raise_when_notified_is_named_with_its_own_error(
    answer: Any, x: int, kind: type, raising: set[int]
) -> None:
    errors = [OSError(at) if at in raising else None for at in range(4)]
    hooks = [Scripted(answer if at == 3 else None, after=each, cleanup=each) for at, each in enumerate(errors)]
    _, events, error = run(hooks, x)
    found = [event for event in events if isinstance(event, (HookAfterError, HookCleanupError))]
    assert found == [kind(0, at, f"OSError: {at}") for at in sorted(raising)]
    assert isinstance(error, HookFailed)
    assert error.hook == min(raising) and error.__cause__ is errors[min(raising)]


# -- traces are values -------------------------------------------------------------------------------------------------

texts = st.text(max_size=20)
numbers = st.integers(0, 9)
events = st.one_of(
    st.builds(HookBefore, numbers, numbers, st.sampled_from(["continue", "skip", "terminate"]), texts),
    st.builds(HookBeforeError, numbers, numbers, texts),
    st.builds(HookAfter, numbers, numbers),
    st.builds(HookAfterError, numbers, numbers, texts),
    st.builds(HookCleanup, numbers, numbers),
    st.builds(HookCleanupError, numbers, numbers, texts),
    st.builds(Outcome, numbers, texts, st.sampled_from(["completed", "failed", "refused"]), texts, texts),
)


@given(st.lists(events, max_size=8))
def test_a_trace_survives_json_and_prints_one_line_per_event(found: list[TraceEvent]) -> None:
    trace = Trace(found)
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
    outcomes = sum(isinstance(event, Outcome) for event in found)
    lines = str(trace).splitlines()
    assert len(lines) == len(found) + outcomes == len(trace) + outcomes
    assert all(line.isprintable() for line in lines)


def test_equal_runs_have_equal_traces() -> None:
    assert run([Scripted(), Scripted()])[1] == run([Scripted(), Scripted()])[1]
    assert Trace(run([Scripted()])[1]) != Trace(run([Scripted(Skip(1))])[1])


def test_a_trace_is_printed_as_a_tree() -> None:
    trace = Trace()
    dispatch_sync(
        [Call("t", {}, "{}"), Call("u\x1b[2J", {}, "{}")], [t], hooks=[Scripted(Skip(1, "cached"))], trace=trace
    )
    assert str(trace) == (
        "call 1  t\n|- hook 1 before: skip (cached)\n|- hook 1 after\n`- skipped (cached)\n"
        "call 2  u\\x1b[2J\n`- refused (invalid_name)"
    )
