"""What real servers were seen to do (docs/servers.md), written down as scripts, and what a client sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rightcall import grammar, read
from rightcall.api_names import Api
from rightcall.constrain.server_requests import SERVERS
from rightcall.errors import StatusError
from rightcall.serve.refused_fields import refused_fields
from support.loopback import Answering, answer, chat, json_answer
from support.proxied import DIALECTS, SCHEMA, Proxied, asked, proxied

OSLO = ("get_weather", '{"city": "Oslo"}')
RIGHT = json_answer(chat(calls=(OSLO,), finish="tool_calls"))
PINGS = json_answer(chat(calls=(("ping", "{}"),), finish="tool_calls"))
BOTH = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "ping", "strict": False, "parameters": {"type": "object"}}},
]
NAMED = {"type": "function", "function": {"name": "ping"}}


def run(story: Callable[[Proxied], Awaitable[None]], *answers: Answering, **settings: Any) -> None:
    async def go() -> None:
        async with asyncio.timeout(50), proxied(*answers, **settings) as proxy:
            await story(proxy)

    asyncio.run(go())


async def named(proxy: Proxied) -> list[str]:
    """Which tools a client gets calls of that demands one by its name."""
    path, body = asked("chat", stream=False, x=1)
    body |= {"tools": BOTH, "tool_choice": NAMED}
    async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
        return [call.name for call in read(await got.json(), api="chat").calls]


def offered(body: dict[str, Any]) -> list[str]:
    return [each["function"]["name"] for each in body["tools"]]


# -- tool_choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "said"), [("llama.cpp", "required"), ("transformers", None), ("vllm", NAMED)])
def test_a_server_that_takes_no_name_is_offered_the_named_tool_alone(profile: str, said: Any) -> None:
    async def story(proxy: Proxied) -> None:
        assert await named(proxy) == ["ping"]
        body = proxy.server.posts[0].body
        assert body.get("tool_choice") == said and body["x"] == 1
        assert offered(body) == (["ping"] if profile != "vllm" else ["get_weather", "ping"])

    run(story, PINGS, profile=profile)


def test_a_server_that_called_another_tool_than_the_named_one_is_offered_only_that_when_asked_again() -> None:
    async def story(proxy: Proxied) -> None:
        assert await named(proxy) == ["ping"]
        first, second = [post.body for post in proxy.server.posts]
        assert (offered(first), first["tool_choice"]) == (["get_weather", "ping"], NAMED)
        assert (offered(second), second["tool_choice"]) == (["ping"], "required")
        assert second["messages"] == first["messages"]

    run(story, RIGHT, PINGS)


def test_a_schema_that_a_server_cannot_take_changes_the_way_for_its_own_request_alone() -> None:
    refuses = json_answer({"error": {"message": "Failed to initialize samplers: failed to parse grammar"}}, 400)
    in_text = json_answer(chat('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'))

    async def story(proxy: Proxied) -> None:
        for mode in ("grammar", "native"):
            got = await proxy.ask("chat", stream=False)
            assert ([call.name for call in got.reply.calls], got.headers["x-rightcall-mode"]) == (["get_weather"], mode)

    run(story, refuses, in_text, RIGHT, profile="llama.cpp", mode="auto")


# -- the same call again -----------------------------------------------------------------------------------------------


def history(times: int) -> list[dict[str, Any]]:
    """A conversation in which the weather of Oslo was asked so many times."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Weather in Oslo?"}]
    for at in range(times):
        call = {"id": f"c{at}", "type": "function", "function": {"name": OSLO[0], "arguments": OSLO[1]}}
        said += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": "9"},
        ]
    return said


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_a_model_insists_on_repeating_goes_out_when_retries_are_spent(times: int, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=stream, messages=history(times))
        assert (got.status, [call.name for call in got.reply.calls]) == (200, ["get_weather"])
        assert len(proxy.server.posts) == 3
        assert "[guard: repeated]" in str(proxy.server.posts[1].body["messages"][-1]) or times == 2

    run(story, RIGHT, guard="full")


@pytest.mark.parametrize(("times", "settings"), [(3, {}), (5, {}), (1, {"give_up": "error"})])
def test_a_loop_ends_in_the_end(times: int, settings: dict[str, Any]) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=False, messages=history(times))
        assert got.status == 400 and "same arguments" in got.data.decode()

    run(story, RIGHT, guard="full", **settings)


# -- fields that a server does not know --------------------------------------------------------------------------------

UNEXPECTED = answer(
    422, b'{"detail": "Unexpected fields in the request: {\'x_own\'}"}', Content_Type="application/json"
)


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_a_field_that_a_server_calls_unexpected_is_left_out_from_then_on(tools: bool, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        for _ in range(2):
            got = await proxy.ask("chat", stream=stream, tools=tools, x_own=1, temperature=0.5)
            assert got.status == 200
        bodies = [post.body for post in proxy.server.posts]
        assert ["x_own" in body for body in bodies[:2]] == [True, False]
        assert not any("x_own" in body for body in bodies[1:]) and all(body["temperature"] == 0.5 for body in bodies)

    run(story, UNEXPECTED, json_answer(chat("Hello")))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_refusal_of_what_is_asked_for_reaches_the_client(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=False)
        assert got.status == 422 and len(proxy.server.posts) == 1

    run(story, answer(422, b'{"detail": "Unexpected fields in the request: {\'messages\'}"}'))


REFUSALS = {
    '{"detail": "Unexpected fields in the request: {\'x_own\'}"}': {"x_own"},
    '{"detail": [{"type": "extra_forbidden", "loc": ["body", "x_own"], "msg": "Extra inputs are not permitted"}]}': {
        "x_own"
    },
    '{"error": {"message": "Unknown parameter: \'x_own\'.", "param": "x_own"}}': {"x_own"},
    '{"error": {"message": "x_own: Extra inputs are not permitted"}}': {"x_own"},
    '{"error": {"message": "Unsupported parameter: \'temperature\'"}}': set(),
    '{"error": {"message": "x_own is too large"}}': set(),
    '{"error": {"message": "store is not for you"}}': {"store"},
}


@pytest.mark.parametrize("said", REFUSALS)
def test_the_fields_are_found_in_the_server_s_words(said: str) -> None:
    body = {"model": "m", "messages": [], "temperature": 1, "x_own": 1, "store": True}
    assert refused_fields(StatusError("no", 422, said, None), body) == REFUSALS[said]
    assert refused_fields(StatusError("no", 500, said, None), body) == set()


HOLDING = {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "json_schema", "ebnf", "regex"}


@pytest.mark.parametrize("server", SERVERS)
def test_what_holds_a_model_to_its_tools_is_never_left_out(server: str) -> None:
    held = SERVERS[server](grammar(BOTH, choice="required"))[0]
    for name in {*held, *HOLDING} - {"parallel_tool_calls"}:  # which holds it to nothing that is not looked at again
        error = StatusError("no", 400, f"Unexpected symbol in {name}; unknown rule 'x'", None)
        assert refused_fields(error, {"model": "m", "messages": [], name: {}}) == set(), name
