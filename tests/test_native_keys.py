"""Every key of a native call is accounted for: used, put in its place, or named. The same in a stream, live or not."""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Reply
from rightcall.providers.provider_answers import Stream
from rightcall.providers.provider_answers import read as read_answer
from test_envelope_keys import TOOLS, Json, ran


def answer(function: Json, **entry: Any) -> Json:
    call = {"id": "call_1", "type": "function", "function": function, **entry}
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}


def streamed(response: Json, *, live: bool) -> Reply:
    """The same answer as a stream, its argument text in two pieces."""
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
        answer({"name": "delete_rows", "arguments": '{"table": "users"}', "where": "id=7"}),
        [("delete_rows", {"table": "users", "where": "id=7"})],
        [],
    ),
    (
        answer({"name": "delete_rows", "arguments": '{"table": "users"}'}, limit=3),
        [("delete_rows", {"table": "users", "limit": 3})],
        [],
    ),
    (
        answer({"name": "delete_rows", "arguments": '{"table": "users"}', "mood": 1}),
        [("delete_rows", {"table": "users"})],
        ["unknown_key"],
    ),
    (
        answer({"name": "delete_rows", "arguments": '{"table": "users"}', "parameters": {"table": "orders"}}),
        [],
        ["duplicate_argument"],
    ),
    (answer({"name": "delete_rows", "arguments": '{"table": "users", "table": "orders"}'}), [], ["duplicate_argument"]),
    (answer({"name": "delete_rows", "arguments": '{"filter": {"a": 1, "a": 2}}'}), [], ["duplicate_key"]),
    (answer({"name": "delete_rows", "arguments": '{"filter": {"glob": "*"}}, "dry_run": true}'}), [], ["invalid_json"]),
    (answer({"name": "  ", "arguments": '{"word": "owl"}'}), [("lookup", {"word": "owl"})], []),
    (answer({"name": "lookup", "arguments": '{"word": 7}'}), [("lookup", {"word": "7"})], []),
]


@pytest.mark.parametrize("response, calls, codes", NATIVE)
def test_the_keys_of_a_native_call_are_accounted_for(
    response: Json, calls: list[tuple[str, Json]], codes: list[str]
) -> None:
    reply = read_answer(response, tools=TOOLS)
    assert (ran(reply), [problem.code for problem in reply.problems]) == (calls, codes)
    for live in (False, True):
        again = streamed(response, live=live)
        assert (again.attempts, again.problems) == (reply.attempts, reply.problems), live


def test_a_block_of_anthropics_is_accounted_for_too() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "delete_rows", "input": {"table": "users"}, "where": "id=7"}
    reply = read_answer({"role": "assistant", "content": [block]}, tools=TOOLS, api="messages")
    assert ran(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]
    part = {"functionCall": {"name": "delete_rows", "args": {"table": "users"}, "where": "id=7"}}
    reply = read_answer({"candidates": [{"content": {"parts": [part]}}]}, tools=TOOLS, api="gemini")
    assert ran(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]


def test_extra_server_fields_of_a_native_call_are_not_reported() -> None:
    response = answer({"name": "ping", "arguments": "{}", "parsed_arguments": {}}, index=0, extra_content={"a": 1})
    assert read_answer(response, tools=TOOLS).problems == ()
