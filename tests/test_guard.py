"""The guard: a table for each policy, then laws for any turn."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import Call, Problem, Reasoning, Reply, Result, Text, Toolset, dispatch, parse, tool
from rightcall.errors import CallerError
from rightcall.guard import (
    Guard,
    GuardPolicy,
    Intervention,
    Respond,
    Turn,
    announced,
    failing_budget,
    malformed_budget,
    near_calls,
    one_at_a_time,
    oversized_results,
    prerequisites,
    problems,
    repeated,
    required_steps,
    silence,
    terminal_tools,
    tool_choice,
    turn_budget,
    unknown_tool,
)
from rightcall.guard.turn import is_from_user
from rightcall.messages import history_faults


def search(query: str) -> str:
    """Looks something up."""
    return f"found {query}"


def edit(path: str, text: str = "") -> str:
    """Changes a file."""
    return "changed"


def finish(answer: str) -> str:
    """Ends the task."""
    return answer


TOOLS = Toolset(search, edit, finish)
LOOKS = Toolset(tool(search, read_only=True), edit, finish)
ASKED = {"role": "user", "content": "go"}


def turn_of(*calls: tuple[str, Any] | str, results: Sequence[str] | None = None, at: int = 0) -> list[dict[str, Any]]:
    """Return a past turn: calls with arguments, or a text; then the results of the calls."""
    text = "".join([each for each in calls if isinstance(each, str)])
    calls_made = [each for each in calls if not isinstance(each, str)]
    if not calls_made:
        return [{"role": "assistant", "content": text}]
    ids = [f"past_{at}_{n}_{name}" for n, (name, _) in enumerate(calls_made)]
    wire = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for id, (name, given) in zip(ids, calls_made, strict=True)
    ]
    out: list[dict[str, Any]] = [{"role": "assistant", "content": text, "tool_calls": wire}]
    given_results = results if results is not None else ["fine"] * len(calls_made)
    return out + [
        {"role": "tool", "tool_call_id": id, "content": result} for id, result in zip(ids, given_results, strict=False)
    ]


def history_of(*turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history: the user's message, then these turns."""
    out: list[dict[str, Any]] = [ASKED]
    for at, turn in enumerate(turns):
        text = json.dumps(turn).replace("past_0_", f"past_{at}_")
        out += json.loads(text)
    return out


def reply_of(*parts: Any) -> Reply:
    """Return the model's reply, checked against the tools."""
    text = "".join([part if isinstance(part, str) else _hermes_call(part) for part in parts])
    return parse(text, tools=TOOLS, format="hermes")


def _hermes_call(call: Any) -> str:
    name, given_arguments = call
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {json.dumps(given_arguments)}}}\n</tool_call>'


A = ("search", {"query": "a"})
B = ("edit", {"path": "b"})
END = ("finish", {"answer": "42"})
NUDGED = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "[guard: required_steps] Before ..."}]

