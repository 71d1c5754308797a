"""Metrics and logs of the proxy: every line can be parsed, nothing grows without bound, and no secret is written."""

import asyncio
import json
import re
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.errors import FileFailed
from rightcall.redaction.key import Key
from rightcall.serve.answer_writer import AnswerUsage
from rightcall.serve.bounded_writer import BoundedWriter, LineSink
from rightcall.serve.exchanged import Exchanged, ExchangedContent
from rightcall.serve.prometheus_text import CounterFamily, HistogramFamily
from rightcall.serve.proxy_metrics import ProxyMetrics
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.proxy_watch import ProxyWatch
from rightcall.serve.request_log import RequestLog

_VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"[a-z_]+(?:\{{[a-z_]+={_VALUE}(?:,[a-z_]+={_VALUE})*\}})? [0-9.e+-]+").fullmatch


def _finished_exchange(**fields: object) -> Exchanged:
    defaults = {"id": "req_1", "route": "chat", "client_api": "chat", "upstream_api": "ollama", "upstream": "here",
                "status": 200, "model": "m", "mode": "native", "total": 0.5, "first_byte": 0.1}  # fmt: skip
    return Exchanged(**{**defaults, **fields})  # type: ignore[arg-type]


def test_one_request_is_counted_in_every_metric_family_it_concerns() -> None:
    metrics = ProxyMetrics()
    metrics.count(
        _finished_exchange(repairs=["fence", "fence"], rescues=["hermes"], problems=["missing"], retries=2, near=1,
              calls=3, guard=["loops: nudge"], error="upstream_error", client_gone=True, gave_up="pass", failovers=1,
              tokens=AnswerUsage(10, 5), bytes_in=7, bytes_out=9, upstream_first_byte=0.05)
    )  # fmt: skip
    text = metrics.text()
    for line in (
        'rightcall_requests_total{route="chat",client="chat",upstream_api="ollama",status="200"} 1',
        'rightcall_model_requests_total{model="m",upstream="here",mode="native"} 1',
        'rightcall_repairs_total{rule="fence"} 2',
        'rightcall_rescues_total{format="hermes"} 1',
        'rightcall_problems_total{code="missing"} 1',
        'rightcall_retries_total{upstream="here"} 2',
        'rightcall_failovers_total{upstream="here"} 1',
        "rightcall_near_calls_total 1",
        'rightcall_calls_total{client="chat"} 3',
        'rightcall_guard_total{intervention="loops: nudge"} 1',
        'rightcall_refusals_total{code="upstream_error"} 1',
        "rightcall_clients_gone_total 1",
        'rightcall_gave_up_total{how="pass"} 1',
        'rightcall_tokens_total{kind="prompt"} 10',
        'rightcall_bytes_total{direction="out"} 9',
        'rightcall_request_seconds_bucket{route="chat",le="0.5"} 1',
        'rightcall_request_seconds_bucket{route="chat",le="0.25"} 0',
        'rightcall_request_seconds_bucket{route="chat",le="+Inf"} 1',
        'rightcall_request_seconds_sum{route="chat"} 0.5',
        'rightcall_first_byte_seconds_count{route="chat"} 1',
        'rightcall_upstream_first_byte_seconds_count{upstream="here"} 1',
    ):
        assert line + "\n" in text, line


def test_every_metric_family_has_help_and_type() -> None:
    lines = ProxyMetrics().text().splitlines()
    helped = [line.split()[2] for line in lines if line.startswith("# HELP")]
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert helped == typed and len(helped) == len(set(helped)) > 20


@given(st.text(max_size=300), st.text(max_size=300))
def test_model_names_are_escaped_in_metric_lines(model: str, upstream: str) -> None:
    metrics = ProxyMetrics()
    metrics.count(_finished_exchange(model=model, upstream=upstream or "x", error=model))
    text = metrics.text().encode("utf-8").decode("utf-8")
    for line in text.removesuffix("\n").split("\n"):
        assert line.startswith("# ") or SAMPLE(line), line


