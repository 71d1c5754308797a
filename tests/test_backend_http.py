"""`Backend` against real servers on this machine, both correct and faulty ones."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rightcall import CallEnd, CallStart, Ids, Text, Toolset
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.request import Answer, Request
from rightcall.errors import (
    AnswerTooLarge,
    BackendError,
    BodyError,
    CallerError,
    DecodeError,
    ProviderError,
    RateLimited,
    StatusError,
    TimedOut,
    TransportError,
    Unauthorised,
)
from rightcall.types import Event
from support.loopback import (
    QUICK,
    WEATHER,
    Loopback,
    answer,
    ask,
    backend,
    call_delta,
    chat,
    chunked,
    delta,
    drop,
    events,
    get_weather,
    json_answer,
    serving,
    silence,
)

OSLO = json_answer(chat(calls=(("get_weather", '{"city": "Oslo"}'),), finish="tool_calls"))
SECRET = {"OPENAI_API_KEY": "sk-hunter2-hunter2", "ANTHROPIC_API_KEY": "sk-hunter2-hunter2"}


def complete(*answers: Any, request: Request | None = None, **options: Any) -> tuple[Answer, Loopback]:
    async def go() -> tuple[Answer, Loopback]:
        async with serving(*answers) as server:
            return await backend(server, **options).complete(request or ask()), server

    return asyncio.run(go())


def failure(*answers: Any, kind: type[BackendError], request: Request | None = None, **options: Any) -> BackendError:
    with pytest.raises(kind) as raised:
        complete(*answers, request=request, **{"retries": Retries(most=0), **options})
    assert type(raised.value) is kind
    return raised.value


def stream(*answers: Any, request: Request | None = None, **options: Any) -> tuple[list[Event], Answer, Loopback]:
    async def go() -> tuple[list[Event], Answer, Loopback]:
        async with serving(*answers) as server, backend(server, **options).stream(request or ask()) as events:
            received = [event async for event in events]
            return received, events.answer, server

    return asyncio.run(go())


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_answer_contains_the_reply_and_how_it_was_obtained() -> None:
    answer, server = complete(OSLO)
    assert [(call.name, call.arguments, call.id) for call in answer.attempts] == [
        ("get_weather", {"city": "Oslo"}, "call_0")
    ]
    assert (answer.tokens.prompt, answer.tokens.completion, answer.finish, answer.model) == (7, 5, "tool_calls", "m-1")
    assert (answer.api, answer.mode, answer.evidence) == ("chat", "native", ("set explicitly",))
    assert answer.raw["model"] == "m-1" and [each.status for each in answer.tries] == [200]
    assert 0 < answer.timing.first_byte <= answer.timing.total
    (post,) = server.posts
    assert post.path == "/v1/chat/completions" and post.headers["content-type"] == "application/json"
    assert list(post.body) == ["model", "messages", "tools", "stream"] and post.body["stream"] is False


@pytest.mark.parametrize("probability", ["0.5", "NaN"])
def test_a_byte_order_mark_before_the_answer_is_skipped(probability: str) -> None:
    body = json.dumps({**chat("Hello!"), "p": 0}).replace('"p": 0', f'"p": {probability}')
    found, _ = complete(answer(200, b"\xef\xbb\xbf" + body.encode(), Content_Type="application/json"))
    assert found.content == "Hello!"


def test_a_streamed_answer_yields_parser_events_and_then_the_answer() -> None:
    found, whole, server = stream(chunked(events(delta(content="On it."), *WEATHER)))
    assert found[:2] == [Text("On it."), CallStart(0, "call_a", "get_weather")]
    assert isinstance(found[-1], CallEnd) and found[-1].call == whole.attempts[0]
    assert whole.content == "On it." and whole.attempts[0].arguments == {"city": "Oslo"} and not whole.problems
    assert whole.finish == "tool_calls" and len(whole.raw) == 5
    assert server.posts[0].body["stream_options"] == {"include_usage": True}


def test_the_answer_is_not_available_before_the_stream_has_ended() -> None:
    async def go() -> None:
        async with serving(chunked(events(delta(content="a"), delta("stop")))) as server:
            stream = backend(server).stream(ask())
            with pytest.raises(CallerError, match="take all of its events"):
                _ = stream.answer
            await stream.aclose()

    asyncio.run(go())


def test_an_answer_can_be_sent_as_a_message_of_the_next_request() -> None:
    first, _ = complete(OSLO)
    history = [{"role": "user", "content": "Weather?"}, first.message()]
    history.append({"role": "tool", "tool_call_id": first.attempts[0].id, "content": "rain"})
    _, server = complete(json_answer(chat("Rain.")), request=ask(messages=history))
    assert server.posts[0].body["messages"][1]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_tool_names_that_a_server_does_not_accept_are_mapped_and_restored() -> None:
    tools = Toolset(
        {"name": "files.read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    )
    call = json_answer(chat(calls=(("files_read", '{"path": "a"}'),)))
    request = ask(tools=tools, choice="files.read")
    found, server = complete(call, request=request)
    assert [call.name for call in found.attempts] == ["files.read"] and not found.problems
    assert server.posts[0].body["tools"][0]["function"]["name"] == "files_read"
    assert server.posts[0].body["tool_choice"]["function"]["name"] == "files_read"
    chunks = [call_delta("{}", "files_read", "c"), delta("tool_calls")]
    seen, _, _ = stream(chunked(events(*chunks)), request=request)
    assert [event.name for event in seen if isinstance(event, CallStart)] == ["files.read"]


def test_call_ids_are_unique_within_a_conversation() -> None:
    ids = Ids()
    found = [complete(OSLO, request=ask(ids=ids))[0].attempts[0].id for _ in range(2)]
    assert found == ["call_0", "call_0_dup_1"]


def test_a_whole_answer_to_a_streaming_request_is_read() -> None:
    _, whole, _ = stream(OSLO)
    assert whole.attempts[0].arguments == {"city": "Oslo"} and not whole.problems


def test_a_streamed_answer_to_a_plain_request_is_read() -> None:
    found, _ = complete(chunked(events(*WEATHER)))
    assert found.attempts[0].arguments == {"city": "Oslo"} and found.finish == "tool_calls" and not found.problems


@pytest.mark.parametrize("extra", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}])
def test_a_request_that_cannot_be_encoded_as_json_is_a_caller_error(extra: Any) -> None:
    with pytest.raises(CallerError, match="cannot be written as JSON"):
        complete(OSLO, request=ask(extra=extra))


# -- the five dialects -------------------------------------------------------------------------------------------------

ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"model": "c", "content": [], "usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city": '}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"Oslo"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"type": "function_call", "call_id": "t1", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
    },
    {
        "type": "response.completed",
        "response": {"model": "o", "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 4}},
    },
]
OLLAMA: list[dict[str, Any]] = [
    {"model": "l", "message": {"role": "assistant", "content": "", "thinking": "Hm"}, "done": False},
    {
        "model": "l",
        "message": {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}],
        },
        "done": False,
    },
    {
        "model": "l",
        "message": {"content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 9,
        "eval_count": 4,
    },
]
COMPLETIONS: list[dict[str, Any]] = [
    {"choices": [{"text": '<tool_call>\n{"name": "get_weather", "argu', "finish_reason": None}]},
    {"choices": [{"text": 'ments": {"city": "Oslo"}}\n</tool_call>', "finish_reason": None}]},
    {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
]
STREAMS: dict[str, tuple[list[bytes], str]] = {
    "chat": (events(*WEATHER, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}), "tool_calls"),
    "messages": (
        [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in ANTHROPIC],
        "tool_calls",
    ),
    "responses": (events(*RESPONSES, done=False), "stop"),
    "ollama": ([json.dumps(each).encode() + b"\n" for each in OLLAMA], "stop"),
    "completions": (events(*COMPLETIONS), "stop"),
}
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "ollama": "/api/chat",
    "completions": "/v1/completions",
}


@pytest.mark.parametrize("api", STREAMS)
def test_streams_of_every_dialect_yield_the_same_call(api: str) -> None:
    pieces, finish = STREAMS[api]
    mode = "text" if api == "completions" else "native"
    _, whole, server = stream(chunked(pieces), api=api, request=ask(mode=mode))
    assert [(call.name, call.arguments) for call in whole.attempts] == [("get_weather", {"city": "Oslo"})]
    assert (whole.finish, whole.tokens.prompt, whole.tokens.completion, whole.problems) == (finish, 9, 4, ())
    assert server.posts[0].path == PATHS[api]


@pytest.mark.parametrize("api", STREAMS)
def test_the_reply_is_independent_of_chunking_in_every_dialect(api: str) -> None:
    data = b"".join(STREAMS[api][0])
    mode = "text" if api == "completions" else "native"
    ids = [Ids.numbered("x"), Ids.numbered("x")]
    replies = [
        stream(chunked(cut), api=api, request=ask(mode=mode, ids=ids[n]))[1]
        for n, cut in enumerate(([data], [data[at : at + 5] for at in range(0, len(data), 5)]))
    ]
    assert replies[0].parts == replies[1].parts and replies[0].problems == replies[1].problems == ()


WHOLE: dict[str, Any] = {
    "messages": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}}],
        "stop_reason": "tool_use",
    },
    "responses": {"status": "completed", "output": [RESPONSES[1]["item"]]},
    "ollama": {**OLLAMA[1], "done": True, "done_reason": "stop"},
    "completions": {"choices": [{"text": "".join([each["choices"][0]["text"] for each in COMPLETIONS])}]},
}


@pytest.mark.parametrize("api", WHOLE)
def test_whole_answers_of_every_dialect_are_read(api: str) -> None:
    mode = "text" if api == "completions" else "native"
    found, server = complete(json_answer(WHOLE[api]), api=api, request=ask(mode=mode))
    assert [(call.name, call.arguments) for call in found.attempts] == [("get_weather", {"city": "Oslo"})]
    assert server.posts[0].body["stream"] is False


USAGES: dict[str, tuple[str, dict[str, Any], tuple[int, int, int | None]]] = {
    "chat, cached tokens are part of the prompt": (
        "chat",
        {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}},
        (9, 4, 3),
    ),
    "responses, cached tokens are part of the prompt": (
        "responses",
        {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 3}},
        (9, 4, 3),
    ),
    "messages, read from the cache": (
        "messages",
        {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 3},
        (12, 4, 3),
    ),
    "messages, written to the cache": (
        "messages",
        {"input_tokens": 9, "output_tokens": 4, "cache_creation_input_tokens": 2},
        (11, 4, None),
    ),
    "messages, read from and written to the cache": (
        "messages",
        {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2},
        (14, 4, 3),
    ),
    "messages, no cache": (
        "messages",
        {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 0, "cache_creation_input_tokens": None},
        (9, 4, 0),
    ),
}


@pytest.mark.parametrize("case", USAGES)
def test_prompt_tokens_include_those_read_from_or_written_to_a_cache(case: str) -> None:
    api, usage, expected = USAGES[case]
    body = {**(chat("Hi.") if api == "chat" else WHOLE[api]), "usage": usage}
    tokens = complete(json_answer(body), api=api, request=ask(mode="native"))[0].tokens
    assert (tokens.prompt, tokens.completion, tokens.cached) == expected


def test_signed_thinking_is_sent_back_unchanged() -> None:
    _, first, _ = stream(chunked(STREAMS["messages"][0]), api="messages")
    history = [{"role": "user", "content": "Weather?"}, first.message()]
    history.append({"role": "tool", "tool_call_id": "t1", "content": "rain"})
    done = json_answer({"type": "message", "content": [{"type": "text", "text": "Rain."}], "stop_reason": "end_turn"})
    _, server = complete(done, api="messages", request=ask(messages=history))
    assistant = server.posts[0].body["messages"][1]
    assert assistant["content"][0] == {"type": "thinking", "thinking": "Hm", "signature": "s1"}
    _, other = complete(json_answer(chat("Rain.")), request=ask(messages=history))
    assert "rightcall_opaque" not in json.dumps(other.posts[0].body)


# -- text mode ---------------------------------------------------------------------------------------------------------


def test_in_text_mode_tools_are_in_the_prompt_and_calls_are_parsed_from_text() -> None:
    text = 'On it.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    answer, server = complete(json_answer(chat(text)), request=ask(mode="text", choice="required"))
    body = server.posts[0].body
    assert "tools" not in body and "tool_choice" not in body
    system, user = body["messages"]
    assert system["role"] == "system" and "get_weather" in system["content"] and "action-gated" in system["content"]
    assert user == {"role": "user", "content": "Weather in Oslo?"}
    assert (answer.mode, answer.content, answer.attempts[0].arguments) == ("text", "On it.", {"city": "Oslo"})


def test_in_text_mode_calls_and_results_of_the_history_are_text() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "rain"},
    ]
    _, server = complete(json_answer(chat("Rain.")), request=ask(mode="text", messages=history))
    sent = server.posts[0].body["messages"]
    assert [each["role"] for each in sent] == ["system", "user", "assistant", "user"]
    assert sent[0]["content"].startswith("Be brief.\n\n")
    assert sent[2]["content"].startswith("<tool_call>") and "rain" in sent[3]["content"]


def test_a_completions_server_gets_the_turns_in_the_frame_of_its_models() -> None:
    _, server = complete(
        json_answer({"choices": [{"text": "Hi", "finish_reason": "stop"}]}), api="completions", request=ask(mode="text")
    )
    body = server.posts[0].body
    assert body["prompt"].startswith("<|im_start|>system\n") and body["prompt"].endswith("<|im_start|>assistant\n")
    assert body["stop"] == ["<|im_end|>"] and "messages" not in body


def test_native_mode_is_unsupported_for_completions() -> None:
    error = failure(OSLO, kind=_unsupported_error(), api="completions", request=ask(mode="native"))
    assert "mode='text'" in str(error)


def _unsupported_error() -> type[BackendError]:
    from rightcall.errors import Unsupported

    return Unsupported


# -- errors ------------------------------------------------------------------------------------------------------------


def test_an_unreachable_server_is_a_transport_error() -> None:
    async def go() -> None:
        async with serving(OSLO) as server:
            gone = backend(server, retries=Retries(most=0))
            port = server.port
        with pytest.raises(
            TransportError, match=f"cannot call http://127.0.0.1:{port}/.*is the server running"
        ) as raised:
            await gone.complete(ask())
        assert len(raised.value.tries) == 1

    asyncio.run(go())


def test_a_connection_that_closes_before_an_answer_is_a_transport_error() -> None:
    assert "is the server running" in str(failure(drop, kind=TransportError))


def test_an_answer_that_is_not_http_is_a_transport_error() -> None:
    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    assert "SSH-2.0" in str(failure(nonsense, kind=TransportError))


def test_a_connection_closed_inside_the_body_is_a_body_error() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"choices": ')

    assert "broke in the middle" in str(failure(half, kind=BodyError))


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b'{"choices": [', b"\xff\xfe"])
def test_an_answer_that_is_not_json_is_a_decode_error(body: bytes) -> None:
    error = failure(answer(200, body), kind=DecodeError)
    assert "is this the address of an API?" in str(error) and ("it begins" if body else "it is empty") in str(error)
    with pytest.raises(DecodeError):
        stream(answer(200, body), retries=Retries(most=0))


@pytest.mark.parametrize(
    "api, body",
    [
        ("chat", {}),
        ("chat", {"choices": []}),
        ("chat", {"choices": [{}]}),
        ("chat", {"choices": [None]}),
        ("chat", {"output": []}),
        ("chat", None),
        ("chat", []),
        ("responses", {"choices": []}),
        ("messages", {"choices": []}),
        ("ollama", {"choices": []}),
    ],
)
def test_an_answer_of_another_api_is_a_decode_error_that_names_the_missing_field(api: str, body: Any) -> None:
    error = failure(json_answer(body), kind=DecodeError, api=api)
    assert "is missing `" in str(error) and f"api={api!r}" in str(error)
    with pytest.raises(DecodeError):
        stream(chunked(events(body)), api=api)


def test_an_empty_answer_is_accepted() -> None:
    found, _ = complete(json_answer(chat("")))
    assert found.parts == () and found.finish == "stop"
    _, whole, _ = stream(chunked(events(delta("stop"))))
    assert whole.parts == () and not whole.problems


@pytest.mark.parametrize(
    "status, kind, cure",
    [
        (400, StatusError, "see its message"),
        (401, Unauthorised, "api_key_env"),
        (403, Unauthorised, "api_key_env"),
        (404, StatusError, "check the base URL"),
        (413, StatusError, "fewer or shorter"),
        (418, StatusError, "see its message"),
        (429, RateLimited, "wait"),
        (500, StatusError, "log"),
        (503, StatusError, "log"),
    ],
)
def test_a_status_error_has_the_status_the_body_and_a_cure(status: int, kind: type[StatusError], cure: str) -> None:
    error = failure(json_answer({"error": {"message": "no way"}}, status), kind=kind)
    assert isinstance(error, StatusError)
    assert error.status == status and error.body == '{"error": {"message": "no way"}}'
    assert f"returned HTTP {status}: " in str(error) and "no way" in str(error) and cure in str(error)


def test_a_redirect_is_reported_and_not_followed() -> None:
    error = failure(answer(307, b"", Location="https://elsewhere.example/v1"), kind=StatusError)
    assert "use that as the base URL" in str(error) and "elsewhere.example" in str(error)


def test_a_large_error_body_is_read_and_shown_in_part() -> None:
    error = failure(answer(400, b"x" * 1_000_000), kind=StatusError)
    assert isinstance(error, StatusError) and len(error.body) == 64_000 and len(str(error)) < 3_000
    assert "x ... (62,000 characters more); " in str(error)


def test_an_error_object_in_place_of_an_answer_is_a_provider_error() -> None:
    error = failure(json_answer({"error": {"message": "model crashed", "type": "bad"}}), kind=ProviderError)
    assert "model crashed" in str(error) and isinstance(error, ProviderError) and error.kind == "bad"
    with pytest.raises(ProviderError):
        stream(chunked(events({"error": {"message": "model crashed"}})))
    error_event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    overloaded = chunked([f"event: error\ndata: {json.dumps(error_event)}\n\n".encode()])
    with pytest.raises(ProviderError, match="Overloaded") as raised:
        stream(overloaded, api="messages", retries=QUICK)
    assert len(raised.value.tries) == 3


def test_a_key_is_sent_and_never_appears_in_an_error() -> None:
    echo = json_answer({"error": {"message": "wrong key sk-hunter2-hunter2"}}, 401)
    error = failure(echo, kind=Unauthorised, environ=SECRET)
    assert isinstance(error, StatusError)
    assert "hunter2" not in f"{error} {error!r} {error.body} {error.tries} {error.args}"
    _, server = complete(OSLO, environ=SECRET)
    assert server.posts[0].headers["authorization"] == "Bearer sk-hunter2-hunter2"
    _, other = complete(json_answer(WHOLE["messages"]), api="messages", environ=SECRET)
    assert other.posts[0].headers["x-api-key"] == "sk-hunter2-hunter2" and "authorization" not in other.posts[0].headers
    assert other.posts[0].headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize(
    "body", [b"sk-hunter2-hunter2", b'{"error": "sk-hunter2-hunter2"}', b"data: sk-hunter2-hunter2\n\n"]
)
def test_a_key_that_the_server_returns_appears_in_no_error(body: bytes) -> None:
    with pytest.raises(BackendError) as raised:
        complete(answer(200, body), environ=SECRET)
    assert "hunter2" not in f"{raised.value} {raised.value!r} {vars(raised.value)}"


# -- retries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_transient_status_is_retried(status: int) -> None:
    found, server = complete(json_answer({}, status), json_answer({}, status), OSLO)
    assert [each.status for each in found.tries] == [status, status, 200] and len(server.posts) == 3
    assert found.tries[0].waited > 0 and "HTTP" in found.tries[0].error and not found.tries[2].error


@pytest.mark.parametrize("status", [400, 401, 404, 422, 501])
def test_a_permanent_status_is_not_retried(status: int) -> None:
    async def go() -> int:
        async with serving(json_answer({}, status), OSLO) as server:
            with pytest.raises(StatusError):
                await backend(server).complete(ask())
            return len(server.posts)

    assert asyncio.run(go()) == 1


def test_a_closed_connection_is_retried() -> None:
    found, _ = complete(drop, OSLO)
    assert [each.status for each in found.tries] == [0, 200]
    _, whole, _ = stream(drop, chunked(events(*WEATHER)))
    assert [each.status for each in whole.tries] == [0, 200]


def test_the_last_error_lists_all_tries() -> None:
    with pytest.raises(StatusError) as raised:
        complete(json_answer({}, 500))
    assert [each.status for each in raised.value.tries] == [500, 500, 500]  # type: ignore[attr-defined]


def test_retry_after_is_honoured_up_to_a_limit() -> None:
    found, _ = complete(json_answer({}, 429, Retry_After="0.05"), OSLO)
    assert found.tries[0].waited == 0.05
    with pytest.raises(RateLimited) as raised:
        complete(json_answer({}, 429, Retry_After="3600"), OSLO)
    assert raised.value.retry_after == 3600 and len(raised.value.tries) == 1


def test_a_stream_is_not_retried_after_its_first_event() -> None:
    broken = chunked(events(delta(content="Hello there."), done=False), ends=False)
    _, whole, server = stream(broken, OSLO)
    assert whole.content == "Hello there." and len(server.posts) == 1


# -- broken streams ----------------------------------------------------------------------------------------------------

TRUNCATED_STREAMS: dict[str, tuple[list[bytes], bool]] = {
    "in the middle of the arguments": (events(*WEATHER[:2], done=False), False),
    "before the arguments": (events(WEATHER[0], done=False), False),
    "in the middle of a line": ([*events(*WEATHER[:2], done=False), b'data: {"choices": [{"del'], False),
    "ended in good order, unfinished": (events(*WEATHER[:2], done=False), True),
}


@pytest.mark.parametrize("pieces, ends", TRUNCATED_STREAMS.values(), ids=TRUNCATED_STREAMS)
def test_a_broken_stream_keeps_its_text_and_completes_no_call(pieces: list[bytes], ends: bool) -> None:
    pieces = [*events(delta(content="On it."), done=False), *pieces]
    _, whole, _ = stream(chunked(pieces, ends=ends))
    assert whole.content == "On it."
    assert not any(call.complete for call in whole.attempts)
    assert "truncated" in {problem.code for problem in whole.problems if problem.blocking}


def test_a_call_completed_before_the_stream_breaks_is_kept_and_the_break_is_reported() -> None:
    _, whole, _ = stream(chunked(events(*WEATHER[:3], done=False), ends=False))
    assert [call.complete for call in whole.attempts] == [True]
    (problem,) = whole.problems
    assert problem.code == "truncated" and problem.blocking and problem.call is None


def test_a_broken_stream_does_not_complete_a_call_in_text() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'
    _, whole, _ = stream(chunked(events(delta(content=text), done=False), ends=False), request=ask(mode="text"))
    assert not any(call.complete for call in whole.attempts) and whole.problems


def test_a_missing_done_event_is_accepted_after_a_finish_reason() -> None:
    _, whole, _ = stream(chunked(events(*WEATHER, done=False)))
    assert whole.attempts[0].complete and not whole.problems


def test_a_missing_finish_reason_is_accepted_after_the_done_event() -> None:
    _, whole, _ = stream(chunked(events(*WEATHER[:3])))
    assert whole.attempts[0].complete and not whole.problems


def test_an_error_inside_a_stream_is_a_problem_and_earlier_text_is_kept() -> None:
    bad = {"error": {"message": "out of memory", "type": "server_error"}}
    _, whole, _ = stream(chunked(events(delta(content="On it."), *WEATHER[:2], bad)))
    assert whole.content == "On it." and not whole.attempts[0].complete
    assert [problem.code for problem in whole.problems if problem.call is None] == ["provider_error"]


def test_a_chunk_that_is_not_json_is_a_problem_and_later_chunks_are_read() -> None:
    _, whole, _ = stream(chunked(events(delta(content="a"), "{oops", delta(content="b"), delta("stop"))))
    assert whole.content == "ab" and [problem.code for problem in whole.problems] == ["malformed_chunk"]


def test_sse_comments_are_skipped() -> None:
    pieces = [b": ping\n\n", *events(delta(content="a"), done=False), b": ping\r\n\r\n", *events(delta("stop"))]
    _, whole, _ = stream(chunked(pieces))
    assert whole.content == "a" and not whole.problems


def test_a_line_over_the_size_limit_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.attempts.MAX_LINE", 10_000)
    pieces = [*events(delta(content="a"), done=False), b"data: " + b"x" * 20_000]
    _, whole, _ = stream(chunked(pieces, then=silence))
    assert whole.content == "a" and [problem.code for problem in whole.problems] == ["too_large"]


def test_an_answer_over_the_size_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.attempts.MAX_BODY", 10_000)
    assert "larger than" in str(failure(chunked([b"x" * 20_000], then=silence), kind=AnswerTooLarge))


def test_an_answer_over_the_size_limit_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.attempts.MAX_BODY", 10_000)
    error = failure(chunked([b"x" * 20_000]), kind=AnswerTooLarge, retries=QUICK)
    assert len(error.tries) == 1


def test_a_stream_over_the_size_limit_is_ended_with_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.backends.attempts.MAX_BODY", 10_000)
    pieces = events(*[delta(content="word ")] * 300, done=False)
    _, whole, _ = stream(chunked(pieces, then=silence))
    assert [problem.code for problem in whole.problems] == ["too_large"] and whole.content.startswith("word word")


def test_a_connection_left_open_after_the_final_event_is_not_awaited() -> None:
    _, whole, _ = stream(chunked(events(*WEATHER), then=silence), timeouts=_timeouts(idle=20))
    assert whole.attempts[0].complete and not whole.problems and whole.timing.total < 15


def test_a_connection_that_breaks_after_the_finish_reason_loses_nothing() -> None:
    for done in (True, False):
        _, whole, _ = stream(chunked(events(*WEATHER, done=done), ends=False))
        assert whole.attempts[0].complete and not whole.problems


def test_the_cause_of_a_broken_stream_is_recorded_with_the_attempt() -> None:
    _, whole, _ = stream(chunked(events(delta(content="Hello there."), done=False), ends=False))
    assert "the connection broke" in whole.tries[-1].error and whole.tries[-1].status == 200
    assert "http" not in whole.problems[0].message


def test_a_key_in_an_error_event_appears_in_no_problem() -> None:
    bad = {"error": {"message": "wrong key sk-hunter2-hunter2"}}
    pieces = events(delta(content="Hello there."), bad, "{sk-hunter2-hunter2")
    _, whole, _ = stream(chunked(pieces), environ=SECRET)
    assert len(whole.problems) >= 2 and "hunter2" not in repr(whole)


# -- allowed tools -----------------------------------------------------------------------------------------------------

_BOTH = Toolset([{"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("one", "two")])


@pytest.mark.parametrize(
    "choice, called, code",
    [
        ("none", "one", "not_authorised"),
        ("two", "one", "not_authorised"),
        ("two", "two", None),
        ("required", "one", None),
    ],
)
def test_a_call_outside_the_tool_choice_is_blocked(choice: str, called: str, code: str | None) -> None:
    found, _ = complete(json_answer(chat(calls=((called, "{}"),))), request=ask(tools=_BOTH, choice=choice))
    assert [call.name for call in found.attempts] == [called]
    assert [problem.code for problem in found.problems if problem.blocking] == ([code] if code else [])


def test_a_request_with_an_iterator_of_tools_can_be_sent_many_times() -> None:
    request = ask(tools=iter([get_weather]))
    for _ in range(2):
        found, server = complete(OSLO, request=request)
        assert found.attempts and not found.problems and server.posts[0].body["tools"]


# -- time limits -------------------------------------------------------------------------------------------------------


def _timeouts(**changes: float) -> Timeouts:
    return Timeouts(**{"connect": 5, "first_byte": 20, "idle": 20, "total": 20, **changes})


@pytest.mark.parametrize(
    "slow, limits, stage",
    [
        (silence, {"first_byte": 0.2}, "first_byte"),
        (silence, {"total": 0.2}, "total"),
        (chunked([], then=silence), {"first_byte": 0.2}, "first_byte"),
        (chunked([b'{"a": '], then=silence), {"idle": 0.2}, "idle"),
        (chunked([b'{"a": '], then=silence), {"total": 0.2}, "total"),
    ],
)
def test_a_timed_out_request_names_the_exceeded_limit(
    slow: Callable[[asyncio.StreamWriter], Awaitable[None]], limits: dict[str, float], stage: str
) -> None:
    error = failure(slow, kind=TimedOut, timeouts=_timeouts(**limits))
    assert isinstance(error, TimedOut) and error.stage == stage and "0.2 s" in str(error)


def test_a_stream_that_times_out_keeps_its_text() -> None:
    quiet = chunked(events(delta(content="Hello there."), done=False), then=silence)
    _, whole, _ = stream(quiet, timeouts=_timeouts(idle=0.2))
    assert whole.content == "Hello there." and [problem.code for problem in whole.problems] == ["truncated"]
    _, whole, _ = stream(quiet, timeouts=_timeouts(total=0.5))
    assert whole.content == "Hello there." and [problem.code for problem in whole.problems] == ["truncated"]


def test_a_connection_that_is_never_accepted_times_out() -> None:
    import socket

    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        queued = [socket.socket() for _ in range(4)]
        for each in queued:  # Fill the queue, so that the next connection waits.
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        client = Backend(url, timeouts=_timeouts(connect=0.2), retries=Retries(most=0), environ={})
        with pytest.raises(TimedOut) as raised:
            asyncio.run(client.complete(ask()))
        for each in queued:
            each.close()
    assert raised.value.stage == "connect"


def test_the_wait_before_a_retry_counts_towards_the_total_limit() -> None:
    with pytest.raises(StatusError) as raised:
        complete(json_answer({}, 503, Retry_After="20"), timeouts=_timeouts(total=5), retries=Retries(longest=60))
    assert len(raised.value.tries) == 1


# -- cancellation ------------------------------------------------------------------------------------------------------


def test_cancelling_closes_the_connection() -> None:
    async def go() -> None:
        async with serving(silence) as server:
            task = asyncio.create_task(backend(server).complete(ask()))
            while not server.posts:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.client_closed.wait(), 10)

    asyncio.run(go())


@pytest.mark.parametrize("entered", [False, True])
def test_leaving_a_stream_closes_the_connection(entered: bool) -> None:
    async def go() -> None:
        async with serving(chunked(events(delta(content="Hello there."), done=False), then=silence)) as server:
            client = backend(server)
            if entered:
                await client.__aenter__()
            async with client.stream(ask()) as stream:
                async for _ in stream:
                    break
            await asyncio.wait_for(server.client_closed.wait(), 10)
            await client.aclose()

    asyncio.run(go())


# -- synchronous use ---------------------------------------------------------------------------------------------------


class ThreadedServer:
    """A server in its own thread, for tests without an event loop or with a blocked one."""

    def __init__(self, *answers: Any) -> None:
        self._answers = answers
        self._ready = threading.Event()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(*self._answers) as self.server:
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> Loopback:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)
        return self.server

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def test_requests_work_without_an_event_loop() -> None:
    with ThreadedServer(OSLO, chunked(events(*WEATHER))) as server:
        client = backend(server)
        assert client.complete_sync(ask()).attempts[0].arguments == {"city": "Oslo"}
        stream = client.stream_sync(ask())
        assert isinstance(list(stream)[-1], CallEnd) and stream.answer.finish == "tool_calls"


def test_synchronous_requests_work_inside_a_running_event_loop() -> None:
    with ThreadedServer(OSLO, chunked(events(*WEATHER))) as server:

        async def inside() -> tuple[Answer, int]:
            client = backend(server)
            return client.complete_sync(ask()), len(list(client.stream_sync(ask())))

        found, count = asyncio.run(inside())
        assert found.attempts[0].arguments == {"city": "Oslo"} and count > 2


def test_leaving_a_synchronous_stream_closes_the_connection_and_ends_its_thread() -> None:
    before = threading.active_count()
    with ThreadedServer(chunked(events(delta(content="Hello there."), done=False), then=silence)) as server:
        with backend(server).stream_sync(ask()) as stream:
            assert next(stream) == Text("Hello there.")
        until = time.monotonic() + 10
        while not server.client_closed.is_set() and time.monotonic() < until:
            time.sleep(0.01)
        assert server.client_closed.is_set()
    assert threading.active_count() == before


def test_synchronous_requests_raise_the_same_errors() -> None:
    with ThreadedServer(json_answer({}, 404)) as server:
        with pytest.raises(StatusError):
            backend(server).complete_sync(ask())
        with pytest.raises(StatusError):
            next(backend(server).stream_sync(ask()))


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"choice": "get_wether"}, "neither auto, required, none nor a tool"),
        ({"choice": "f", "tools": None}, "nor a tool of this request"),
        ({"mode": "magic"}, "native, text, grammar, auto"),
        ({"stop": "END"}, "tuple of strings"),
        ({"messages": "hello"}, "list of messages"),
        ({"messages": ["hello"]}, "list of messages"),
        ({"messages": [{"content": "no role"}]}, "list of messages"),
    ],
)
def test_an_invalid_request_is_rejected_on_construction(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        ask(**fields)


def test_a_request_accepts_functions_lists_and_toolsets_as_tools() -> None:
    for tools in (get_weather, [get_weather], Toolset(get_weather)):
        found, _ = complete(OSLO, request=ask(tools=tools))
        assert found.attempts and not found.problems
