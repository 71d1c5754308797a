"""The proxy over real sockets: what a client receives from correct and from faulty servers."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from rightcall import read
from rightcall.api_names import Api
from rightcall.serve.proxy import Proxy
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from support.loopback import (
    WEATHER,
    Answering,
    answer,
    call_delta,
    chat,
    chunked,
    delta,
    drop,
    events,
    json_answer,
    serving,
)
from support.proxied import DIALECTS, Proxied, build_request, proxied

OSLO = [("get_weather", {"city": "Oslo"})]
LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TEXT = [delta(content="Hel"), delta(content="lo"), delta("stop")]


def run(story: Callable[[Proxied], Awaitable[None]], *answers: Answering, **settings: Any) -> None:
    async def go() -> None:
        async with asyncio.timeout(50), proxied(*answers, **settings) as proxy:
            await story(proxy)

    asyncio.run(go())


def made(reply: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in reply.calls]


# -- passed through unchanged ------------------------------------------------------------------------------------------


def test_a_stream_without_tools_is_passed_through_byte_for_byte() -> None:
    sent = events({"id": "x", "object": "chat.completion.chunk", "odd": 1, **delta(content="Hi")}, delta("stop"))

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tools=False, temperature=0.5, odd={"a": 1})
        assert response.data == b"".join(sent)
        assert proxy.server.posts[0].body["odd"] == {"a": 1}
        assert response.headers["x-rightcall-mode"] == "pass"

    run(story, chunked(sent))


@pytest.mark.parametrize("last", [[], [b'data: {"choices": [{"ind']])
def test_a_truncated_stream_without_tools_gets_a_proper_end(last: list[bytes]) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tools=False)
        assert (response.status, response.reply.content, response.reply.finish) == (200, "Hello", "length")
        assert response.data.endswith(b"data: [DONE]\n\n")

    run(story, chunked([*events(*TEXT[:2], done=False), *last], ends=False))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_whole_answer_in_place_of_a_stream_is_sent_as_a_stream(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True, tools=False)
        assert (response.status, response.reply.content, response.wrong) == (200, "Hello", [])

    run(story, json_answer(chat("Hello")))


def test_an_error_of_the_server_and_its_retry_after_reach_the_client() -> None:
    async def story(proxy: Proxied) -> None:
        for tools in (False, True):
            response = await proxy.ask("messages", stream=True, tools=tools)
            assert (response.status, response.headers["retry-after"]) == (429, "7")
            assert "slow down" in json.loads(response.data)["error"]["message"]

    run(story, json_answer({"error": {"message": "slow down"}}, 429, Retry_After="7"))


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", DIALECTS)
def test_a_call_in_the_text_of_a_server_becomes_a_call(api: Api, stream: bool) -> None:
    pieces = [delta(content=LEAK[at : at + 7]) for at in range(0, len(LEAK), 7)]
    server_answer = chunked(events(*pieces, delta("stop"))) if stream else json_answer(chat(LEAK))

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=stream)
        assert (response.status, made(response.reply), response.wrong) == (200, OSLO, [])
        assert response.reply.content == ""

    run(story, server_answer)


@pytest.mark.parametrize("api", DIALECTS)
def test_blank_text_before_a_call_is_held_back(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True)
        assert (made(response.reply), response.reply.content, response.wrong) == (OSLO, "", [])
        assert b"\\n\\n" not in response.data

    run(story, chunked(events(delta(content="\n\n"), *WEATHER)))


def test_text_is_streamed_before_the_answer_is_complete() -> None:
    gate = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        rest = b"".join(events(*WEATHER))
        writer.write(b"%x\r\n%b\r\n" % (len(rest), rest))

    async def story(proxy: Proxied) -> None:
        path, body = build_request("messages", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as response:
            seen = b""
            while b"let me look" not in seen:
                seen += await response.content.readany()
            assert b"tool_use" not in seen
            gate.set()
            assert b"tool_use" in seen + await response.read()

    run(story, chunked(events(delta(content="Well, let me look"), done=False), then=wait))


def test_arguments_are_streamed_with_live_calls() -> None:
    gate = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        rest = b"".join(events(call_delta('o"}'), delta("tool_calls")))
        writer.write(b"%x\r\n%b\r\n" % (len(rest), rest))

    async def story(proxy: Proxied) -> None:
        path, body = build_request("chat", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as response:
            seen = b""
            while b"Osl" not in seen:
                seen += await response.content.readany()
            gate.set()
            seen += await response.read()
        assert seen.count(b'"name":"get_weather"') == 1 and seen.endswith(b"data: [DONE]\n\n")

    begin = events(call_delta("", "get_weather", "call_a"), call_delta('{"city": "Osl'), done=False)
    run(story, chunked(begin, then=wait), stream_calls="live")


# -- retries -----------------------------------------------------------------------------------------------------------

WRONG = chunked(events(call_delta('{"city": 5', "get_weather", "call_a"), call_delta(', "x": [}'), delta("tool_calls")))
BREAKS_SCHEMA = chunked(events(call_delta('{"days": "many"}', "get_weather", "call_a"), delta("tool_calls")))
RIGHT = chunked(events(*WEATHER))


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("tools", [True, False])
def test_a_request_body_is_json_even_without_a_content_type(api: Api, tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        path, body = build_request(api, stream=False, tools=tools)
        posted = proxy.session.post(
            proxy.proxy.address + path, data=json.dumps(body).encode(), skip_auto_headers=["Content-Type"]
        )
        async with posted as answer:
            assert answer.status == 200, await answer.text()
            assert read(await answer.json(), api=api).content == "Hello"

    run(story, json_answer(chat("Hello")))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_rejected_call_is_retried_with_its_problem(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True)
        assert (response.status, made(response.reply), response.headers["x-rightcall-retries"]) == (200, OSLO, "1")
        messages = proxy.server.posts[1].body["messages"]
        assert messages[-1]["role"] == "tool" and "city" in messages[-1]["content"]
        assert messages[-1]["tool_call_id"] == messages[-2]["tool_calls"][0]["id"]

    run(story, BREAKS_SCHEMA, RIGHT)


def test_a_call_that_only_violates_its_schema_is_passed_on_when_retries_are_exhausted() -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True)
        assert made(response.reply) == [("get_weather", {"days": "many"})]
        assert response.headers["x-rightcall-gave-up"] == "pass" and response.headers["x-rightcall-retries"] == "1"
        assert "missing" in response.headers["x-rightcall-problems"]

    run(story, BREAKS_SCHEMA, max_retries=1)


@pytest.mark.parametrize(("wrong", "settings"), [(BREAKS_SCHEMA, {"give_up": "error"}), (WRONG, {})])
@pytest.mark.parametrize("api", DIALECTS)
def test_a_rejected_call_without_retries_left_is_a_400_before_the_first_byte(
    api: Api, wrong: Answering, settings: Any
) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True)
        assert response.status == 400
        assert "cannot be trusted" in response.data.decode()

    run(story, wrong, max_retries=1, **settings)


@pytest.mark.parametrize("api", DIALECTS)
def test_a_rejected_call_after_text_is_omitted_and_the_stream_ends_once(api: Api) -> None:
    pieces = events(delta(content="Let me look."), call_delta('{"city": [', "get_weather", "c"), delta("tool_calls"))

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True)
        assert (response.status, made(response.reply), response.reply.content, response.wrong) == (
            200,
            [],
            "Let me look.",
            [],
        )
        assert len(proxy.server.posts) == 1

    run(story, chunked(pieces))


def test_a_call_truncated_by_the_clients_limit_is_reported_and_not_retried() -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, max_tokens=5)
        assert (response.status, made(response.reply), response.reply.finish) == (200, [], "length")
        assert len(proxy.server.posts) == 1

    run(story, chunked(events(call_delta('{"city": "Os', "get_weather", "c"), delta("length"))))


def test_a_required_call_is_retried_until_it_is_made() -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tool_choice="required")
        assert (made(response.reply), response.reply.content) == (OSLO, "")

    run(story, chunked(events(*TEXT)), RIGHT)


def test_no_call_is_sent_with_tool_choice_none() -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tool_choice="none")
        assert (made(response.reply), response.wrong) == ([], [])

    run(story, RIGHT)


@pytest.mark.parametrize("stream", [True, False])
def test_one_call_is_sent_without_parallel_calls(stream: bool) -> None:
    calls = (("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Rome"}'))
    pieces = [call_delta(given, name, f"c{at}", at) for at, (name, given) in enumerate(calls)]
    server_answer = chunked(events(*pieces, delta("tool_calls"))) if stream else json_answer(chat(calls=calls))

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=stream, parallel_tool_calls=False)
        assert made(response.reply) == OSLO

    run(story, server_answer)


# -- failing servers ---------------------------------------------------------------------------------------------------


def test_a_stream_that_breaks_before_any_output_is_retried() -> None:
    broken = chunked(events(call_delta('{"city": "Os', "get_weather", "c"), done=False), ends=False)

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True)
        assert (response.status, made(response.reply)) == (200, OSLO)

    run(story, broken, RIGHT)


@pytest.mark.parametrize("api", DIALECTS)
def test_a_stream_that_breaks_after_text_ends_properly(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask(api, stream=True)
        assert (response.status, response.reply.content, response.wrong) == (200, "Hello", [])

    run(story, chunked(events(*TEXT[:2], done=False), ends=False))


@pytest.mark.parametrize(
    "wrong",
    [
        drop,
        answer(200, b"<html>not an API</html>", Content_Type="text/html"),
        answer(200, b'{"choices": [{"mess', Content_Type="application/json"),
        answer(200, b"", Content_Type="text/event-stream"),
        answer(302, b"", Location="http://127.0.0.1:1/"),
        chunked([b"data: nonsense\n\n"]),
        chunked([b"data: {" + b"x" * 100_000 + b"\n\n"]),
        json_answer({"error": {"message": "no"}}, 500),
        json_answer({"detail": "no"}, 422),
    ],
)
@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_an_invalid_server_answer_is_a_clear_error(wrong: Answering, tools: bool, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("responses", stream=stream, tools=tools)
        assert response.status in (422, 500, 502)
        assert json.loads(response.data)["error"]["message"]

    run(story, wrong)


def test_the_next_upstream_is_used_if_the_first_is_unreachable() -> None:
    async def go() -> None:
        async with serving(RIGHT) as server:
            gone = UpstreamSettings(url="http://127.0.0.1:9", name="gone")
            there = UpstreamSettings(url=server.url, name="there")
            settings = ProxySettings(upstream=(gone, there), port=0, mode="native")
            async with Proxy(settings) as proxy, aiohttp.ClientSession() as session:
                response = await Proxied(proxy, server, session).ask("chat", stream=True)
                assert (response.status, made(response.reply), response.headers["x-rightcall-upstream"]) == (
                    200,
                    OSLO,
                    "there",
                )

    asyncio.run(go())


def test_keep_alives_are_sent_while_a_server_is_silent() -> None:
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.35)
        await RIGHT(writer)

    async def story(proxy: Proxied) -> None:
        for api in DIALECTS:
            response = await proxy.ask(api, stream=True)
            assert (response.status, made(response.reply), response.wrong) == (200, OSLO, []), api

    run(story, late, hold_headers=0.1, keep_alive=0.1)


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_the_response_head_is_sent_before_the_server_answers(tools: bool, fails: bool) -> None:
    may_answer = asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        await may_answer.wait()
        await (json_answer({"error": {"message": "no room"}}, 500) if fails else RIGHT)(writer)

    async def story(proxy: Proxied) -> None:
        path, body = build_request("chat", stream=True, tools=tools)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as response:
            assert response.status == 200 and (await response.content.readany()).startswith(b":")
            may_answer.set()
            data = await response.content.read()
        assert (b"no room" in data) is fails and (b"get_weather" in data) is not fails
        assert data.endswith(b"data: [DONE]\n\n")

    run(story, late, hold_headers=0.1, keep_alive=0.1)


def test_a_client_disconnect_cancels_the_server_request() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        await chunked(events(delta(content="Hello, I will look"), done=False), ends=False)(writer)
        while True:
            writer.write(b"%x\r\n%b\r\n" % (len(b": wait\n\n"), b": wait\n\n"))
            await writer.drain()
            await asyncio.sleep(0.02)

    async def story(proxy: Proxied) -> None:
        path, body = build_request("chat", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as response:
            await response.content.readany()
        await asyncio.wait_for(proxy.server.client_closed.wait(), 20)

    run(story, endless)


def test_failed_and_abandoned_requests_leave_no_state() -> None:
    broken = chunked(events(*TEXT[:2], done=False), ends=False)

    def busy_tasks() -> list[str]:
        """Return the tasks that are not connections waiting for their next request."""
        return [name for task in asyncio.all_tasks() if "RequestHandler.start" not in (name := repr(task.get_coro()))]

    async def story(proxy: Proxied) -> None:
        await proxy.ask("chat", stream=True)
        before = len(busy_tasks())
        await asyncio.gather(*[proxy.ask(api, stream=True) for api in DIALECTS for _ in range(6)])
        for _ in range(100):
            if len(busy_tasks()) <= before:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(busy_tasks())

    run(story, broken, keep_alive=0.05, hold_headers=0.01)


# -- client behaviour --------------------------------------------------------------------------------------------------


def test_the_routes_of_clients_are_served() -> None:
    async def story(proxy: Proxied) -> None:
        async def status(method: str, path: str, **options: Any) -> int:
            async with proxy.session.request(method, proxy.proxy.address + path, **options) as response:
                await response.read()
                return response.status

        assert await status("HEAD", "/") == 200
        assert await status("GET", "/health") == 200
        assert await status("GET", "/metrics") == 200
        assert await status("GET", "/api/version") == 200
        assert await status("POST", "/v1/responses/compact", json={}) == 400
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
        assert await status("GET", "/v1/responses", headers=upgrade) == 426
        assert await status("POST", "/v1/messages?beta=true", json={"thread": {"type": "create"}}) == 400
        assert await status("POST", "/v1/nothing", json={}) == 404
        assert (
            await status("POST", "/v1/chat/completions", data=b"{", headers={"Content-Type": "application/json"}) == 400
        )

    run(story, RIGHT)


def test_a_conversation_continues_from_a_stored_response() -> None:
    async def story(proxy: Proxied) -> None:
        first = await proxy.ask("responses", stream=False)
        body = json.loads(first.data)
        call = body["output"][-1]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "4 degrees"}
        response = await proxy.ask("responses", stream=False, previous_response_id=body["id"], input=[output])
        assert response.status == 200
        roles = [message["role"] for message in proxy.server.posts[1].body["messages"]]
        assert roles == ["user", "assistant", "tool"]
        lost = await proxy.ask("responses", stream=False, previous_response_id="resp_none", input=[output])
        assert lost.status == 400

    run(story, json_answer(chat(calls=(("get_weather", '{"city": "Oslo"}'),), finish="tool_calls")))


def test_call_ids_are_unique_in_the_conversation() -> None:
    history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
        ]},
        {"role": "tool", "tool_call_id": "call_a", "content": "mild"},
    ]  # fmt: skip

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, messages=history)
        assert response.reply.calls[0].id not in ("", "call_a")

    run(story, RIGHT)


def test_a_poisoned_history_is_sent_repaired_and_a_valid_one_unchanged() -> None:
    entry = {"id": "call_z", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": '}}
    poisoned = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [entry]}]

    async def story(proxy: Proxied) -> None:
        await proxy.ask("chat", stream=True, messages=[*poisoned, {"role": "user", "content": "So?"}])
        sent = proxy.server.posts[0].body["messages"]
        assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {}
        assert sent[2]["role"] == "tool"
        valid = [{"role": "user", "content": "Hi", "cache_control": {"type": "ephemeral"}}]
        await proxy.ask("chat", stream=True, messages=valid)
        assert proxy.server.posts[1].body["messages"] == valid

    run(story, RIGHT)


def test_a_client_key_is_sent_to_its_server_in_the_right_header() -> None:
    async def story(proxy: Proxied) -> None:
        await proxy.ask("messages", stream=True, headers={"x-api-key": "sk-client"})
        assert proxy.server.posts[0].headers["authorization"] == "Bearer sk-client"
        assert "x-api-key" not in proxy.server.posts[0].headers

    run(story, RIGHT)


def test_tools_of_other_kinds_do_not_reject_a_request() -> None:
    tools = [
        {"type": "custom", "name": "apply_patch", "description": "A patch.", "format": {"type": "text"}},
        {"type": "web_search", "external_web_access": False},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close", "parameters": {}}]},
    ]
    called = chunked(events(call_delta('{"input": "*** Begin"}', "apply_patch", "call_p"), delta("tool_calls")))

    async def story(proxy: Proxied) -> None:
        path, body = build_request("responses", stream=True, tools=False)
        async with proxy.session.post(proxy.proxy.address + path, json={**body, "tools": tools}) as response:
            data = (await response.read()).decode()
        assert response.status == 200 and '"custom_tool_call"' in data and "*** Begin" in data
        offered = [each["function"]["name"] for each in proxy.server.posts[0].body["tools"]]
        assert "apply_patch" in offered and len(offered) == 2
        assert "web_search" in response.headers["x-rightcall-warnings"]

    run(story, called)


def test_a_stream_that_stalls_is_ended_after_the_idle_time() -> None:
    async def mute(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(40)

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True)
        assert (response.status, response.reply.content, response.reply.finish, response.wrong) == (
            200,
            "Well, let me look",
            "length",
            [],
        )

    server_answer = chunked(events(delta(content="Well, let me look"), done=False), then=mute)
    run(story, server_answer, idle_seconds=0.3)


def test_a_stream_has_a_single_id() -> None:
    head = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 5, "model": "m"}
    pieces = [{**head, **delta(content=f"word {at}, ")} for at in range(20)]

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True)
        chunks = [json.loads(line[6:]) for line in response.data.decode().splitlines() if line.startswith("data: {")]
        assert len(chunks) > 5 and {chunk["id"] for chunk in chunks} == {"chatcmpl-7"}

    run(story, chunked(events(*pieces, {**head, **delta("stop")})))


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_the_objects_of_a_request_are_freed_without_the_garbage_collector(stream: bool, tools: bool) -> None:
    sent = chunked(events(*TEXT)) if stream else json_answer(chat("Hello."))
    broken = chunked(events(TEXT[0]), ends=False)

    async def story(proxy: Proxied) -> None:
        gc.collect()
        gc.disable()
        try:
            for _ in range(2):
                assert (await proxy.ask("chat", stream=stream, tools=tools)).status in (200, 502)
                await asyncio.sleep(0)
            kinds = {type(each) for each in gc.get_objects()}
            left = {kind.__name__ for kind in kinds if str(kind.__module__).startswith("rightcall.")}
        finally:
            gc.enable()
        assert not left & {"Answering", "AnswerFlow", "ClientAnswer", "ClientAsk", "Stream", "Exchanged"}

    run(story, sent, broken)
