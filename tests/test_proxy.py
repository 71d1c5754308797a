"""The proxy over real sockets: what a client sees of a server that behaves, and of one that does not."""

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
from support.proxied import DIALECTS, Proxied, asked, proxied

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


# -- through as it is --------------------------------------------------------------------------------------------------


def test_a_stream_without_tools_goes_through_byte_for_byte() -> None:
    sent = events({"id": "x", "object": "chat.completion.chunk", "odd": 1, **delta(content="Hi")}, delta("stop"))

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, tools=False, temperature=0.5, odd={"a": 1})
        assert got.data == b"".join(sent)
        assert proxy.server.posts[0].body["odd"] == {"a": 1}
        assert got.headers["x-rightcall-mode"] == "pass"

    run(story, chunked(sent))


@pytest.mark.parametrize("last", [[], [b'data: {"choices": [{"ind']])
def test_a_stream_without_tools_that_breaks_off_is_ended(last: list[bytes]) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, tools=False)
        assert (got.status, got.reply.content, got.reply.finish) == (200, "Hello", "length")
        assert got.data.endswith(b"data: [DONE]\n\n")

    run(story, chunked([*events(*TEXT[:2], done=False), *last], ends=False))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_whole_answer_in_place_of_a_stream_becomes_a_stream(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True, tools=False)
        assert (got.status, got.reply.content, got.wrong) == (200, "Hello", [])

    run(story, json_answer(chat("Hello")))


def test_the_server_s_own_error_and_its_wait_reach_the_client() -> None:
    async def story(proxy: Proxied) -> None:
        for tools in (False, True):
            got = await proxy.ask("messages", stream=True, tools=tools)
            assert (got.status, got.headers["retry-after"]) == (429, "7")
            assert "slow down" in json.loads(got.data)["error"]["message"]

    run(story, json_answer({"error": {"message": "slow down"}}, 429, Retry_After="7"))


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", DIALECTS)
def test_a_call_that_a_server_left_in_its_text_is_a_call(api: Api, stream: bool) -> None:
    pieces = [delta(content=LEAK[at : at + 7]) for at in range(0, len(LEAK), 7)]
    said = chunked(events(*pieces, delta("stop"))) if stream else json_answer(chat(LEAK))

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=stream)
        assert (got.status, made(got.reply), got.wrong) == (200, OSLO, [])
        assert got.reply.content == ""

    run(story, said)


@pytest.mark.parametrize("api", DIALECTS)
def test_blank_text_before_a_call_is_held_back(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True)
        assert (made(got.reply), got.reply.content, got.wrong) == (OSLO, "", [])
        assert b"\\n\\n" not in got.data

    run(story, chunked(events(delta(content="\n\n"), *WEATHER)))


