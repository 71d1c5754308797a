"""The examples run against a scripted loopback server that answers like a careless model server."""

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest

from rightcall import Trace
from rightcall.backends.http import Backend
from support.scripted_server import scripted

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
README = EXAMPLES.parent / "README.md"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "type": "function", **more, "function": {"arguments": arguments}}]}


NATIVE: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Let me look."},
    {"tool_calls": [{"index": 0, "id": "a1", "type": "function", "function": {"name": "functions.get_weather"}}]},
    call('{"City": "Os'),
    call('lo", "da'),
    call('ys": "3",}'),
    {},
]
LEAKED: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Let me look.\n<tool_"},
    {"content": 'call>\n{"name": "get_weather", "argu'},
    {"content": 'ments": {"city": "Oslo", "days": 3}}\n</tool_call>'},
]
TRUNCATED: list[dict[str, Any]] = [*NATIVE[:3]]


@contextmanager
def server(deltas: list[dict[str, Any]], finish: str = "stop") -> Iterator[tuple[str, list[Any]]]:
    """Stream these deltas for every request; yield the address and the received requests."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    with scripted(lambda path, body: [{**head, "choices": [choice]} for choice in choices]) as (url, requests):
        yield url + "/v1", requests


def plain_client(url: str) -> Any:
    """Return a client with the part of the `openai` interface that the example uses, for when that is not installed."""

    def create(**request: Any) -> Iterator[Any]:
        body = json.dumps(request).encode()
        with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body), timeout=10) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def openai_client(url: str) -> Any:
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


@pytest.fixture(params=[plain_client, openai_client], ids=["without openai", "openai"])
def client_of(request: pytest.FixtureRequest) -> Any:
    return request.param


def run_stream_example(client_of: Any, deltas: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    with server(deltas) as (url, requests):
        example("openai_stream").main(client_of(url), "m", "Weather in Oslo?")
    assert requests[0]["stream"] is True and requests[0]["tools"][0]["function"]["name"] == "get_weather"
    return capsys.readouterr().out.splitlines()


def test_a_broken_native_call_is_repaired_and_its_repairs_are_printed(
    client_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text, run_line, *receipts = run_stream_example(client_of, NATIVE, capsys)
    assert text == "Let me look."
    assert run_line == 'get_weather({"city": "Oslo", "days": 3}) = 3 days of sun in Oslo'
    assert {line.split()[0] for line in receipts} == {"namespace", "trailing_comma", "folded_name", "scalar_type"}


def test_a_call_leaked_as_text_is_parsed(client_of: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run_stream_example(client_of, LEAKED, capsys)
    assert lines == ["Let me look.", 'get_weather({"city": "Oslo", "days": 3}) = 3 days of sun in Oslo']


def test_a_truncated_call_is_not_run(client_of: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run_stream_example(client_of, TRUNCATED, capsys)
    assert lines[0] == "Let me look." and len(lines) == 2 and lines[1].startswith("get_weather was not run: ")


def test_the_wrapper_is_short_and_needs_no_openai() -> None:
    source = (EXAMPLES / "openai_stream.py").read_text("utf-8")
    before, _, after = source.partition('if __name__ == "__main__":')
    assert "openai import" not in before and "from openai import OpenAI" in after
    body = source.partition("def stream(")[2].partition("\n\n\n")[0]
    assert len(body.splitlines()) <= 20


def test_the_own_loop_runs_permitted_tools_and_skips_denied_ones() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "own_loop.py"], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert done.stderr == "" and lines[0] == "Three days of sun in Oslo."
    assert "`- completed" in lines and "`- skipped (denied)" in lines


def test_the_model_receives_the_results_of_its_calls() -> None:
    histories: list[list[Any]] = []

    def ask(messages: list[Any]) -> str:
        histories.append(list(messages))
        good = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
        return good + good.replace("city", "town") if len(histories) == 1 else "Done."

    module = example("own_loop")
    assert asyncio.run(module.loop(ask, [{"role": "user", "content": "Hello"}], Trace())) == "Done."
    good, bad = [message["content"] for message in histories[1][2:]]
    assert good == "1 days of sun in Oslo" and bad.startswith("ERROR: the call was not run: city is required")


def test_the_own_loop_is_short() -> None:
    assert len((EXAMPLES / "own_loop.py").read_text("utf-8").splitlines()) < 40


def test_every_example_is_listed_in_the_readme() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert all(f"({path.name})" in listed for path in EXAMPLES.glob("*.py"))


# -- whole loops of several turns --------------------------------------------------------------------------------------


def chat_turn(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Answer like a careless model: broken arguments, then missing ones, then the tool results as text."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    function: dict[str, Any] = {
        "name": "get_weather",
        "arguments": ["{'city': 'Oslo', 'days': '2',}", "{}"][len(results) % 2],
    }
    calls = [{"id": f"call_{len(results)}", "type": "function", "function": function}]
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": calls}
    if len(results) == 2:
        message = {"role": "assistant", "content": " / ".join(results)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def messages_turn(path: str, body: dict[str, Any]) -> dict[str, Any]:
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    arguments: Any = [{"city": "Oslo", "days": "2"}, {}][len(results) % 2]
    content = [{"type": "tool_use", "id": f"toolu_{len(results)}", "name": "get_weather", "input": arguments}]
    if len(results) == 2:
        content = [{"type": "text", "text": " / ".join(results)}]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}


TOLD = "2 days of sun in Oslo / "


def test_a_loop_with_the_openai_sdk_ends_with_the_tool_results() -> None:
    with scripted(chat_turn) as (url, requests):
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        answer = example("openai_loop").ask(client, "m", "Weather?")
    assert answer.startswith(TOLD) and "city is required" in answer and len(requests) == 3


def test_a_loop_with_the_anthropic_sdk_ends_with_the_tool_results() -> None:
    with scripted(messages_turn) as (url, requests):
        client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        answer = example("anthropic_loop").ask(client, "m", "Weather?")
    assert answer.startswith(TOLD) and "city is required" in answer and len(requests) == 3


def test_a_loop_with_a_backend_ends_with_the_tool_results() -> None:
    with scripted(chat_turn) as (url, requests):
        backend = Backend(url, model="m", mode="native")
        answer = example("backend_loop").ask(backend, "Weather?")
    assert answer.startswith(TOLD) and "city is required" in answer
    assert len([body for body in requests if body.get("messages")]) == 3


LOOPS = re.findall(r"```python\n((?:(?!```).)*?for _ in range\(9\):.*?)```", README.read_text("utf-8"), re.S)


def test_the_loops_of_the_readme_end_with_the_tool_results(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")
    space: dict[str, Any] = {}
    for source, turn in zip(LOOPS, (chat_turn, messages_turn, chat_turn), strict=True):
        with scripted(turn) as (url, requests):
            monkeypatch.setenv("OPENAI_BASE_URL", url + "/v1")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
            here = source.replace('"http://localhost:8080/v1"', f'"{url}", mode="native"')
            exec(compile(here, "README.md", "exec"), space)  # noqa: S102 - our own document
        assert space["reply"].content.startswith(TOLD) and "city is required" in space["reply"].content
        assert len([body for body in requests if body.get("messages")]) >= 3


def test_the_loops_of_the_readme_are_short() -> None:
    assert [len(source.splitlines()) <= most for source, most in zip(LOOPS, (20, 20, 12), strict=True)] == [True] * 3


def test_a_guarded_openai_loop_ends_with_the_tool_results() -> None:
    with scripted(chat_turn) as (url, requests):
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        answer = example("guarded_loop").ask(client, "m", "Weather?")
    assert answer.startswith(TOLD) and "[guard: problems]" in answer and len(requests) == 3


@pytest.mark.parametrize(
    "name, most", [("openai_loop", 20), ("anthropic_loop", 20), ("backend_loop", 12), ("guarded_loop", 25)]
)
def test_a_loop_is_short(name: str, most: int) -> None:
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    body = source.partition("def ask(")[2].partition("\n\n\n")[0]
    assert len(body.splitlines()) <= most
