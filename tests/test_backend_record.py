"""A cassette replays what was recorded, without a key and without a network."""

import asyncio
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, CallEnd, Text
from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.cassette import (
    MAX_BYTES,
    CassetteHead,
    RecordedExchange,
    RecordedRequest,
    RecordedResponse,
    api_route,
    append_exchange,
    canonical_request,
    load_cassette,
    start_cassette,
)
from rightcall.backends.recording import Recorder, ReplayBackend, ReplayServer, replay_pieces
from rightcall.backends.request import Answer, Request
from rightcall.errors import BackendError, BadCassette, CallerError, FileFailed, NotRecorded, StatusError
from rightcall.types import Event
from support.loopback import (
    WEATHER,
    Answering,
    answer,
    ask,
    backend,
    chat,
    chunked,
    delta,
    drop,
    events,
    json_answer,
    serving,
)
from test_backend_http import STREAMS, WHOLE

OSLO = json_answer(chat(calls=(("get_weather", '{"city": "Oslo"}'),), finish="tool_calls"))
JSON = {"headers": {"Content-Type": "application/json"}}
KEY = "sk-hunter2-hunter2-hunter2"


def record_answers(
    path: Path, answers: Sequence[Answering], requests: Sequence[Request], *, stream: bool = False, **options: Any
) -> list[Answer | BackendError]:
    """Record the requests and return the answers that the recorder gave."""

    async def go() -> list[Answer | BackendError]:
        async with serving(*answers) as server:
            recorder = Recorder(backend(server, **options), path)
            return [await run_request(recorder, request, stream=stream) for request in requests]

    return asyncio.run(go())


def replay_answers(
    path: Path, requests: Sequence[Request], *, stream: bool = False, **options: Any
) -> list[Answer | BackendError]:
    async def go() -> list[Answer | BackendError]:
        player = ReplayBackend(path, **options)
        return [await run_request(player, request, stream=stream) for request in requests]

    return asyncio.run(go())


async def run_request(client: BaseBackend, request: Request, *, stream: bool) -> Answer | BackendError:
    try:
        if not stream:
            return await client.complete(request)
        async with client.stream(request) as events:
            async for _ in events:
                pass
        return events.answer
    except BackendError as error:
        return error


def comparable_outcome(result: Answer | BackendError) -> Any:
    """Return everything of an outcome that a replay must preserve: all but timing."""
    if isinstance(result, BackendError):
        return type(result), [each.status for each in result.tries]  # type: ignore[attr-defined]
    fields = result.parts, result.problems and [each.code for each in result.problems], result.finish, result.usage
    return *fields, result.model, result.mode, result.raw, result.extras, [each.status for each in result.tries]


# -- a replay equals the recording -------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", STREAMS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_replay_equals_the_recording_in_every_dialect(api: str, stream: bool, tmp_path: Path) -> None:
    mode = "text" if api == "completions" else "native"
    whole = {"chat": chat(calls=(("get_weather", '{"city": "Oslo"}'),)), **WHOLE}
    server_answer = chunked(STREAMS[api][0]) if stream else json_answer(whole[api])
    request = ask(mode=mode)
    first = record_answers(tmp_path / "c.jsonl", [server_answer], [request], stream=stream, api=api)
    again = replay_answers(tmp_path / "c.jsonl", [request], stream=stream)
    assert [_without_ids(each) for each in first] == [_without_ids(each) for each in again]


def _without_ids(answer: Answer | BackendError) -> Any:
    """Return an answer without call ids: the ids that the server omitted are generated anew."""
    assert isinstance(answer, Answer)
    return [(call.name, call.arguments) for call in answer.attempts], *comparable_outcome(answer)[1:]


