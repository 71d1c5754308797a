"""All who watch the proxy's traffic, as its settings name them: metrics, log, capture, recordings, traces.

watch = ProxyWatch(settings, metrics)
span = watch.begin(headers)          # when a request comes
watch.over(exchanged, span)          # when it is over
await watch.close()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from rightcall.serve.exchanged import Exchanged
from rightcall.serve.proxy_metrics import ProxyMetrics
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.proxy_traces import ProxyTraces
from rightcall.serve.request_log import RequestLog
from rightcall.serve.traffic_capture import TrafficCapture
from rightcall.serve.traffic_record import TrafficRecorder


class ProxyWatch:
    """Tells everybody of every request. Raises `FileFailed` for a file that cannot be written to, `MissingExtra` for
    traces without the extra `otel`; after that nothing that happens to a file is felt here.

    - `settings`: name the files.
    - `metrics`: go on from one settings to the next.
    - `tell`: is told what fails, in words; standard error unless given.
    - `recorder`: where exchanges with upstreams go, if they are recorded.
    """

    def __init__(
        self, settings: ProxySettings, metrics: ProxyMetrics, *, tell: Callable[[str], None] | None = None
    ) -> None:
        self.metrics = metrics
        self._traces = ProxyTraces() if settings.trace else None
        self._log: RequestLog | None = None
        self._capture: TrafficCapture | None = None
        self.recorder: TrafficRecorder | None = None
        try:
            self._log = RequestLog(settings, tell=tell) if settings.log else None
            self._capture = TrafficCapture(settings, tell=tell) if settings.capture else None
            self.recorder = TrafficRecorder(settings, tell=tell) if settings.record else None
        except BaseException:
            for each in self._files:
                each.close()
            raise
        self.metrics.watch("log", *([self._log.writer] if self._log is not None else []))
        self.metrics.watch("capture", *([self._capture.writer] if self._capture is not None else []))
        self.metrics.watch("record", *(self.recorder.writers if self.recorder is not None else []))

    def begin(self, headers: Mapping[str, str]) -> Any:
        """The span of a request with these headers, if requests are traced."""
        return None if self._traces is None else self._traces.begin(headers)

    def carried(self, span: Any) -> dict[str, str]:
        """The headers that let an upstream go on with the trace."""
        return {} if self._traces is None or span is None else self._traces.carried(span)

    def over(self, exchanged: Exchanged, span: Any = None) -> None:
        """A request is over; nothing of it changes any more."""
        self.metrics.count(exchanged)
        if self._traces is not None and span is not None:
            self._traces.end(span, exchanged)
        if self._log is not None:
            self._log.add(exchanged)
        if self._capture is not None:
            self._capture.add(exchanged)

    async def close(self) -> None:
        """What waits is written, within seconds."""
        await asyncio.gather(*[asyncio.to_thread(each.close) for each in self._files])

    @property
    def _files(self) -> list[RequestLog | TrafficCapture | TrafficRecorder]:
        return [each for each in (self._log, self._capture, self.recorder) if each is not None]
