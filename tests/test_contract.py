"""The contract in a prompt: its sections, the notation of every format, the budget, and `tool_schema`."""

from __future__ import annotations

import json
import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given

from rightcall import Format, Tool, Toolset, contract, parse
from rightcall.contracts.ledger import Ledger
from rightcall.contracts.prompt import brief_tool, estimate_tokens, example_arguments
from rightcall.errors import CallerError, RightcallError, ToolError, UnknownFormat
from rightcall.formats import FORMATS
from support.made_schemas import Case, tools

READ: dict[str, Any] = {
    "name": "read_file",
    "description": "Reads a file. Long ones are cut.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it is"}, "range": {"$ref": "#/$defs/Range"}},
        "required": ["path"],
        "$defs": {"Range": {"type": "object", "properties": {"start": {"type": "integer"}}}},
    },
}
WRITE: dict[str, Any] = {
    "name": "write_file",
    "description": "Writes a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
}
TOOLS = Toolset([READ, WRITE])
WIRES = [format for format in FORMATS.values() if format.name != "contract"]


def sections(text: str) -> list[str]:
    return re.findall(r"^#+ .*", text, re.MULTILINE)


# -- sections ----------------------------------------------------------------------------------------------------------


def test_a_contract_has_its_sections_in_this_order() -> None:
    prompt = contract(TOOLS, require_action=True, examples="\n  Like this.\n", compact=["write_file"], ledger=Ledger())
    assert prompt.text.startswith("\n## Tool Calling Contract\n\nThe active mode is `text`.")
    inside_heredoc = "# Today"
    assert [line for line in sections(prompt.text) if line != inside_heredoc] == [
        "## Tool Calling Contract",
        "### Response protocol",
        "### Task ledger",
        "### Act first",
        "## Tool call examples",
        "## Shared types",
        "## Available tools",
        "## Other tools (call directly, or call `tool_schema` for details)",
    ]


def test_an_empty_section_is_omitted() -> None:
    text = contract([WRITE], examples="  \n").text
    assert [line for line in sections(text) if line != "# Today"] == [
        "## Tool Calling Contract",
        "### Response protocol",
        "## Available tools",
    ]


def test_the_protocol_names_every_tag_and_the_heredoc() -> None:
    text = contract(TOOLS).text
    for word in ("<tool_call>", "<assistant_prose>", "<user_response>", "<done>##DONE##</done>", "<<TAG", "heredoc"):
        assert word in text
    assert "name({ key: value })" in text and "`tool_code:`" in text


def test_the_done_marker_can_be_chosen() -> None:
    assert "<done>FINISHED</done>" in contract(TOOLS, done="FINISHED").text


def test_tools_are_declared_in_full_with_their_shared_types() -> None:
    text = contract(TOOLS).text
    assert "## Shared types\n\ntype Range = { start?: number /* optional */ };\n\n## Available tools\n\n" in text
    assert "declare function read_file(args: { path: string /* required — Where it is */; range?: Range" in text
    assert " */\n\ndeclare function write_file(" in text


def test_examples_precede_the_tools() -> None:
    text = contract(TOOLS, examples="Like this.").text
    assert text.index("## Tool call examples\n\nLike this.") < text.index("## Available tools")


def test_the_worked_examples_call_declared_tools() -> None:
    text = contract(TOOLS).text
    assert '<tool_call>\nread_file({ path: "path" })\n</tool_call>' in text
    assert 'write_file({ path: "path", content: <<EOF\n# Today\n' in text and "\nEOF })\n</tool_call>" in text


def test_the_heredoc_is_shown_even_without_a_tool_that_takes_long_text() -> None:
    assert "if there were a tool `create`" in contract([READ]).text


def test_the_ledger_is_explained_and_callable() -> None:
    prompt = contract(TOOLS, ledger=Ledger("x"))
    assert 'ledger({ action: "mark"' in prompt.text and "Use only ids that the ledger shows." in prompt.text
    assert prompt.tools.names == ("ledger", "read_file", "write_file")
    assert "### Task ledger" not in contract(TOOLS).text


def test_the_native_contract_is_short_and_has_no_tool_declarations() -> None:
    text = contract(TOOLS, mode="native").text
    assert "The active mode is `native`." in text and "<tool_call>name({ key: value })</tool_call>" in text
    assert "declare function" not in text and "Response protocol" not in text
    assert "- `read_file`\n- `write_file`" in text


def test_the_native_contract_describes_the_requested_format_as_fallback() -> None:
    text = contract(TOOLS, mode="native", format="hermes").text
    assert '<tool_call>\n{"name": "tool_name", "arguments": {"argument": "value"}}\n</tool_call>' in text


def test_the_native_contract_describes_tools_for_a_server_that_strips_them() -> None:
    text = contract(TOOLS, mode="native", schemas=True).text
    assert "declare function read_file" in text and "### Response protocol" in text


def test_a_contract_without_tools_has_no_tool_section() -> None:
    assert "## Available tools" not in contract([]).text


