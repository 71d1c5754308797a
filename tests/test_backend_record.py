"""What was recorded replays the same, without a key and without a network."""

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


def recorded(
    path: Path, answers: Sequence[Answering], requests: Sequence[Request], *, stream: bool = False, **options: Any
) -> list[Answer | BackendError]:
    """The answers as they came, while they were recorded."""

    async def go() -> list[Answer | BackendError]:
        async with serving(*answers) as server:
            recorder = Recorder(backend(server, **options), path)
            return [await outcome(recorder, request, stream=stream) for request in requests]

    return asyncio.run(go())


def replayed(
    path: Path, requests: Sequence[Request], *, stream: bool = False, **options: Any
) -> list[Answer | BackendError]:
    async def go() -> list[Answer | BackendError]:
        player = ReplayBackend(path, **options)
        return [await outcome(player, request, stream=stream) for request in requests]

    return asyncio.run(go())


async def outcome(made: BaseBackend, request: Request, *, stream: bool) -> Answer | BackendError:
    try:
        if not stream:
            return await made.complete(request)
        async with made.stream(request) as events:
            async for _ in events:
                pass
        return events.answer
    except BackendError as error:
        return error


def essence(found: Answer | BackendError) -> Any:
    """What a replay must keep: everything but time."""
    if isinstance(found, BackendError):
        return type(found), [each.status for each in found.tries]  # type: ignore[attr-defined]
    kept = found.parts, found.problems and [each.code for each in found.problems], found.finish, found.usage
    return *kept, found.model, found.mode, found.raw, found.extras, [each.status for each in found.tries]


# -- the law: a replay gives what was recorded -------------------------------------------------------------------------


