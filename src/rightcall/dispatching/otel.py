"""Report every tool call as an OpenTelemetry span, following the GenAI conventions."""

from __future__ import annotations

from typing import Any

from rightcall.dispatching.bounded_output import Bounds, bound, to_json_text
from rightcall.dispatching.hook import Hook, Invocation
from rightcall.dispatching.plain_json_values import plain
from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Intervention
from rightcall.errors import DispatchTerminated
from rightcall.extras import require_extra
from rightcall.redaction.scrubber import Scrubber

SCOPE = "rightcall.dispatching"

_SPAN_SCRUBBER = Scrubber()


class Spans(Hook):
    """A span `execute_tool {name}` for each call, by OpenTelemetry's GenAI conventions.

    It is the current span while the tool runs. Pass this hook first: it then also times the other hooks. Needs the
    extra `otel`.

    - `tracer_provider`: None for the global one.
    - `content`: record arguments and results too, without the secrets that are recognized by their shape.
    - `bounds`: how much of a result is recorded then; None for the default.
    """

    def __init__(self, *, tracer_provider: Any = None, content: bool = False, bounds: Bounds | None = None) -> None:
        require_extra("otel")
        from opentelemetry import trace

        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        self._content, self._bounds = content, bounds or Bounds(string_chars=8_000, total_bytes=32_000)
        self._open: dict[Invocation, tuple[Any, Any]] = {}

    def before(self, invocation: Invocation) -> None:
        """Start the span of this `invocation` and make it the current one, until `after` or `cleanup`."""
        from opentelemetry import context, trace

        span = self._tracer.start_span(
            f"execute_tool {invocation.call.name}",
            kind=trace.SpanKind.INTERNAL,
            attributes=self._attributes(invocation),
        )
        self._open[invocation] = (span, context.attach(trace.set_span_in_context(span)))

    def _attributes(self, invocation: Invocation) -> dict[str, Any]:
        """Return the attributes of a new span, without empty ones: operation, tool, call id, description and, with the
        option `content`, the arguments as JSON without secrets."""
        found = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": invocation.call.name,
            "gen_ai.tool.call.id": invocation.call.id,
            "gen_ai.tool.description": invocation.tool.description,
            "gen_ai.tool.type": "function",
        }
        if self._content:
            found["gen_ai.tool.call.arguments"] = to_json_text(_SPAN_SCRUBBER.value(plain(invocation.call.arguments)))
        return {key: value for key, value in found.items() if value}

    def after(self, invocation: Invocation, result: Result) -> None:
        """End the span of this `invocation`. A `result` that is not completed sets the attribute `rightcall.outcome` to
        its kind; the status of the span is not an error. With the option `content`, the output is recorded without
        secrets and cut to `bounds`."""
        span = self._detach(invocation)
        if span is None:
            return
        if result.kind != "completed":
            span.set_attribute("rightcall.outcome", result.kind)
        if self._content:
            clean = _SPAN_SCRUBBER.value(plain(result.output))
            span.set_attribute("gen_ai.tool.call.result", bound(clean, self._bounds).text)
        span.end()

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """End the span of this `invocation` with the status ERROR and the type of the `error` as `error.type`; its
        message is recorded only with the option `content`, without secrets and cut to 500 characters."""
        from opentelemetry.trace import Status, StatusCode

        span = self._detach(invocation)
        if span is None:
            return
        if isinstance(error, DispatchTerminated):
            span.set_attribute("rightcall.outcome", "terminated")
        # An error message may quote the arguments, so it counts as content.
        span.set_attribute("error.type", getattr(error, "type", None) or type(error).__qualname__)
        span.set_status(Status(StatusCode.ERROR, _SPAN_SCRUBBER.text(str(error))[:500] if self._content else None))
        span.end()

    def intervened(self, intervention: Intervention) -> None:
        """Add an event `rightcall.intervention` for this `intervention` to the current span.

        Without one, the event gets its own span `rightcall.guard`."""
        from opentelemetry import trace

        attributes = {
            "rightcall.policy": intervention.policy,
            "rightcall.action": intervention.action,
            "rightcall.reason": _SPAN_SCRUBBER.text(intervention.reason),
        }
        if intervention.call is not None:
            attributes["rightcall.call"] = str(intervention.call)
        current = trace.get_current_span()
        if current.is_recording():
            current.add_event("rightcall.intervention", attributes)
            return
        with self._tracer.start_as_current_span("rightcall.guard") as span:
            span.add_event("rightcall.intervention", attributes)

    def _detach(self, invocation: Invocation) -> Any:
        """Make the span of this invocation no longer the current one and return it, not ended; None if `before` was not
        called or the span was detached already."""
        from opentelemetry import context

        found = self._open.pop(invocation, None)
        if found is None:
            return None
        context.detach(found[1])
        return found[0]