def test_text_flows_before_the_answer_is_over() -> None:
    gate = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        rest = b"".join(events(*WEATHER))
        writer.write(b"%x\r\n%b\r\n" % (len(rest), rest))

    async def story(proxy: Proxied) -> None:
        path, body = asked("messages", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
            seen = b""
            while b"let me look" not in seen:
                seen += await got.content.readany()
            assert b"tool_use" not in seen
            gate.set()
            assert b"tool_use" in seen + await got.read()

    run(story, chunked(events(delta(content="Well, let me look"), done=False), then=wait))


def test_arguments_flow_live_where_that_is_asked_for() -> None:
    gate = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        rest = b"".join(events(call_delta('o"}'), delta("tool_calls")))
        writer.write(b"%x\r\n%b\r\n" % (len(rest), rest))

    async def story(proxy: Proxied) -> None:
        path, body = asked("chat", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
            seen = b""
            while b"Osl" not in seen:
                seen += await got.content.readany()
            gate.set()
            seen += await got.read()
        assert seen.count(b'"name":"get_weather"') == 1 and seen.endswith(b"data: [DONE]\n\n")

    begin = events(call_delta("", "get_weather", "call_a"), call_delta('{"city": "Osl'), done=False)
    run(story, chunked(begin, then=wait), stream_calls="live")


# -- asked again -------------------------------------------------------------------------------------------------------

WRONG = chunked(events(call_delta('{"city": 5', "get_weather", "call_a"), call_delta(', "x": [}'), delta("tool_calls")))
BREAKS_SCHEMA = chunked(events(call_delta('{"days": "many"}', "get_weather", "call_a"), delta("tool_calls")))
RIGHT = chunked(events(*WEATHER))


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("tools", [True, False])
def test_a_program_need_not_say_that_its_body_is_json(api: Api, tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        path, body = asked(api, stream=False, tools=tools)
        posted = proxy.session.post(
            proxy.proxy.address + path, data=json.dumps(body).encode(), skip_auto_headers=["Content-Type"]
        )
        async with posted as answer:
            assert answer.status == 200, await answer.text()
            assert read(await answer.json(), api=api).content == "Hello"

    run(story, json_answer(chat("Hello")))


@pytest.mark.parametrize("api", DIALECTS)
def test_a_call_that_cannot_be_trusted_is_asked_for_again_with_what_was_wrong(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True)
        assert (got.status, made(got.reply), got.headers["x-rightcall-retries"]) == (200, OSLO, "1")
        told = proxy.server.posts[1].body["messages"]
        assert told[-1]["role"] == "tool" and "city" in told[-1]["content"]
        assert told[-1]["tool_call_id"] == told[-2]["tool_calls"][0]["id"]

    run(story, BREAKS_SCHEMA, RIGHT)


def test_a_call_that_only_breaks_its_schema_is_passed_on_when_retries_are_spent() -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True)
        assert made(got.reply) == [("get_weather", {"days": "many"})]
        assert got.headers["x-rightcall-gave-up"] == "pass" and got.headers["x-rightcall-retries"] == "1"
        assert "missing" in got.headers["x-rightcall-problems"]

    run(story, BREAKS_SCHEMA, max_retries=1)


@pytest.mark.parametrize(("wrong", "settings"), [(BREAKS_SCHEMA, {"give_up": "error"}), (WRONG, {})])
@pytest.mark.parametrize("api", DIALECTS)
def test_what_must_not_go_on_is_a_400_before_the_first_byte(api: Api, wrong: Answering, settings: Any) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True)
        assert got.status == 400
        assert "cannot be trusted" in got.data.decode()

    run(story, wrong, max_retries=1, **settings)


@pytest.mark.parametrize("api", DIALECTS)
def test_after_text_a_wrong_call_is_left_out_and_the_stream_ends_once(api: Api) -> None:
    said = events(delta(content="Let me look."), call_delta('{"city": [', "get_weather", "c"), delta("tool_calls"))

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True)
        assert (got.status, made(got.reply), got.reply.content, got.wrong) == (200, [], "Let me look.", [])
        assert len(proxy.server.posts) == 1

    run(story, chunked(said))


def test_a_call_truncated_by_the_clients_limit_is_reported_and_not_retried() -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, max_tokens=5)
        assert (got.status, made(got.reply), got.reply.finish) == (200, [], "length")
        assert len(proxy.server.posts) == 1

    run(story, chunked(events(call_delta('{"city": "Os', "get_weather", "c"), delta("length"))))


def test_a_demanded_call_is_asked_for_until_it_comes() -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, tool_choice="required")
        assert (made(got.reply), got.reply.content) == (OSLO, "")

    run(story, chunked(events(*TEXT)), RIGHT)


def test_no_call_goes_out_where_none_may_be_made() -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, tool_choice="none")
        assert (made(got.reply), got.wrong) == ([], [])

    run(story, RIGHT)


@pytest.mark.parametrize("stream", [True, False])
def test_one_call_goes_out_where_one_is_allowed(stream: bool) -> None:
    calls = (("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Rome"}'))
    pieces = [call_delta(given, name, f"c{at}", at) for at, (name, given) in enumerate(calls)]
    said = chunked(events(*pieces, delta("tool_calls"))) if stream else json_answer(chat(calls=calls))

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=stream, parallel_tool_calls=False)
        assert made(got.reply) == OSLO

    run(story, said)


