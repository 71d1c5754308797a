"""Grammars of unusual tool definitions: every grammar compiles, and omitted or relaxed parts are reported."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from rightcall import Tool, Toolset, grammar
from rightcall.constrain.builder import GrammarBounds
from rightcall.constrain.json_schema import DIALECTS, project
from rightcall.errors import CallerError
from rightcall.masks import LogitsProcessor, Matcher, Vocabulary
from support.format_sample import sampled
from support.judge import matcher, vocabulary

HALF = "a\ud800b"
EVERY = pytest.mark.parametrize("name", sampled())
GOOD = Tool(name="good", parameters={"type": "object", "properties": {"x": {"type": "integer"}}})


def tool(name: str = "t", *required: str, **properties: Any) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


def compiles(name: str, lark: str) -> bool:
    return not matcher(lark, vocabulary(name)[1]).is_error()


@EVERY
@pytest.mark.parametrize("undeclared", [False, True])
def test_a_lone_surrogate_in_one_tool_does_not_break_the_grammar(name: str, undeclared: bool) -> None:
    tools = [
        tool("named", HALF, **{HALF: {"type": "integer"}}),
        tool("maybe", **{HALF: {"type": "integer"}, "x": {"type": "integer"}}),
        tool("valued", "x", x={"enum": [HALF, "ok"]}),
        tool("only", "x", x={"const": {"deep": [HALF]}}),
        GOOD,
    ]
    built = grammar(tools, format=name, choice="required", undeclared=undeclared)
    assert {"named", "only"} <= set(built.omitted) and "good" not in built.omitted
    assert compiles(name, built.lark())
    built.gbnf().encode()


@EVERY
@pytest.mark.parametrize("parallel", [False, True])
def test_every_format_has_a_structural_tag(name: str, parallel: bool) -> None:
    tag = grammar([GOOD], format=name, choice="required", parallel=parallel).structural_tag()
    assert tag["type"] == "structural_tag" and json.dumps(tag)


def test_an_object_with_thousands_of_members_is_relaxed_and_reported() -> None:
    wide = tool("wide", **{f"p{at}": {"type": "integer"} for at in range(5_000)})
    built = grammar([wide, GOOD], choice="required")
    assert [(limit.tool, limit.keyword) for limit in built.relaxations] == [("wide", "properties")]
    assert compiles("hermes", built.lark())


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "gemma4", "pythonic", "harmony"])
def test_a_tool_whose_arguments_never_end_is_omitted_and_named(name: str) -> None:
    row = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/row"}}
    tools = [
        Tool(name="itself", parameters={"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}),
        Tool(
            name="rows",
            parameters={
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/row"}},
                "required": ["x"],
                "$defs": {"row": row},
            },
        ),
        Tool(
            name="maybe",
            parameters={
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/row"}, "y": {"type": "integer"}},
                "$defs": {"row": row},
            },
        ),
        Tool(name="tree", parameters={"type": "object", "properties": {"x": {"$ref": "#"}}}),
    ]
    built = grammar(tools, format=name, choice="required")
    assert set(built.omitted) == {"itself", "rows"}
    assert not any("_1_" in rule or "_2_" in rule for rule in built.definitions), (
        "no rule of `rows` and `maybe` is left"
    )
    assert compiles(name, built.lark())


REFERRING: dict[str, dict[str, Any]] = {
    "an anchor": {"properties": {"x": {"$ref": "#n"}}, "$defs": {"f": {"$anchor": "n", "type": "integer"}}},
    "definitions": {"properties": {"x": {"$ref": "#/definitions/f"}}, "definitions": {"f": {"type": "integer"}}},
    "a keyword that goes": {
        "properties": {"y": {"oneOf": [{"type": "integer"}]}, "x": {"$ref": "#/properties/y/oneOf/0"}}
    },
    "a name that is taken": {
        "properties": {"x": {"$ref": "#/definitions/f"}},
        "definitions": {"f": {"type": "integer"}},
        "$defs": {"ref_0": {"type": "string"}},
    },
}


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize("case", list(REFERRING))
def test_a_reference_is_resolved_in_every_dialect(case: str, dialect: str) -> None:
    declared = Tool(name="t", parameters={"type": "object", "required": ["x"], **REFERRING[case]})
    schema = grammar([declared], choice="required", parallel=False).json_schema(dialect=dialect)
    validator = jsonschema_rs.Draft202012Validator(schema)
    other = {"y": 1} if "y" in REFERRING[case]["properties"] else {}
    call = schema["properties"]
    assert set(call) == {"name", "arguments"}
    assert validator.is_valid({"name": "t", "arguments": {"x": 3, **other}})
    assert not validator.is_valid({"name": "t", "arguments": {"x": "3", **other}})


def test_a_constant_that_looks_like_a_reference_is_kept() -> None:
    declared = tool("t", x={"const": {"$ref": "#/q"}}, y={"enum": [{"$ref": "#"}]})
    inside = grammar([declared], choice="required").json_schema()["$defs"]["tool_0"]["properties"]
    assert inside == {"x": {"const": {"$ref": "#/q"}}, "y": {"enum": [{"$ref": "#"}]}}


def test_mutually_recursive_schemas_are_cut_for_a_provider_without_recursion() -> None:
    def node(to: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"next": {"$ref": f"#/$defs/{to}"}, "v": {"$ref": "#/$defs/leaf"}}}

    defs = {"a": node("b"), "b": node("c"), "c": node("a"), "leaf": {"type": "integer"}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": defs}
    projected, limits = project(schema, "anthropic", "t")
    assert projected["properties"]["x"] == {"$ref": "#/$defs/a"}
    assert all(projected["$defs"][name]["properties"]["v"] == {"$ref": "#/$defs/leaf"} for name in "abc")
    assert [limit.path for limit in limits] == [f"/$defs/{name}/properties/next/$ref" for name in "abc"]
    assert "empty object" in limits[0].allows


def test_a_long_chain_of_references_does_not_multiply_the_schema() -> None:
    defs: dict[str, Any] = {
        f"d{at}": {"properties": {"a": {"$ref": f"#/definitions/d{at + 1}"}}} for at in range(3_000)
    }
    last = {"type": "integer"}
    schema = {"properties": {"x": {"$ref": "#/definitions/d0"}}, "definitions": {**defs, "d3000": last}}
    for dialect in DIALECTS:
        projected = project(schema, dialect)[0]
        assert last in {**projected.get("definitions", {}), **projected.get("$defs", {})}.values()
        assert len(json.dumps(projected)) < 4 * len(json.dumps(schema))
        jsonschema_rs.Draft202012Validator(projected)  # every reference has a target


def test_a_structural_tag_reports_the_limits_that_it_does_not_enforce() -> None:
    short = tool("t", "x", x={"type": "string", "minLength": 2, "maxLength": 9})
    limits = grammar([short], format="qwen3_coder", choice="required").for_server_with_limits("vllm")[1]
    assert {limit.keyword for limit in limits} == {"minLength", "maxLength"}
    constrained = grammar([short], choice="required", reasoning="required", text=True, bounds=GrammarBounds(string=5))
    limits = constrained.for_server_with_limits("sglang")[1]
    assert {limit.keyword for limit in limits} == {"reasoning", "text", "bounds"}


def test_a_structural_tag_for_any_arguments_has_no_argument_schema() -> None:
    tag = grammar([GOOD], choice="required", arguments="any").structural_tag()
    assert tag["format"]["tags"][0]["content"]["json_schema"] == {"type": "object"}


@pytest.mark.parametrize(
    "options", [{"isolate": "all"}, {"arguments": "none"}, {"whitespace": "much"}, {"bounds": GrammarBounds(string=-1)}]
)
def test_an_unknown_option_value_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(CallerError, match=next(iter(options)).rstrip("s")):
        grammar([GOOD], **options)


def matcher_in_string(words: Vocabulary) -> Matcher:
    string_matcher = Matcher(grammar(Toolset(tool("t", "x", x={"type": "string"})), choice="required"), words)
    string_matcher.accept_text('<tool_call>{"name": "t", "arguments": {"x": "')
    return string_matcher


def test_a_token_without_bytes_is_never_allowed() -> None:
    words = Vocabulary([*(bytes([n]) for n in range(256)), b"", b"", b"</s>"], eos=258)
    string_matcher = matcher_in_string(words)
    assert string_matcher.allows(65) and not string_matcher.allows(256) and not string_matcher.accept(257)
    assert string_matcher.accept_text("<end>") == 5


def test_tokens_and_logits_beyond_the_vocabulary_are_never_allowed() -> None:
    words = Vocabulary.of_bytes()
    logits = LogitsProcessor(matcher_in_string(words))([], [0.0] * 400)
    assert logits[65] == 0.0 and all(value == float("-inf") for value in logits[257:])
    string_matcher = matcher_in_string(words)
    assert not any(string_matcher.allows(token) or string_matcher.accept(token) for token in (-1, 257, 9_999))