_UMLAUT = json.dumps(delta("stop", content="ü→"), ensure_ascii=False)
LETTERS = [bytes([each]) for each in f"data: {_UMLAUT}\n\n".encode()]
FAULTY_SERVERS: dict[str, tuple[list[Answering], bool]] = {
    "a refusal": ([json_answer({"error": "no"}, 400)], False),
    "a server that comes back": ([json_answer({}, 503), drop, OSLO], False),
    "a connection that closes": ([drop], False),
    "a page": ([answer(200, b"<html>")], False),
    "an answer that breaks off": ([chunked([b'{"choi'], ends=False)], False),
    "a stream that breaks off": ([chunked(events(*WEATHER[:2], done=False), ends=False)], True),
    "a stream without an end": ([chunked(events(*WEATHER[:2], done=False))], True),
    "a stream cut inside a character": ([chunked(LETTERS)], True),
}


@pytest.mark.parametrize("answers, stream", FAULTY_SERVERS.values(), ids=FAULTY_SERVERS)
def test_a_replay_fails_like_the_recording(answers: list[Answering], stream: bool, tmp_path: Path) -> None:
    first = record_answers(tmp_path / "c.jsonl", answers, [ask()], stream=stream)
    again = replay_answers(tmp_path / "c.jsonl", [ask()], stream=stream)
    assert [comparable_outcome(each) for each in first] == [comparable_outcome(each) for each in again]


def test_a_cassette_keeps_the_chunks_of_a_stream(tmp_path: Path) -> None:
    pieces = events(*WEATHER)
    record_answers(tmp_path / "c.jsonl", [chunked(pieces)], [ask()], stream=True)
    (exchange,) = load_cassette(tmp_path / "c.jsonl").exchanges
    assert b"".join(exchange.response.pieces()) == b"".join(pieces)
    assert len(exchange.response.chunks) == len(exchange.response.delays) > 1


def test_a_replay_keeps_the_timing_of_the_recording_on_request(tmp_path: Path) -> None:
    async def wait(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)

    record_answers(tmp_path / "c.jsonl", [chunked(events(*WEATHER), then=wait)], [ask()], stream=True)
    _slow_down(tmp_path / "c.jsonl", 300)
    durations = []
    for timing in (False, True):
        start = time.monotonic()
        replay_answers(tmp_path / "c.jsonl", [ask()], stream=True, timing=timing)
        durations.append(time.monotonic() - start)
    assert durations[1] >= 0.3


def test_each_chunk_of_a_replay_waits_for_its_recorded_delay() -> None:
    async def go() -> None:
        async with aclosing(
            replay_pieces(RecordedResponse(200, chunks=["a", "b"], delays=[0, 60_000]), timing=True)
        ) as pieces:
            assert await anext(pieces) == b"a"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(pieces)

    asyncio.run(go())


def _slow_down(path: Path, milliseconds: int) -> None:
    head, line = path.read_text().splitlines()
    exchange = json.loads(line)
    exchange["response"]["delays"][0] = milliseconds
    path.write_text(f"{head}\n{json.dumps(exchange)}\n")


def test_a_repeated_request_gets_its_answers_in_order_and_then_the_last_one(tmp_path: Path) -> None:
    answers = [json_answer(chat(text)) for text in ("one", "two")]
    record_answers(tmp_path / "c.jsonl", answers, [ask(), ask()])
    found = replay_answers(tmp_path / "c.jsonl", [ask()] * 4)
    assert [each.content for each in found if isinstance(each, Answer)] == ["one", "two", "two", "two"]


def test_the_probes_of_mode_auto_are_recorded_and_replayed(tmp_path: Path) -> None:
    request = ask(mode=None)
    probe = json_answer(chat(calls=(("tool_probe", "{}"),)))
    first = record_answers(tmp_path / "c.jsonl", [probe, OSLO], [request])
    again = replay_answers(tmp_path / "c.jsonl", [request])
    assert [comparable_outcome(each) for each in first] == [comparable_outcome(each) for each in again]
    assert [each.evidence for each in first if isinstance(each, Answer)] == [
        each.evidence for each in again if isinstance(each, Answer)
    ]


