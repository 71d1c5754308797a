"""The proxy before servers that misbehave: a right answer or a clear error, and every stream has its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from rightcall.api_names import Api
from support.loopback import Answering, answer, chat, chunked, delta, events
from support.proxied import DIALECTS, Proxied, asked, got
from test_proxy import TEXT, run

Json = dict[str, Any]
ODD = ["101 X\r\nUpgrade: websocket\r\nConnection: upgrade", "099 X", "204 X", "600 X", "999 X"]
HEAD = "Content-Length: 0\r\nConnection: close\r\n\r\n"


def said(text: str) -> Answering:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode())

    return say


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", ODD)
def test_a_status_that_is_no_answer_is_reported_as_a_bad_gateway(status: str, stream: bool, tools: bool) -> None:
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


RESPONSE: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
ITEM: Json = {"id": "msg_1", "type": "message", "role": "assistant"}
SAID: Json = {**ITEM, "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}
AT: Json = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
WORDS: dict[Api, list[Json]] = {  # an answer in words, but for its end
    "responses": [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}},
        {"type": "response.output_text.delta", **AT, "delta": "Hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": SAID},
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_stop", "index": 0},
    ],
    "chat": TEXT[:2],
}
COMPLETED: Json = {**RESPONSE, "output": [SAID]}
ENDS: list[tuple[Api, list[Json]]] = [  # of which each is enough for one
    ("chat", [delta("stop")]),
    ("chat", [{"choices": []}]),  # and then [DONE]
    ("responses", []),
    ("responses", [{"type": "response.completed", "response": COMPLETED}]),
    ("responses", [{"type": "response.done", "response": COMPLETED}]),
    ("messages", []),
    ("messages", [{"type": "message_stop"}]),
    ("messages", [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]),
]


@pytest.mark.parametrize("api, end", ENDS)
def test_words_that_have_their_end_are_a_whole_answer_though_the_servers_last_word_is_missing(
    api: Api, end: list[Json]
) -> None:
    async def story(proxy: Proxied) -> None:
        for client in DIALECTS:
            told = await proxy.ask(client, stream=True)
            assert (told.reply.content, told.reply.finish, told.wrong) == ("Hello", "stop", []), (client, told)

    run(story, chunked(events(*WORDS[api], *end, done=api == "chat")), api=api)


@pytest.mark.parametrize("api", WORDS)
def test_truncated_text_has_the_finish_reason_of_truncation(api: Api) -> None:
    async def story(proxy: Proxied) -> None:
        for client in DIALECTS:
            told = await proxy.ask(client, stream=True)
            assert (told.reply.content, told.reply.finish, told.wrong) == ("Hello", "length", []), (client, told)

    kept = WORDS[api] if api == "chat" else WORDS[api][:-1]
    run(story, chunked(events(*kept, done=False)), api=api)
    if api != "chat":
        run(story, chunked(events(*WORDS[api], done=False), ends=False), api=api)


@pytest.mark.parametrize("is_whole", [True, False])
def test_without_tools_a_response_in_words_has_its_end_too(is_whole: bool) -> None:
    async def story(proxy: Proxied) -> None:
        told = await proxy.ask("responses", stream=True, tools=False)
        assert (told.reply.content, told.reply.finish) == ("Hello", "stop" if is_whole else "length")
        *_, last = [json.loads(line[6:]) for line in told.data.splitlines() if line.startswith(b"data: ")]
        assert last["response"]["output"] == [SAID if is_whole else {**SAID, "status": "incomplete"}]

    said = {"type": "response.output_text.done", **AT, "text": "Hello"}
    begin = WORDS["responses"][:-1]
    run(
        story,
        chunked(events(*begin, *([said, WORDS["responses"][-1]] if is_whole else []), done=False)),
        api="responses",
    )


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
