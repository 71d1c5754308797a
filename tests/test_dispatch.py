"""The dispatcher: which calls run, in which order, for how long, and their results."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator

from rightcall import Call, Reply, Result, Toolset, Trace, check, dispatch, dispatch_sync, parse, tool
from rightcall.dispatching.hook import Invocation
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.trace import Outcome
from rightcall.errors import CallerError, CallRefused, NotApplicable, ToolFailed
from rightcall.types import Problem, Tool

log: list[Any] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    log.clear()


def add(a: int, b: int = 1) -> int:
    log.append((a, b))
    return a + b


async def greet(who: str) -> str:
    await asyncio.sleep(0)
    log.append(who)
    return f"hello {who}"


def fail(why: str = "on purpose") -> None:
    log.append(why)
    raise RuntimeError(why)


def call(name: str, **arguments: Any) -> Call:
    return Call(name, arguments, "", id=f"id_{name}")


TOOLS = Toolset(add, greet, fail)


def test_sync_and_async_tools_run_in_order_and_keep_their_ids() -> None:
    results = dispatch_sync([call("add", a=1), call("greet", who="Ada"), call("add", a=3, b=4)], TOOLS)
    assert [(result.id, result.output, result.error) for result in results] == [
        ("id_add", 2, False),
        ("id_greet", "hello Ada", False),
        ("id_add", 7, False),
    ]
    assert log == [(1, 1), "Ada", (3, 4)]
    assert all(result.duration > 0 for result in results)


def test_a_single_call_or_a_whole_reply_is_accepted() -> None:
    reply = parse('Hi <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', tools=TOOLS)
    assert [r.output for r in dispatch_sync(reply, TOOLS)] == [r.output for r in dispatch_sync(call("add", a=1), TOOLS)]


def test_a_parsed_call_runs_and_returns_its_output() -> None:
    def echo(value: dict[str, list[int]]) -> Any:
        return {"seen": {"value": value}}

    text = "<|tool_call_start|>[echo(value={'nested': [1, 2]})]<|tool_call_end|>"
    reply = parse(text, tools=[echo], format="lfm2")
    assert dispatch_sync(reply, [echo])[0].output == {"seen": {"value": {"nested": [1, 2]}}}


NOT_RUN = {
    "incomplete": Call("add", {"a": 1}, "", complete=False),
    "unknown_tool": call("ad", a=1),
    "invalid_name": call("add it!", a=1),
    "missing": call("add", b=1),
    "wrong_type": call("add", a="1"),
    "unknown_argument": call("add", a=1, c=2),
    "arguments_not_object": Call("fail", {}, "[1]"),
    "arguments_disagree": Call("fail", {}, '{"why": "not"}'),
    "invalid_json": Call("fail", {}, '{"why": "no'),
    "ambiguous_end": Call("add", {"a": 1}, problems=(Problem("ambiguous_end", "where it ends is not known", call=0),)),
}


@pytest.mark.parametrize("code", NOT_RUN)
def test_a_rejected_call_does_not_run_and_the_reason_is_reported_to_the_model(code: str) -> None:
    result, after = dispatch_sync([NOT_RUN[code], call("add", a=5)], TOOLS)
    assert (result.kind, result.error, [problem.code for problem in result.problems]) == ("refused", True, [code])
    assert result.text.startswith("ERROR: the call was not run: ") and result.problems[0].message in result.text
    assert after.output == 6 and log == [(5, 1)]


@pytest.mark.parametrize("text", ["{}", " { }\n", ""])
def test_a_rejection_quotes_no_arguments_if_none_were_sent(text: str) -> None:
    (result,) = dispatch_sync([Call("add", {}, text)], TOOLS)
    assert result.kind == "refused" and "arguments you sent" not in result.text


def test_a_rejection_quotes_arguments_that_are_not_an_object() -> None:
    (result,) = dispatch_sync([Call("add", {}, "[1]")], TOOLS)
    assert result.text.endswith("; the arguments you sent: [1]")


CALL_TEXTS = {
    "good": ('{"name": "add", "arguments": {"a": 1}}', "completed"),
    "repaired": ('{"name": "add", "arguments": {"a": "2"}}', "completed"),
    "unknown": ('{"name": "ad", "arguments": {"a": 3}}', "refused"),
    "unfit": ('{"name": "add", "arguments": {"b": 4}}', "refused"),
    "unread": ('{"name": "add", "arguments": {"a": }}', "refused"),
    "no object": ('{"name": "fail", "arguments": [5]}', "refused"),
    "no name": ('{"arguments": {"q": 6}}', "refused"),
}


@given(st.lists(st.sampled_from(list(CALL_TEXTS)), min_size=1, max_size=4))
def test_a_reply_its_attempts_and_its_single_calls_give_the_same_results(names: list[str]) -> None:
    text = "".join([f"<tool_call>{CALL_TEXTS[name][0]}</tool_call>" for name in names])
    reply = parse(text, tools=TOOLS, format="hermes")
    whole = [result_fields(result) for result in dispatch_sync(reply, TOOLS)]
    assert [kind for kind, *_ in whole] == [CALL_TEXTS[name][1] for name in names]
    assert [result_fields(result) for result in dispatch_sync(reply.attempts, TOOLS)] == whole
    assert [result_fields(dispatch_sync(each, TOOLS)[0]) for each in reply.attempts] == whole
    ran = [each for each in whole if each[0] == "completed"]
    assert [result_fields(result) for result in dispatch_sync(reply.calls, TOOLS)] == ran
    assert all(kind == "refused" for kind, *_ in map(result_fields, dispatch_sync(reply.refused, TOOLS)))
    assert [each for each in reply.attempts if each.ok] == list(reply.calls)


def result_fields(result: Result) -> tuple[str, Any, list[str]]:
    return result.kind, result.output, [problem.code for problem in result.problems]


def test_a_blocking_problem_without_a_call_rejects_no_call() -> None:
    fault = Problem("malformed_response", "an entry is no object")
    reply = Reply(parts=(call("add", a=1),), problems=(fault,))
    assert [result.kind for result in dispatch_sync(reply, TOOLS)] == ["completed"] and len(reply.calls) == 1


DISAGREE = [
    ({}, '{"a": 1}'),
    ({"a": 1}, '{"a": 2}'),
    ({"a": 1}, '{"a": true}'),
    ({"a": 1}, '{"a": 1, "b": 2}'),
    ({"a": 1, "b": 2}, '{"a": 1}'),
    ({"a": 1}, "{}"),
    ({"a": 1}, "null"),
    ({"a": 1}, "[1]"),
    ({"a": 1}, '{"a": 1'),
]


@pytest.mark.parametrize("arguments, text", DISAGREE)
def test_arguments_that_disagree_with_their_text_are_rejected(arguments: Any, text: str) -> None:
    disagreeing = Call("add", arguments, text)
    for tools in (TOOLS, None):
        assert [problem.code for problem in check(disagreeing, tools)] == ["arguments_disagree"]
    assert dispatch_sync(disagreeing, TOOLS)[0].kind == "refused" and log == []


AGREE = [
    ({"a": 1}, '{ "a" : 1 }'),
    ({"a": 1}, '{"a": 9, "a": 1}'),
    ({"a": 1}, ""),
    ({"a": 1, "b": 3}, '{"b": 3, "a": 1}'),
]


@pytest.mark.parametrize("arguments, text", AGREE)
def test_another_spelling_of_the_arguments_is_accepted(arguments: Any, text: str) -> None:
    assert check(Call("add", arguments, text), TOOLS) == []
    assert dispatch_sync(Call("add", arguments, text), TOOLS)[0].kind == "completed"


@pytest.mark.parametrize("text", ["", " ", "{}", "null", '""', "{ }"])
def test_missing_arguments_have_several_spellings(text: str) -> None:
    assert check(Call("fail", {}, text), TOOLS) == []


def test_tuples_and_integer_keys_agree_with_their_json_text() -> None:
    assert check(Call("f", {"pair": (1, 2), "names": {1: "one"}}), None) == []


def test_a_blocking_problem_of_the_reply_rejects_its_call() -> None:
    found = Problem("duplicate_argument", "a was sent twice", call=0)
    reply = Reply(parts=(call("add", a=1), call("add", a=2)), problems=(found, Problem("rescued", "", blocking=False)))
    assert [result.kind for result in dispatch_sync(reply, TOOLS)] == ["refused", "completed"]
    assert log == [(2, 1)]


def test_a_note_does_not_reject_a_call_and_hooks_see_it() -> None:
    note = Problem("rescued", "found all the same", call=0, blocking=False)
    seen: list[Any] = []
    reply = Reply(parts=(call("add", a=1),), problems=(note,))
    dispatch_sync(reply, TOOLS, hooks=[lambda invocation: seen.extend(invocation.notes)])
    assert seen == [note] and log == [(1, 1)]


def test_a_truncated_call_never_runs() -> None:
    text = (
        '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call><tool_call>{"name": "add", "arguments": {"a": 2'
    )
    reply = parse(text, tools=TOOLS, repair="lenient")
    assert [result.kind for result in dispatch_sync(reply, TOOLS)] == ["completed", "refused"]
    assert [result.kind for result in dispatch_sync(reply.attempts, TOOLS)] == ["completed", "refused"]
    assert log == [(1, 1)] * 2


# -- types -------------------------------------------------------------------------------------------------------------


@dataclass
class Seat:
    row: int
    letter: str = "A"


def crash(number: int) -> int:
    raise KeyError(number)


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


def test_arguments_are_converted_strictly_to_the_types_of_the_tool() -> None:
    def sit(seat: Seat, near: list[Seat] | None = None) -> str:
        assert near is None
        return f"{seat.row}{seat.letter}"

    assert dispatch_sync(call("sit", seat={"row": 3}), [sit])[0].output == "3A"
    assert dispatch_sync(call("sit", seat={"row": 3.0}), [sit])[0].output == "3A"
    assert dispatch_sync(call("sit", seat={"row": "3"}), [sit])[0].kind == "refused"


def test_validation_errors_of_the_tool_are_reported_to_the_model() -> None:
    def halve(number: Annotated[int, AfterValidator(even)]) -> int:
        return number // 2

    result = dispatch_sync(call("halve", number=3), [halve])[0]
    assert (result.kind, result.problems[0].code, result.problems[0].path) == ("refused", "invalid_argument", "/number")
    assert "must be even" in result.text


def test_a_crashing_validator_is_a_failure_of_the_tool() -> None:
    def f(number: Annotated[int, AfterValidator(crash)]) -> None: ...

    assert dispatch_sync(call("f", number=3), [f])[0].kind == "failed"


def test_a_class_is_a_tool_whose_output_is_its_instance() -> None:
    result = dispatch_sync(call("Seat", row=1), [Seat])[0]
    assert result.output == Seat(1) and result.text == '{"row":1,"letter":"A"}'


def test_a_tool_cannot_change_its_call() -> None:
    def grow(items: list[int]) -> int:
        items.append(1)
        return len(items)

    bare = Tool(name="bare", parameters={"type": "object"}, run=grow)
    calls = [call("grow", items=[0]), call("bare", items=[0])]
    assert [result.output for result in dispatch_sync(calls, [grow, bare])] == [2, 2]
    assert [each.arguments for each in calls] == [{"items": [0]}] * 2


def test_a_tool_cannot_change_nested_values_of_its_call() -> None:
    def grow(order: dict[str, Any]) -> int:
        order["items"].append(1)
        return len(order["items"])

    bare = Tool(name="bare", parameters={"type": "object"}, run=grow)
    calls = [call("grow", order={"items": [0]}), call("bare", order={"items": [0]})]
    assert [result.output for result in dispatch_sync(calls, [grow, bare])] == [2, 2]
    assert [each.arguments for each in calls] == [{"order": {"items": [0]}}] * 2


def test_numbers_stay_exact() -> None:
    def same(n: int, x: float, any: Any) -> Any:
        return [n, x, any]

    assert dispatch_sync(call("same", n=2**80, x=0.1, any=3.0), [same])[0].output == [2**80, 0.1, 3.0]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_failing_tool_gives_a_result_and_the_batch_continues() -> None:
    results = dispatch_sync([call("fail"), call("add", a=1)], TOOLS)
    assert [(result.kind, result.error) for result in results] == [("failed", True), ("completed", False)]
    assert results[0].text == "ERROR: RuntimeError: on purpose"


def test_a_batch_can_stop_at_the_first_failure_and_keeps_all_results() -> None:
    calls = [call("add", a=1), call("fail"), call("add", a=2)]
    with pytest.raises(ToolFailed, match="tool invocation failed: fail: RuntimeError") as caught:
        dispatch_sync(calls, TOOLS, stop_on_error=True)
    assert [result.kind for result in caught.value.results] == ["completed", "failed", "not_run"]
    assert caught.value.results[0].output == 2 and log == [(1, 1), "on purpose"]


def test_a_rejected_call_can_stop_the_batch_too() -> None:
    with pytest.raises(CallRefused, match="'gone'") as caught:
        dispatch_sync([call("add", a=1), call("gone"), call("add", a=2)], TOOLS, stop_on_error=True)
    assert [result.kind for result in caught.value.results] == ["completed", "refused", "not_run"]


def test_a_tool_can_report_that_it_is_not_applicable() -> None:
    def tidy() -> None:
        raise NotApplicable("the folder is empty")

    result = dispatch_sync(call("tidy"), [tidy], stop_on_error=True)[0]
    assert (result.kind, result.error, result.text) == ("not_applicable", False, "the folder is empty")


def test_a_tool_cannot_end_the_program() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    def leave_too() -> None:
        raise SystemExit(3)

    results = dispatch_sync([call("leave"), call("leave_too")], [leave, leave_too])
    assert [result.output for result in results] == ["SystemExit: 3"] * 2


def test_unusual_exceptions_are_reported_and_bounded() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def stop() -> None:
        raise StopIteration("done")

    def silent() -> None:
        raise Silent

    def long() -> None:
        raise ValueError("x" * 100_000)

    found = [
        result.text for result in dispatch_sync([call("stop"), call("silent"), call("long")], [stop, silent, long])
    ]
    assert found[0] == "ERROR: StopIteration: done" and found[1] == "ERROR: Silent" and len(found[2]) < 2100


def test_a_tool_that_cancels_itself_has_failed() -> None:
    async def inner() -> None:
        raise asyncio.CancelledError

    assert dispatch_sync(call("inner"), [inner])[0].output == "CancelledError"


# -- time limits -------------------------------------------------------------------------------------------------------


def test_an_async_tool_that_exceeds_its_time_limit_is_stopped() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.append("ended")

    result = dispatch_sync(call("slow"), [slow], limits=RunLimits(call=0.05))[0]
    assert (result.kind, result.error, result.thread, ended) == ("timed_out", True, "", ["ended"])
    assert "took longer than 0.05 seconds and was stopped" in result.text


def test_the_thread_of_a_tool_that_exceeds_its_time_limit_is_named() -> None:
    release = threading.Event()

    def slow() -> None:
        release.wait(60)

    started = time.monotonic()
    result = dispatch_sync(call("slow"), [slow], limits=RunLimits(call=0.05))[0]
    assert time.monotonic() - started < 30, "dispatch_sync waited for the thread"
    named = [thread for thread in threading.enumerate() if thread.name == result.thread]
    assert result.kind == "timed_out" and len(named) == 1 and result.thread in result.text
    release.set()
    named[0].join(30)
    assert not named[0].is_alive()


def test_a_timeout_inside_the_tool_is_a_failure() -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    assert dispatch_sync(call("impatient"), [impatient])[0].kind == "failed"


def test_the_time_limit_of_a_batch_stops_the_running_call_and_skips_the_others() -> None:
    async def slow() -> None:
        await asyncio.sleep(600)

    calls = [call("add", a=1), call("slow"), call("add", a=2)]
    results = dispatch_sync(calls, [add, slow], limits=RunLimits(batch=0.5))
    assert [result.kind for result in results] == ["completed", "timed_out", "not_run"]
    assert log == [(1, 1)] and "the time for this batch is over" in results[2].text


def test_an_async_tool_runs_without_a_time_limit() -> None:
    assert dispatch_sync(call("greet", who="you"), TOOLS, limits=RunLimits(call=None))[0].output == "hello you"


def test_an_async_tool_can_await_tasks_and_handle_their_errors() -> None:
    async def one() -> int:
        await asyncio.sleep(0.001)
        return 1

    async def broken() -> int:
        await asyncio.sleep(0.001)
        raise LookupError("no")

    async def both() -> Any:
        first = await asyncio.create_task(one())
        try:
            await asyncio.create_task(broken())
        except LookupError as error:
            return [first, str(error)]

    assert dispatch_sync(call("both"), [both])[0].output == [1, "no"]


# -- cancellation ------------------------------------------------------------------------------------------------------


def test_cancellation_reaches_the_tool_and_leaves_no_task() -> None:
    state: list[str] = []

    @tool(read_only=True)
    async def wait(n: int) -> None:
        state.append(f"begun {n}")
        try:
            await asyncio.sleep(600)
        finally:
            state.append(f"ended {n}")

    async def main() -> None:
        calls = [call("wait", n=1), call("wait", n=2)]
        task = asyncio.create_task(dispatch(calls, [wait], parallel=True))
        while len(state) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert sorted(state) == ["begun 1", "begun 2", "ended 1", "ended 2"]


def test_results_before_a_cancellation_are_kept() -> None:
    async def wait() -> None:
        await asyncio.sleep(600)

    async def main() -> Any:
        task = asyncio.create_task(dispatch([call("add", a=1), call("wait"), call("add", a=2)], [add, wait]))
        while not log:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as cancelled:
            return cancelled

    results = asyncio.run(main()).results
    assert [result.kind for result in results] == ["completed", "cancelled", "not_run"] and results[0].output == 2
    assert "may have done a part" in results[1].text and "send it again" in results[2].text


def test_results_beside_a_cancelled_call_are_kept() -> None:
    done: list[int] = []

    @tool(read_only=True)
    async def wait(n: int) -> int:
        if n % 2:
            await asyncio.sleep(600)
        done.append(n)
        return n

    @tool(read_only=True)
    async def last() -> None:
        pass

    async def main() -> Any:
        calls = [*[call("wait", n=n) for n in range(4)], call("last")]
        limits = RunLimits(together=3)
        task = asyncio.create_task(dispatch(calls, [wait, last], parallel=True, limits=limits))
        while len(done) < 2:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as cancelled:
            return cancelled

    results = asyncio.run(main()).results
    kinds = [result.kind for result in results]
    assert kinds == ["completed", "cancelled", "completed", "cancelled", "completed"]
    assert [result.output for result in results[::2]] == [0, 2, None]


def test_the_trace_names_a_thread_that_outlives_cancellation() -> None:
    begun, release = threading.Event(), threading.Event()
    trace = Trace()

    def slow() -> None:
        begun.set()
        release.wait(60)

    async def main() -> None:
        task = asyncio.create_task(dispatch(call("slow"), [slow], trace=trace))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    release.set()
    outcome = trace.events[-1]
    assert isinstance(outcome, Outcome) and outcome.kind == "cancelled" and "rightcall-slow-" in outcome.reason


# -- parallel ----------------------------------------------------------------------------------------------------------


class Gauge:
    """Records the largest number of concurrent calls."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def hold(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1


