"""Tool definitions of every provider: conversion in both directions, without loss."""

from __future__ import annotations

import json
import string
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from rightcall.errors import BadTools, CallerError
from rightcall.schema.definition import check_parameters
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import (
    NAME_RULES,
    Provider,
    Toolset,
    is_wire_name_of,
    to_tool,
    wire_names,
)
from rightcall.types import Json, Tool, to_json

PROVIDERS: tuple[Provider, ...] = get_args(Provider)
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where"},
        "days": {"type": ["integer", "null"], "minimum": 1},
    },
    "required": ["city"],
}
GEMINI: Json = {
    "type": "OBJECT",
    "properties": {
        "city": {"type": "STRING", "description": "Where"},
        "days": {"type": "INTEGER", "nullable": True, "minimum": 1},
    },
    "required": ["city"],
}
NAMED: Json = {"name": "weather", "description": "The weather."}

FORMS: dict[str, Any] = {
    "OpenAI chat": {"type": "function", "function": {**NAMED, "parameters": SCHEMA, "strict": True}},
    "OpenAI chat without type": {"function": {**NAMED, "parameters": SCHEMA}},
    "OpenAI Responses": {"type": "function", **NAMED, "parameters": SCHEMA, "strict": False},
    "OpenAI functions": {"functions": [{**NAMED, "parameters": SCHEMA}]},
    "Anthropic": {**NAMED, "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
    "Anthropic custom": {"type": "custom", **NAMED, "input_schema": SCHEMA},
    "MCP": {**NAMED, "title": "Weather", "inputSchema": SCHEMA, "annotations": {"title": "W"}},
    "MCP listing": {"tools": [{**NAMED, "inputSchema": SCHEMA}], "nextCursor": "x"},
    "MCP answer": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{**NAMED, "inputSchema": SCHEMA}]}},
    "Gemini": {**NAMED, "parameters": GEMINI},
    "Gemini tool": {"functionDeclarations": [{**NAMED, "parameters": GEMINI}], "googleSearch": {}},
    "Gemini tools in snake case": [{"function_declarations": [{**NAMED, "parameters": GEMINI}]}],
    "Gemini with a JSON Schema": {**NAMED, "parametersJsonSchema": SCHEMA},
    "Gemini with a JSON Schema in snake case": {**NAMED, "parameters_json_schema": SCHEMA},
    "bare": {**NAMED, "parameters": SCHEMA},
    "JSON Schema with a title": {"title": "weather", "description": "The weather.", **SCHEMA},
    "JSON Schema with a name": {"name": "weather", "description": "The weather.", **SCHEMA},
    "request": {
        "model": "m",
        "messages": [],
        "tools": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}],
    },
    "Tool": Tool(**NAMED, parameters=SCHEMA),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_definition_form_gives_the_same_tool(form: str) -> None:
    assert list(Toolset(FORMS[form])) == [Tool(**NAMED, parameters=SCHEMA)]


def test_all_definition_forms_can_be_mixed() -> None:
    tools = Toolset(*FORMS.values())
    assert tools.names == ("weather",)
    assert len(tools.clashes) == len(FORMS) - 1 and all(clash.same for clash in tools.clashes)


