"""Hostile schemas: each gives a grammar, a relaxation or an error of ours within a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from rightcall import Tool, Toolset, grammar
from rightcall.constrain.gbnf import emit_gbnf_with_limits
from rightcall.errors import CallerError
from rightcall.schema.limits import Refused
from rightcall.types import Json
from support.judge import matcher

SECONDS = 20.0  # limit per schema on a busy machine; a few tenths of a second are normal


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
def test_a_hostile_schema_is_compiled_within_time_and_size_limits(name: str, format: str) -> None:
    parameters = {"type": "object", "properties": {"x": SCHEMAS[name]}, "$defs": DEFS}
    try:
        tools = Toolset([Tool(name="f", parameters=parameters)])
    except Refused:
        return
    start = time.process_time()
    tool_grammar = grammar(tools, format=format, choice="required", isolate="open")
    gbnf, lark = tool_grammar.gbnf(), tool_grammar.lark()
    assert time.process_time() - start < SECONDS
    assert "root ::=" in gbnf and len(gbnf) + len(lark) < 60_000_000


def test_a_huge_bound_is_relaxed_before_the_engine_sees_it() -> None:
    schema = {"type": "integer", "minimum": -BIG}
    tool_grammar = grammar(
        [Tool(name="f", parameters={"type": "object", "properties": {"x": schema}})], choice="required"
    )
    assert [limit.keyword for limit in tool_grammar.relaxations] == ["minimum"]
    assert not matcher(tool_grammar.lark()).is_error()


def test_a_tool_with_a_hostile_name_is_rejected_or_omitted() -> None:
    for name in ("", " ", "a b", "f(x)", "</tool_call>", '"', "\u202e", "x" * 300):
        try:
            tool_grammar = grammar(
                [Tool(name=name, parameters={}), Tool(name="ok", parameters={})], format="qwen3_coder"
            )
        except CallerError:
            continue
        assert name in tool_grammar.omitted and tool_grammar.names == ("ok",)


# -- schemas whose intersections multiply ------------------------------------------------------------------------------


def _cycle(prefix: str, size: int, step: dict[str, Any]) -> dict[str, Any]:
    """Return definitions that refer to each other in a cycle; `step` has the reference to the next one as `NEXT`."""

    def with_reference(value: Any, ref: str) -> Any:
        if isinstance(value, dict):
            return {key: with_reference(item, ref) for key, item in value.items()}
        return (
            [with_reference(item, ref) for item in value]
            if isinstance(value, list)
            else ref
            if value == "NEXT"
            else value
        )

    return {f"{prefix}{at}": with_reference(step, f"#/$defs/{prefix}{(at + 1) % size}") for at in range(size)}


def _meeting_cycles(sizes: tuple[int, ...], step: dict[str, Any]) -> dict[str, Any]:
    names = "abcdef"[: len(sizes)]
    defs: dict[str, Any] = {}
    for name, size in zip(names, sizes, strict=True):
        defs |= _cycle(name, size, step)
    inner = {"allOf": [{"$ref": f"#/$defs/{name}0"} for name in names]}
    return {"type": "object", "properties": {"x": inner}, "$defs": defs}


_LIST = {"type": "object", "properties": {"next": {"$ref": "NEXT"}, "v": {"type": "integer"}}}
_TREE = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {"next": {"$ref": "NEXT"}, "all": {"type": "array", "items": {"$ref": "NEXT"}}},
        },
    ]
}
_WIDE = {f"w{at}": True for at in range(100)}


def _shared_extra(depth: int) -> dict[str, Any]:
    """On every level, the schema of undeclared members applies to a hundred declared ones."""
    if not depth:
        return {"type": "string"}
    extra = {"additionalProperties": _shared_extra(depth - 1)}
    return {"type": "object", "allOf": [{"properties": _WIDE}, extra]}


def _argument(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def _tagged(tags: list[Any], more: int = 0) -> dict[str, Any]:
    """Return an object that one of these constants distinguishes from others."""
    plain = {f"p{at}": {"type": "string"} for at in range(more)}
    return {"type": "object", "properties": {"tag": {"enum": tags}, **plain}, "required": ["tag"]}


def _repeated(schema: dict[str, Any], times: int) -> dict[str, Any]:
    """One schema for each of several arguments."""
    return {"properties": {f"p{at}": {"$ref": "#/$defs/z"} for at in range(times)}, "$defs": {"z": schema}}


_LISTS = [{"type": "array", "items": {"minimum": -at}} for at in range(100)]
_RANGES = [{"type": "integer", "minimum": at * 50, "maximum": at * 50 + 49} for at in range(250)]
_NESTED_TAGS = [
    {"type": "object", "properties": {"v": {"anyOf": [_tagged([f"{i}_{j}"]) for j in range(90)]}}, "required": ["v"]}
    for i in range(60)
]
# Naive comparison would compare these constants and alternatives with each other millions of times.
_COMPARED: dict[str, tuple[str, dict[str, Any]]] = {
    "constants beside ranges": ("enum", _argument({"enum": list(range(40_000)), "anyOf": _RANGES})),
    "alternatives with nested tags": ("oneOf", _argument({"oneOf": _NESTED_TAGS})),
    "a long constant beside alternatives": ("const", _repeated({"const": [0] * 1000, "anyOf": _LISTS}, 60)),
    "long constants beside alternatives": ("enum", _repeated({"enum": [[0] * 500, [1] * 500], "anyOf": _LISTS}, 60)),
    "names that many patterns are matched with": (
        "patternProperties",
        _repeated({"patternProperties": {f"^{at}a": {} for at in range(258)}, "required": [*map(str, range(77))]}, 100),
    ),
    "names matched with the pattern of another schema": (
        "patternProperties",
        _repeated(
            {
                "patternProperties": {f"^({'|'.join(map(str, range(300)))})$": {}},
                "additionalProperties": False,
                "allOf": [{"properties": {f"a{at}": {} for at in range(300)}}],
            },
            90,
        ),
    ),
}

_MULTIPLYING: dict[str, dict[str, Any]] = {
    **{name: schema for name, (_, schema) in _COMPARED.items()},
    "cycles of lengths 2, 3 and 5": _meeting_cycles((2, 3, 5), _LIST),
    "branching cycles of lengths 2, 3 and 5": _meeting_cycles((2, 3, 5), _TREE),
    "four long cycles": _meeting_cycles((7, 11, 13, 17), _LIST),
    "four long branching cycles": _meeting_cycles((7, 11, 13, 17), _TREE),
    "undeclared members of undeclared members": _shared_extra(8),
    "choices of choices": {
        "type": "object",
        "properties": {
            "x": {
                "allOf": [
                    {"anyOf": [{"type": "object", "properties": {f"k{i}{j}": {"type": "string"}}} for j in range(6)]}
                    for i in range(6)
                ]
            }
        },
    },
    "many multiples": {
        "type": "object",
        "properties": {
            "x": {"allOf": [{"anyOf": [{"multipleOf": k / 100}, {"multipleOf": k}]} for k in range(1, 40)]},
        },
    },
}


@pytest.mark.parametrize("name", _MULTIPLYING)
def test_a_multiplying_schema_is_compiled_within_its_budget(name: str) -> None:
    tools = Toolset([{"name": "f", "parameters": _MULTIPLYING[name]}])
    start = time.process_time()
    tool_grammar = grammar(tools, choice="required")
    assert time.process_time() - start < 3
    assert not tool_grammar.omitted


def test_an_exhausted_budget_is_reported_as_a_relaxation() -> None:
    for name in ("four long cycles", "four long branching cycles", "undeclared members of undeclared members"):
        tool_grammar = grammar([{"name": "f", "parameters": _MULTIPLYING[name]}], choice="required")
        assert "size" in {relaxation.keyword for relaxation in tool_grammar.relaxations}, name


_WIDE_LIST: dict[str, Any] = {"type": "object", "properties": {**_WIDE, "next": {"$ref": "NEXT"}}}


def _in_arrays(levels: int) -> dict[str, Any]:
    """Return a step of a cycle with this many arrays around the reference."""
    found: dict[str, Any] = {"$ref": "NEXT"}
    for _ in range(levels):
        found = {"type": "array", "items": found}
    return found


_STEPS: dict[str, dict[str, Any]] = {"list": _LIST, "tree": _TREE, "boxes": _in_arrays(3), "boxed list": _in_arrays(1)}
_DEEP: dict[str, dict[str, Any]] = {
    **{name: schema for name, schema in _MULTIPLYING.items() if "cycles" in name},
    **{
        f"cycles of lengths {sizes}, {name}": _meeting_cycles(sizes, step)
        for sizes in ((3, 5, 13), (3, 5, 7, 4), (2, 3, 5, 7, 11))
        for name, step in _STEPS.items()
    },
    "cycles of wide objects": _meeting_cycles((7, 11), _WIDE_LIST),
}
# An engine compiles rules recursively, and the default stack of a thread is 2 MiB.
_COMPILE = """
import json, sys, threading
from llguidance import LLMatcher, LLTokenizer

