"""Every key of a native call is used, moved or reported; a stream gives the same result, live or not."""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Reply
from rightcall.providers.provider_answers import Stream
from rightcall.providers.provider_answers import read as read_answer
from test_envelope_keys import TOOLS, Json, runnable_calls


def answer_with_call(function: Json, **entry: Any) -> Json:
    call = {"id": "call_1", "type": "function", "function": function, **entry}
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}


def read_stream(response: Json, *, live: bool) -> Reply:
    """Return the same answer read from a stream, its argument text in two pieces."""
    [call] = response["choices"][0]["message"]["tool_calls"]
    text = call["function"]["arguments"]
    half = len(text) // 2
    first = {**call, "index": 0, "function": {**call["function"], "arguments": text[:half]}}
    stream = Stream(tools=TOOLS, live=live)
    for piece in (first, {"index": 0, "function": {"arguments": text[half:]}}):
        stream.feed({"choices": [{"delta": {"tool_calls": [piece]}}]})
    stream.close()
    return stream.reply


NATIVE: list[tuple[Json, list[tuple[str, Json]], list[str]]] = [
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"table": "users"}', "where": "id=7"}),
        [("delete_rows", {"table": "users", "where": "id=7"})],
        [],
    ),
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"table": "users"}'}, limit=3),
        [("delete_rows", {"table": "users", "limit": 3})],
        [],
    ),
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"table": "users"}', "mood": 1}),
        [("delete_rows", {"table": "users"})],
        ["unknown_key"],
    ),
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"table": "users"}', "parameters": {"table": "orders"}}),
        [],
        ["duplicate_argument"],
    ),
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"table": "users", "table": "orders"}'}),
        [],
        ["duplicate_argument"],
    ),
    (answer_with_call({"name": "delete_rows", "arguments": '{"filter": {"a": 1, "a": 2}}'}), [], ["duplicate_key"]),
    (
        answer_with_call({"name": "delete_rows", "arguments": '{"filter": {"glob": "*"}}, "dry_run": true}'}),
        [],
        ["invalid_json"],
    ),
    (answer_with_call({"name": "  ", "arguments": '{"word": "owl"}'}), [("lookup", {"word": "owl"})], []),
    (answer_with_call({"name": "lookup", "arguments": '{"word": 7}'}), [("lookup", {"word": "7"})], []),
]


@pytest.mark.parametrize("response, calls, codes", NATIVE)
def test_every_key_of_a_native_call_is_used_moved_or_reported(
    response: Json, calls: list[tuple[str, Json]], codes: list[str]
) -> None:
    reply = read_answer(response, tools=TOOLS)
    assert (runnable_calls(reply), [problem.code for problem in reply.problems]) == (calls, codes)
    for live in (False, True):
        again = read_stream(response, live=live)
        assert (again.attempts, again.problems) == (reply.attempts, reply.problems), live


def test_extra_keys_of_anthropic_and_gemini_calls_become_arguments() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "delete_rows", "input": {"table": "users"}, "where": "id=7"}
    reply = read_answer({"role": "assistant", "content": [block]}, tools=TOOLS, api="messages")
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]
    part = {"functionCall": {"name": "delete_rows", "args": {"table": "users"}, "where": "id=7"}}
    reply = read_answer({"candidates": [{"content": {"parts": [part]}}]}, tools=TOOLS, api="gemini")
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]


def test_extra_server_fields_of_a_native_call_are_not_reported() -> None:
    response = answer_with_call(
        {"name": "ping", "arguments": "{}", "parsed_arguments": {}}, index=0, extra_content={"a": 1}
    )
    assert read_answer(response, tools=TOOLS).problems == ()