def test_generated_call_ids_do_not_affect_the_matching_of_requests(tmp_path: Path) -> None:
    def turn(id: str, city: str = "Oslo") -> Request:
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        result = {"role": "tool", "tool_call_id": id, "content": "rain"}
        return ask(messages=[{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}, result])

    record_answers(tmp_path / "c.jsonl", [json_answer(chat("Rain."))], [turn("call_1")])
    same, other = replay_answers(tmp_path / "c.jsonl", [turn("call_2"), turn("call_2", "Rome")])
    assert isinstance(same, Answer) and same.content == "Rain."
    assert isinstance(other, NotRecorded)


# -- requests that were not recorded -----------------------------------------------------------------------------------


def test_an_unrecorded_request_is_reported_with_the_nearest_one_and_the_difference(tmp_path: Path) -> None:
    requests = [ask(messages=[{"role": "user", "content": text}], temperature=0.5) for text in ("Hello", "Weather?")]
    record_answers(tmp_path / "c.jsonl", [OSLO], requests)
    (error,) = replay_answers(
        tmp_path / "c.jsonl", [ask(messages=[{"role": "user", "content": "Weather!"}], temperature=0.5)]
    )
    assert isinstance(error, NotRecorded)
    assert 'at /messages/0/content: "Weather!" here, "Hello" recorded' in str(error)
    assert "record it again, or replay it leniently" in str(error) and "exchange 1" in str(error)
    (error,) = replay_answers(tmp_path / "c.jsonl", [requests[1]], stream=True)
    assert isinstance(error, NotRecorded) and "nor to any like it" in str(error)


def test_a_lenient_replay_returns_the_answer_of_the_nearest_request(tmp_path: Path) -> None:
    requests = [ask(messages=[{"role": "user", "content": text}]) for text in ("a", "b")]
    requests.append(ask(messages=[{"role": "user", "content": "c"}, {"role": "user", "content": "d"}]))
    record_answers(tmp_path / "c.jsonl", [json_answer(chat(text)) for text in ("one", "two", "three")], requests)
    (answer,) = replay_answers(
        tmp_path / "c.jsonl",
        [ask(messages=[{"role": "user", "content": "c"}, {"role": "user", "content": "e"}])],
        strict=False,
    )
    assert isinstance(answer, Answer) and answer.content == "three"


@pytest.mark.parametrize(
    "path, found",
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/proxy/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1/messages?beta=true", "/v1/messages"),
        ("/x/api/chat", "/api/chat"),
        ("/props", "/props"),
        ("/api/v0/models", "/api/v0/models"),
    ],
)
def test_the_route_of_a_request_omits_the_prefix_of_the_base_url(path: str, found: str) -> None:
    assert api_route(path) == found


# -- keys --------------------------------------------------------------------------------------------------------------


