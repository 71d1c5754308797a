"""Law 3 for structural tags, which vLLM and SGLang pass to xgrammar. The judge is an interpreter of tags that shares no
code with their writer: a tag accepts every rendering, and everything it accepts parses as valid calls.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import grammar
from rightcall.constrain import Grammar, Relaxation
from rightcall.constrain.structural_tag import emit_structural_tag_with_limits
from rightcall.formats import FORMATS
from rightcall.types import Json
from support.candidates import damage_calls, draw_reply, find_broken_law, quote_calls
from support.format_sample import sampled
from support.tag_judge import Tag
from test_constrain_laws import left_out

EVERY = pytest.mark.parametrize("name", sampled())
FEW = settings(max_examples=max(settings().max_examples // 6, 1))


def build_judge(tool_grammar: Grammar) -> tuple[Tag, list[Relaxation]]:
    document, limits = emit_structural_tag_with_limits(tool_grammar)
    assert json.loads(json.dumps(document)) == document
    return Tag(document), [*tool_grammar.relaxations, *limits]


@EVERY
@FEW
@given(data=st.data())
def test_a_tag_accepts_every_rendering(name: str, data: st.DataObject) -> None:
    drawn = draw_reply(data, FORMATS[name], left_out, spelled=False)
    judge, _ = build_judge(grammar(drawn.tools, format=name, choice="auto", reasoning=True))
    assert judge.accepts(drawn.text), drawn.text
    judge, _ = build_judge(grammar(drawn.tools, format=name, choice="required", parallel=False))
    assert judge.accepts(drawn.alone), drawn.alone
    assert not judge.accepts("Sure. " + drawn.alone)


@EVERY
@FEW
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_text_accepted_by_a_tag_parses_as_valid_calls(name: str, data: st.DataObject, seed: int) -> None:
    drawn, dice = draw_reply(data, FORMATS[name], left_out, spelled=False), Random(seed)
    parallel = data.draw(st.booleans())
    judge, limits = build_judge(grammar(drawn.tools, format=name, choice="required", parallel=parallel))
    values = {json.dumps(drawn.tools.schema(call.name)): call.arguments for call in drawn.calls}
    texts = [drawn.alone, *damage_calls(drawn, FORMATS[name], dice), *quote_calls(drawn)]
    texts += [judge.draw(dice, lambda schema: some_json(schema, list(values.values()), dice)) for _ in range(4)]
    for text in texts:
        if judge.accepts(text):
            assert find_broken_law(text, FORMATS[name], drawn.tools, limits, calls=True) == ""


def some_json(schema: dict[str, Any], values: list[Any], dice: Random) -> str:
    styles: list[dict[str, Any]] = [{}, {"indent": 1}, {"separators": (",", ":")}]
    return json.dumps(dice.choice(values), **dice.choice(styles))


# -- the part of JSON Schema that xgrammar enforces --------------------------------------------------------------------

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
EXACT: tuple[Json, ...] = (
    *({}, TEXT, {"type": ["integer", "null"]}, {"type": "string", "enum": ["a", "b"]}, {"enum": ["a", 1, None]}),
    *({"const": "a"}, {"anyOf": [TEXT, {"type": "null"}], "default": None}, {"allOf": [TEXT]}, {"type": "array"}),
    {"type": "string", "minLength": 1, "maxLength": 3, "description": "Some text"},
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1.5},
    {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3},
    {"type": "object", "properties": {"a": TEXT, "b": WHOLE}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "additionalProperties": WHOLE},
    {"type": "string", "format": "date"},  # neither asserted nor sent
)
# xgrammar 0.2.8 accepts invalid values of these schemas, rejects valid values, or rejects the schema.
INEXACT: tuple[Json, ...] = (
    *({"minimum": 5}, {"minLength": 3}, {"maxItems": 1}, {"required": ["b"]}, {"minProperties": 1}),
    *({"allOf": [WHOLE, {"minimum": 5}]}, {"type": "integer", "allOf": [{"minimum": 5}]}, {"items": WHOLE}),
    *({"type": "string", "anyOf": [{"minLength": 3}, {"const": "a"}]}, {"type": "integer", "enum": [1, "a"]}),
    *({"type": "object", "properties": {"a": {}}, "required": ["b"]}, {"type": "object", "required": ["b"]}),
    *({"type": "string", "pattern": "b"}, {"type": "string", "pattern": r"^\s$"}, {"enum": [{"a": 1}]}),
    *({"type": "string", "pattern": "^a+$", "minLength": 3}, {"const": [{"a": 1}]}, {"not": {"type": "string"}}),
    {"type": "object", "properties": {"a": WHOLE}, "anyOf": [{"required": ["a"]}, {"minProperties": 1}]},
    {"type": "object", "properties": {"a\nb": WHOLE}, "additionalProperties": True},
    {"type": "object", "properties": {"a": False}},
    {"type": "object", "patternProperties": {"^a": WHOLE}, "additionalProperties": False},
    {"type": "array", "prefixItems": [WHOLE], "items": False},
)


def _content(schema: Json, **options: Any) -> Json:
    """Return the content of the tag of a tool with the argument `x` of this schema."""
    parameters = {"type": "object", "properties": {"x": schema}, "additionalProperties": False}
    tool_grammar = grammar([{"name": "f", "parameters": parameters}], choice="required", **options)
    content: Json = tool_grammar.structural_tag()["format"]["tags"][0]["content"]
    return content


def test_a_schema_is_sent_only_if_the_engine_enforces_all_of_it() -> None:
    assert [schema for schema in EXACT if _content(schema)["type"] != "json_schema"] == []
    assert [schema for schema in INEXACT if _content(schema)["type"] != "grammar"] == []


def test_a_format_is_sent_as_the_grammar_of_its_values() -> None:
    for name in ("date", "email", "uri", "iri"):
        assert _content({"type": "string", "format": name})["json_schema"]["properties"] == {"x": TEXT}
        assert _content({"type": "string", "format": name}, formats=True)["type"] == "grammar"


def test_the_arguments_of_a_tag_are_an_object() -> None:
    for parameters in ({"additionalProperties": True}, {"type": ["object", "null"], "properties": {"a": TEXT}}):
        tool_grammar = grammar(
            [{"type": "function", "function": {"name": "f", "parameters": parameters}}], choice="required"
        )
        assert tool_grammar.structural_tag()["format"]["tags"][0]["content"]["json_schema"]["type"] == "object"
