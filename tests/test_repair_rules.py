"""The table of repair rules lists just the rules there are, and every example does what it says."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rightcall import Toolset
from rightcall.providers.provider_answers import read
from rightcall.repairs.rules import RULES, RepairRule
from rules_page import TOOLS, tried

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rightcall"
RECORDING = {"Repair", "Change", "_rename", "Deviation", "_record", "repaired"}  # what takes a rule's name first
ALIASES = {"python_escape"}  # a name inside `loose` for something that is recorded as bad_escape


def words(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from words(node.body)
        yield from words(node.orelse)


def recorded(source: str) -> Iterator[str]:
    """The names of rules that a module records."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            called = node.func
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if name in RECORDING or ast.unparse(called) == "odd.add":
                yield from words(node.args[0])
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) in (3, 4):
            yield from words(node.value.elts[0])


def sources() -> list[str]:
    files = [file for layer in ("repairs", "parsing", "providers") for file in (PACKAGE / layer).rglob("*.py")]
    return [file.read_text("utf-8") for file in files if file.name != "rules.py"]


def name_of(rule: RepairRule) -> str:
    return f"{rule.name}-{rule.kind}"


def test_the_table_lists_every_rule_in_the_source_and_no_other() -> None:
    found = {name for source in sources() for name in recorded(source)} - ALIASES
    listed = {rule.name for rule in RULES}
    unlisted = [
        f"{name}: add a `RepairRule` with an example to the table in repairs/rules.toml" for name in found - listed
    ]
    unmade = [
        f"{name}: nothing in the source leaves this receipt; take it out of repairs/rules.toml"
        for name in listed - found
    ]
    assert not [*unlisted, *unmade], "; ".join(sorted([*unlisted, *unmade]))


def test_a_new_rule_would_be_noticed() -> None:
    assert list(recorded('Repair("a", "exact", "", x, y)\nself._record("b" if c else "d", x, y)')) == ["a", "b", "d"]
    assert list(recorded('def f():\n    yield "e", "guess", where, new')) == ["e"]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_an_example_leaves_just_the_receipt_of_its_rule(rule: RepairRule) -> None:
    reply = tried(rule)
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
def test_nothing_is_changed_where_repair_is_off(rule: RepairRule) -> None:
    reply = tried(rule, policy="off")
    assert [call.repairs for call in reply.attempts] == [()]
    assert reply.problems or rule.name in ("alias", "folded_name")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.kind == "guess"], ids=name_of)
def test_a_guess_is_made_only_for_tools_that_change_nothing(rule: RepairRule) -> None:
    reply = tried(rule, policy="safe")
    assert not any(made.kind == "guess" for call in reply.attempts for made in call.repairs)
    assert any(problem.blocking for problem in reply.problems)


def test_what_changes_nothing_may_be_guessed_at() -> None:
    harmless = Toolset([{"name": "look", "parameters": TOOLS[0].parameters, "x-rightcall": {"read_only": True}}])
    said = {"name": "look", "arguments": '{"city": Oslo}'}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": said}]}
    assert [made.rule for made in read(message, tools=harmless).attempts[0].repairs] == ["unquoted_value"]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_no_example_survives_being_cut_off(rule: RepairRule) -> None:
    cut = rule.sent.rstrip("`\n}]\"'”")
    said = {"name": rule.tool, "arguments": cut}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": said}]}
    reply = read(message, tools=TOOLS, repair="lenient")
    assert any(problem.blocking for problem in reply.problems)
    assert not any(call.complete and call.arguments for call in reply.attempts)
