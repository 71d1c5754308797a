"""Grammars in GBNF and as structural tags, compiled by xgrammar itself: it accepts the renderings of every format.
These tests need torch: `make train` installs both.
"""

import importlib.util
import json
from functools import cache
from typing import Any

import pytest

from rightcall import CannotCarry, Toolset, check, grammar, render
from rightcall.constrain.structural_tag import emit_structural_tag_with_limits
from rightcall.formats import FORMATS
from rightcall.types import Call
from test_constrain_tag import EXACT, INEXACT

TEXT: dict[str, Any] = {"type": "string"}
PLACE = {"properties": {"city": TEXT, "days": {"type": "integer"}}, "required": ["city"]}
NOTE = {"properties": {"text": TEXT, "tags": {"type": "array", "items": TEXT}}}
TOOLS = Toolset(
    [
        {"name": "get_weather", "description": "Weather", "parameters": {"type": "object", **PLACE}},
        {"name": "take_note", "description": "Note", "parameters": {"type": "object", **NOTE}},
    ]
)
CALLS = (
    Call("get_weather", {"city": "Oslo", "days": 3}, ""),
    Call("take_note", {"text": 'feed\bback\f, \\ and "quotes"\n\té', "tags": ["abc", "E-F"]}, ""),
)


def test_grammars_contain_no_hexadecimal_escapes() -> None:
    """xgrammar reads all hexadecimal digits after `\\x`, however many there are."""
    for name in FORMATS:
        tool_grammar = grammar(TOOLS, format=name, choice="required")
        assert "\\x" not in tool_grammar.gbnf() and "\\\\x" not in json.dumps(tool_grammar.structural_tag()), name


@cache
def compiler() -> Any:
    import xgrammar

    tokens = [bytes([number]) for number in range(256)] + [b"</s>"]
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[256]))


@pytest.mark.skipif(importlib.util.find_spec("xgrammar") is None, reason="needs xgrammar; `make train` has it")
@pytest.mark.parametrize("name", FORMATS)
def test_xgrammar_accepts_renderings_of_every_format(name: str) -> None:
    import xgrammar

    tool_grammar = grammar(TOOLS, format=name, choice="required")
    compiled = {
        "gbnf": compiler().compile_grammar(xgrammar.Grammar.from_ebnf(tool_grammar.gbnf())),
        "tag": compiler().compile_structural_tag(json.dumps(tool_grammar.structural_tag())),
    }
    for call in CALLS:
        try:
            text = render([call], format=name, tools=TOOLS)
        except CannotCarry:
            continue
        for kind, each in compiled.items():
            matcher = xgrammar.GrammarMatcher(each)
            assert matcher.accept_string(text) and matcher.accept_token(256), (kind, text)


_VALUES: tuple[Any, ...] = (
    *(
        "",
        "a",
        "b",
        "ab",
        "xbx",
        "aaa",
        " ",
        "\u00a0",
        "2024-01-01",
        0,
        1,
        4,
        7,
        1.25,
        -0.5,
        True,
        None,
        [],
        [1],
        ["a"],
    ),
    *([1, 2], [[1]], {}, {"a": 1}, {"a": "b"}, {"b": 1}, {"a": "b", "b": 1}, {"a\nb": 1}, {"a\nb": "1"}, [{"a": 1}]),
)


@pytest.mark.skipif(importlib.util.find_spec("xgrammar") is None, reason="needs xgrammar; `make train` has it")
@pytest.mark.parametrize("schema", [*EXACT, *INEXACT], ids=str)
def test_xgrammar_accepts_valid_arguments_and_no_others(schema: Any) -> None:
    import xgrammar

    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    tools = Toolset([{"name": "f", "parameters": parameters}])
    tool_grammar = grammar(tools, choice="required", parallel=False, undeclared=True)
    tag, limits = emit_structural_tag_with_limits(tool_grammar)
    compiled = compiler().compile_structural_tag(json.dumps(tag))
    closed = _contains_objects(schema) and tag["format"]["tags"][0]["content"]["type"] == "json_schema"
    for value in _VALUES:
        call = Call("f", {"x": value})
        matcher = xgrammar.GrammarMatcher(compiled)
        accepted = matcher.accept_string(render(call, format="hermes", tools=tools)) and matcher.accept_token(256)
        valid = not check(call, tools)
        assert accepted or not valid or (closed and isinstance(value, dict)), value
        assert valid or not accepted or tool_grammar.relaxations or limits, value


def _contains_objects(schema: Any) -> bool:
    """Return whether a schema declares members; xgrammar then rejects others unless the schema allows them."""
    return "properties" in schema and "additionalProperties" not in schema
