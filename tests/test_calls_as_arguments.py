"""A complete call in place of the arguments is never passed to a tool, even to one that accepts any object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Call, Toolset, parse, render
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import codes

_ROWS = {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]}
OPEN: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"level": {"type": "string"}}},
    {"type": "object", "properties": {"level": {"type": "string"}}, "additionalProperties": True},
]


def toolset(schema: dict[str, Any]) -> Toolset | None:
    return Toolset.of([{"name": "log", "parameters": schema}, {"name": "delete_rows", "parameters": _ROWS}])


@pytest.mark.parametrize("format", sampled())
def test_a_call_of_another_tool_as_arguments_is_rejected(format: str) -> None:
    tools = toolset(OPEN[0])
    inside = {"name": "delete_rows", "arguments": {"table": "users"}}
    reply = hold_of_every_cut(render(Call("log", inside), format=format, tools=tools), Setting(format, tools))
    assert reply.calls == () and codes(reply) == ["misplaced_argument"]


@pytest.mark.parametrize("format", sampled())
def test_a_call_of_the_same_tool_as_arguments_is_unwrapped_and_the_repair_recorded(format: str) -> None:
    tools = toolset(OPEN[1])
    text = render(Call("log", {"name": "log", "arguments": {"table": "users"}}), format=format, tools=tools)
    (call,) = hold_of_every_cut(text, Setting(format, tools)).calls
    assert (call.arguments, [repair.rule for repair in call.repairs]) == ({"table": "users"}, ["unwrapped"])


SHAPES: list[dict[str, Any]] = [
    {"name": "delete_rows", "arguments": {"table": "users"}},
    {"name": "delete_rows", "arguments": '{"table": "users"}'},
    {"tool": "functions.delete_rows", "args": {"table": "users"}, "id": "1"},
    {"type": "function", "function": {"name": "delete_rows", "arguments": '{"table": "users"}'}},
]


@pytest.mark.parametrize("repair", ["off", "safe", "lenient"])
@pytest.mark.parametrize("schema", OPEN, ids=json.dumps)
@pytest.mark.parametrize("inside", SHAPES, ids=json.dumps)
def test_a_call_as_arguments_is_rejected_in_every_form(
    inside: dict[str, Any], schema: dict[str, Any], repair: Any
) -> None:
    text = f"<tool_call>{json.dumps({'name': 'log', 'arguments': inside})}</tool_call>"
    reply = parse(text, format="hermes", tools=toolset(schema), repair=repair)
    assert reply.calls == () and "misplaced_argument" in codes(reply)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"type": "object"}, {"name": "Bob", "arguments": {"table": "users"}}),
        ({"type": "object"}, {"name": "delete_rows", "note": "who called it"}),
        ({"type": "object", "properties": {"name": {}, "arguments": {}}}, SHAPES[0]),
    ],
)
def test_arguments_that_only_resemble_a_call_are_kept(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    text = f"<tool_call>{json.dumps({'name': 'log', 'arguments': arguments})}</tool_call>"
    (call,) = parse(text, format="hermes", tools=toolset(schema)).calls
    assert (call.arguments, call.repairs) == (arguments, ())
