"""A call that carries two different names is rejected."""

from __future__ import annotations

import pytest

from rightcall import Parser, Tool, Toolset, parse
from support.cuts import Setting, hold_of_every_cut

TOOLS = [
    Tool(name="delete_rows", parameters={"type": "object", "properties": {"table": {"type": "string"}}}),
    Tool(name="stop", parameters={"type": "object", "properties": {}}),
]
INVOKE = (
    '<atem:function_calls>\n<atem:invoke name="delete_rows">\n<atem:parameter name="table">users</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls><|eom|>"
)
BODY = '<|content_invoke_tool_json|>{"name": "delete_rows", "args": {"table": "users"}}<|end_message|>'


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize(
    ("format", "before", "body"),
    [
        ("inkling", "<|message_model|>{}", BODY),
        ("inkling", "{}", BODY),
        ("inkling", "<|message_model|> {} ", BODY),
        ("muse", "<|start|>assistant to={}<|message|>", INVOKE),
        ("muse", " to={}<|message|>", INVOKE),
    ],
)
def test_a_call_with_two_names_is_runnable_only_if_they_are_equal(
    format: str, before: str, body: str, piece: int
) -> None:
    for name, codes in (("stop", ["names_disagree"]), ("delete_rows", []), ("other", ["names_disagree"])):
        text = before.format(name) + body
        parser = Parser(tools=TOOLS, format=format)
        for at in range(0, len(text), piece):
            parser.feed(text[at : at + piece])
        parser.close()
        (call,) = parser.reply.attempts
        assert [problem.code for problem in call.problems] == codes and call.ok is not bool(codes)
        assert parse(text, tools=TOOLS, format=format).attempts[0].problems == call.problems


ENVELOPE = '{"name": "NAME", "arguments": {"table": "users"}, "id": "SAID"}'
TWO = [
    ("harmony", '<|channel|>commentary to=functions.SAID to=functions.NAME<|message|>{"table": "users"}<|call|>'),
    (
        "harmony",
        '<|channel|>commentary to=functions.SAID<|channel|>commentary to=functions.NAME<|message|>{"table": "users"}',
    ),
    ("harmony", '<|start|>assistant to=SAID<|channel|>commentary to=NAME<|message|>{"table": "users"}<|call|>'),
    ("muse", " to=SAID to=NAME<|message|>" + INVOKE),
    ("muse", " to=NAME to=SAID<|message|>" + INVOKE),
    ("mistral_v3", f"[TOOL_CALLS] [{ENVELOPE}]"),
    ("mistral_v3", '[TOOL_CALLS] [{"id": "SAID", "name": "NAME", "arguments": {"table": "users"}}]'),
    ("hermes", '<tool_call>{"id": "functions.SAID:0", "name": "NAME", "arguments": {"table": "users"}}</tool_call>'),
    ("hermes", f"<tool_call>{ENVELOPE}</tool_call>"),
    ("llama3_json", ENVELOPE),
    ("mistral_v11", '[TOOL_CALLS]NAME[CALL_ID]SAID[ARGS]{"table": "users"}'),
    (
        "solar_open",
        '<|tool_call:begin|>SAID<|tool_call:name|>NAME<|tool_call:args|>{"table": "users"}<|tool_call:end|>',
    ),
]


@pytest.mark.parametrize(("format", "text"), TWO)
def test_two_recipients_or_an_id_naming_another_tool_reject_the_call(format: str, text: str) -> None:
    for other, codes in (("stop", ["names_disagree"]), ("delete_rows", [])):
        filled = text.replace("SAID", other).replace("NAME", "delete_rows")
        (call,) = hold_of_every_cut(filled, Setting(format, Toolset.of(TOOLS))).attempts
        assert (call.name, [problem.code for problem in call.problems]) == ("delete_rows", codes)


def test_the_problem_names_both_tools() -> None:
    (problem,) = parse("<|message_model|>stop" + BODY, tools=TOOLS, format="inkling").problems
    assert "'stop'" in problem.message and "'delete_rows'" in problem.message


def test_the_name_of_one_message_does_not_apply_to_the_next() -> None:
    text = (
        "<|message_model|>delete_rows"
        + BODY
        + '<|message_model|>stop<|content_invoke_tool_json|>{"name": "stop", "args": {}}<|end_message|>'
    )
    assert [call.name for call in parse(text, tools=TOOLS, format="inkling").calls] == ["delete_rows", "stop"]


@pytest.mark.parametrize("name", ["rows.delete", "rows__delete", "rows__big.delete"])
@pytest.mark.parametrize(
    "format, text",
    [("muse", " to=SAID<|message|>" + INVOKE), ("inkling", "<|message_model|>SAID" + BODY)],
)
def test_a_tool_namespace_is_not_a_second_name(format: str, text: str, name: str) -> None:
    text = text.replace("delete_rows", name).replace("SAID", "rows")
    tool = Tool(name=name, parameters=TOOLS[0].parameters)
    [call] = hold_of_every_cut(text, Setting(format, Toolset.of([tool]))).attempts
    assert call.ok, call.problems
    rows = Tool(name="rows", parameters=TOOLS[0].parameters)
    [call] = hold_of_every_cut(text, Setting(format, Toolset.of([tool, rows]))).attempts
    assert [problem.code for problem in call.problems] == ["names_disagree"]
