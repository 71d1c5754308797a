"""Damaged calls of public bug threads: each is parsed with the arguments that were meant, or rejected and reported.

Every text is parsed under every cut, with its format named and, where it has markers, with `auto`.
"""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Reply, Tool, Toolset
from support.cuts import Setting, hold_of_every_cut
from support.replies import INTEGER, STRING

Args = dict[str, Any]


def declared(name: str, *required: str, **properties: Any) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


TOOLS = Toolset(
    [
        declared("bash", "command", command=STRING, timeout=INTEGER),
        declared("write_file", "path", "content", path=STRING, content=STRING),
        declared("get_weather", "city", city=STRING, days=INTEGER),
        declared("search", query=STRING, limit=INTEGER, exact={"type": "boolean"}),
        declared("view", "path", path=STRING, view_range={"type": "array", "items": INTEGER}),
        declared("tag", labels={"type": "array", "items": STRING}, options={"type": "object"}),
        declared("list_mailboxes"),
    ]
)


def parsed(text: str, format: str) -> Reply:
    return hold_of_every_cut(text, Setting(format, TOOLS))


def ran(text: str, format: str) -> list[tuple[str, Args]]:
    return [(call.name, call.arguments) for call in parsed(text, format).calls]


def rules(reply: Reply) -> list[str]:
    return [repair.rule for call in reply.calls for repair in call.repairs]


# -- LFM2: the arguments inside `properties` (ml-explore/mlx-swift-lm#481, cloudwego/eino#385) ---

PYTHONIC = {
    "lfm2": "<|tool_call_start|>[%s]<|tool_call_end|>",
    "auto": "<|tool_call_start|>[%s]<|tool_call_end|>",
    "pythonic": "[%s]",
    "olmo3": "<function_calls>%s</function_calls>",
}
IN_PROPERTIES = {
    "all required": ('get_weather(properties={"city": "Oslo"})', {"city": "Oslo"}),
    "two types": ('get_weather(properties={"city": "Oslo", "days": 2})', {"city": "Oslo", "days": 2}),
    "python literals": ("search(properties={'query': 'a, b', 'exact': True})", {"query": "a, b", "exact": True}),
    "all optional": ('search(properties={"limit": 3})', {"limit": 3}),
    "a value to be repaired": ('search(properties={"query": "x", "limit": "3"})', {"query": "x", "limit": 3}),
    "nested values": ('tag(properties={"options": {"a": [1]}})', {"options": {"a": [1]}}),
    "no arguments": ("list_mailboxes(properties={})", {}),
    "with the type of the schema": ('get_weather(type="object", properties={"city": "Oslo"})', {"city": "Oslo"}),
    "before a declared argument": ('get_weather(properties={"city": "Oslo"}, days=2)', {"city": "Oslo", "days": 2}),
    "after a declared argument": ('get_weather(city="Oslo", properties={"days": 2})', {"city": "Oslo", "days": 2}),
}


@pytest.mark.parametrize("format", PYTHONIC)
@pytest.mark.parametrize(("call", "arguments"), IN_PROPERTIES.values(), ids=IN_PROPERTIES)
def test_arguments_in_properties_are_the_arguments(call: str, arguments: Args, format: str) -> None:
    reply = parsed(PYTHONIC[format] % call, format)
    assert [call.arguments for call in reply.calls] == [arguments]
    assert "unwrapped" in rules(reply)


NOT_ARGUMENTS = {
    "the schema itself": 'get_weather(properties={"city": {"type": "string"}})',
    "another argument": 'get_weather(properties={"town": "Oslo"})',
    "a text": 'get_weather(properties="{\\"city\\": \\"Oslo\\"}")',
}


@pytest.mark.parametrize("call", NOT_ARGUMENTS.values(), ids=NOT_ARGUMENTS)
def test_properties_without_the_arguments_are_rejected(call: str) -> None:
    reply = parsed(PYTHONIC["lfm2"] % call, "lfm2")
    assert not reply.calls and reply.problems


def test_a_declared_argument_named_properties_is_not_unwrapped() -> None:
    for extra in ({"properties": {"properties": {"type": "object"}}}, {"properties": {}, "additionalProperties": True}):
        tools = Toolset([Tool(name="make", parameters={"type": "object", **extra})])
        text = PYTHONIC["lfm2"] % 'make(properties={"city": "Oslo"})'
        reply = hold_of_every_cut(text, Setting("lfm2", tools))
        assert [call.arguments for call in reply.calls] == [{"properties": {"city": "Oslo"}}]
