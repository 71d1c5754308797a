"""Captured traffic: it is importable, replayable and bounded, and contains no secrets."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rightcall.backends.cassette import load_cassette
from rightcall.capture.captured_rows import read_rows
from rightcall.errors import FileFailed
from rightcall.redaction.key import Key
from rightcall.serve.exchanged import Exchanged, ExchangedContent
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.serve.traffic_capture import TrafficCapture
from rightcall.serve.traffic_record import TrafficRecorder, UpstreamExchange
from support.command import run

HERE = UpstreamSettings(url="http://a:1/v1", name="a:1", key=Key("our-own-key-77", "K"))
SETTINGS = ProxySettings(upstream=(HERE,))
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
CHAT_REQUEST = {"model": "m", "messages": [{"role": "user", "content": "read a"}], "tools": [TOOL]}
WHOLE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
}


def _chunks(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    return [{**head, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas]


STREAM = _chunks({"role": "assistant", "content": ""}, {"tool_calls": [CALL]})
OLLAMA_REQUEST = {"model": "m", "messages": [{"role": "user", "content": "read a"}], "tools": [TOOL], "stream": True}
OLLAMA = [
    {"model": "m", "message": {"role": "assistant", "content": "",
                               "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}]},
     "done": False},
    {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True},
]  # fmt: skip
MESSAGES_REQUEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "read a"}],
                  "tools": [{"name": "read", "input_schema": {"type": "object"}}]}  # fmt: skip
MESSAGES = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]}  # fmt: skip
GEMINI_REQUEST = {"contents": [{"role": "user", "parts": [{"text": "read a"}]}],
                "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"type": "object"}}]}]}  # fmt: skip
GEMINI_CALL = {"functionCall": {"name": "read", "args": {"path": "a"}}}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [GEMINI_CALL]}, "finishReason": "STOP"}]}
RESPONSES_REQUEST = {"model": "m", "input": "read a", "tools": [{"type": "function", "name": "read", "parameters": {}}]}
RESPONSES = {"id": "resp_1", "object": "response", "status": "completed", "model": "m",
             "output": [{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read",
                         "arguments": '{"path": "a"}', "status": "completed"}]}  # fmt: skip
AS_BYTES = b"".join([b"data: " + json.dumps(each).encode() + b"\n\n" for each in STREAM]) + b"data: [DONE]\n\n"
EXCHANGES = {
    "chat": (CHAT_REQUEST, WHOLE),
    "a chat stream": (CHAT_REQUEST, STREAM),
    "the bytes of a chat stream": (CHAT_REQUEST, AS_BYTES),
    "the bytes of a chat answer": (CHAT_REQUEST, json.dumps(WHOLE).encode()),
    "messages": (MESSAGES_REQUEST, MESSAGES),
    "responses": (RESPONSES_REQUEST, RESPONSES),
    "gemini": (GEMINI_REQUEST, GEMINI),
    "an ollama stream": (OLLAMA_REQUEST, OLLAMA),
}


def _make_exchange(sent: Any, received: Any, **facts: Any) -> Exchanged:
    return Exchanged(
        id="req_1", route="chat", client_api="chat", upstream="a:1", upstream_model="m", status=200, repairs=["fence"],
        content=ExchangedContent(sent=sent, received=received), **facts
    )  # fmt: skip


def _capture_rows(path: Path, *exchanges: Exchanged, sample: float = 1.0) -> list[dict[str, Any]]:
    capture = TrafficCapture(msgspec.structs.replace(SETTINGS, capture=str(path), capture_sample=sample))
    for each in exchanges:
        capture.add(each)
    capture.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", [*EXCHANGES])
def test_a_captured_exchange_is_imported_as_a_row_with_its_call(name: str, tmp_path: Path) -> None:
    (row,) = _capture_rows(tmp_path / "capture.jsonl", _make_exchange(*EXCHANGES[name]))
    assert row["rightcall"]["repairs"] == {"fence": 1}
    out = tmp_path / "rows.jsonl"
    result = run("dataset", "import", str(tmp_path / "capture.jsonl"), "-o", str(out), "--json")
    assert result.exit_code == 0, result.output
    (imported,) = [each for _, each in read_rows(out)]
    assert isinstance(imported, dict)
    assert imported["candidate_call"] == {"name": "read", "arguments": {"path": "a"}}
    assert imported["user_request"] == "read a" and imported["proxy_trace"]["model"] == "m"


def test_no_secret_is_captured_even_if_split_over_events(tmp_path: Path) -> None:
    received = _chunks(
        {"content": "it is our-ow"}, {"content": "n-key-77, and AKIAIOSF"}, {"content": "ODNN7EXAMPL2 too"}
    )
    sent = {**CHAT_REQUEST, "messages": [{"role": "user", "content": "password=hunter2000 our-own-key-77"}]}
    (row,) = _capture_rows(tmp_path / "c", _make_exchange(sent, received))
    text = json.dumps(row)
    for secret in ("hunter2000", "our-own-key-77", "n-key-77", "ODNN7EXAMPL2"):
        assert secret not in text


def test_only_answered_exchanges_of_the_sample_are_captured(tmp_path: Path) -> None:
    failed = _make_exchange(CHAT_REQUEST, WHOLE)
    failed.status = 400
    rows = _capture_rows(
        tmp_path / "c", failed, _make_exchange(None, WHOLE), Exchanged(id="x", route="health", status=200)
    )
    assert rows == []
    assert _capture_rows(tmp_path / "d", *[_make_exchange(CHAT_REQUEST, WHOLE)] * 50, sample=0.0) == []
    assert len(_capture_rows(tmp_path / "e", *[_make_exchange(CHAT_REQUEST, WHOLE)] * 50)) == 50
    assert 0 < len(_capture_rows(tmp_path / "f", *[_make_exchange(CHAT_REQUEST, WHOLE)] * 400, sample=0.5)) < 400


def test_a_capture_is_appended_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    _capture_rows(tmp_path / "c", _make_exchange(CHAT_REQUEST, WHOLE))
    assert len(_capture_rows(tmp_path / "c", _make_exchange(CHAT_REQUEST, WHOLE))) == 2
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
    (tmp_path / "other").write_text("#!/bin/sh\n")
    with pytest.raises(FileFailed):
        _capture_rows(tmp_path / "other", _make_exchange(CHAT_REQUEST, WHOLE))


# -- cassettes ---------------------------------------------------------------------------------------------------------


def _record_exchanges(folder: Path, *exchanges: UpstreamExchange, most: int = 10**9) -> TrafficRecorder:
    recorder = TrafficRecorder(msgspec.structs.replace(SETTINGS, record=str(folder), record_bytes=most))
    for each in exchanges:
        recorder.add(each)
    recorder.close()
    return recorder


ONE = UpstreamExchange(
    upstream="a:1", url="http://a:1/v1/chat/completions", body=CHAT_REQUEST, status=200,
    headers={"content-type": "text/event-stream", "set-cookie": "id=1"},
    pieces=[AS_BYTES[:50], AS_BYTES[50:]], delays=[3, 4],
)  # fmt: skip


def test_a_recording_is_a_cassette_that_replays_and_imports(tmp_path: Path) -> None:
    _record_exchanges(tmp_path / "tapes", ONE, ONE)
    cassette = load_cassette(tmp_path / "tapes" / "a_1.jsonl")
    assert cassette.head.api == "chat" and len(cassette.exchanges) == 2
    first = cassette.exchanges[0]
    assert first.response.pieces() == ONE.pieces and first.response.delays == [3, 4]
    assert first.request.path == "/v1/chat/completions" and "set-cookie" not in first.response.headers
    _record_exchanges(tmp_path / "tapes", ONE)
    assert len(load_cassette(tmp_path / "tapes" / "a_1.jsonl").exchanges) == 3


def test_a_recording_has_no_keys_and_stays_within_its_size_limit(tmp_path: Path) -> None:
    secret = msgspec.structs.replace(ONE, pieces=[b'{"key": "our-own', b'-key-77"}'], broken="our-own-key-77 broke")
    _record_exchanges(tmp_path / "tapes", secret)
    assert b"-key-77" not in (tmp_path / "tapes" / "a_1.jsonl").read_bytes()
    recorder = _record_exchanges(tmp_path / "few", *[ONE] * 10, most=3 * ONE.size)
    assert recorder.refused == 7 and len(load_cassette(tmp_path / "few" / "a_1.jsonl").exchanges) == 3
