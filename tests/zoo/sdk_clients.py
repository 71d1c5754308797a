"""The providers' SDKs as clients: what each assembles from an answer, in every dialect.

sdks = Sdks()
seen = await sdks.request("chat", address, body, stream=True)       raises what the SDK raises
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from zoo.naive import ClientView
from zoo.question import Json

SdkCall = Callable[[Any, Json, bool], Awaitable[ClientView]]


class Sdks:
    """One client of each SDK for each address, because they are slow to create."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Any] = {}

    async def request(self, api: str, url: str, body: Json, *, stream: bool) -> ClientView:
        """Send a request with the SDK of this dialect, and return its result."""
        client = self._clients.get((api, url))
        if client is None:
            client = self._clients[api, url] = _MAKERS[api](url)
        return await _SDKS[api](client, {key: value for key, value in body.items() if key != "stream"}, stream)

    async def close(self) -> None:
        for (api, _), client in self._clients.items():
            await (client.aio.aclose() if api == "gemini" else client.close())


def _openai_client(url: str) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


def _anthropic_client(url: str) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0)


def _ollama_client(url: str) -> Any:
    import ollama

    return ollama.AsyncClient(host=url)


def _genai_client(url: str) -> Any:
    from google import genai

    return genai.Client(api_key="x", http_options={"base_url": url})


async def _chat(client: Any, body: Json, stream: bool) -> ClientView:
    if stream:
        async with client.chat.completions.stream(**body) as events:
            response = await events.get_final_completion()
    else:
        response = await client.chat.completions.create(**body)
    message = response.choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return ClientView(calls, [call.id for call in message.tool_calls or ()], message.content or "")


async def _responses(client: Any, body: Json, stream: bool) -> ClientView:
    if stream:
        async with client.responses.stream(**body) as events:
            response = await events.get_final_response()
    else:
        response = await client.responses.create(**body)
    calls = [item for item in response.output if item.type == "function_call"]
    return ClientView(
        [(call.name, json.loads(call.arguments)) for call in calls], [c.call_id for c in calls], response.output_text
    )


async def _messages(client: Any, body: Json, stream: bool) -> ClientView:
    if stream:
        async with client.messages.stream(**body) as events:
            response = await events.get_final_message()
    else:
        response = await client.messages.create(**body)
    calls = [block for block in response.content if block.type == "tool_use"]
    text = "".join([block.text for block in response.content if block.type == "text"])
    return ClientView([(call.name, call.input) for call in calls], [call.id for call in calls], text)


async def _ollama(client: Any, body: Json, stream: bool) -> ClientView:
    fields = {key: body[key] for key in ("model", "messages", "tools") if key in body}
    response = await client.chat(**fields, stream=stream)
    parts = [part async for part in response] if stream else [response]
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    text = "".join([part.message.content or "" for part in parts])
    return ClientView([(call.name, dict(call.arguments)) for call in calls], list(range(len(calls))), text)


async def _gemini(client: Any, body: Json, stream: bool) -> ClientView:
    config = {"tools": body["tools"], **({"tool_config": body["toolConfig"]} if "toolConfig" in body else {})}
    fields = {"model": body["model"], "contents": body["contents"], "config": config}
    if stream:
        chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(**fields)]
    else:
        chunks = [await client.aio.models.generate_content(**fields)]
    contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
    parts: list[Any] = [part for content in contents if content for part in content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    text = "".join([part.text for part in parts if part.text and not part.thought])
    return ClientView([(call.name, dict(call.args or {})) for call in calls], list(range(len(calls))), text)


_MAKERS: dict[str, Callable[[str], Any]] = {
    "chat": _openai_client,
    "responses": _openai_client,
    "messages": _anthropic_client,
    "ollama": _ollama_client,
    "gemini": _genai_client,
}
_SDKS: dict[str, SdkCall] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "ollama": _ollama,
    "gemini": _gemini,
}
