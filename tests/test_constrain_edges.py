"""Where a grammar meets what nobody should declare, and what engines leave open: nothing breaks, all of it is said."""

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
def test_half_a_character_in_one_tool_breaks_no_grammar(name: str, undeclared: bool) -> None:
    tools = [
        tool("named", HALF, **{HALF: {"type": "integer"}}),
        tool("maybe", **{HALF: {"type": "integer"}, "x": {"type": "integer"}}),
        tool("valued", "x", x={"enum": [HALF, "ok"]}),
        tool("only", "x", x={"const": {"deep": [HALF]}}),
        GOOD,
    ]
    made = grammar(tools, format=name, choice="required", undeclared=undeclared)
    assert {"named", "only"} <= set(made.omitted) and "good" not in made.omitted
    assert compiles(name, made.lark())
    made.gbnf().encode()


@EVERY
@pytest.mark.parametrize("parallel", [False, True])
def test_every_format_has_a_structural_tag(name: str, parallel: bool) -> None:
    tag = grammar([GOOD], format=name, choice="required", parallel=parallel).structural_tag()
    assert tag["type"] == "structural_tag" and json.dumps(tag)


def test_an_object_with_thousands_of_members_is_relaxed_and_reported() -> None:
    wide = tool("wide", **{f"p{at}": {"type": "integer"} for at in range(5_000)})
    made = grammar([wide, GOOD], choice="required")
    assert [(limit.tool, limit.keyword) for limit in made.relaxations] == [("wide", "properties")]
    assert compiles("hermes", made.lark())


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "gemma4", "pythonic", "harmony"])
def test_a_tool_whose_arguments_would_never_end_is_left_out_and_named(name: str) -> None:
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
    made = grammar(tools, format=name, choice="required")
    assert set(made.omitted) == {"itself", "rows"}
    assert not any("_1_" in rule or "_2_" in rule for rule in made.definitions), "no rule of `rows` and `maybe` is left"
    assert compiles(name, made.lark())


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
def test_what_is_referred_to_is_found_in_every_dialect(case: str, dialect: str) -> None:
    declared = Tool(name="t", parameters={"type": "object", "required": ["x"], **REFERRING[case]})
    schema = grammar([declared], choice="required", parallel=False).json_schema(dialect=dialect)
    validator = jsonschema_rs.Draft202012Validator(schema)
    other = {"y": 1} if "y" in REFERRING[case]["properties"] else {}
    call = schema["properties"]
    assert set(call) == {"name", "arguments"}
    assert validator.is_valid({"name": "t", "arguments": {"x": 3, **other}})
    assert not validator.is_valid({"name": "t", "arguments": {"x": "3", **other}})


def test_a_constant_that_looks_like_a_reference_stays_as_it_is() -> None:
    declared = tool("t", x={"const": {"$ref": "#/q"}}, y={"enum": [{"$ref": "#"}]})
    inside = grammar([declared], choice="required").json_schema()["$defs"]["tool_0"]["properties"]
    assert inside == {"x": {"const": {"$ref": "#/q"}}, "y": {"enum": [{"$ref": "#"}]}}


def test_schemas_that_are_part_of_each_other_are_cut_where_a_provider_takes_none() -> None:
    def node(to: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"next": {"$ref": f"#/$defs/{to}"}, "v": {"$ref": "#/$defs/leaf"}}}

    defs = {"a": node("b"), "b": node("c"), "c": node("a"), "leaf": {"type": "integer"}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": defs}
    made, limits = project(schema, "anthropic", "t")
    assert made["properties"]["x"] == {"$ref": "#/$defs/a"}
    assert all(made["$defs"][name]["properties"]["v"] == {"$ref": "#/$defs/leaf"} for name in "abc")
    assert [limit.path for limit in limits] == [f"/$defs/{name}/properties/next/$ref" for name in "abc"]
    assert "empty object" in limits[0].allows


def test_a_long_chain_of_references_costs_little() -> None:
    defs: dict[str, Any] = {
        f"d{at}": {"properties": {"a": {"$ref": f"#/definitions/d{at + 1}"}}} for at in range(3_000)
    }
    last = {"type": "integer"}
    schema = {"properties": {"x": {"$ref": "#/definitions/d0"}}, "definitions": {**defs, "d3000": last}}
    for dialect in DIALECTS:
        made = project(schema, dialect)[0]
        assert last in {**made.get("definitions", {}), **made.get("$defs", {})}.values()
        assert len(json.dumps(made)) < 4 * len(json.dumps(schema))
        jsonschema_rs.Draft202012Validator(made)  # every reference leads somewhere


def test_a_structural_tag_says_what_it_does_not_enforce() -> None:
    short = tool("t", "x", x={"type": "string", "minLength": 2, "maxLength": 9})
    said = grammar([short], format="qwen3_coder", choice="required").for_server_with_limits("vllm")[1]
    assert {limit.keyword for limit in said} == {"minLength", "maxLength"}
    asked = grammar([short], choice="required", reasoning="required", text=True, bounds=GrammarBounds(string=5))
    said = asked.for_server_with_limits("sglang")[1]
    assert {limit.keyword for limit in said} == {"reasoning", "text", "bounds"}


def test_a_structural_tag_for_any_arguments_has_no_schema_of_them() -> None:
    made = grammar([GOOD], choice="required", arguments="any").structural_tag()
    assert made["format"]["tags"][0]["content"]["json_schema"] == {"type": "object"}


@pytest.mark.parametrize(
    "options", [{"isolate": "all"}, {"arguments": "none"}, {"whitespace": "much"}, {"bounds": GrammarBounds(string=-1)}]
)
def test_an_option_that_is_none_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(CallerError, match=next(iter(options)).rstrip("s")):
        grammar([GOOD], **options)


def inside_a_string(words: Vocabulary) -> Matcher:
    found = Matcher(grammar(Toolset(tool("t", "x", x={"type": "string"})), choice="required"), words)
    found.accept_text('<tool_call>{"name": "t", "arguments": {"x": "')
    return found


def test_a_token_without_bytes_is_never_allowed() -> None:
    words = Vocabulary([*(bytes([n]) for n in range(256)), b"", b"", b"</s>"], eos=258)
    found = inside_a_string(words)
    assert found.allows(65) and not found.allows(256) and not found.accept(257)
    assert found.accept_text("<end>") == 5


def test_logits_and_tokens_beyond_the_vocabulary_are_never_allowed() -> None:
    words = Vocabulary.of_bytes()
    logits = LogitsProcessor(inside_a_string(words))([], [0.0] * 400)
    assert logits[65] == 0.0 and all(value == float("-inf") for value in logits[257:])
    found = inside_a_string(words)
    assert not any(found.allows(token) or found.accept(token) for token in (-1, 257, 9_999))
