"""Requests that the server rejects are sent again in a form that it accepts.

Each client gets its answer, also with concurrent requests, and the learned form is used for the next request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from rightcall.serve.proxy import Proxy
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from support.loopback import chat

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": SCHEMA}}]
OSLO = chat(calls=(("get_weather", '{"city": "Oslo"}'),))
IN_TEXT = chat('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>')
CALL = {"id": "call_abcdefghijkl", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


class RejectingServer:
    """Rejects bodies for which `wrong` gives a message; the first `together` rejections are sent at the same time."""

    def __init__(self, wrong: Callable[[Json], str], status: int = 400, together: int = 1) -> None:
        self._wrong, self._status, self._together = wrong, status, together
        self._all = asyncio.Event()
        self.bodies: list[Json] = []
        self.refused = 0

    async def answer(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.json_response({"data": [{"id": "m", "owned_by": "vllm"}]})
        body = await request.json()
        self.bodies.append(body)
        message = self._wrong(body)
        if not message:
            return web.json_response(OSLO if body.get("tools") else IN_TEXT)
        self.refused += 1
        if self.refused == self._together:
            self._all.set()
        await self._all.wait()
        return web.json_response({"error": {"message": message, "type": "bad"}}, status=self._status)


@asynccontextmanager
async def proxy_for(server: RejectingServer, **settings: Any) -> AsyncIterator[Callable[..., Any]]:
    """Start a proxy in front of this server and yield a function that sends a request."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream = UpstreamSettings(url=f"http://127.0.0.1:{runner.addresses[0][1]}", api="chat", name="picky")
    try:
        settings_of_proxy = ProxySettings(upstream=(upstream,), port=0, **settings)
        async with Proxy(settings_of_proxy) as proxy, aiohttp.ClientSession() as session:

            async def ask(*messages: Json) -> tuple[int, Json]:
                body = {"model": "m", "messages": list(messages) or [USER], "tools": TOOLS}
                async with session.post(f"{proxy.address}/v1/chat/completions", json=body) as answer:
                    return answer.status, await answer.json()

            yield ask
    finally:
        await runner.cleanup()


USER: Json = {"role": "user", "content": "Weather in Oslo?"}


def rejects_strict(body: Json) -> str:
    return "tools.0.function.strict: Extra inputs are not permitted" if '"strict"' in json.dumps(body) else ""


def rejects_tools(body: Json) -> str:
    return "this model does not support tools" if body.get("tools") else ""


@pytest.mark.parametrize("wrong, mode", [(rejects_strict, "native"), (rejects_tools, "auto")])
def test_concurrently_rejected_requests_are_all_answered(wrong: Callable[[Json], str], mode: Any) -> None:
    async def story() -> list[tuple[int, Json]]:
        async with proxy_for(RejectingServer(wrong, together=4), mode=mode) as ask:
            return [*await asyncio.gather(*[ask() for _ in range(4)])]

    for status, body in asyncio.run(story()):
        assert status == 200 and body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


# -- histories ---------------------------------------------------------------------------------------------------------


def _roles(body: Json) -> list[str]:
    return [each["role"] for each in body["messages"]]


def requires_alternation(body: Json) -> str:
    doubled = any(one == other != "tool" for one, other in pairwise(_roles(body)))
    return "Conversation roles must alternate user/assistant/user/assistant/..." if doubled else ""


def requires_content(body: Json) -> str:
    nulls = [each for each in body["messages"] if each.get("content") is None]
    return "Cannot use 'in' operator: null value" if nulls else ""


def requires_text_results(body: Json) -> str:
    parts = [each for each in body["messages"] if each["role"] == "tool" and isinstance(each["content"], list)]
    return "Invalid 'content': 'content' field must be a string" if parts else ""


def requires_short_ids(body: Json) -> str:
    ids = [call["id"] for each in body["messages"] for call in each.get("tool_calls", ())]
    return "Tool call id must be a-z, A-Z, 0-9, with a length of 9." if any(len(id) != 9 for id in ids) else ""


def requires_reasoning(body: Json) -> str:
    bare = [each for each in body["messages"] if each.get("tool_calls") and not each.get("reasoning_content")]
    return "The `reasoning_content` in the thinking mode must be passed back to the API." if bare else ""


def requires_system_first(body: Json) -> str:
    return "System message must be at the beginning." if "system" in _roles(body)[1:] else ""


ASSISTANT_CALL: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": CALL["id"], "content": [{"type": "text", "text": "rain"}]}
SYSTEM: Json = {"role": "system", "content": "Be brief."}
REQUIREMENTS = [
    requires_alternation,
    requires_content,
    requires_text_results,
    requires_short_ids,
    requires_reasoning,
    requires_system_first,
]
HISTORY = [USER, USER, ASSISTANT_CALL, RESULT, SYSTEM, USER]


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("wrong", REQUIREMENTS)
def test_a_rejected_history_is_sent_again_in_the_form_the_server_accepts(
    wrong: Callable[[Json], str], status: int
) -> None:
    server = RejectingServer(wrong, status)

    async def story() -> list[tuple[int, Json]]:
        async with proxy_for(server, mode="native") as ask:
            return [await ask(*HISTORY), await ask(*HISTORY, ASSISTANT_CALL, RESULT)]

    for answered, body in asyncio.run(story()):
        assert answered == 200 and body["choices"][0]["message"]["tool_calls"], body
    assert server.refused == 1  # the next request is correct at once


def test_a_history_rejected_in_both_forms_gives_the_first_error_of_the_server() -> None:
    server = RejectingServer(lambda body: f"no, for the {len(server.bodies)}. time", 400)

    async def story() -> list[tuple[int, Json]]:
        async with proxy_for(server, mode="native") as ask:
            return [await ask(*HISTORY) for _ in range(2)]

    first, second = asyncio.run(story())
    assert first[0] == second[0] == 400 and "for the 1. time" in first[1]["error"]["message"]
    assert server.bodies[0]["messages"] == server.bodies[2]["messages"]  # nothing was learned from it


def test_a_prompt_over_the_context_length_is_not_sent_again() -> None:
    server = RejectingServer(lambda body: "This model's maximum context length is 4096 tokens.", 400)

    async def story() -> tuple[int, Json]:
        async with proxy_for(server, mode="native") as ask:
            answer: tuple[int, Json] = await ask(*HISTORY)
            return answer

    assert asyncio.run(story())[0] == 400 and len(server.bodies) == 1


def test_images_are_forwarded_to_a_server_that_requires_alternation() -> None:
    server = RejectingServer(requires_alternation)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    image_result = {**RESULT, "content": [{"type": "text", "text": "a photo"}, image]}

    async def story() -> tuple[int, Json]:
        async with proxy_for(server, mode="native") as ask:
            await ask(USER, USER)
            answer: tuple[int, Json] = await ask({"role": "user", "content": [image]}, ASSISTANT_CALL, image_result)
            return answer

    assert asyncio.run(story())[0] == 200
    assert json.dumps(server.bodies[-1]["messages"]).count("base64") == 2
