"""`wrap`, with the real SDKs against a real server: what the SDK's own types then hold."""

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
BROKEN = "{'city': 'Oslo', 'days': '2',}"  # repaired
WRONG = '{"days": 2}'  # refused: no city
LEAKED = 'Let me look.\n<tool_call>\n{"name": "look", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>'


class Said:
    """What the model of a test says: text, thought and calls."""

    def __init__(self, text: str = "", *calls: str, thought: str = "") -> None:
        self.text, self.calls, self.thought = text, calls, thought


# -- the three dialects, as servers write them -------------------------------------------------------------------------


def chat(said: Said) -> Json:
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": text}}
        for at, text in enumerate(said.calls)
    ]
    message: Json = {"role": "assistant", "content": said.text or None, "refusal": None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": said.thought} if said.thought else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": "fp"}
    return {**head, "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}


def chat_stream(said: Said) -> list[Json]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    out = [chunk({"role": "assistant", "content": ""})]
    out += [chunk({"reasoning_content": piece}) for piece in said.thought]
    out += [chunk({"content": piece}) for piece in said.text]
    for at, text in enumerate(said.calls):
        first = {"index": at, "id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": ""}}
        out.append(chunk({"tool_calls": [first]}))
        out += [chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}) for piece in text]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [*out, chunk({}, "tool_calls" if said.calls else "stop"), {**head, "choices": [], "usage": usage}]


def messages(said: Said) -> Json:
    content: list[Json] = []
    if said.thought:
        content.append({"type": "thinking", "thinking": said.thought, "signature": "s1"})
    if said.text:
        content.append({"type": "text", "text": said.text})
    for at, text in enumerate(said.calls):
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        content.append({"type": "tool_use", "id": f"toolu_{at}", "name": "look", "input": value})
    stop = "tool_use" if said.calls else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": stop, "usage": {"input_tokens": 3, "output_tokens": 4}}


def messages_stream(said: Said) -> list[Json]:
    whole = messages(said)
    out: list[Json] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    calls = iter(said.calls)
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