def gauged_tools(gauge: Gauge, order: list[str]) -> list[Any]:
    @tool(read_only=True)
    async def look(n: int) -> int:
        await gauge.hold()
        order.append(f"look {n}")
        return n

    async def write(n: int) -> int:
        assert gauge.now == 0, "nothing else runs while something is changed"
        order.append(f"write {n}")
        return n

    return [look, write]


CALLS = [call("look", n=1), call("look", n=2), call("write", n=3), call("look", n=4), call("look", n=5)]


def test_consecutive_read_only_calls_can_run_together() -> None:
    gauge, order = Gauge(), list[str]()
    results = dispatch_sync(CALLS, gauged_tools(gauge, order), parallel=True)
    assert [result.output for result in results] == [1, 2, 3, 4, 5]
    assert gauge.most == 2 and order.index("write 3") == 2


def test_calls_run_sequentially_by_default() -> None:
    gauge, order = Gauge(), list[str]()
    dispatch_sync(CALLS, gauged_tools(gauge, order))
    assert gauge.most == 1 and order == ["look 1", "look 2", "write 3", "look 4", "look 5"]


def test_the_number_of_calls_that_run_together_is_limited() -> None:
    gauge = Gauge()
    calls = [call("look", n=n) for n in range(9)]
    dispatch_sync(calls, gauged_tools(gauge, []), parallel=True, limits=RunLimits(together=3))
    assert gauge.most == 3


