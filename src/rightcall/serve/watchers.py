"""Whoever wants to know what became of requests: metrics always; log, capture, recordings and traces where they are
asked for.

    watchers = Watchers(settings)
    with watchers.watching(exchanged, headers): ...       counted, logged, captured, traced when it is over

Nothing that happens to them is felt by a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rightcall.serve.exchanged import Exchanged, ExchangedContent
from rightcall.serve.proxy_metrics import ProxyMetrics
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.proxy_traces import ProxyTraces
from rightcall.serve.request_log import RequestLog
from rightcall.serve.traffic_capture import TrafficCapture
from rightcall.serve.traffic_record import TrafficRecorder, UpstreamExchange


class Watchers:
    """All of them, for as long as their settings hold. Raises `FileFailed` where nothing can be written."""

    def __init__(self, settings: ProxySettings, metrics: ProxyMetrics) -> None:
        self.metrics = metrics
        self._wants_content = settings.wants_content
        self._log = RequestLog(settings) if settings.log else None
        self._capture = TrafficCapture(settings) if settings.capture else None
        self._recorder = TrafficRecorder(settings) if settings.record else None
        self._traces = ProxyTraces() if settings.trace else None
        metrics.watch("log", *([self._log.writer] if self._log is not None else []))
        metrics.watch("capture", *([self._capture.writer] if self._capture is not None else []))
        metrics.watch("record", *(self._recorder.writers if self._recorder is not None else []))

    @property
    def want_answers(self) -> bool:
        """Does anybody want what servers are asked and answer?"""
        return self._wants_content or self._recorder is not None

    @property
    def records(self) -> bool:
        """Are exchanges with servers recorded?"""
        return self._recorder is not None

    @contextmanager
    def watching(self, exchanged: Exchanged, headers: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """One request, from its head to its end. Gives the headers that let a server go on with the trace."""
        if self._wants_content:
            exchanged.content = ExchangedContent()
        traces = self._traces
        span = traces.begin({name.lower(): value for name, value in headers.items()}) if traces is not None else None
        self.metrics.requests_open.add()
        try:
            yield traces.carried(span) if traces is not None else {}
        finally:
            self.metrics.requests_open.add((), -1)
            exchanged.total = exchanged.seconds()
            self._tell(exchanged)
            if traces is not None:
                traces.end(span, exchanged)

    def _tell(self, exchanged: Exchanged) -> None:
        self.metrics.count(exchanged)
        if self._log is not None:
            self._log.add(exchanged)
        if self._capture is not None:
            self._capture.add(exchanged)

    def record(self, exchange: UpstreamExchange) -> None:
        """An exchange with a server is over."""
        if self._recorder is not None:
            self._recorder.add(exchange)

    def close(self) -> None:
        """What waits is written."""
        for each in (self._log, self._capture, self._recorder):
            if each is not None:
                each.close()
