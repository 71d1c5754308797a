"""Traffic written down: what the dataset commands and the replay take, bounded, and without secrets."""

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
ASKED = {"model": "m", "messages": [{"role": "user", "content": "read a"}], "tools": [TOOL]}
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
OLLAMA_ASKED = {"model": "m", "messages": [{"role": "user", "content": "read a"}], "tools": [TOOL], "stream": True}
OLLAMA = [
    {"model": "m", "message": {"role": "assistant", "content": "",
                               "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}]},
     "done": False},
    {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True},
]  # fmt: skip
MESSAGES_ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "read a"}],
                  "tools": [{"name": "read", "input_schema": {"type": "object"}}]}  # fmt: skip
MESSAGES = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]}  # fmt: skip
GEMINI_ASKED = {"contents": [{"role": "user", "parts": [{"text": "read a"}]}],
                "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"type": "object"}}]}]}  # fmt: skip
GEMINI_CALL = {"functionCall": {"name": "read", "args": {"path": "a"}}}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [GEMINI_CALL]}, "finishReason": "STOP"}]}
RESPONSES_ASKED = {"model": "m", "input": "read a", "tools": [{"type": "function", "name": "read", "parameters": {}}]}
RESPONSES = {"id": "resp_1", "object": "response", "status": "completed", "model": "m",
             "output": [{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read",
                         "arguments": '{"path": "a"}', "status": "completed"}]}  # fmt: skip
AS_BYTES = b"".join([b"data: " + json.dumps(each).encode() + b"\n\n" for each in STREAM]) + b"data: [DONE]\n\n"
EXCHANGES = {
    "chat": (ASKED, WHOLE),
    "a chat stream": (ASKED, STREAM),
    "the bytes of a chat stream": (ASKED, AS_BYTES),
    "the bytes of a chat answer": (ASKED, json.dumps(WHOLE).encode()),
    "messages": (MESSAGES_ASKED, MESSAGES),
    "responses": (RESPONSES_ASKED, RESPONSES),
    "gemini": (GEMINI_ASKED, GEMINI),
    "an ollama stream": (OLLAMA_ASKED, OLLAMA),
}


def _exchanged(sent: Any, received: Any, **facts: Any) -> Exchanged:
    return Exchanged(
        id="req_1", route="chat", client_api="chat", upstream="a:1", upstream_model="m", status=200, repairs=["fence"],
        content=ExchangedContent(sent=sent, received=received), **facts
    )  # fmt: skip


def _captured(path: Path, *exchanges: Exchanged, sample: float = 1.0) -> list[dict[str, Any]]:
    capture = TrafficCapture(msgspec.structs.replace(SETTINGS, capture=str(path), capture_sample=sample))
    for each in exchanges:
        capture.add(each)
    capture.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", [*EXCHANGES])
def test_what_was_captured_is_imported_as_a_row_with_its_call(name: str, tmp_path: Path) -> None:
    (row,) = _captured(tmp_path / "capture.jsonl", _exchanged(*EXCHANGES[name]))
    assert row["rightcall"]["repairs"] == {"fence": 1}
    out = tmp_path / "rows.jsonl"
    result = run("dataset", "import", str(tmp_path / "capture.jsonl"), "-o", str(out), "--json")
    assert result.exit_code == 0, result.output
    (imported,) = [each for _, each in read_rows(out)]
    assert isinstance(imported, dict)
    assert imported["candidate_call"] == {"name": "read", "arguments": {"path": "a"}}
    assert imported["user_request"] == "read a" and imported["proxy_trace"]["model"] == "m"


def test_no_secret_is_captured_even_if_split_over_events(tmp_path: Path) -> None:
    said = _chunks({"content": "it is our-ow"}, {"content": "n-key-77, and AKIAIOSF"}, {"content": "ODNN7EXAMPL2 too"})
    sent = {**ASKED, "messages": [{"role": "user", "content": "password=hunter2000 our-own-key-77"}]}
    (row,) = _captured(tmp_path / "c", _exchanged(sent, said))
    text = json.dumps(row)
    for secret in ("hunter2000", "our-own-key-77", "n-key-77", "ODNN7EXAMPL2"):
        assert secret not in text


def test_only_what_was_answered_and_belongs_to_the_sample_is_captured(tmp_path: Path) -> None:
    failed = _exchanged(ASKED, WHOLE)
    failed.status = 400
    rows = _captured(tmp_path / "c", failed, _exchanged(None, WHOLE), Exchanged(id="x", route="health", status=200))
    assert rows == []
    assert _captured(tmp_path / "d", *[_exchanged(ASKED, WHOLE)] * 50, sample=0.0) == []
    assert len(_captured(tmp_path / "e", *[_exchanged(ASKED, WHOLE)] * 50)) == 50
    assert 0 < len(_captured(tmp_path / "f", *[_exchanged(ASKED, WHOLE)] * 400, sample=0.5)) < 400


def test_a_capture_is_appended_to_and_is_its_owners_alone(tmp_path: Path) -> None:
    _captured(tmp_path / "c", _exchanged(ASKED, WHOLE))
    assert len(_captured(tmp_path / "c", _exchanged(ASKED, WHOLE))) == 2
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
    (tmp_path / "other").write_text("#!/bin/sh\n")
    with pytest.raises(FileFailed):
        _captured(tmp_path / "other", _exchanged(ASKED, WHOLE))


# -- cassettes ---------------------------------------------------------------------------------------------------------


def _recorded(folder: Path, *exchanges: UpstreamExchange, most: int = 10**9) -> TrafficRecorder:
    recorder = TrafficRecorder(msgspec.structs.replace(SETTINGS, record=str(folder), record_bytes=most))
    for each in exchanges:
        recorder.add(each)
    recorder.close()
    return recorder


ONE = UpstreamExchange(
    upstream="a:1", url="http://a:1/v1/chat/completions", body=ASKED, status=200,
    headers={"content-type": "text/event-stream", "set-cookie": "id=1"},
    pieces=[AS_BYTES[:50], AS_BYTES[50:]], delays=[3, 4],
)  # fmt: skip


def test_a_recording_is_a_cassette_that_replays_and_imports(tmp_path: Path) -> None:
    _recorded(tmp_path / "tapes", ONE, ONE)
    cassette = load_cassette(tmp_path / "tapes" / "a_1.jsonl")
    assert cassette.head.api == "chat" and len(cassette.exchanges) == 2
    first = cassette.exchanges[0]
    assert first.response.pieces() == ONE.pieces and first.response.delays == [3, 4]
    assert first.request.path == "/v1/chat/completions" and "set-cookie" not in first.response.headers
    _recorded(tmp_path / "tapes", ONE)
    assert len(load_cassette(tmp_path / "tapes" / "a_1.jsonl").exchanges) == 3


def test_a_recording_holds_no_keys_and_no_more_than_it_may(tmp_path: Path) -> None:
    secret = msgspec.structs.replace(ONE, pieces=[b'{"key": "our-own', b'-key-77"}'], broken="our-own-key-77 broke")
    _recorded(tmp_path / "tapes", secret)
    assert b"-key-77" not in (tmp_path / "tapes" / "a_1.jsonl").read_bytes()
    recorder = _recorded(tmp_path / "few", *[ONE] * 10, most=3 * ONE.size)
    assert recorder.refused == 7 and len(load_cassette(tmp_path / "few" / "a_1.jsonl").exchanges) == 3
