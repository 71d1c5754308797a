"""A server that refuses a request is asked in the way that it takes: each client gets its answer, also when many ask
at once, and what was learned holds for the next."""

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


class Picky:
    """A server that refuses what `wrong` names; the first `together` refusals go out when all of them are due."""

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
        says = self._wrong(body)
        if not says:
            return web.json_response(OSLO if body.get("tools") else IN_TEXT)
        self.refused += 1
        if self.refused == self._together:
            self._all.set()
        await self._all.wait()
        return web.json_response({"error": {"message": says, "type": "bad"}}, status=self._status)


@asynccontextmanager
async def before(server: Picky, **settings: Any) -> AsyncIterator[Callable[..., Any]]:
    """Asks the proxy before this server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream = UpstreamSettings(url=f"http://127.0.0.1:{runner.addresses[0][1]}", api="chat", name="picky")
    try:
        made = ProxySettings(upstream=(upstream,), port=0, **settings)
        async with Proxy(made) as proxy, aiohttp.ClientSession() as session:

            async def ask(*messages: Json) -> tuple[int, Json]:
                body = {"model": "m", "messages": list(messages) or [USER], "tools": TOOLS}
                async with session.post(f"{proxy.address}/v1/chat/completions", json=body) as answer:
                    return answer.status, await answer.json()

            yield ask
    finally:
        await runner.cleanup()


USER: Json = {"role": "user", "content": "Weather in Oslo?"}


def refuses_strict(body: Json) -> str:
    return "tools.0.function.strict: Extra inputs are not permitted" if '"strict"' in json.dumps(body) else ""


def refuses_tools(body: Json) -> str:
    return "this model does not support tools" if body.get("tools") else ""


@pytest.mark.parametrize("wrong, mode", [(refuses_strict, "native"), (refuses_tools, "auto")])
def test_of_many_that_are_refused_at_once_each_is_answered(wrong: Callable[[Json], str], mode: Any) -> None:
    async def story() -> list[tuple[int, Json]]:
        async with before(Picky(wrong, together=4), mode=mode) as ask:
            return [*await asyncio.gather(*[ask() for _ in range(4)])]

    for status, body in asyncio.run(story()):
        assert status == 200 and body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


# -- histories ---------------------------------------------------------------------------------------------------------


def _roles(body: Json) -> list[str]:
    return [each["role"] for each in body["messages"]]


def wants_turns(body: Json) -> str:
    doubled = any(one == other != "tool" for one, other in pairwise(_roles(body)))
    return "Conversation roles must alternate user/assistant/user/assistant/..." if doubled else ""


def wants_text(body: Json) -> str:
    nulls = [each for each in body["messages"] if each.get("content") is None]
    return "Cannot use 'in' operator: null value" if nulls else ""


def wants_plain_results(body: Json) -> str:
    parts = [each for each in body["messages"] if each["role"] == "tool" and isinstance(each["content"], list)]
    return "Invalid 'content': 'content' field must be a string" if parts else ""


def wants_short_ids(body: Json) -> str:
    ids = [call["id"] for each in body["messages"] for call in each.get("tool_calls", ())]
    return "Tool call id must be a-z, A-Z, 0-9, with a length of 9." if any(len(id) != 9 for id in ids) else ""


def wants_thoughts(body: Json) -> str:
    bare = [each for each in body["messages"] if each.get("tool_calls") and not each.get("reasoning_content")]
    return "The `reasoning_content` in the thinking mode must be passed back to the API." if bare else ""


def one_system(body: Json) -> str:
    return "System message must be at the beginning." if "system" in _roles(body)[1:] else ""


MADE: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": CALL["id"], "content": [{"type": "text", "text": "rain"}]}
SAYS: Json = {"role": "system", "content": "Be brief."}
WISHES = [wants_turns, wants_text, wants_plain_results, wants_short_ids, wants_thoughts, one_system]
HISTORY = [USER, USER, MADE, RESULT, SAYS, USER]


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("wrong", WISHES)
def test_a_history_that_is_refused_goes_again_as_the_server_takes_it(wrong: Callable[[Json], str], status: int) -> None:
    server = Picky(wrong, status)

    async def story() -> list[tuple[int, Json]]:
        async with before(server, mode="native") as ask:
            return [await ask(*HISTORY), await ask(*HISTORY, MADE, RESULT)]

    for answered, body in asyncio.run(story()):
        assert answered == 200 and body["choices"][0]["message"]["tool_calls"], body
    assert server.refused == 1  # the next one is right at once


def test_a_history_that_is_refused_either_way_is_refused_in_the_servers_first_words() -> None:
    server = Picky(lambda body: f"no, for the {len(server.bodies)}. time", 400)

    async def story() -> list[tuple[int, Json]]:
        async with before(server, mode="native") as ask:
            return [await ask(*HISTORY) for _ in range(2)]

    first, second = asyncio.run(story())
    assert first[0] == second[0] == 400 and "for the 1. time" in first[1]["error"]["message"]
    assert server.bodies[0]["messages"] == server.bodies[2]["messages"]  # nothing was learned from it


def test_a_prompt_that_is_too_long_is_not_sent_twice() -> None:
    server = Picky(lambda body: "This model's maximum context length is 4096 tokens.", 400)

    async def story() -> tuple[int, Json]:
        async with before(server, mode="native") as ask:
            answer: tuple[int, Json] = await ask(*HISTORY)
            return answer

    assert asyncio.run(story())[0] == 400 and len(server.bodies) == 1


def test_an_image_goes_on_to_a_server_that_wants_turns() -> None:
    server = Picky(wants_turns)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = {**RESULT, "content": [{"type": "text", "text": "a photo"}, image]}

    async def story() -> tuple[int, Json]:
        async with before(server, mode="native") as ask:
            await ask(USER, USER)
            answer: tuple[int, Json] = await ask({"role": "user", "content": [image]}, MADE, seen)
            return answer

    assert asyncio.run(story())[0] == 200
    assert json.dumps(server.bodies[-1]["messages"]).count("base64") == 2
