"""The providers' own SDKs assemble our streams and responses to what was written."""

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
FULL_TEXT = "".join(TEXT)
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

AskFunction = Callable[[str], Awaitable[Any]]


def writer_of(api: Any) -> AnswerWriter:
    request = ClientRequest(api=api, model="m", messages=[], wants_usage=True)
    return WRITERS[api](AnswerHead(id=new_answer_id(api), model="m", created=1_700_000_000, request=request))


def stream_pieces(api: str) -> list[bytes]:
    """Return a stream with reasoning, text, a whole call and a streamed call, and keep-alive events in between."""
    writer = writer_of(api)
    out = [writer.alive(), writer.begin(), *map(writer.reasoning, THOUGHTS), writer.alive(), *map(writer.text, TEXT)]
    out += [writer.call(CALLS[0]), writer.alive(), writer.call_begin("call_b", "look"), writer.call_end()]
    return [piece for piece in [*out, writer.finish(END)] if piece]


def ask_streamed(api: str, ask: AskFunction, *, broken: bool = False) -> Any:
    """Return what the SDK assembles from our stream, or with `broken`, from one that ends in an error."""

    async def main() -> Any:
        writer = writer_of(api)
        failing = [writer.text("Hi"), writer.error("it broke")]
        response = chunked(failing if broken else stream_pieces(api), kind=writer.content_type)
        async with serving(response) as server:
            return await ask(server.url)

    return asyncio.run(main())


def ask_whole_response(api: str, ask: AskFunction) -> Any:
    async def main() -> Any:
        body = writer_of(api).whole(Reply((Reasoning("hm hm"), Text(FULL_TEXT), *CALLS)), END)
        async with serving(json_answer(body)) as server:
            return await ask(server.url)

    return asyncio.run(main())


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
def test_the_openai_sdk_assembles_a_chat_completion(how: str) -> None:
    done = ask_streamed("chat", ask_chat) if how == "streamed" else ask_whole_response("chat", ask_chat_whole)
    (choice,) = done.choices
    assembled_calls = [
        (call.id, call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls
    ]
    assert (choice.message.content, choice.finish_reason) == (FULL_TEXT, "tool_calls")
    assert choice.message.model_extra["reasoning_content"] == "hm hm"
    assert assembled_calls == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.id.startswith("chatcmpl-") and done.usage.total_tokens == 15


async def ask_responses(url: str) -> Any:
    client = openai_client(url)
    async with client, client.responses.stream(model="m", input="Hi") as stream:
        return await stream.get_final_response()


async def ask_responses_whole(url: str) -> Any:
    async with openai_client(url) as client:
        return await client.responses.create(model="m", input="Hi")


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_the_openai_sdk_assembles_a_response(how: str) -> None:
    done = (
        ask_streamed("responses", ask_responses)
        if how == "streamed"
        else ask_whole_response("responses", ask_responses_whole)
    )
    assert [item.type for item in done.output] == ["reasoning", "message", "function_call", "function_call"]
    assert done.output_text == FULL_TEXT and done.output[0].summary[0].text == "hm hm"
    assembled_calls = [(item.call_id, item.name, json.loads(item.arguments)) for item in done.output[2:]]
    assert assembled_calls == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.status == "completed" and done.usage.total_tokens == 15


@pytest.mark.parametrize("api, ask", [("chat", ask_chat), ("responses", ask_responses)])
def test_the_openai_sdk_reports_an_error_in_the_middle_of_a_stream(api: str, ask: AskFunction) -> None:
    with pytest.raises(openai.APIError, match="it broke"):
        ask_streamed(api, ask, broken=True)


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
def test_the_anthropic_sdk_assembles_a_message(how: str) -> None:
    done = (
        ask_streamed("messages", ask_messages)
        if how == "streamed"
        else ask_whole_response("messages", ask_messages_whole)
    )
    assert [block.type for block in done.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert (done.content[0].thinking, done.content[1].text) == ("hm hm", FULL_TEXT)
    assembled_calls = [(block.id, block.name, block.input) for block in done.content[2:]]
    assert assembled_calls == [(call.id, call.name, call.arguments) for call in CALLS]
    assert done.stop_reason == "tool_use" and (done.usage.input_tokens, done.usage.output_tokens) == (10, 5)


def test_the_anthropic_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    with pytest.raises(anthropic.APIError, match="it broke"):
        ask_streamed("messages", ask_messages, broken=True)


# -- ollama ------------------------------------------------------------------------------------------------------------


async def ask_ollama(url: str, *, stream: bool = True) -> Any:
    ollama = pytest.importorskip("ollama")
    client = ollama.AsyncClient(host=url)
    response = await client.chat(model="m", messages=MESSAGES, stream=stream)
    try:
        return [part async for part in response] if stream else [response]
    finally:
        await client.close()


@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_the_ollama_sdk_assembles_an_answer(how: str) -> None:
    async def ask_whole(url: str) -> Any:
        return await ask_ollama(url, stream=False)

    parts = ask_streamed("ollama", ask_ollama) if how == "streamed" else ask_whole_response("ollama", ask_whole)
    assert "".join([part.message.content or "" for part in parts]) == FULL_TEXT
    assert "".join([part.message.thinking or "" for part in parts]) == "hm hm"
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in CALLS]
    assert [part.done for part in parts].count(True) == 1 and parts[-1].done_reason == "stop"
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count) == (10, 5)


