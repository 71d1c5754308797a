"""The proxy in front of a server of this machine that does what a test tells it to, and clients of every dialect.

async with proxied(chunked(events(...)), api="chat") as proxy:
    got = await proxy.ask("messages", stream=True)
    got.status, got.reply, got.wrong
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import aiohttp

from rightcall import Reply, Stream, read
from rightcall.api_names import Api
from rightcall.serve.proxy import Proxy
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.testing import conforms
from support.loopback import Answering, Loopback, serving

Json = dict[str, Any]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
DIALECTS: tuple[Api, ...] = ("chat", "responses", "messages", "ollama", "gemini")


def asked(api: Api, *, stream: bool, tools: bool = True, **more: Any) -> tuple[str, Json]:
    """Path and body of a question in this dialect."""
    function = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
    user = {"role": "user", "content": "Weather in Oslo?"}
    body: Json = {"model": "m", "stream": stream, **more}
    if api in ("chat", "ollama"):
        offered: list[Json] = [{"type": "function", "function": function}]
        path = "/v1/chat/completions" if api == "chat" else "/api/chat"
        return path, {"messages": [user], **body, **({"tools": offered} if tools else {})}
    if api == "responses":
        return "/v1/responses", {
            "input": "Weather in Oslo?",
            **body,
            **({"tools": [{"type": "function", **function}]} if tools else {}),
        }
    if api == "messages":
        offered = [{"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}]
        return "/v1/messages", {"max_tokens": 1000, "messages": [user], **body, **({"tools": offered} if tools else {})}
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    contents = [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}]
    declared = {"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}
    return f"/v1beta/models/m:{verb}", {"contents": contents, **more, **({"tools": [declared]} if tools else {})}


class Got(NamedTuple):
    """What a client got: status, headers, bytes, the reply they are, and how they break the rules of the dialect."""

    status: int
    headers: dict[str, str]
    data: bytes
    reply: Reply
    wrong: list[str]


class Proxied:
    def __init__(self, proxy: Proxy, server: Loopback, session: aiohttp.ClientSession) -> None:
        self.proxy, self.server, self.session = proxy, server, session

    async def ask(
        self, api: Api, *, stream: bool, tools: bool = True, headers: dict[str, str] | None = None, **more: Any
    ) -> Got:
        """Asks in this dialect, as a stream or not."""
        path, body = asked(api, stream=stream, tools=tools, **more)
        async with self.session.post(self.proxy.address + path, json=body, headers=headers) as answer:
            data = await answer.read()
            told = {name.lower(): value for name, value in answer.headers.items()}
            return got(api, answer.status, told, data, stream=stream)


def got(api: Api, status: int, headers: dict[str, str], data: bytes, *, stream: bool) -> Got:
    if status != 200:
        return Got(status, headers, data, Reply(), [])
    if not stream:
        return Got(status, headers, data, read(json.loads(data), api=api), conforms(json.loads(data), api))
    reader = Stream(api)
    reader.feed(data)
    reader.close()
    return Got(status, headers, data, reader.reply, conforms(data, api))


@asynccontextmanager
async def proxied(*answers: Answering, api: Api = "chat", profile: str = "", **settings: Any) -> AsyncIterator[Proxied]:
    """The proxy before a server that speaks `api` and gives these answers."""
    given: Json = {"mode": "native", "port": 0, "first_byte_seconds": 20.0, "idle_seconds": 20.0, "stop_seconds": 1.0}
    async with serving(*answers) as server:
        upstream = UpstreamSettings(url=server.url, api=api, name="server", profile=profile)
        made = ProxySettings(upstream=(upstream,), **cast(Any, {**given, **settings}))
        async with Proxy(made) as proxy, aiohttp.ClientSession() as session:
            yield Proxied(proxy, server, session)