def test_sdk_objects_are_read_like_their_json() -> None:
    class Listed(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        name: str
        description: str | None = None
        input_schema: dict[str, Any] = Field(alias="inputSchema")

    class Listing(BaseModel):
        tools: list[Listed]

    listing = Listing(tools=[Listed(**NAMED, inputSchema=SCHEMA)])
    assert list(Toolset(listing)) == list(Toolset(listing.tools)) == [Tool(**NAMED, parameters=SCHEMA)]


def test_mcp_fields_beyond_the_parameters_are_kept() -> None:
    tool = to_tool(
        {**NAMED, "inputSchema": SCHEMA, "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    )
    assert tool.read_only and tool.output_schema == {"type": "object"}
    assert not to_tool({**NAMED, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": "yes"}}).read_only


def test_the_response_schema_of_gemini_is_the_output_schema() -> None:
    assert to_tool({**NAMED, "response": {"type": "ARRAY", "items": {"type": "STRING"}}}).output_schema == {
        "type": "array",
        "items": {"type": "string"},
    }
    assert to_tool({**NAMED, "responseJsonSchema": {"type": "array"}}).output_schema == {"type": "array"}


def test_gemini_spellings_are_read() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "ARRAY", "min_items": "2", "items": {"any_of": [{"type": "NUMBER"}, {"type": "NULL"}]}},
            "b": {"type": "TYPE_UNSPECIFIED"},
            "type": {"type": "STRING", "enum": ["STRING"], "maxLength": "9"},
        },
    }
    assert to_tool({"name": "f", "parameters": schema}).parameters["properties"] == {
        "a": {"type": "array", "minItems": 2, "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        "b": {},
        "type": {"type": "string", "enum": ["STRING"], "maxLength": 9},
    }


@pytest.mark.parametrize("definition", [{"type": "custom", "custom": {"name": "sh"}}, {"type": "custom", "name": "sh"}])
def test_a_custom_tool_has_one_text_parameter(definition: Json) -> None:
    tool = to_tool(definition)
    assert (tool.name, list(tool.parameters["properties"])) == ("sh", ["input"])


@pytest.mark.parametrize("definition", [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}])
def test_a_tool_run_by_its_provider_is_rejected_with_the_reason(definition: Json) -> None:
    with pytest.raises(BadTools, match="a tool that its provider runs"):
        to_tool(definition)
    assert Toolset.lenient([definition, FORMS["bare"]]).names == ("weather",)


def test_a_definition_is_copied() -> None:
    schema = json.loads(json.dumps(SCHEMA))
    tool = to_tool({**NAMED, "parameters": schema})
    schema["properties"].clear()
    assert tool.parameters == SCHEMA


EXPECTED: dict[str, Json] = {
    "chat": {"type": "function", "function": {**NAMED, "parameters": SCHEMA}},
    "responses": {"type": "function", **NAMED, "parameters": SCHEMA, "strict": False},
    "messages": {**NAMED, "input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [{**NAMED, "parameters": GEMINI}]},
    "ollama": {"type": "function", "function": {**NAMED, "parameters": SCHEMA}},
    "mcp": {**NAMED, "inputSchema": SCHEMA},
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_plain_tool_is_written_without_additional_keys(provider: Provider) -> None:
    assert to_provider(Tool(**NAMED, parameters=SCHEMA), provider) == [EXPECTED[provider]]


def test_keywords_unknown_to_gemini_are_written_as_json_schema() -> None:
    keywords: list[Json] = [{"additionalProperties": False}, {"$defs": {}}, {"oneOf": [{"type": "object"}]}]
    for keyword in keywords:
        (written,) = to_provider(Tool(name="f", parameters={**SCHEMA, **keyword}), "gemini")
        assert written["functionDeclarations"][0]["parametersJsonSchema"] == {**SCHEMA, **keyword}


def test_a_tool_without_parameters_is_written_in_the_form_of_each_provider() -> None:
    for parameters in ({}, {"type": "object"}, {"type": "object", "properties": {}}):
        tool = Tool(name="f", parameters=parameters)
        assert to_provider(tool, "chat")[0]["function"]["parameters"] == {"type": "object", "properties": {}}
        assert to_provider(tool, "gemini") == [{"functionDeclarations": [{"name": "f", "description": ""}]}]


RICH = Tool(
    name="files.read",
    description="Reads.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    output_schema={"type": "string"},
    aliases={"file": "path"},
    read_only=True,
    compact=True,
)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_fields_without_a_provider_equivalent_survive_as_extensions(provider: Provider) -> None:
    assert list(Toolset(json.loads(json.dumps(to_provider(RICH, provider, extensions=True))))) == [RICH]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_extensions_only_provider_keys_are_written(provider: Provider) -> None:
    written = json.dumps(to_provider(RICH, provider))
    assert "x-" not in written and "_meta" not in written
    assert ("readOnlyHint" in written) is (provider == "mcp")


def test_an_unknown_provider_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(CallerError, match=r"no form of tools 'azure'; there are chat, responses, messages"):
        to_provider([], "azure")
    with pytest.raises(CallerError, match="no form of tools"):
        Toolset().wire_names("azure")


NAMES = [
    ("get_weather", "chat", "get_weather"),
    ("files.read", "chat", "files_read"),
    ("files.read", "mcp", "files.read"),
    ("files.read", "gemini", "files.read"),
    ("a/b:c d", "messages", "a_b_c_d"),
    ("7zip", "gemini", "_7zip"),
    ("7zip", "chat", "7zip"),
    ("-x", "gemini", "_-x"),
    ("größe", "chat", "gr__e"),
    ("x" * 64, "chat", "x" * 64),
    ("x" * 100, "mcp", "x" * 100),
]


@pytest.mark.parametrize("name, provider, wire", NAMES)
def test_a_tool_name_is_converted_to_a_valid_provider_name(name: str, provider: Provider, wire: str) -> None:
    assert wire_names([name], provider) == {name: wire}


def test_a_too_long_name_is_shortened_and_stays_unique() -> None:
    one, other = "x" * 70 + "a", "x" * 70 + "b"
    found = wire_names([one, other], "chat")
    assert all(len(wire) == 64 and wire.startswith("x" * 55 + "_") for wire in found.values())
    assert found[one] != found[other]


def test_names_that_would_collide_are_kept_distinct() -> None:
    found = wire_names(["a.b", "a_b", "a/b"], "chat")
    assert found["a_b"] == "a_b" and len(set(found.values())) == 3
    assert found == wire_names(["a/b", "a.b", "a_b"], "chat")


_NAME_PARTS = st.sampled_from([*"ab._-/ 7", "é", "天", "x" * 40])
_NAMES = st.lists(_NAME_PARTS, min_size=1, max_size=5).map("".join).filter(str.strip)


@given(st.lists(_NAMES, unique=True, max_size=8), st.sampled_from(PROVIDERS), st.randoms())
def test_wire_names_are_valid_distinct_and_reversible(names: list[str], provider: Provider, random: Any) -> None:
    tools = Toolset([Tool(name=name) for name in names])
    forth = tools.wire_names(provider)
    allowed = set(string.ascii_letters + string.digits + "_-" + ("" if provider.startswith(("o", "a")) else ".")) | {
        "."
    }
    for name, wire in forth.items():
        assert set(wire) <= allowed and 0 < len(wire) <= NAME_RULES[provider].longest
        assert provider != "gemini" or wire[0] in string.ascii_letters + "_"
        assert tools.from_wire_name(provider, wire) == name
        assert wire == name or is_wire_name_of(wire, name)
    assert len(set(forth.values())) == len(names)
    random.shuffle(names)
    assert wire_names(names, provider) == forth
    assert tools.scoped(names[:1]).wire_names(provider) == {name: forth[name] for name in names[:1]}


def test_a_hostile_name_cannot_take_the_wire_name_of_another() -> None:
    taken = ["a.b", "a/b"]
    for _ in range(6):
        taken += [wire for wire in wire_names(taken, "chat").values() if wire not in taken]
    found = wire_names(taken, "chat")
    assert len(set(found.values())) == len(taken)


def test_extension_data_cannot_change_the_name_of_a_tool() -> None:
    tool = to_tool({"name": "harmless", "inputSchema": {}, "_meta": {"rightcall/tool": {"name": "bash"}}})
    assert tool.name == "harmless"
    assert to_tool({"name": "f", "input_schema": {}, "x-rightcall": {"name": "delete.all"}}).name == "f"


_KEYS = st.sampled_from(
    ["a", "city", "größe", "天気", "x/y", "a~b", "type", "properties", "$ref", "title", "required", ""]
)
_SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-9, 9**20) | st.sampled_from([0.5, "", "é", "x"])
)
_VALUES = st.recursive(
    _SCALARS, lambda v: st.lists(v, max_size=2) | st.dictionaries(_KEYS, v, max_size=2), max_leaves=4
)
_NOTES = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["", "Where", "größe"]),
        "default": _VALUES,
        "title": st.just("T"),
        "examples": st.lists(_VALUES, max_size=2),
        "x-mine": _VALUES,
        "nullable": st.booleans(),
        "deprecated": st.booleans(),
    },
)
_STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "format": st.sampled_from(["date-time", "email", "enum", "uri"]),
        "pattern": st.sampled_from(["^a", "(?=x)"]),
        "minLength": st.integers(0, 9),
        "enum": st.lists(st.sampled_from(["a", "b", "é"]), min_size=1, max_size=3, unique=True),
    },
)
_SIMPLE: st.SearchStrategy[Json] = st.one_of(
    _STRINGS,
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "number"])}, optional={"minimum": st.integers(-3, 3)}),
    st.fixed_dictionaries({"type": st.lists(st.sampled_from(["string", "null", "integer"]), min_size=1, unique=True)}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/%C3%A9"}]),
    st.fixed_dictionaries({"enum": st.lists(_VALUES, max_size=3)}),
    st.fixed_dictionaries({"const": _VALUES}),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_KEYS, inner, max_size=3)},
        optional={"required": st.lists(_KEYS, unique=True, max_size=2), "additionalProperties": st.booleans() | inner},
    )


