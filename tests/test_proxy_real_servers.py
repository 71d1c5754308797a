"""Observed behaviour of real servers (docs/servers.md) as scripts, and what a client gets from the proxy."""

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
from support.proxied import DIALECTS, SCHEMA, Proxied, build_request, proxied

OSLO = ("get_weather", '{"city": "Oslo"}')
RIGHT = json_answer(chat(calls=(OSLO,), finish="tool_calls"))
PINGS = json_answer(chat(calls=(("ping", "{}"),), finish="tool_calls"))
BOTH = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "ping", "strict": False, "parameters": {"type": "object"}}},
]
NAMED = {"type": "function", "function": {"name": "ping"}}


def run(story: Callable[[Proxied], Awaitable[None]], *answers: Answering, **settings: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(50), proxied(*answers, **settings) as proxy:
            await story(proxy)

    asyncio.run(main())


async def forced_call_names(proxy: Proxied) -> list[str]:
    """Return the tools that a client gets calls of when it forces one by name."""
    path, body = build_request("chat", stream=False, x=1)
    body |= {"tools": BOTH, "tool_choice": NAMED}
    async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
        return [call.name for call in read(await got.json(), api="chat").calls]


def offered_tools(body: dict[str, Any]) -> list[str]:
    return [each["function"]["name"] for each in body["tools"]]


# -- tool_choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "sent_choice"), [("llama.cpp", "required"), ("transformers", None), ("vllm", NAMED)]
)
def test_a_server_that_cannot_force_by_name_is_offered_only_the_named_tool(profile: str, sent_choice: Any) -> None:
    async def story(proxy: Proxied) -> None:
        assert await forced_call_names(proxy) == ["ping"]
        body = proxy.server.posts[0].body
        assert body.get("tool_choice") == sent_choice and body["x"] == 1
        assert offered_tools(body) == (["ping"] if profile != "vllm" else ["get_weather", "ping"])

    run(story, PINGS, profile=profile)


def test_a_retry_after_a_call_of_another_tool_offers_only_the_named_tool() -> None:
    async def story(proxy: Proxied) -> None:
        assert await forced_call_names(proxy) == ["ping"]
        first, second = [post.body for post in proxy.server.posts]
        assert (offered_tools(first), first["tool_choice"]) == (["get_weather", "ping"], NAMED)
        assert (offered_tools(second), second["tool_choice"]) == (["ping"], "required")
        assert second["messages"] == first["messages"]

    run(story, RIGHT, PINGS)


def test_a_rejected_schema_changes_the_mode_of_its_own_request_only() -> None:
    refuses = json_answer({"error": {"message": "Failed to initialize samplers: failed to parse grammar"}}, 400)
    in_text = json_answer(chat('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'))

    async def story(proxy: Proxied) -> None:
        for mode in ("grammar", "native"):
            got = await proxy.ask("chat", stream=False)
            assert ([call.name for call in got.reply.calls], got.headers["x-rightcall-mode"]) == (["get_weather"], mode)

    run(story, refuses, in_text, RIGHT, profile="llama.cpp", mode="auto")


# -- repeated calls ----------------------------------------------------------------------------------------------------


def history(times: int) -> list[dict[str, Any]]:
    """Return a conversation in which the weather of Oslo was requested this many times."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Weather in Oslo?"}]
    for at in range(times):
        call = {"id": f"c{at}", "type": "function", "function": {"name": OSLO[0], "arguments": OSLO[1]}}
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": "9"},
        ]
    return messages


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("stream", [True, False])
def test_a_repeated_call_is_passed_to_the_client_after_the_retries(times: int, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=stream, messages=history(times))
        assert (got.status, [call.name for call in got.reply.calls]) == (200, ["get_weather"])
        assert len(proxy.server.posts) == 3
        assert "[guard: repeated]" in str(proxy.server.posts[1].body["messages"][-1]) or times == 2

    run(story, RIGHT, guard="full")


@pytest.mark.parametrize(("times", "settings"), [(3, {}), (5, {}), (1, {"give_up": "error"})])
def test_an_endless_repetition_is_answered_with_an_error(times: int, settings: dict[str, Any]) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=False, messages=history(times))
        assert got.status == 400 and "same arguments" in got.data.decode()

    run(story, RIGHT, guard="full", **settings)


# -- fields that a server does not accept ------------------------------------------------------------------------------

UNEXPECTED = answer(
    422, b'{"detail": "Unexpected fields in the request: {\'x_own\'}"}', Content_Type="application/json"
)


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_a_field_that_a_server_rejects_is_omitted_from_later_requests(tools: bool, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        for _ in range(2):
            got = await proxy.ask("chat", stream=stream, tools=tools, x_own=1, temperature=0.5)
            assert got.status == 200
        bodies = [post.body for post in proxy.server.posts]
        assert ["x_own" in body for body in bodies[:2]] == [True, False]
        assert not any("x_own" in body for body in bodies[1:]) and all(body["temperature"] == 0.5 for body in bodies)

    run(story, UNEXPECTED, json_answer(chat("Hello")))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_rejection_of_a_required_field_is_passed_to_the_client(api: Api) -> None:
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


@pytest.mark.parametrize("message", REFUSALS)
def test_rejected_fields_are_found_in_the_error_message(message: str) -> None:
    body = {"model": "m", "messages": [], "temperature": 1, "x_own": 1, "store": True}
    assert refused_fields(StatusError("no", 422, message, None), body) == REFUSALS[message]
    assert refused_fields(StatusError("no", 500, message, None), body) == set()


HOLDING = {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "json_schema", "ebnf", "regex"}


@pytest.mark.parametrize("server", SERVERS)
def test_constraint_fields_are_never_omitted(server: str) -> None:
    held = SERVERS[server](grammar(BOTH, choice="required"))[0]
    for name in {*held, *HOLDING} - {"parallel_tool_calls"}:  # This field constrains nothing that is not checked again.
        error = StatusError("no", 400, f"Unexpected symbol in {name}; unknown rule 'x'", None)
        assert refused_fields(error, {"model": "m", "messages": [], name: {}}) == set(), name