def responses(said: Said) -> Json:
    output: list[Json] = []
    if said.thought:
        output.append({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": said.thought}]})
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        output.append(
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for at, text in enumerate(said.calls):
        call = {"id": f"fc_{at}", "type": "function_call", "status": "completed", "call_id": f"call_{at}"}
        output.append({**call, "name": "look", "arguments": text})
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": []}
    return {**head, "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "error": None}


def responses_stream(said: Said) -> list[Json]:
    whole = responses(said)
    out: list[Json] = [{"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}]
    for at, item in enumerate(whole["output"]):
        place = {"output_index": at}
        out.append({"type": "response.output_item.added", **place, "item": _begun(item)})
        about = {"item_id": item["id"], **place}
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            out.append({"type": "response.content_part.added", **about, "content_index": 0, "part": part})
            kind = {"type": "response.output_text.delta", **about, "content_index": 0}
            out += [{**kind, "delta": piece} for piece in said.text]
        elif item["type"] == "function_call":
            kind = {"type": "response.function_call_arguments.delta", **about}
            out += [{**kind, "delta": piece} for piece in item["arguments"]]
            done = {"type": "response.function_call_arguments.done", **about, "arguments": item["arguments"]}
            out.append({**done, "name": "look"})
        out.append({"type": "response.output_item.done", **place, "item": item})
    out.append({"type": "response.completed", "response": whole})
    return [{**payload, "sequence_number": at} for at, payload in enumerate(out)]


def _begun(item: Json) -> Json:
    empty: Json = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    return {**item, **empty[item["type"]], "status": "in_progress"}


SERVERS = {
    "/chat/completions": (chat, chat_stream),
    "/messages": (messages, messages_stream),
    "/responses": (responses, responses_stream),
}


@contextmanager
def serving(said: Said) -> Iterator[tuple[str, list[Json]]]:
    def answer(path: str, body: Json) -> Json | list[Json]:
        whole, stream = next(pair for end, pair in SERVERS.items() if path.endswith(end))
        return stream(said) if body.get("stream") else whole(said)

    with scripted(answer) as (url, asked):
        yield url, asked


# -- what the SDKs make of it ------------------------------------------------------------------------------------------


class Seen:
    """What an SDK gave: text, thought, calls as (name, arguments), and how it ended."""

    def __init__(self, text: str | None, calls: list[tuple[str, Any]], end: str | None, thought: str = "") -> None:
        self.text, self.calls, self.end, self.thought = text or "", calls, end, thought


ASK: list[Any] = [{"role": "user", "content": "Weather?"}]


def _openai(url: str, **options: Any) -> Any:
    return wrap(openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0), **options)


def _anthropic(url: str, **options: Any) -> Any:
    return wrap(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0), **options)


def _of_chat(message: Any, end: str | None) -> Seen:
    calls = [(each.function.name, json.loads(each.function.arguments)) for each in message.tool_calls or ()]
    return Seen(message.content, calls, end, getattr(message, "reasoning_content", None) or "")


def chat_whole_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "chat")
    choice = _openai(url, **options).chat.completions.create(model="m", messages=ASK, tools=tools).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def chat_chunks_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "chat")
    text, thought, calls, end = "", "", [], None
    for chunk in _openai(url, **options).chat.completions.create(model="m", messages=ASK, tools=tools, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            thought += getattr(choice.delta, "reasoning_content", None) or ""
            found = choice.delta.tool_calls or ()
            calls += [(each.function.name, json.loads(each.function.arguments)) for each in found]
            end = choice.finish_reason or end
    return Seen(text, calls, end, thought)


def chat_helper_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "chat")
    with _openai(url, **options).chat.completions.stream(model="m", messages=ASK, tools=tools) as stream:
        for _ in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def chat_parse_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "chat")
    for each in tools:
        each["function"]["strict"] = True
    choice = _openai(url, **options).chat.completions.parse(model="m", messages=ASK, tools=tools).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def chat_async_seen(url: str, **options: Any) -> Seen:
    async def ask() -> Any:
        client = wrap(openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0), **options)
        tools: Any = to_provider([look], "chat")
        async with client, client.chat.completions.stream(model="m", messages=ASK, tools=tools) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_completion()

    choice = asyncio.run(ask()).choices[0]
    return _of_chat(choice.message, choice.finish_reason)


def _of_messages(message: Any) -> Seen:
    text = "".join([block.text for block in message.content if block.type == "text"])
    thought = "".join([block.thinking for block in message.content if block.type == "thinking"])
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return Seen(text, calls, {"tool_use": "tool_calls", "end_turn": "stop"}.get(message.stop_reason), thought)


def messages_whole_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "messages")
    made = _anthropic(url, **options).messages.create(model="m", max_tokens=99, messages=ASK, tools=tools)
    return _of_messages(made)


def messages_helper_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "messages")
    with _anthropic(url, **options).messages.stream(model="m", max_tokens=99, messages=ASK, tools=tools) as stream:
        for _ in stream:
            pass
        return _of_messages(stream.get_final_message())


def messages_async_seen(url: str, **options: Any) -> Seen:
    async def ask() -> Any:
        client = wrap(anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0), **options)
        tools: Any = to_provider([look], "messages")
        async with client:
            return await client.messages.create(model="m", max_tokens=99, messages=ASK, tools=tools)

    return _of_messages(asyncio.run(ask()))


def _of_responses(response: Any) -> Seen:
    calls = [(each.name, json.loads(each.arguments)) for each in response.output if each.type == "function_call"]
    found = [each.summary[0].text for each in response.output if each.type == "reasoning"]
    return Seen(response.output_text, calls, "tool_calls" if calls else "stop", "".join(found))


def responses_whole_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "responses")
    return _of_responses(_openai(url, **options).responses.create(model="m", input="Weather?", tools=tools))


def responses_helper_seen(url: str, **options: Any) -> Seen:
    tools: Any = to_provider([look], "responses")
    with _openai(url, **options).responses.stream(model="m", input="Weather?", tools=tools) as stream:
        for _ in stream:
            pass
        return _of_responses(stream.get_final_response())


WAYS = [
    chat_whole_seen,
    chat_chunks_seen,
    chat_helper_seen,
    chat_parse_seen,
    chat_async_seen,
    messages_whole_seen,
    messages_helper_seen,
    messages_async_seen,
    responses_whole_seen,
    responses_helper_seen,
]
every_way = pytest.mark.parametrize("seen", WAYS)
WANTED = [("look", {"city": "Oslo", "days": 2})]


