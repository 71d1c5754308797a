"""The proxy before servers that misbehave: a right answer or a clear error, and every stream has its end."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from loopback import Answering, answer, chat, chunked, delta, events
from proxied import DIALECTS, Proxied, asked, got
from rightcall.api_names import Api
from test_proxy import TEXT, run

ODD = ["101 X\r\nUpgrade: websocket\r\nConnection: upgrade", "099 X", "204 X", "600 X", "999 X"]
HEAD = "Content-Length: 0\r\nConnection: close\r\n\r\n"


def said(text: str) -> Answering:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode())

    return say


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", ODD)
def test_a_status_that_is_no_answer_is_told_as_a_bad_gateway(status: str, stream: bool, tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("chat", stream=stream, tools=tools)
        assert told.status == 502, told

    run(story, said(f"HTTP/1.1 {status}\r\n{HEAD}"))


@pytest.mark.parametrize("tools", [True, False])
def test_bytes_that_are_no_text_are_shown_as_such(tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("chat", stream=True, tools=tools)
        assert (told.status, told.reply.content) == (200, "a\ufffdb")

    chunk = json.dumps(delta(content="a?b")).encode().replace(b"?", b"\xff")
    run(story, chunked([b"data: " + chunk + b"\n\n", *events(delta("stop"))]))


@pytest.mark.parametrize("cut", [1, 7, 4000])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("begun", [True, False])
def test_an_end_without_a_finish_is_given_one(begun: bool, end: str, cut: int) -> None:
    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("chat", stream=True, tools=False)
        assert (told.reply.content, told.reply.finish) == ("Hello" if begun else "", "length")
        assert told.data.count(b"[DONE]") == 1 and told.data.endswith(b"data: [DONE]\n\n")

    sent = b"".join(events(*TEXT[: 2 * begun], end=end))
    run(story, chunked([sent[at : at + cut] for at in range(0, len(sent), cut)]))


def test_a_message_that_stops_without_its_reason_is_given_one() -> None:
    begin = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}

    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("messages", stream=True, tools=False)
        assert (told.reply.content, told.reply.finish) == ("Hello", "length")
        assert told.data.count(b"event: content_block_stop") == told.data.count(b"event: message_stop") == 1

    run(story, chunked(events(begin, block, text, {"type": "message_stop"}, done=False)), api="messages")


@pytest.mark.parametrize("wrong", [answer(200, b"<html>"), answer(200, b"null"), chunked(events({"error": "no room"}))])
@pytest.mark.parametrize("stream", [True, False])
def test_without_tools_nonsense_in_place_of_an_answer_is_an_error(wrong: Answering, stream: bool) -> None:
    async def story(proxy: Proxied) -> None:
        assert (await proxy.ask("chat", stream=stream, tools=False)).status == 502

    run(story, wrong)


def test_a_stream_in_place_of_a_whole_answer_becomes_one_without_tools_too() -> None:
    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("chat", stream=False, tools=False)
        assert (told.status, told.reply.content, told.wrong) == (200, "Hello", [])

    run(story, chunked(events(*TEXT)))


def test_a_connection_that_the_server_closes_while_it_is_asked_is_made_again() -> None:
    async def story(proxy: Proxied) -> None:
        path, body = asked("chat", stream=False)
        for _ in range(20):
            async with proxy.session.post(proxy.proxy.address + path, json=body) as got:
                assert got.status == 200, await got.text()

    whole = json.dumps(chat("Hello"))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(whole)}\r\n\r\n"
    run(story, said(head + whole))


@pytest.mark.parametrize("tools", [True, False])
def test_a_proxy_that_stops_ends_the_streams_that_are_under_way(tools: bool) -> None:
    async def stuck(writer: asyncio.StreamWriter) -> None:
        begin = chunked(events(delta(content="Well, let me look"), done=False), ends=False)
        await begin(writer)
        await asyncio.sleep(40)

    async def story(proxy: Proxied) -> None:
        begun = [await begin(proxy, api) for api in DIALECTS]
        await proxy.proxy.__aexit__()
        for api, answered, data in begun:
            told = got(api, answered.status, {}, data + await answered.content.read(), stream=True)
            assert (told.reply.content, told.reply.finish) == ("Well, let me look", "length"), (api, told)

    async def begin(proxy: Proxied, api: Api) -> tuple[Api, aiohttp.ClientResponse, bytes]:
        path, body = asked(api, stream=True, tools=tools)
        answered = await proxy.session.post(proxy.proxy.address + path, json=body)
        return api, answered, await answered.content.readany()

    run(story, stuck, stop_seconds=0.1)
