"""A secret is planted wherever rightcall can store one, and must not appear in anything that rightcall shows."""

import asyncio
import inspect
import json
import pydoc
from pathlib import Path
from typing import Any

import pytest

import rightcall
from rightcall import Call, Trace, dispatch_sync
from rightcall import request_gate as gate
from rightcall.backends import address, http, local, recording
from rightcall.backends import aiohttp_exchange as wire
from rightcall.backends.exchange import HttpRequest
from rightcall.backends.http import Backend
from rightcall.backends.recording import Recorder, ReplayServer
from rightcall.dispatching.hook import Invocation, Skip
from rightcall.errors import BackendError
from rightcall.mcp import server as mcp_server
from rightcall.request_gate import make_gate, new_key
from support.loopback import QUICK, SHORT, answer, ask, chat, delta, json_answer, serving

PLANTED = "hunter2-hunter2-hunter2"
ENVIRON = {"OPENAI_API_KEY": PLANTED}
MODULES = (address, http, local, recording, recording, wire, mcp_server, gate, rightcall)


def test_help_texts_contain_no_environment_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    for module in MODULES:
        assert PLANTED not in pydoc.render_doc(module)
        for _, value in inspect.getmembers(module, callable):
            assert PLANTED not in pydoc.render_doc(value)


def test_no_parameter_has_the_environment_as_its_default() -> None:
    import os

    for module in MODULES:
        for _, value in inspect.getmembers(module, lambda value: inspect.isfunction(value) or inspect.isclass(value)):
            for each in [value, *vars(value).values()] if inspect.isclass(value) else [value]:
                if inspect.isfunction(each):
                    given = [one.default for one in inspect.signature(each).parameters.values()]
                    assert not any(one is os.environ for one in given), each


ERRORS = {
    "an echo": answer(401, f"bad key {PLANTED}".encode()),
    "an echo in JSON": json_answer({"error": {"message": f"Incorrect API key provided: {PLANTED}"}}, 401),
    "an error in an answer": json_answer({"error": {"message": PLANTED, "type": "x"}}),
    "no JSON": answer(200, f"<html>{PLANTED}</html>".encode(), Content_Type="application/json"),
    "another's key": answer(500, b"upstream said: Authorization: Bearer abcdefgh-hunter2-12345678"),
    "a header of ours": answer(400, b"X-Team-Token: hunter2-of-the-team"),
}


@pytest.mark.parametrize("response", ERRORS.values(), ids=ERRORS)
def test_errors_contain_no_key(response: Any, tmp_path: Path) -> None:
    async def main() -> list[Any]:
        async with serving(response) as server:
            headers = {"X-Team-Token": "hunter2-of-the-team"}
            backend = Backend(
                server.url, model="m", timeouts=SHORT, retries=QUICK, environ=ENVIRON, headers=headers, mode="native"
            )
            recorder = Recorder(backend, tmp_path / "c.jsonl")
            shown: list[Any] = [repr(backend), str(backend), repr(recorder), repr(backend.key), repr(backend.exchange)]
            with pytest.raises(BackendError) as raised:
                await recorder.complete(ask())
            error = raised.value
            return [*shown, str(error), repr(error), error.args, getattr(error, "body", ""), error.tries]

    assert "hunter2" not in str(asyncio.run(main()))
    assert "hunter2" not in (tmp_path / "c.jsonl").read_text()


BROKEN_OFF: dict[str, Any] = {
    "an error": {"error": {"message": f"bad {PLANTED}"}},
    "a choice that failed": {"choices": [{"index": 0, "delta": {"content": "x"}, "error": {"message": PLANTED}}]},
    "a response that failed": {"type": "response.failed", "response": {"error": {"message": f"bad {PLANTED}"}}},
    "no JSON": f"{{broken {PLANTED}",
}


@pytest.mark.parametrize("chunk", BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_answers_that_broke_off_contain_no_key(chunk: Any) -> None:
    api = "responses" if "response" in chunk else "chat"
    text = {"type": "response.output_text.delta", "delta": "Hi"} if api == "responses" else delta(content="Hi")
    body = f"data: {json.dumps(text)}\n\ndata: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n"

    async def main() -> str:
        async with serving(answer(200, body.encode(), Content_Type="text/event-stream")) as server:
            backend = Backend(server.url, model="m", api=api, timeouts=SHORT, environ=ENVIRON, mode="native")
            async with backend.stream(ask()) as events:
                shown = [event async for event in events]
                assert events.answer.content.startswith("Hi") and events.answer.problems
                return f"{shown} {events.answer!r}"

    assert "hunter2" not in asyncio.run(main())


def test_representations_of_objects_contain_no_key(tmp_path: Path) -> None:
    async def record_one() -> None:
        async with serving(json_answer(chat("Hello!"))) as server:
            backend = Backend(server.url, model="m", timeouts=SHORT, environ=ENVIRON, mode="native")
            await Recorder(backend, tmp_path / "c.jsonl").complete(ask())

    asyncio.run(record_one())
    server, key = ReplayServer(tmp_path / "c.jsonl", key=PLANTED), new_key()
    shown = [
        repr(HttpRequest("POST", "http://h", {}, {"Authorization": PLANTED})),
        repr(server),
        repr(server.key),
        repr(make_gate("127.0.0.1", key=server.key)),
        repr(vars(server)),
    ]
    assert "hunter2" not in str(shown) and key.reveal() not in repr(key)


def fail_with_password(url: str, password: str) -> str:
    raise OSError(f"cannot connect to postgres://app:{password}@db:5432")


def return_password(password: str) -> dict[str, str]:
    return {"password": password, "text": f"token={password}"}


def test_traces_and_spans_contain_no_secret() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from rightcall.dispatching.otel import Spans

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def skip_by_hook(invocation: Invocation) -> Skip | None:
        return Skip("no", f"api_key={PLANTED}") if invocation.call.arguments.get("url") == "skip" else None

    trace = Trace()
    calls = [
        Call("fail_with_password", {"url": "x", "password": PLANTED}),
        Call("fail_with_password", {"url": "skip", "password": PLANTED}),
        Call("return_password", {"password": PLANTED}),
    ]
    hooks: list[Any] = [Spans(tracer_provider=provider, content=True), skip_by_hook]
    dispatch_sync(calls, [fail_with_password, return_password], trace=trace, hooks=hooks)
    assert "hunter2" not in f"{trace} {trace!r} {json.dumps(trace.to_json())}"
    spans = exporter.get_finished_spans()
    assert len(spans) == 3 and "hunter2" not in str([span.to_json() for span in spans])
    assert Trace.from_json(trace.to_json()) == trace