def test_the_trace_has_parallel_calls_in_the_order_of_the_batch() -> None:
    one, other = Trace(), Trace()
    hook = lambda invocation: None  # noqa: E731
    dispatch_sync(CALLS, gauged_tools(Gauge(), []), parallel=True, trace=one, hooks=[hook])
    dispatch_sync(CALLS, gauged_tools(Gauge(), []), trace=other, hooks=[hook])
    assert one == other


def test_when_a_parallel_call_fails_its_siblings_finish_and_later_ones_do_not_start() -> None:
    @tool(read_only=True)
    async def look(n: int) -> int:
        await asyncio.sleep(0.01 * n)
        if n == 0:
            raise ValueError("no")
        return n

    calls = [call("look", n=0), call("look", n=1), call("add", a=1)]
    with pytest.raises(ToolFailed) as caught:
        dispatch_sync(calls, [look, add], parallel=True, stop_on_error=True)
    assert [result.kind for result in caught.value.results] == ["failed", "completed", "not_run"] and not log


def test_a_result_can_be_written_as_json() -> None:
    results = dispatch_sync([call("Seat", row=1), call("gone")], [Seat])
    data = json.loads(json.dumps([result.to_json() for result in results]))
    assert (data[0]["output"], data[0]["kind"], data[0]["call"]["id"]) == (
        {"row": 1, "letter": "A"},
        "completed",
        "id_Seat",
    )
    assert data[1]["error"] is True and data[1]["problems"][0]["code"] == "unknown_tool"


