"""Tools as TypeScript: the table of types, the text of a tool, and hostile schemas."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Tool, Toolset
from rightcall.contracts.typescript import (
    Declarations,
    Literal,
    Primitive,
    TextType,
    Unknown,
    declarations,
    render,
    to_type,
)
from support.made_schemas import HOSTILE, LITERALS, Case, tools

# -- the table ---------------------------------------------------------------------------------------------------------

TYPES: list[tuple[Any, str]] = [
    ({"type": "integer"}, "number"),
    ({"enum": ["a"]}, '"a"'),
    ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
    ({"type": "array"}, "unknown[]"),
    ({"type": ["string", "null"]}, "string | null"),
    ({"type": ["array", "null"]}, "unknown[] | null"),
    ({"type": "string", "nullable": True}, "string | null"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "null"}]}, "string | null"),
    (
        {"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"$ref": "#/x/Id"}]},
        "(string | number) & Id",
    ),
    ({"type": "object"}, "object"),
    ({"type": "object", "properties": {}}, "{}"),
    (
        {
            "type": "object",
            "properties": {"b": {"type": "string"}, "a": {"type": "integer", "description": "n", "default": 3}},
            "required": ["b"],
        },
        "{ b: string /* required */; a?: number /* optional — n — default 3 */ }",
    ),
    ({}, "unknown"),
    (True, "unknown"),
    (5, "unknown"),
    ("int", "number"),
    ({"$ref": "#"}, "unknown"),
]
PRECEDENCE: list[tuple[Any, str]] = [
    ({"const": 3, "enum": [1, 2], "type": "string"}, "3"),
    ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
    ({"enum": []}, "unknown"),
    ({"const": [1, {"a": None}]}, '[1,{"a":null}]'),
    ({"anyOf": [{"type": "string"}, {}]}, "string"),
    ({"anyOf": [{}, {}]}, "unknown"),
    ({"allOf": [{"type": "object"}, {}]}, "object"),
    ({"type": ["string"]}, "string"),
    ({"type": "array", "items": {"allOf": [{"$ref": "#/x/A"}, {"$ref": "#/x/B"}]}}, "(A & B)[]"),
    ({"$ref": "#/a~1b/c~0d"}, "c_d"),
    ({"enum": ["a", "a"]}, '"a"'),
]
COMBINED: list[tuple[str, Any, str]] = [
    ("items of a nullable list", {"type": ["array", "null"], "items": {"type": "string"}}, "string[] | null"),
    (
        "what stands beside a reference",
        {"$ref": "#/x/A", "properties": {"b": {"type": "string"}}},
        "A & { b?: string /* optional */ }",
    ),
    (
        "fields beside a choice that says no type",
        {"properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "{ a?: string /* optional */ }",
    ),
    ("a tuple", {"prefixItems": [{"type": "string"}, {"enum": [1, 2]}], "items": False}, "[string?, (1 | 2)?]"),
    (
        "a tuple that must be whole, and more",
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}, "minItems": 1},
        "[string, ...null[]]",
    ),
    ("an old tuple", {"type": "array", "items": [{"type": "string"}], "additionalItems": False}, "[string?]"),
    ("a map", {"type": "object", "additionalProperties": {"type": "integer"}}, "{ [key: string]: number }"),
    (
        "other keys beside fields",
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        "{ a?: string /* optional */; [key: string]: unknown /* any other: number */ }",
    ),
    (
        "keys by pattern alone",
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
        "{ [key: string]: string }",
    ),
    (
        "a name that is no identifier",
        {"type": "object", "properties": {"a-b": {}, "1": {}}, "required": ["a-b"]},
        '{ "a-b": unknown /* required */; "1"?: unknown /* optional */ }',
    ),
    ("what is required and not described", {"type": "object", "required": ["x"]}, "{ x: unknown /* required */ }"),
    ("a literal of two lines", {"const": 'a\n"b"\\'}, '"a\\n\\"b\\"\\\\"'),
]


@pytest.mark.parametrize(("schema", "text"), TYPES, ids=lambda value: str(value)[:40])
def test_a_schema_has_its_type_of_the_table(schema: Any, text: str) -> None:
    assert render(to_type(schema)) == text


@pytest.mark.parametrize(("schema", "text"), PRECEDENCE, ids=lambda value: str(value)[:40])
def test_keywords_have_the_precedence_of_the_table(schema: Any, text: str) -> None:
    assert render(to_type(schema)) == text


@pytest.mark.parametrize(("what", "schema", "text"), COMBINED, ids=[row[0] for row in COMBINED])
def test_combined_keywords_are_all_in_the_type(what: str, schema: Any, text: str) -> None:
    assert render(to_type(schema)) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("str string", "string"),
        ("int integer long number float double", "number"),
        ("bool boolean", "boolean"),
        ("nil null none", "null"),
        ("dict map", "object"),
        ("list array", "unknown[]"),
        ("any", "any"),
        ("void", "void"),
        ("Whatever", "Whatever"),
    ],
)
def test_a_primitive_type_has_its_typescript_name(names: str, text: str) -> None:
    assert {render(Primitive(name)) for name in names.split()} == {text}


def test_a_primitive_that_is_not_an_identifier_is_unknown() -> None:
    assert render(Primitive("a; type X = 1")) == "unknown"


BOUNDS: list[tuple[Any, str]] = [
    ({"type": "integer", "minimum": 1, "maximum": 10}, "integer, 1 to 10"),
    ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, "more than 0, a multiple of 0.5"),
    ({"type": "number", "maximum": 3, "exclusiveMaximum": True}, "less than 3"),
    ({"type": "string", "minLength": 2, "maxLength": 2}, "exactly 2 characters"),
    ({"type": "string", "format": "date"}, "format date"),
    ({"type": "string", "pattern": "^[A-Z]*/"}, "pattern ^[A-Z]* /"),
    ({"type": "array", "minItems": 1, "uniqueItems": True}, "at least 1 items — unique items"),
    ({"type": "array", "items": {"type": "string", "maxLength": 9}}, "each item: at most 9 characters"),
    ({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}, "format uuid"),
    ({"type": "object", "minProperties": 1}, "at least 1 keys"),
]


@pytest.mark.parametrize(("schema", "note"), BOUNDS, ids=[row[1] for row in BOUNDS])
def test_bounds_and_formats_are_in_the_comment_of_a_field(schema: Any, note: str) -> None:
    text = render(to_type({"type": "object", "properties": {"a": schema}}))
    assert text.endswith(f"/* optional — {note} */ }}")


def test_examples_are_literals_in_the_comment() -> None:
    schema = {"type": "object", "properties": {"a": {"examples": ["x", 2]}, "b": {"example": "y"}}}
    text = render(to_type(schema))
    assert '/* optional — examples "x", 2 */' in text and '/* optional — example "y" */' in text


# -- tools -------------------------------------------------------------------------------------------------------------

RUN = {
    "name": "run",
    "description": "Run a shell command.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "Shell command to execute."}},
        "required": ["command"],
    },
}
EDIT = {
    "name": "edit",
    "description": "Edit a file. Or make one.\n\nCareful.",
    "parameters": {
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "action": {"enum": ["create", "patch", "replace_body"], "description": "What to do"},
            "path": {"type": "string", "examples": ["src/a.py"]},
        },
        "required": ["action", "path"],
    },
}


def test_a_tool_is_a_declared_function() -> None:
    assert declarations(RUN) == (
        "declare function run(args: { command: string /* required — Shell command to execute. */ }): string;\n"
        "/**\n * Run a shell command.\n */\n\n"
    )


def test_a_compact_tool_is_one_line() -> None:
    declared = Declarations(RUN)
    (tool,) = declared.tools
    assert declared.compact(tool) == (
        "- `run({ command: string /* required — Shell command to execute. */ })` — Run a shell command"
    )


def test_a_declaration_has_enums_required_fields_and_examples() -> None:
    text = declarations(EDIT)
    assert 'action: "create" | "patch" | "replace_body" /* required — What to do */; path: string /* required' in text
    assert text.index("path:") < text.index("content?: string") and 'example "src/a.py"' in text
    assert "@param" not in text and " * Careful." in text


def test_a_summary_ends_at_the_first_full_stop_or_line_break() -> None:
    declared = Declarations(EDIT)
    (tool,) = declared.tools
    assert declared.compact(tool).endswith("` — Edit a file")


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    assert declarations({"name": "now"}) == "declare function now(args: {}): string;\n\n"


@pytest.mark.parametrize("name", ["search.docs-v2", "delete", "a b", '"', "*/"])
def test_a_name_that_is_not_an_identifier_is_a_quoted_member(name: str) -> None:
    text = declarations(Tool(name=name, parameters={"type": "object", "properties": {}}))
    assert text == f"interface Tools {{ {json.dumps(name)}(args: {{}}): string; }}\n\n"


# -- shared types ------------------------------------------------------------------------------------------------------


def with_defs(name: str, ref: str, **defs: Any) -> Tool:
    schema = {"type": "object", "properties": {"x": {"$ref": ref}}, "$defs": defs}
    return Tool(name=name, parameters=schema)


CITY = {"type": "object", "properties": {"name": {"type": "string"}}}
TOWN = {"type": "object", "properties": {"mayor": {"type": "string"}}}


def aliases(*tools: Tool) -> list[str]:
    return Declarations(Toolset(list(tools))).alias_lines()


def test_a_reference_into_the_parameters_is_a_shared_type() -> None:
    text = declarations(with_defs("f", "#/$defs/FilePath", FilePath={"type": "string", "format": "uri"}))
    assert text.startswith("type FilePath = string /* format uri */;\n\n")
    assert "x?: FilePath /* optional */" in text


def test_a_type_that_two_tools_share_is_emitted_once() -> None:
    one, two = with_defs("f", "#/$defs/City", City=CITY), with_defs("g", "#/$defs/City", City=dict(CITY))
    assert aliases(one, two) == ["type City = { name?: string /* optional */ };"]


def test_different_types_of_the_same_name_are_both_declared() -> None:
    tools = [with_defs("f", "#/$defs/City", City=CITY), with_defs("g", "#/$defs/City", City=TOWN)]
    tools.append(with_defs("h", "#/$defs/City", City=dict(TOWN)))
    declared = Declarations(Toolset(tools))
    assert declared.alias_lines() == [
        "type City = { name?: string /* optional */ };",
        "type City2 = { mayor?: string /* optional */ };",
    ]
    assert ["City2" in declared.full(tool) for tool in tools] == [False, True, True]


def test_types_that_differ_only_in_their_references_are_both_declared() -> None:
    place = {"type": "object", "properties": {"in": {"$ref": "#/$defs/City"}}}
    one = with_defs("f", "#/$defs/Place", Place=place, City=CITY)
    two = with_defs("g", "#/$defs/Place", Place=place, City=TOWN)
    assert [line.split()[1] for line in aliases(one, two)] == ["City", "Place", "City2", "Place2"]


def test_two_pointers_with_the_same_last_step_do_not_collide() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x/properties/Id"}, "b": {"$ref": "#/$defs/y/properties/Id"}},
        "$defs": {
            "x": {"properties": {"Id": {"type": "string"}}},
            "y": {"properties": {"Id": {"type": "integer"}}},
        },
    }
    assert aliases(Tool(name="f", parameters=schema)) == ["type Id = string;", "type Id2 = number;"]


def test_a_recursive_type_refers_to_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert aliases(with_defs("f", "#/$defs/Node", Node=node)) == ["type Node = { next?: Node /* optional */ };"]


def test_recursive_arguments_are_a_declared_type() -> None:
    schema = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    text = declarations(Tool(name="f", parameters=schema))
    assert text.startswith("type Arguments = { child?: Arguments /* optional */ };\n")


@pytest.mark.parametrize(
    ("step", "name"), [("a b", "a_b"), ("string", "string_"), ("1st", "_1st"), ("größe", "gr_e"), ("~1", "_")]
)
def test_the_name_of_a_type_is_an_identifier(step: str, name: str) -> None:
    key = step.replace("~1", "/")
    (line,) = aliases(with_defs("f", f"#/$defs/{step}", **{key: {"type": "string"}}))
    assert line == f"type {name} = string;"


def test_a_long_chain_of_types_is_declared_quickly() -> None:
    count = 2_000
    defs: dict[str, Any] = {
        f"T{at}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/T{at + 1}"}}} for at in range(count)
    }
    defs[f"T{count}"] = {"type": "string"}
    start = time.process_time()
    found = aliases(with_defs("f", "#/$defs/T0", **defs), with_defs("g", "#/$defs/T0", **defs))
    assert len(found) in (count + 1, 2 * (count + 1))
    assert time.process_time() - start < 30


# -- hostile text ------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/', re.DOTALL)
SKELETON = re.compile(r"[\w$ \n{}\[\]()|&;:?.,=+-]*")
PAIRS = {"{": "}", "[": "]", "(": ")"}


def without_literals(text: str) -> str:
    """Return the text without its strings and comments."""
    return TOKEN.sub("", text)


def has_balanced_brackets(text: str) -> bool:
    waiting: list[str] = []
    for char in text:
        if char in PAIRS:
            waiting.append(PAIRS[char])
        elif char in PAIRS.values() and (not waiting or waiting.pop() != char):
            return False
    return not waiting


@given(tools())
def test_no_schema_breaks_out_of_its_declaration(case: Case) -> None:
    text = declarations(case.tool)
    bare = without_literals(text)
    assert SKELETON.fullmatch(bare) and has_balanced_brackets(bare)
    assert bare.count("declare function") + bare.count("interface Tools") == 1
    assert bare.count("(args: ") == 1 and len(re.findall(r"^type ", bare, re.MULTILINE)) <= 1
    assert "<tool_call" not in text and "<|" not in text and "<done" not in text
    text.encode()


@given(HOSTILE)
def test_a_compact_tool_is_one_line_for_every_description(description: str) -> None:
    declared = Declarations(Tool(name="f", description=description, parameters={"type": "object", "properties": {}}))
    (tool,) = declared.tools
    assert len(declared.compact(tool).splitlines()) == 1


@given(LITERALS)
def test_a_literal_has_the_same_value_as_json(value: Any) -> None:
    assert repr(json.loads(render(Literal(value)))) == repr(value)


@given(st.recursive(st.sampled_from([{}, {"$ref": "#"}]), lambda inner: st.lists(inner, max_size=3), max_leaves=10))
def test_an_arbitrary_schema_has_a_type(schema: Any) -> None:
    assert isinstance(render(to_type(schema)), str)


def test_a_comment_end_inside_a_comment_is_split() -> None:
    assert TextType(Declarations(RUN).text.escaper).comment(["**/ and */"]) == "/* ** / and * / */"
    assert render(Unknown()) == "unknown"