Case = tuple[GuardPolicy, list[dict[str, Any]], Reply | None, list[tuple[str, int | None]]]
TABLE: dict[str, Case] = {
    "unknown: a declared tool": (unknown_tool(), history_of(), reply_of(A), []),
    "unknown: another": (unknown_tool(), history_of(), reply_of(A, ("serch", {})), [("refuse", 1)]),
    "problems: fine": (problems(), history_of(), reply_of(A), []),
    "problems: a missing argument": (problems(), history_of(), reply_of(("search", {})), [("refuse", 0)]),
    "problems: one of two": (problems(), history_of(), reply_of(("search", {"query": {}}), A), [("refuse", 0)]),
    "near: prose": (near_calls(), history_of(), reply_of("All done."), []),
    "near: a bare call in prose": (
        near_calls(),
        history_of(),
        reply_of('So: {"name": "search", "arguments": {"query": "a"}} ok?'),
        [("nudge", None)],
    ),
    "near: so often is enough": (
        near_calls(most=2),
        history_of(*[[*turn_of("x"), {"role": "user", "content": "[guard: near_call] ..."}]] * 2),
        reply_of('So: {"name": "search", "arguments": {"query": "a"}} ok?'),
        [],
    ),
    "steps: the end too early": (
        required_steps("search", before=["finish"]),
        history_of(),
        reply_of(END),
        [("refuse", 0)],
    ),
    "steps: in the same turn is too early": (
        required_steps("search", before=["finish"]),
        history_of(),
        reply_of(A, END),
        [("refuse", 1)],
    ),
    "steps: after the step": (required_steps("search", before=["finish"]), history_of(turn_of(A)), reply_of(END), []),
    "steps: a step that failed is none": (
        required_steps("search", before=["finish"]),
        history_of(turn_of(A, results=["ERROR: no"])),
        reply_of(END),
        [("refuse", 0)],
    ),
    "steps: an answer in words": (required_steps("search"), history_of(), reply_of("42"), [("nudge", None)]),
    "steps: a new question asks anew": (
        required_steps("search", before=["finish"]),
        [*history_of(turn_of(A)), {"role": "assistant", "content": "ok"}, ASKED],
        reply_of(END),
        [("refuse", 0)],
    ),
    "steps: a nudge is no new question": (
        required_steps("search", before=["finish"]),
        [*history_of(turn_of(A)), *NUDGED],
        reply_of(END),
        [],
    ),
    "needs: by name": (prerequisites({"edit": "search"}), history_of(), reply_of(B), [("refuse", 0)]),
    "needs: done": (prerequisites({"edit": "search"}), history_of(turn_of(A)), reply_of(B), []),
    "needs: a call that failed": (
        prerequisites({"edit": "search"}),
        history_of(turn_of(A, results=["ERROR: no"])),
        reply_of(B),
        [("refuse", 0)],
    ),
    "needs: a call that was not run": (
        prerequisites({"edit": "search"}),
        history_of(turn_of(A, results=["ERROR: the call was not run: x"])),
        reply_of(B),
        [("refuse", 0)],
    ),
    "needs: a call without a result": (
        prerequisites({"edit": "search"}),
        history_of(turn_of(A, results=[])),
        reply_of(B),
        [("refuse", 0)],
    ),
    "needs: done after it failed": (
        prerequisites({"edit": "search"}),
        history_of(turn_of(A, results=["ERROR: no"]), turn_of(A)),
        reply_of(B),
        [],
    ),
    "needs: an equal value, but failed": (
        prerequisites({"edit": ("edit", "path")}),
        history_of(turn_of(B, results=["ERROR: no"])),
        reply_of(B),
        [("refuse", 0)],
    ),
    "needs: an equal value": (prerequisites({"edit": ("edit", "path")}), history_of(turn_of(B)), reply_of(B), []),
    "needs: another value": (
        prerequisites({"edit": ("search", "query")}),
        history_of(turn_of(A)),
        reply_of(("edit", {"path": "b", "query": "z"})),
        [],
    ),
    "needs: equal values": (
        prerequisites({"edit": ("edit", "path")}),
        history_of(turn_of(("edit", {"path": "c"}))),
        reply_of(B),
        [("refuse", 0)],
    ),
    "needs: several": (
        prerequisites({"finish": ["search", ("edit", "path")]}),
        history_of(turn_of(A)),
        reply_of(END),
        [("refuse", 0)],
    ),
    "terminal: called": (terminal_tools("finish"), history_of(), reply_of(END), [("end", 0)]),
    "terminal: a rejected call ends nothing": (terminal_tools("finish"), history_of(), reply_of(("finish", {})), []),
    "terminal: words instead": (terminal_tools("finish"), history_of(), reply_of("42"), [("nudge", None)]),
    "terminal: words may do": (terminal_tools("finish", required=False), history_of(), reply_of("42"), []),
    "respond: alone": (Respond("finish"), history_of(), reply_of(END), [("end", None), ("answer", 0)]),
    "respond: beside another": (Respond("finish"), history_of(), reply_of(A, END), [("refuse", 1)]),
    "announced: and not made": (
        announced(),
        history_of(),
        reply_of("Let me call search to find out."),
        [("nudge", None)],
    ),
    "announced: with a colon": (announced(), history_of(), reply_of("Sure. I'll look that up now:"), [("nudge", None)]),
    "announced: an offer": (announced(), history_of(), reply_of("If you want, I'll call search."), []),
    "announced: an answer": (announced(), history_of(), reply_of("I used search; it says 42."), []),
    "announced: something said long ago": (
        announced(),
        history_of(),
        reply_of("Let me think. " + "It is 42. " * 40),
        [],
    ),
    "announced: so often is enough": (
        announced(most=1),
        history_of([*turn_of("x"), {"role": "user", "content": "[guard: announced] ..."}]),
        reply_of("Let me call search."),
        [],
    ),
    "repeated: first": (repeated(), history_of(), reply_of(A), []),
    "repeated: second is told": (repeated(), history_of(turn_of(A)), reply_of(A), [("tell", 0)]),
    "repeated: other arguments": (repeated(), history_of(turn_of(A)), reply_of(("search", {"query": "z"})), []),
    "repeated: keys in another order": (
        repeated(),
        history_of(turn_of(("edit", {"path": "b", "text": "x"}))),
        reply_of(("edit", {"text": "x", "path": "b"})),
        [("refuse", 0)],
    ),
    "repeated: a change that went well is not made twice": (
        repeated(),
        history_of(turn_of(B)),
        reply_of(B),
        [("refuse", 0)],
    ),
    "repeated: a change that failed may come again": (
        repeated(),
        history_of(turn_of(B, results=["ERROR: x"])),
        reply_of(B),
        [("tell", 0)],
    ),
    "repeated: a change after another": (repeated(), history_of(turn_of(B), turn_of(END)), reply_of(B), []),
    "repeated: a change by a tool that is exempt": (repeated(exempt=["edit"]), history_of(turn_of(B)), reply_of(B), []),
    "repeated: a change, for ever": (
        repeated(),
        history_of(turn_of(B), *[turn_of(B, results=["ERROR: [guard: repeated] x"])] * 4),
        reply_of(B),
        [("stop", None)],
    ),
    "repeated: twice in one reply": (repeated(), history_of(), reply_of(A, B, A), [("refuse", 2)]),
    "repeated: third is answered": (repeated(), history_of(turn_of(A), turn_of(A)), reply_of(A), [("answer", 0)]),
    "repeated: fourth is refused": (repeated(), history_of(*[turn_of(A)] * 3), reply_of(A), [("refuse", 0)]),
    "repeated: sixth stops": (repeated(), history_of(*[turn_of(A)] * 5), reply_of(A), [("stop", None)]),
    "repeated: other results": (
        repeated(),
        history_of(turn_of(A, results=["1"]), turn_of(A, results=["2"])),
        reply_of(A),
        [],
    ),
    "repeated: after a change": (repeated(), history_of(turn_of(A), turn_of(B)), reply_of(A), []),
    "repeated: after a change in the same turn": (repeated(), history_of(turn_of(A)), reply_of(B, A), []),
    "repeated: before a change in the same turn": (repeated(), history_of(turn_of(A)), reply_of(A, B), [("tell", 0)]),
    "repeated: a failing change in every turn": (
        repeated(),
        history_of(*[turn_of(B, A, results=["ERROR: x", "1"])] * 2),
        reply_of(B, A),
        [("refuse", 0)],
    ),
    "repeated: after a change that failed": (
        repeated(),
        history_of(turn_of(A), turn_of(B, results=["ERROR: x"])),
        reply_of(A),
        [("tell", 0)],
    ),
    "repeated: after a change that failed in the same turn": (
        repeated(),
        history_of(turn_of(A, B, results=["fine", "ERROR: x"])),
        reply_of(A),
        [("tell", 0)],
    ),
    "repeated: before and after a change that failed": (
        repeated(),
        history_of(turn_of(A), turn_of(B, results=["ERROR: x"]), turn_of(A)),
        reply_of(A),
        [("answer", 0)],
    ),
    "repeated: after a change that was refused": (
        repeated(),
        history_of(turn_of(A), turn_of(B, results=["ERROR: [guard: repeated] x"])),
        reply_of(A),
        [("tell", 0)],
    ),
    "repeated: a change after another that failed": (
        repeated(),
        history_of(turn_of(B), turn_of(END, results=["ERROR: x"])),
        reply_of(B),
        [("refuse", 0)],
    ),
    "repeated: failures are not answered from": (
        repeated(),
        history_of(*[turn_of(A, results=["ERROR: x"])] * 2),
        reply_of(A),
        [("tell", 0)],
    ),
    "repeated: exempt": (repeated(exempt=["search"]), history_of(*[turn_of(A)] * 5), reply_of(A), []),
    "repeated: a cycle of two": (repeated(), history_of(*[turn_of(A), turn_of(B)] * 2), reply_of(A), [("refuse", 0)]),
    "repeated: a cycle that gets on": (
        repeated(),
        history_of(*[turn for n in range(3) for turn in (turn_of(A, results=[f"r{n}"]), turn_of(B))]),
        reply_of(A),
        [],
    ),
    "choice: parallel is allowed": (one_at_a_time(), history_of(), reply_of(A, B), []),
    "malformed: not yet": (
        malformed_budget(2),
        history_of(turn_of(A, results=["ERROR: the call was not run: x"])),
        reply_of(("search", {})),
        [],
    ),
    "malformed: too often": (
        malformed_budget(2),
        history_of(*[turn_of(A, results=["ERROR: [guard: problems] x"])] * 2),
        reply_of(("search", {})),
        [("stop", None)],
    ),
    "malformed: a good one": (
        malformed_budget(2),
        history_of(*[turn_of(A, results=["ERROR: [guard: problems] x"])] * 2),
        reply_of(A),
        [],
    ),
    "failing: too often": (
        failing_budget(2),
        history_of(*[turn_of(A, results=["ERROR: x"])] * 2),
        reply_of(A),
        [("stop", None)],
    ),
    "failing: another tool": (failing_budget(2), history_of(*[turn_of(A, results=["ERROR: x"])] * 2), reply_of(B), []),
    "silence: words": (silence(), history_of(), reply_of("hm"), []),
    "silence: nothing": (silence(), history_of(), reply_of(""), [("nudge", None)]),
    "silence: too long": (
        silence(most=1),
        history_of([{"role": "assistant", "content": ""}, {"role": "user", "content": "[guard: silence] ..."}]),
        reply_of(""),
        [("stop", None)],
    ),
    "turns: enough": (turn_budget(2), history_of(turn_of(A), turn_of(B)), reply_of(A), [("stop", None)]),
    "turns: an answer may come": (turn_budget(2), history_of(turn_of(A), turn_of(B)), reply_of("42"), []),
    "oversized: before asking": (
        oversized_results(chars=100),
        history_of(turn_of(A, results=["x" * 500])),
        None,
        [("cut", None)],
    ),
    "oversized: small": (oversized_results(chars=100), history_of(turn_of(A, results=["x"])), None, []),
}