def test_a_failing_dispatch_inside_a_tool_fails_only_that_tool() -> None:
    async def agent() -> list[Result]:
        return await dispatch(Call("bare", {}, "{}"), [Tool(name="bare", parameters={"type": "object"})])

    results = dispatch_sync([call("agent"), call("add", a=1)], [agent, add])
    assert [result.kind for result in results] == ["failed", "completed"]


# -- other behaviour ---------------------------------------------------------------------------------------------------


def test_a_sync_tool_sees_the_context_of_its_caller_and_does_not_block_the_loop() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    release = threading.Event()

    def ask() -> str:
        assert release.wait(60)
        return who.get()

    async def main() -> list[Result]:
        who.set("me")
        asyncio.get_running_loop().call_soon(release.set)
        return await dispatch(call("ask"), [ask])

    assert asyncio.run(main())[0].output == "me"


def test_an_awaitable_returned_by_a_sync_callable_is_awaited() -> None:
    bare = Tool(name="bare", parameters={"type": "object"}, run=lambda: greet("you"))
    assert dispatch_sync(call("bare"), [bare])[0].output == "hello you"


def test_dispatch_sync_in_a_running_loop_is_an_error() -> None:
    async def main() -> None:
        with pytest.raises(CallerError, match="await dispatch"):
            dispatch_sync(call("add", a=1), TOOLS)

    asyncio.run(main())


