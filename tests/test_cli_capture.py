"""`rightcall capture` as a command: options, defaults, output and exit codes."""

import inspect
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rightcall.backends.cassette import load_cassette
from rightcall.cli.capture_command import DEFAULT_OUTPUT, DEFAULT_URL, _with_default_url, capture
from rightcall.cli.endpoint import Endpoint
from support.command import accept_ctrl_c, failed, run
from support.lamps import rows
from support.stand_in_llama import model_file, write_package
from support.stub_model import start_server

LAMP_FILE = """
name = "lamps"
[[tools]]
name = "list_lamps"
answers = [{ result = ["hall"] }]
[[scenarios]]
name = "which"
request = "Which lamps are there?"
calls = [{ name = "list_lamps" }]
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = start_server()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_run_prints_its_progress_as_key_value_lines(url: str, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    options = ["--model", "m", "--proxy-base-url", url, "--mode", "native", "--domains", " calendar , calendar"]
    result = run("capture", *options, "-o", str(output), "--json")
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    assert lines[0].startswith(
        f"capture start output={output} model=m domains=calendar runs=1 scenarios=3 max_turns=4 max_scenario_errors=25"
    )
    assert lines[1].startswith("capture scenario 1/3 run=0 domain=calendar scenario=find_and_hold")
    row_lines = [line for line in lines if line.startswith("capture row group=rightcall-calendar-")]
    assert len(row_lines) == len(rows(output))
    assert any(" turn=1 call=1 tool=" in line and " status=" in line for line in row_lines)
    assert lines[-1].startswith(f"capture complete output={output} scenario_errors=0")
    summary = json.loads(result.stdout)
    assert (
        summary["rows"] == len(rows(output))
        and summary["scenarios"] == 3
        and summary["models"]["m"]["prompt_tokens"] > 0
    )


def test_the_table_has_one_line_per_model_and_quiet_hides_progress(url: str, tmp_path: Path) -> None:
    options = ["--model", "m", "-m", "n", "--base-url", url, "--mode", "native", "--domains", "support", "-q"]
    result = run("capture", *options, "-o", str(tmp_path / "c.jsonl"))
    assert result.exit_code == 0 and [line.split()[0] for line in result.stdout.splitlines()[1:3]] == ["m", "n"]
    assert not [line for line in result.stderr.splitlines() if line.startswith(("capture row", "capture scenario"))]


def test_domains_are_names_or_files(url: str, tmp_path: Path) -> None:
    (tmp_path / "lamps.toml").write_text(LAMP_FILE)
    options = ["--model", "m", "--base-url", url, "--mode", "native", "-o", str(tmp_path / "c.jsonl")]
    result = run("capture", *options, "--domains", f"support,{tmp_path / 'lamps.toml'}")
    assert "domains=support,lamps" in result.stderr and "scenarios=4" in result.stderr
    assert "did you mean 'support'" in failed(run("capture", *options[:-1], str(tmp_path / "x"), "--domains", "suport"))
    assert not (tmp_path / "x").exists(), "a domain that is not there touches no file"


WRONG = [
    ([], "--model"),
    (["--model", " "], "blank"),
    (["--model", "m", "--runs", "0"], "--runs"),
    (["--model", "m", "--max-turns", "0"], "--max-turns"),
    (["--model", "m", "--concurrency", "0"], "--concurrency"),
    (["--model", "m", "--max-scenario-errors", "-1"], "--max-scenario-errors"),
    (["--model", "m", "--domains", " , "], "at least one domain"),
    (["--model", "m", "--output", "--runs"], "a value is missing"),
    (["--model", "--runs"], "a value is missing"),
    (["--model", "m", "--mode", "magic"], "--mode"),
    (["--model", "m", "--guard", "magic"], "--guard"),
    (["--model", "m", "--base-url", "http://u:p@h"], "credentials"),
    (["--model", "m", "--local", "smollm2"], "--local runs a model on this machine"),
]


@pytest.mark.parametrize("options, message", WRONG)
def test_a_usage_error_exits_with_2_and_writes_nothing(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("capture", *options)
    assert result.exit_code == 2 and message in result.stderr.replace("\n", " "), result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_default_options_are_those_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert (DEFAULT_URL, DEFAULT_OUTPUT) == ("http://127.0.0.1:8081/v1", "target/dataset/capture.jsonl")
    assert (
        _with_default_url(Endpoint()).base_url == DEFAULT_URL
        and _with_default_url(Endpoint(base_url="h")).base_url == "h"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://other")
    found = [_with_default_url(Endpoint(api=api)).base_url for api in ("chat", "messages")]
    assert found == [None, None], "the environment decides"
    given = {name: each.default for name, each in inspect.signature(capture).parameters.items()}
    assert (given["output"], given["domains"]) == (DEFAULT_OUTPUT, "repo_docs,shopping,calendar,support")
    assert (given["runs"], given["max_turns"], given["max_scenario_errors"]) == (1, 4, 25)


@pytest.mark.parametrize("model, address", [("m", "http://127.0.0.1:1"), ("absent", "")])
def test_an_unreachable_server_or_an_unknown_model_is_a_clear_error(
    model: str, address: str, tmp_path: Path, cassette: Path
) -> None:
    """In one case nothing listens at the address; in the other the recording has no such model."""
    with replaying(cassette) as recording:
        options = ["--model", model, "--base-url", address or recording, "--mode", "native", "--retries", "0"]
        result = run("capture", *options, "--domains", "support", "-o", str(tmp_path / "c.jsonl"))
    assert result.exit_code == 1 and result.stdout == ""
    assert "all scenarios failed (3)" in result.stderr.splitlines()[-1]
    assert len([line for line in result.stderr.splitlines() if line.startswith("capture warning scenario")]) == 3


@pytest.fixture
def cassette(url: str, tmp_path: Path) -> Path:
    path = tmp_path / "tape.jsonl"
    options = ["--model", "m", "--base-url", url, "--mode", "native", "--domains", "support", "--record", str(path)]
    assert run("capture", *options, "-o", str(tmp_path / "recorded.jsonl")).exit_code == 0
    return path


@contextmanager
def replaying(cassette: Path) -> Iterator[str]:
    """Run `rightcall replay` and yield its base URL."""
    command = [sys.executable, "-m", "rightcall", "replay", str(cassette), "--no-key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def test_replaying_a_recorded_capture_gives_the_same_rows(tmp_path: Path, cassette: Path) -> None:
    assert len(load_cassette(cassette).exchanges) >= 3
    with replaying(cassette) as recording:
        options = ["--model", "m", "--base-url", recording, "--mode", "native", "--domains", "support"]
        result = run("capture", *options, "-o", str(tmp_path / "again.jsonl"))
    assert result.exit_code == 0, result.stderr
    first, again = [
        [row.get("candidate_call") or row["outcome"] for row in rows(tmp_path / name)]
        for name in ("recorded.jsonl", "again.jsonl")
    ]
    assert first == again


def test_control_characters_in_names_do_not_reach_the_terminal(url: str, tmp_path: Path) -> None:
    options = ["--model", "m\x1b[2J", "--base-url", url, "--mode", "native", "--domains", "support"]
    result = run("capture", *options, "-o", str(tmp_path / "c.jsonl"))
    assert result.exit_code == 0 and "\x1b" not in result.stdout + result.stderr and "\\x1b[2J" in result.stdout


def test_resume_reports_the_setting_that_differs(url: str, tmp_path: Path) -> None:
    options = ["--model", "m", "--base-url", url, "--mode", "native", "-o", str(tmp_path / "c.jsonl"), "--resume"]
    assert run("capture", *options, "--domains", "support").exit_code == 0
    result = run("capture", *options, "--domains", "calendar")
    assert result.exit_code == 1 and "had domains" in result.stderr.splitlines()[-1]


def test_ctrl_c_keeps_the_written_rows_and_names_the_resume_option(url: str, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    options = ["--model", "m", "--base-url", url, "--mode", "native", "--domains", "support", "-o", str(output)]
    command = [sys.executable, "-m", "rightcall", "capture", *options, "--runs", "500"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=accept_ctrl_c
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("capture row"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and errors.splitlines()[-1] == "rightcall: interrupted; --resume continues it"
    assert rows(output)


def test_a_local_model_can_be_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages")))
    model = model_file(tmp_path)
    options = ["--local", model, "--mode", "text", "--domains", "support"]
    result = run("capture", *options, "-o", str(tmp_path / "c.jsonl"), "--json")
    assert result.exit_code == 0, result.stderr
    assert {row["kind"] for row in rows(tmp_path / "c.jsonl")} == {"outcome"}  # the stand-in model repeats the request
    assert list(json.loads(result.stdout)["models"]) == [Path(model).stem]


def test_a_terminal_shows_a_progress_bar_and_the_log_lines(url: str, tmp_path: Path) -> None:
    options = ["--model", "m", "--base-url", url, "--mode", "native", "--domains", "support"]
    command = [sys.executable, "-m", "rightcall", "capture", *options, "-o", str(tmp_path / "c.jsonl")]
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environ) as process:
        os.close(theirs)
        seen = b"".join(iter(lambda: _read_terminal(ours), b""))
    os.close(ours)
    assert process.returncode == 0 and b"rows/s" in seen and b"3/3" in seen and b"capture complete" in seen


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # a closed pseudo-terminal raises this error
        return b""


def test_a_recording_can_answer_in_place_of_a_model(tmp_path: Path) -> None:
    cassette = Path(__file__).parent.parent / "examples" / "smollm2_shop.jsonl"
    settings = "--mode grammar --max-turns 1 --required --examples 2 --temperature 0 --max-tokens 96 --json".split()
    replay = ["--replay", str(cassette), "--model", "smollm2", "--domains", "shopping,calendar"]
    result = run("capture", *replay, *settings, "-o", str(tmp_path / "rows.jsonl"))
    assert result.exit_code == 0 and len((tmp_path / "rows.jsonl").read_text().splitlines()) == 14
    other = run("capture", *replay, "--mode", "text", "-o", str(tmp_path / "other.jsonl"))
    assert other.exit_code == 1 and "record" in other.stderr  # the recording has no request in this mode
    for option in (["--base-url", "http://127.0.0.1:9"], ["--record", str(tmp_path / "x.jsonl")]):
        assert run("capture", *replay, *option).exit_code == 2