# -- servers that fail -------------------------------------------------------------------------------------------------


def test_a_stream_that_breaks_before_anything_went_out_is_asked_for_again() -> None:
    broken = chunked(events(call_delta('{"city": "Os', "get_weather", "c"), done=False), ends=False)

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True)
        assert (got.status, made(got.reply)) == (200, OSLO)

    run(story, broken, RIGHT)


@pytest.mark.parametrize("api", DIALECTS)
def test_a_stream_that_breaks_after_text_ends_properly(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask(api, stream=True)
        assert (got.status, got.reply.content, got.wrong) == (200, "Hello", [])

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
def test_a_server_that_answers_with_nonsense_is_a_clear_error(wrong: Answering, tools: bool, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("responses", stream=stream, tools=tools)
        assert got.status in (422, 500, 502)
        assert json.loads(got.data)["error"]["message"]

    run(story, wrong)


def test_another_server_takes_over_before_the_first_byte() -> None:
    async def go() -> None:
        async with serving(RIGHT) as server:
            gone = UpstreamSettings(url="http://127.0.0.1:9", name="gone")
            there = UpstreamSettings(url=server.url, name="there")
            settings = ProxySettings(upstream=(gone, there), port=0, mode="native")
            async with Proxy(settings) as proxy, aiohttp.ClientSession() as session:
                got = await Proxied(proxy, server, session).ask("chat", stream=True)
                assert (got.status, made(got.reply), got.headers["x-rightcall-upstream"]) == (200, OSLO, "there")

    asyncio.run(go())


def test_a_silent_server_is_waited_for_with_signs_of_life() -> None:
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.6)
        await RIGHT(writer)

    async def story(proxy: Proxied) -> None:
        for api in DIALECTS:
            got = await proxy.ask(api, stream=True)
            assert (got.status, made(got.reply), got.wrong) == (200, OSLO, []), api

    run(story, late, hold_headers=0.1, keep_alive=0.1)


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("refused", [False, True])
def test_the_head_goes_out_while_the_server_has_not_even_begun(tools: bool, refused: bool) -> None:
    may_answer = asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        await may_answer.wait()
        await (json_answer({"error": {"message": "no room"}}, 500) if refused else RIGHT)(writer)

    async def story(proxy: Proxied) -> None:
        path, body = asked("chat", stream=True, tools=tools)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
            assert got.status == 200 and (await got.content.readany()).startswith(b":")
            may_answer.set()
            data = await got.content.read()
        assert (b"no room" in data) is refused and (b"get_weather" in data) is not refused
        assert data.endswith(b"data: [DONE]\n\n")

    run(story, late, hold_headers=0.1, keep_alive=0.1)


def test_a_client_that_leaves_ends_the_server_s_work() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        await chunked(events(delta(content="Hello, I will look"), done=False), ends=False)(writer)
        while True:
            writer.write(b"%x\r\n%b\r\n" % (len(b": wait\n\n"), b": wait\n\n"))
            await writer.drain()
            await asyncio.sleep(0.02)

    async def story(proxy: Proxied) -> None:
        path, body = asked("chat", stream=True)
        async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
            await got.content.readany()
        await asyncio.wait_for(proxy.server.gone.wait(), 20)

    run(story, endless)


def test_failed_and_abandoned_requests_leave_no_state() -> None:
    broken = chunked(events(*TEXT[:2], done=False), ends=False)

    def busy() -> list[str]:
        """Tasks that are more than a connection which waits for its next request."""
        return [name for task in asyncio.all_tasks() if "RequestHandler.start" not in (name := repr(task.get_coro()))]

    async def story(proxy: Proxied) -> None:
        await proxy.ask("chat", stream=True)
        before = len(busy())
        await asyncio.gather(*[proxy.ask(api, stream=True) for api in DIALECTS for _ in range(6)])
        for _ in range(100):
            if len(busy()) <= before:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(busy())

    run(story, broken, keep_alive=0.05, hold_headers=0.01)


# -- what clients do ---------------------------------------------------------------------------------------------------


def test_the_routes_that_clients_use() -> None:
    async def story(proxy: Proxied) -> None:
        async def status(method: str, path: str, **options: Any) -> int:
            async with proxy.session.request(method, proxy.proxy.address + path, **options) as got:
                await got.read()
                return got.status

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


def test_a_conversation_goes_on_from_a_response_that_is_kept() -> None:
    async def story(proxy: Proxied) -> None:
        first = await proxy.ask("responses", stream=False)
        body = json.loads(first.data)
        call = body["output"][-1]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "4 degrees"}
        got = await proxy.ask("responses", stream=False, previous_response_id=body["id"], input=[output])
        assert got.status == 200
        roles = [message["role"] for message in proxy.server.posts[1].body["messages"]]
        assert roles == ["user", "assistant", "tool"]
        lost = await proxy.ask("responses", stream=False, previous_response_id="resp_none", input=[output])
        assert lost.status == 400

    run(story, json_answer(chat(calls=(("get_weather", '{"city": "Oslo"}'),), finish="tool_calls")))