def test_label_values_over_the_limit_are_counted_as_other() -> None:
    metrics = ProxyMetrics()
    for at in range(1000):
        metrics.count(_finished_exchange(model=f"model-{at}", error=f"code-{at}"))
    assert metrics.text().count("rightcall_model_requests_total{") <= 101
    assert 'rightcall_model_requests_total{model="other",upstream="other",mode="other"} 900\n' in metrics.text()


@given(st.lists(st.floats(0, 1000), max_size=30))
def test_histogram_buckets_are_cumulative(values: list[float]) -> None:
    family = HistogramFamily("x", "X.", bounds=(1.0, 10.0))
    for value in values:
        family.add(value)
    found = [int(line.split()[-1]) for line in "".join(family.lines()).split("\n") if line.startswith("x_bucket")]
    assert found == ([] if not values else [sum(v <= 1 for v in values), sum(v <= 10 for v in values), len(values)])


def test_a_gauge_can_decrease() -> None:
    family = CounterFamily("x", "X.", kind="gauge")
    family.add()
    family.add((), -1)
    assert "".join(family.lines()).endswith("# TYPE x gauge\nx 0\n")


def test_open_requests_and_streams_are_counted_until_they_end() -> None:
    metrics, one, other = ProxyMetrics(), _finished_exchange(id="1"), _finished_exchange(id="2", stream=True)
    metrics.opened(one)
    metrics.opened(other)
    assert "rightcall_requests_open 2\n" in metrics.text() and "rightcall_streams_open 1\n" in metrics.text()
    metrics.count(one)
    metrics.count(other)
    assert "rightcall_requests_open 0\n" in metrics.text() and "rightcall_streams_open 0\n" in metrics.text()


def test_background_rows_are_counted_by_outcome(tmp_path: Path) -> None:
    metrics, writers = ProxyMetrics(), [BoundedWriter(LineSink(str(tmp_path / name)), bytes) for name in "ab"]
    metrics.watch("capture", *writers)
    for writer in writers:
        writer.put(b"{}\n", 3)
        writer.close()
        writer.put(b"{}\n", 3)
    assert 'rightcall_rows_total{file="capture",outcome="written"} 2\n' in metrics.text()
    assert 'rightcall_rows_total{file="capture",outcome="dropped"} 2\n' in metrics.text()


# -- the request log ---------------------------------------------------------------------------------------------------

SETTINGS = ProxySettings(
    upstream=(UpstreamSettings(url="http://a", name="a", key=Key("a-key-of-ours", "K")),), key=Key("door-key-1", "D")
)


def _log_rows(path: Path, *exchanges: Exchanged, content: bool = False) -> list[dict[str, object]]:
    log = RequestLog(msgspec.structs.replace(SETTINGS, log=str(path), log_content=content))
    for each in exchanges:
        log.add(each)
    log.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_has_one_line_per_request_without_empty_fields(tmp_path: Path) -> None:
    first, second = _log_rows(
        tmp_path / "log", _finished_exchange(repairs=["a", "a"], began=0.5), _finished_exchange(id="req_2", status=400)
    )
    assert first["time"] == "1970-01-01T00:00:00.500Z" and first["repairs"] == {"a": 2}
    assert (second["id"], second["status"]) == ("req_2", 400) and "error" not in second


CONTENT = ExchangedContent(
    sent={"messages": [{"content": "tell me of a-key-of-ours and swordfish"}]}, received={"x": 1}
)


def test_the_log_has_content_only_if_configured_and_never_secrets(tmp_path: Path) -> None:
    assert "swordfish" not in json.dumps(_log_rows(tmp_path / "log", _finished_exchange(content=CONTENT)))
    logged = json.dumps(_log_rows(tmp_path / "more", _finished_exchange(content=CONTENT), content=True))
    assert "swordfish" in logged and "a-key-of-ours" not in logged