@pytest.mark.parametrize("case", TABLE)
def test_each_policy_intervenes_as_its_table_says(case: str) -> None:
    policy, history, reply, wanted = TABLE[case]
    found = list(policy(Turn.of(history, LOOKS, reply=reply)))
    assert [(each.action, each.call) for each in found] == wanted
    assert all(each.reason for each in found)
    assert all(len(each.message) <= 1_200 for each in found if each.action not in ("answer", "cut"))


CHOICES: dict[str, tuple[str, Reply, list[tuple[str, int | None]]]] = {
    "auto": ("auto", reply_of(A), []),
    "none, and a call": ("none", reply_of("x", A), [("refuse", 0)]),
    "none, and words": ("none", reply_of("x"), []),
    "required, and words": ("required", reply_of("x"), [("nudge", None)]),
    "required, and a call": ("required", reply_of(A), []),
    "named, and it": ("search", reply_of(A), []),
    "named, and another": ("search", reply_of(B), [("refuse", 0)]),
    "named, and words": ("search", reply_of("x"), [("nudge", None)]),
}


@pytest.mark.parametrize("case", CHOICES)
def test_the_tool_choice_is_enforced(case: str) -> None:
    choice, reply, wanted = CHOICES[case]
    found = list(tool_choice()(Turn.of([ASKED], TOOLS, reply=reply, choice=choice)))
    assert [(each.action, each.call) for each in found] == wanted


