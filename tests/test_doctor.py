"""`rightcall doctor` with correct and faulty servers: findings, messages and recommended cures."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rightcall.doctor.diagnosis import Diagnosis
from rightcall.doctor.examination import ExamSettings, examine
from rightcall.doctor.judges import ProbedCase, judge_first_byte, judge_truncation
from rightcall.doctor.questions import BOTH, LONG_WORDS, QUESTIONS
from rightcall.doctor.server_answers import ClientCall, RawAnswer, ServerConnection, StrictClientAnswer, parse_answer
from rightcall.testing import diagnose
from support.loopback import Answering, answer, drop, json_answer, serving
from support.scripted_server import Json, scripted

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}


def _chat(message: Json, finish: str, body: Json) -> Json | list[Json]:
    """Return one answer of a chat server, whole or streamed, as the request requires."""
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


def diagnose_server(answer: Any, **settings: Any) -> Diagnosis:
    with scripted(lambda path, body: answer(body)) as (url, _):
        return asyncio.run(examine(url, ExamSettings(model="m", apis=("chat",), **settings)))


def leaks(body: Json) -> Any:
    if not _has_call(body):
        return _chat({"content": "Hello."}, "stop", body)
    function = body["tools"][0]["function"]
    call_text = json.dumps(
        {"name": function["name"], "arguments": dict.fromkeys(function["parameters"].get("required", ()), "Oslo")}
    )
    return _chat({"content": f"<tool_call>\n{call_text}\n</tool_call>"}, "stop", body)


def _right(body: Json) -> Any:
    if not _has_call(body):
        return _chat({"content": "Hello."}, "stop", body)
    return _chat({"tool_calls": [CALL]}, "tool_calls", body)


def without_ids(body: Json) -> Any:
    call = {key: value for key, value in CALL.items() if key != "id"}
    return (
        _chat({"tool_calls": [call]}, "tool_calls", body)
        if _has_call(body)
        else _chat({"content": "Hi."}, "stop", body)
    )


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_call_in_the_text_is_reported_with_its_format_and_cure(way: str) -> None:
    found = diagnose_server(leaks)
    (plain,) = [each for each in found.results if (each.probe, each.way) == ("plain_call", way)]
    assert (plain.verdict, plain.slug) == ("fault", "call_as_text")
    assert "hermes" in plain.says and plain.evidence is not None and "<tool_call>" in plain.evidence.answer
    assert plain.cure(found.url) == f"rightcall serve --upstream {found.url}"


def test_a_text_call_of_another_tool_than_the_chosen_one_is_an_ignored_tool_choice() -> None:
    found = diagnose_server(leaks)
    faults = {(each.probe, each.slug) for each in found.faults if each.probe in ("required", "named")}
    assert faults == {("required", "call_as_text"), ("named", "tool_choice_ignored")}
    assert (
        found.cure() == f"rightcall serve --upstream {found.url}"
    )  # the proxy enforces a tool choice under every guard except none


def test_calls_without_ids_are_reported() -> None:
    found = diagnose_server(without_ids)
    faults = {(each.probe, each.way) for each in found.faults if each.slug == "bad_ids"}
    assert faults == {("ids", "whole"), ("ids", "streamed")}


@pytest.mark.parametrize(
    ("streamed", "slug"),
    [('{"city": "Oslo"}, "type": "function"', "broken_arguments"), ('ity": "Oslo"}', "lost_in_stream")],
)
def test_text_after_streamed_arguments_is_not_a_loss(streamed: str, slug: str) -> None:
    """vLLM streams text after the arguments as part of the arguments, and omits it from whole answers."""

    def answer(body: Json) -> Any:
        call = {**CALL, "function": {"name": "get_weather", "arguments": streamed}}
        calls = [call if body.get("stream") else CALL]
        return _chat({"tool_calls": calls}, "tool_calls", body) if _has_call(body) else _right(body)

    found = diagnose_server(answer)
    assert {each.slug for each in found.faults if each.probe == "same_plain"} == {slug}
    assert ("--mode text" in found.cure()) is (slug == "lost_in_stream")


def test_an_unreachable_server_is_not_sound() -> None:
    found = asyncio.run(examine("http://127.0.0.1:9", ExamSettings(model="m")))
    assert not found.is_sound and not found.spoken and not found.results
    with pytest.raises(AssertionError, match="answers in none of the dialects"):
        found.check()


# -- hostile servers ---------------------------------------------------------------------------------------------------


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while True:
        writer.write(b'data: {"choices": [{"index": 0, "delta": {"content": "and on "}}]}\n\n' * 400)
        await writer.drain()


async def _mute(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def _deep(writer: asyncio.StreamWriter) -> None:
    body = b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


async def _noise(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\xff\xfe\x00{]\x1b")


async def _hostile(*answers: Answering, **settings: Any) -> Diagnosis:
    async with serving(*answers) as server:
        return await examine(server.url, ExamSettings(model="m", apis=("chat",), **settings))


@pytest.mark.parametrize("answer", [_endless, _deep, _noise], ids=["endless", "deep", "noise"])
def test_a_hostile_server_gives_only_faults(answer: Answering) -> None:
    found = asyncio.run(_hostile(answer, max_requests=12))
    assert found.requests == 12 and not found.is_sound
    assert {each.verdict for each in found.results} <= {"fault", "not offered", "unreachable"}
    assert all(len(each.evidence.answer) <= 4000 for each in found.results if each.evidence is not None)


def test_a_server_that_never_answers_times_out() -> None:
    found = asyncio.run(_hostile(_mute, seconds=0.2))
    assert not found.spoken and found.requests == 1
    assert "0.2 s" in found.dialects[0].says  # the configured limit


def test_a_request_on_a_closed_connection_is_repeated() -> None:
    async def go() -> RawAnswer:
        async with serving(drop, json_answer({"choices": []})) as server:
            return await ServerConnection(server.url, "chat", api_key_env=None, seconds=20.0).ask({}, "m", stream=False)

    assert asyncio.run(go()).status == 200


def test_the_request_limit_is_kept_and_reported() -> None:
    found = diagnose_server(leaks, max_requests=10)
    assert found.requests == 10 and found.skipped > 20


def test_secrets_are_redacted_in_the_evidence() -> None:
    secret = "sk-proj-" + "Ab3" * 16
    found = diagnose_server(lambda body: _chat({"content": f"your key is {secret}"}, "stop", body))
    assert found.results and secret not in json.dumps(found.to_json())


# -- results -----------------------------------------------------------------------------------------------------------


def test_an_intermittent_fault_is_reported_with_its_rate() -> None:
    counts: Counter[str] = Counter()

    def now_and_then(body: Json) -> Any:
        key = json.dumps(body, sort_keys=True)
        counts[key] += 1
        return without_ids(body) if counts[key] % 2 else _right(body)

    (ids,) = [each for each in diagnose_server(now_and_then, n=4).results if (each.probe, each.way) == ("ids", "whole")]
    assert (ids.verdict, ids.slug, ids.passed, ids.of) == ("fault", "bad_ids", 2, 4)


def test_check_raises_an_error_with_the_faults_and_their_cure() -> None:
    with scripted(lambda path, body: leaks(body)) as (url, _):
        found = diagnose(url, model="m", apis=["openai"])
        with pytest.raises(AssertionError) as error:
            found.check()
    message = str(error.value)
    assert "chat whole plain_call: call_as_text: the call is in the text, in the format hermes" in message
    assert message.endswith(f"cure: {found.cure()}") and f"--upstream {url}" in message


def test_the_same_questions_through_the_proxy_give_calls() -> None:
    with scripted(lambda path, body: leaks(body)) as (url, _):
        found = diagnose(url, model="m", apis=["chat"], through=True)
    assert found.through is not None
    after = {(each.probe, each.way): each.verdict for each in found.through.results}
    assert {after[name, way] for name in ("plain_call", "leak", "ids", "finish") for way in BOTH} == {"ok"}


# -- servers without answers -------------------------------------------------------------------------------------------

PAGE = b"<!doctype html><script>alert(1)</script><h1>Bad Gateway</h1>"


@pytest.mark.parametrize("status", [400, 404, 418, 429, 500, 502, 503])
def test_a_server_that_rejects_every_question_is_not_sound_and_has_no_class(status: int) -> None:
    found = asyncio.run(_hostile(answer(status, PAGE), max_requests=20))
    assert not found.is_sound and not found.classes and found.cure() == ""
    assert {each.verdict for each in found.results} <= {"unreachable"}
    with pytest.raises(AssertionError, match=f"status {status}"):
        found.check()


@pytest.mark.parametrize("page", [PAGE, b"", b"null", b"[]", b'{"choices": NaN}'])
def test_a_web_page_instead_of_an_answer_is_reported_as_a_wrong_address(page: bytes) -> None:
    found = asyncio.run(_hostile(answer(200, page, Content_Type="text/html"), max_requests=20))
    assert not found.is_sound and not found.classes
    assert {(each.verdict, "check the address" in each.says) for each in found.results} == {("unreachable", True)}


def test_a_server_that_fails_midway_is_not_sound() -> None:
    right = [json_answer(_right({"model": "m", "messages": [], "tools": [1]}))] * 10
    found = asyncio.run(_hostile(*right, json_answer({"error": "slow down"}, 429), concurrency=1))
    assert found.unanswered and not found.is_sound


def test_a_redirect_is_reported_with_its_target() -> None:
    found = asyncio.run(_hostile(answer(307, b"", Location="https://elsewhere.example/v1")))
    assert "redirects to https://elsewhere.example/v1" in found.dialects[0].says and not found.is_sound


@pytest.mark.parametrize("sent", [b"", b'data: {"choices": []}\n\n'], ids=["head", "event"])
def test_a_stream_that_stalls_is_reported(sent: bytes) -> None:
    async def stalls(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sent)
        await writer.drain()
        await asyncio.sleep(60)

    async def go() -> RawAnswer:
        async with serving(stalls) as server:
            return await ServerConnection(server.url, "chat", api_key_env=None, seconds=0.3).ask({}, "m", stream=True)

    raw = asyncio.run(go())
    assert raw.broke == "silent" and "no data for" in raw.says


def test_the_longest_pause_of_an_answer_is_measured() -> None:
    async def pauses(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        await writer.drain()
        await asyncio.sleep(0.3)
        writer.write(b"b")

    async def go() -> RawAnswer:
        async with serving(pauses) as server:
            return await ServerConnection(server.url, "chat", api_key_env=None, seconds=20.0).ask({}, "m", stream=True)

    raw = asyncio.run(go())
    assert raw.body == b"ab" and 0.25 < raw.silence <= raw.seconds


# -- model behaviour ---------------------------------------------------------------------------------------------------


def announces(body: Json) -> Any:
    text = "Let me call get_weather now." if _has_call(body) and body.get("tool_choice") != "required" else "Hello."
    return _chat({"content": text}, "stop", body)


def test_a_model_habit_is_reported_with_its_cure_and_not_as_a_server_fault() -> None:
    found = diagnose_server(announces)
    plain = next(each for each in found.results if each.probe == "plain_call")
    assert (plain.verdict, plain.slug) == ("model", "announced_only") and plain not in found.faults
    assert "announced_only" in {each.slug for each in found.habits} and "--guard full" in found.cure()
    assert found.to_json()["habits"] == [each.slug for each in found.habits]


# -- probes that no server of the zoo fails ----------------------------------------------------------------------------


FAILS: dict[str, tuple[Any, str, str]] = {
    "text": (lambda body: _chat({"content": ""}, "stop", body), "model", ""),
    "constraint": (_right, "fault", "schema_kills_grammar"),
}
REJECTS: dict[str, tuple[str, Any, str, str]] = {
    "client_fields": ("unknown field: metadata", lambda body: "metadata" in body, "fault", "refused_fields"),
    "unknown_field": ("what is x?", lambda body: "x_field_nobody_knows" in body, "fault", "refused_fields"),
    "image": ("no images", lambda body: "image_url" in json.dumps(body), "not offered", ""),
}


@pytest.mark.parametrize("probe", FAILS)
def test_faults_that_no_bad_server_has_are_detected(probe: str) -> None:
    answering, verdict, slug = FAILS[probe]
    found = {(each.verdict, each.slug) for each in diagnose_server(answering).results if each.probe == probe}
    assert found == {(verdict, slug)}


@pytest.mark.parametrize("probe", REJECTS)
def test_a_rejection_is_classified_by_the_rejected_field(probe: str) -> None:
    message, is_rejected, verdict, slug = REJECTS[probe]

    async def go() -> Diagnosis:
        async def handle(request: web.Request) -> web.Response:
            body = await request.json() if request.method == "POST" else {}
            if request.method != "POST" or is_rejected(body):
                return web.json_response({"error": {"message": message}}, status=400)
            return web.json_response(_whole(body))

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        async with TestServer(app) as server:
            return await examine(str(server.make_url("/")).rstrip("/"), ExamSettings(model="m", apis=("chat",)))

    found = {(each.verdict, each.slug) for each in asyncio.run(go()).results if each.probe == probe}
    assert found == {(verdict, slug)}


def _whole(body: Json) -> Any:
    return _right({**body, "stream": False})


def test_a_late_first_byte_is_a_fault() -> None:
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        await json_answer(_right({"model": "m", "messages": []}))(writer)

    found = asyncio.run(_hostile(late, patience=0.2, max_requests=8))
    assert {(each.verdict, each.slug) for each in found.results if each.probe == "first_byte"} == {
        ("fault", "idle_stream")
    }


_WORDS = LONG_WORDS.split()


@pytest.mark.parametrize(
    "arguments, verdict",
    [
        (json.dumps({"path": "notes.txt", "content": " ".join(_WORDS[:20])}), "fault"),
        (json.dumps({"path": "notes.txt", "content": " ".join(_WORDS[:20])[:-1]}), "fault"),
        (json.dumps({"path": "notes.txt", "content": " ".join(_WORDS[:20])})[:-2], "fault"),
        (json.dumps({"path": "notes.txt", "content": LONG_WORDS}), "model"),
        (json.dumps({"path": "notes.txt", "content": "w1"}), "model"),
        (json.dumps({"path": "notes.txt", "content": " ".join(_WORDS[5:20])}), "model"),
        (json.dumps({"path": "notes.txt", "content": "some other text"}), "model"),
        (json.dumps({"path": "notes.txt"}), "model"),
    ],
    ids=[
        "closed after a word",
        "closed inside a word",
        "not closed",
        "whole",
        "one word",
        "another beginning",
        "another text",
        "no text",
    ],
)
def test_a_call_with_only_the_beginning_of_the_requested_text_is_a_cut_call_of_the_server(
    arguments: str, verdict: str
) -> None:
    answer = StrictClientAnswer()
    answer.calls = [ClientCall(id="call_1", name="write_file", pieces=[arguments])]
    answer.finish = "tool_calls"
    case = ProbedCase(
        api="chat", way="whole", question=QUESTIONS["cut"], body={}, raw=RawAnswer(status=200), answer=answer
    )
    found = judge_truncation(case)
    assert (found.verdict, found.slug) == (verdict, "cut_but_run" if verdict == "fault" else "")


@pytest.mark.parametrize("seconds, verdict", [(0.9, "ok"), (1.1, "fault")])
def test_a_stream_in_one_piece_is_a_fault_only_if_it_is_slow(seconds: float, verdict: str) -> None:
    answer = StrictClientAnswer()
    answer.texts = ["word "] * 200
    raw = RawAnswer(status=200, pieces=1, first_byte=seconds, seconds=seconds)
    case = ProbedCase(api="chat", way="streamed", question=QUESTIONS["plain"], body={}, raw=raw, answer=answer)
    assert judge_first_byte(case).verdict == verdict


def test_the_thinking_of_a_whole_messages_answer_is_read() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hello."}]
    body = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    found = parse_answer(RawAnswer(status=200, body=json.dumps(body).encode()), "messages", stream=False)
    assert (found.reasoning, found.text) == ("Hm.", "Hello.")
