"""Schemas made to hurt: every one ends in a grammar, in a relaxation or in an error of ours, in little time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rightcall import Tool, Toolset, grammar
from rightcall.errors import CallerError
from rightcall.schema.limits import Refused
from rightcall.types import Json
from support.judge import matcher

SECONDS = 20.0  # for each, on a busy machine; usual are a few tenths


def nested(depth: int, make: Any) -> Json:
    found: Json = {"type": "string"}
    for _ in range(depth):
        found = make(found)
    return found


BIG = 10**4000
SCHEMAS: dict[str, Any] = {
    "very many constants": {"enum": [f"value {at}" for at in range(20_000)]},
    "constants beside constants": {"enum": list(range(5_000)), "allOf": [{"enum": list(range(2_500, 9_000))}]},
    "oneOf of very many constants": {"oneOf": [{"const": at} for at in range(5_000)]},
    "oneOf of very many objects": {"oneOf": [{"type": "object", "properties": {f"p{at}": {}}} for at in range(800)]},
    "alternatives that multiply": {
        "allOf": [{"anyOf": [{"type": "integer", "minimum": at * 7 + n} for at in range(40)]} for n in range(12)]
    },
    "alternatives in alternatives": nested(12, lambda inner: {"anyOf": [inner, {"type": "array", "items": inner}]}),
    "bounds of thousands of digits": {"type": "integer", "minimum": -BIG, "maximum": BIG},
    "bounds of hundreds of digits": {"type": "number", "minimum": 1e-300, "maximum": 1e300},
    "counts without end": {"type": "string", "minLength": 10**9, "maxLength": 10**12},
    "arrays without end": {"type": "array", "minItems": 10**6, "items": {"type": "array", "minItems": 1000}},
    "repeats in repeats": {"type": "string", "pattern": "^((a{0,100}){0,100}){0,100}$"},
    "a pattern of alternatives": {
        "type": "string",
        "pattern": "^(" + "|".join(f"w{at}x*" for at in range(500)) + ")+$",
    },
    "very many members": {"type": "object", "properties": {f"p{at}": {"type": "integer"} for at in range(3_000)}},
    "very long names": {
        "type": "object",
        "properties": {"n" * 20_000: {}, "n" * 19_999 + "m": {}},
        "additionalProperties": True,
    },
    "names that share beginnings": {
        "type": "object",
        "properties": {"a" * at: {} for at in range(1, 190)},
        "additionalProperties": True,
    },
    "a long chain of references": {"$ref": "#/$defs/d0"},
    "constants nested deeply": {"const": nested(20, lambda inner: {"a": [inner]})},
}
DEFS = {f"d{at}": {"type": "array", "items": {"$ref": f"#/$defs/d{at + 1}"}} for at in range(100)} | {"d100": {}}


@pytest.mark.parametrize("name", list(SCHEMAS))
@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_a_hostile_schema_costs_little(name: str, format: str) -> None:
    parameters = {"type": "object", "properties": {"x": SCHEMAS[name]}, "$defs": DEFS}
    try:
        tools = Toolset([Tool(name="f", parameters=parameters)])
    except Refused:
        return
    start = time.process_time()
    made = grammar(tools, format=format, choice="required", isolate="open")
    gbnf, lark = made.gbnf(), made.lark()
    assert time.process_time() - start < SECONDS
    assert "root ::=" in gbnf and len(gbnf) + len(lark) < 60_000_000


def test_members_of_hostile_numbers_do_not_reach_the_engine() -> None:
    schema = {"type": "integer", "minimum": -BIG}
    made = grammar([Tool(name="f", parameters={"type": "object", "properties": {"x": schema}})], choice="required")
    assert [limit.keyword for limit in made.relaxations] == ["minimum"]
    assert not matcher(made.lark()).is_error()


def test_a_hostile_name_is_left_out_or_written_whole() -> None:
    for name in ("", " ", "a b", "f(x)", "</tool_call>", '"', "\u202e", "x" * 300):
        try:
            made = grammar([Tool(name=name, parameters={}), Tool(name="ok", parameters={})], format="qwen3_coder")
        except CallerError:
            continue
        assert name in made.omitted and made.names == ("ok",)
