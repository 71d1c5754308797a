"""Registry definitions: how tools are collected and normalized, and how they are written in a provider's form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rightcall.errors import BadTools
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Toolset, list_parameters, to_tool
from rightcall.types import Json

READ: Json = {"name": "read", "description": "Reads.", "parameters": {"path": "Where the file is"}}
SEARCH: Json = {
    "name": "search",
    "parameters": {
        "query": {"type": "string", "description": "What", "examples": ["cats", "dogs"]},
        "limit": {"type": "int", "required": False, "default": 10},
        "mode": {"type": "string", "enum": ["exact", "fuzzy"], "required": True, "example": "exact"},
        "anywhere": {"type": "bool", "required": False},
    },
}


def parameters_of(parameters: Json, **registry: Any) -> Json:
    tools = Toolset({"tools": [{"name": "f", "parameters": parameters}], **registry})
    return next(iter(tools)).parameters


def test_a_registry_is_a_list_or_a_dict_with_a_list_of_tools() -> None:
    assert Toolset([READ, SEARCH]).names == Toolset({"tools": [READ, SEARCH]}).names == ("read", "search")


@pytest.mark.parametrize("source", [3, None, "read", {"other": [READ]}, {}, 1.5])
def test_other_sources_have_no_tools_in_lenient_mode(source: Any) -> None:
    tools = Toolset.lenient(source)
    assert len(tools) == 0 and len(tools.refused) == 1


@pytest.mark.parametrize("source", [3, None, "read", {"other": [READ]}, {}, 1.5])
def test_other_sources_are_an_error_in_strict_mode(source: Any) -> None:
    with pytest.raises(BadTools):
        Toolset(source)


def test_entries_without_a_name_are_skipped_and_reported_in_lenient_mode() -> None:
    tools = Toolset.lenient({"tools": [READ, "text", 3, {"description": "no name"}, {"name": ""}, {"name": 3}, SEARCH]})
    assert tools.names == ("read", "search")
    assert [refusal.path for refusal in tools.refused] == [
        *("/tools/1", "/tools/2", "/tools/3/name", "/tools/4/name", "/tools/5/name")
    ]


def test_parameters_are_a_map_from_name_to_definition() -> None:
    assert set(to_tool(SEARCH).parameters["properties"]) == {"query", "limit", "mode", "anywhere"}


def test_a_parameter_is_required_unless_required_is_false() -> None:
    flags: list[Any] = [True, False, None, 0, "false"]
    schema = parameters_of({f"p{at}": {"type": "string", "required": flag} for at, flag in enumerate(flags)})
    assert schema["required"] == ["p0", "p2", "p3", "p4"]
    assert parameters_of({"a": {"type": "string"}})["required"] == ["a"]


def test_description_type_default_and_examples_of_a_definition_are_kept() -> None:
    properties = to_tool(SEARCH).parameters["properties"]
    assert properties["query"] == {"type": "string", "description": "What", "examples": ["cats", "dogs"]}
    assert properties["limit"] == {"type": "integer", "default": 10}
    assert properties["mode"] == {"type": "string", "enum": ["exact", "fuzzy"], "examples": ["exact"]}


def test_a_definition_that_is_not_a_dict_is_the_description_of_a_required_string() -> None:
    schema = to_tool(READ).parameters
    assert schema["properties"] == {"path": {"type": "string", "description": "Where the file is"}}
    assert schema["required"] == ["path"]


def test_required_parameters_come_first_then_by_name() -> None:
    assert list(to_tool(SEARCH).parameters["properties"]) == ["mode", "query", "anywhere", "limit"]
    assert [param.name for param in list_parameters(to_tool(SEARCH))] == ["mode", "query", "anywhere", "limit"]


@pytest.mark.parametrize("flag, compact", [(True, True), (1, False), ("true", False), (None, False), (False, False)])
def test_a_tool_is_compact_only_if_compact_is_true(flag: Any, compact: bool) -> None:
    assert to_tool({**READ, "compact": flag}).compact is compact


def test_a_reference_is_resolved_against_the_whole_registry() -> None:
    schema = parameters_of({"path": {"$ref": "#/types/FilePath"}}, types={"FilePath": {"type": "str", "minLength": 1}})
    assert schema["properties"]["path"] == {"$ref": "#/$defs/FilePath"}
    assert schema["$defs"] == {"FilePath": {"type": "string", "minLength": 1}}


def test_two_references_with_the_same_last_segment_give_two_types() -> None:
    schema = parameters_of(
        {"a": {"$ref": "#/one/Id"}, "b": {"$ref": "#/two/Id"}}, one={"Id": {"type": "int"}}, two={"Id": {"type": "str"}}
    )
    assert schema["$defs"] == {"Id": {"type": "integer"}, "Id2": {"type": "string"}}
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Id"}, "b": {"$ref": "#/$defs/Id2"}}


def test_a_recursive_type_is_converted() -> None:
    node = {"type": "dict", "properties": {"next": {"$ref": "#/types/Node"}}}
    schema = parameters_of({"node": {"$ref": "#/types/Node"}}, types={"Node": node})
    assert schema["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


def test_a_dangling_reference_is_rejected() -> None:
    with pytest.raises(BadTools, match=r"/tools/0.*points at nothing"):
        parameters_of({"path": {"$ref": "#/types/Gone"}})


def test_a_long_chain_of_references_is_rejected() -> None:
    types = {f"t{at}": {"$ref": f"#/types/t{at + 1}"} for at in range(5000)}
    with pytest.raises(BadTools, match="multiply beyond"):
        parameters_of({"a": {"$ref": "#/types/t0"}}, types={**types, "t5000": {"type": "int"}})


def test_nested_objects_and_lists_of_a_definition_are_normalized() -> None:
    schema = parameters_of(
        {
            "edits": {
                "type": "list",
                "items": {
                    "type": "dict",
                    "properties": {"at": {"type": "int", "required": True}, "text": {"type": "str", "required": False}},
                },
            },
            "where": {"anyOf": ["int", "str"]},
            "what": {"type": "any"},
        }
    )
    assert schema["properties"]["edits"]["items"] == {
        "type": "object",
        "properties": {"at": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["at"],
    }
    assert schema["properties"]["where"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert schema["properties"]["what"] == {}


def test_a_parameter_may_have_the_name_of_a_schema_keyword() -> None:
    for name in ("type", "properties", "title", "description", "required", "items", "enum", "$defs"):
        assert list(parameters_of({name: "Some text"})["properties"]) == [name]
        assert set(parameters_of({name: {"type": "string"}, "other": "text"})["properties"]) == {name, "other"}


def test_an_unknown_type_is_rejected_with_its_path() -> None:
    with pytest.raises(BadTools, match=r"/tools/0/parameters/properties/a/type: 'colour' is no JSON Schema type"):
        parameters_of({"a": {"type": "colour"}})


PROVIDER: Json = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "Does.",
        "parameters": {
            "type": "object",
            "properties": {
                "b": {"type": "string", "description": "B"},
                "a": {"type": "integer", "default": 3, "example": 4},
                "z": "Only a text",
                "c": {},
            },
            "required": ["z", "b"],
        },
    },
}


def test_name_and_description_of_a_provider_tool_are_read_from_both_forms() -> None:
    flat = {**PROVIDER["function"], "input_schema": PROVIDER["function"]["parameters"]}
    del flat["parameters"]
    for definition in (PROVIDER, flat):
        converted = to_tool(definition)
        assert (converted.name, converted.description) == ("f", "Does.")
        assert set(converted.parameters["properties"]) == {"a", "b", "c", "z"}


@pytest.mark.parametrize("name", [None, 3, "", " "])
def test_a_provider_tool_without_a_string_name_is_omitted_in_lenient_mode(name: Any) -> None:
    assert (
        len(Toolset.lenient([{"type": "function", "function": {"name": name}}, {"name": name, "input_schema": {}}]))
        == 0
    )


def test_a_provider_tool_without_a_schema_has_no_parameters() -> None:
    bare = ({"type": "function", "function": {"name": "f"}}, {"name": "f"}, {"type": "function", "name": "f"})
    assert [to_tool(one).parameters for one in bare] == [{"type": "object", "properties": {}}] * 3


def test_parameters_of_a_provider_tool_are_optional_unless_listed_as_required() -> None:
    assert {param.name: param.required for param in list_parameters(to_tool(PROVIDER))} == {
        "b": True,
        "z": True,
        "a": False,
        "c": False,
    }


def test_a_property_that_is_a_string_is_the_description_of_a_string() -> None:
    assert to_tool(PROVIDER).parameters["properties"]["z"] == {"type": "string", "description": "Only a text"}


def test_the_parameters_of_a_provider_tool_are_listed_required_first_then_by_name() -> None:
    listed = list_parameters(to_tool(PROVIDER))
    assert [param.name for param in listed] == ["b", "z", "a", "c"]
    assert [(param.default, param.examples) for param in listed] == [
        *((msgspec.UNSET, ()), (msgspec.UNSET, ())),
        *((3, (4,)), (msgspec.UNSET, ())),
    ]
    assert [param.description for param in listed] == ["B", "Only a text", "", ""]


def test_a_list_of_examples_takes_precedence_over_a_single_one() -> None:
    converted = to_tool({"name": "f", "input_schema": {"properties": {"a": {"examples": [1, 2], "example": 3}}}})
    assert list_parameters(converted)[0].examples == (1, 2)


def test_a_provider_tool_is_never_compact() -> None:
    assert not to_tool({**PROVIDER, "compact": True}).compact
    assert not to_tool({"name": "f", "input_schema": {}, "compact": True}).compact


def test_a_flat_responses_tool_keeps_its_parameters() -> None:
    assert set(to_tool({"type": "function", **PROVIDER["function"]}).parameters["properties"]) == {"a", "b", "c", "z"}


def test_definitions_inside_the_parameters_of_a_provider_tool_resolve() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}}
    assert Toolset({"name": "f", "input_schema": schema}).kinds("f") == {"a": "string"}


def test_a_provider_tool_is_added_to_the_registry_only_if_its_name_is_new() -> None:
    registry = {"tools": [{"name": "f", "description": "ours", "parameters": {}}, READ]}
    tools = Toolset(registry, [PROVIDER, {"name": "g", "input_schema": {}}])
    kept = tools.get("f")
    assert kept is not None and kept.description == "ours"
    assert [(clash.name, clash.kept, clash.dropped) for clash in tools.clashes] == [
        ("f", "bare at /0/tools/0", "chat at /1/0")
    ]


def test_the_merged_names_are_sorted() -> None:
    assert Toolset([SEARCH, PROVIDER], [READ]).names == ("f", "read", "search")


def provider_definitions(tools: Any, provider: Any) -> list[Json]:
    return to_provider(Toolset(tools), provider, extensions=True)


def test_registry_tools_are_written_in_the_form_of_anthropic() -> None:
    assert provider_definitions({"tools": [READ]}, "messages") == [
        {
            "name": "read",
            "description": "Reads.",
            "input_schema": {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Where the file is"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        }
    ]


def test_registry_tools_are_written_in_the_form_of_openai() -> None:
    (definition,) = provider_definitions([READ], "chat")
    assert definition["type"] == "function" and list(definition["function"]) == ["name", "description", "parameters"]


@pytest.mark.parametrize("entry, message", [("text", "tool definition dicts"), (3, "int is no tool")])
def test_writing_an_entry_that_is_not_a_dict_is_an_error(entry: Any, message: str) -> None:
    with pytest.raises(BadTools, match=message) as caught:
        provider_definitions([READ, entry], "chat")
    assert "/1" in str(caught.value)


def test_writing_a_source_that_is_neither_registry_nor_list_is_an_error() -> None:
    with pytest.raises(BadTools, match="a tool registry, or a list"):
        provider_definitions(3, "chat")


def test_an_empty_registry_gives_no_provider_tools() -> None:
    assert (
        provider_definitions({"tools": []}, "chat")
        == provider_definitions({"tools": None}, "messages")
        == provider_definitions([], "gemini")
        == []
    )


@pytest.mark.parametrize("key", ["outputSchema", "output_schema", "x-output-schema"])
def test_the_output_schema_is_written_as_an_extension(key: str) -> None:
    output = {"type": "string"}
    (openai,) = provider_definitions([{**READ, key: output}], "chat")
    (anthropic,) = provider_definitions([{**READ, key: output}], "messages")
    assert openai["function"]["x-output-schema"] == anthropic["x-output-schema"] == output


TYPE_NAMES = {"int": "integer", "integer": "integer", "float": "number", "number": "number", "bool": "boolean"} | {
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
    "str": "string",
    "A path": "string",
    "": "string",
}


@pytest.mark.parametrize("text", TYPE_NAMES)
def test_a_parameter_given_as_a_type_name_has_that_type(text: str) -> None:
    schema = provider_definitions([{"name": "f", "parameters": {"a": text}}], "messages")[0]["input_schema"]
    assert schema["properties"]["a"] == {"type": TYPE_NAMES[text], "description": text}
    assert schema["required"] == ["a"] and schema["additionalProperties"] is False


def test_all_keywords_of_a_definition_are_written() -> None:
    schema = provider_definitions([SEARCH], "chat")[0]["function"]["parameters"]
    assert schema["properties"]["mode"]["enum"] == ["exact", "fuzzy"]
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10}
    assert schema["properties"]["query"]["description"] == "What"
    assert schema["required"] == ["mode", "query"]


def test_aliases_and_read_only_of_a_registry_tool_are_kept() -> None:
    converted = to_tool({**READ, "aliases": {"file": "path"}, "read_only": True})
    assert converted.aliases == {"file": "path"} and converted.read_only


SCHEMAS_WITHOUT_TYPE: tuple[Json, ...] = (
    {"additionalProperties": False},
    {"additionalProperties": {"type": "string"}},
    {"unevaluatedProperties": False},
    {"minProperties": 1},
    {"maxProperties": 0},
    {"required": ["a"]},
    {"not": {"required": ["b"]}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
    {"patternProperties": {"^a": {"type": "integer"}}},
    {"propertyNames": {"pattern": "^a"}},
    {"dependentRequired": {"a": ["b"]}},
    {"dependentSchemas": {"a": {"required": ["b"]}}},
    {"enum": [{"a": 1}]},
    {"const": {"a": 1}},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {}}}}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    {"$comment": "no arguments", "default": {}},
    {"description": "Nothing is needed.", "additionalProperties": False},
)


@pytest.mark.parametrize("schema", SCHEMAS_WITHOUT_TYPE, ids=lambda schema: next(iter(schema)))
def test_a_schema_without_type_and_properties_is_not_a_parameter_map(schema: Json) -> None:
    (bare,) = Toolset([{"name": "f", "parameters": schema}])
    (chat,) = Toolset([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert bare.parameters == chat.parameters == schema


_OPEN: Json = {"additionalProperties": {"type": "string"}}
SCHEMAS_WITH_UNKNOWN_WORDS: tuple[Json, ...] = (
    {**_OPEN, "strict": True},
    {**_OPEN, "id": "urn:a"},
    {**_OPEN, "version": "1.0", "x-order": "a"},
    {**_OPEN, "discriminator": {"propertyName": "kind"}},
    {**_OPEN, "markdownDescription": "Some text", "externalDocs": {"url": "https://example.com"}},
    {"patternProperties": {"^a": {"type": "string"}}, "propertyOrdering": ["a"]},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "errorMessage": "m"},
    {"not": {"required": ["a"]}, "version": "1.0"},
    {"dependentRequired": {"a": ["b"]}, "id": "urn:a"},
    {"minProperties": 1, "id": "urn:a"},
    {"propertyOrdering": ["a"]},
    {"strict": True},
    {"strict": True, "version": 2},
)


@pytest.mark.parametrize("schema", SCHEMAS_WITH_UNKNOWN_WORDS, ids=str)
def test_a_schema_with_a_word_that_json_schema_does_not_know_is_no_map_of_parameters(schema: Json) -> None:
    (bare,) = Toolset([{"name": "f", "parameters": schema}])
    (chat,) = Toolset([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert bare.parameters == chat.parameters


def test_a_flag_beside_parameters_is_no_parameter() -> None:
    assert list(parameters_of({"city": "Where", "strict": True, "version": 2})["properties"]) == ["city"]


@pytest.mark.parametrize("name", ["if", "not", "items", "definitions", "contains", "dependencies"])
def test_a_described_parameter_may_be_called_like_a_keyword_for_schemas(name: str) -> None:
    parameter: Json = {"type": "object", "properties": {"a": "int"}, "description": "Some text"}
    assert list(parameters_of({name: parameter, "other": "Some text"})["properties"]) == [name, "other"]


UNUSUAL_SCHEMAS: tuple[Json, ...] = (
    *({"type": name} for name in ("Object", "OBJECT", "object ", "dict", "map", "dict[str, int]", "object | null")),
    {"type": "Object", "additionalProperties": {"type": "string"}},
    {"type": "dict", "description": "Some text"},
    {"type": "struct", "properties": {"a": "Some text"}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "x-scope": {"read": True}},
    {"title": "Some text", "x-order": 3},
    *({keyword: None} for keyword in ("properties", "required", "additionalProperties", "type", "description")),
    {"properties": None, "required": None, "title": None},
    {"required": None, "minProperties": 1},
)


@pytest.mark.parametrize("schema", UNUSUAL_SCHEMAS, ids=str)
def test_a_schema_in_an_unusual_notation_is_not_a_parameter_map(schema: Json) -> None:
    (bare,) = Toolset([{"name": "f", "parameters": schema}])
    (chat,) = Toolset([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert bare.parameters == chat.parameters


def test_an_unset_keyword_is_not_a_parameter() -> None:
    assert list(parameters_of({"city": "Where", "required": None, "x-order": 3})["properties"]) == ["city"]
