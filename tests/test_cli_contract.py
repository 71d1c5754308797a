"""`rightcall contract` and `rightcall tools --to typescript`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rightcall import contract
from rightcall.contracts.typescript import declarations
from support.command import MINE, failed, run

TOOLS = [
    {
        "name": "run",
        "description": "Runs a command. \x1b[2J\u202e",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    }
]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def test_the_command_prints_the_exact_contract(tools: str) -> None:
    result = run("contract", "--tools", tools)
    assert result.exit_code == 0 and result.stdout == contract(TOOLS).text


def test_the_command_has_the_options_of_the_function(tools: str, tmp_path: Path) -> None:
    examples = tmp_path / "examples.txt"
    examples.write_text("Like this.")
    native = run("contract", "-t", tools, "--mode", "native").stdout
    assert native == contract(TOOLS, mode="native").text
    text = run("contract", "-t", tools, "--compact", "--require-action", "--ledger", "--examples", str(examples)).stdout
    assert "- `run({" in text and "### Act first" in text and "### Task ledger" in text and "Like this." in text
    assert run("contract", "-t", tools, "--format", "qwen").stdout == contract(TOOLS, format="hermes").text


def test_json_output_has_the_text_the_stats_and_the_callable_tools(tools: str) -> None:
    data = json.loads(run("contract", "-t", tools, "--compact", "--json").stdout)
    assert data["text"] == contract(TOOLS, compact=True).text
    assert data["stats"]["compact"] == ["run"] and data["stats"]["fits"] is True
    assert data["tools"] == ["run", "tool_schema"]


def test_an_exceeded_budget_exits_with_1(tools: str) -> None:
    assert run("contract", "-t", tools, "--budget", "10").exit_code == 1
    assert run("contract", "-t", tools, "--budget", "5000").exit_code == 0


def test_a_custom_format_file_can_be_used(tools: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(MINE)
    assert "<c>" in run("contract", "-t", tools, "--format-file", str(mine)).stdout
    assert "give one of them" in failed(run("contract", "-t", tools, "-f", "hermes", "--format-file", str(mine)))


def test_a_usage_error_is_one_line(tools: str) -> None:
    assert "did you mean 'hermes'?" in failed(run("contract", "-t", tools, "--format", "herms"))
    assert "cannot read" in failed(run("contract", "-t", "no-such-file"))
    assert "is not valid JSON" in failed(run("contract", "-t", "-", stdin="{"))


def test_tools_are_converted_to_typescript(tools: str) -> None:
    result = run("tools", tools, "--to", "typescript")
    assert result.exit_code == 0 and result.stdout == declarations(TOOLS)
    assert json.loads(run("tools", tools, "--to", "typescript", "--json").stdout)["tools"] == declarations(TOOLS)


def test_a_rejected_tool_is_reported_beside_the_declarations(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([*TOOLS, {"name": "bad", "parameters": {"type": "object", "properties": {"a": 5}}}]))
    result = run("tools", str(path), "--to", "typescript")
    assert result.exit_code == 1 and "declare function run" in result.stdout and "refused: " in result.stderr
