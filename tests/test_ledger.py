"""The task ledger: its actions, its errors, and the check before completion."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Tool, Toolset, check
from rightcall.contracts.ledger import MAX_ITEMS, MAX_OBSERVATIONS, MAX_TEXT, Deliverable, Ledger, LedgerState
from rightcall.errors import CallerError, ToolError
from support.made_schemas import HOSTILE, LITERALS


def planned_ledger() -> Ledger:
    ledger = Ledger("Fix the parser")
    ledger.run("seed_plan", items=["write a test", "mend it"])
    return ledger


# -- actions -----------------------------------------------------------------------------------------------------------


def test_add_numbers_deliverables_unless_an_id_is_given() -> None:
    ledger = Ledger()
    assert [ledger.add("one"), ledger.add("two", "mine"), ledger.add("three")] == [
        "deliverable-1",
        "mine",
        "deliverable-3",
    ]
    assert ledger.state.deliverables[0] == Deliverable("deliverable-1", "one", "open", "")


def test_a_used_number_is_skipped() -> None:
    ledger = Ledger()
    ledger.add("one", "deliverable-2")
    assert ledger.add("two") == "deliverable-3"


def test_an_id_can_be_used_only_once() -> None:
    ledger = planned_ledger()
    with pytest.raises(ToolError, match="there is a deliverable 'deliverable-1' already"):
        ledger.run("add", text="again", id="deliverable-1")


def test_mark_changes_the_status_and_keeps_the_note() -> None:
    ledger = planned_ledger()
    assert ledger.run("mark", id="deliverable-1", status="blocked", note="no net") == "deliverable-1 is blocked"
    ledger.run("mark", id="deliverable-1", status="done")
    assert ledger.state.deliverables[0] == Deliverable("deliverable-1", "write a test", "done", "no net")


@pytest.mark.parametrize("status", ["blocked", "dropped"])
def test_blocked_and_dropped_need_a_note(status: str) -> None:
    with pytest.raises(ToolError, match=f"{status} needs a note"):
        planned_ledger().run("mark", id="deliverable-1", status=status, note=" ")


def test_an_unknown_id_is_reported_with_the_known_ids() -> None:
    with pytest.raises(ToolError, match="the ids are: deliverable-1, deliverable-2"):
        planned_ledger().run("mark", id="deliverable-9", status="done")
    with pytest.raises(ToolError, match="the ids are: none yet"):
        Ledger().run("mark", id="x", status="done")


def test_an_unknown_status_is_reported_with_the_valid_ones() -> None:
    with pytest.raises(ToolError, match="open, done, blocked, dropped"):
        planned_ledger().run("mark", id="deliverable-1", status="finished")


def test_the_rationale_is_replaced_and_notes_accumulate() -> None:
    ledger = Ledger()
    for text in ("first", "second"):
        ledger.run("rationale", text=text)
        ledger.run("note", text=text)
    assert ledger.state.rationale == "second" and ledger.state.observations == ("first", "second")


def test_a_plan_requires_an_empty_ledger() -> None:
    ledger = planned_ledger()
    assert [item.id for item in ledger.state.deliverables] == ["deliverable-1", "deliverable-2"]
    with pytest.raises(ToolError, match="deliverables already"):
        ledger.run("seed_plan", items=["more"])
    with pytest.raises(ToolError, match="1 to"):
        Ledger().run("seed_plan", items=[])
    with pytest.raises(ToolError, match=r"items\[1\] must be a text"):
        Ledger().run("seed_plan", items=["a", 3])


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({"action": "delete"}, "there is no action 'delete'; use one of: add, mark, rationale, note, seed_plan"),
        ({"action": "add"}, "add needs text"),
        ({"action": "add", "text": "  "}, "must be a text that is not blank"),
        ({"action": "add", "text": "x", "id": 3}, "id is a text"),
        ({"action": "mark", "id": "a"}, "mark needs status"),
        ({"action": "seed_plan", "items": "a"}, "seed_plan needs items: a list of texts"),
        ({"action": "note", "text": "x" * (MAX_TEXT + 1)}, "write at most"),
    ],
    ids=str,
)
def test_invalid_actions_are_reported(arguments: dict[str, Any], cause: str) -> None:
    ledger = Ledger()
    with pytest.raises(ToolError, match=cause.replace("[", r"\[")):
        ledger.run(**arguments)
    assert ledger.state == LedgerState()


def test_the_size_of_the_ledger_is_limited() -> None:
    ledger = Ledger()
    for at in range(MAX_ITEMS):
        ledger.add(f"item {at}")
    with pytest.raises(ToolError, match="full"):
        ledger.add("one more")
    for at in range(MAX_OBSERVATIONS + 10):
        ledger.note(f"seen {at}")
    assert ledger.state.observations == tuple([f"seen {at}" for at in range(10, MAX_OBSERVATIONS + 10)])


# -- completion --------------------------------------------------------------------------------------------------------


def test_completion_is_rejected_with_the_list_of_open_and_blocked_items() -> None:
    ledger = planned_ledger()
    ledger.mark("deliverable-2", "blocked", "no net")
    refusal = ledger.refusal()
    assert refusal is not None and refusal.code == "ledger_open" and refusal.blocking
    assert refusal.message.endswith(
        "note:\n- [deliverable-1] (open) write a test\n- [deliverable-2] (blocked) mend it — no net"
    )


def test_completion_is_allowed_when_every_item_is_done_or_dropped_or_no_item_exists() -> None:
    assert Ledger("anything").refusal() is None
    ledger = planned_ledger()
    ledger.mark("deliverable-1", "done")
    ledger.mark("deliverable-2", "dropped", "not needed")
    assert ledger.refusal() is None and ledger.unfinished() == ()


# -- text form ---------------------------------------------------------------------------------------------------------


def test_an_empty_ledger_has_no_text() -> None:
    assert Ledger().text() == "" and Ledger("a task alone").text() == ""


def test_the_text_shows_task_deliverables_rationale_and_the_last_observations() -> None:
    ledger = planned_ledger()
    ledger.mark("deliverable-2", "dropped", "done by others")
    ledger.rationale("tests first")
    for at in range(7):
        ledger.note(f"seen {at}")
    assert ledger.text() == "\n".join(
        [
            "<task_ledger>",
            "root_task: Fix the parser",
            "deliverables:",
            "  - [deliverable-1] (open) write a test",
            "  - [deliverable-2] (dropped) mend it — done by others",
            "rationale: tests first",
            "observations:",
            *[f"  - seen {at}" for at in range(2, 7)],
            "</task_ledger>",
        ]
    )


@given(HOSTILE.filter(lambda text: text.strip() != ""))
def test_text_of_the_model_cannot_close_the_ledger_or_one_of_its_lines(text: str) -> None:
    ledger = Ledger(text)
    ledger.add(text, text)
    ledger.note(text)
    shown = ledger.text()
    assert shown.count("</task_ledger>") == 1 and "<tool_call>" not in shown
    assert len(shown.splitlines()) == 7
    shown.encode()


# -- tool and state ----------------------------------------------------------------------------------------------------


def test_the_ledger_is_a_regular_tool() -> None:
    ledger = Ledger()
    tools = Toolset([ledger.tool(), Tool(name="other")])
    call = Call("ledger", {"action": "add", "text": "write a test"}, "")
    assert check(call, tools) == []
    tool = tools.get("ledger")
    assert tool is not None and tool.run is not None and tool.run(**call.arguments) == "deliverable-1"
    assert [problem.code for problem in check(Call("ledger", {"action": "remove"}, ""), tools)] == ["not_allowed"]


def test_the_state_survives_a_restart() -> None:
    ledger = planned_ledger()
    ledger.mark("deliverable-1", "done")
    ledger.note("é\n2")
    restored = Ledger.from_json(ledger.to_json())
    assert restored.state == ledger.state and restored.text() == ledger.text()
    assert json.loads(ledger.to_json())["deliverables"][0]["status"] == "done"


@pytest.mark.parametrize("text", ["", "[]", '{"deliverables": [{"id": 1}]}', '{"more": 1}', '{"rationale": null}'])
def test_invalid_ledger_json_is_rejected(text: str) -> None:
    with pytest.raises(CallerError, match="not a ledger"):
        Ledger.from_json(text)


@given(st.dictionaries(st.sampled_from("id text status note items other".split()), LITERALS), HOSTILE)
def test_every_call_of_a_model_is_executed_or_answered(arguments: dict[str, Any], action: str) -> None:
    ledger = planned_ledger()
    for name in ("add", "mark", "rationale", "note", "seed_plan", action):
        with contextlib.suppress(ToolError):
            assert isinstance(ledger.run(name, **arguments), str)
    assert Ledger.from_json(ledger.to_json()).state == ledger.state