@pytest.mark.parametrize(
    ("choice", "listed"), [("auto", "edit, finish, search."), ("edit", "edit."), ("none", "none.")]
)
def test_a_nudge_lists_only_the_tools_that_can_be_called(choice: str, listed: str) -> None:
    (intervention,) = Guard(unknown_tool()).interventions(
        Turn.of(history_of(), TOOLS, reply=reply_of(("serch", {})), choice=choice)
    )
    assert intervention.message.endswith(f"The tools you can call: {listed}")


def test_only_the_first_runnable_call_runs_without_parallel_calls() -> None:
    turn = Turn.of([ASKED], TOOLS, reply=reply_of(("search", {}), A, B), parallel=False)
    judged = Guard(problems(), one_at_a_time()).judge(turn)
    assert [call.name for call in judged.calls] == ["search"]
    assert [(each.policy, each.call) for each in judged.interventions] == [("problems", 0), ("one_at_a_time", 2)]


def test_nudges_escalate_up_to_the_third_turn() -> None:
    guard = Guard(required_steps("search", before=["finish"]))
    messages: list[Any] = [ASKED]
    nudges = []
    for _ in range(4):
        judged = guard.judge(Turn.of(messages, TOOLS, reply=reply_of(END)))
        nudges.append(judged.interventions[0].message)
        messages += judged.messages()
    assert len(set(nudges[:3])) == 3
    assert nudges[2] == nudges[3]
    assert nudges[2].startswith("[guard: required_steps] STOP.")


