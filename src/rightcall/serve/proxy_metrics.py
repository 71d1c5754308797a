"""What the proxy has done since it started, as numbers: one value counts one request in all of them.

metrics = ProxyMetrics()
metrics.count(exchanged)         # when a request is over
metrics.text()                   # what GET /metrics answers
"""

from __future__ import annotations

import time
from typing import Any

from rightcall import __version__
from rightcall.serve.bounded_writer import BoundedWriter
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.prometheus_text import CounterFamily, HistogramFamily

_MODELS = 100  # names of models: clients can send any


class ProxyMetrics:
    """All families. A request is told of twice: when it comes (`opened`), and when it is over (`count`)."""

    def __init__(self) -> None:
        made = CounterFamily
        self.requests = made(
            "rightcall_requests_total",
            "Requests answered, by what was asked for, the dialects on both sides, and the status.",
            ("route", "client", "upstream_api", "status"),
        )
        self.models = made(
            "rightcall_model_requests_total",
            "Requests to models, by the client's name of the model, the upstream, and how tools were offered.",
            ("model", "upstream", "mode"),
            most=_MODELS,
        )
        self.seconds = HistogramFamily(
            "rightcall_request_seconds", "From a request to the end of its answer.", ("route",)
        )
        self.first_byte = HistogramFamily(
            "rightcall_first_byte_seconds", "From a request to the first byte of its answer.", ("route",)
        )
        self.upstream_first_byte = HistogramFamily(
            "rightcall_upstream_first_byte_seconds", "From a request to the upstream's first byte.", ("upstream",)
        )
        self.calls = made("rightcall_calls_total", "Tool calls that went to clients.", ("client",))
        self.repairs = made("rightcall_repairs_total", "Repairs of calls, by rule.", ("rule",))
        self.rescues = made("rightcall_rescues_total", "Calls found in an upstream's text, by format.", ("format",))
        self.problems = made("rightcall_problems_total", "Problems of answers, by code.", ("code",))
        self.near = made("rightcall_near_calls_total", "Text that was nearly a call, and none.")
        self.retries = made("rightcall_retries_total", "How often a model was asked again.", ("upstream",))
        self.failovers = made("rightcall_failovers_total", "How often another upstream took over.", ("upstream",))
        self.refusals = made("rightcall_refusals_total", "Requests refused or failed, by code.", ("code",))
        self.guard = made("rightcall_guard_total", "What the guard did, by policy and action.", ("intervention",))
        self.gave_up = made("rightcall_gave_up_total", "Answers whose retries were spent, by what was done.", ("how",))
        self.gone = made("rightcall_clients_gone_total", "Clients that left before the end.")
        self.tokens = made("rightcall_tokens_total", "Tokens as upstreams counted them.", ("kind",))
        self.bytes = made("rightcall_bytes_total", "Bytes of bodies, from and to clients.", ("direction",))
        self._open: dict[str, Exchanged] = {}
        self._requests_open = made("rightcall_requests_open", "Requests that are being answered.", kind="gauge")
        self._streams_open = made("rightcall_streams_open", "Those of them that are streams.", kind="gauge")
        self._rows = made(
            "rightcall_rows_total",
            "Rows of the log, the capture and the recordings: written, dropped for want of room, or failed.",
            ("file", "outcome"),
        )
        self._writers: list[tuple[str, BoundedWriter[Any]]] = []
        self._about = made("rightcall_build_info", "The version that runs.", ("version",), kind="gauge")
        self._about.set(1, (__version__,))
        self._started = made("rightcall_start_time_seconds", "When the proxy started.", kind="gauge")
        self._started.set(time.time())

    def opened(self, exchanged: Exchanged) -> None:
        """One request came."""
        self._open[exchanged.id] = exchanged

    def count(self, exchanged: Exchanged) -> None:
        """One request is over."""
        self._open.pop(exchanged.id, None)
        route = exchanged.route
        self.requests.add((route, exchanged.client_api, exchanged.upstream_api, str(exchanged.status)))
        if exchanged.upstream:
            self.models.add((exchanged.model, exchanged.upstream, exchanged.mode))
        self._count_times(exchanged)
        self._count_calls(exchanged)
        if exchanged.error:
            self.refusals.add((exchanged.error,))
        if exchanged.client_gone:
            self.gone.add()
        for kind in ("prompt", "completion", "cached", "reasoning"):
            if many := getattr(exchanged.tokens, kind):
                self.tokens.add((kind,), many)
        self.bytes.add(("in",), exchanged.bytes_in)
        self.bytes.add(("out",), exchanged.bytes_out)

    def _count_times(self, exchanged: Exchanged) -> None:
        route = (exchanged.route,)
        if exchanged.total is not None:
            self.seconds.add(exchanged.total, route)
        if exchanged.first_byte is not None:
            self.first_byte.add(exchanged.first_byte, route)
        if exchanged.upstream_first_byte is not None:
            self.upstream_first_byte.add(exchanged.upstream_first_byte, (exchanged.upstream,))

    def _count_calls(self, exchanged: Exchanged) -> None:
        if exchanged.calls:
            self.calls.add((exchanged.client_api,), exchanged.calls)
        for family, words in (
            (self.repairs, exchanged.repairs),
            (self.rescues, exchanged.rescues),
            (self.problems, exchanged.problems),
            (self.guard, exchanged.guard),
        ):
            for word in words:
                family.add((word,))
        if exchanged.near:
            self.near.add((), exchanged.near)
        if exchanged.retries:
            self.retries.add((exchanged.upstream,), exchanged.retries)
        if exchanged.failovers:
            self.failovers.add((exchanged.upstream,), exchanged.failovers)
        if exchanged.gave_up:
            self.gave_up.add((exchanged.gave_up,))

    def watch(self, file: str, *writers: BoundedWriter[Any]) -> None:
        """The rows of these writers are counted too, as those of the file `file`: "log", "capture", "record"; in the
        place of those that were watched under this name before."""
        self._writers = [each for each in self._writers if each[0] != file] + [(file, each) for each in writers]

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        self._requests_open.set(len(self._open))
        self._streams_open.set(sum([each.stream for each in self._open.values()]))
        for file in dict.fromkeys([file for file, _ in self._writers]):
            own = [writer for name, writer in self._writers if name == file]
            for outcome in ("written", "dropped", "failed"):
                self._rows.set(sum([getattr(writer, outcome) for writer in own]), (file, outcome))
        families = [each for each in vars(self).values() if isinstance(each, CounterFamily | HistogramFamily)]
        return "".join([line for family in families for line in family.lines()])
