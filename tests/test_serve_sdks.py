"""The providers' own SDKs as judges: what they put together from our streams is what was written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest

from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage, AnswerWriter
from rightcall.serve.answer_writers import WRITERS, new_answer_id
from rightcall.serve.client_request import ClientRequest
from rightcall.types import Call, Reasoning, Reply, Text
from support.loopback import chunked, json_answer, serving

TEXT = ["Here\u2028", " you\x85 are", " 😀"]
THOUGHTS = ["hm ", "hm"]
CALLS = [Call("look", {"city": "Oslo", "n": 1}, id="call_a"), Call("look", {}, id="call_b")]
END = AnswerEnd(finish="tool_calls", usage=AnswerUsage(10, 5))
SAID = "".join(TEXT)
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

Asking = Callable[[str], Awaitable[Any]]


def writer_of(api: Any) -> AnswerWriter:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
    return WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1_700_000_000, request=request))


def pieces(api: str) -> list[bytes]:
    """Everything at once: thought, text, a call whole and one as it comes, signs of life in between."""
    writer = writer_of(api)
    out = [writer.alive(), writer.begin(), *map(writer.reasoning, THOUGHTS), writer.alive(), *map(writer.text, TEXT)]
    out += [writer.call(CALLS[0]), writer.alive(), writer.call_begin("call_b", "look"), writer.call_end()]
    return [piece for piece in [*out, writer.finish(END)] if piece]


def streamed(api: str, ask: Asking, *, broken: bool = False) -> Any:
    """What the SDK makes of our stream; with `broken`, of one that ends in an error."""

    async def run() -> Any:
        writer = writer_of(api)
        failing = [writer.text("Hi"), writer.error("it broke")]
        said = chunked(failing if broken else pieces(api), kind=writer.content_type)
        async with serving(said) as server:
            return await ask(server.url)

    return asyncio.run(run())


def at_once(api: str, ask: Asking) -> Any:
    async def run() -> Any:
        body = writer_of(api).whole(Reply((Reasoning("hm hm"), Text(SAID), *CALLS)), END)
        async with serving(json_answer(body)) as server:
            return await ask(server.url)

    return asyncio.run(run())


# -- openai ------------------------------------------------------------------------------------------------------------


def openai_client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


async def ask_chat(url: str) -> Any:
    client = openai_client(url)
    async with client, client.chat.completions.stream(model="m", messages=MESSAGES, tools=[TOOL]) as stream:
        return await stream.get_final_completion()


async def ask_chat_whole(url: str) -> Any:
    async with openai_client(url) as client:
        return await client.chat.completions.create(model="m", messages=MESSAGES, tools=[TOOL])


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_openai_puts_a_chat_answer_together(how: str) -> None:
    done = streamed("chat", ask_chat) if how == "streamed" else at_once("chat", ask_chat_whole)
    (choice,) = done.choices
    made = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
    assert (choice.message.content, choice.finish_reason) == (SAID, "tool_calls")
    assert choice.message.model_extra["reasoning_content"] == "hm hm"
    assert made == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.id.startswith("chatcmpl-") and done.usage.total_tokens == 15


async def ask_responses(url: str) -> Any:
    client = openai_client(url)
    async with client, client.responses.stream(model="m", input="Hi") as stream:
        return await stream.get_final_response()


async def ask_responses_whole(url: str) -> Any:
    async with openai_client(url) as client:
        return await client.responses.create(model="m", input="Hi")


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_openai_puts_a_response_together(how: str) -> None:
    done = streamed("responses", ask_responses) if how == "streamed" else at_once("responses", ask_responses_whole)
    assert [item.type for item in done.output] == ["reasoning", "message", "function_call", "function_call"]
    assert done.output_text == SAID and done.output[0].summary[0].text == "hm hm"
    made = [(item.call_id, item.name, json.loads(item.arguments)) for item in done.output[2:]]
    assert made == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.status == "completed" and done.usage.total_tokens == 15


@pytest.mark.parametrize("api, ask", [("chat", ask_chat), ("responses", ask_responses)])
def test_the_openai_sdk_reports_an_error_in_the_middle_of_a_stream(api: str, ask: Asking) -> None:
    with pytest.raises(openai.APIError, match="it broke"):
        streamed(api, ask, broken=True)


# -- anthropic ---------------------------------------------------------------------------------------------------------


def anthropic_client(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0)


async def ask_messages(url: str) -> Any:
    client = anthropic_client(url)
    async with client, client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        return await stream.get_final_message()


async def ask_messages_whole(url: str) -> Any:
    async with anthropic_client(url) as client:
        return await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_anthropic_puts_a_message_together(how: str) -> None:
    done = streamed("messages", ask_messages) if how == "streamed" else at_once("messages", ask_messages_whole)
    assert [block.type for block in done.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (done.content[0].thinking, done.content[1].text) == ("hm hm", SAID)
    made = [(block.id, block.name, block.input) for block in done.content[2:]]
    assert made == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.stop_reason == "tool_use" and (done.usage.input_tokens, done.usage.output_tokens) == (10, 5)


def test_the_anthropic_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    with pytest.raises(anthropic.APIError, match="it broke"):
        streamed("messages", ask_messages, broken=True)


# -- ollama ------------------------------------------------------------------------------------------------------------


async def ask_ollama(url: str, *, stream: bool = True) -> Any:
    ollama = pytest.importorskip("ollama")
    client = ollama.AsyncClient(host=url)
    said = await client.chat(model="m", messages=MESSAGES, stream=stream)
    try:
        return [part async for part in said] if stream else [said]
    finally:
        await client.close()


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_ollama_puts_an_answer_together(how: str) -> None:
    async def ask_whole(url: str) -> Any:
        return await ask_ollama(url, stream=False)

    parts = streamed("ollama", ask_ollama) if how == "streamed" else at_once("ollama", ask_whole)
    assert "".join([part.message.content or "" for part in parts]) == SAID
    assert "".join([part.message.thinking or "" for part in parts]) == "hm hm"
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in CALLS]
    assert [part.done for part in parts].count(True) == 1 and parts[-1].done_reason == "stop"
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count) == (10, 5)


def test_the_ollama_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    ollama = pytest.importorskip("ollama")
    with pytest.raises(ollama.ResponseError, match="it broke"):
        streamed("ollama", ask_ollama, broken=True)


# -- google ------------------------------------------------------------------------------------------------------------


async def ask_gemini(url: str, *, stream: bool = True) -> list[Any]:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="x", http_options={"base_url": url})
    try:
        if not stream:
            return [await client.aio.models.generate_content(model="m", contents="Hi")]
        return [part async for part in await client.aio.models.generate_content_stream(model="m", contents="Hi")]
    finally:
        await client.aio.aclose()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_google_puts_an_answer_together(how: str) -> None:
    async def ask_whole(url: str) -> Any:
        return await ask_gemini(url, stream=False)

    chunks = streamed("gemini", ask_gemini) if how == "streamed" else at_once("gemini", ask_whole)
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    parts = [part for candidate in candidates if candidate.content for part in candidate.content.parts]
    assert "".join([part.text for part in parts if part.text and not part.thought]) == SAID
    assert "".join([part.text for part in parts if part.thought]) == "hm hm"
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.name, call.args) for call in calls] == [(call.name, call.arguments) for call in CALLS]
    assert candidates[-1].finish_reason == "STOP" and chunks[-1].usage_metadata.total_token_count == 15


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_google_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    errors = pytest.importorskip("google.genai.errors")
    with pytest.raises(errors.APIError, match="it broke"):
        streamed("gemini", ask_gemini, broken=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_google_runs_the_calls_of_a_stream_and_keeps_the_conversation() -> None:
    genai = pytest.importorskip("google.genai")
    looked: list[str] = []

    def look(city: str, n: int = 0) -> str:
        """Look."""
        looked.append(city)
        return "sunny"

    def written(*said: str, calls: bool) -> list[bytes]:
        writer = writer_of("gemini")
        out = [writer.alive(), *map(writer.text, said), writer.call(CALLS[0]) if calls else b""]
        return [piece for piece in [*out, writer.alive(), writer.finish(END)] if piece]

    async def ask(url: str) -> Any:
        client = genai.Client(api_key="x", http_options={"base_url": url})
        chat = client.aio.chats.create(model="m", config={"tools": [look]})
        said = "".join([chunk.text or "" async for chunk in await chat.send_message_stream("Hi")])
        await client.aio.aclose()
        return said, [content.role for content in chat.get_history(curated=True)]

    async def run() -> Any:
        answers = [written("One", " moment.", calls=True), written(*TEXT, calls=False)]
        async with serving(*[chunked(said) for said in answers]) as server:
            return await ask(server.url), server.posts[-1].body["contents"]

    (said, kept), sent = asyncio.run(run())
    assert looked == ["Oslo"] and said == f"One moment.{SAID}"
    assert "functionResponse" in sent[-1]["parts"][0] and "functionCall" in sent[-2]["parts"][0]
    assert kept.count("user") == 2 and "model" in kept