def test_dispatch_requires_tools() -> None:
    with pytest.raises(CallerError, match="tools is None"):
        dispatch_sync(call("add", a=1), None)  # type: ignore[arg-type]


def test_a_scope_does_not_reveal_which_tools_exist() -> None:
    scoped = TOOLS.scoped(["greet"])
    real, made_up = dispatch_sync([call("add", a=1), call("no_such_tool")], scoped)
    assert real.problems[0].code == made_up.problems[0].code == "not_authorised"
    assert real.text.replace("add", "x") == made_up.text.replace("no_such_tool", "x")
    assert len(scoped) == 1 and not log


def test_registering_a_tool_again_replaces_it_and_keeps_the_scope() -> None:
    @tool(name="add")
    def other(a: int) -> str:
        return "the new one"

    assert dispatch_sync(call("add", a=1), TOOLS.registered(other))[0].output == "the new one"
    scoped = TOOLS.scoped(["add"]).registered(other)
    assert dispatch_sync(call("add", a=1), scoped)[0].output == "the new one"
    assert dispatch_sync(call("greet", who="x"), scoped)[0].problems[0].code == "not_authorised"
    assert dispatch_sync(call("add", a=1), TOOLS)[0].output == 2, "the old toolset stays as it was"


def test_a_redeclared_tool_does_not_run_with_cached_data() -> None:
    def declare_tool(n: int) -> Any:
        async def same() -> int:
            return n

        return same

    assert [dispatch_sync(Call("same", {}, "{}"), [declare_tool(n)])[0].output for n in range(5)] == list(range(5))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["add", "greet", "fail", "gone", "cut"]), max_size=6), st.booleans())
def test_every_call_gets_its_result_in_order_and_runs_at_most_once(names: list[str], parallel: bool) -> None:
    arguments: dict[str, dict[str, Any]] = {"add": {"a": 1}, "greet": {"who": "x"}, "fail": {}, "gone": {}, "cut": {}}
    calls = [
        Call(name if name != "cut" else "add", arguments[name], "", id=str(at), complete=name != "cut")
        for at, name in enumerate(names)
    ]
    ran: list[int] = []

    def watch(invocation: Invocation) -> None:
        ran.append(invocation.index)

    results = dispatch_sync(calls, TOOLS, hooks=[watch], parallel=parallel)
    assert [result.id for result in results] == [str(at) for at in range(len(names))]
    assert ran == [at for at, name in enumerate(names) if name not in ("gone", "cut")]
    assert [result.kind == "refused" for result in results] == [name in ("gone", "cut") for name in names]
