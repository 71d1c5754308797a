"""Calls with one character lost, doubled, moved, inserted or replaced run only with the original arguments.

The cases cover every format. A value may lose one of its own characters. No call runs without an argument that was
written, with a tag or a part of a tag in a value, or with text that followed the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from rightcall import Call, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.testing.laws import cut_law
from support.format_sample import sampled, selected

STRING = {"type": "string"}
TOOLS = Toolset(
    [
        Tool(
            name="delete_rows",
            parameters={
                "type": "object",
                "properties": {
                    "table": STRING,
                    "where": STRING,
                    "dry_run": {"type": "boolean"},
                    "limit": {"type": "integer"},
                },
                "required": ["table"],
                "additionalProperties": False,
            },
        ),
        Tool(name="stop", parameters={"type": "object", "properties": {}, "additionalProperties": False}),
    ]
)
ROWS = Call("delete_rows", {"table": "users", "where": "x < 3 and y = 'q'", "dry_run": True, "limit": 50})
SENT = [[ROWS], [Call("delete_rows", {"table": "a b"}), ROWS, Call("stop", {})]]
SIGNS = " \n\"'}]{[<>,:=/|"
SAMPLE_SIZE = 120
NAMES = ["delete}rows", "delete rows!", "delete[rows", "delete,rows", 'delete"rows', "delete=rows", "删除 rows", "-"]
# Formats in which only the name of a tool distinguishes a call from text or code.
RECOGNIZED_BY_NAME = {
    "forced_choice",
    "pythonic",
    "functionary_v32",
    "generic_json",
    "xlam",
    "tool_code",
    "function_lines",
}

every_format = pytest.mark.parametrize("format", sampled())


def damaged_texts(text: str) -> Iterator[str]:
    for i, char in enumerate(text):
        yield text[:i] + text[i + 1 :]
        yield text[:i] + char + text[i:]
        yield text[:i] + text[i + 1 : i + 2] + char + text[i + 2 :]
        for sign in SIGNS if not char.isalnum() else "":
            yield text[:i] + sign + text[i:]
            yield text[:i] + sign + text[i + 1 :]


def is_near(a: Any, b: Any) -> bool:
    """Return whether the values are equal except for two adjacent characters."""
    one, other = [value if isinstance(value, str) else json.dumps(value) for value in (a, b)]
    least = min(len(one), len(other))
    start = next((i for i in range(least) if one[i] != other[i]), least)
    end = next((i for i in range(least - start) if one[-1 - i] != other[-1 - i]), least - start)
    return max(len(one), len(other)) - start - end <= 2


def is_near_a_sent_call(call: Call, sent: list[Call]) -> bool:
    alike = [each for each in sent if each.name == call.name and set(each.arguments) == set(call.arguments)]
    return any(all(is_near(each.arguments[key], value) for key, value in call.arguments.items()) for each in alike)


@every_format
@pytest.mark.parametrize("sent", SENT, ids=["one", "three"])
def test_a_damaged_call_is_runnable_only_with_the_original_arguments(format: str, sent: list[Call]) -> None:
    text = render(sent, format=format, tools=TOOLS)
    samples = Random(format).sample(list(damaged_texts(text)), SAMPLE_SIZE)
    for each in samples:
        reply = parse(each, format=format, tools=TOOLS)
        assert len(reply.calls) <= len(sent), each
        assert all(is_near_a_sent_call(call, sent) for call in reply.calls), (each, reply.calls)


CONTINUATIONS = ['}, {"where": "x"}', '}, "where": "x"}', '} where": "x"}', '}}, "where": "x"}']
CONTINUATIONS += [f", {behind}" for behind in CONTINUATIONS] + [', }where": "x"}']


@every_format
@pytest.mark.parametrize("behind", CONTINUATIONS)
def test_arguments_that_continue_after_their_end_are_rejected(format: str, behind: str) -> None:
    text = render([Call("delete_rows", {"table": "users"})], format=format, tools=TOOLS)
    if '"users"}' not in text:
        return
    broken = text.replace('"users"}', f'"users"{behind}', 1)
    assert all("where" in call.arguments for call in parse(broken, format=format, tools=TOOLS).calls), broken
    assert cut_law(FORMATS[format], broken, tools=TOOLS) == []


@every_format
@pytest.mark.parametrize("name", selected(NAMES, kept=NAMES[:2]))
def test_a_call_of_an_invalid_name_is_reported(format: str, name: str) -> None:
    text = render([ROWS], format=format, tools=TOOLS).replace("delete_rows", name)
    reply = parse(text, format=format, tools=TOOLS)
    assert reply.calls == ()
    assert reply.problems or format in RECOGNIZED_BY_NAME, text
    assert cut_law(FORMATS[format], text, tools=TOOLS) == []


@every_format
@pytest.mark.parametrize("between", ["", "\n"])
def test_a_restarted_call_is_runnable_only_with_all_its_arguments(format: str, between: str) -> None:
    text = render([ROWS], format=format, tools=TOOLS)
    for end in range(1, len(text)):
        restarted = text[:end] + between + text
        assert all(call.arguments == ROWS.arguments for call in parse(restarted, format=format, tools=TOOLS).calls), (
            restarted
        )
        if end % 16 == 0:
            assert cut_law(FORMATS[format], restarted, tools=TOOLS) == []