@pytest.mark.parametrize(
    ("options", "error", "cause"),
    [
        ({"mode": "grammar"}, CallerError, "no mode 'grammar'"),
        ({"compact": ["nope"]}, CallerError, "the unknown tool 'nope'"),
        ({"format": "herms"}, UnknownFormat, "did you mean 'hermes'"),
    ],
    ids=str,
)
def test_errors_of_the_caller_are_reported(options: Any, error: type[RightcallError], cause: str) -> None:
    with pytest.raises(error, match=cause):
        contract(TOOLS, **options)


@pytest.mark.skipif("contract" not in FORMATS, reason="the format that reads the protocol is not there")
def test_the_worked_examples_are_parsed_by_the_contract_format() -> None:
    text = contract(TOOLS).text
    examples = re.findall(r"^<tool_call>\n.*?^</tool_call>$", text, re.MULTILINE | re.DOTALL)
    replies = [parse(example, format="contract", tools=TOOLS, repair="off") for example in examples]
    calls = [(call.name, call.arguments) for reply in replies for call in reply.attempts]
    lines = '# Today\nIt\'s "raw": \\n stays as it is.'
    assert calls == [("read_file", {"path": "path"}), ("write_file", {"path": "path", "content": lines})]
    assert not [problem for reply in replies for problem in reply.problems]


# -- every format ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", WIRES, ids=lambda format: format.name)
def test_a_prompt_in_any_format_names_every_tool_and_shows_a_call_that_reads_back(format: Format) -> None:
    text = contract(TOOLS, format=format).text
    assert "read_file" in text and "write_file" in text and "content" in text
    example = text.split("One call:\n\n", 1)[1].split("\n\n## Available tools", 1)[0].split("\n\nTwo calls", 1)[0]
    reply = parse(example, format=format, tools=TOOLS, repair="off")
    assert [(call.name, call.arguments) for call in reply.attempts] == [("read_file", {"path": "path"})]
    assert not [problem for problem in reply.problems if problem.blocking]


def test_two_calls_are_shown_only_for_formats_with_a_shared_section() -> None:
    assert "Two calls in one response" in contract(TOOLS, format="mistral_v3").text
    assert "Two calls in one response" not in contract(TOOLS, format="hermes").text


def test_a_custom_format_lists_tools_as_json() -> None:
    mine = Format.from_toml('name = "mine"\ncall = ["<c>", "</c>"]\nbody = { kind = "envelope" }\n')
    text = contract(TOOLS, format=mine).text
    assert '<c>{"name": "read_file", "arguments": {"path": "path"}}</c>' in text
    assert '[{"type": "function", "function": {"name": "read_file"' in text


def test_a_tool_without_example_arguments_gets_a_placeholder_example() -> None:
    odd = Tool(
        name="odd",
        parameters={
            "type": "object",
            "properties": {"x": {"type": "string", "pattern": "^[0-9]{9}$"}},
            "required": ["x"],
        },
    )
    assert example_arguments(odd) is None
    assert '{"name": "tool_name", "arguments": {"argument": "value"}}' in contract([odd], format="hermes").text