def test_the_ollama_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    ollama = pytest.importorskip("ollama")
    with pytest.raises(ollama.ResponseError, match="it broke"):
        ask_streamed("ollama", ask_ollama, broken=True)


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
def test_the_google_sdk_assembles_an_answer(how: str) -> None:
    async def ask_whole(url: str) -> Any:
        return await ask_gemini(url, stream=False)

    chunks = ask_streamed("gemini", ask_gemini) if how == "streamed" else ask_whole_response("gemini", ask_whole)
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    parts = [part for candidate in candidates if candidate.content for part in candidate.content.parts]
    assert "".join([part.text for part in parts if part.text and not part.thought]) == FULL_TEXT
    assert "".join([part.text for part in parts if part.thought]) == "hm hm"
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.name, call.args) for call in calls] == [(call.name, call.arguments) for call in CALLS]
    assert candidates[-1].finish_reason == "STOP" and chunks[-1].usage_metadata.total_token_count == 15


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_google_sdk_reports_an_error_in_the_middle_of_a_stream() -> None:
    errors = pytest.importorskip("google.genai.errors")
    with pytest.raises(errors.APIError, match="it broke"):
        ask_streamed("gemini", ask_gemini, broken=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_google_sdk_runs_the_calls_of_a_stream_and_keeps_the_history() -> None:
    genai = pytest.importorskip("google.genai")
    cities: list[str] = []

    def look(city: str, n: int = 0) -> str:
        """Look."""
        cities.append(city)
        return "sunny"

    def gemini_pieces(*texts: str, calls: bool) -> list[bytes]:
        writer = writer_of("gemini")
        out = [writer.alive(), *map(writer.text, texts), writer.call(CALLS[0]) if calls else b""]
        return [piece for piece in [*out, writer.alive(), writer.finish(END)] if piece]

    async def ask(url: str) -> Any:
        client = genai.Client(api_key="x", http_options={"base_url": url})
        chat = client.aio.chats.create(model="m", config={"tools": [look]})
        text = "".join([chunk.text or "" async for chunk in await chat.send_message_stream("Hi")])
        await client.aio.aclose()
        return text, [content.role for content in chat.get_history(curated=True)]

    async def run() -> Any:
        answers = [gemini_pieces("One", " moment.", calls=True), gemini_pieces(*TEXT, calls=False)]
        async with serving(*[chunked(pieces) for pieces in answers]) as server:
            return await ask(server.url), server.posts[-1].body["contents"]

    (text, kept), sent = asyncio.run(run())
    assert cities == ["Oslo"] and text == f"One moment.{FULL_TEXT}"
    assert "functionResponse" in sent[-1]["parts"][0] and "functionCall" in sent[-2]["parts"][0]
    assert kept.count("user") == 2 and "model" in kept
