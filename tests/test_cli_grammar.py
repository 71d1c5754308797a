"""`rightcall grammar`: the grammar is written to standard output, its relaxations to standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rightcall.constrain.server_requests import SERVERS
from rightcall.types import Json
from support.command import failed, process, run
from support.judge import accepts

WEATHER: Json = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ODD: Json = {
    "name": "odd",
    "parameters": {"type": "object", "properties": {"\u202eids": {"type": "array", "uniqueItems": True}}},
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.fixture
def tools(tmp_path: Path) -> Any:
    def write(*definitions: Json) -> str:
        path = tmp_path / "tools.json"
        path.write_text(json.dumps(definitions), "utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("emit", ["gbnf", "lark", "structural-tag", "json-schema", "regex", "rules", "svg"])
def test_every_kind_of_grammar_is_printed(tools: Any, emit: str) -> None:
    result = run("grammar", "--tools", tools(WEATHER), "--emit", emit, "--choice", "required", "--one")
    assert result.exit_code == 0 and "get_weather" in result.stdout and result.stderr == ""


def test_the_printed_grammar_is_accepted_by_the_engine(tools: Any) -> None:
    done = process("grammar", "--tools", tools(WEATHER), "--emit", "lark", "--choice", "required")
    assert done.returncode == 0 and accepts(done.stdout.decode(), CALL)


def test_relaxations_are_listed_on_standard_error(tools: Any) -> None:
    result = run("grammar", "--tools", tools(WEATHER, ODD), "--format", "hermes")
    assert result.exit_code == 0 and "::=" in result.stdout
    assert "uniqueItems" in result.stderr and "duplicate items" in result.stderr.replace("\n", " ")
    assert "\u202e" not in result.stderr


def test_json_output_contains_the_grammar_and_its_relaxations(tools: Any) -> None:
    result = run("grammar", "--tools", tools(WEATHER, ODD), "--json")
    output = json.loads(result.stdout)
    assert "root ::=" in output["result"] and output["omitted"] == {}
    assert [row["keyword"] for row in output["relaxations"]] == ["uniqueItems"]


def test_strict_mode_rejects_a_schema_and_names_the_keyword(tools: Any) -> None:
    assert "uniqueItems" in failed(run("grammar", "--tools", tools(ODD), "--strict"))


@pytest.mark.parametrize(
    "form",
    [
        *[("--emit", emit) for emit in ("gbnf", "lark", "structural-tag", "json-schema", "regex", "rules", "svg")],
        *[("--server", server) for server in SERVERS],
    ],
    ids=lambda form: form[1],
)
def test_the_relaxations_of_the_grammar_are_listed_and_strict_mode_rejects_them_in_every_form(
    tools: Any, form: tuple[str, str]
) -> None:
    ids = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    unique = {"name": "look_up", "parameters": {"type": "object", "properties": {"ids": ids}}}
    options = ("grammar", "--tools", tools(unique), "--choice", "required", "--one", *form)
    assert "uniqueItems" in [row["keyword"] for row in json.loads(run(*options, "--json").stdout)["relaxations"]]
    assert "uniqueItems" in failed(run(*options, "--strict"))


@pytest.mark.parametrize("emit", ["gbnf", "structural-tag"])
def test_strict_mode_rejects_keywords_that_the_engine_cannot_enforce(tools: Any, emit: str) -> None:
    short = {"name": "t", "parameters": {"type": "object", "properties": {"x": {"type": "string", "minLength": 2}}}}
    options = (
        "grammar",
        "--tools",
        tools(short),
        "--format",
        "qwen3_coder",
        "--choice",
        "required",
        "--strict",
        "--emit",
    )
    assert "minLength" in failed(run(*options, emit))
    assert run(*options, "lark").exit_code == 0


def test_an_omitted_tool_is_reported_by_name(tools: Any) -> None:
    never = {"name": "never", "parameters": {"type": "object", "properties": {"x": False}, "required": ["x"]}}
    result = run("grammar", "--tools", tools(WEATHER, never))
    assert result.exit_code == 1 and "never" in result.stderr and "get_weather" in result.stdout


def test_the_fields_of_a_request_are_printed(tools: Any) -> None:
    result = run("grammar", "--tools", tools(WEATHER), "--server", "llama.cpp")
    assert json.loads(result.stdout)["grammar_lazy"] is True


def test_the_option_max_string_bounds_strings(tools: Any) -> None:
    options = ("--max-string", "3", "--emit", "lark", "--choice", "required")
    lark = run("grammar", "--tools", tools(WEATHER), *options).stdout
    assert accepts(lark, CALL.replace("Oslo", "Osl")) and not accepts(lark, CALL)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--emit", "ebnf"), "--emit is one of"),
        (("--choice", "nobody"), "no tool 'nobody'"),
        (("--server", "nobody"), "llama.cpp"),
        (("--format", "auto"), "name a format"),
        (("--format", "herms"), "hermes"),
        (("--reasoning", "much"), "reasoning is"),
    ],
)
def test_a_usage_error_is_one_line(tools: Any, options: tuple[str, ...], message: str) -> None:
    assert message in failed(run("grammar", "--tools", tools(WEATHER), *options))


def test_a_grammar_without_tools_is_a_usage_error(tools: Any) -> None:
    assert "--tools" in failed(run("grammar"))
    assert "tool list is empty" in failed(run("grammar", "--tools", tools()))
