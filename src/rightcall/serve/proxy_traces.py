"""OpenTelemetry: a span `chat {model}` for each request to a model, with the attributes of the GenAI conventions.

    traces = ProxyTraces()
    span = traces.begin(request_headers)        # goes on with the client's trace, if it sent one
    ... send traces.carried(span) upstream ...
    traces.end(span, exchanged)

No content. Needs the extra `otel`; where spans go is the SDK's to say (OTEL_* variables).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightcall.api_names import Api
from rightcall.extras import require_extra
from rightcall.serve.exchanged import SERVED_BY, Exchanged
from rightcall.types import Json

SCOPE = "rightcall.serve"
_LONGEST = 200  # characters of a model's name
# The names of the conventions, for those who speak a dialect: that is all that is known of most servers.
_PROVIDERS: dict[Api, str] = {
    "chat": "openai",
    "completions": "openai",
    "responses": "openai",
    "messages": "anthropic",
    "gemini": "gcp.gemini",
    "ollama": "ollama",
}
_ROUTES = frozenset(SERVED_BY.values())


class ProxyTraces:
    """Spans of requests. `tracer_provider`: None for the global one. Raises `MissingExtra`."""

    def __init__(self, *, tracer_provider: Any = None) -> None:
        require_extra("otel")
        from opentelemetry import trace

        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)

    def begin(self, headers: Mapping[str, str]) -> Any:
        """The span of a request with these headers (names in small letters)."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        return self._tracer.start_span("chat", context=extract(headers), kind=SpanKind.CLIENT)

    def carried(self, span: Any) -> dict[str, str]:
        """The headers that let an upstream go on with the trace."""
        from opentelemetry.propagate import inject
        from opentelemetry.trace import set_span_in_context

        headers: dict[str, str] = {}
        inject(headers, set_span_in_context(span))
        return headers

    def end(self, span: Any, exchanged: Exchanged) -> None:
        """Ends the span with what became of the request."""
        from opentelemetry.trace import Status, StatusCode

        model = exchanged.model[:_LONGEST]
        operation = "text_completion" if exchanged.route == "completions" else "chat"
        span.update_name(f"{operation} {model}".strip() if exchanged.route in _ROUTES else exchanged.route)
        span.set_attributes(_attributes(exchanged, operation))
        if exchanged.error or exchanged.status >= 500:
            span.set_attribute("error.type", exchanged.error or str(exchanged.status))
            span.set_status(Status(StatusCode.ERROR))
        for each in exchanged.guard:
            policy, _, action = each.partition(": ")
            span.add_event("rightcall.intervention", {"rightcall.policy": policy, "rightcall.action": action})
        span.end()


def _attributes(it: Exchanged, operation: str) -> Json:
    said: Json = {
        "gen_ai.operation.name": operation if it.route in _ROUTES else "",
        "gen_ai.provider.name": _PROVIDERS[it.upstream_api] if it.upstream_api else "",
        "gen_ai.request.model": it.model[:_LONGEST],
        "gen_ai.response.model": it.upstream_model[:_LONGEST],
        "gen_ai.response.id": it.id,
        "gen_ai.response.finish_reasons": [it.finish] if it.finish else [],
        "gen_ai.usage.input_tokens": it.tokens.prompt,
        "gen_ai.usage.output_tokens": it.tokens.completion,
        "gen_ai.response.time_to_first_chunk": it.first_byte,
        "http.response.status_code": it.status,
        "rightcall.upstream": it.upstream,
        "rightcall.mode": it.mode,
        "rightcall.format": it.format,
        "rightcall.calls": it.calls,
        "rightcall.repairs": it.repairs,
        "rightcall.rescues": it.rescues,
        "rightcall.problems": it.problems,
        "rightcall.retries": it.retries,
        "rightcall.gave_up": it.gave_up,
        "rightcall.client_gone": it.client_gone,
    }
    return {name: value for name, value in said.items() if value}
