"""How every format lists tools in a prompt: nothing is lost, JSON is unchanged, and no text of a tool breaks out."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Format, Tool, Toolset
from rightcall.contracts.listing import JSON_LISTS, LISTINGS, function_object, list_tools
from rightcall.contracts.typescript import MarkerEscaper
from rightcall.errors import BadFormat
from rightcall.formats import FORMATS
from rightcall.formats.spec import replace
from support.made_schemas import HOSTILE

TOOLS = Toolset(
    [
        {
            "name": "get_weather",
            "description": "Weather of a city.\nNeeds the net.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where"},
                    "days": {"type": "integer", "minimum": 1, "default": 3},
                    "unit": {"type": "string", "enum": ["c", "f"]},
                    "at": {"$ref": "#/$defs/Point"},
                },
                "required": ["city"],
                "$defs": {"Point": {"type": "object", "properties": {"lat": {"type": "number"}}}},
            },
        },
        {"name": "get_time"},
    ]
)


def read_json(text: str, format: Format) -> list[Any]:
    """Read the tools of a JSON list back as a plain JSON reader would."""
    how = JSON_LISTS[format.tools]
    assert text.startswith(how.open) and text.endswith(how.close)
    rest, found = text[len(how.open) : len(text) - len(how.close) or None], []
    decoder = json.JSONDecoder()
    while rest:
        value, end = decoder.raw_decode(rest, len(how.before))
        found.append(value)
        assert rest[end:].startswith(how.after)
        rest = rest[end + len(how.after) :].removeprefix(how.between)
    return found


def test_every_format_names_a_listing_and_every_listing_has_a_format() -> None:
    assert {format.tools for format in FORMATS.values() if format.name != "contract"} == set(LISTINGS)


def test_an_unknown_listing_is_reported() -> None:
    with pytest.raises(BadFormat, match="no listing 'yaml'"):
        list_tools(list(TOOLS), replace(FORMATS["hermes"], name="mine", tools="yaml"))


WIRES = [format for format in FORMATS.values() if format.name != "contract"]


@pytest.mark.parametrize("format", WIRES, ids=lambda format: format.name)
def test_a_list_has_every_name_description_and_argument(format: Format) -> None:
    text = list_tools(list(TOOLS), format)
    for word in (
        "get_weather",
        "get_time",
        "Weather of a city.",
        "city",
        "days",
        "unit",
        "at",
        "Point",
        "lat",
        "Where",
    ):
        assert word in text


@pytest.mark.parametrize(
    "format", [format for format in WIRES if format.tools in JSON_LISTS], ids=lambda format: format.name
)
def test_a_json_list_has_the_schemas_unchanged(format: Format) -> None:
    functions = [function_object(tool) for tool in TOOLS]
    flat = JSON_LISTS[format.tools].flat
    wanted = functions if flat else [{"type": "function", "function": one} for one in functions]
    assert read_json(list_tools(list(TOOLS), format), format) == wanted


SAMPLES = {
    "hermes": '<tools>\n{"type": "function", "function": {"name": "get_time", "description": "", "parameters": '
    '{"type": "object", "properties": {}}}}\n</tools>',
    "mistral_v3": '[AVAILABLE_TOOLS] [{"type": "function", "function": {"name": "get_time", "description": "", '
    '"parameters": {"type": "object", "properties": {}}}}][/AVAILABLE_TOOLS]',
    "deepseek_v32": '<functions>\n{"name": "get_time", "description": "", "parameters": {"type": "object", '
    '"properties": {}}}\n</functions>',
    "qwen3_coder": "<tools>\n<function>\n<name>get_time</name>\n<parameters>\n</parameters>\n</function>\n</tools>",
    "gemma4": '<|tool>declaration:get_time{description:<|"|><|"|>,'
    'parameters:{properties:{},type:<|"|>OBJECT<|"|>}}<tool|>',
    "harmony": "namespace functions {\n\ntype get_time = () => any;\n\n} // namespace functions",
    "apertus": "type get_time = () => any;",
    "minicpm3": '```python\ndef get_time():\n    """\n    get_time\n    """\n```',
    "deepseek_v31": '### get_time\nDescription: \n\nParameters: {"type": "object", "properties": {}}',
    "minimax_m2": '<tools>\n<tool>{"name": "get_time", "description": "", "parameters": {"type": "object", '
    '"properties": {}}}</tool>\n</tools>',
}


@pytest.mark.parametrize(("name", "text"), SAMPLES.items(), ids=SAMPLES)
def test_each_family_has_its_own_tool_list(name: str, text: str) -> None:
    tool = TOOLS.get("get_time")
    assert tool is not None and list_tools([tool], FORMATS[name]) == text


def test_qwen3_coder_has_a_tag_for_each_keyword() -> None:
    text = list_tools(list(TOOLS), FORMATS["qwen3_coder"])
    assert "<parameter>\n<name>city</name>\n<type>string</type>\n<description>Where</description>\n</parameter>" in text
    assert '<enum>["c", "f"]</enum>' in text and '<required>["city"]</required>' in text


def test_the_gpt_oss_list_is_typescript_with_comments_above_the_fields() -> None:
    text = list_tools(list(TOOLS), FORMATS["harmony"])
    assert "// Weather of a city.\n// Needs the net.\ntype get_weather = (_: {\n// Where\ncity: string,\n" in text
    assert 'days?: number, // default: 3\nunit?: "c" | "f",\nat?: Point,\n}) => any;' in text


def test_the_gemma_list_has_the_schema_of_array_items() -> None:
    parameters = {"type": "object", "properties": {"at": {"type": "array", "items": {"type": "string"}}}}
    text = list_tools([Tool(name="look", parameters=parameters)], FORMATS["gemma4"])
    assert 'at:{items:{type:<|"|>STRING<|"|>},type:<|"|>ARRAY<|"|>}' in text


def test_a_python_list_is_valid_python() -> None:
    text = list_tools(list(TOOLS), FORMATS["seed_oss"]).removeprefix("```python\n").removesuffix("\n```")
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["get_weather", "get_time"]
    assert 'city: str, days: int = 3, unit: Literal["c", "f"] = None, at: Point = None' in text


@st.composite
def hostile_tools(draw: st.DrawFn) -> list[Tool]:
    properties = {
        key: {"type": "string", "description": draw(HOSTILE), "enum": draw(st.lists(HOSTILE, min_size=1, max_size=2))}
        for key in draw(st.lists(HOSTILE.filter(bool), max_size=2, unique=True))
    }
    schema = {"type": "object", "properties": properties}
    return [Tool(name="first", description=draw(HOSTILE), parameters=schema), Tool(name="second")]


@given(hostile_tools())
def test_no_text_of_a_tool_breaks_out_of_a_list(tools: list[Tool]) -> None:
    for format in WIRES:
        text = list_tools(tools, format)
        text.encode()
        if format.tools in JSON_LISTS:
            names = [value.get("function", value)["name"] for value in read_json(text, format)]
            assert names == ["first", "second"]
        elif format.tools == "qwen3_coder":
            assert text.count("</function>") == 2 and text.count("</tools>") == 1 and text.count("<parameters>") == 2
        elif format.tools == "pythonic":
            assert text.count("```") == 2 and text.count('"""') == 4
        elif format.tools in ("gemma", "functiongemma"):
            closing = "<tool|>" if format.tools == "gemma" else "<end_function_declaration>"
            assert text.count(closing) == 2
        elif format.tools == "typescript":
            assert text.count("\n} // namespace functions") == 1


@given(HOSTILE)
def test_escaped_text_has_no_markers_and_escaped_json_keeps_its_value(text: str) -> None:
    for name in ("hermes", "harmony", "mistral_v3", "functionary_v32", "minimax_m3"):
        escaper = MarkerEscaper.of(name)
        prose = escaper.escape_text(text + ">>>>" + text)
        assert "<tool_call>" not in prose and "<|" not in prose
        if name == "functionary_v32":
            assert ">>>" not in prose
        if name == "mistral_v3":
            assert "[TOOL_CALLS]" not in prose
        escaped_json = escaper.escape_json(json.dumps([text, {text: 1}], ensure_ascii=False))
        assert json.loads(escaped_json) == [text, {text: 1}]
        assert "<tool_call>" not in escaped_json and "<|" not in escaped_json
