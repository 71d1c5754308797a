"""Answers with several calls, of which some are wrong, whole and as streams: what goes out, and what does not."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from rightcall.api_names import Api
from support.loopback import call_delta, chunked, delta, events, json_answer
from support.proxied import DIALECTS, Proxied, asked, got
from test_proxy import LEAK, OSLO, RIGHT, TEXT, made, run

END = delta("tool_calls")


def called(*arguments: str) -> list[Any]:
    """Calls of get_weather with these arguments, one after the other."""
    return [call_delta(each, "get_weather", f"call_{at}", at) for at, each in enumerate(arguments)]


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("give_up", ["pass", "error"])
def test_valid_calls_are_sent_around_an_invalid_call(api: Api, stream: bool, give_up: str) -> None:
    wrong = {"city": "a", "zzz": 1}

    async def story(proxy: Proxied) -> None:
        told = await proxy.ask(api, stream=stream)
        cities = sorted([str(given) for _, given in made(told.reply)])
        meant = [{"city": "Oslo"}, {"city": "Bergen"}, *([wrong] if give_up == "pass" else [])]
        assert (told.wrong, cities) == ([], sorted(map(str, meant)))

    three = called('{"city": "Oslo"}', '{"city": "a", "zzz": 1}', '{"city": "Bergen"}')
    run(story, chunked(events(*three, END)), give_up=give_up)


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_demanded_call_that_never_comes_leaves_the_text(api: Api, stream: bool) -> None:
    demand: dict[str, Any] = {"tool_choice": {"type": "any"} if api == "messages" else "required"}
    if api == "gemini":
        demand = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}

    async def story(proxy: Proxied) -> None:
        told = await proxy.ask(api, stream=stream, **demand)
        assert (told.status, told.reply.content, told.wrong) == (200, "Hello", [])

    run(story, chunked(events(*TEXT)), max_retries=1)


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_repeats_itself_without_end_is_no_empty_answer(stream: bool) -> None:
    def turn(at: int) -> list[Any]:
        call = {"id": f"c{at}", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
        result = {"role": "tool", "tool_call_id": f"c{at}", "content": "rain"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]

    history = [{"role": "user", "content": "Weather?"}, *turn(0), *turn(1), *turn(2), *turn(3)]

    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("chat", stream=stream, messages=history)
        assert told.status == 400 and told.headers["x-rightcall-guard"] == "repeated: refuse"

    run(story, RIGHT, guard="full")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("guard", ["none", "parse", "full"])
@pytest.mark.parametrize("name, may", [("WebSearch", True), ("WebSearchTool", False), ("Web", False)])
def test_a_tool_that_was_not_declared_may_be_called_where_some_are_deferred_and_it_is_named(
    name: str, may: bool, stream: bool, guard: str
) -> None:
    deferred = {"name": "Placeholder", "input_schema": {"type": "object"}, "defer_loading": True}
    system = "These tools are deferred: WebFetch, WebSearch."

    async def story(proxy: Proxied) -> None:
        path, body = asked("messages", stream=stream, tools=False, system=system)
        body["messages"] += [{"role": "assistant", "content": f"I will call {name}."}, *body["messages"]]
        async with proxy.session.post(proxy.proxy.address + path, json={**body, "tools": [deferred]}) as answer:
            reply = got("messages", answer.status, {}, await answer.read(), stream=stream).reply
        assert made(reply) == ([(name, {"query": "x"})] if may else [])

    run(story, chunked(events(call_delta('{"query": "x"}', name, "call_a"), END)), guard=guard)


@pytest.mark.parametrize("stream", [True, False])
def test_several_answers_to_a_request_with_tools_are_refused_and_without_go_through(stream: bool) -> None:
    two = {"choices": [{"index": at, "message": {"role": "assistant", "content": f"{at}."}} for at in (0, 1)]}

    async def story(proxy: Proxied) -> None:
        for api, more in (("chat", {"n": 2}), ("gemini", {"generationConfig": {"candidateCount": 2}})):
            told = await proxy.ask(cast(Api, api), stream=stream, **more)
            assert told.status == 400 and b"ask for one" in told.data
        assert proxy.server.posts == []
        told = await proxy.ask("chat", stream=False, tools=False, n=2)
        assert json.loads(told.data) == two

    run(story, json_answer(two))


# -- as they come ------------------------------------------------------------------------------------------------------


def live(*pieces: Any, **settings: Any) -> dict[Api, Any]:
    found: dict[Api, Any] = {}

    async def story(proxy: Proxied) -> None:
        for api in DIALECTS:
            found[api] = await proxy.ask(api, stream=True)

    run(story, chunked(events(*pieces, END)), stream_calls="live", max_retries=0, **settings)
    return found


@pytest.mark.parametrize("rest", ['"Oslo", "days": "3"}', '"Oslo", "zzz": "3"}'])
def test_a_live_call_that_breaks_its_schema_stays_as_it_was_written(rest: str) -> None:
    for api, told in live(*called('{"city": '), call_delta(rest)).items():
        assert (told.status, told.wrong, len(told.reply.calls)) == (200, [], 1), api
        assert told.reply.calls[0].arguments["city"] == "Oslo"


def test_a_live_call_that_must_not_go_on_ends_in_an_error() -> None:
    for api, told in live(*called('{"city": '), call_delta('"Oslo", "zzz": 1}'), give_up="error").items():
        ended = told.status == 400 or (told.status == 200 and told.reply.finish == "error")
        assert ended and not told.wrong, (api, told)


def test_live_calls_whose_pieces_come_mixed_are_kept_apart() -> None:
    first, second = called('{"city": ', '{"city": "Ber')
    for api, told in live(first, second, call_delta('"Oslo"}'), call_delta('gen"}', index=1)).items():
        assert (told.wrong, made(told.reply)) == ([], [*OSLO, ("get_weather", {"city": "Bergen"})]), api


def test_a_call_in_text_is_never_live() -> None:
    for api, told in live(delta(content=LEAK)).items():
        assert (told.wrong, made(told.reply)) == ([], OSLO), api