def _nested(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    schemas = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _objects(inner),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.integers(0, 3)}),
        st.fixed_dictionaries({"anyOf": schemas}),
        st.fixed_dictionaries({"allOf": schemas}),
        st.fixed_dictionaries({"oneOf": schemas, "not": inner}),
        st.fixed_dictionaries({"type": st.just("array"), "prefixItems": schemas}),
    )


def _noted(schemas: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(lambda schema, notes: {**notes, **schema}, schemas, st.just({}) | _NOTES)


_SCHEMAS = st.recursive(_noted(_SIMPLE), lambda inner: _noted(_nested(inner)), max_leaves=6)
_DEFINITIONS = st.just(
    {"$defs": {"A": {"type": "string"}, "é": {"type": "object", "properties": {"n": {"$ref": "#/$defs/é"}}}}}
)


@st.composite
def _tools(draw: st.DrawFn) -> Tool:
    parameters = draw(_noted(_objects(_SCHEMAS)))
    if "$ref" in json.dumps(parameters) or draw(st.booleans()):
        parameters = {**parameters, **draw(_DEFINITIONS)}
    output = draw(st.none() | _objects(_noted(_SIMPLE).filter(lambda s: "$ref" not in s)) | _STRINGS)
    known = list(parameters["properties"])
    aliases = draw(st.just({}) | st.just({"other": known[0]} if known else {}))
    return Tool(
        name=draw(_NAMES),
        description=draw(st.sampled_from(["", "Does.", "größe\n天"])),
        parameters=parameters,
        output_schema=output,
        aliases=aliases,
        read_only=draw(st.booleans()),
        compact=draw(st.booleans()),
    )


def _text(tool: Tool) -> str:
    return json.dumps(to_json(tool), sort_keys=True)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(tools=st.lists(_tools(), max_size=3, unique_by=lambda tool: tool.name))
def test_conversion_to_a_provider_and_back_is_lossless(provider: Provider, tools: list[Tool]) -> None:
    wire = json.loads(json.dumps(to_provider(tools, provider, extensions=True)))
    assert [_text(tool) for tool in Toolset(wire)] == [_text(tool) for tool in tools]


@pytest.mark.parametrize("provider", PROVIDERS)
@given(tool=_tools())
def test_without_extensions_the_schema_and_the_description_survive(provider: Provider, tool: Tool) -> None:
    tools = Toolset(tool)
    (back,) = Toolset(json.loads(json.dumps(to_provider(tools, provider))))
    assert tools.from_wire_name(provider, back.name) == tool.name
    assert _text(Tool(name="x", parameters=back.parameters)) == _text(Tool(name="x", parameters=tool.parameters))
    assert back.description == tool.description


@given(_SCHEMAS)
def test_the_generator_makes_valid_schemas(schema: Json) -> None:
    check_parameters({"properties": {"x": schema}, "$defs": {"A": {}, "é": {}}})


_GEMINI_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", ["string", "null"], ["null", "string"], ["string"]])},
        optional={
            "nullable": st.booleans(),
            "description": st.just("D"),
            "enum": st.just(["a"]),
            "maxLength": st.just(3),
        },
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(_KEYS, inner, max_size=2)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}, optional={"nullable": st.booleans()}),
    ),
    max_leaves=3,
)