def compile_all():
    for lark in json.load(sys.stdin):
        assert not LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(lark), log_level=0).is_error()

threading.stack_size(2 << 20)
thread = threading.Thread(target=compile_all)
thread.start()
thread.join()
"""


def test_an_engine_compiles_the_grammar_of_any_cycles_with_a_small_stack() -> None:
    larks = [grammar([{"name": "f", "parameters": schema}], choice="required").lark() for schema in _DEEP.values()]
    done = subprocess.run([sys.executable, "-c", _COMPILE], input=json.dumps(larks), text=True, capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr[-2000:]


def test_an_intersection_of_cycles_is_exact_within_the_budget() -> None:
    tool_grammar = grammar([{"name": "f", "parameters": _meeting_cycles((2, 3, 5), _LIST)}], choice="required")
    assert not tool_grammar.relaxations


@pytest.mark.parametrize("name", _COMPARED)
def test_comparisons_beyond_the_budget_are_reported_as_a_relaxation(name: str) -> None:
    keyword, schema = _COMPARED[name]
    tool_grammar = grammar([{"name": "f", "parameters": schema}], choice="required")
    assert keyword in {relaxation.keyword for relaxation in tool_grammar.relaxations}


_LONG_NAMES = [f"{at}{chr(65 + at) * 117}" for at in range(30)]


def _declaring(letter: str) -> dict[str, Any]:
    """One of many objects that differ in one declared name."""
    return {"anyOf": [{"properties": {f"{letter}{at}": {}}, "additionalProperties": {}} for at in range(18)]}


def test_undeclared_names_beside_long_declared_ones_are_written_within_a_budget() -> None:
    named: dict[str, Any] = {"properties": {name: {} for name in _LONG_NAMES}, "additionalProperties": {}}
    schema = _argument({"allOf": [named, _declaring("q"), _declaring("r")]})
    made = grammar([{"name": "f", "parameters": schema}], choice="required")
    start = time.process_time()
    text, limits = emit_gbnf_with_limits(made)
    assert time.process_time() - start < 3
    assert len(text) < 20_000_000
    assert "additionalProperties" in {limit.keyword for limit in limits}


def test_alternatives_with_many_tags_are_compared_within_the_budget() -> None:
    tagged = [_tagged([f"{at}_{tag}" for tag in range(200)], more=20) for at in range(64)]
    tool_grammar = grammar([{"name": "f", "parameters": _argument({"oneOf": tagged})}], choice="required")
    assert not tool_grammar.relaxations