def test_a_cassette_contains_no_key_from_any_part_of_a_request(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    echo = json.dumps(chat(f"your key is {KEY}")).encode()
    half = len(echo) // 2
    at = echo.index(KEY.encode()) + 5
    answers = [
        json_answer(chat(f"your key is {KEY}"), Set_Cookie=f"session={KEY}", Server=f"x {KEY}"),
        chunked([echo[:at], echo[at:half], echo[half:]], kind="application/json"),
        json_answer({"error": f"bad key {KEY}"}, 400),
    ]
    request = ask(
        messages=[{"role": "user", "content": f"my key is {KEY}, and hf_{'a' * 34}"}],
        extra={"api_key": "letmein", "nested": {"Authorization": "Bearer letmein-letmein"}},
    )
    environ = {"OPENAI_API_KEY": KEY}
    record_answers(path, answers, [request] * 3, environ=environ)
    text = path.read_text()
    assert "hunter2" not in text and "letmein" not in text and "a" * 34 not in text and "ookie" not in text
    again = replay_answers(path, [request] * 3)
    assert isinstance(again[0], Answer) and again[0].content == "your key is [key]"
    assert isinstance(again[1], Answer) and isinstance(again[2], StatusError)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_cassette_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    record_answers(path, [OSLO], [ask()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    record_answers(path, [OSLO], [ask()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(load_cassette(path).exchanges) == 2


def test_a_file_that_is_not_a_cassette_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(BadCassette, match="is no cassette"):
        Recorder(_Parrot(), path)
    assert path.read_text() == "mine\n"
    with pytest.raises(BadCassette, match="cannot write"):
        Recorder(_Parrot(), tmp_path / "no" / "such" / "folder.jsonl")


def test_a_failed_write_is_reported_and_leaves_the_cassette_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    start_cassette(path, CassetteHead(model="m"))
    one = RecordedExchange(
        RecordedRequest("POST", "/v1/chat/completions", {"a": "x" * 3000}),
        RecordedResponse(200, {}, ["hello" * 500], [0]),
    )
    append_exchange(path, one)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 1000, limits[1]))  # room for a part of the line
    try:
        with pytest.raises(FileFailed, match=r"cannot write .*c\.jsonl: File too large"):
            append_exchange(path, one)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    append_exchange(path, one)
    assert list(load_cassette(path).exchanges) == [one, one]


def test_an_incomplete_last_line_of_a_cassette_is_removed_before_recording(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    record_answers(path, [OSLO], [ask()])
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:100])
    record_answers(path, [OSLO], [ask()])
    assert len(load_cassette(path).exchanges) == 2 and path.read_bytes().startswith(whole)


def test_a_fresh_recording_replaces_the_file_only_with_its_first_exchange(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    for old in (
        HEAD.encode() + b'{"request": {"method": "GET", "path": "/old"}, "response": {"status": 200}}\n',
        b"mine",
    ):
        path.write_bytes(old)
        recorder = Recorder(_Parrot(), path, fresh=True, force=True)
        assert path.read_bytes() == old
        recorder.complete_sync(ask())
        assert [each.request.method for each in load_cassette(path).exchanges] == ["POST"]


HEAD = '{"rightcall_cassette": 1}\n'
BAD_CASSETTES: dict[str, tuple[str, str]] = {
    "empty": ("", "is not a cassette"),
    "another file": ('{"name": "x"}\n', "is not a cassette"),
    "another version": ('{"rightcall_cassette": 2}\n', "version 2; this program reads version 1"),
    "no JSON": (HEAD + "{oops\n", "line 2 cannot be read"),
    "nested too deeply": (HEAD + "[" * 100_000 + "\n", "line 2 cannot be read"),
    "no response": (HEAD + '{"request": {"method": "POST", "path": "/"}}\n', "line 2 cannot be read"),
    "a strange status": (
        HEAD + '{"request": {"method": "POST", "path": "/"}, "response": {"status": 999}}\n',
        "line 2",
    ),
    "a strange method": (HEAD + '{"request": {"method": "PUT", "path": "/"}, "response": {"status": 200}}\n', "line 2"),
}


@pytest.mark.parametrize("text, message", BAD_CASSETTES.values(), ids=BAD_CASSETTES)
def test_an_invalid_cassette_is_rejected_with_the_line_number(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(text)
    with pytest.raises(BadCassette, match=message):
        ReplayBackend(path)


_LINE = b'{"request": {"method": "POST", "path": "/"}, "response": {"status": 200, "chunks": [{"base64": "!"}]}}'
_ANY = st.lists(st.sampled_from([HEAD.encode(), _LINE, b"\n", b"{}", b"null"]) | st.binary(max_size=9), max_size=6)


@given(_ANY.map(b"".join))
def test_arbitrary_bytes_are_loaded_or_rejected_as_a_bad_cassette(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        path.write_bytes(data)
        try:
            found = load_cassette(path)
        except BadCassette:
            return
    assert all(isinstance(piece, bytes) for each in found.exchanges for piece in each.response.pieces())


def test_a_missing_or_oversized_cassette_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadCassette, match="cannot read"):
        load_cassette(tmp_path / "no.jsonl")
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # a sparse file needs no space
    with pytest.raises(BadCassette, match="larger than"):
        load_cassette(huge)


# -- a backend without HTTP --------------------------------------------------------------------------------------------


class _Parrot(BaseBackend):
    """Returns the same answer to every request."""

    def stream(self, request: Request) -> Streaming:
        return Streaming(self._say())

    async def _say(self) -> AsyncGenerator[Event | Answer]:
        call = Call("get_weather", {"city": "Oslo"}, '{"city": "Oslo"}', "call_1")
        yield Text("On it.")
        yield CallEnd(0, call)
        yield Answer(parts=(Text("On it."), call), finish="tool_calls", model="parrot")


@pytest.mark.parametrize("stream", [True, False])
def test_a_backend_without_http_is_recorded_like_a_server(stream: bool, tmp_path: Path) -> None:
    async def go() -> Answer | BackendError:
        return await run_request(Recorder(_Parrot(), tmp_path / "c.jsonl"), ask(), stream=stream)

    first = asyncio.run(go())
    (again,) = replay_answers(tmp_path / "c.jsonl", [ask()], stream=stream)
    assert isinstance(first, Answer) and isinstance(again, Answer)
    assert again.content == first.content == "On it." and again.finish == "tool_calls"
    assert [(call.name, call.id, call.arguments) for call in again.attempts] == [
        ("get_weather", "call_1", {"city": "Oslo"})
    ]


class _UnfinishedParrot(_Parrot):
    """Gives the same answer without a finish reason."""

    async def _say(self) -> AsyncGenerator[Event | Answer]:
        async for each in super()._say():
            yield Answer(parts=each.parts, model=each.model) if isinstance(each, Answer) else each


@pytest.mark.parametrize("stream", [True, False])
def test_calls_without_a_finish_reason_are_recorded_with_the_reason_tool_calls(stream: bool, tmp_path: Path) -> None:
    """A client of the replay that reads "stop" would not run the calls."""
    asyncio.run(run_request(Recorder(_UnfinishedParrot(), tmp_path / "c.jsonl"), ask(), stream=stream))
    (again,) = replay_answers(tmp_path / "c.jsonl", [ask()], stream=stream)
    assert isinstance(again, Answer) and again.attempts and again.finish == "tool_calls"


# -- the server --------------------------------------------------------------------------------------------------------


def test_a_served_recording_answers_like_the_recorded_server(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    first = record_answers(path, [chunked(events(*WEATHER))], [ask()], stream=True)

    async def go() -> list[Any]:
        async with ReplayServer(path) as server:
            client = backend(server)
            again = [await run_request(client, ask(), stream=True) for _ in range(2)]
            unknown = await run_request(client, ask(temperature=0.1), stream=True)
            return [*map(comparable_outcome, again), unknown, await client.models()]

    one, two, unknown, models = asyncio.run(go())
    assert one == two == comparable_outcome(first[0]) and models == ["m"]
    assert isinstance(unknown, StatusError) and unknown.status == 404 and "at /temperature: 0.1 here" in unknown.body


@pytest.mark.parametrize("stream", [True, False])
def test_an_entered_backend_reuses_one_connection(stream: bool, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    record_answers(path, [chunked(events(*WEATHER)) if stream else OSLO], [ask()], stream=stream)

    async def go() -> int:
        async with ReplayServer(path) as server, backend(server) as client:
            for _ in range(3):
                assert isinstance(await run_request(client, ask(), stream=stream), Answer)
            runner = server._server.runner
            assert runner is not None and runner.server is not None
            return len(runner.server.connections)

    assert asyncio.run(go()) == 1


def test_the_replay_server_closes_the_stream_where_the_recording_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    answers = [chunked(events(delta(content="Hello there."), done=False), ends=False)]
    record_answers(path, answers, [ask()], stream=True)

    async def go() -> Answer | BackendError:
        async with ReplayServer(path) as server:
            return await run_request(backend(server), ask(), stream=True)

    found = asyncio.run(go())
    assert isinstance(found, Answer) and found.content == "Hello there."
    assert [problem.code for problem in found.problems] == ["truncated"]


def test_the_replay_server_rejects_foreign_hosts_and_invalid_requests(tmp_path: Path) -> None:
    import aiohttp

    path = tmp_path / "c.jsonl"
    record_answers(path, [OSLO], [ask()])

    async def go() -> list[int]:
        async with ReplayServer(path, no_key=True) as server, aiohttp.ClientSession() as session:
            url = f"{server.url}/chat/completions"
            with pytest.raises(CallerError, match="cannot listen on port"):
                await ReplayServer(path, port=int(server.url.split(":")[2].split("/")[0])).__aenter__()
            tries: list[tuple[str, str, dict[str, Any]]] = [
                ("GET", f"{server.url}/models", {}),
                ("GET", f"{server.url}/models", {"headers": {"Host": "evil.example"}}),
                ("POST", url, {"data": b"{oops", **JSON}),
                ("POST", url, {"data": b"[]", **JSON}),
                ("PUT", url, {"data": b"{}", **JSON}),
                ("GET", server.url.replace("/v1", "/health"), {}),
                ("GET", f"{server.url}/nothing", {}),
            ]
            return [(await session.request(method, where, **more)).status for method, where, more in tries]

    assert asyncio.run(go()) == [200, 421, 400, 400, 405, 200, 404]


# -- pytest ------------------------------------------------------------------------------------------------------------

TEST = """
import os
from rightcall.backends.http import Backend
from rightcall.backends.request import Request

def test_a_model(rightcall_cassette):
    backend = rightcall_cassette(Backend(os.environ.get("URL", "http://127.0.0.1:1"), model="m", mode="native"))
    assert backend.complete_sync(Request(messages=[{"role": "user", "content": "Hi"}])).content == "Hello!"
"""


def _pytest(folder: Path, *args: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-p", "rightcall.testing.pytest_plugin", "-p", "no:cacheprovider", *args]
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}, **environ}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins only cost time
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_the_pytest_fixture_records_once_and_then_replays(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    missing = _pytest(tmp_path)
    assert missing.returncode == 1 and "record it with pytest --rightcall-record" in missing.stdout

    async def record() -> "subprocess.CompletedProcess[str]":
        async with serving(json_answer(chat("Hello!"))) as server:
            return await asyncio.to_thread(_pytest, tmp_path, "--rightcall-record", URL=server.url)

    recording = asyncio.run(record())
    assert recording.returncode == 0, recording.stdout
    assert (tmp_path / "cassettes" / "test_it.test_a_model.jsonl").exists()
    again = _pytest(tmp_path)
    assert again.returncode == 0, again.stdout


@pytest.mark.parametrize("field", ["input", "arguments"])
def test_an_id_inside_call_arguments_is_part_of_the_canonical_request(field: str) -> None:
    def request_with_ids(minted: str, given: str) -> RecordedRequest:
        call = {"type": "tool_use", "id": minted, "name": "find", field: {"id": given}}
        return RecordedRequest("POST", "/v1/messages", {"messages": [{"role": "assistant", "content": [call]}]})

    assert canonical_request(request_with_ids("call_1", "a")) == canonical_request(request_with_ids("call_2", "a"))
    assert canonical_request(request_with_ids("call_1", "a")) != canonical_request(request_with_ids("call_1", "b"))


def test_the_canonical_request_omits_fields_that_do_not_affect_the_answer() -> None:
    one = RecordedRequest(
        "POST", "/v1/chat/completions", {"model": "m", "user": "a", "seed": None, "stream_options": {}}
    )
    assert canonical_request(one) == {"method": "POST", "path": "/v1/chat/completions", "body": {"model": "m"}}
