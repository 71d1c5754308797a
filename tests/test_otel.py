"""Spans that follow the GenAI conventions, read back from the real SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rightcall import Call, dispatch, dispatch_sync, tool
from rightcall.dispatching.hook import Skip, Terminate
from rightcall.dispatching.otel import Spans
from rightcall.errors import DispatchTerminated


class Recorder:
    """A separate tracer provider and the spans that it exported."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.hook = Spans(tracer_provider=self.provider, **options)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def run(self, tool: Any, *hooks: Any, **arguments: Any) -> ReadableSpan:
        dispatch_sync(Call(tool.__name__, arguments, "", id="call_7"), [tool], hooks=[self.hook, *hooks])
        return self.spans[-1]


async def weather(city: str) -> str:
    """The weather now."""
    return f"sunny in {city}"


def test_a_call_is_a_span_with_the_attributes_of_the_conventions_and_no_content() -> None:
    span = Recorder().run(weather, city="Oslo")
    assert (span.name, span.kind) == ("execute_tool weather", SpanKind.INTERNAL)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "call_7",
        "gen_ai.tool.description": "The weather now.",
        "gen_ai.tool.type": "function",
    }
    assert span.status.status_code is StatusCode.UNSET and "Oslo" not in span.to_json()


def test_content_is_recorded_on_request_with_bounded_length() -> None:
    attributes = Recorder(content=True).run(weather, city="Oslo" * 5_000).attributes or {}
    assert str(attributes["gen_ai.tool.call.arguments"]).startswith('{"city":"Oslo')
    result = str(attributes["gen_ai.tool.call.result"])
    assert result.startswith("sunny in Oslo") and len(result) < 9_000


def test_the_message_of_a_failure_is_recorded_only_with_content() -> None:
    async def fails(secret: str) -> None:
        raise LookupError(secret)

    for content in (False, True):
        span = Recorder(content=content).run(fails, secret="hunter2")
        assert (span.attributes or {})["error.type"] == "LookupError"
        assert span.status.status_code is StatusCode.ERROR
        assert ("hunter2" in span.to_json()) == content


def test_skipped_and_terminated_calls_are_distinguished() -> None:
    recorder = Recorder()
    skipped = recorder.run(weather, lambda _: Skip("cached"), city="Oslo")
    assert (skipped.attributes or {})["rightcall.outcome"] == "skipped"
    with pytest.raises(DispatchTerminated):
        recorder.run(weather, lambda _: Terminate("no"), city="Oslo")
    attributes = recorder.spans[-1].attributes or {}
    assert (attributes["rightcall.outcome"], attributes["error.type"]) == ("terminated", "DispatchTerminated")


def test_a_call_that_never_reaches_the_hook_has_no_span() -> None:
    recorder = Recorder()
    hooks: list[Any] = [lambda _: Terminate("no"), recorder.hook]
    with pytest.raises(DispatchTerminated):
        dispatch_sync(Call("weather", {"city": "Oslo"}, ""), [weather], hooks=hooks)
    dispatch_sync(Call("weather", {}, ""), [weather], hooks=[recorder.hook])
    assert recorder.spans == ()


def test_spans_of_a_tool_are_children_of_its_call_in_threads_and_in_parallel() -> None:
    recorder = Recorder()
    tracer = recorder.provider.get_tracer("test")

    @tool(read_only=True)
    async def async_tool(n: int) -> None:
        await asyncio.sleep(0.001)
        tracer.start_span(f"inner {n}").end()

    @tool(read_only=True)
    def sync_tool(n: int) -> None:
        tracer.start_span(f"inner {n}").end()

    async def main() -> None:
        calls = [Call("async_tool" if n % 2 else "sync_tool", {"n": n}, "", id=str(n)) for n in range(6)]
        with tracer.start_as_current_span("chat"):
            before = trace.get_current_span()
            await dispatch(calls, [async_tool, sync_tool], hooks=[recorder.hook], parallel=True)
            assert trace.get_current_span() is before

    asyncio.run(main())
    by_id = {span.context.span_id: span for span in recorder.spans if span.context}
    for span in recorder.spans:
        if span.name.startswith("inner"):
            parent = by_id[span.parent.span_id] if span.parent else None
            assert parent is not None and (parent.attributes or {})["gen_ai.tool.call.id"] == span.name[-1]
        if span.name.startswith("execute_tool"):
            assert span.parent is not None and by_id[span.parent.span_id].name == "chat"
    assert len(recorder.spans) == 13


def test_opentelemetry_is_imported_only_for_spans() -> None:
    program = (
        "import sys, rightcall, rightcall.dispatching.trace; rightcall.dispatch; print('opentelemetry' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"
