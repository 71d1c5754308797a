"""The failures that users of other parsers pay for, each one reproduced there, and none of them here."""

from __future__ import annotations

import json

import pytest

from cuts import Setting
from cuts import read as read_chunks
from replies import (
    NULLABLE,
    STRING,
    TOOLS,
    Args,
    args,
    blocking,
    hermes,
    made,
    read,
    runnable,
    tool,
)
from rightcall import Toolset, parse, render
from rightcall.formats import FORMATS

every_format = pytest.mark.parametrize("name", list(FORMATS))


@every_format
def test_a_cut_off_call_never_runs(name: str) -> None:
    text = render([made("f", s="first"), made("f", s="second", n=-12)], format=name, tools=TOOLS)
    allowed: list[Args] = [[], [("f", {"s": "first"})], [("f", {"s": "first"}), ("f", {"s": "second", "n": -12})]]
    for end in range(len(text)):
        for chunks in ([text[:end]], list(text[:end])):
            assert runnable(read_chunks(chunks, Setting(name, TOOLS), live=True).reply) in allowed


@pytest.mark.parametrize("call", ['[{"name": "g", "arguments": {}}', '{"name": "g", "parameters": {}}', "[g()", "g()"])
@every_format
def test_a_call_without_markers_that_was_cut_off_never_runs(name: str, call: str) -> None:
    for end in range(len(call)):
        reply = parse(call[:end], format=name, tools=TOOLS)
        assert not any(found.complete for found in reply.attempts), call[:end]


@every_format
def test_one_big_delta_gives_all_arguments(name: str) -> None:
    calls = [made("f", s="x" * 300, n=n) for n in range(5)]
    text = render(calls, format=name, tools=TOOLS)
    assert args(read_chunks([text], Setting(name, TOOLS), live=True).reply) == [(c.name, c.arguments) for c in calls]


BAD_FIRST = [
    ("hermes", hermes('{"name": "f", "arguments": {"s": x}}') + hermes('{"name": "g"}')),
    ("hermes", hermes("{bad}") + hermes('{"name": "g"}')),
    ("hermes", hermes('{"name": "f", "arguments": {"s": "x"}') + hermes('{"name": "g"}')),
    ("jamba", '<tool_calls>[{"name": "f", "arguments": {"s": x}}, {"name": "g"}]</tool_calls>'),
    ("lfm2", "<|tool_call_start|>[f(1), g()]<|tool_call_end|>"),
    (
        "kimi_k2",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{bad<|tool_call_end|>"
        "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
    ),
    (
        "qwen3_coder",
        "<tool_call>\n<function=f>\noops\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=g>\n</function>\n</tool_call>",
    ),
    ("gemma4", "<|tool_call>call:f{s:<oops>}<tool_call|><|tool_call>call:g{}<tool_call|>"),
    (
        "harmony",
        "<|channel|>commentary to=functions.f<|message|>{bad<|call|><|start|>assistant"
        "<|channel|>commentary to=functions.g<|message|>{}<|call|>",
    ),
]


@pytest.mark.parametrize("format, text", BAD_FIRST)
def test_one_bad_call_leaves_its_sibling_alone(format: str, text: str) -> None:
    reply = read(text, format, repair="off")
    assert runnable(reply) == [("g", {})]
    assert {index for _, index in blocking(reply)} == {0}


def test_a_nullable_parameter_keeps_its_text() -> None:
    tools = Toolset([tool("f", v=NULLABLE, w={"anyOf": [STRING, {"type": "null"}]}, x={**STRING, "nullable": True})])
    text = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
    values = "".join(f"<parameter={key}>\nParis\n</parameter>\n" for key in "vwx")
    assert args(read(text % values, "qwen3_coder", tools)) == [("f", {"v": "Paris", "w": "Paris", "x": "Paris"})]


@pytest.mark.parametrize(
    "format, text", [("pythonic", "[f(n=-3, b=true), g()]"), ("llama4_pythonic", "[f(n=-3, b=true), g()]")]
)
def test_a_negative_number_or_a_lower_case_true_costs_nothing(format: str, text: str) -> None:
    assert runnable(read(text, format)) == [("f", {"n": -3, "b": True}), ("g", {})]


def test_arguments_before_the_name_are_read_as_they_are() -> None:
    text = hermes('{"arguments": {"s": "x", "n": 1}, "name": "f"}')
    got = read_chunks(list(text), Setting("hermes", TOOLS), live=True).reply
    assert args(got) == [("f", {"s": "x", "n": 1})]
    assert got.attempts[0].json == '{"s": "x", "n": 1}'


def test_pretty_printed_arguments_are_read() -> None:
    inside = json.dumps({"name": "f", "arguments": {"s": "x", "n": 1}}, indent=4)
    assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x", "n": 1})]


def test_renamed_keys_and_a_nested_function_are_read() -> None:
    for inside in (
        '{"tool_name": "f", "parameters": {"s": "x"}}',
        '{"tool": "f", "args": {"s": "x"}}',
        '{"type": "function", "function": {"name": "f", "arguments": {"s": "x"}}}',
        '{"id": "1", "type": "function", "function": {"arguments": {"s": "x"}, "name": "f"}}',
    ):
        assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x"})]


# -- calls that were cut off -------------------------------------------------------------------------------------------


@every_format
def test_a_call_that_was_cut_off_is_kept_and_never_completed(name: str) -> None:
    """At every place from the argument's first character on, until the body's own end has been seen."""
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    for end in range(text.index("needle"), text.index("hay") + len("hay") + 1):
        reply = parse(text[:end], format=name, tools=TOOLS)
        [call] = reply.attempts
        assert (call.name, call.arguments, call.complete) == ("f", {}, False)
        assert blocking(reply) == [("truncated", 0)]
        assert call.raw and text[:end].endswith(call.raw)


CUT_SHORT = [
    ("hermes", "<tool_call>\n" + '{"name": "f", "arguments": {"s": "x"}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=s>\nx\n</parameter>"),
    ("glm45", "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>"),
    ("kimi_k2", '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"s": "x"'),
    ("lfm2", "<|tool_call_start|>[f(s='x'"),
    ("gemma4", '<|tool_call>call:f{s:<|"|>x<|"|>'),
    ("harmony", '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"s": "x"'),
]


@pytest.mark.parametrize("format, text", CUT_SHORT)
def test_a_call_is_complete_only_when_its_own_end_was_seen(format: str, text: str) -> None:
    reply = read(text, format)
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False)]
    assert blocking(reply) == [("truncated", 0)]
