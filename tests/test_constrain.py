"""Grammars: what they accept, what they relax and report, how each engine is configured, and hostile tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import rightcall
from rightcall import Call, Tool, Toolset, grammar, parse, render
from rightcall.constrain import Grammar, GrammarBounds
from rightcall.constrain.algebra import MAX_ANY
from rightcall.constrain.json_schema import project
from rightcall.constrain.server_requests import SERVERS
from rightcall.errors import CallerError, EmptyToolList, GrammarCompileError
from rightcall.masks import LogitsProcessor, Matcher, Vocabulary
from rightcall.types import Json
from support.format_sample import sampled
from support.judge import accepts, matcher

STRING: Json = {"type": "string"}


def tool(name: str = "f", required: tuple[str, ...] = (), /, **properties: Any) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


WEATHER = tool(
    "get_weather",
    ("city",),
    city=STRING,
    days={"type": "integer", "minimum": 1, "maximum": 14},
    unit={"enum": ["c", "f"]},
)
TOOLS = Toolset([WEATHER, tool("ping")])


def grammar_of_argument(schema: Any, **how: Any) -> Grammar:
    """Return the grammar of one call whose only, required argument has this schema."""
    return grammar([tool("f", ("x",), x=schema)], choice="required", parallel=False, **how)


def accepts_value(tool_grammar: Grammar, value: Any, **style: Any) -> bool:
    text = json.dumps({"name": "f", "arguments": {"x": value}}, ensure_ascii=False, **style)
    return accepts(tool_grammar.lark(), f"<tool_call>\n{text}\n</tool_call>")


# -- one grammar for several tools -------------------------------------------------------------------------------------


def test_a_grammar_without_tools_is_an_error() -> None:
    with pytest.raises(EmptyToolList):
        grammar([])


def test_a_grammar_of_one_tool_has_rules() -> None:
    assert grammar([WEATHER]).rules


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_start_rule_has_one_alternative_per_tool(name: str, count: int) -> None:
    tool_grammar = grammar(
        [tool(f"tool_{at}", a=STRING) for at in range(count)], format=name, choice="required", parallel=False
    )
    assert tool_grammar.start == "call"
    assert len([rule for rule in tool_grammar.rules if rule.lhs == tool_grammar.start]) == count


def test_a_printed_grammar_names_its_tools() -> None:
    tool_grammar = grammar(TOOLS, choice="required")
    assert "get_weather" in str(tool_grammar) and "::=" in str(tool_grammar.rules[0])
    assert tool_grammar.names == ("get_weather", "ping") and tool_grammar.triggers == ("<tool_call>",)


def test_grammar_is_a_public_name() -> None:
    assert rightcall.grammar is grammar


def test_compact_json_is_accepted() -> None:
    tool_grammar = grammar(TOOLS, choice="required", parallel=False)
    assert accepts(
        tool_grammar.lark(), '<tool_call>{"name":"get_weather","arguments":{"city":"Oslo","unit":"c"}}</tool_call>'
    )


# -- choices -----------------------------------------------------------------------------------------------------------

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
PING = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
CHOICES: list[tuple[Json, dict[str, bool]]] = [
    (
        {"choice": "auto"},
        {
            "": True,
            "Hello.": True,
            CALL: True,
            "Well.\n" + CALL: True,
            CALL + "\n" + PING: True,
            CALL + " done": True,
            "<tool_call>x": False,
        },
    ),
    ({"choice": "auto", "parallel": False}, {"Hi": True, CALL: True, CALL + "\n" + PING: False}),
    (
        {"choice": "required"},
        {
            "": False,
            "Hello.": False,
            CALL: True,
            CALL + "\n" + PING: True,
            "Well.\n" + CALL: False,
            CALL + " done": False,
        },
    ),
    (
        {"choice": "required", "text": True},
        {"Hello.": False, "Well.\n" + CALL: True, "`" + CALL: False, "```\n" + CALL: False},
    ),
    ({"choice": "ping"}, {PING: True, CALL: False, PING + "\n" + PING: True}),
    ({"choice": "none"}, {"": True, "Hello.": True, CALL: False, "use <tool_call>": False}),
    (
        {"choice": "required", "reasoning": True},
        {CALL: True, "<think>\nHm.\n</think>\n\n" + CALL: True, "<think>Hm.": False},
    ),
    ({"choice": "required", "reasoning": "required"}, {CALL: False, "<think>\nHm.\n</think>\n\n" + CALL: True}),
    ({"choice": "required", "reasoning": "open"}, {CALL: False, "Hm.\n</think>\n\n" + CALL: True}),
    ({"choice": "none", "reasoning": True}, {"<think>a</think>b": True, "b": True}),
]


@pytest.mark.parametrize("how, texts", CHOICES)
def test_a_choice_accepts_only_its_replies(how: Json, texts: dict[str, bool]) -> None:
    lark = grammar(TOOLS, **how).lark()
    assert {text: accepts(lark, text) for text in texts} == texts


def test_a_choice_must_name_a_tool() -> None:
    with pytest.raises(CallerError, match="no_such"):
        grammar(TOOLS, choice="no_such")
    with pytest.raises(CallerError, match="reasoning"):
        grammar(TOOLS, reasoning="much")  # type: ignore[arg-type]


def test_choice_none_needs_no_tools() -> None:
    assert accepts(grammar([], choice="none").lark(), "Hello.")


def test_a_forced_choice_grammar_accepts_only_arguments() -> None:
    tool_grammar = grammar(TOOLS, format="forced_choice", choice="get_weather")
    assert accepts(tool_grammar.lark(), '{"city": "Oslo"}')
    reply = parse('{"city": "Oslo"}', tools=TOOLS, format="forced_choice", choice="get_weather")
    assert [call.name for call in reply.attempts] == ["get_weather"]


def test_arguments_any_accepts_any_arguments_of_a_declared_tool() -> None:
    lark = grammar(TOOLS, choice="required", arguments="any").lark()
    assert accepts(lark, '<tool_call>\n{"name": "ping", "arguments": {"any": [1, {"x": null}]}}\n</tool_call>')
    assert not accepts(lark, '<tool_call>\n{"name": "pong", "arguments": {}}\n</tool_call>')
    tags = grammar(TOOLS, format="qwen3_coder", choice="required", arguments="any").lark()
    assert accepts(tags, "<tool_call>\n<function=ping>\n<parameter=a>\nb\n</parameter>\n</function>\n</tool_call>")


# -- keywords ----------------------------------------------------------------------------------------------------------

TREE: Json = {"$ref": "#/$defs/node"}
NODE: Json = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["v"],
}
_NODE_OF_X = "#/properties/x/$defs/node"
_DEFS_OF_X: Json = {"node": {**NODE, "properties": {"v": {"type": "integer"}, "next": {"$ref": _NODE_OF_X}}}}
KEYWORDS: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("strings", STRING, ["", 'é\n\t"\\/ 日本 👋 \x7f'], [1, None]),
    ("lengths", {"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "👋👋👋", '""'], ["a", "abcd"]),
    ("pattern", {"type": "string", "pattern": '^[a-z"]+$'}, ["a", 'a"b'], ["", "A", "a\n"]),
    ("unanchored pattern", {"type": "string", "pattern": "b+"}, ["abc", "b"], ["ac"]),
    ("pattern and length", {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ["abc"], ["abcd", ""]),
    ("integers", {"type": "integer"}, [0, -7, 10**30], [0.5, 3.0, "1", True]),
    ("integer bounds", {"type": "integer", "minimum": -3, "exclusiveMaximum": 120}, [-3, 0, 119], [-4, 120, 1000]),
    ("numbers", {"type": "number"}, [0, -0.5, 1e-7, 1e300], ["1", None]),
    ("number bounds", {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}, [0.1, 2.5, 1e-7], [0, -1, 2.51]),
    (
        "enum",
        {"enum": ["a", 1, None, [1, {"b": True}], 2.5]},
        ["a", 1, None, [1, {"b": True}], 2.5],
        ["b", 2, [1], {}],
    ),
    ("const", {"const": {"a": 1, "b": [2]}}, [{"a": 1, "b": [2]}, {"b": [2], "a": 1}], [{"a": 1}, {"a": 1, "b": []}]),
    ("enum beside type", {"type": "string", "enum": ["a", 1]}, ["a"], [1]),
    ("type lists", {"type": ["integer", "null", "boolean"]}, [1, None, True], ["a", 0.5]),
    ("nullable", {"type": "string", "nullable": True}, ["a", None], [1]),
    (
        "arrays",
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        [[1], [1, 2]],
        [[], [1, 2, 3], ["a"]],
    ),
    (
        "prefixItems",
        {"type": "array", "prefixItems": [STRING, {"type": "integer"}], "items": False},
        [[], ["a"], ["a", 1]],
        [[1], ["a", 1, 2]],
    ),
    (
        "prefixItems and items",
        {"type": "array", "prefixItems": [STRING], "items": {"type": "null"}, "minItems": 2},
        [["a", None], ["a", None, None]],
        [["a"], [None, None]],
    ),
    (
        "optional members",
        {"type": "object", "properties": {"a": STRING, "b": STRING}},
        [{}, {"a": ""}, {"b": "", "a": ""}],
        [{"c": 1}, {"a": 1}],
    ),
    (
        "required members",
        {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["b"]},
        [{"b": ""}, {"b": "", "a": ""}],
        [{}, {"a": ""}],
    ),
    ("required and not declared", {"type": "object", "required": ["z"]}, [{"z": 1}, {"y": 0, "z": 1}], [{}, {"y": 0}]),
    (
        "additionalProperties",
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": {"type": "integer"}},
        [{"a": "", "b": 1}, {"b": 1}],
        [{"b": ""}, {"a": 1}],
    ),
    (
        "no additionalProperties",
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": False},
        [{}, {"a": ""}],
        [{"b": 1}, {"aa": ""}],
    ),
    (
        "patternProperties",
        {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False},
        [{}, {"x_a": 1}],
        [{"a": 1}, {"x_a": ""}],
    ),
    (
        "counts of members",
        {
            "type": "object",
            "properties": {"a": STRING, "b": STRING, "c": STRING},
            "minProperties": 1,
            "maxProperties": 2,
            "additionalProperties": False,
        },
        [{"a": ""}, {"c": "", "a": ""}],
        [{}, {"a": "", "b": "", "c": ""}],
    ),
    ("anyOf", {"anyOf": [{"type": "integer"}, {"type": "array", "items": STRING}]}, [1, ["a"]], ["a", [1]]),
    ("oneOf", {"oneOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["a"]),
    (
        "told apart by a constant",
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": k}, k: STRING}, "required": ["k"]} for k in ("p", "q")
            ]
        },
        [{"k": "p", "p": ""}],
        [{"k": "p", "q": ""}],
    ),
    (
        "allOf",
        {
            "allOf": [
                {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "integer"}}},
            ]
        },
        [{"a": ""}, {"b": 1, "a": ""}],
        [{}, {"b": 1}],
    ),
    (
        "allOf of bounds",
        {"allOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 5}]},
        [3, 5],
        [2, 6, 3.5],
    ),
    (
        "allOf of a bound and the same bound exclusive",
        {"allOf": [{"type": "number", "minimum": 3}, {"type": "number", "exclusiveMinimum": 3}]},
        [3.5, 4],
        [3, 3.0, 2.5],
    ),
    ("true", True, [1, "a", {"b": [None]}], []),
    ("nothing said", {}, [1, "a", {"b": [None]}], []),
    ("not a type", {"not": {"type": "string"}}, [1, None], ["a"]),
    (
        "unevaluatedProperties",
        {"allOf": [{"type": "object", "properties": {"a": STRING}}], "unevaluatedProperties": False},
        [{"a": ""}],
        [{"b": 1}],
    ),
    (
        "additionalProperties beside allOf",
        {"type": "object", "allOf": [{"properties": {"a": STRING}}], "additionalProperties": {"type": "integer"}},
        [{"z": 1}, {}],
        [{"z": ""}, {"a": ""}],
    ),
    (
        "additionalProperties beside a reference",
        {"$ref": _NODE_OF_X, "additionalProperties": True, "$defs": _DEFS_OF_X},
        [{"v": 1, "z": ""}],
        [{"z": ""}],
    ),
    (
        "additionalProperties beside anyOf",
        {
            "type": "object",
            "anyOf": [{"properties": {name: STRING}, "required": [name]} for name in "ab"],
            "additionalProperties": True,
        },
        [{"a": ""}, {"a": "", "b": ""}, {"a": "", "z": 1}],
        [{}, {"z": 1}, {"a": 1}],
    ),
    (
        "unevaluatedProperties beside alternatives that declare nothing",
        {
            "properties": {"a": {}, "b": {}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"a": 1, "b": 1}, 2],
        [{}, {"a": 1, "z": 1}],
    ),
    (
        "unevaluatedProperties beside constants",
        {"properties": {"a": {}}, "unevaluatedProperties": False, "enum": [{"a": 1}, {"b": 1}, 2]},
        [{"a": 1}, 2],
        [{"b": 1}],
    ),
    (
        "constants beside a recursive schema",
        {
            "$defs": _DEFS_OF_X,
            "$ref": _NODE_OF_X,
            "enum": [1, {"v": 1}, {"v": 1, "next": {"v": 2}}, {"v": 1, "next": {}}],
        },
        [{"v": 1}, {"v": 1, "next": {"v": 2}}],
        [1, {"v": 1, "next": {}}],
    ),
    (
        "constants beside alternatives with a recursive schema",
        {
            "anyOf": [{"type": "null"}, {"$ref": _NODE_OF_X}, {"type": "array", "items": {"$ref": _NODE_OF_X}}],
            "$defs": _DEFS_OF_X,
            "enum": [1, None, {"v": 2}, [{"v": 3}], [{"v": "a"}]],
        },
        [None, {"v": 2}, [{"v": 3}]],
        [1, [{"v": "a"}]],
    ),
    (
        "a constant inside the recursive schema beside it",
        {"properties": {"n": {"$ref": "#/properties/x", "enum": [{"n": 1}, None, {}, {"n": None}]}}},
        [{"n": {}}, {}, {"n": None}, {"n": {"n": None}}],
        [{"n": {"n": 1}}, {"n": 2}],
    ),
]


@pytest.mark.parametrize("name, schema, good, bad", KEYWORDS, ids=[row[0] for row in KEYWORDS])
def test_a_supported_keyword_is_enforced_exactly(name: str, schema: Any, good: list[Any], bad: list[Any]) -> None:
    compiled = grammar_of_argument(schema)
    assert compiled.relaxations == ()
    assert [value for value in good if not accepts_value(compiled, value)] == []
    assert [value for value in bad if accepts_value(compiled, value)] == []


def test_a_recursive_schema_is_enforced() -> None:
    tool_grammar = grammar(
        [
            Tool(
                name="f",
                parameters={"type": "object", "properties": {"x": TREE}, "required": ["x"], "$defs": {"node": NODE}},
            )
        ],
        choice="required",
        parallel=False,
    )
    assert tool_grammar.relaxations == ()
    assert accepts_value(tool_grammar, {"v": 1, "next": {"next": {"v": 3}, "v": 2}}) and not accepts_value(
        tool_grammar, {"v": 1, "next": {"v": "a"}}
    )


@pytest.mark.parametrize("style", [{}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}])
def test_json_is_accepted_in_usual_spellings_with_bounded_white_space(style: Json) -> None:
    tool_grammar = grammar_of_argument({"type": "object"})
    assert accepts_value(tool_grammar, {"a": [1, {"b": None}]}, **style)
    assert not accepts_value(tool_grammar, {"a": [1, {"b": None}]}, indent=60)


def test_whitespace_rendered_accepts_only_rendered_white_space() -> None:
    tool_grammar = grammar_of_argument(STRING, whitespace="rendered")
    assert accepts_value(tool_grammar, "a") and not accepts_value(tool_grammar, "a", separators=(",", ":"))


# -- relaxations -------------------------------------------------------------------------------------------------------

_MANY = {f"k{at}": at for at in range(61)}
RELAXED: list[tuple[str, Any, str]] = [
    ("uniqueItems", {"type": "array", "uniqueItems": True}, "/properties/x/uniqueItems"),
    ("contains", {"type": "array", "contains": STRING}, "/properties/x/contains"),
    ("multipleOf", {"type": "integer", "multipleOf": 5}, "/properties/x/multipleOf"),
    ("not", {"not": {"const": 3}}, "/properties/x/not"),
    ("if", {"if": {"type": "string"}, "then": {"minLength": 1}}, "/properties/x/if"),
    ("dependentRequired", {"type": "object", "dependentRequired": {"a": ["b"]}}, "/properties/x/dependentRequired"),
    ("propertyNames", {"type": "object", "propertyNames": {"maxLength": 3}}, "/properties/x/propertyNames"),
    ("pattern", {"type": "string", "pattern": "^(?:a{999}){999}$"}, "/properties/x/pattern"),
    ("pattern", {"type": "string", "pattern": "^(?!x)"}, "/properties/x/pattern"),
    ("maxLength", {"type": "string", "maxLength": 100_000}, "/properties/x/maxLength"),
    ("minProperties", {"type": "object", "minProperties": 2}, "/properties/x/minProperties"),
    ("oneOf", {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]}, "/properties/x/oneOf"),
    ("const", {"const": [_MANY]}, "/properties/x/const"),
    (
        "maxProperties",
        {"properties": {"a": {}, "b": {}}, "maxProperties": 1, "unevaluatedProperties": True},
        "/properties/x/unevaluatedProperties",
    ),
    (
        "maxProperties",
        {"allOf": [{"properties": {"a": {}}, "maxProperties": 1}, {"additionalProperties": {}}]},
        "/properties/x/allOf",
    ),
    (
        "unevaluatedProperties",
        {"properties": {"a": {}}, "allOf": [{"const": {"b": 1}}], "unevaluatedProperties": False},
        "/properties/x/unevaluatedProperties",
    ),
    (
        "unevaluatedProperties",
        {"allOf": [{"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}], "unevaluatedProperties": False},
        "/properties/x/unevaluatedProperties",
    ),
]


@pytest.mark.parametrize("keyword, schema, path", RELAXED, ids=[f"{row[0]} {at}" for at, row in enumerate(RELAXED)])
def test_an_unsupported_keyword_is_relaxed_and_reported(keyword: str, schema: Any, path: str) -> None:
    tool_grammar = grammar_of_argument(schema)
    found = {(limit.tool, limit.path, limit.keyword) for limit in tool_grammar.relaxations}
    assert ("f", path, keyword) in found
    assert all(limit.allows for limit in tool_grammar.relaxations)
    with pytest.raises(GrammarCompileError, match=keyword):
        grammar_of_argument(schema, strict=True)


@pytest.mark.parametrize("in_reference", [False, True])
def test_members_that_only_a_pattern_declares_are_not_forbidden_as_unevaluated(in_reference: bool) -> None:
    named: Json = {"patternProperties": {"x": True}}
    part: Json = {"oneOf": [named, {"type": "null"}]} if in_reference else named
    made = grammar_of_argument({"type": "object", **part, "unevaluatedProperties": False})
    assert accepts_value(made, {"ax": 1})
    assert "unevaluatedProperties" in {limit.keyword for limit in made.relaxations}


_KIND: Json = {"k": {"enum": ["a", "b"]}}
_COUNT: Json = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
_IF: Json = {"properties": {"k": {"const": "a"}}}
_NOT_DECLARED = {"k": "a", "z": 1}
# Schemas with a member that only some of their parts declare.
DECLARED_IN_A_PART: dict[str, Json] = {
    "then": {"if": _IF, "then": _COUNT},
    "else": {"if": _IF, "else": _COUNT},
    "a reference in then": {"if": _IF, "then": {"$ref": "#/properties/later"}},
    "conditions in allOf": {"allOf": [{"if": _IF, "then": _COUNT}, {"if": _IF, "else": {"properties": {"m": {}}}}]},
    "alternatives in then": {"if": _IF, "then": {"oneOf": [_COUNT, {"properties": {"m": {}}, "required": ["m"]}]}},
    "dependentSchemas": {"dependentSchemas": {"k": _COUNT}},
    "dependentSchemas of an optional member": {"dependentSchemas": {"m": _COUNT}},
    "anyOf with an alternative without keywords": {"anyOf": [_COUNT, {"description": "without"}]},
}


@pytest.mark.parametrize("name", DECLARED_IN_A_PART)
def test_a_member_may_be_written_wherever_a_part_of_the_schema_declares_it(name: str) -> None:
    schema = {"type": "object", "properties": _KIND, "required": ["k"], **DECLARED_IN_A_PART[name]}
    recursive = {"properties": {"n": {"type": "integer"}, "deeper": {"$ref": "#/properties/later"}}}
    made = grammar([tool("f", ("x",), x=schema, later=recursive)], choice="required", parallel=False)
    assert accepts_value(made, {"k": "a", "n": 1}) and not accepts_value(made, _NOT_DECLARED)


def test_a_dependent_schema_of_a_required_member_is_enforced() -> None:
    made = grammar_of_argument(
        {"type": "object", "properties": _KIND, "required": ["k"], "dependentSchemas": {"k": _COUNT}}
    )
    assert not accepts_value(made, {"k": "a"}) and not accepts_value(made, {"k": "a", "n": ""})
    assert not made.relaxations


def test_members_that_only_a_condition_declares_are_not_forbidden_as_unevaluated() -> None:
    parts: list[Json] = [{"properties": {name: {}}} for name in "ab"]
    schema = {"type": "object", "allOf": [{"anyOf": parts}], "unevaluatedProperties": False}
    assert accepts_value(grammar_of_argument(schema, undeclared=True), {"a": 1, "b": 1})


def test_a_tool_without_a_grammar_is_omitted_alone() -> None:
    bad = tool("bad", ("x",), x=False)
    tool_grammar = grammar([bad, WEATHER], choice="required")
    assert list(tool_grammar.omitted) == ["bad"] and tool_grammar.names == ("get_weather",)
    lark = tool_grammar.lark()
    assert accepts(lark, CALL) and not accepts(lark, CALL.replace("get_weather", "bad"))
    opened = grammar([bad, WEATHER], choice="required", isolate="open")
    assert opened.omitted == {} and opened.relaxations[0].tool == "bad"
    assert accepts(opened.lark(), '<tool_call>\n{"name": "bad", "arguments": {"x": 1}}\n</tool_call>')
    with pytest.raises(GrammarCompileError, match="bad"):
        grammar([bad, WEATHER], strict=True)
    with pytest.raises(GrammarCompileError, match="bad"):
        grammar([bad])


def test_a_tool_is_omitted_if_the_format_cannot_name_a_required_argument() -> None:
    odd = tool("odd", ("two words",), **{"two words": STRING})
    assert list(grammar([odd, WEATHER], format="pythonic").omitted) == ["odd"]
    assert grammar([odd, WEATHER], format="hermes").omitted == {}


def test_a_huge_schema_is_bounded_and_reported() -> None:
    wide = {
        "type": "object",
        "properties": {
            f"p{at}": {"type": "object", "properties": {f"q{b}": {"type": "integer"} for b in range(60)}}
            for at in range(400)
        },
    }
    tool_grammar = grammar([Tool(name="f", parameters=wide)], choice="required")
    assert any(limit.keyword == "size" for limit in tool_grammar.relaxations)
    assert not matcher(tool_grammar.lark()).is_error()


def test_a_deep_schema_is_bounded_and_reported() -> None:
    defs = {f"d{at}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{at + 1}"}}} for at in range(60)}
    deep = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d60": STRING}}
    tool_grammar = grammar([Tool(name="f", parameters=deep)], choice="required")
    assert [limit.keyword for limit in tool_grammar.relaxations] == ["depth"]
    assert not matcher(tool_grammar.lark()).is_error()


def test_undeclared_members_are_accepted_on_request() -> None:
    schema = {"type": "object", "properties": {"a": STRING}}
    assert not accepts_value(grammar_of_argument(schema), {"b": 1}) and accepts_value(
        grammar_of_argument(schema, undeclared=True), {"b": 1, "a": ""}
    )
    assert not accepts_value(grammar_of_argument(schema, undeclared=True), {"a": 1})


def test_string_formats_are_enforced_on_request() -> None:
    schema = {"type": "string", "format": "date"}
    assert accepts_value(grammar_of_argument(schema), "soon") and not accepts_value(
        grammar_of_argument(schema, formats=True), "soon"
    )
    assert accepts_value(grammar_of_argument(schema, formats=True), "2024-02-28")


def test_strings_arrays_and_digits_are_bounded_on_request() -> None:
    compiled = grammar_of_argument(
        {"type": "array", "items": {"type": ["string", "integer"]}}, bounds=GrammarBounds(string=3, array=2, digits=4)
    )
    assert accepts_value(compiled, ["abc", 1234]) and accepts_value(compiled, [])
    assert (
        not accepts_value(compiled, ["abcd"])
        and not accepts_value(compiled, [1, 2, 3])
        and not accepts_value(compiled, [12345])
    )
    raw = grammar([tool(x=STRING)], format="qwen3_coder", choice="required", bounds=GrammarBounds(string=5)).lark()
    for size, fits in ((5, True), (6, False)):
        assert (
            accepts(raw, render(Call("f", {"x": "a" * size}, ""), format="qwen3_coder", tools=[tool(x=STRING)])) is fits
        )


def test_a_digit_bound_applies_to_integers_with_a_minimum() -> None:
    tool_grammar = grammar_of_argument({"type": "integer", "minimum": 5}, bounds=GrammarBounds(digits=3))
    assert accepts_value(tool_grammar, 5) and accepts_value(tool_grammar, 999)
    assert not accepts_value(tool_grammar, 4) and not accepts_value(tool_grammar, 1000)


def test_min_items_of_a_schema_overrides_the_array_bound() -> None:
    tool_grammar = grammar_of_argument(
        {"type": "array", "items": {"type": "integer"}, "minItems": 3}, bounds=GrammarBounds(array=2)
    )
    assert accepts_value(tool_grammar, [1, 2, 3])
    assert not accepts_value(tool_grammar, [1, 2]) and not accepts_value(tool_grammar, [1, 2, 3, 4])


def test_members_are_accepted_in_any_order_and_never_twice() -> None:
    names = [f"a{at}" for at in range(12)]
    tool_grammar = grammar_of_argument(
        {"type": "object", "properties": {name: {"type": "null"} for name in names}, "required": names[3:5]}
    )
    assert accepts_value(tool_grammar, dict.fromkeys(reversed(names))) and accepts_value(
        tool_grammar, {"a4": None, "a3": None}
    )
    assert not accepts_value(tool_grammar, {"a4": None})
    repeated_member = '<tool_call>{"name":"f","arguments":{"x":{"a3":null,"a4":null,"a3":null}}}</tool_call>'
    assert not accepts(tool_grammar.lark(), repeated_member)
    assert len(names) > MAX_ANY


# -- hostile tools -----------------------------------------------------------------------------------------------------

EVIL = [
    '"',
    '"}</tool_call>',
    "\\",
    "\n",
    '"\nroot ::= [^x]*\nx ::= "',
    "/",
    "*/ | /.*/",
    "%ignore /./",
    "<|im_end|>",
    "]",
    "{name}",
    "#",
    "</parameter>",
    "'",
    "\u2028",
    "a" * 5000,
    "%llguidance {}",
    "start: /.*/",
]


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "lfm2", "gemma4", "kimi_k3"])
def test_hostile_constants_stay_inside_their_literals(name: str, evil: str) -> None:
    hostile = Tool(
        name="f",
        description=evil,
        parameters={
            "type": "object",
            "description": evil,
            "properties": {"x": {"enum": [evil, "ok"], "title": evil}},
            "required": ["x"],
        },
    )
    tool_grammar = grammar([hostile], format=name, choice="required", parallel=False)
    lark = tool_grammar.lark()
    assert accepts(lark, render(Call("f", {"x": "ok"}, ""), format=name, tools=[hostile]))
    assert not accepts(lark, render(Call("f", {"x": "other"}, ""), format=name, tools=[hostile]))
    assert len(re.findall(r"(?m)^root ::=", tool_grammar.gbnf())) == 1
    assert all("::=" in line for line in tool_grammar.gbnf().splitlines())


@pytest.mark.parametrize("evil", [text for text in EVIL if len(text) < 100])
def test_hostile_names_of_members_stay_inside_their_literals(evil: str) -> None:
    tool_grammar = grammar([tool("f", (evil,), **{evil: {"type": "integer"}})], choice="required", parallel=False)
    text = '<tool_call>\n{"name": "f", "arguments": ' + json.dumps({evil: 1}, ensure_ascii=False) + "}\n</tool_call>"
    assert accepts(tool_grammar.lark(), text) and not accepts(tool_grammar.lark(), text.replace(": 1}", ": true}"))
    assert all("::=" in line for line in tool_grammar.gbnf().splitlines())


def test_an_svg_escapes_text_of_tools() -> None:
    tool_grammar = grammar([tool("f", x={"enum": ["<script>&"]})], choice="required")
    picture = tool_grammar.svg("f")
    assert "<script>" not in picture and "&lt;script&gt;&amp;" in picture
    with pytest.raises(CallerError):
        tool_grammar.svg("g")


# -- engines and servers -----------------------------------------------------------------------------------------------


def test_a_regular_grammar_is_one_regular_expression() -> None:
    tools = [tool("f", ("n",), n={"type": "integer", "minimum": 1, "maximum": 12}, u={"enum": ["c", "f"]})]
    for name in ("hermes", "lfm2", "qwen3_coder"):
        tool_grammar = grammar(tools, format=name, choice="required", parallel=False)
        pattern = re.compile(tool_grammar.regex())
        for arguments, fits in (({"n": 7}, True), ({"u": "c", "n": 12}, True), ({"n": 13}, False), ({"u": "c"}, False)):
            text = render(Call("f", arguments, ""), format=name, tools=tools)
            assert (pattern.fullmatch(text) is not None) is fits, (name, text)


def test_a_grammar_that_is_not_regular_has_no_regular_expression() -> None:
    with pytest.raises(GrammarCompileError, match="recursive"):
        grammar(
            [Tool(name="f", parameters={"type": "object", "properties": {"x": TREE}, "$defs": {"node": NODE}})],
            choice="required",
        ).regex()
    with pytest.raises(GrammarCompileError):
        grammar(TOOLS, choice="auto").regex()


def test_the_json_schema_of_a_grammar_validates_calls() -> None:
    recursive = Tool(name="f", parameters={"type": "object", "properties": {"x": TREE}, "$defs": {"node": NODE}})
    schema = grammar([recursive, WEATHER], choice="required").json_schema()
    judge = jsonschema_rs.Draft202012Validator(schema)
    assert judge.is_valid([{"name": "f", "arguments": {"x": {"v": 1, "next": {"v": 2}}}}])
    assert judge.is_valid([{"name": "get_weather", "arguments": {"city": "Oslo"}}])
    assert not judge.is_valid([{"name": "f", "arguments": {"x": {"v": 1, "next": {"v": "2"}}}}])
    assert not judge.is_valid([{"name": "g", "arguments": {}}]) and not judge.is_valid([])


def test_openai_strict_closes_every_object_and_requires_every_member() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 2},
            "b": {"type": "object", "properties": {"c": {"enum": [1]}}},
        },
        "required": ["a"],
    }
    tool_grammar, limits = project(schema, "openai", "f")
    assert tool_grammar["required"] == ["a", "b"] and tool_grammar["additionalProperties"] is False
    assert (
        tool_grammar["properties"]["b"]["type"] == ["object", "null"]
        and tool_grammar["properties"]["b"]["additionalProperties"] is False
    )
    assert {(limit.path, limit.keyword) for limit in limits} == {
        ("/properties/a/minLength", "minLength"),
        ("/properties/b", "required"),
        ("/properties/b/properties/c", "required"),
    }


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_an_open_object_that_a_provider_closes_is_reported(dialect: str) -> None:
    for free in ({"type": "object"}, {"type": ["object", "null"]}, {"type": "object", "additionalProperties": True}):
        schema = {"type": "object", "properties": {"x": free}, "required": ["x"]}
        tool_grammar, limits = project(schema, dialect, "f")
        assert tool_grammar["properties"]["x"]["additionalProperties"] is False
        assert [(limit.path, limit.keyword) for limit in limits] == [
            ("/properties/x/additionalProperties", "additionalProperties")
        ]


def test_anthropic_strict_relaxes_recursion_and_reports_it() -> None:
    tool_grammar, limits = project(
        {"type": "object", "properties": {"x": TREE}, "$defs": {"node": NODE}}, "anthropic", "f"
    )
    assert "minimum" not in json.dumps(tool_grammar)
    assert any(limit.keyword == "$ref" for limit in limits)


@pytest.mark.parametrize("server", list(SERVERS))
@pytest.mark.parametrize("choice", ["auto", "required", "none", "ping"])
@pytest.mark.parametrize(
    "name", ["hermes", "qwen3_coder", "harmony", "mistral_v3", "kimi_k2", "pythonic", "generic_json"]
)
def test_the_request_fields_of_every_server_are_json(server: Any, choice: str, name: str) -> None:
    tool_grammar = grammar(TOOLS, format=name, choice=choice)
    if (server, choice) == ("ollama", "auto"):
        # Ollama does not support optional calls, and a constraint is never dropped silently.
        with pytest.raises(GrammarCompileError, match="required"):
            tool_grammar.for_server(server)
        return
    fields, limits = tool_grammar.for_server_with_limits(server)
    assert json.loads(json.dumps(fields)) == fields == tool_grammar.for_server(server)
    assert set(tool_grammar.relaxations) <= set(limits)


def test_llama_cpp_gets_a_lazy_grammar_if_calls_are_optional() -> None:
    fields = grammar(TOOLS, choice="auto").for_server("llama.cpp")
    assert fields["grammar_lazy"] is True and fields["grammar_triggers"] == [{"type": 1, "value": "<tool_call>"}]
    assert set(grammar(TOOLS, choice="required").for_server("llama.cpp")) == {"grammar"}
    kimi = grammar(TOOLS, format="kimi_k2").for_server("llama.cpp")
    assert "<|tool_call_begin|>" in kimi["preserved_tokens"]


def test_servers_that_hide_special_tokens_are_told_to_send_them() -> None:
    for server in ("vllm", "sglang"):
        assert grammar(TOOLS, choice="required").for_server(server)["skip_special_tokens"] is False


def test_a_structural_tag_begins_and_ends_with_the_markers_of_the_format() -> None:
    tag = grammar(TOOLS, choice="auto").structural_tag()["format"]
    assert tag["triggers"] == ["<tool_call>"] and len(tag["tags"]) == 2
    assert tag["tags"][0]["begin"] == '<tool_call>\n{"name": "get_weather", "arguments": '
    assert tag["tags"][0]["end"] == "}\n</tool_call>" and tag["tags"][0]["content"]["type"] == "json_schema"
    raw = grammar(TOOLS, format="qwen3_coder", choice="required").structural_tag()["format"]
    assert raw["tags"][0]["content"]["type"] == "grammar" and "root ::=" in raw["tags"][0]["content"]["grammar"]


def test_an_unknown_server_or_dialect_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(CallerError, match="vllm"):
        grammar(TOOLS).for_server("nobody")  # type: ignore[arg-type]
    with pytest.raises(CallerError, match="anthropic"):
        grammar(TOOLS).json_schema(dialect="nobody")


def test_special_tokens_are_written_as_tokens_on_request() -> None:
    tool_grammar = grammar(TOOLS, format="kimi_k2", choice="required")
    assert "<|tool_call_begin|>" in tool_grammar.specials
    assert '"<|tool_call_begin|>' in tool_grammar.lark() and " <|tool_call_begin|> " in tool_grammar.lark(tokens=True)
    assert "<[7]>" in tool_grammar.lark(tokens={"<|tool_call_begin|>": 7}) and "<[7]>" in tool_grammar.gbnf(
        tokens={"<|tool_call_begin|>": 7}
    )
    assert " <|tool_call_begin|> " in tool_grammar.gbnf(tokens=True)


# -- masks -------------------------------------------------------------------------------------------------------------


def test_a_matcher_follows_a_reply_token_by_token() -> None:
    words = Vocabulary.of_bytes()
    follower = Matcher(grammar(TOOLS, choice="required", parallel=False), words)
    assert follower.allows(ord("<")) and not follower.allows(ord("x")) and not follower.may_end
    assert not follower.accept(ord("x")) and not follower.accept(words.eos)
    before = follower.copy()
    assert follower.accept_text(CALL) == len(CALL.encode()) and follower.may_end and follower.accept(words.eos)
    assert not before.may_end and bytes(before.forced()) == b"<tool_call>"
    follower.reset()
    assert not follower.may_end


def test_a_matcher_knows_the_special_tokens_of_its_vocabulary() -> None:
    tool_grammar = grammar(TOOLS, format="kimi_k2", choice="required", parallel=False)
    words = Vocabulary.of_bytes(tool_grammar.specials)
    follower = Matcher(tool_grammar, words)
    assert follower.accept(words.specials["<|tool_calls_section_begin|>"])
    assert not follower.allows(ord("<")) and follower.allows(words.specials["<|tool_call_begin|>"])


@pytest.mark.parametrize("kind", ["list", "numpy"])
def test_a_logits_processor_forces_a_call(kind: str) -> None:
    tool_grammar = grammar([tool("ping")], choice="required", parallel=False, whitespace="rendered")
    words = Vocabulary.of_bytes()
    processor = LogitsProcessor(Matcher(tool_grammar, words))
    tokens = [1, 2, 3]  # prompt
    for _ in range(200):
        logits: Any = [float(-at) for at in range(len(words.tokens))]
        if kind == "numpy":
            logits = pytest.importorskip("numpy").array(logits)
        best = max(range(len(words.tokens)), key=processor(tokens, logits).__getitem__)
        tokens.append(best)
        if best == words.eos:
            break
    assert words.decode(tokens[3:]) == PING
    with pytest.raises(CallerError, match="forbids"):
        LogitsProcessor(Matcher(tool_grammar, words), prompt=0)([ord("x")], [0.0] * len(words.tokens))


def test_a_vocabulary_can_have_tokens_of_several_bytes() -> None:
    tokens = [bytes([n]) for n in range(256)] + [b"<tool_call>", b'{"name"', b""]
    words = Vocabulary(tokens, eos=258)
    follower = Matcher(grammar(TOOLS, choice="required"), words)
    assert follower.allows(256) and follower.accept(256) and follower.allows(257)
    with pytest.raises(CallerError, match="end token"):
        Vocabulary(tokens, eos=999)


# -- documentation -----------------------------------------------------------------------------------------------------

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "grammar.svg"


def draw_grammar() -> str:
    """Draw the picture of docs/constrain.md."""
    shown = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    }
    tool_grammar = grammar([Tool(name="get_weather", parameters=shown)], choice="required", parallel=False)
    return tool_grammar.svg("get_weather")


def test_the_picture_in_the_documentation_matches_the_code() -> None:
    assert PICTURE.read_text("utf-8") == draw_grammar(), "write draw_grammar() to docs/pictures/grammar.svg"