ESCALATING: dict[str, tuple[GuardPolicy, Reply, dict[str, Any]]] = {
    "unknown_tool": (unknown_tool(), reply_of(("serch", {})), {}),
    "problems": (problems(), reply_of(("search", {})), {}),
    "near_call": (near_calls(), reply_of('So: {"name": "search", "arguments": {"query": "a"}} ok?'), {}),
    "prerequisites": (prerequisites({"edit": ("search", "query")}), reply_of(("edit", {"path": "p" * 9_000})), {}),
    "required_steps": (required_steps("search", before=["finish"]), reply_of(END), {}),
    "terminal_tools": (terminal_tools("finish"), reply_of("Done."), {}),
    "tool_choice": (tool_choice(), reply_of("x"), {"choice": "required"}),
    "tool_choice, another": (tool_choice(), reply_of(B), {"choice": "search"}),
    "announced": (announced(), reply_of("Let me call search."), {}),
    "silence": (silence(), reply_of(""), {}),
    "one_at_a_time": (one_at_a_time(), reply_of(A, B), {"parallel": False}),
    "repeated": (repeated(answer=99), reply_of(B), {}),
    "respond": (Respond("finish"), reply_of(A, END), {}),
}


@pytest.mark.parametrize("case", ESCALATING)
def test_repeated_nudges_differ_and_have_bounded_length(case: str) -> None:
    policy, reply, how = ESCALATING[case]
    messages: list[Any] = history_of(turn_of(B)) if case == "repeated" else [ASKED]
    nudges: list[str] = []
    for _ in range(4 if case == "repeated" else 3):
        judged = Guard(policy).judge(Turn.of(messages, LOOKS, reply=reply, **how))
        nudges += [each.message for each in judged.interventions if each.action in ("refuse", "nudge", "tell", "stop")]
        messages += judged.messages(outcomes(judged.calls))
    assert len(set(nudges)) >= (2 if case == "repeated" else 3)
    assert all(len(each) <= 1_200 and each.startswith(f"[guard: {case.partition(',')[0]}] ") for each in nudges)