@settings(max_examples=settings().max_examples * 2)
@given(_GEMINI_SCHEMAS)
def test_schemas_in_gemini_notation_read_back_unchanged(schema: Json) -> None:
    tool = Tool(name="f", parameters={"type": "object", "properties": {"x": schema}})
    assert [_text(back) for back in Toolset(to_provider(tool, "gemini"))] == [_text(tool)]


@pytest.mark.parametrize(
    "schema", [{"type": "string", "nullable": True}, {"type": ["null", "string"]}, {"type": "object"}]
)
def test_only_a_spelling_that_gemini_would_change_is_written_as_json_schema(schema: Json) -> None:
    tool = Tool(name="f", parameters={"type": "object", "properties": {"x": schema}})
    (declaration,) = to_provider(tool, "gemini")[0]["functionDeclarations"]
    assert ("parametersJsonSchema" in declaration) is (schema != {"type": "object"})


@pytest.mark.parametrize("provider", ["chat", "responses", "messages", "ollama"])
def test_an_output_schema_is_written_under_both_of_its_keys(provider: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    (written,) = to_provider([Tool(name="f", output_schema=schema)], provider, extensions=True)
    inner = written.get("function", written)
    assert inner["x-output-schema"] == inner["x-harn-output-schema"] == schema
    for name in ("x-output-schema", "x-harn-output-schema"):
        assert to_tool({"name": "f", "parameters": {"type": "object"}, name: schema}).output_schema == schema
