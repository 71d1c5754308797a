"""The proxy with faulty servers: a correct answer or a clear error, and every stream ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from rightcall.api_names import Api
from support.loopback import Answering, answer, chat, chunked, delta, events
from support.proxied import DIALECTS, Proxied, build_request, parse_response
from test_proxy import TEXT, run

Json = dict[str, Any]
ODD = ["101 X\r\nUpgrade: websocket\r\nConnection: upgrade", "099 X", "204 X", "600 X", "999 X"]
HEAD = "Content-Length: 0\r\nConnection: close\r\n\r\n"


def raw_answer(text: str) -> Answering:
    async def write_raw(writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode())

    return write_raw


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", ODD)
def test_an_invalid_status_is_reported_as_a_bad_gateway(status: str, stream: bool, tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=stream, tools=tools)
        assert response.status == 502, response

    run(story, raw_answer(f"HTTP/1.1 {status}\r\n{HEAD}"))


@pytest.mark.parametrize("tools", [True, False])
def test_invalid_utf8_is_replaced(tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tools=tools)
        assert (response.status, response.reply.content) == (200, "a\ufffdb")

    chunk = json.dumps(delta(content="a?b")).encode().replace(b"?", b"\xff")
    run(story, chunked([b"data: " + chunk + b"\n\n", *events(delta("stop"))]))


@pytest.mark.parametrize("cut", [1, 7, 4000])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("has_text", [True, False])
def test_a_stream_without_a_finish_reason_gets_one(has_text: bool, end: str, cut: int) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=True, tools=False)
        assert (response.reply.content, response.reply.finish) == ("Hello" if has_text else "", "length")
        assert response.data.count(b"[DONE]") == 1 and response.data.endswith(b"data: [DONE]\n\n")

    sent = b"".join(events(*TEXT[: 2 * has_text], end=end))
    run(story, chunked([sent[at : at + cut] for at in range(0, len(sent), cut)]))


def test_a_message_without_a_stop_reason_gets_one() -> None:
    begin = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}

    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("messages", stream=True, tools=False)
        assert (response.reply.content, response.reply.finish) == ("Hello", "length")
        assert response.data.count(b"event: content_block_stop") == response.data.count(b"event: message_stop") == 1

    run(story, chunked(events(begin, block, text, {"type": "message_stop"}, done=False)), api="messages")


RESPONSE: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
ITEM: Json = {"id": "msg_1", "type": "message", "role": "assistant"}
TEXT_ITEM: Json = {**ITEM, "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}
AT: Json = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
TEXT_EVENTS: dict[Api, list[Json]] = {  # an answer as text, without its end
    "responses": [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}},
        {"type": "response.output_text.delta", **AT, "delta": "Hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": TEXT_ITEM},
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_stop", "index": 0},
    ],
    "chat": TEXT[:2],
}
COMPLETED: Json = {**RESPONSE, "output": [TEXT_ITEM]}
ENDS: list[tuple[Api, list[Json]]] = [  # each of them is sufficient
    ("chat", [delta("stop")]),
    ("chat", [{"choices": []}]),  # followed by [DONE]
    ("responses", []),
    ("responses", [{"type": "response.completed", "response": COMPLETED}]),
    ("responses", [{"type": "response.done", "response": COMPLETED}]),
    ("messages", []),
    ("messages", [{"type": "message_stop"}]),
    ("messages", [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]),
]


@pytest.mark.parametrize("api, end", ENDS)
def test_complete_text_is_a_whole_answer_without_the_final_event(api: Api, end: list[Json]) -> None:
    async def story(proxy: Proxied) -> None:
        for client in DIALECTS:
            response = await proxy.ask(client, stream=True)
            assert (response.reply.content, response.reply.finish, response.wrong) == ("Hello", "stop", []), (
                client,
                response,
            )

    run(story, chunked(events(*TEXT_EVENTS[api], *end, done=api == "chat")), api=api)


@pytest.mark.parametrize("api", TEXT_EVENTS)
def test_truncated_text_has_the_finish_reason_of_truncation(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        for client in DIALECTS:
            response = await proxy.ask(client, stream=True)
            assert (response.reply.content, response.reply.finish, response.wrong) == ("Hello", "length", []), (
                client,
                response,
            )

    kept = TEXT_EVENTS[api] if api == "chat" else TEXT_EVENTS[api][:-1]
    run(story, chunked(events(*kept, done=False)), api=api)
    if api != "chat":
        run(story, chunked(events(*TEXT_EVENTS[api], done=False), ends=False), api=api)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_text_response_without_tools_gets_its_end(is_whole: bool) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("responses", stream=True, tools=False)
        assert (response.reply.content, response.reply.finish) == ("Hello", "stop" if is_whole else "length")
        *_, last = [json.loads(line[6:]) for line in response.data.splitlines() if line.startswith(b"data: ")]
        assert last["response"]["output"] == [TEXT_ITEM if is_whole else {**TEXT_ITEM, "status": "incomplete"}]

    text_done = {"type": "response.output_text.done", **AT, "text": "Hello"}
    begin = TEXT_EVENTS["responses"][:-1]
    run(
        story,
        chunked(events(*begin, *([text_done, TEXT_EVENTS["responses"][-1]] if is_whole else []), done=False)),
        api="responses",
    )


@pytest.mark.parametrize("wrong", [answer(200, b"<html>"), answer(200, b"null"), chunked(events({"error": "no room"}))])
@pytest.mark.parametrize("stream", [True, False])
def test_an_invalid_answer_without_tools_is_an_error(wrong: Answering, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        assert (await proxy.ask("chat", stream=stream, tools=False)).status == 502

    run(story, wrong)


def test_a_stream_in_place_of_a_whole_answer_is_read_without_tools_too() -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=False, tools=False)
        assert (response.status, response.reply.content, response.wrong) == (200, "Hello", [])

    run(story, chunked(events(*TEXT)))


def test_a_request_on_a_closed_connection_is_repeated() -> None:
    async def story(proxy: Proxied) -> None:
        path, body = build_request("chat", stream=False)
        for _ in range(20):
            async with proxy.session.post(proxy.proxy.address + path, json=body) as http_response:
                assert http_response.status == 200, await http_response.text()

    whole = json.dumps(chat("Hello"))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(whole)}\r\n\r\n"
    run(story, raw_answer(head + whole))


@pytest.mark.parametrize("tools", [True, False])
def test_a_stopping_proxy_ends_the_active_streams(tools: bool) -> None:
    async def stuck(writer: asyncio.StreamWriter) -> None:
        begin = chunked(events(delta(content="Well, let me look"), done=False), ends=False)
        await begin(writer)
        await asyncio.sleep(40)

    async def story(proxy: Proxied) -> None:
        open_streams = [await begin(proxy, api) for api in DIALECTS]
        await proxy.proxy.__aexit__()
        for api, answered, data in open_streams:
            response = parse_response(api, answered.status, {}, data + await answered.content.read(), stream=True)
            assert (response.reply.content, response.reply.finish) == ("Well, let me look", "length"), (api, response)

    async def begin(proxy: Proxied, api: Api) -> tuple[Api, aiohttp.ClientResponse, bytes]:
        path, body = build_request(api, stream=True, tools=tools)
        answered = await proxy.session.post(proxy.proxy.address + path, json=body)
        return api, answered, await answered.content.readany()

    run(story, stuck, stop_seconds=0.1)