@pytest.mark.parametrize(
    "policy, choice",
    [(required_steps("search"), "auto"), (terminal_tools("finish"), "auto"), (tool_choice(), "required")],
    ids=["required_steps", "terminal_tools", "tool_choice"],
)
def test_a_model_without_calls_is_not_nudged_forever(policy: GuardPolicy, choice: str) -> None:
    guard, history, decisions = Guard(policy), [ASKED], []
    for _ in range(6):
        judged = guard.judge(Turn.of(history, TOOLS, reply=reply_of("Done."), choice=choice))
        decisions.append(judged.decision)
        history += judged.messages()
    assert decisions == ["again"] * 5 + ["stop"]


@pytest.mark.parametrize("choice", ["search", "none"])
def test_a_model_that_only_calls_other_tools_is_not_refused_forever(choice: str) -> None:
    guard, history, decisions = Guard(tool_choice()), [ASKED], []
    for _ in range(6):
        judged = guard.judge(Turn.of(history, TOOLS, reply=reply_of(B), choice=choice))
        decisions.append(judged.decision)
        history += judged.messages()
    assert decisions == ["again"] * 5 + ["stop"]


def test_a_third_identical_call_is_answered_from_the_history() -> None:
    judged = Guard(repeated()).judge(Turn.of(history_of(turn_of(A), turn_of(A)), LOOKS, reply=reply_of(A)))
    assert (judged.decision, judged.calls) == ("again", ())
    assert [(result.output, result.error) for result in judged.results] == [("fine", False)]


def test_a_note_is_appended_to_the_result() -> None:
    turn = Turn.of(history_of(turn_of(A)), LOOKS, reply=reply_of(A))
    judged = Guard(repeated()).judge(turn)
    results = asyncio.run(dispatch(judged.calls, LOOKS))
    answer = judged.messages(results)[-1]["content"]
    assert answer.startswith("found a\n[guard: repeated] You made this very call before")


def test_the_task_ends_only_with_a_successful_terminal_tool() -> None:
    judged = Guard(terminal_tools("finish")).judge(Turn.of([ASKED], TOOLS, reply=reply_of(END)))
    (result,) = asyncio.run(dispatch(judged.calls, TOOLS))
    assert judged.over([result])
    assert not judged.over([type(result)(result.call, "no", True, "failed")])


def test_a_repeated_call_is_noted_then_answered_then_rejected_then_stopped() -> None:
    messages: list[Any] = [ASKED]
    actions: list[str] = []
    for _ in range(6):
        judged = Guard(repeated()).judge(Turn.of(messages, LOOKS, reply=reply_of(A)))
        messages += judged.messages(asyncio.run(dispatch(judged.calls, LOOKS)))
        actions += [each.action for each in judged.interventions] or ["run"]
    assert actions == ["run", "tell", "answer", "refuse", "refuse", "stop"]


def test_a_nudge_for_a_whole_reply_is_appended_to_its_last_result() -> None:
    def always(turn: Turn) -> list[Intervention]:
        return [Intervention("slow_down", "nudge", "told", f"[guard: slow_down] {turn.told('slow_down')}")]

    messages: list[Any] = [ASKED]
    for at in range(3):
        judged = Guard(always).judge(Turn.of(messages, LOOKS, reply=reply_of(("search", {"query": str(at)}), B)))
        messages += judged.messages(asyncio.run(dispatch(judged.calls, LOOKS)))
        assert messages[-1]["content"] == f"changed\n[guard: slow_down] {at}"
        assert messages[-2]["content"] == f"found {at}"