def test_a_hostile_model_name_gives_one_json_line_without_keys(tmp_path: Path) -> None:
    hostile = "x\n\u2028\x1b[2J door-key-1 \ud800" + "y" * 1000
    (line,) = _log_rows(tmp_path / "log", _finished_exchange(model=hostile, warnings=[hostile], why=(hostile,)))
    assert "door-key-1" not in json.dumps(line) and "\x1b" not in str(line["model"]) and len(str(line["model"])) < 500


def test_an_unwritable_log_is_reported_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileFailed):
        _log_rows(tmp_path)


# -- background writing ------------------------------------------------------------------------------------------------


class _StuckSink(LineSink):
    """A sink that blocks until it is opened, or fails because the disk is full."""

    def __init__(self, is_full: bool = False) -> None:
        self.path, self._is_full = "stuck", is_full
        self.open, self.got = threading.Event(), b""

    def write(self, lines: bytes) -> None:
        self.open.wait(30)
        if self._is_full:
            raise FileFailed("cannot write stuck: no space")
        self.got += lines

    def close(self) -> None:
        pass


def test_rows_over_the_buffer_limit_are_dropped_and_counted() -> None:
    sink = _StuckSink()
    messages: list[str] = []
    writer: BoundedWriter[bytes] = BoundedWriter(sink, bytes, tell=messages.append, most_rows=3, most_bytes=100)
    accepted = [writer.put(b"x\n", 2) for _ in range(10)]
    assert writer.put(b"y" * 200, 200) is False
    sink.open.set()
    writer.close(30)
    assert writer.written == sum(accepted) == len(sink.got) // 2 >= 3
    assert writer.written + writer.dropped == 11 and len(messages) == 1 and "dropped" in messages[0]
    assert writer.put(b"x", 1) is False


def test_a_full_disk_is_reported_once_and_fails_no_request() -> None:
    sink = _StuckSink(is_full=True)
    messages: list[str] = []
    sink.open.set()
    writer: BoundedWriter[bytes] = BoundedWriter(sink, bytes, tell=messages.append)
    for _ in range(50):
        assert writer.put(b"x\n", 2)
    writer.close(30)
    assert (writer.failed, writer.written) == (50, 0) and len(messages) == 1 and "no space" in messages[0]


def test_a_row_that_cannot_be_encoded_does_not_affect_others() -> None:
    sink = _StuckSink()
    messages: list[str] = []
    sink.open.set()
    writer: BoundedWriter[int] = BoundedWriter(sink, lambda at: b"%d\n" % (1 // at), tell=messages.append)
    for at in (1, 0, 1):
        writer.put(at)
    writer.close(30)
    assert (sink.got, writer.failed, writer.written) == (b"1\n1\n", 1, 2)


def test_every_watcher_is_notified_of_a_request(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        SETTINGS, log=str(tmp_path / "log"), capture=str(tmp_path / "capture"), record=str(tmp_path / "tapes")
    )
    metrics = ProxyMetrics()

    async def watch_request() -> None:
        watch = ProxyWatch(settings, metrics)
        content = ExchangedContent(sent={"messages": []}, received={"choices": []})
        watch.over(_finished_exchange(content=content), watch.begin({}))
        await watch.close()

    asyncio.run(watch_request())
    assert len((tmp_path / "log").read_text().splitlines()) == len((tmp_path / "capture").read_text().splitlines()) == 1
    assert 'rightcall_rows_total{file="log",outcome="written"} 1\n' in metrics.text()
    assert [each.name for each in (tmp_path / "tapes").iterdir()] == ["a.jsonl"]


def test_a_watcher_that_fails_to_open_a_file_closes_the_others(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, log=str(tmp_path / "log"), capture=str(tmp_path))
    before = threading.active_count()
    with pytest.raises(FileFailed):
        ProxyWatch(settings, ProxyMetrics())
    assert threading.active_count() == before
