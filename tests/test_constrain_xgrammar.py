"""Grammars as xgrammar itself reads them, in GBNF and as structural tags: over every format it takes what is rendered.
It needs torch: `make train` has both."""

import importlib.util
import json
from functools import cache
from typing import Any

import pytest

from rightcall import CannotCarry, Toolset, grammar, render
from rightcall.formats import FORMATS
from rightcall.types import Call

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


def test_no_escape_reads_on_into_what_follows() -> None:
    """xgrammar takes as many digits behind `\\x` as there are."""
    for name in FORMATS:
        made = grammar(TOOLS, format=name, choice="required")
        assert "\\x" not in made.gbnf() and "\\\\x" not in json.dumps(made.structural_tag()), name


@cache
def compiler() -> Any:
    import xgrammar

    tokens = [bytes([number]) for number in range(256)] + [b"</s>"]
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[256]))


@pytest.mark.skipif(importlib.util.find_spec("xgrammar") is None, reason="needs xgrammar; `make train` has it")
@pytest.mark.parametrize("name", FORMATS)
def test_xgrammar_takes_what_is_rendered(name: str) -> None:
    import xgrammar

    made = grammar(TOOLS, format=name, choice="required")
    compiled = {
        "gbnf": compiler().compile_grammar(xgrammar.Grammar.from_ebnf(made.gbnf())),
        "tag": compiler().compile_structural_tag(json.dumps(made.structural_tag())),
    }
    for call in CALLS:
        try:
            text = render([call], format=name, tools=TOOLS)
        except CannotCarry:
            continue
        for kind, each in compiled.items():
            matcher = xgrammar.GrammarMatcher(each)
            assert matcher.accept_string(text) and matcher.accept_token(256), (kind, text)
