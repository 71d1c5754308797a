"""Answers with several calls, some of them wrong, whole and as streams: which calls the client receives."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from rightcall.api_names import Api
from support.loopback import call_delta, chunked, delta, events, json_answer
from support.proxied import DIALECTS, Proxied, build_request, parse_response
from test_proxy import LEAK, OSLO, RIGHT, TEXT, made, run

END = delta("tool_calls")


def weather_calls(*arguments: str) -> list[Any]:
    """Return calls of get_weather with these arguments, one after the other."""
    return [call_delta(each, "get_weather", f"call_{at}", at) for at, each in enumerate(arguments)]


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("give_up", ["pass", "error"])
def test_valid_calls_are_sent_around_an_invalid_call(api: Api, stream: bool, give_up: str) -> None:
    wrong = {"city": "a", "zzz": 1}

    async def story(proxy: Proxied) -> None:
        answer = await proxy.ask(api, stream=stream)
        cities = sorted([str(given) for _, given in made(answer.reply)])
        expected = [{"city": "Oslo"}, {"city": "Bergen"}, *([wrong] if give_up == "pass" else [])]
        assert (answer.wrong, cities) == ([], sorted(map(str, expected)))

    three = weather_calls('{"city": "Oslo"}', '{"city": "a", "zzz": 1}', '{"city": "Bergen"}')
    run(story, chunked(events(*three, END)), give_up=give_up)


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_required_call_that_is_missing_leaves_the_text(api: Api, stream: bool) -> None:
    demand: dict[str, Any] = {"tool_choice": {"type": "any"} if api == "messages" else "required"}
    if api == "gemini":
        demand = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}

    async def story(proxy: Proxied) -> None:
        answer = await proxy.ask(api, stream=stream, **demand)
        assert (answer.status, answer.reply.content, answer.wrong) == (200, "Hello", [])

    run(story, chunked(events(*TEXT)), max_retries=1)


@pytest.mark.parametrize("stream", [True, False])
def test_an_endlessly_repeated_call_is_rejected_by_the_guard(stream: bool) -> None:
    def turn(at: int) -> list[Any]:
        call = {"id": f"c{at}", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
        result = {"role": "tool", "tool_call_id": f"c{at}", "content": "rain"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]

    history = [{"role": "user", "content": "Weather?"}, *turn(0), *turn(1), *turn(2), *turn(3)]

    async def story(proxy: Proxied) -> None:
        answer = await proxy.ask("chat", stream=stream, messages=history)
        assert answer.status == 400 and answer.headers["x-rightcall-guard"] == "repeated: refuse"

    run(story, RIGHT, guard="full")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("guard", ["none", "parse", "full"])
@pytest.mark.parametrize("name, is_allowed", [("WebSearch", True), ("WebSearchTool", False), ("Web", False)])
def test_an_undeclared_tool_is_allowed_if_tools_are_deferred_and_the_prompt_names_it(
    name: str, is_allowed: bool, stream: bool, guard: str
) -> None:
    deferred = {"name": "Placeholder", "input_schema": {"type": "object"}, "defer_loading": True}
    system = "These tools are deferred: WebFetch, WebSearch."

    async def story(proxy: Proxied) -> None:
        path, body = build_request("messages", stream=stream, tools=False, system=system)
        body["messages"] += [{"role": "assistant", "content": f"I will call {name}."}, *body["messages"]]
        async with proxy.session.post(proxy.proxy.address + path, json={**body, "tools": [deferred]}) as answer:
            reply = parse_response("messages", answer.status, {}, await answer.read(), stream=stream).reply
        assert made(reply) == ([(name, {"query": "x"})] if is_allowed else [])

    run(story, chunked(events(call_delta('{"query": "x"}', name, "call_a"), END)), guard=guard)


@pytest.mark.parametrize("stream", [True, False])
def test_several_choices_are_rejected_with_tools_and_forwarded_without(stream: bool) -> None:
    two = {"choices": [{"index": at, "message": {"role": "assistant", "content": f"{at}."}} for at in (0, 1)]}

    async def story(proxy: Proxied) -> None:
        for api, more in (("chat", {"n": 2}), ("gemini", {"generationConfig": {"candidateCount": 2}})):
            answer = await proxy.ask(cast(Api, api), stream=stream, **more)
            assert answer.status == 400 and b"ask for one" in answer.data
        assert proxy.server.posts == []
        answer = await proxy.ask("chat", stream=False, tools=False, n=2)
        assert json.loads(answer.data) == two

    run(story, json_answer(two))


# -- live calls --------------------------------------------------------------------------------------------------------


def live_answers(*pieces: Any, **settings: Any) -> dict[Api, Any]:
    found: dict[Api, Any] = {}

    async def story(proxy: Proxied) -> None:
        for api in DIALECTS:
            found[api] = await proxy.ask(api, stream=True)

    run(story, chunked(events(*pieces, END)), stream_calls="live", max_retries=0, **settings)
    return found


@pytest.mark.parametrize("rest", ['"Oslo", "days": "3"}', '"Oslo", "zzz": "3"}'])
def test_a_live_call_that_violates_its_schema_is_unchanged(rest: str) -> None:
    for api, answer in live_answers(*weather_calls('{"city": '), call_delta(rest)).items():
        assert (answer.status, answer.wrong, len(answer.reply.calls)) == (200, [], 1), api
        assert answer.reply.calls[0].arguments["city"] == "Oslo"


def test_a_rejected_live_call_ends_the_answer_with_an_error() -> None:
    for api, answer in live_answers(
        *weather_calls('{"city": '), call_delta('"Oslo", "zzz": 1}'), give_up="error"
    ).items():
        has_ended = answer.status == 400 or (answer.status == 200 and answer.reply.finish == "error")
        assert has_ended and not answer.wrong, (api, answer)


def test_interleaved_live_calls_are_separated() -> None:
    first, second = weather_calls('{"city": ', '{"city": "Ber')
    for api, answer in live_answers(first, second, call_delta('"Oslo"}'), call_delta('gen"}', index=1)).items():
        assert (answer.wrong, made(answer.reply)) == ([], [*OSLO, ("get_weather", {"city": "Bergen"})]), api


def test_a_call_in_text_is_never_streamed_live() -> None:
    for api, answer in live_answers(delta(content=LEAK)).items():
        assert (answer.wrong, made(answer.reply)) == ([], OSLO), api
