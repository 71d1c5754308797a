"""`rightcall replay`, and the options of every command that calls a model."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rightcall.backends.cassette import load_cassette
from rightcall.cli.endpoint import Endpoint, Model, ModeName, backend_errors
from rightcall.cli.inputs import grouped
from support.command import accept_ctrl_c, failed, run
from support.loopback import ask, chat, json_answer, serving


@pytest.mark.parametrize("as_json", [False, True])
def test_replay_prints_its_url_and_key_and_serves_until_interrupted(as_json: bool, cassette: Path) -> None:
    command = [sys.executable, "-m", "rightcall", "replay", str(cassette), *(["--json"] if as_json else [])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=accept_ctrl_c
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        first_error_line = process.stderr.readline()
        assert "replaying 1 exchanges" in first_error_line
        key_line = "" if as_json else process.stderr.readline()
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        out, errors = first + process.stdout.read(), key_line + process.stderr.read()
    url = json.loads(out)["url"] if as_json else out.strip()
    assert as_json == ("rck_" in out) and as_json != ("the key for this start: rck_" in errors)
    assert url.startswith("http://127.0.0.1:") and url.endswith("/v1") and process.returncode == 0


def test_replay_answers_requests(cassette: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "open-sesame")  # The server and its client both read this variable.
    options = ["--lenient", "--timing", "--api-key-env", "OPENAI_API_KEY"]
    command = [sys.executable, "-m", "rightcall", "replay", str(cassette), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()
            url = _first_line(process)
            answer = Endpoint(base_url=url, mode=ModeName.native).backend("other").complete_sync(ask(temperature=1.0))
            assert answer.content == "Hello!"
        finally:
            process.terminate()
            process.communicate(timeout=60)
    assert process.returncode == 0


def _first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_an_invalid_cassette_is_reported_in_one_line_with_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine\n")
    assert "is not a cassette" in failed(run("replay", str(tmp_path / "x")))
    assert "cannot read the cassette" in failed(run("replay", str(tmp_path / "none")))


# -- the options -------------------------------------------------------------------------------------------------------

app = typer.Typer()


@app.command()
@grouped
def speak(*, endpoint: Endpoint, model: Model = "") -> None:
    """Print what a model answers."""
    backend = endpoint.backend(model)
    with backend_errors():
        typer.echo(backend.complete_sync(ask(mode=None, tools=None)).content)


def invoke(*args: str, **env: str) -> Any:
    return CliRunner().invoke(app, args, env=env)


@pytest.mark.parametrize("flag", ["--base-url", "--proxy-base-url"])
def test_a_command_uses_the_given_server_and_records_the_exchange(flag: str, tmp_path: Path) -> None:
    async def main() -> Any:
        async with serving(json_answer(chat("Hello!"))) as server:
            args = (flag, server.url, "--record", str(tmp_path / "c.jsonl"), "-m", "m", "--api-key-env", "MINE")
            return await asyncio.to_thread(invoke, *args, MINE="hunter2"), server.posts[0].headers

    result, headers = asyncio.run(main())
    assert result.exit_code == 0 and result.stdout == "Hello!\n"
    assert headers["authorization"] == "Bearer hunter2"
    assert (
        len(load_cassette(tmp_path / "c.jsonl").exchanges) == 1 and "hunter2" not in (tmp_path / "c.jsonl").read_text()
    )


def test_a_failing_server_is_reported_in_one_line_with_exit_code_1() -> None:
    result = invoke("--base-url", "http://127.0.0.1:1", "--retries", "0")
    assert result.exit_code == 1 and result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert "is the server running" in result.stderr


@pytest.mark.parametrize(
    "args, message",
    [
        (("--base-url", "nowhere"), "is not a base URL"),
        (("--base-url", "http://u:p@h"), "credentials"),
        (("--api-key-env", "NOT_SET_ANYWHERE"), "the environment has no NOT_SET_ANYWHERE"),
        (("--record", "/no/such/folder/c.jsonl"), "cannot write the cassette"),
    ],
)
def test_wrong_usage_is_reported_in_one_line_with_exit_code_2(args: tuple[str, ...], message: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1


def test_control_characters_of_a_server_error_are_not_printed() -> None:
    async def main() -> Any:
        async with serving(json_answer({"error": "\x1b[2J\u202egone"}, 400)) as server:
            return await asyncio.to_thread(invoke, "--base-url", server.url)

    result = asyncio.run(main())
    assert result.exit_code == 1 and "\x1b" not in result.stderr and "\u202e" not in result.stderr