def test_ids_are_new_in_the_conversation() -> None:
    history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
        ]},
        {"role": "tool", "tool_call_id": "call_a", "content": "mild"},
    ]  # fmt: skip

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True, messages=history)
        assert got.reply.calls[0].id not in ("", "call_a")

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


def test_keys_go_to_the_server_they_are_meant_for() -> None:
    async def story(proxy: Proxied) -> None:
        await proxy.ask("messages", stream=True, headers={"x-api-key": "sk-client"})
        assert proxy.server.posts[0].headers["authorization"] == "Bearer sk-client"
        assert "x-api-key" not in proxy.server.posts[0].headers

    run(story, RIGHT)


def test_tools_of_other_kinds_are_no_reason_to_refuse_a_request() -> None:
    tools = [
        {"type": "custom", "name": "apply_patch", "description": "A patch.", "format": {"type": "text"}},
        {"type": "web_search", "external_web_access": False},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close", "parameters": {}}]},
    ]
    called = chunked(events(call_delta('{"input": "*** Begin"}', "apply_patch", "call_p"), delta("tool_calls")))

    async def story(proxy: Proxied) -> None:
        path, body = asked("responses", stream=True, tools=False)
        async with proxy.session.post(proxy.proxy.address + path, json={**body, "tools": tools}) as got:
            data = (await got.read()).decode()
        assert got.status == 200 and '"custom_tool_call"' in data and "*** Begin" in data
        offered = [each["function"]["name"] for each in proxy.server.posts[0].body["tools"]]
        assert "apply_patch" in offered and len(offered) == 2
        assert "web_search" in got.headers["x-rightcall-warnings"]

    run(story, called)


def test_a_server_that_falls_silent_in_the_middle_is_not_waited_for_without_end() -> None:
    async def mute(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(40)

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True)
        assert (got.status, got.reply.content, got.reply.finish, got.wrong) == (200, "Well, let me look", "length", [])

    said = chunked(events(delta(content="Well, let me look"), done=False), then=mute)
    run(story, said, idle_seconds=0.3)


def test_one_stream_has_one_id_whether_its_chunks_are_the_server_s_or_ours() -> None:
    head = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 5, "model": "m"}
    said = [{**head, **delta(content=f"word {at}, ")} for at in range(20)]

    async def story(proxy: Proxied) -> None:
        got = await proxy.ask("chat", stream=True)
        chunks = [json.loads(line[6:]) for line in got.data.decode().splitlines() if line.startswith("data: {")]
        assert len(chunks) > 5 and {chunk["id"] for chunk in chunks} == {"chatcmpl-7"}

    run(story, chunked(events(*said, {**head, **delta("stop")})))


# -- what is left ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_request_made_goes_with_it_without_the_collector(stream: bool, tools: bool) -> None:
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
