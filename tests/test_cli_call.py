"""`rightcall call`: validate and execute one call from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import failed, process, run
from test_cli_hostile import HOSTILE, unseen

SOURCE = '''
import time
from rightcall import tool

@tool
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b

@tool
def echo(text: str) -> str:
    print("printed by the tool")
    return text

@tool
def slow() -> None:
    time.sleep(600)

@tool
def broken() -> None:
    raise LookupError("not there")

def not_marked() -> str:
    return "never a tool"

OTHERS = [not_marked]
'''


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    path = tmp_path / f"tools_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield str(path)
    sys.modules.pop(path.stem, None)


def test_a_call_is_repaired_checked_run_and_traced(tools: str) -> None:
    done = run("call", "add", '{"a": "3",}', "--from", tools)
    assert done.exit_code == 0, done.output
    assert "trailing_comma" in done.stdout and "scalar_type" in done.stdout
    assert "`- completed" in done.stdout and "result     4" in done.stdout


def test_json_output_has_the_result_and_the_trace(tools: str) -> None:
    report = json.loads(run("call", "add", '{"a": 2, "b": 5}', "--from", tools, "--json").stdout)
    assert (report["result"]["output"], report["result"]["kind"], report["result"]["error"]) == (7, "completed", False)
    assert [event["event"] for event in report["trace"]] == ["outcome"]


def test_output_of_the_tool_does_not_corrupt_the_json(tools: str) -> None:
    done = run("call", "echo", '{"text": "hi"}', "--from", tools, "--json")
    assert json.loads(done.stdout)["result"]["text"] == "hi" and "printed by the tool" in done.stderr


def test_arguments_can_come_from_standard_input_or_be_omitted(tools: str) -> None:
    assert run("call", "add", "-", "--from", tools, stdin='{"a": 1}').exit_code == 0
    assert "city is required" not in run("call", "not_marked", "--from", f"{tools}:OTHERS").stdout


REJECTED = [
    ("add", '{"a": "x"}', "wrong_type"),
    ("add", "{}", "missing"),
    ("add", '{"a": 1', "truncated"),
    ("add", "[1]", "arguments_not_object"),
    ("not_marked", "{}", "unknown_tool"),
]


@pytest.mark.parametrize("name, arguments, code", REJECTED)
def test_a_rejected_call_exits_with_1_and_prints_its_problems(tools: str, name: str, arguments: str, code: str) -> None:
    done = run("call", name, arguments, "--from", tools)
    assert done.exit_code == 1 and code in done.stdout and f"refused ({code}" in done.stdout


def test_repair_can_be_switched_off(tools: str) -> None:
    assert run("call", "add", '{"a": "3"}', "--from", tools, "--repair", "off").exit_code == 1


def test_a_tool_that_fails_or_times_out_exits_with_1(tools: str) -> None:
    done = run("call", "broken", "--from", tools)
    assert done.exit_code == 1 and "LookupError: not there" in done.stdout
    slow = run("call", "slow", "--from", tools, "--isolate", "--timeout", "0.5")
    assert slow.exit_code == 1 and "timed_out" in slow.stdout


def test_a_tool_can_run_in_a_separate_process(tools: str) -> None:
    assert "result     4" in run("call", "add", '{"a": 3}', "--from", tools, "--isolate").stdout


def test_control_characters_of_a_tool_result_are_escaped(tools: str) -> None:
    done = process("call", "echo", json.dumps({"text": HOSTILE}), "--from", tools)
    assert unseen(done.stdout.decode() + done.stderr.decode()) == [] and done.returncode == 0
    done = process("call", "\x1b[2J\u202e", "--from", tools)
    assert unseen(done.stdout.decode() + done.stderr.decode()) == [] and done.returncode == 1


def test_a_long_result_is_shortened(tools: str) -> None:
    done = run("call", "echo", "-", "--from", tools, stdin=json.dumps({"text": "x" * 100_000}))
    assert len(done.stdout) < 8_000 and "characters left out" in done.stdout


def test_a_usage_error_is_one_line(tools: str, tmp_path: Path) -> None:
    (tmp_path / "raises_on_import.py").write_text("raise OSError('no')")
    (tmp_path / "json.py").write_text("")
    (tmp_path / "empty_module.py").write_text("")
    for args, cause in (
        ((), "--from MODULE"),
        (("--from", str(tmp_path / "gone.py")), "does not exist"),
        (("--from", "no_such_module_at_all"), "cannot import"),
        (("--from", str(tmp_path / "raises_on_import.py")), "OSError: no"),
        (("--from", str(tmp_path / "json.py")), "another module"),
        (("--from", str(tmp_path / "empty_module.py")), "has no tools"),
        (("--from", f"{tools}:GONE"), "has no 'GONE'"),
    ):
        assert cause in failed(run("call", "add", "{}", *args))
