"""The last step of a loop: the assistant message for the history, and an answer for every call in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Ids, Parser, Problem, Reply, Stream, answers, dispatch_sync, feedback, parse, read, tool
from rightcall.providers.sniff import DIALECTS
from rightcall.types import Reasoning, Recast, Text

Json = dict[str, Any]
every_api = pytest.mark.parametrize("api", list(DIALECTS))


@tool
def look(city: str, days: int = 1) -> str:
    return f"{days} days of sun in {city}"


@tool
def fail(city: str) -> str:
    raise LookupError(f"no {city} here")


TOOLS = [look, fail]
GOOD = '<tool_call>{"name": "look", "arguments": {"city": "Oslo"}}</tool_call>'
WRONG_TYPE = '<tool_call>{"name": "look", "arguments": {"city": "Oslo", "days": "many"}}</tool_call>'
BROKEN = '<tool_call>{"name": "look", "arguments": {"city": "Oslo", "days": }}</tool_call>'
UNKNOWN = '<tool_call>{"name": "drop", "arguments": {"city": "Oslo"}}</tool_call>'
FAILS = '<tool_call>{"name": "fail", "arguments": {"city": "Rome"}}</tool_call>'
TRUNCATED = '<tool_call>{"name": "look", "arguments": {"city": "Os'
texts = st.lists(st.sampled_from([GOOD, WRONG_TYPE, BROKEN, UNKNOWN, FAILS]), min_size=1, max_size=5).map("\n".join)


def calls_in_message(message: Any, api: str) -> list[tuple[str, Any]]:
    """Return id (or name, if the API has no ids) and arguments of the calls in a message, read from its JSON."""
    match api:
        case "chat":
            return [(each["id"], each["function"]["arguments"]) for each in message["tool_calls"]]
        case "responses":
            return [(each["call_id"], each["arguments"]) for each in message if each["type"] == "function_call"]
        case "messages":
            return [(each["id"], each["input"]) for each in message["content"] if each["type"] == "tool_use"]
        case "gemini":
            calls = [each["functionCall"] for each in message["parts"] if "functionCall" in each]
            return [(each["id"], each["args"]) for each in calls]
        case "ollama":
            return [(each["function"]["name"], each["function"]["arguments"]) for each in message["tool_calls"]]
    raise AssertionError(f"{api}: say here where its assistant's turn has the calls")


def answers_in_messages(messages: list[Json], api: str) -> list[tuple[str, str]]:
    """Return id (or name) and text of the answers, read from their JSON."""
    match api:
        case "chat":
            return [(each["tool_call_id"], each["content"]) for each in messages if each["role"] == "tool"]
        case "responses":
            return [(each["call_id"], each["output"]) for each in messages if "call_id" in each]
        case "messages":
            blocks = [each for message in messages for each in message["content"] if each["type"] == "tool_result"]
            return [(each["tool_use_id"], each["content"]) for each in blocks]
        case "gemini":
            parts = [each["functionResponse"] for message in messages for each in message["parts"]]
            return [(each["id"], json.dumps(each["response"])) for each in parts]
        case "ollama":
            return [(each["tool_name"], each["content"]) for each in messages if each["role"] == "tool"]
    raise AssertionError(f"{api}: say here where its history has the answers of calls")


@every_api
@given(text=texts)
def test_every_call_in_the_message_has_exactly_one_answer(api: str, text: str) -> None:
    reply = parse(text, tools=TOOLS, format="hermes")
    calls = calls_in_message(reply.message(api), api)
    assert len(calls) == len(reply.attempts)
    for results in (dispatch_sync(reply, TOOLS), dispatch_sync(reply.calls, TOOLS)):
        given_back = answers_in_messages(answers(reply, results, api=api), api)
        assert [id for id, _ in given_back] == [id for id, _ in calls]
        assert all(text_of_answer for _, text_of_answer in given_back)


@every_api
@given(text=texts)
def test_the_arguments_in_a_message_are_always_an_object(api: str, text: str) -> None:
    for _, arguments in calls_in_message(parse(text, tools=TOOLS, format="hermes").message(api), api):
        assert isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)


@every_api
@pytest.mark.parametrize("text", [BROKEN, WRONG_TYPE, UNKNOWN, TRUNCATED])
def test_each_problem_is_reported_once(api: str, text: str) -> None:
    reply = parse(text, tools=TOOLS, format="hermes")
    answer_text = json.dumps(answers(reply, api=api), ensure_ascii=False)
    for problem in reply.problems:
        assert answer_text.count(json.dumps(problem.message, ensure_ascii=False)[1:-1]) == 1, problem


@every_api
def test_the_answer_to_a_broken_call_shows_its_original_text(api: str) -> None:
    reply = parse(BROKEN, tools=TOOLS, format="hermes")
    ((_, arguments),) = calls_in_message(reply.message(api), api)
    assert arguments in ("{}", {})
    ((_, answer_text),) = answers_in_messages(answers(reply, api=api), api)
    assert "Oslo" in answer_text and "days" in answer_text


def test_the_text_shown_of_a_broken_call_is_bounded() -> None:
    reply = parse(BROKEN.replace("Oslo", "O" * 100_000), tools=TOOLS, format="hermes")
    assert len(json.dumps(answers(reply))) < 3_000


def test_argument_text_without_repairs_is_sent_back_unchanged() -> None:
    text = '{"city":"\\u00d8rsta",  "days": 2}'
    response = {
        "choices": [{"message": {"tool_calls": [{"id": "a", "function": {"name": "look", "arguments": text}}]}}]
    }
    assert read(response, tools=TOOLS).message()["tool_calls"][0]["function"]["arguments"] == text


def test_a_reply_without_calls_has_no_answers() -> None:
    assert answers(parse("Sunny.", tools=TOOLS)) == []


def test_a_near_miss_without_a_call_is_reported_to_the_model() -> None:
    reply = parse('I would {"name": "look", "arguments": {"city": "Oslo"}} now.', tools=TOOLS)
    (message,) = answers(reply)
    assert message["role"] == "user" and message["content"] == feedback(reply)


def test_server_errors_are_not_sent_to_the_model() -> None:
    for response in ({"error": {"message": "quota exceeded"}}, {"choices": 3}):
        reply = read(response, tools=TOOLS, api="chat")
        assert any(problem.blocking for problem in reply.problems)
        assert feedback(reply) == "" and answers(reply) == []


def test_reasoning_is_sent_back_under_its_field_name_and_only_with_calls() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"city": "Oslo"}'}}
    for name in ("reasoning_content", "reasoning"):
        message = {"role": "assistant", "content": "", "tool_calls": [call], name: "Hm."}
        assert read({"choices": [{"message": message}]}).message() == message
        assert name not in read({"choices": [{"message": {"content": "Hi", name: "Hm."}}]}).message()


def test_opaque_fields_of_one_api_are_not_sent_to_another() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    reply = read({"type": "message", "role": "assistant", "content": blocks})
    assert reply.message("messages")["content"] == blocks
    assert "signature" not in json.dumps([reply.message("chat"), reply.message("responses"), reply.message("gemini")])


@every_api
def test_a_single_result_can_be_written_as_a_message(api: str) -> None:
    (good,) = dispatch_sync(parse(GOOD, tools=TOOLS, format="hermes"), TOOLS)
    assert "1 days of sun in Oslo" in json.dumps(good.message(api))
    (bad,) = dispatch_sync(parse(FAILS, tools=TOOLS, format="hermes"), TOOLS)
    assert "no Rome here" in json.dumps(bad.message(api))


@given(text=texts)
def test_dispatching_a_reply_its_calls_or_each_call_gives_the_same_results(text: str) -> None:
    reply = parse(text, tools=TOOLS, format="hermes")
    whole = [(result.kind, result.text) for result in dispatch_sync(reply, TOOLS)]
    alone = [(result.kind, result.text) for call in reply.attempts for result in dispatch_sync(call, TOOLS)]
    runnable = [(result.kind, result.text) for result in dispatch_sync(reply.calls, TOOLS)]
    assert whole == alone
    assert runnable == [each for each in whole if each[0] != "refused"]


# -- calls from a name and argument text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, arguments, ok",
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}, True),
        ('{"city": "Oslo", "days": "3",}', {"city": "Oslo", "days": 3}, True),
        ("{}", {}, False),
        ("", {}, False),
        ('{"city": "Oslo", "days": "many"}', {"city": "Oslo", "days": "many"}, False),
        ('{"city": "Os', {}, False),
        ("[1]", {}, False),
    ],
)
def test_a_call_is_built_from_argument_text(text: str, arguments: Json, ok: bool) -> None:
    call = Call.from_text("look", text, tools=TOOLS, id="a")
    assert (call.arguments, call.ok, call.id) == (arguments, ok, "a")
    assert ok or call.problems
    assert bool(call.repairs) is (ok and text != json.dumps(arguments))
    kinds = [result.kind for result in dispatch_sync(call, TOOLS)]
    assert kinds == ["completed" if ok else "refused"]


def test_a_call_built_from_text_must_name_a_declared_tool() -> None:
    assert [problem.code for problem in Call.from_text("drop", "{}", tools=TOOLS).problems] == ["unknown_tool"]
    assert Call.from_text("drop", "{}").ok


# -- events of a whole stream ------------------------------------------------------------------------------------------


async def _each(chunks: list[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("live", [False, True])
def test_events_yields_the_events_of_feed_and_close(live: bool) -> None:
    text = f"<think>Hm.</think>Look.\n{GOOD}\n{TRUNCATED}"
    chunks = [{"choices": [{"delta": {"content": text[at : at + 5]}}]} for at in range(0, len(text), 5)]
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]

    def readers() -> list[tuple[Any, list[Any]]]:
        return [
            (Parser("hermes", tools=TOOLS, live=live, ids=Ids.numbered("c")), pieces),
            (Stream("chat", format="hermes", tools=TOOLS, live=live, ids=Ids.numbered("c")), chunks),
        ]

    async def collect_events(reader: Any, every: list[Any]) -> list[Any]:
        return [event async for event in reader.events(_each(every))]

    for (one, chunked), (other, _), (third, _) in zip(readers(), readers(), readers(), strict=True):
        fed = [event for chunk in chunked for event in one.feed(chunk)] + one.close()
        assert list(other.events(chunked)) == fed == asyncio.run(collect_events(third, chunked))
        assert one.reply == other.reply == third.reply


def test_a_holding_stream_emits_no_recast_event() -> None:
    text = 'Hm, so.</think>Sure.\n{"name": "look", "arguments": {"city": "Oslo"}}'
    chunks = [{"choices": [{"delta": {"content": text[at : at + 5]}}]} for at in range(0, len(text), 5)]
    holding, plain = Stream("chat", tools=TOOLS, hold=True), Stream("chat", tools=TOOLS)
    events = list(holding.events(chunks))
    assert Recast in [type(event) for event in plain.events(chunks)]
    assert Recast not in [type(event) for event in events]
    assert holding.reply.parts == plain.reply.parts
    assert [event for event in events if isinstance(event, Text | Reasoning)] == list(holding.reply.parts)


def test_a_reply_can_be_converted_to_json() -> None:
    reply = Reply((Text("Hi"),), (Problem("x", "y", blocking=False),))
    assert json.loads(json.dumps(reply.to_json()))["content"] == "Hi"
