"""`Backend` with a server that speaks Gemini's dialect: the model in the address, calls and signatures."""

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

from rightcall.backends.http import Backend
from rightcall.backends.request import Answer
from rightcall.types import Json
from support.loopback import ask, chunked, json_answer, serving

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NAME = "tools/" + "w" * 80  # Gemini accepts neither this length nor these characters.
TOOL = {"name": NAME, "description": "Weather", "input_schema": PARAMETERS}


def run_in_event_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    return run


def gemini_response(*parts: Json, finish: str = "") -> Json:
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    return {
        "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-x",
    }


def backend(url: str) -> Backend:
    return Backend(url, api="gemini", model="gemini-x", environ={"GEMINI_API_KEY": "k-1"})


def call_with_sent_name(body: Json) -> Json:
    """Return a call as the server makes it, under the name that the request declared."""
    name = body["tools"][0]["functionDeclarations"][0]["name"]
    return {"functionCall": {"name": name, "args": {"city": "Oslo"}}, "thoughtSignature": "sig"}


@run_in_event_loop
async def test_a_call_is_returned_under_its_original_name_whole_and_streamed() -> None:
    from rightcall.tools.toolset import wire_names

    wire = wire_names([NAME], "gemini")[NAME]
    call = {"functionCall": {"name": wire, "args": {"city": "Oslo"}}, "thoughtSignature": "sig"}
    events = [
        gemini_response({"text": "Hm", "thought": True}),
        gemini_response({"text": "Let me see."}),
        gemini_response(call, finish="STOP"),
    ]
    stream = [f"data: {json.dumps(each)}\r\n\r\n".encode() for each in events]
    whole = gemini_response({"text": "Hm", "thought": True}, {"text": "Let me see."}, call, finish="STOP")
    async with serving(json_answer(whole), chunked(stream)) as server:
        request = ask(
            tools=[TOOL], choice="required", temperature=0.5, max_tokens=9, stop=("X",), sampling={"top_k": 3}
        )
        answers: list[Answer] = [await backend(server.url).complete(request)]
        async with backend(server.url).stream(request) as streaming:
            async for _ in streaming:
                pass
        answers.append(streaming.answer)
    one, other = server.posts
    assert one.path == "/v1beta/models/gemini-x:generateContent"
    assert other.path == "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
    assert one.headers["x-goog-api-key"] == "k-1" and "authorization" not in one.headers
    assert one.body == other.body and call_with_sent_name(one.body)["functionCall"]["name"] == wire != NAME
    assert one.body["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 9, "stopSequences": ["X"], "topK": 3}
    assert one.body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    for answer in answers:
        (found,) = answer.calls
        assert (found.name, found.arguments, answer.content, answer.reasoning) == (
            NAME,
            {"city": "Oslo"},
            "Let me see.",
            "Hm",
        )
        assert (answer.tokens.prompt, answer.tokens.completion, answer.tokens.reasoning) == (
            7,
            7,
            2,
        )  # The completion includes the tokens of thoughts.
        assert answer.model == "gemini-x"


@run_in_event_loop
async def test_a_signature_is_sent_back_with_its_call() -> None:
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "sig"}
    async with serving(
        json_answer(gemini_response(call, finish="STOP")), json_answer(gemini_response({"text": "4"}, finish="STOP"))
    ) as server:
        tools: list[Any] = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
        first = await backend(server.url).complete(ask(tools=tools))
        result = {"role": "tool", "tool_call_id": first.calls[0].id, "content": "4 degrees", "is_error": True}
        history = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            first.message(),
            result,
        ]
        await backend(server.url).complete(ask(messages=history, tools=tools))
    sent = server.posts[1].body
    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [each["role"] for each in sent["contents"]] == ["user", "model", "user"]
    assert sent["contents"][1]["parts"][0]["thoughtSignature"] == "sig"
    (answered,) = sent["contents"][2]["parts"]
    assert answered["functionResponse"]["name"] == "f" and answered["functionResponse"]["response"] == {
        "error": "4 degrees"
    }


@run_in_event_loop
async def test_the_models_of_a_server_are_listed_without_their_prefix() -> None:
    listed = json_answer({"models": [{"name": "models/gemini-x"}, {"name": "models/gemini-y"}]})
    async with serving(json_answer({}), gets={"/v1beta/models": listed}) as server:
        assert await backend(f"{server.url}/v1beta").models() == ["gemini-x", "gemini-y"]
