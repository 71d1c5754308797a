"""`rightcall check`, `repair` and `tools`: input shapes, output and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from rightcall.problems import CODES
from rightcall.repairs.rules import RULES
from support.command import failed, process, run
from test_cli_hostile import HOSTILE, unseen

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}},
    {"name": "look", "parameters": PARAMETERS | {"required": ["days"]}, "x-rightcall": {"read_only": True}},
]
GOOD = {"name": "get_weather", "arguments": {"city": "Oslo"}}
BAD = {"name": "get_weather", "arguments": {"days": 3}}


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def write_json(tmp_path: Path, data: Any) -> str:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(data))
    return str(path)


# -- check -------------------------------------------------------------------------------------------------------------

FUNCTION = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
CHAT = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": FUNCTION}]}
SHAPES: dict[str, Any] = {
    "a call": GOOD,
    "a call with the text of its arguments": FUNCTION,
    "a list": [GOOD, FUNCTION],
    "a list of OpenAI's entries": CHAT["tool_calls"],
    "an OpenAI message": CHAT,
    "an OpenAI response": {"choices": [{"message": CHAT}]},
    "an Anthropic block": {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
    "an Anthropic message": {
        "type": "message",
        "content": [{"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}}],
    },
    "an item of the Responses API": {"type": "function_call", "call_id": "a", **FUNCTION},
    "a Gemini part": {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}},
    "a call of Gemini's": {"name": "get_weather", "args": {"city": "Oslo"}},
    "a message whose text holds the call": {
        "role": "assistant",
        "content": f"<tool_call>{json.dumps(GOOD)}</tool_call>",
    },
}


@pytest.mark.parametrize("data", SHAPES.values(), ids=SHAPES)
def test_check_accepts_calls_in_every_provider_shape(data: Any, tools: str) -> None:
    good = run("check", "--tools", tools, stdin=json.dumps(data))
    assert good.exit_code == 0 and "none rejected" in good.stdout
    bad = run("check", "--tools", tools, stdin=json.dumps(data).replace("city", "town"))
    assert bad.exit_code == 1 and "city is required; received: town" in bad.stdout


def test_check_accepts_the_output_of_parse(tools: str) -> None:
    text = f"<tool_call>{json.dumps(BAD)}</tool_call>\n<tool_call>" + json.dumps(GOOD)[:-9]
    printed = run("parse", "--tools", tools, "--json", stdin=text).stdout
    result = run("check", "--tools", tools, "--json", stdin=printed)
    assert [(p["code"], p["call"]) for p in json.loads(result.stdout)["problems"]] == [
        ("missing", 0),
        ("truncated", 1),
    ]


def test_check_numbers_the_calls_and_repairs_nothing(tools: str) -> None:
    calls = [
        GOOD,
        {"name": "getWeather", "arguments": {"city": "Oslo"}},
        {"name": "get_weather", "arguments": "{'a': 1}"},
    ]
    result = run("check", "--tools", tools, "--json", stdin=json.dumps(calls))
    found = json.loads(result.stdout)
    assert (found["calls"], found["refused"], result.exit_code) == (1, 2, 1)
    assert [(p["code"], p["call"]) for p in found["problems"]] == [("unknown_tool", 1), ("invalid_json", 2)]
    assert "2 of 3 calls rejected" in run("check", "--tools", tools, stdin=json.dumps(calls)).stdout


def test_an_empty_list_has_no_problems(tools: str) -> None:
    assert run("check", "--tools", tools, stdin="[]").stdout == "check      0 calls, none rejected\n"


@pytest.mark.parametrize("command", ["check", "repair"])
@pytest.mark.parametrize(
    "text, message",
    [
        ("3", "the input is not a call"),
        ('{"a": 1}', "the input is not a call"),
        ('[{"name": "f"}, 3]', "the input is not a call"),
        ('{"calls": [3]}', "item 1 is int"),
        ('{"name": 3}', 'the "name" of item 1 is no string'),
        ("{", "not valid JSON"),
    ],
)
def test_input_without_calls_is_a_one_line_error(command: str, text: str, message: str, tools: str) -> None:
    assert message in failed(run(command, "--tools", tools, stdin=text))


@pytest.mark.parametrize("command", ["check", "repair"])
def test_checking_calls_requires_tools(command: str) -> None:
    assert "--tools FILE" in failed(run(command, stdin="[]"))
    assert "No such file" in failed(run(command, "--tools", "no.json", stdin="[]"))


def test_every_code_and_every_rule_is_listed() -> None:
    assert [entry["code"] for entry in json.loads(run("check", "--codes", "--json").stdout)] == list(CODES)
    assert [line.split()[0] for line in run("check", "--codes").stdout.splitlines()[1:]] == list(CODES)
    names = [rule.name for rule in RULES]
    assert [entry["name"] for entry in json.loads(run("repair", "--rules", "--json").stdout)] == names
    assert [line.split()[0] for line in run("repair", "--rules").stdout.splitlines()[1:]] == names


# -- repair ------------------------------------------------------------------------------------------------------------


def run_repair(tools: str, data: Any, *options: str) -> tuple[int, dict[str, Any]]:
    result = run("repair", "--tools", tools, *options, stdin=json.dumps(data))
    return result.exit_code, json.loads(result.stdout)


def test_repair_prints_the_calls_with_their_receipts(tools: str) -> None:
    sent = "{'city': 'Oslo', days: \"3\"}"
    code, found = run_repair(tools, {"name": "functions.get_weather", "id": "x", "arguments": sent})
    (call,) = found["calls"]
    assert (code, found["problems"]) == (0, [])
    assert (call["name"], call["arguments"], call["id"], call["raw"]) == (
        "get_weather",
        {"city": "Oslo", "days": 3},
        "x",
        sent,
    )
    rules = ["namespace", "single_quotes", "unquoted_key", "scalar_type"]
    assert [receipt["rule"] for receipt in call["repairs"]] == rules
    assert call["repairs"][-1] == {
        "rule": "scalar_type",
        "kind": "schema",
        "path": "/days",
        "before": '"3"',
        "after": "3",
    }


def test_valid_argument_text_is_printed_unchanged(tools: str) -> None:
    sent = '{ "city":"Os\\u006co" ,"days" : 3}'
    _, found = run_repair(tools, {"name": "get_weather", "arguments": sent})
    assert (found["calls"][0]["json"], found["calls"][0]["repairs"]) == (sent, [])


def test_a_truncated_call_is_never_completed(tools: str) -> None:
    for policy in ("off", "safe", "lenient"):
        code, found = run_repair(tools, {"name": "look", "arguments": '{"days": 3, "city": "Os'}, "--policy", policy)
        assert code == 1 and found["problems"][0]["code"] == "truncated"
        assert found["calls"] == []
        assert (found["refused"][0]["complete"], found["refused"][0]["arguments"]) == (False, {})
    code, found = run_repair(tools, {**GOOD, "complete": False})
    assert code == 1 and found["problems"][0]["code"] == "incomplete" and found["refused"][0]["complete"] is False


def test_the_policy_limits_the_repairs(tools: str) -> None:
    guess = {"name": "get_weather", "arguments": '{"city": Oslo}'}
    assert [run_repair(tools, guess, "--policy", policy)[0] for policy in ("off", "safe", "lenient")] == [1, 1, 0]
    certain = {"name": "get_weather", "arguments": '{"city": "Oslo",}'}
    assert [run_repair(tools, certain, "--policy", policy)[0] for policy in ("off", "safe", "lenient")] == [1, 0, 0]
    harmless = {"name": "look", "arguments": '{"days": 3, "city": Oslo}'}
    assert [run_repair(tools, harmless, "--policy", policy)[0] for policy in ("off", "safe", "lenient")] == [1, 0, 0]
    assert run("repair", "--tools", tools, "--policy", "bold", stdin="[]").exit_code == 2


def test_earlier_receipts_are_kept(tools: str) -> None:
    once = run_repair(tools, {"name": "get_weather", "arguments": '{"city": "Oslo",}'})[1]
    twice = run_repair(tools, once)[1]
    assert twice == once and [receipt["rule"] for receipt in twice["calls"][0]["repairs"]] == ["trailing_comma"]
    broken = {**GOOD, "repairs": [{"rule": 3}]}
    assert run_repair(tools, broken)[1]["calls"][0]["repairs"] == []


def test_numbers_keep_their_spelling(tools: str) -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "far": 1E+2}}</tool_call>'
    printed = run("parse", "--tools", tools, "--json", stdin=text).stdout
    found = json.loads(run("repair", "--tools", tools, stdin=printed).stdout)
    assert found["calls"][0]["json"] == '{"city": "Oslo", "far": 1E+2}'


def test_parse_explains_every_repair(tools: str) -> None:
    text = '<tool_call>{"name": "functions.get_weather", "arguments": {"city": "Oslo", "days": "3"}}</tool_call>'
    shown = run("parse", "--tools", tools, "--explain", stdin=text).stdout
    assert "repair     namespace (exact): functions.get_weather -> get_weather\n" in shown
    assert 'repair     scalar_type (schema) at /days: "3" -> 3\n' in shown


# -- tools -------------------------------------------------------------------------------------------------------------

MIXED = [
    {"type": "function", "function": {"name": "files.read", "description": "Reads.", "parameters": PARAMETERS}},
    {"name": "files.read", "input_schema": {"type": "object", "properties": {}}},
    {"name": "find", "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?!a)"}}}},
]
REFUSED = {"name": "far", "parameters": {"type": "object", "properties": {"a": {"$ref": "https://evil.example/x"}}}}


def test_tools_are_converted_to_every_provider_and_back(tmp_path: Path) -> None:
    first = run("tools", write_json(tmp_path, MIXED), "--to", "chat")
    assert first.exit_code == 0
    for provider in ("chat", "responses", "messages", "gemini", "ollama", "mcp"):
        there = run("tools", write_json(tmp_path, json.loads(first.stdout)), "--to", provider)
        back = run("tools", write_json(tmp_path, json.loads(there.stdout)), "--to", "chat")
        assert json.loads(back.stdout) == json.loads(first.stdout), provider


def test_problems_of_tool_definitions_are_printed_to_standard_error(tmp_path: Path) -> None:
    result = run("tools", write_json(tmp_path, [*MIXED, REFUSED]), "--to", "messages")
    assert result.exit_code == 1
    assert [tool["name"] for tool in json.loads(result.stdout)] == ["files_read", "find"]
    refused, clash, unchecked, renamed = result.stderr.splitlines()
    assert "refused: tool 'far'" in refused and "/3/parameters/properties/a/$ref" in refused
    assert "clash: 'files.read' is declared twice, differently" in clash
    assert "not checked: 'find' /properties/x/pattern" in unchecked
    assert "renamed: 'files.read' is 'files_read' there" in renamed


def test_the_tool_report_is_available_as_json(tmp_path: Path) -> None:
    result = run("tools", write_json(tmp_path, [*MIXED, REFUSED]), "--to", "chat", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert [tool["function"]["name"] for tool in report["tools"]] == ["files_read", "find"]
    assert report["refused"][0]["path"] == "/3/parameters/properties/a/$ref"
    assert [clash["name"] for clash in report["clashes"]] == ["files.read"]
    assert [relaxation["path"] for relaxation in report["relaxed"]] == ["/properties/x/pattern"]
    assert report["renamed"] == {"files.read": "files_read"}


def test_tools_can_be_listed_without_conversion(tmp_path: Path) -> None:
    result = run("tools", write_json(tmp_path, MIXED))
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["tool", "files.read", "find"]
    assert [
        tool["name"] for tool in json.loads(run("tools", write_json(tmp_path, MIXED), "--json").stdout)["tools"]
    ] == [
        "files.read",
        "find",
    ]


def test_provider_extensions_are_written_only_on_request(tmp_path: Path) -> None:
    path = write_json(tmp_path, TOOLS[1:])
    assert "x-rightcall" in run("tools", path, "--to", "chat", "--extensions").stdout
    assert "x-rightcall" not in run("tools", path, "--to", "chat").stdout


def test_unreadable_tools_are_a_one_line_error(tmp_path: Path) -> None:
    assert "No such file" in failed(run("tools", "no.json", "--to", "chat"))
    assert "holds no tools" in failed(run("tools", write_json(tmp_path, 3), "--to", "chat"))
    assert run("tools", write_json(tmp_path, []), "--to", "nobody").exit_code == 2


# -- untrusted text ----------------------------------------------------------------------------------------------------


def test_no_command_prints_control_characters_of_untrusted_text(tmp_path: Path, tools: str) -> None:
    call = {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
    near = {"name": "functions.get_weather", "arguments": {"city": HOSTILE, "days": HOSTILE}}
    strange = [
        {"name": HOSTILE, "description": HOSTILE, "parameters": {HOSTILE: HOSTILE}},
        {"name": "f", "description": HOSTILE},
    ]
    for args, data in (
        (["check", "--tools", tools], [call, near]),
        (["repair", "--tools", tools], [call, near]),
        (["tools", "-"], strange),
        (["tools", "-", "--to", "chat"], strange),
        (["tools", "-", "--json"], strange),
    ):
        done = process(*args, stdin=json.dumps(data).encode())
        assert done.returncode in (0, 1) and b"Traceback" not in done.stderr
        assert unseen(done.stdout.decode() + done.stderr.decode()) == [], args