def test_without_a_policy_an_answer_that_looks_like_a_call_ends_the_task() -> None:
    judged = Guard.of("none").judge(
        Turn.of([ASKED], TOOLS, reply=reply_of('So: {"name": "search", "arguments": {}} ok?'))
    )
    assert judged.decision == "done"
    assert [message["role"] for message in judged.messages()] == ["assistant"]


def test_a_repeated_change_is_rejected_with_a_bounded_excerpt_of_its_result() -> None:
    history = history_of(turn_of(B, results=["done " + "x" * 5_000]))
    (each,) = Guard(repeated()).judge(Turn.of(history, LOOKS, reply=reply_of(B))).interventions
    assert "It gave: done xxx" in each.message
    assert len(each.message) < 700


@pytest.mark.parametrize(
    "is_error, result, outcome",
    [
        (None, "fine", "ok"),
        (None, "ERROR: no", "failed"),
        (None, "Error in line 3 of the log", "failed"),
        (False, "ERROR: no", "ok"),
        (False, "Error in line 3 of the log", "ok"),
        (True, "fine", "failed"),
        (True, "ERROR: no", "failed"),
        (True, "ERROR: the call was not run: x", "refused"),
        (False, "ERROR: the call was not run: x", "refused"),
        (True, "ERROR: [guard: problems] x", "refused"),
    ],
)
def test_the_error_flag_of_a_result_takes_precedence_over_the_beginning_of_its_text(
    is_error: bool | None, result: str, outcome: str
) -> None:
    history = history_of(turn_of(A, results=[result]))
    if is_error is not None:
        history[-1]["is_error"] = is_error
    ((call,),) = [past.calls for past in Turn.of(history, TOOLS).past]
    assert call.outcome == outcome
    assert outcome != "ok" or call.result == result


def test_a_call_rejected_by_another_policy_is_not_a_repetition() -> None:
    guard = Guard(prerequisites({"edit": "search"}), repeated())
    messages: list[Any] = [ASKED]
    decisions = []
    for call in (B, A, B):
        judged = guard.judge(Turn.of(messages, LOOKS, reply=reply_of(call)))
        messages += judged.messages(asyncio.run(dispatch(judged.calls, LOOKS)))
        decisions.append((judged.decision, len(judged.interventions)))
    assert decisions == [("again", 1), ("run", 0), ("run", 0)]


def test_a_call_of_the_respond_tool_is_the_answer() -> None:
    guard = Guard(Respond())
    tools = guard.tools(TOOLS)
    assert tools is not None
    assert "respond" in tools.names
    reply = parse(_hermes_call(("respond", {"message": "It is 42."})), tools=tools, format="hermes")
    judged = guard.judge(Turn.of([ASKED], tools, reply=reply))
    assert (judged.decision, judged.answer, judged.over()) == ("done", "It is 42.", True)


def test_large_results_are_shortened_only_in_the_request() -> None:
    history = history_of(turn_of(A, results=["x" * 50_000]))
    sent = Guard.of("full").prepare(Turn.of(history, TOOLS))
    assert len(sent[-1]["content"]) < 20_000
    assert "[guard: oversized_results]" in sent[-1]["content"]
    assert len(history[-1]["content"]) == 50_000


def test_an_invalid_call_is_rejected_without_any_policy() -> None:
    judged = Guard.of("none").judge(Turn.of([ASKED], TOOLS, reply=reply_of(("search", {}))))
    assert (judged.decision, judged.calls) == ("again", ())
    assert judged.messages()[-1]["content"].startswith("ERROR: the call was not run: ")