EXAMPLES: list[tuple[Any, Any]] = [
    ({"type": "string"}, "x"),
    ({"type": "string", "format": "date"}, "2025-01-31"),
    ({"type": "string", "minLength": 3.0, "maxLength": 4.0}, "xxx"),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "number", "exclusiveMinimum": 1}, 2),
    ({"type": "integer", "maximum": -3}, -3),
    ({"type": "integer", "multipleOf": 7}, 7),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 2.0}, [True, True]),
    ({"type": "object", "properties": {"a": {"enum": ["z"]}, "b": {}}, "required": ["a"]}, {"a": "z"}),
    ({"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}, "x"),
    ({"type": "string", "examples": ["Oslo"]}, "Oslo"),
    ({"type": "integer", "default": 9}, 9),
]


@pytest.mark.parametrize(("schema", "value"), EXAMPLES, ids=lambda value: str(value)[:40])
def test_example_arguments_are_valid_for_their_schema(schema: Any, value: Any) -> None:
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": {"T": {"type": "string"}}}
    assert example_arguments(Tool(name="f", parameters=parameters)) == {"x": value}


@given(tools())
def test_a_prompt_can_be_written_for_any_tool(case: Case) -> None:
    for format in ("contract", "hermes", "gemma4", "qwen3_coder", "harmony"):
        text = contract([case.tool], format=format, budget=100).text
        text.encode()
        inside = json.dumps(case.tool.name, ensure_ascii=False)[1:-1]
        if case.tool.name.isidentifier():
            assert inside in text


# -- short forms and the budget ----------------------------------------------------------------------------------------

MANY = [
    Tool(
        name=f"tool_{at}",
        description=f"Does thing {at}. " + "It has a long story that a model may not need. " * (at % 7),
        parameters={
            "type": "object",
            "properties": {f"arg_{n}": {"type": "string", "description": "word " * n} for n in range(at % 5 + 1)},
            "required": ["arg_0"],
        },
    )
    for at in range(40)
]


def test_a_tool_declared_compact_is_listed_in_short_form() -> None:
    prompt = contract([Tool(name="f", description="Does it. At length.", compact=True), WRITE])
    assert prompt.stats.compact == ("f",) and "- `f({})` — Does it\n" in prompt.text


@pytest.mark.parametrize("format", ["contract", "hermes", "harmony"])
@pytest.mark.parametrize("budget", [700, 2_000, 4_000, 10_000])
def test_a_budget_is_kept_and_every_tool_is_named(format: str, budget: int) -> None:
    prompt = contract(MANY, budget=budget, format=format)
    stats = prompt.stats
    assert stats.tokens == estimate_tokens(prompt.text) and stats.characters == len(prompt.text)
    assert stats.fits == (stats.tokens <= budget)
    assert sorted((*stats.full, *stats.compact, *stats.named)) == sorted(tool.name for tool in MANY)
    assert all(re.search(rf"\b{tool.name}\b", prompt.text) for tool in MANY)


def test_the_most_expensive_tools_are_shortened_first_and_no_more_than_needed() -> None:
    whole = contract(MANY).stats.tokens
    prompt = contract(MANY, budget=whole - 200)
    assert prompt.stats.fits and 0 < len(prompt.stats.compact) < 20 and prompt.stats.named == ()
    assert contract(MANY, budget=whole).stats.compact == ()


def test_an_impossible_budget_gives_the_shortest_text() -> None:
    stats = contract(MANY, budget=10).stats
    assert not stats.fits and len(stats.named) == len(MANY)


def test_the_cost_of_a_tool_is_the_size_of_its_text() -> None:
    prompt = contract(TOOLS, compact=["write_file"], count=len)
    line = next(line for line in prompt.text.splitlines() if line.startswith("- `write_file("))
    assert prompt.stats.costs["write_file"] == len(line)
    assert sum(prompt.stats.costs.values()) < prompt.stats.tokens


def test_tokens_are_counted_with_the_function_of_the_caller() -> None:
    assert contract(TOOLS, count=len).stats.tokens == contract(TOOLS).stats.characters


def test_a_brief_tool_keeps_its_schema_and_drops_the_prose() -> None:
    brief = brief_tool(Toolset([READ]).get("read_file") or Tool(name=""))
    assert brief.description == "Reads a file"
    assert brief.parameters["properties"]["path"] == {"type": "string"}
    assert brief.parameters["required"] == ["path"] and "$defs" in brief.parameters
    named_like_a_keyword = Tool(
        name="f", parameters={"type": "object", "properties": {"description": {"type": "string", "title": "T"}}}
    )
    assert brief_tool(named_like_a_keyword).parameters["properties"] == {"description": {"type": "string"}}


# -- tool_schema -------------------------------------------------------------------------------------------------------


def find_schema_tool(prompt: Any, name: str = "tool_schema") -> Tool:
    tool = prompt.tools.get(name)
    assert isinstance(tool, Tool) and tool.run is not None
    return tool


def test_tool_schema_is_callable_and_returns_the_full_declaration() -> None:
    prompt = contract(TOOLS, compact=True)
    run = find_schema_tool(prompt).run
    assert run is not None
    assert run(name="read_file") == (
        "type Range = { start?: number /* optional */ };\n"
        "declare function read_file(args: { path: string /* required — Where it is */; "
        "range?: Range /* optional */ }): string;\n/**\n * Reads a file. Long ones are cut.\n */"
    )
    assert "declare function tool_schema(" in prompt.text


def test_tool_schema_answers_in_the_notation_of_the_prompt() -> None:
    run = find_schema_tool(contract(TOOLS, compact=True, format="hermes")).run
    assert run is not None
    declaration = json.loads(run(name="write_file").removeprefix("<tools>\n").removesuffix("\n</tools>"))
    assert declaration["function"] == WRITE


def test_tool_schema_suggests_the_nearest_tool_name() -> None:
    run = find_schema_tool(contract(TOOLS, compact=True)).run
    assert run is not None
    with pytest.raises(ToolError, match="did you mean 'read_file'"):
        run(name="readfile")


def test_tool_schema_exists_only_if_a_tool_is_shortened() -> None:
    assert contract(TOOLS).tools.get("tool_schema") is None
    assert contract(TOOLS, mode="native", compact=True).tools.get("tool_schema") is None


def test_a_declared_tool_named_tool_schema_keeps_its_name() -> None:
    prompt = contract([Tool(name="tool_schema"), READ], compact=["read_file"])
    assert "call `tool_schema_2` for details" in prompt.text
    run = find_schema_tool(prompt, "tool_schema_2").run
    assert run is not None and "declare function read_file" in run(name="read_file")


@pytest.mark.parametrize("mode", ["text", "native"])
def test_the_prompt_is_independent_of_the_order_of_tools(mode: Any) -> None:
    tools = [Tool(name=name, description=f"Does {name}.") for name in ("write", "read", "edit")]
    texts = {contract(order, mode=mode).text for order in permutations(tools)}
    assert len(texts) == 1
