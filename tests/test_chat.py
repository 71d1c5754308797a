"""The chat command in a terminal and with piped input. The model is local (a child process) or a loopback server."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rightcall.backends.local import LocalBackend, LocalServer, LocalServerError
from rightcall.backends.recording import ReplayBackend
from rightcall.backends.request import Request
from support.command import failed, process, run
from support.stand_in_llama import model_file, write_package
from support.terminal import until

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
CALL = '<tool_call> {"name": "get_weather", "arguments": {"City": "Oslo", "days": "3"}} </tool_call>'


@pytest.fixture(autouse=True)
def llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_package(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> str:
    return model_file(tmp_path)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def request_of(text: str) -> Request:
    return Request(messages=[{"role": "user", "content": text}], tools=TOOLS)


# -- the backend of a local model --------------------------------------------------------------------------------------


def test_a_local_model_is_a_backend(model: str) -> None:
    with LocalBackend(model) as backend:
        answer = backend.complete_sync(request_of(f"Let me look. {CALL}"))
        assert list(backend.stream_sync(request_of("Hello there")))
    (call,) = answer.attempts
    assert call.arguments == {"city": "Oslo", "days": 3} and answer.content == "Let me look."
    assert {repair.rule for repair in call.repairs} == {"folded_name", "scalar_type"}


def test_tools_are_written_into_the_prompt_if_the_chat_template_shows_none(tmp_path: Path) -> None:
    with LocalBackend(model_file(tmp_path)) as backend:
        answer = backend.complete_sync(request_of("count"))
    assert answer.mode in ("text", "grammar") and answer.content == "2 messages, 0 tools"
    assert "a chat template that shows no tools" in answer.evidence[0]
    with LocalBackend(model_file(tmp_path, "GGUF tools")) as backend:
        answer = backend.complete_sync(request_of("count"))
    assert (answer.mode, answer.content) == ("native", "1 messages, 1 tools")


def test_a_server_that_exits_during_an_answer_is_reported(model: str) -> None:
    with LocalBackend(model) as backend, pytest.raises(LocalServerError, match=r"the server of own ended: .* with 7"):
        backend.complete_sync(request_of("die"))


async def _closed_server(model: str) -> LocalServer:
    async with LocalBackend(model) as backend:
        await backend.complete(request_of("Hi"))
    return backend.server


def test_leaving_the_backend_stops_its_server(model: str) -> None:
    server = asyncio.run(_closed_server(model))
    assert server.has_ended and "was closed" in str(server.why())


def test_a_request_to_a_closed_backend_is_an_error(model: str) -> None:
    with LocalBackend(model) as backend:
        pass
    with pytest.raises(LocalServerError, match="the server of own was closed; start another one"):
        backend.complete_sync(request_of("Hi"))


# -- piped input -------------------------------------------------------------------------------------------------------


def test_every_input_line_is_a_turn_and_calls_are_shown_with_their_repairs(model: str, tools: str) -> None:
    result = run("chat", "--local", model, "--tools", tools, stdin=f"Hello there\n\nLook: {CALL}\n")
    assert result.exit_code == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Hello there", "Look:"]
    assert lines[2] == "call 1     get_weather  runnable"
    receipts = [line.split()[1] for line in lines if line.startswith("repair")]
    assert sorted(receipts) == ["folded_name", "scalar_type"]


def test_the_history_contains_a_result_that_the_call_was_not_run(model: str, tools: str) -> None:
    result = run("chat", "--local", model, "-t", tools, "--system", "Be brief.", stdin=f"Hi\n{CALL}\ncount\n")
    # The messages: system; user, assistant; user, assistant with the call, its result; user.
    assert result.stdout.splitlines()[-1] == "7 messages, 0 tools"


def test_blocking_problems_are_shown_and_give_exit_code_1(model: str, tools: str) -> None:
    result = run("chat", "--local", model, "-t", tools, stdin=CALL.replace("get_weather", "get_wether") + "\n")
    assert result.exit_code == 1 and "rejected: there is no tool" in result.stdout


def test_with_json_every_turn_is_one_line(model: str, tools: str) -> None:
    result = run("chat", "--local", model, "-t", tools, "--json", stdin=f"Hi\n{CALL}\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["content"] == "Hi" and first["mode"] in ("text", "grammar") and first["finish"] == "stop"
    assert second["calls"][0]["arguments"] == {"city": "Oslo", "days": 3}


def test_control_characters_of_a_model_are_escaped(model: str) -> None:
    result = run("chat", "--local", model, stdin="\x1b[2J [bold]x[/bold] \u202e\n")
    assert result.stdout == "\\x1b[2J [bold]x[/bold] \\u202e\n"


def test_invalid_utf8_input_is_replaced(model: str, llama: Path) -> None:
    path = os.pathsep.join([str(llama), *filter(None, sys.path)])
    done = process("chat", "--local", model, stdin=b"caf\xe9 ol\xc3\xa9\n", PYTHONPATH=path, LC_ALL="C.UTF-8")
    assert (done.returncode, done.stdout.decode()) == (0, "caf\ufffd ol\xe9\n")


def test_an_unreachable_server_is_a_one_line_error_with_exit_code_1() -> None:
    result = run("chat", "--base-url", "http://127.0.0.1:9", "--model", "m", "--retries", "0", stdin="Hi\n")
    assert "127.0.0.1:9" in failed(result, 1)


def test_chat_works_with_any_endpoint_and_its_key(model: str) -> None:
    with LocalServer(model, key="open-sesame") as server:
        arguments = ["chat", "--base-url", server.base_url, "--model", "own"]
        result = run(*arguments, stdin="Good morning\n", env={"OPENAI_API_KEY": "open-sesame"})
        unauthorized = run(*arguments, stdin="Good morning\n", env={"OPENAI_API_KEY": "wrong-key"})
    assert (result.exit_code, result.stdout) == (0, "Good morning\n")
    assert (
        "HTTP 401" in unauthorized.stderr
        and "the key is wrong" in unauthorized.stderr
        and "wrong-key" not in unauthorized.stderr
    )


def test_a_conversation_can_be_recorded_and_replayed(model: str, tmp_path: Path) -> None:
    cassette = str(tmp_path / "talk.jsonl")
    assert run("chat", "--local", model, "--record", cassette, stdin="Hi\nHow are you?\n").exit_code == 0
    messages = [{"role": "user", "content": "Hi"}]
    with_stream = ReplayBackend(cassette).stream_sync(Request(messages=messages))
    assert [*with_stream] and with_stream.answer.content == "Hi"


def test_a_local_and_a_remote_model_together_are_a_usage_error(model: str) -> None:
    assert "--local runs a model on this machine" in failed(run("chat", "--local", model, "--model", "other"))


# -- a terminal --------------------------------------------------------------------------------------------------------


def test_a_terminal_shows_a_prompt_and_ctrl_d_quits(model: str, llama: Path) -> None:
    parent, child = pty.openpty()
    path = os.pathsep.join([str(llama), *filter(None, sys.path)])
    chat = subprocess.Popen(
        [sys.executable, "-m", "rightcall", "chat", "--local", model],
        stdin=child,
        stdout=child,
        stderr=child,
        env={**os.environ, "PYTHONPATH": path, "TERM": "dumb", "NO_COLOR": "1"},
        start_new_session=True,
    )
    os.close(child)
    try:
        output = until(parent, b"> ")
        os.write(parent, b"Good evening\r")
        output += until(parent, b"Good evening", b"Good evening", b"> ")
        os.write(parent, b"\x04")
        assert chat.wait(60) == 0
    finally:
        chat.kill()
        chat.wait()
        os.close(parent)
    assert b"Ctrl-D to quit" in output
