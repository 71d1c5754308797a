"""`wrap` with the real SDKs and a real server: the content of the SDK's own types."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import anthropic
import openai
import pytest

from rightcall import Reply, tool, wrap
from rightcall.errors import CallerError
from rightcall.tools.provider_forms import to_provider
from support.scripted_server import scripted

Json = dict[str, Any]


@tool
def look(city: str, days: int = 1) -> str:
    """Looks at the sky."""
    return f"{days} days of sun in {city}"


GOOD = '{"city": "Oslo", "days": 2}'
BROKEN = "{'city': 'Oslo', 'days': '2',}"  # repairable
WRONG = '{"days": 2}'  # rejected: no city
LEAKED = 'Let me look.\n<tool_call>\n{"name": "look", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>'


class ModelOutput:
    """What the model of a test writes: text, reasoning and calls."""

    def __init__(self, text: str = "", *calls: str, thought: str = "") -> None:
        self.text, self.calls, self.thought = text, calls, thought


# -- the three dialects, as servers write them -------------------------------------------------------------------------


def chat(model_output: ModelOutput) -> Json:
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": text}}
        for at, text in enumerate(model_output.calls)
    ]
    message: Json = {"role": "assistant", "content": model_output.text or None, "refusal": None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": model_output.thought} if model_output.thought else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": "fp"}
    return {**head, "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}


def chat_stream(model_output: ModelOutput) -> list[Json]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    out = [chunk({"role": "assistant", "content": ""})]
    out += [chunk({"reasoning_content": piece}) for piece in model_output.thought]
    out += [chunk({"content": piece}) for piece in model_output.text]
    for at, text in enumerate(model_output.calls):
        first = {"index": at, "id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": ""}}
        out.append(chunk({"tool_calls": [first]}))
        out += [chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}) for piece in text]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [*out, chunk({}, "tool_calls" if model_output.calls else "stop"), {**head, "choices": [], "usage": usage}]


def messages(model_output: ModelOutput) -> Json:
    content: list[Json] = []
    if model_output.thought:
        content.append({"type": "thinking", "thinking": model_output.thought, "signature": "s1"})
    if model_output.text:
        content.append({"type": "text", "text": model_output.text})
    for at, text in enumerate(model_output.calls):
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        content.append({"type": "tool_use", "id": f"toolu_{at}", "name": "look", "input": value})
    stop = "tool_use" if model_output.calls else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": 4}}


def messages_stream(model_output: ModelOutput) -> list[Json]:
    whole = messages(model_output)
    out: list[Json] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    calls = iter(model_output.calls)
    for at, block in enumerate(whole["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind, {**block, "input": {}})
        out.append({"type": "content_block_start", "index": at, "content_block": {"type": kind, **empty}})
        text = next(calls) if kind == "tool_use" else block[kind]
        name, key = {"tool_use": ("input_json_delta", "partial_json")}.get(kind, (f"{kind}_delta", kind))
        deltas = [{"type": name, key: piece} for piece in text]
        deltas += [{"type": "signature_delta", "signature": "s1"}] if kind == "thinking" else []
        out += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        out.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    out.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 4}})
    return [*out, {"type": "message_stop"}]


def responses(model_output: ModelOutput) -> Json:
    output: list[Json] = []
    if model_output.thought:
        output.append(
            {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": model_output.thought}]}
        )
    if model_output.text:
        content = [{"type": "output_text", "text": model_output.text, "annotations": []}]
        output.append(
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for at, text in enumerate(model_output.calls):
        call = {"id": f"fc_{at}", "type": "function_call", "status": "completed", "call_id": f"call_{at}"}
        output.append({**call, "name": "look", "arguments": text})
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": []}
    return {**head, "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "error": None}


def responses_stream(model_output: ModelOutput) -> list[Json]:
    whole = responses(model_output)
    out: list[Json] = [{"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}]
    for at, item in enumerate(whole["output"]):
        place = {"output_index": at}
        out.append({"type": "response.output_item.added", **place, "item": _item_in_progress(item)})
        about = {"item_id": item["id"], **place}
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            out.append({"type": "response.content_part.added", **about, "content_index": 0, "part": part})
            kind = {"type": "response.output_text.delta", **about, "content_index": 0}
            out += [{**kind, "delta": piece} for piece in model_output.text]
        elif item["type"] == "function_call":
            kind = {"type": "response.function_call_arguments.delta", **about}
            out += [{**kind, "delta": piece} for piece in item["arguments"]]
            done = {"type": "response.function_call_arguments.done", **about, "arguments": item["arguments"]}
            out.append({**done, "name": "look"})
        out.append({"type": "response.output_item.done", **place, "item": item})
    out.append({"type": "response.completed", "response": whole})
    return [{**payload, "sequence_number": at} for at, payload in enumerate(out)]


def _item_in_progress(item: Json) -> Json:
    empty: Json = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    return {**item, **empty[item["type"]], "status": "in_progress"}


SERVERS = {
    "/chat/completions": (chat, chat_stream),
    "/messages": (messages, messages_stream),
    "/responses": (responses, responses_stream),
}


@contextmanager
def serving(model_output: ModelOutput) -> Iterator[tuple[str, list[Json]]]:
    def answer(path: str, body: Json) -> Json | list[Json]:
        whole, stream = next(pair for end, pair in SERVERS.items() if path.endswith(end))
        return stream(model_output) if body.get("stream") else whole(model_output)

    with scripted(answer) as (url, requests):
        yield url, requests


# -- the results of the SDKs -------------------------------------------------------------------------------------------


class SdkResult:
    """What an SDK returned: text, reasoning, calls as (name, arguments), and the finish reason."""

    def __init__(self, text: str | None, calls: list[tuple[str, Any]], end: str | None, thought: str = "") -> None:
        self.text, self.calls, self.end, self.thought = text or "", calls, end, thought


ASK: list[Any] = [{"role": "user", "content": "Weather?"}]


def _openai(url: str, **options: Any) -> Any:
    return wrap(openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0), **options)


def _anthropic(url: str, **options: Any) -> Any:
    return wrap(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0), **options)


def _of_chat(message: Any, end: str | None) -> SdkResult:
    calls = [(each.function.name, json.loads(each.function.arguments)) for each in message.tool_calls or ()]
    return SdkResult(message.content, calls, end, getattr(message, "reasoning_content", None) or "")


def ask_chat_whole(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "chat")
    choice = _openai(url, **options).chat.completions.create(model="m", messages=ASK, tools=tools).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def ask_chat_chunks(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "chat")
    text, thought, calls, end = "", "", [], None
    for chunk in _openai(url, **options).chat.completions.create(model="m", messages=ASK, tools=tools, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            thought += getattr(choice.delta, "reasoning_content", None) or ""
            found = choice.delta.tool_calls or ()
            calls += [(each.function.name, json.loads(each.function.arguments)) for each in found]
            end = choice.finish_reason or end
    return SdkResult(text, calls, end, thought)


def ask_chat_helper(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "chat")
    with _openai(url, **options).chat.completions.stream(model="m", messages=ASK, tools=tools) as stream:
        for _ in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def ask_chat_parse(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "chat")
    for each in tools:
        each["function"]["strict"] = True
    choice = _openai(url, **options).chat.completions.parse(model="m", messages=ASK, tools=tools).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def ask_chat_async(url: str, **options: Any) -> SdkResult:
    async def ask() -> Any:
        client = wrap(openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0), **options)
        tools: Any = to_provider([look], "chat")
        async with client, client.chat.completions.stream(model="m", messages=ASK, tools=tools) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_completion()

    choice = asyncio.run(ask()).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def _of_messages(message: Any) -> SdkResult:
    text = "".join([block.text for block in message.content if block.type == "text"])
    thought = "".join([block.thinking for block in message.content if block.type == "thinking"])
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return SdkResult(text, calls, {"tool_use": "tool_calls", "end_turn": "stop"}.get(message.stop_reason), thought)


def ask_messages_whole(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "messages")
    message = _anthropic(url, **options).messages.create(model="m", max_tokens=99, messages=ASK, tools=tools)
    return _of_messages(message)


def ask_messages_helper(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "messages")
    with _anthropic(url, **options).messages.stream(model="m", max_tokens=99, messages=ASK, tools=tools) as stream:
        for _ in stream:
            pass
        return _of_messages(stream.get_final_message())


def ask_messages_async(url: str, **options: Any) -> SdkResult:
    async def ask() -> Any:
        client = wrap(anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0), **options)
        tools: Any = to_provider([look], "messages")
        async with client:
            return await client.messages.create(model="m", max_tokens=99, messages=ASK, tools=tools)

    return _of_messages(asyncio.run(ask()))


def _of_responses(response: Any) -> SdkResult:
    calls = [(each.name, json.loads(each.arguments)) for each in response.output if each.type == "function_call"]
    found = [each.summary[0].text for each in response.output if each.type == "reasoning"]
    return SdkResult(response.output_text, calls, "tool_calls" if calls else "stop", "".join(found))


def ask_responses_whole(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "responses")
    return _of_responses(_openai(url, **options).responses.create(model="m", input="Weather?", tools=tools))


def ask_responses_helper(url: str, **options: Any) -> SdkResult:
    tools: Any = to_provider([look], "responses")
    with _openai(url, **options).responses.stream(model="m", input="Weather?", tools=tools) as stream:
        for _ in stream:
            pass
        return _of_responses(stream.get_final_response())


CLIENT_CALLS = [
    ask_chat_whole,
    ask_chat_chunks,
    ask_chat_helper,
    ask_chat_parse,
    ask_chat_async,
    ask_messages_whole,
    ask_messages_helper,
    ask_messages_async,
    ask_responses_whole,
    ask_responses_helper,
]
every_client_call = pytest.mark.parametrize("ask_client", CLIENT_CALLS)
WANTED = [("look", {"city": "Oslo", "days": 2})]


@every_client_call
@pytest.mark.parametrize("text", [GOOD, BROKEN])
def test_every_call_shape_of_a_server_is_parsed(ask_client: Any, text: str) -> None:
    with serving(ModelOutput("Let me look.", text, thought="Hm.")) as (url, requests):
        found = ask_client(url)
    assert (found.calls, found.end, found.text) == (WANTED, "tool_calls", "Let me look.")
    assert found.thought == "Hm." and len(requests) == 1


@every_client_call
def test_a_call_in_text_is_returned_as_a_call(ask_client: Any) -> None:
    with serving(ModelOutput(LEAKED)) as (url, _):
        found = ask_client(url)
    assert (found.calls, found.end, found.text.strip()) == (WANTED, "tool_calls", "Let me look.")


@every_client_call
def test_an_answer_without_calls_is_passed_through(ask_client: Any) -> None:
    with serving(ModelOutput("Sunny.", thought="Hm.")) as (url, _):
        found = ask_client(url)
    assert (found.calls, found.end, found.text, found.thought) == ([], "stop", "Sunny.", "Hm.")


@every_client_call
def test_a_rejected_call_is_omitted_next_to_a_runnable_one(ask_client: Any) -> None:
    with serving(ModelOutput("", WRONG, GOOD)) as (url, _):
        assert ask_client(url).calls == WANTED


@every_client_call
def test_an_answer_of_only_rejected_calls_raises_the_error_of_the_sdk(ask_client: Any) -> None:
    kept: list[Reply] = []
    with (
        serving(ModelOutput("", WRONG)) as (url, requests),
        pytest.raises((openai.APIError, anthropic.APIError)) as caught,
    ):
        ask_client(url, on_reply=kept.append)
    assert "city is required" in str(caught.value) and len(requests) == 1
    assert [call.name for call in kept[-1].refused] == ["look"]


@every_client_call
def test_rejected_calls_can_be_dropped_or_passed_on(ask_client: Any) -> None:
    with serving(ModelOutput("Hm.", WRONG)) as (url, _):
        dropped, passed = ask_client(url, refused="drop"), ask_client(url, refused="pass")
    assert (dropped.calls, dropped.end, dropped.text) == ([], "stop", "Hm.")
    assert (passed.calls, passed.end) == ([("look", {"days": 2})], "tool_calls")


def test_several_choices_are_read_separately() -> None:
    def answer(path: str, body: Json) -> Json | list[Json]:
        streams = [chat_stream(ModelOutput("", text)) for text in (GOOD, BROKEN)]
        if not body.get("stream"):
            choices = [
                {**chat(ModelOutput("", text))["choices"][0], "index": at} for at, text in enumerate((GOOD, BROKEN))
            ]
            return {**chat(ModelOutput()), "choices": choices}
        for payload in streams[1]:
            for choice in payload["choices"]:
                choice["index"] = 1
        return [payload for pair in zip_longest(*streams) for payload in pair if payload is not None]

    tools: Any = to_provider([look], "chat")
    with scripted(answer) as (url, _):
        client = _openai(url)
        whole = client.chat.completions.create(model="m", messages=ASK, tools=tools, n=2)
        found = [[json.loads(call.function.arguments) for call in each.message.tool_calls] for each in whole.choices]
        assert found == [[WANTED[0][1]], [WANTED[0][1]]]
        pieces: dict[int, list[Any]] = {0: [], 1: []}
        for chunk in client.chat.completions.create(model="m", messages=ASK, tools=tools, n=2, stream=True):
            for choice in chunk.choices:
                pieces[choice.index] += [json.loads(c.function.arguments) for c in choice.delta.tool_calls or ()]
        assert pieces == {0: [WANTED[0][1]], 1: [WANTED[0][1]]}


def test_the_response_to_a_request_without_tools_is_unchanged() -> None:
    with serving(ModelOutput(LEAKED)) as (url, _):
        completion = _openai(url).chat.completions.create(model="m", messages=ASK)
    assert completion.choices[0].message.content == LEAKED


def test_a_wrapped_client_keeps_its_other_methods_and_attributes() -> None:
    with serving(ModelOutput("Hi")) as (url, _):
        client = _openai(url)
        assert (
            isinstance(client, openai.OpenAI)
            and client.base_url == openai.OpenAI(base_url=url + "/v1", api_key="n").base_url
        )
        raw = client.chat.completions.with_raw_response.create(model="m", messages=ASK)
        assert raw.parse().usage is not None


def test_an_error_of_the_server_is_passed_through() -> None:
    def answer(path: str, body: Json) -> Json | list[Json]:
        return {"error": {"message": "overloaded", "type": "server_error"}}

    tools: Any = to_provider([look], "chat")
    with scripted(answer) as (url, _):
        completion = _openai(url).chat.completions.create(model="m", messages=ASK, tools=tools)
    assert not completion.choices


def test_an_unsupported_client_is_rejected_with_an_alternative() -> None:
    with pytest.raises(CallerError, match=r"not object; give the answers of others to rightcall\.read"):
        wrap(object())
