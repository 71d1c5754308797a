"""The proxy in front of a loopback server with defined answers, and clients of every dialect.

async with proxied(chunked(events(...)), api="chat") as proxy:
    response = await proxy.ask("messages", stream=True)
    response.status, response.reply, response.wrong
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


def build_request(api: Api, *, stream: bool, tools: bool = True, **more: Any) -> tuple[str, Json]:
    """Return path and body of a question in this dialect."""
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


class ProxyResponse(NamedTuple):
    """A client's response: status, headers, bytes, the parsed reply, and violations of the dialect's rules."""

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
    ) -> ProxyResponse:
        """Send a question in this dialect, as a stream or not."""
        path, body = build_request(api, stream=stream, tools=tools, **more)
        async with self.session.post(self.proxy.address + path, json=body, headers=headers) as answer:
            data = await answer.read()
            headers_received = {name.lower(): value for name, value in answer.headers.items()}
            return parse_response(api, answer.status, headers_received, data, stream=stream)


def parse_response(api: Api, status: int, headers: dict[str, str], data: bytes, *, stream: bool) -> ProxyResponse:
    if status != 200:
        return ProxyResponse(status, headers, data, Reply(), [])
    if not stream:
        return ProxyResponse(status, headers, data, read(json.loads(data), api=api), conforms(json.loads(data), api))
    reader = Stream(api)
    reader.feed(data)
    reader.close()
    return ProxyResponse(status, headers, data, reader.reply, conforms(data, api))


@asynccontextmanager
async def proxied(*answers: Answering, api: Api = "chat", profile: str = "", **settings: Any) -> AsyncIterator[Proxied]:
    """Run the proxy in front of a server that uses `api` and gives these answers."""
    defaults: Json = {
        "mode": "native",
        "port": 0,
        "first_byte_seconds": 20.0,
        "idle_seconds": 20.0,
        "stop_seconds": 1.0,
    }
    async with serving(*answers) as server:
        upstream = UpstreamSettings(url=server.url, api=api, name="server", profile=profile)
        proxy_settings = ProxySettings(upstream=(upstream,), **cast(Any, {**defaults, **settings}))
        async with Proxy(proxy_settings) as proxy, aiohttp.ClientSession() as session:
            yield Proxied(proxy, server, session)
