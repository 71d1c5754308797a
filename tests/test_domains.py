"""Stub domains: the built-in ones can be solved, and all faults of user domains are reported."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Tool, Toolset, check
from rightcall.capture.captured_rows import available_tools
from rightcall.capture.domain import (
    DEFAULT_DOMAINS,
    Acceptable,
    BadDomain,
    Domain,
    Scenario,
    built_in_names,
    find_domain,
    find_domains,
    read_domain,
)
from rightcall.capture.score import ExecutedCall, label_call, score_calls, task_outcome
from rightcall.capture.stubs import COMPARISONS, all_hold, fill_placeholders
from rightcall.errors import CallerError
from rightcall.tools.provider_forms import to_provider
from rightcall.types import Json
from support.command import failed, run

SOURCE = {"repo_docs": 3, "shopping": 3, "calendar": 3, "support": 3, "forge_eval": 5}
OURS = ("banking", "travel", "devops", "home", "database")
LONG = ("clinic", "warehouse", "newsroom", "expenses", "fleet")
SCENARIOS = [
    pytest.param(find_domain(name), scenario, id=f"{name}-{scenario.name}")
    for name in built_in_names()
    for scenario in find_domain(name).scenarios
]


# -- built-in domains --------------------------------------------------------------------------------------------------


def test_the_five_domains_of_forge_have_its_seventeen_scenarios() -> None:
    assert {name: len(find_domain(name).scenarios) for name in SOURCE} == SOURCE
    assert sum(SOURCE.values()) == 17
    assert DEFAULT_DOMAINS == ("repo_docs", "shopping", "calendar", "support")


TOOLS = {
    "repo_docs": "search_docs read_doc list_files summarize_file",
    "shopping": "search_products get_product compare_products add_to_cart",
    "calendar": "find_free_slots create_calendar_hold list_events cancel_hold",
    "support": "lookup_ticket search_kb update_ticket escalate_ticket",
    "forge_eval": "run_smoke_eval run_release_eval fetch_records summarize_records report_result "
    "inspect_workflow_state diagnose_failure",
}


@pytest.mark.parametrize("name", SOURCE)
def test_the_domains_of_forge_have_its_tools(name: str) -> None:
    assert [tool.name for tool in find_domain(name).tools] == TOOLS[name].split()


@pytest.mark.parametrize("name", OURS)
def test_each_domain_of_rightcall_covers_every_scenario_kind(name: str) -> None:
    domain = find_domain(name)
    kinds = Counter(scenario.kind for scenario in domain.scenarios)
    tags = {tag for scenario in domain.scenarios for tag in scenario.tags}
    assert len(domain.scenarios) >= 10
    assert kinds.keys() == {"single", "parallel", "dependent", "recover", "no_tool", "clarify"}
    assert tags >= {"near-duplicate", "nested", "unicode"}


@pytest.mark.parametrize("name", LONG)
def test_each_long_domain_covers_every_tag_for_guards(name: str) -> None:
    scenarios = find_domain(name).scenarios
    tags = Counter(tag for scenario in scenarios for tag in scenario.tags)
    assert len(scenarios) >= 9
    assert tags.keys() == {"multi-step", "order", "prerequisite", "distractor", "recover", "refuse", "ask-back"}
    for each in scenarios:
        assert set(each.required_steps) == {call.name for call in each.calls if not call.optional}
        assert set(each.terminal) <= set(each.required_steps)
        assert bool(each.terminal) == bool({"order", "prerequisite", "distractor", "recover"} & set(each.tags))


def test_there_are_at_least_forty_long_scenarios() -> None:
    assert sum(len(find_domain(name).scenarios) for name in LONG) >= 40


def build_call(wanted: Acceptable, domain: Domain) -> Call:
    """Return a call that this acceptable call accepts."""
    kinds = (domain.tools.get(wanted.name) or pytest.fail(f"no tool {wanted.name}")).parameters["properties"]
    arguments = {name: value_for(comparisons, kinds[name]) for name, comparisons in wanted.arguments.items()}
    return Call(wanted.name, arguments, "")


def value_for(comparisons: dict[str, Any], schema: Json) -> Any:
    ((comparison, wanted),) = comparisons.items()
    values: dict[str, Any] = {
        "one_of": wanted[0] if isinstance(wanted, list) else None,
        "contains_any": wanted[0] if isinstance(wanted, list) else None,
        "contains_all": " and ".join(map(str, wanted)) if isinstance(wanted, list) else None,
        "digits": "0" * wanted if isinstance(wanted, int) else None,
        "present": "something" if schema.get("type") == "string" else 1,
    }
    value = values.get(comparison, wanted)
    return [value] if comparison == "contains" and schema.get("type") == "array" else value


@pytest.mark.parametrize(("domain", "scenario"), SCENARIOS)
def test_every_scenario_can_be_solved(domain: Domain, scenario: Scenario) -> None:
    calls = [build_call(each, domain) for each in scenario.calls if not each.optional]
    for at, call in enumerate(calls):
        assert check(call, domain.tools) == []
        assert label_call(scenario, call, calls[:at]) == "valid"
        outcome = domain.run(call.name, call.arguments)
        assert outcome.status == "ok"
        assert outcome == domain.run(call.name, call.arguments)
    assert score_calls(scenario, calls).complete
    assert bool(calls) == (scenario.kind not in ("no_tool", "clarify"))


@pytest.mark.parametrize(("domain", "scenario"), SCENARIOS)
def test_a_wrong_call_is_never_labelled_valid(domain: Domain, scenario: Scenario) -> None:
    wanted = [each for each in scenario.calls if not each.optional]
    assert not score_calls(scenario, []).complete or not wanted
    others = [tool.name for tool in domain.tools if tool.name not in {each.name for each in scenario.calls}]
    for name in others:
        assert label_call(scenario, Call(name, {}, "")) != "valid"
    for each in wanted:
        call = build_call(each, domain)
        extra = Call(call.name, {**call.arguments, "never_declared": 1}, "")
        assert label_call(scenario, extra) == "wrong_arguments_semantic"


@pytest.mark.parametrize(("domain", "scenario"), SCENARIOS)
def test_the_first_call_of_a_recover_scenario_fails(domain: Domain, scenario: Scenario) -> None:
    if scenario.kind != "recover":
        return
    first = next(each for each in scenario.calls if each.optional)
    assert domain.run(first.name, build_call(first, domain).arguments).status == "error"


@pytest.mark.parametrize(("domain", "scenario"), SCENARIOS)
def test_a_dependent_call_is_wrong_before_its_prerequisite(domain: Domain, scenario: Scenario) -> None:
    for each in scenario.calls:
        if each.after and not each.optional:
            assert label_call(scenario, build_call(each, domain)) == "wrong_tool_semantic"
    assert any(each.after for each in scenario.calls) or scenario.kind != "dependent"


@pytest.mark.parametrize("name", built_in_names())
def test_tools_of_a_domain_have_provider_definitions_and_results(name: str) -> None:
    domain = find_domain(name)
    assert [tool["function"]["name"] for tool in to_provider(domain.tools, "chat")] == [t.name for t in domain.tools]
    assert available_tools(domain.tools)[-1]["name"] == "respond"
    for tool in domain.tools:
        assert isinstance(domain.run(tool.name, {}).message, str)  # absent arguments do not fail by themselves


def test_invalid_arguments_of_forge_stubs_give_errors() -> None:
    shop, forge = find_domain("shopping"), find_domain("forge_eval")
    assert shop.run("add_to_cart", {"product_id": "x", "quantity": 0}).status == "error"
    assert shop.run("add_to_cart", {"product_id": "x", "quantity": 1}).status == "ok"
    for count in ("12", "00012", "abcd", "٠٠١٢", 12):
        assert forge.run("fetch_records", {"count": count}).status == "error"
    assert forge.run("fetch_records", {"count": "0012"}).status == "ok"
    assert shop.run("nothing", {}).content == {"error": "unknown tool: nothing"}


def test_a_stub_result_contains_its_input_and_absent_text_is_empty() -> None:
    shop = find_domain("shopping")
    assert shop.run("get_product", {}).content["product_id"] == ""
    assert shop.run("compare_products", {"product_ids": ["a", "b"]}).content["product_ids"] == ["a", "b"]
    products = shop.run("search_products", {"query": "Headphones"}).content["products"]
    assert [(each["product_id"], each["price"]) for each in products] == [
        ("SKU-HEADPHONES-1", 179),
        ("SKU-HEADPHONES-2", 149),
    ]


# -- outcomes of a run -------------------------------------------------------------------------------------------------


def solved_calls(domain: Domain, scenario: Scenario) -> list[ExecutedCall]:
    """Return the calls of a model that solves the scenario, including the call that fails first."""
    calls = [build_call(each, domain) for each in scenario.calls]
    return [
        ExecutedCall(at, call, domain.run(call.name, call.arguments).status == "ok") for at, call in enumerate(calls)
    ]


@pytest.mark.parametrize("name", LONG)
def test_a_long_task_is_right_only_with_every_call_in_order_and_no_other_change(name: str) -> None:
    domain = find_domain(name)
    for scenario in domain.scenarios:
        executed = solved_calls(domain, scenario)
        complete = task_outcome(scenario, domain.tools, executed)
        assert complete.right and not complete.wasted
        wanted = [each for each in executed if each.ok]
        for each in wanted:
            less = task_outcome(scenario, domain.tools, [other for other in executed if other is not each])
            assert each.call.name in less.missing or any(
                other.name == each.call.name and other.optional for other in scenario.calls
            )
        at_once = task_outcome(scenario, domain.tools, [ExecutedCall(0, each.call, each.ok) for each in executed])
        assert at_once.right != any(call.after for call in scenario.calls)
        for each in wanted[-1:]:
            twice = task_outcome(scenario, domain.tools, [*executed, ExecutedCall(99, each.call, ok=True)])
            reads = (domain.tools.get(each.call.name) or pytest.fail("no tool")).read_only
            assert (twice.right, twice.wasted) == ((True, 1) if reads else (False, 0))


def test_an_unrequested_change_is_harm_and_an_unrequested_read_is_waste() -> None:
    fleet = find_domain("fleet")
    ask = fleet.by_name["unknown_plate"]
    read, lock = Call("van_state", {"van_id": "v-1"}, ""), Call("lock_doors", {"van_id": "v-1"}, "")
    assert task_outcome(ask, fleet.tools, []).right
    outcome = task_outcome(ask, fleet.tools, [ExecutedCall(0, read, ok=True), ExecutedCall(1, lock, ok=False)])
    assert (outcome.right, outcome.wasted) == (True, 2)
    assert task_outcome(ask, fleet.tools, [ExecutedCall(0, lock, ok=True)]).harm == ("lock_doors",)


READ_AND_LOCK = Scenario(
    "lock", "Lock the van.", calls=(Acceptable("read"), Acceptable("also_read"), Acceptable("lock", after=("read",)))
)
READ, ALSO_READ, LOCK = (Call(each.name, {}, "") for each in READ_AND_LOCK.calls)
# (the calls of each turn and whether they succeed, whether the lock is harm)
CALL_ORDERS: dict[str, tuple[list[list[tuple[Call, bool]]], bool]] = {
    "the turn after the read": ([[(READ, True)], [(LOCK, True)]], False),
    "two turns after the read": ([[(READ, True)], [(ALSO_READ, True)], [(LOCK, True)]], False),
    "the turn of the read": ([[(READ, True), (LOCK, True)]], True),
    "before the read": ([[(LOCK, True)], [(READ, True)]], True),
    "after another read only": ([[(ALSO_READ, True)], [(LOCK, True)]], True),
    "the turn of a repeated read": ([[(READ, True)], [(READ, True), (LOCK, True)]], False),
    "the turn of a repeated read that fails": ([[(READ, True)], [(READ, False), (LOCK, True)]], False),
    "after a read that failed": ([[(READ, False)], [(LOCK, True)]], True),
    "the turn of the first read that succeeds": ([[(READ, False)], [(READ, True), (LOCK, True)]], True),
    "after a read that first failed": ([[(READ, False)], [(READ, True)], [(LOCK, True)]], False),
}


@pytest.mark.parametrize("order", CALL_ORDERS)
def test_a_call_is_too_early_until_the_turn_after_the_first_success_of_the_call_it_needs(order: str) -> None:
    turns, is_harm = CALL_ORDERS[order]
    tools = Toolset(*[Tool(name=each.name, read_only=each is not LOCK) for each in (READ, ALSO_READ, LOCK)])
    executed = [ExecutedCall(turn, call, ok) for turn, calls in enumerate(turns) for call, ok in calls]
    outcome = task_outcome(READ_AND_LOCK, tools, executed)
    assert (outcome.harm == ("lock",), "lock" in outcome.missing) == (is_harm, is_harm)


# -- placeholders and comparisons --------------------------------------------------------------------------------------


@given(st.text())
def test_filled_in_text_is_never_treated_as_a_placeholder(text: str) -> None:
    assert fill_placeholders("{a}", {"a": text}) == text
    assert fill_placeholders("<{a}>", {"a": text}) == f"<{text}>"
    assert fill_placeholders({"k": ["{a}", "{{a}}"]}, {"a": text}) == {"k": [text, "{a}"]}


COMPARED: list[tuple[str, Any, Any, bool]] = [
    ("is", 2, 2.0, True),
    ("is", 1, True, False),
    ("is", {"a": [1]}, {"a": [1]}, True),
    ("is", {"a": 1}, {"a": True}, False),
    ("is", {"a": 1, "b": 2}, {"a": 1}, False),
    ("is", {"a": 1}, {"a": 1, "b": 2}, False),
    ("is_not", "a", "a", False),
    ("one_of", "a", ["a", "b"], True),
    ("none_of", "a", ["a", "b"], False),
    ("at_least", 3, 3, True),
    ("at_least", True, 0, False),
    ("at_most", "3", 3, False),
    ("contains", "Big Headphones", "headphone", True),
    ("contains", ["a", 1], 1, True),
    ("contains", 5, "5", False),
    ("contains_all", "a b", ["a", "b"], True),
    ("contains_any", "a", ["b"], False),
    ("same_text", "Living  ROOM", "living room", True),
    ("same_items", ["b", "a"], ["a", "b"], True),
    ("same_items", ["a", "a"], ["a"], False),
    ("digits", "0042", 4, True),
    ("digits", "٠٠٤٢", 4, False),
    ("not_digits", 42, 4, True),
    ("present", "", True, False),
    ("present", 0, True, True),
]


@pytest.mark.parametrize(("comparison", "value", "wanted", "holds"), COMPARED)
def test_comparisons_hold_as_in_the_table(comparison: str, value: Any, wanted: Any, holds: bool) -> None:
    assert all_hold({comparison: wanted}, value) is holds


def test_every_comparison_is_in_the_table() -> None:
    assert {word for word, *_ in COMPARED} == COMPARISONS.keys()


# -- user domains ------------------------------------------------------------------------------------------------------

MINE = """
name = "mine"
[[tools]]
name = "greet"
parameters = { type = "object", properties = { who = { type = "string" } }, required = ["who"] }
answers = [{ result = { said = "Hello {who}" } }]
[[scenarios]]
name = "greet_ann"
request = "Greet Ann."
calls = [{ name = "greet", arguments = { who = { is = "Ann" } } }]
"""

FAULTY = """
name = "faulty"
[[tools]]
name = "f"
parameters = { type = "object", properties = { a = { type = "string" } } }
answers = [{ result = 1, error = "x" }, { result = "{b}" }, { when = { a = { like = 1 } }, result = 1 }]
[[tools]]
name = "g"
answers = []
[[tools]]
name = "g"
answers = [{ result = 1 }]
[[scenarios]]
name = "s"
request = " "
[[scenarios]]
name = "s"
request = "x"
kind = "no_tool"
calls = [{ name = "h" }, { name = "f", arguments = { z = { is = 1 }, a = { one_of = 1, at_least = "x" } } }]
"""


def test_a_user_domain_is_loaded_from_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    domain = find_domain(str(tmp_path / "mine.toml"))
    assert domain.run("greet", {"who": "Ann"}).content == {"said": "Hello Ann"}
    assert [each.name for each in find_domains(["shopping", str(tmp_path / "mine.toml"), "shopping"])] == [
        "shopping",
        "mine",
    ]


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(BadDomain) as caught:
        read_domain(FAULTY, "faulty.toml")
    messages = str(caught.value).splitlines()
    assert all(line.startswith("faulty.toml: ") for line in messages)
    for fault in (
        "two tools are called 'g'",
        "two scenarios are called 's'",
        "tool g: it has no answers",
        "tool f, answer 0: give either `result` or `error`",
        "tool f, answer 1: there is no argument 'b'",
        "tool f, answer 2, a: no comparison 'like'",
        "scenario s: the request is empty",
        "scenario s: kind 'single' needs calls",
        "scenario s: kind 'no_tool' has no calls",
        "scenario s: there is no tool 'h'",
        "scenario s: f has no argument 'z'",
        "one_of takes a list",
        "at_least takes a number",
    ):
        assert any(fault in line for line in messages), fault


HOSTILE = [
    ("", "required field"),
    ("name = 1", "Expected `str`"),
    ("x = [", "not TOML"),
    ("x = " + "[" * 5_000, "nested too deeply"),
    ("x = 2026-01-01", "not a JSON value"),
    ("x = inf", "not a JSON value"),
    (MINE.replace('name = "greet"\n', 'name = "greet"\nrun = "rm -rf /"\n'), "unknown field"),
    (MINE.replace('type = "string"', 'type = "strin"'), "mine"),
    ("#" * 1_000_001, "longer than"),
    (MINE.replace('"mine"', '""'), "is not a valid name"),
    (MINE.replace('"mine"', '"../mine"'), "is not a valid name"),
    (MINE.replace('"greet_ann"', '"greet\\nann"'), "is not a valid name"),
    (MINE.replace('"greet_ann"', '"greet run=7"'), "is not a valid name"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_domain_file_is_rejected_with_its_name(text: str, message: str) -> None:
    with pytest.raises(BadDomain, match="mine") as caught:
        read_domain(text, "mine.toml")
    assert message in str(caught.value)


def test_many_scenarios_are_checked_in_linear_time() -> None:
    scenario = '[[scenarios]]\nname = "s{}"\nrequest = "x"\nkind = "no_tool"\n'
    text = 'name = "m"\ntools = []\n' + "".join(scenario.format(at) for at in range(15_000))
    assert len(read_domain(text).scenarios) == 15_000


def test_two_domains_with_the_same_name_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace('"mine"', '"shopping"'))
    with pytest.raises(CallerError, match="two domains are called 'shopping'"):
        find_domains(["shopping", str(tmp_path / "mine.toml")])


def test_an_unknown_domain_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(CallerError, match="unsupported dataset domain 'shoping'; did you mean 'shopping'"):
        find_domain("shoping")
    with pytest.raises(CallerError, match="cannot be read"):
        find_domain("/nowhere/x.toml")


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_lists_shows_and_checks_domains(tmp_path: Path) -> None:
    import json

    listed = run("domains")
    assert listed.exit_code == 0 and len(listed.stdout.splitlines()) == len(built_in_names()) + 1
    domains = json.loads(run("domains", "--json").stdout)
    assert sum(each["scenarios"] for each in domains) >= 67
    assert "add_to_cart" in run("domains", "shopping").stdout
    (tmp_path / "mine.toml").write_text(MINE)
    (tmp_path / "faulty.toml").write_text(FAULTY)
    assert run("domains", "check", str(tmp_path / "mine.toml")).exit_code == 0
    both = run("domains", "check", str(tmp_path / "mine.toml"), str(tmp_path / "faulty.toml"), "--json")
    assert both.exit_code == 1
    assert [len(each["faults"]) > 10 for each in json.loads(both.stdout)] == [False, True]
    assert run("domains", "check", str(tmp_path / "faulty.toml")).stdout.count("fault ") > 10


def test_a_usage_error_of_the_command_is_one_line() -> None:
    assert "did you mean" in failed(run("domains", "shoping"))
    assert "no file" in failed(run("domains", "check"))
