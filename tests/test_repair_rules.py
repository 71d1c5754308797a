"""The table of repair rules lists exactly the existing rules, and every example needs its rule only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rightcall import Toolset
from rightcall.providers.provider_answers import read
from rightcall.repairs.rules import RULES, RepairRule
from rules_page import TOOLS, repair_example

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rightcall"
RECORDING_CALLS = {"Repair", "Change", "_rename", "Deviation", "_record", "repaired"}  # they take the name of a rule
ALIASES = {"python_escape"}  # a name inside `loose` that is recorded as bad_escape


def possible_strings(node: ast.expr) -> Iterator[str]:
    """Yield the strings that an expression may evaluate to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from possible_strings(node.body)
        yield from possible_strings(node.orelse)


def recorded_rules(source: str) -> Iterator[str]:
    """Yield the names of the rules that a module records."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            callee = node.func
            name = (
                callee.id if isinstance(callee, ast.Name) else callee.attr if isinstance(callee, ast.Attribute) else ""
            )
            if name in RECORDING_CALLS or ast.unparse(callee) == "odd.add":
                yield from possible_strings(node.args[0])
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) in (3, 4):
            yield from possible_strings(node.value.elts[0])


def sources() -> list[str]:
    files = [file for layer in ("repairs", "parsing", "providers") for file in (PACKAGE / layer).rglob("*.py")]
    return [file.read_text("utf-8") for file in files if file.name != "rules.py"]


def name_of(rule: RepairRule) -> str:
    return f"{rule.name}-{rule.kind}"


def test_the_table_lists_exactly_the_rules_in_the_source() -> None:
    found = {name for source in sources() for name in recorded_rules(source)} - ALIASES
    listed = {rule.name for rule in RULES}
    unlisted = [
        f"{name}: add a `RepairRule` with an example to the table in repairs/rules.toml" for name in found - listed
    ]
    unrecorded = [
        f"{name}: nothing in the source leaves this receipt; take it out of repairs/rules.toml"
        for name in listed - found
    ]
    assert not [*unlisted, *unrecorded], "; ".join(sorted([*unlisted, *unrecorded]))


def test_rules_in_source_text_are_found() -> None:
    assert list(recorded_rules('Repair("a", "exact", "", x, y)\nself._record("b" if c else "d", x, y)')) == [
        "a",
        "b",
        "d",
    ]
    assert list(recorded_rules('def f():\n    yield "e", "guess", where, new')) == ["e"]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_an_example_needs_exactly_its_rule(rule: RepairRule) -> None:
    reply = repair_example(rule)
    (call,) = reply.attempts
    assert (call.name, call.arguments, reply.problems) == (rule.of, rule.arguments, ()), (
        f"`sent` of {rule.name} should be read as its `arguments`, with no problem left; "
        "is the change yielded where this fault is met, and does the result fit `TOOLS`?"
    )
    assert [(made.rule, made.kind) for made in call.repairs] == [(rule.name, rule.kind)], (
        f"`sent` of {rule.name} should need just this rule, once, with this kind; choose an example with one fault"
    )
    assert call.complete and call.repairs[0].before != call.repairs[0].after


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_nothing_is_repaired_if_repair_is_off(rule: RepairRule) -> None:
    reply = repair_example(rule, policy="off")
    assert [call.repairs for call in reply.attempts] == [()]
    assert reply.problems or rule.name in ("alias", "folded_name")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.kind == "guess"], ids=name_of)
def test_with_policy_safe_a_guess_is_not_made_for_a_writing_tool(rule: RepairRule) -> None:
    reply = repair_example(rule, policy="safe")
    assert not any(made.kind == "guess" for call in reply.attempts for made in call.repairs)
    assert any(problem.blocking for problem in reply.problems)


def test_with_policy_safe_a_guess_is_made_for_a_read_only_tool() -> None:
    harmless = Toolset([{"name": "look", "parameters": TOOLS[0].parameters, "x-rightcall": {"read_only": True}}])
    function = {"name": "look", "arguments": '{"city": Oslo}'}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    assert [made.rule for made in read(message, tools=harmless).attempts[0].repairs] == ["unquoted_value"]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_no_example_is_runnable_after_it_is_cut_off(rule: RepairRule) -> None:
    cut = rule.sent.rstrip("`\n}]\"'”")
    function = {"name": rule.tool, "arguments": cut}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    reply = read(message, tools=TOOLS, repair="lenient")
    assert any(problem.blocking for problem in reply.problems)
    assert not any(call.complete and call.arguments for call in reply.attempts)