@pytest.mark.parametrize(
    "content, expected",
    [
        ("Go on.", True),
        ("[guard: silence] Answer, please.", False),
        ("<system-reminder>a</system-reminder>", False),
        ("<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\n", False),
        ("<system-reminder>a</system-reminder>\nGo on.", True),
        ("Go on.\n<system-reminder>a</system-reminder>", True),
        ("<system-reminder>a</system-reminder>Go on.<system-reminder>b</system-reminder>", True),
        ([{"type": "text", "text": "<system-reminder>a</system-reminder>"}, {"type": "text", "text": "Go on."}], True),
    ],
)
def test_a_message_is_from_the_user_unless_it_is_all_reminders_or_a_nudge(content: object, expected: bool) -> None:
    assert is_from_user({"role": "user", "content": content}) is expected
    assert not is_from_user({"role": "assistant", "content": content})


def test_an_unknown_guard_name_is_rejected() -> None:
    with pytest.raises(CallerError, match="is not one of none, parse, full"):
        Guard.of("all")
    with pytest.raises(CallerError, match="no reply to judge"):
        Guard().judge(Turn.of([]))


names = st.sampled_from(["search", "edit", "finish", "respond", "nope", ""])
arguments = st.sampled_from([{}, {"query": "a"}, {"query": "b"}, {"path": "x"}, {"answer": "1"}, {"message": "m"}])
texts = st.sampled_from(
    ["", "ok", "Let me call search.", "I will look:", '{"name": "search"', "[guard: repeated] x", "é\ud800"]
)
attempts = st.builds(
    lambda name, given_arguments, at, bad: Call(
        name, given_arguments, id=f"c{at}", problems=(Problem("missing", "x is missing", call=at),) if bad else ()
    ),
    names,
    arguments,
    st.integers(0, 10**6),
    st.booleans(),
)
replies = st.builds(
    lambda text, thought, calls: Reply(
        (*([Reasoning(thought)] if thought else []), *([Text(text)] if text else []), *calls),
        tuple([problem for call in calls for problem in call.problems]),
    ),
    texts,
    texts,
    st.lists(attempts, max_size=3, unique_by=lambda call: call.id),
)
guards = st.sampled_from(
    [
        Guard.of("none"),
        Guard.of("parse"),
        Guard.of("full"),
        Guard.of("full").with_policies(
            required_steps("search", before=["finish"]),
            prerequisites({"edit": ("search", "query")}),
            terminal_tools("finish"),
            Respond(),
        ),
    ]
)


@settings(max_examples=settings().max_examples * 5)
@given(guard=guards, turns=st.lists(replies, max_size=17), choice=st.sampled_from(["auto", "required", "none", "edit"]))
def test_in_any_conversation_the_history_is_kept_and_every_call_has_a_result(
    guard: Guard, turns: list[Reply], choice: str
) -> None:
    """The guard alone; test_random_turns.py has ten thousand turns of a runner."""
    tools = guard.tools(TOOLS)
    messages: list[Any] = [ASKED]
    for at, turn_reply in enumerate(turns):
        reply = _renumbered(turn_reply, at)
        before = list(messages)
        judged = guard.judge(Turn.of(messages, tools, reply=reply, choice=choice, parallel=bool(at % 2)))
        results = [] if tools is None else outcomes(judged.calls)
        messages += judged.messages(results)
        assert messages[: len(before)] == before
        answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
        assert {call.id for call in reply.attempts} <= answered
        assert all(call.ok for call in judged.calls)
        if judged.decision == "again":
            assert messages[-1]["role"] in ("tool", "user")
    empty = "has neither content nor calls"
    assert not [fault for fault in history_faults(messages, profile="vllm") if empty not in fault]


def _renumbered(reply: Reply, at: int) -> Reply:
    parts = [
        Call(part.name or "x", part.arguments, id=f"t{at}_{part.id}", problems=part.problems)
        if isinstance(part, Call)
        else part
        for part in reply.parts
    ]
    return Reply(tuple(parts), reply.problems)


def outcomes(calls: Sequence[Call]) -> list[Any]:
    """Return a successful result for each call without running it."""
    return [Result(call, f"did {call.name}") for call in calls]
