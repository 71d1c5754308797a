"""`rightcall doctor` before servers that behave, and that do not: what it finds, says, and recommends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rightcall.doctor.diagnosis import Diagnosis
from rightcall.doctor.examination import ExamSettings, examine
from scripted_server import Json, scripted

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}


def _chat(message: Json, finish: str, body: Json) -> Json | list[Json]:
    """One answer of a Chat server, whole or as a stream, as the request asks for it."""
    base = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    calls = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls", ()))]
    delta = {"role": "assistant", **message, **({"tool_calls": calls} if calls else {})}
    chunk = {**base, "object": "chat.completion.chunk"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
    ]


def _has_call(body: Json) -> bool:
    return bool(body.get("tools")) and body.get("tool_choice") != "none" and "tool" not in str(body["messages"][1:])


def diagnosed(answer: Any, **settings: Any) -> Diagnosis:
    with scripted(lambda path, body: answer(body)) as (url, _):
        return asyncio.run(examine(url, ExamSettings(model="m", apis=("chat",), **settings)))


def leaks(body: Json) -> Any:
    said = json.dumps({"name": "get_weather", "arguments": {"city": "Oslo"}})
    text = f"<tool_call>\n{said}\n</tool_call>" if _has_call(body) else "Hello."
    return _chat({"content": text}, "stop", body)


def without_ids(body: Json) -> Any:
    call = {key: value for key, value in CALL.items() if key != "id"}
    return (
        _chat({"tool_calls": [call]}, "tool_calls", body)
        if _has_call(body)
        else _chat({"content": "Hi."}, "stop", body)
    )


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_call_in_the_text_is_told_with_its_format_and_its_cure(way: str) -> None:
    found = diagnosed(leaks)
    (plain,) = [each for each in found.results if (each.probe, each.way) == ("plain_call", way)]
    assert (plain.verdict, plain.slug) == ("fault", "call_as_text")
    assert "hermes" in plain.says and plain.evidence is not None and "<tool_call>" in plain.evidence.answer
    assert plain.cure(found.url) == f"rightcall serve --upstream {found.url}"


def test_calls_without_ids_are_told() -> None:
    found = diagnosed(without_ids)
    told = {(each.probe, each.way) for each in found.faults if each.slug == "bad_ids"}
    assert told == {("ids", "whole"), ("ids", "streamed")}


def test_a_server_that_is_not_there_is_not_sound() -> None:
    found = asyncio.run(examine("http://127.0.0.1:9", ExamSettings(model="m")))
    assert not found.is_sound and not found.spoken and not found.results
    with pytest.raises(AssertionError, match="answers in no dialect"):
        found.check()
