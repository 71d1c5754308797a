"""Failure classes that no simulated server shows: the part of rightcall that remedies each class works."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rightcall import Call, Tool, Toolset, dispatch_sync, parse, read
from rightcall.doctor.failure_classes import FAILURE_CLASSES
from rightcall.guard import Guard, Turn
from rightcall.types import Json
from zoo import ZOO


def read_log(lines: int) -> str:
    """Reads the log."""
    return "first line é\n" + "x" * lines + "\nlast line é"


def tool_named(name: str) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": {"content": {"type": "string"}}})


def test_an_oversized_result_keeps_its_head_and_tail_and_reports_the_omission() -> None:
    (result,) = dispatch_sync(Call("read_log", {"lines": 4_370_000}, ""), [read_log])
    assert len(result.text) < 20_000
    assert result.text.startswith("first line é") and "left out" in result.text and "last line é" in result.text


def test_a_scope_offers_few_of_many_tools_and_rejects_calls_of_others() -> None:
    tools = Toolset([tool_named(f"tool_{at}") for at in range(300)]).scoped(["tool_7", "tool_8"])
    assert len(tools.definitions("chat")) == 2
    reply = parse('<tool_call>{"name": "tool_9", "arguments": {}}</tool_call>', tools=tools)
    assert [problem.code for problem in reply.problems] == ["not_authorised"] and not reply.calls


ESCAPED = ["&quot;a&quot; &lt; b &amp;&amp; c", "line one\\nline two", "a\\tb \\u00e9", "<p>&nbsp;</p>"]


@pytest.mark.parametrize("policy", ["off", "safe", "lenient"])
@pytest.mark.parametrize("content", ESCAPED)
def test_escapes_in_arguments_are_unchanged(content: str, policy: Any) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": json.dumps({"content": content})}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    (parsed,) = read(message, api="chat", tools=[tool_named("f")], repair=policy).calls
    assert (parsed.arguments, parsed.repairs) == ({"content": content}, ())


def turn_of(times: int) -> Turn:
    call: Json = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"content": "a"}'}}
    history: list[Json] = [{"role": "user", "content": "Do it."}]
    for at in range(times):
        history.append({"role": "assistant", "content": None, "tool_calls": [{**call, "id": f"c{at}"}]})
        history.append({"role": "tool", "tool_call_id": f"c{at}", "content": "same as before"})
    again = {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "new"}]}
    return Turn.of(history, [tool_named("f")], reply=read(again, api="chat", tools=[tool_named("f")]))


def test_a_repeated_call_is_warned_about_then_rejected() -> None:
    decisions = [Guard.of("full").judge(turn_of(times)).decision for times in range(8)]
    assert decisions[0] == "run" and "again" in decisions and decisions == sorted(decisions, key=decisions.index)
    rejected = next(
        judged for times in range(8) if (judged := Guard.of("full").judge(turn_of(times))).decision != "run"
    )
    assert rejected.messages()[-1]["role"] == "tool" and "[guard: repeated]" in str(rejected.messages()[-1]["content"])


PARTS: dict[str, Callable[..., None]] = {
    "oversized_result": test_an_oversized_result_keeps_its_head_and_tail_and_reports_the_omission,
    "too_many_tools": test_a_scope_offers_few_of_many_tools_and_rejects_calls_of_others,
    "escaped_text": test_escapes_in_arguments_are_unchanged,
    "repeated_calls": test_a_repeated_call_is_warned_about_then_rejected,
}


def test_every_failure_class_has_a_server_or_a_remedy() -> None:
    assert FAILURE_CLASSES.keys() == PARTS.keys() | {server.failure for server in ZOO.values()}
