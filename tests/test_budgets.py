"""Budgets deny calls that exceed them, release unused reservations and count exactly; history keeps each call once."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Result, Trace, dispatch, dispatch_sync, tool
from rightcall.dispatching.budgets import (
    Budget,
    BudgetFailed,
    BudgetHook,
    TimeBudget,
    TokenBudget,
    TokenHook,
    about_tokens,
    call_budget,
    fingerprint,
    repair_history,
    retry_class,
)
from rightcall.dispatching.hook import Hook, Invocation, Skip, Terminate
from rightcall.dispatching.result import FINE, Kind, not_run_result
from rightcall.errors import CallerError, DispatchTerminated, HookFailed


async def work(n: int = 0) -> int:
    if n < 0:
        raise ValueError(n)
    return n


def call(n: int = 0) -> Call:
    return Call("work", {"n": n}, "")


def dispatch_kinds(hooks: list[Any], *numbers: int, **options: Any) -> list[str]:
    """Dispatch one call per number and return the kind of each result."""
    try:
        return [result.kind for result in dispatch_sync([call(n) for n in numbers], [work], hooks=hooks, **options)]
    except DispatchTerminated as terminated:
        return [result.kind for result in terminated.results]


costs = st.lists(st.tuples(st.booleans(), st.integers(0, 10)), max_size=30)


@given(st.integers(0, 40), costs)
def test_used_budget_stays_between_zero_and_capacity(capacity: int, steps: list[Any]) -> None:
    budget, held = Budget(capacity), 0
    for take, cost in steps:
        if take:
            fits = held + cost <= capacity
            assert budget.try_reserve(cost) == fits
            held += cost if fits else 0
        else:
            budget.release(cost)
            held = max(0, held - cost)
        assert budget.used == held and budget.left == capacity - held
        assert 0 <= budget.utilisation <= 1


def test_concurrent_threads_cannot_exceed_the_budget() -> None:
    budget, taken = Budget(1_000), list[int]()

    def reserve_many() -> None:
        taken.append(sum(budget.try_reserve(1) for _ in range(500)))

    threads = [threading.Thread(target=reserve_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 1_000 == budget.used


@pytest.mark.parametrize("capacity", [-1, float("nan")])
def test_a_negative_capacity_is_rejected(capacity: float) -> None:
    with pytest.raises(CallerError, match="capacity"):
        Budget(capacity)


def test_a_negative_cost_is_rejected() -> None:
    with pytest.raises(BudgetFailed, match="budget failed: "):
        Budget(1).try_reserve(-1)


def test_refill_restores_the_full_capacity() -> None:
    budget = Budget(2)
    assert budget.try_reserve(2) and not budget.try_reserve(1)
    budget.refill()
    assert budget.left == 2 and Budget(0).utilisation == 1.0


def test_a_call_budget_terminates_the_dispatch_after_its_limit() -> None:
    assert dispatch_kinds([call_budget(2)], 1, 2, 3, 4) == ["completed", "completed", "terminated", "not_run"]


def test_the_denial_names_the_tool_and_its_cost() -> None:
    with pytest.raises(DispatchTerminated, match="budget denied `work` at cost 7"):
        dispatch_sync(call(), [work], hooks=[BudgetHook(Budget(5), cost=7)])


def test_a_failed_or_skipped_call_costs_nothing() -> None:
    hook = call_budget(1)
    assert dispatch_kinds(
        [hook, lambda invocation: Skip(0) if invocation.arguments["n"] == 9 else None], -1, 9, -1, 1, 2
    ) == [
        *("failed", "skipped", "failed"),
        "completed",
        "terminated",
    ]
    assert isinstance(hook.budget, Budget) and hook.budget.used == 1


def test_costs_can_be_given_by_tool_name_or_computed() -> None:
    budget = Budget(10)
    by_name = BudgetHook(budget, cost={"work": 3})
    computed = BudgetHook(budget, cost=lambda invocation: invocation.arguments["n"])
    assert dispatch_kinds([by_name, computed], 1) == ["completed"] and budget.used == 4


def test_a_concurrency_limit_releases_every_reservation() -> None:
    budget = Budget(1)
    assert dispatch_kinds([BudgetHook(budget, keeps="never")], 1, 2, -1, 3) == [
        "completed",
        "completed",
        "failed",
        "completed",
    ]
    assert budget.used == 0


def test_parallel_calls_cannot_exceed_the_budget() -> None:
    @tool(read_only=True)
    async def look() -> None:
        await asyncio.sleep(0.01)

    trace = Trace()
    with pytest.raises(DispatchTerminated) as caught:
        dispatch_sync([Call("look", {}, "{}")] * 3, [look], hooks=[call_budget(2)], parallel=True, trace=trace)
    assert [result.kind for result in caught.value.results] == ["completed", "completed", "terminated"]


ENDS: dict[str, Any] = {
    "terminated by a later hook": lambda _: Terminate("no"),
    "a later hook breaks": lambda _: 1 / 0,
    "skipped by a later hook": lambda _: Skip(None),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_reservation_is_released_after_every_outcome(end: str) -> None:
    hook = call_budget(1)
    try:
        dispatch_kinds([hook, ENDS[end]], 1)
    except HookFailed:
        assert end == "a later hook breaks"
    assert isinstance(hook.budget, Budget) and hook.budget.used == 0


def test_cleanup_without_a_reservation_releases_nothing() -> None:
    budget = Budget(5)
    budget.try_reserve(3)
    assert dispatch_kinds([lambda _: Terminate("first"), BudgetHook(budget)], 1) == ["terminated"]
    assert budget.used == 3


def test_a_hook_that_fails_after_the_call_does_not_leak_later_reservations() -> None:
    class Broken(Hook):
        def after(self, invocation: Invocation, result: Result) -> None:
            raise OSError

    budget = Budget(1)
    with pytest.raises(HookFailed):
        dispatch_sync(call(), [work], hooks=[Broken(), BudgetHook(budget, keeps="never")])
    assert budget.used == 0


def test_a_cancelled_call_releases_its_reservation() -> None:
    hook = call_budget(1)

    async def wait() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(dispatch(Call("wait", {}, "{}"), [wait], hooks=[hook]))
        assert isinstance(hook.budget, Budget)
        while not hook.budget.used:
            await asyncio.sleep(0.001)
        assert hook.budget.used == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert hook.budget.used == 0

    asyncio.run(main())


# -- tokens and time ---------------------------------------------------------------------------------------------------


def test_a_token_reservation_is_replaced_by_the_tokens_used() -> None:
    budget = TokenBudget(100)
    reservation = budget.reserve(60)
    assert reservation is not None and budget.reserve(60) is None
    reservation.record(25)
    assert budget.used == 25
    with pytest.raises(BudgetFailed, match="cannot have been used"):
        reservation.record(-1)


def test_a_dropped_token_reservation_is_released() -> None:
    budget = TokenBudget(100)
    reservation = budget.reserve(60)
    assert reservation is not None
    with reservation:
        assert budget.used == 60
    assert budget.used == 0
    reservation = budget.reserve(60)
    assert reservation is not None
    del reservation
    gc.collect()
    assert budget.used == 0


def test_the_tokens_of_arguments_and_results_are_counted() -> None:
    async def echo(text: str) -> str:
        return text

    budget = TokenBudget(1_000)
    dispatch_sync(Call("echo", {"text": "x" * 400}, ""), [echo], hooks=[TokenHook(budget, estimate=500)])
    assert budget.used == about_tokens('{"text":"' + "x" * 400 + '"}') + about_tokens("x" * 400)
    with pytest.raises(DispatchTerminated, match="token budget denied `echo`"):
        dispatch_sync(Call("echo", {"text": ""}, ""), [echo], hooks=[TokenHook(budget, estimate=900)])
    assert dispatch_kinds([TokenHook(budget, estimate=100)], -1) == ["failed"] and budget.used < 300


def test_no_call_starts_after_the_time_budget_is_spent() -> None:
    now = [0.0]
    hook = TimeBudget(10, clock=lambda: now[0])
    assert dispatch_kinds([hook], 1) == ["completed"]
    now[0] = 10.0
    assert dispatch_kinds([hook], 1) == ["completed"]
    now[0] = 10.1
    assert dispatch_kinds([hook], 1) == ["terminated"]


# -- history -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["failed", "timed_out", "refused", "terminated", "cancelled", "not_run"])
def test_only_failures_of_the_tool_itself_are_transient(kind: Kind) -> None:
    expected = "transient" if kind in ("failed", "timed_out") else "permanent"
    assert retry_class(Result(call(), "", True, kind)) == expected


@pytest.mark.parametrize("kind", sorted(FINE))
def test_a_successful_call_has_no_retry_class(kind: Kind) -> None:
    assert retry_class(Result(call(), kind=kind)) is None
    assert retry_class(not_run_result(call(), "x")) == "permanent"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=3), json_values, max_size=4)


@given(arguments, st.randoms())
def test_a_fingerprint_is_independent_of_key_order(given: dict[str, Any], random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(item) for item in value]
        if not isinstance(value, dict):
            return float(value) if type(value) is int else value
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    assert fingerprint(Call("f", given, "")) == fingerprint(Call("f", shuffled(given), "{}", id="x"))


@given(arguments, arguments)
def test_different_calls_have_different_fingerprints(one: dict[str, Any], other: dict[str, Any]) -> None:
    def sorted_items(value: Any) -> Any:  # Python compares 1 and True as equal, JSON does not.
        return repr(sorted((key, repr(value[key])) for key in value))

    if sorted_items(one) != sorted_items(other) and one != other:
        assert fingerprint(Call("f", one, "")) != fingerprint(Call("f", other, ""))
    assert fingerprint(Call("f", one, "")) != fingerprint(Call("g", one, ""))


def test_unusual_argument_values_have_distinct_fingerprints() -> None:
    assert len({fingerprint(Call("f", {"a": a}, "")) for a in (1, "1", 1.5, True, 2**70, "\ud800", float("inf"))}) == 7


results = st.lists(
    st.builds(
        lambda n, ok, at: Result(call(n), at, not ok, "completed" if ok else "failed"),
        st.integers(0, 3),
        st.booleans(),
        st.integers(),
    ),
    max_size=12,
)


@given(results)
def test_history_keeps_the_first_success_or_the_last_failure_of_each_call(found: list[Result]) -> None:
    kept = repair_history(found)
    order = list(dict.fromkeys(result.call.arguments["n"] for result in found))
    assert [result.call.arguments["n"] for result in kept] == order
    for result in kept:
        same = [each for each in found if each.call == result.call]
        fine = [each for each in same if not each.error]
        assert result is (fine[0] if fine else same[-1])
    assert repair_history(kept) == kept
