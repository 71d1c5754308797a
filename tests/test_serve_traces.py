"""Spans of the proxy, read with the real SDK."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rightcall.serve.answer_writer import AnswerUsage
from rightcall.serve.exchanged import Exchanged, ExchangedContent
from rightcall.serve.proxy_traces import ProxyTraces

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _span(exchanged: Exchanged, **headers: str):  # type: ignore[no-untyped-def]
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = ProxyTraces(tracer_provider=provider)
    span = traces.begin(headers)
    carried = traces.carried(span)
    traces.end(span, exchanged)
    (finished,) = exporter.get_finished_spans()
    assert format(finished.context.trace_id, "032x") in carried["traceparent"]
    return finished


def test_a_request_is_a_span_with_conventional_attributes_and_no_content() -> None:
    exchanged = Exchanged(
        id="req_1", route="chat", client_api="messages", upstream_api="ollama", model="qwen3",
        upstream_model="qwen3:8b", upstream="here", mode="text", status=200, finish="tool_calls",
        tokens=AnswerUsage(10, 5), repairs=["fence"],
        guard=["loops: nudge"], content=ExchangedContent(sent={"messages": "swordfish"}),
    )  # fmt: skip
    span = _span(exchanged, traceparent=f"00-{TRACE}-b7ad6b7169203331-01")
    assert (span.name, span.kind) == ("chat qwen3", SpanKind.CLIENT)
    assert format(span.context.trace_id, "032x") == TRACE
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "ollama",
        "gen_ai.request.model": "qwen3",
        "gen_ai.response.model": "qwen3:8b",
        "gen_ai.response.id": "req_1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "http.response.status_code": 200,
        "rightcall.upstream": "here",
        "rightcall.mode": "text",
        "rightcall.repairs": ("fence",),
    }
    assert span.events[0].name == "rightcall.intervention" and span.status.status_code is StatusCode.UNSET
    assert "swordfish" not in span.to_json()


def test_a_failure_sets_the_error_status_and_type() -> None:
    span = _span(Exchanged(id="req_1", route="messages", model="x" * 999, status=502, error="upstream_error"))
    assert span.attributes["error.type"] == "upstream_error" and span.status.status_code is StatusCode.ERROR
    assert len(span.name) < 220
