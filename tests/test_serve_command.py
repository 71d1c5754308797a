"""`rightcall serve` as a process with a real local upstream, from its start to its shutdown."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rightcall.backends.cassette import load_cassette
from rightcall.cli.serve_command import client_address, client_lines
from rightcall.serve.proxy_settings import SETTINGS
from support.command import accept_ctrl_c, failed, run
from support.scripted_server import scripted

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": "{'path': 'a'}"}}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": "read a"}],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
}


def _calls(path: str, body: dict[str, Any]) -> Any:
    """Answer with arguments that are not valid JSON."""
    if body.get("stream"):
        deltas = [({"role": "assistant", "tool_calls": [CALL]}, None), ({}, "tool_calls")]
        choices = [{"index": 0, "delta": delta, "finish_reason": finish} for delta, finish in deltas]
        return [{**HEAD, "object": "chat.completion.chunk", "choices": [each]} for each in choices]
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {**HEAD, "object": "chat.completion", "choices": [choice]}


class ProxyProcess:
    """A proxy in a separate process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.startup = json.loads(process.stdout.readline())
        self.address = self.startup["address"]

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json", **named})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read().decode()

    def line(self) -> str:
        """Return the next line of standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@contextmanager
def proxy_process(*args: str, **env: str) -> Iterator[ProxyProcess]:
    command = [sys.executable, "-m", "rightcall", "serve", "--json", "--port", "0", *args]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        command,
        text=True,
        env={**os.environ, **env},
        preexec_fn=accept_ctrl_c,
        **pipes,  # type: ignore[call-overload]
    ) as process:
        try:
            yield ProxyProcess(process)
        finally:
            process.kill()


def test_a_proxy_repairs_logs_captures_records_counts_and_stops_on_a_signal(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("log", "capture", "record")}
    watching = [word for name, path in files.items() for word in (f"--{name}", path)]
    with (
        scripted(_calls) as (url, _),
        proxy_process("--upstream", f"{url}/v1", "--mode", "native", *watching) as served,
    ):
        status, headers, text = served.ask("/v1/chat/completions", REQUEST)
        call = json.loads(text)["choices"][0]["message"]["tool_calls"][0]
        assert status == 200 and json.loads(call["function"]["arguments"]) == {"path": "a"}
        assert headers["x-rightcall-repairs"] == "single_quotes" and headers["x-rightcall-mode"] == "native"
        tool = {"name": "read", "input_schema": SCHEMA}
        messages_request = {
            "model": "m",
            "max_tokens": 9,
            "stream": True,
            "messages": REQUEST["messages"],
            "tools": [tool],
        }
        assert "input_json_delta" in served.ask("/v1/messages", messages_request)[2]
        plain = {"model": "m", "messages": REQUEST["messages"], "stream": True}
        assert served.ask("/v1/chat/completions", plain)[0] == 200
        metrics = served.ask("/metrics")[2]
        assert 'rightcall_repairs_total{rule="single_quotes"} 2\n' in metrics
        assert served.stop() == 0
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [each["route"] for each in logged] == ["chat", "messages", "chat", "metrics"]
    assert logged[2]["mode"] == "pass" and "read a" not in json.dumps(logged)
    result = run("dataset", "import", files["capture"], "-o", str(tmp_path / "rows.jsonl"), "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["calls"] == 3, result.output
    (tape,) = (tmp_path / "record").iterdir()
    assert [each.request.path for each in load_cassette(tape).exchanges] == ["/v1/chat/completions"] * 3


def test_sighup_reloads_the_settings_and_a_bad_file_changes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    with scripted(_calls) as (url, requests):
        config.write_text(f'upstream = "{url}/v1"\nmode = "native"\n')
        with proxy_process("--config", str(config)) as served:
            config.write_text(f'upstream = "{url}/v1"\nmode = "native"\nconcurrency = 5\n[models.m]\nalias = "other"\n')
            served.process.send_signal(signal.SIGHUP)
            assert "the settings were reloaded; at the next start: concurrency\n" in served.line()
            assert served.ask("/v1/chat/completions", REQUEST)[0] == 200 and requests[-1]["model"] == "other"
            config.write_text("upstream = 5\n")
            served.process.send_signal(signal.SIGHUP)
            assert re.search(r"the settings were not changed: .*a\.toml:1: upstream", served.line())
            assert served.ask("/v1/chat/completions", REQUEST)[0] == 200 and requests[-1]["model"] == "other"
            assert served.stop() == 0


def test_a_key_is_accepted_in_every_header_that_clients_use() -> None:
    with scripted(_calls) as (url, _):
        args = ("--upstream", f"{url}/v1", "--mode", "native", "--key-env", "DOOR")
        with proxy_process(*args, DOOR="open-sesame-1") as served:
            assert served.ask("/v1/chat/completions", REQUEST)[0] == 401
            assert served.ask("/v1/chat/completions", REQUEST, Authorization="Bearer wrong-key-1")[0] == 401
            given = ({"Authorization": "Bearer open-sesame-1"}, {"x_api_key": "open-sesame-1"},
                     {"x_goog_api_key": "open-sesame-1"})  # fmt: skip
            assert [served.ask("/v1/chat/completions", REQUEST, **each)[0] for each in given] == [200, 200, 200]
            assert served.ask("/health")[0] == 200 and served.ask("/ready")[0] != 401
            metrics = served.ask("/metrics", x_api_key="open-sesame-1")[2]
            assert 'rightcall_refusals_total{code="invalid_api_key"} 2\n' in metrics
            assert served.stop() == 0


# -- errors before the start -------------------------------------------------------------------------------------------

WRONG = {
    (): "no server to stand before; say where it is: --upstream",
    ("--upstream", "nowhere"): "--upstream: 'nowhere' is no address",
    ("--upstream", "http://a", "--port", "x"): "--port: 'x' does not do",
    ("--upstream", "http://a", "--mode", "nativ"): "--mode: 'nativ' is none of native, text, grammar, auto; did you",
    ("--upstream", "http://a", "--host", "0.0.0.0"): "lets other machines in",
    ("--upstream", "http://a", "--config", "/not/there.toml"): "cannot read '/not/there.toml'",
    ("--upstream", "http://a", "--format", "herms"): "no format 'herms'",
}


@pytest.mark.parametrize("args", [*WRONG])
def test_invalid_settings_are_a_one_line_error_with_exit_code_2(args: tuple[str, ...]) -> None:
    assert WRONG[args] in failed(run("serve", *args))


def test_every_setting_is_an_option_with_its_help() -> None:
    page = " ".join(run("serve", "--help").stdout.split())
    for setting in SETTINGS.values():
        assert f"{setting.flag} " in page and setting.help.split(".")[0] in page, setting.name


def test_a_grammar_has_the_form_configured_for_the_model(tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    with scripted(_calls) as (url, requests):
        config.write_text(f'upstream = "{url}/v1"\n[models."m"]\nmode = "grammar"\ngrammar = "vllm"\n')
        with proxy_process("--config", str(config)) as served:
            served.ask("/v1/chat/completions", REQUEST)
            assert "structured_outputs" in requests[-1] and "tools" not in requests[-1]


MODELS = {"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}


def test_check_reports_each_server_and_fails_for_an_unreachable_one() -> None:
    with scripted(_calls, {"/v1/models": MODELS}) as (url, _):
        fine = run("serve", "--upstream", f"{url}/v1", "--check", "--json")
        (found,) = json.loads(fine.stdout)["upstreams"]
        assert fine.exit_code == 0 and (found["kind"], found["models"], found["mode"]) == ("vLLM", ["m"], "native")
        both = run("serve", "--upstream", f"{url}/v1", "--upstream", "http://127.0.0.1:9", "--check")
        assert both.exit_code == 1 and "vLLM" in both.stdout and "is the server running" in both.stdout


def test_models_and_aliases_are_listed_and_can_be_requested_one_by_one(tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    with scripted(_calls, {"/v1/models": MODELS}) as (url, _):
        config.write_text(f'upstream = "{url}/v1"\n[models."org/best"]\nalias = "m"\n')
        with proxy_process("--config", str(config)) as served:
            ids = [each["id"] for each in json.loads(served.ask("/v1/models")[2])["data"]]
            assert ids == ["m", "org/best"]
            assert json.loads(served.ask("/models/org/best")[2])["id"] == "org/best"
            assert json.loads(served.ask("/v1/models/m", anthropic_version="2023-06-01")[2])["type"] == "model"
            assert json.loads(served.ask("/v1beta/models/m")[2])["name"] == "models/m"
            assert json.loads(served.ask("/v1/models?client_version=1")[2])["models"] == []
            assert served.ask("/v1/models/none")[0] == 404
            assert "tools" in json.loads(served.ask("/api/show", {"model": "m"})[2])["capabilities"]
            assert served.ask("/api/show", {"model": "none"})[0] == 404


def test_the_client_lines_use_the_loopback_address() -> None:
    lines = client_lines(client_address("http://0.0.0.0:8787"))
    assert lines["Anthropic"] == "ANTHROPIC_BASE_URL=http://127.0.0.1:8787"
    assert lines["OpenAI"] == "OPENAI_BASE_URL=http://127.0.0.1:8787/v1"
