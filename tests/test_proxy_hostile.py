"""Hostile requests to the proxy: an answer or a clear rejection, never an internal error."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from support.loopback import chat, chunked, events, json_answer, silence
from support.proxied import Proxied, build_request
from test_proxy import RIGHT, run

NO_CALLS: list[Any] = [[None], {"a": 1}, 7, [{"id": [], "function": []}]]


@pytest.mark.parametrize("calls", NO_CALLS)
def test_calls_of_wrong_types_in_the_history_do_not_fail_the_proxy(calls: Any) -> None:
    async def story(proxy: Proxied) -> None:
        history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": calls}]
        response = await proxy.ask("chat", stream=True, messages=history)
        assert response.status == 200

    run(story, RIGHT)


@pytest.mark.parametrize("odd", ["\ud800", 10**40])
def test_a_response_that_cannot_be_written_as_json_is_stored(odd: Any) -> None:
    async def story(proxy: Proxied) -> None:
        given = [{"role": "user", "content": "Hi \ud800" if odd == "\ud800" else "Hi", "odd": odd}]
        response = await proxy.ask("responses", stream=False, input=given)
        assert (response.status, response.reply.content) == (200, "Hello")

    run(story, json_answer(chat("Hello")))


@pytest.mark.parametrize("tools", [True, False])
def test_a_compressed_body_is_decompressed_and_a_falsely_labelled_one_is_rejected(tools: bool) -> None:
    async def story(proxy: Proxied) -> None:
        path, body = build_request("chat", stream=False, tools=tools)
        raw = json.dumps(body).encode()
        head = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        for data, status in ((gzip.compress(raw), 200), (raw, 400)):
            async with proxy.session.post(proxy.proxy.address + path, data=data, headers=head) as response:
                assert response.status == status, await response.text()
        assert len(proxy.server.posts) == 1 and "content-encoding" not in proxy.server.posts[0].headers

    run(story, json_answer(chat("Hello")))


@pytest.mark.parametrize("more", [{}, {"tools": [1], "model": 7}])
def test_completions_are_passed_through_to_a_chat_upstream(more: Any) -> None:
    sent = events(
        {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}
    )

    async def story(proxy: Proxied) -> None:
        body = {"model": "m", "prompt": "x", "stream": True, **more}
        async with proxy.session.post(proxy.proxy.address + "/v1/completions?a=%26%23", json=body) as response:
            assert (response.status, await response.read()) == (200, b"".join(sent))
        assert proxy.server.posts[0].path == "/v1/completions?a=%26%23" and proxy.server.posts[0].body == body

    run(story, chunked(sent))


def test_keep_alives_are_sent_while_completions_are_awaited() -> None:
    async def story(proxy: Proxied) -> None:
        body = {"model": "m", "prompt": "x", "stream": True}
        async with proxy.session.post(proxy.proxy.address + "/v1/completions", json=body) as response:
            assert (await response.content.readany()).startswith(b":")

    run(story, silence, hold_headers=0.05, keep_alive=0.05)


def test_a_gemini_stream_without_sse_is_a_json_array() -> None:
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}

    async def story(proxy: Proxied) -> None:
        for tools in (True, False):
            path, body = build_request("gemini", stream=True, tools=tools)
            async with proxy.session.post(proxy.proxy.address + path.partition("?")[0], json=body) as response:
                assert response.content_type == "application/json"
                assert (await response.json())[0]["candidates"][0]["content"]["parts"][0]["text"] == "Hi"

    run(story, chunked(events(chunk, done=False)), api="gemini")


def test_an_invalid_request_head_is_rejected_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(proxy: Proxied) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.proxy.address.rpartition(":")[2]))
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization : Bearer sk-secret\x00\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()

    run(story, RIGHT)
    assert not caplog.records


@pytest.mark.parametrize("model", ["\ud800", "../../x?y#z", "a\r\nb: c", "m" * 5000])
def test_any_model_name_can_be_part_of_the_upstream_path(model: str) -> None:
    async def story(proxy: Proxied) -> None:
        response = await proxy.ask("chat", stream=False, model=model)
        assert response.status == 200
        assert proxy.server.posts[0].path.startswith("/v1beta/models/") and proxy.server.posts[0].path.count("/") == 3

    run(
        story,
        json_answer({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}),
        api="gemini",
    )