@pytest.mark.parametrize("api", STREAMS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_replay_gives_what_was_recorded_in_every_dialect(api: str, stream: bool, tmp_path: Path) -> None:
    mode = "text" if api == "completions" else "native"
    whole = {"chat": chat(calls=(("get_weather", '{"city": "Oslo"}'),)), **WHOLE}
    said = chunked(STREAMS[api][0]) if stream else json_answer(whole[api])
    request = ask(mode=mode)
    first = recorded(tmp_path / "c.jsonl", [said], [request], stream=stream, api=api)
    again = replayed(tmp_path / "c.jsonl", [request], stream=stream)
    assert [_without_ids(each) for each in first] == [_without_ids(each) for each in again]


def _without_ids(found: Answer | BackendError) -> Any:
    """Ids that no server gave are minted anew."""
    assert isinstance(found, Answer)
    return [(call.name, call.arguments) for call in found.attempts], *essence(found)[1:]


_UMLAUT = json.dumps(delta("stop", content="ü→"), ensure_ascii=False)
LETTERS = [bytes([each]) for each in f"data: {_UMLAUT}\n\n".encode()]
ACCIDENTS: dict[str, tuple[list[Answering], bool]] = {
    "a refusal": ([json_answer({"error": "no"}, 400)], False),
    "a server that comes back": ([json_answer({}, 503), drop, OSLO], False),
    "a connection that closes": ([drop], False),
    "a page": ([answer(200, b"<html>")], False),
    "an answer that breaks off": ([chunked([b'{"choi'], ends=False)], False),
    "a stream that breaks off": ([chunked(events(*WEATHER[:2], done=False), ends=False)], True),
    "a stream without an end": ([chunked(events(*WEATHER[:2], done=False))], True),
    "a stream cut inside a character": ([chunked(LETTERS)], True),
}


@pytest.mark.parametrize("answers, stream", ACCIDENTS.values(), ids=ACCIDENTS)
def test_a_replay_fails_as_the_recording_did(answers: list[Answering], stream: bool, tmp_path: Path) -> None:
    first = recorded(tmp_path / "c.jsonl", answers, [ask()], stream=stream)
    again = replayed(tmp_path / "c.jsonl", [ask()], stream=stream)
    assert [essence(each) for each in first] == [essence(each) for each in again]


def test_a_replay_keeps_the_pieces(tmp_path: Path) -> None:
    pieces = events(*WEATHER)
    recorded(tmp_path / "c.jsonl", [chunked(pieces)], [ask()], stream=True)
    (exchange,) = load_cassette(tmp_path / "c.jsonl").exchanges
    assert b"".join(exchange.response.pieces()) == b"".join(pieces)
    assert len(exchange.response.chunks) == len(exchange.response.delays) > 1


def test_a_replay_has_the_pace_of_the_recording_if_asked(tmp_path: Path) -> None:
    async def wait(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)

    recorded(tmp_path / "c.jsonl", [chunked(events(*WEATHER), then=wait)], [ask()], stream=True)
    _slow_down(tmp_path / "c.jsonl", 300)
    took = []
    for timing in (False, True):
        begun = time.monotonic()
        replayed(tmp_path / "c.jsonl", [ask()], stream=True, timing=timing)
        took.append(time.monotonic() - begun)
    assert took[1] >= 0.3


def test_each_piece_of_a_replay_waits_for_its_own_delay() -> None:
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


def test_the_same_request_gets_its_answers_in_order_and_the_last_from_then_on(tmp_path: Path) -> None:
    answers = [json_answer(chat(said)) for said in ("one", "two")]
    recorded(tmp_path / "c.jsonl", answers, [ask(), ask()])
    found = replayed(tmp_path / "c.jsonl", [ask()] * 4)
    assert [each.content for each in found if isinstance(each, Answer)] == ["one", "two", "two", "two"]


def test_mode_auto_replays_with_all_that_it_asked(tmp_path: Path) -> None:
    request = ask(mode=None)
    probe = json_answer(chat(calls=(("tool_probe", "{}"),)))
    first = recorded(tmp_path / "c.jsonl", [probe, OSLO], [request])
    again = replayed(tmp_path / "c.jsonl", [request])
    assert [essence(each) for each in first] == [essence(each) for each in again]
    assert [each.evidence for each in first if isinstance(each, Answer)] == [
        each.evidence for each in again if isinstance(each, Answer)
    ]


def test_ids_that_are_minted_anew_do_not_matter(tmp_path: Path) -> None:
    def turn(id: str, city: str = "Oslo") -> Request:
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        result = {"role": "tool", "tool_call_id": id, "content": "rain"}
        return ask(messages=[{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}, result])

    recorded(tmp_path / "c.jsonl", [json_answer(chat("Rain."))], [turn("call_1")])
    same, other = replayed(tmp_path / "c.jsonl", [turn("call_2"), turn("call_2", "Rome")])
    assert isinstance(same, Answer) and same.content == "Rain."
    assert isinstance(other, NotRecorded)


# -- what was not recorded ---------------------------------------------------------------------------------------------


def test_a_request_that_was_not_recorded_names_the_nearest_and_where_it_differs(tmp_path: Path) -> None:
    requests = [ask(messages=[{"role": "user", "content": said}], temperature=0.5) for said in ("Hello", "Weather?")]
    recorded(tmp_path / "c.jsonl", [OSLO], requests)
    (found,) = replayed(
        tmp_path / "c.jsonl", [ask(messages=[{"role": "user", "content": "Weather!"}], temperature=0.5)]
    )
    assert isinstance(found, NotRecorded)
    assert 'at /messages/0/content: "Weather!" here, "Hello" recorded' in str(found)
    assert "record it again, or replay it leniently" in str(found) and "exchange 1" in str(found)
    (found,) = replayed(tmp_path / "c.jsonl", [requests[1]], stream=True)
    assert isinstance(found, NotRecorded) and "nor to any like it" in str(found)


def test_a_lenient_replay_gives_the_nearest(tmp_path: Path) -> None:
    requests = [ask(messages=[{"role": "user", "content": said}]) for said in ("a", "b")]
    requests.append(ask(messages=[{"role": "user", "content": "c"}, {"role": "user", "content": "d"}]))
    recorded(tmp_path / "c.jsonl", [json_answer(chat(said)) for said in ("one", "two", "three")], requests)
    (found,) = replayed(
        tmp_path / "c.jsonl",
        [ask(messages=[{"role": "user", "content": "c"}, {"role": "user", "content": "e"}])],
        strict=False,
    )
    assert isinstance(found, Answer) and found.content == "three"


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
def test_a_path_counts_without_what_a_base_url_puts_before_it(path: str, found: str) -> None:
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
    recorded(path, answers, [request] * 3, environ=environ)
    text = path.read_text()
    assert "hunter2" not in text and "letmein" not in text and "a" * 34 not in text and "ookie" not in text
    again = replayed(path, [request] * 3)
    assert isinstance(again[0], Answer) and again[0].content == "your key is [key]"
    assert isinstance(again[1], Answer) and isinstance(again[2], StatusError)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_cassette_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    recorded(path, [OSLO], [ask()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    recorded(path, [OSLO], [ask()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(load_cassette(path).exchanges) == 2


def test_a_file_that_is_no_cassette_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(BadCassette, match="is no cassette"):
        Recorder(_Parrot(), path)
    assert path.read_text() == "mine\n"
    with pytest.raises(BadCassette, match="cannot write"):
        Recorder(_Parrot(), tmp_path / "no" / "such" / "folder.jsonl")


def test_a_cassette_on_a_full_disk_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
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
    recorded(path, [OSLO], [ask()])
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:100])
    recorded(path, [OSLO], [ask()])
    assert len(load_cassette(path).exchanges) == 2 and path.read_bytes().startswith(whole)


def test_a_cassette_begins_anew_with_the_first_exchange_and_not_before(tmp_path: Path) -> None:
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
BAD: dict[str, tuple[str, str]] = {
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


@pytest.mark.parametrize("text, said", BAD.values(), ids=BAD)
def test_a_cassette_that_cannot_be_read_says_where(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(text)
    with pytest.raises(BadCassette, match=said):
        ReplayBackend(path)


_LINE = b'{"request": {"method": "POST", "path": "/"}, "response": {"status": 200, "chunks": [{"base64": "!"}]}}'
_ANY = st.lists(st.sampled_from([HEAD.encode(), _LINE, b"\n", b"{}", b"null"]) | st.binary(max_size=9), max_size=6)


@given(_ANY.map(b"".join))
def test_no_file_breaks_the_reading_of_a_cassette(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        path.write_bytes(data)
        try:
            found = load_cassette(path)
        except BadCassette:
            return
    assert all(isinstance(piece, bytes) for each in found.exchanges for piece in each.response.pieces())


def test_a_cassette_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCassette, match="cannot read"):
        load_cassette(tmp_path / "no.jsonl")
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # takes no room
    with pytest.raises(BadCassette, match="larger than"):
        load_cassette(huge)


# -- a backend without a wire ------------------------------------------------------------------------------------------


class _Parrot(BaseBackend):
    """Says the same whatever it is asked."""

    def stream(self, request: Request) -> Streaming:
        return Streaming(self._say())

    async def _say(self) -> AsyncGenerator[Event | Answer]:
        call = Call("get_weather", {"city": "Oslo"}, '{"city": "Oslo"}', "call_1")
        yield Text("On it.")
        yield CallEnd(0, call)
        yield Answer(parts=(Text("On it."), call), finish="tool_calls", model="parrot")


@pytest.mark.parametrize("stream", [True, False])
def test_a_backend_without_a_wire_is_recorded_as_a_server_would_answer(stream: bool, tmp_path: Path) -> None:
    async def go() -> Answer | BackendError:
        return await outcome(Recorder(_Parrot(), tmp_path / "c.jsonl"), ask(), stream=stream)

    first = asyncio.run(go())
    (again,) = replayed(tmp_path / "c.jsonl", [ask()], stream=stream)
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
def test_calls_without_a_finish_reason_are_recorded_with_that_of_calls(stream: bool, tmp_path: Path) -> None:
    """A client of the replay that reads "stop" would not run the calls."""
    asyncio.run(outcome(Recorder(_UnfinishedParrot(), tmp_path / "c.jsonl"), ask(), stream=stream))
    (again,) = replayed(tmp_path / "c.jsonl", [ask()], stream=stream)
    assert isinstance(again, Answer) and again.attempts and again.finish == "tool_calls"


# -- the server --------------------------------------------------------------------------------------------------------


def test_a_served_recording_answers_like_the_recorded_server(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    first = recorded(path, [chunked(events(*WEATHER))], [ask()], stream=True)

    async def go() -> list[Any]:
        async with ReplayServer(path) as server:
            made = backend(server)
            again = [await outcome(made, ask(), stream=True) for _ in range(2)]
            unknown = await outcome(made, ask(temperature=0.1), stream=True)
            return [*map(essence, again), unknown, await made.models()]

    one, two, unknown, models = asyncio.run(go())
    assert one == two == essence(first[0]) and models == ["m"]
    assert isinstance(unknown, StatusError) and unknown.status == 404 and "at /temperature: 0.1 here" in unknown.body


@pytest.mark.parametrize("stream", [True, False])
def test_a_backend_that_was_entered_uses_one_connection_for_many_requests(stream: bool, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    recorded(path, [chunked(events(*WEATHER)) if stream else OSLO], [ask()], stream=stream)

    async def go() -> int:
        async with ReplayServer(path) as server, backend(server) as made:
            for _ in range(3):
                assert isinstance(await outcome(made, ask(), stream=stream), Answer)
            runner = server._server.runner
            assert runner is not None and runner.server is not None
            return len(runner.server.connections)

    assert asyncio.run(go()) == 1


def test_the_server_breaks_off_where_the_recording_did(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    answers = [chunked(events(delta(content="Hello there."), done=False), ends=False)]
    recorded(path, answers, [ask()], stream=True)

    async def go() -> Answer | BackendError:
        async with ReplayServer(path) as server:
            return await outcome(backend(server), ask(), stream=True)

    found = asyncio.run(go())
    assert isinstance(found, Answer) and found.content == "Hello there."
    assert [problem.code for problem in found.problems] == ["truncated"]


def test_the_server_answers_this_machine_only_and_refuses_what_is_no_request(tmp_path: Path) -> None:
    import aiohttp

    path = tmp_path / "c.jsonl"
    recorded(path, [OSLO], [ask()])

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
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others only cost time
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_the_fixture_records_once_and_replays_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    missing = _pytest(tmp_path)
    assert missing.returncode == 1 and "record it with pytest --rightcall-record" in missing.stdout

    async def record() -> "subprocess.CompletedProcess[str]":
        async with serving(json_answer(chat("Hello!"))) as server:
            return await asyncio.to_thread(_pytest, tmp_path, "--rightcall-record", URL=server.url)

    made = asyncio.run(record())
    assert made.returncode == 0, made.stdout
    assert (tmp_path / "cassettes" / "test_it.test_a_model.jsonl").exists()
    again = _pytest(tmp_path)
    assert again.returncode == 0, again.stdout


@pytest.mark.parametrize("field", ["input", "arguments"])
def test_an_id_among_the_arguments_of_a_call_counts(field: str) -> None:
    def asked(minted: str, given: str) -> RecordedRequest:
        call = {"type": "tool_use", "id": minted, "name": "find", field: {"id": given}}
        return RecordedRequest("POST", "/v1/messages", {"messages": [{"role": "assistant", "content": [call]}]})

    assert canonical_request(asked("call_1", "a")) == canonical_request(asked("call_2", "a"))
    assert canonical_request(asked("call_1", "a")) != canonical_request(asked("call_1", "b"))


def test_the_canonical_request_leaves_out_what_changes_no_answer() -> None:
    one = RecordedRequest(
        "POST", "/v1/chat/completions", {"model": "m", "user": "a", "seed": None, "stream_options": {}}
    )
    assert canonical_request(one) == {"method": "POST", "path": "/v1/chat/completions", "body": {"model": "m"}}