@every_way
@pytest.mark.parametrize("text", [GOOD, BROKEN])
def test_every_call_shape_of_a_server_is_parsed(seen: Any, text: str) -> None:
    with serving(Said("Let me look.", text, thought="Hm.")) as (url, asked):
        found = seen(url)
    assert (found.calls, found.end, found.text) == (WANTED, "tool_calls", "Let me look.")
    assert found.thought == "Hm." and len(asked) == 1


@every_way
def test_a_call_that_leaked_as_text_is_a_call(seen: Any) -> None:
    with serving(Said(LEAKED)) as (url, _):
        found = seen(url)
    assert (found.calls, found.end, found.text.strip()) == (WANTED, "tool_calls", "Let me look.")


@every_way
def test_an_answer_without_calls_is_passed_through(seen: Any) -> None:
    with serving(Said("Sunny.", thought="Hm.")) as (url, _):
        found = seen(url)
    assert (found.calls, found.end, found.text, found.thought) == ([], "stop", "Sunny.", "Hm.")


@every_way
def test_a_call_that_may_not_run_is_left_out_beside_one_that_may(seen: Any) -> None:
    with serving(Said("", WRONG, GOOD)) as (url, _):
        assert seen(url).calls == WANTED


@every_way
def test_an_answer_of_nothing_but_refused_calls_is_the_clients_own_error(seen: Any) -> None:
    kept: list[Reply] = []
    with serving(Said("", WRONG)) as (url, asked), pytest.raises((openai.APIError, anthropic.APIError)) as caught:
        seen(url, on_reply=kept.append)
    assert "city is required" in str(caught.value) and len(asked) == 1
    assert [call.name for call in kept[-1].refused] == ["look"]


@every_way
def test_refused_calls_can_be_dropped_or_passed_on(seen: Any) -> None:
    with serving(Said("Hm.", WRONG)) as (url, _):
        dropped, passed = seen(url, refused="drop"), seen(url, refused="pass")
    assert (dropped.calls, dropped.end, dropped.text) == ([], "stop", "Hm.")
    assert (passed.calls, passed.end) == ([("look", {"days": 2})], "tool_calls")


def test_several_choices_are_read_each_for_itself() -> None:
    def answer(path: str, body: Json) -> Json | list[Json]:
        made = [chat_stream(Said("", text)) for text in (GOOD, BROKEN)]
        if not body.get("stream"):
            choices = [{**chat(Said("", text))["choices"][0], "index": at} for at, text in enumerate((GOOD, BROKEN))]
            return {**chat(Said()), "choices": choices}
        for payload in made[1]:
            for choice in payload["choices"]:
                choice["index"] = 1
        return [payload for pair in zip_longest(*made) for payload in pair if payload is not None]

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


def test_a_request_without_tools_is_left_alone() -> None:
    with serving(Said(LEAKED)) as (url, _):
        made = _openai(url).chat.completions.create(model="m", messages=ASK)
    assert made.choices[0].message.content == LEAKED


def test_what_else_the_client_can_do_is_its_own() -> None:
    with serving(Said("Hi")) as (url, _):
        client = _openai(url)
        assert (
            isinstance(client, openai.OpenAI)
            and client.base_url == openai.OpenAI(base_url=url + "/v1", api_key="n").base_url
        )
        raw = client.chat.completions.with_raw_response.create(model="m", messages=ASK)
        assert raw.parse().usage is not None


def test_the_servers_errors_stay_its_own() -> None:
    def answer(path: str, body: Json) -> Json | list[Json]:
        return {"error": {"message": "overloaded", "type": "server_error"}}

    tools: Any = to_provider([look], "chat")
    with scripted(answer) as (url, _):
        made = _openai(url).chat.completions.create(model="m", messages=ASK, tools=tools)
    assert not made.choices


def test_what_is_no_such_client_is_refused_with_what_to_do() -> None:
    with pytest.raises(CallerError, match=r"not object; give the answers of others to rightcall\.read"):
        wrap(object())
