"""A body kind is one file and one line of `BODIES`. A kind that rightcall does not have is parsed, streamed, rendered,
constrained and checked against the laws like any other.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rightcall import Call, Parser, Text, Toolset, check, grammar, parse, render
from rightcall.constrain.call_bodies import CALL_GRAMMARS
from rightcall.errors import BadFormat
from rightcall.formats.body_kinds import BODIES, BodyKind
from rightcall.formats.spec import Body, Format
from rightcall.parsing.bodies import READERS
from rightcall.testing.laws import check_format
from support.ebnf import Ebnf
from support.generated import comparable_parts
from support.pairs_kind import Pairs, PairsKind, PairsReader, pairs_grammar
from support.tag_judge import Tag

FORMAT = Format("pairs", body=Pairs(), call=("<do>", "</do>"), between="\n")
TOOLS = Toolset(
    [
        {
            "name": "lookup",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["word"],
            },
        },
        {"name": "ping", "parameters": {"type": "object", "properties": {}}},
    ]
)
TEXT = 'Well.<do>lookup:word="a;b=c </do>";n=3</do>\n<do>ping:</do>'
CALLS = [Call("lookup", {"word": "a;b=c </do>", "n": 3}), Call("ping", {})]


@pytest.fixture(autouse=True)
def _register_pairs_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[Any, Any] = BODIES
    monkeypatch.setitem(kinds, Pairs, PairsKind())
    readers: dict[Any, Any] = READERS
    monkeypatch.setitem(readers, Pairs, PairsReader)
    grammars: dict[Any, Any] = CALL_GRAMMARS
    monkeypatch.setitem(grammars, Pairs, pairs_grammar)


def test_a_custom_kind_is_parsed() -> None:
    reply = parse(TEXT, format=FORMAT, tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.calls] == [(call.name, call.arguments) for call in CALLS]
    assert reply.content.strip() == "Well." and not reply.problems


def test_a_custom_kind_is_parsed_the_same_under_any_chunking() -> None:
    whole = parse(TEXT, format=FORMAT, tools=TOOLS)
    for size in (1, 3, 7):
        parser = Parser(FORMAT, tools=TOOLS)
        for at in range(0, len(TEXT), size):
            parser.feed(TEXT[at : at + size])
        parser.close()
        assert comparable_parts(parser.reply.parts) == comparable_parts(whole.parts)


def test_a_custom_kind_is_rendered() -> None:
    assert render([Text("Well."), *CALLS], format=FORMAT, tools=TOOLS) == TEXT


def test_a_truncated_call_of_a_custom_kind_is_rejected() -> None:
    reply = parse('<do>lookup:word="a";n=1', format=FORMAT, tools=TOOLS)
    assert not reply.calls and [call.name for call in reply.refused] == ["lookup"]


def test_a_custom_kind_has_a_grammar_and_a_structural_tag() -> None:
    compiled = grammar(TOOLS, format=FORMAT, choice="required")
    judge, tag = Ebnf(compiled.gbnf()), Tag(compiled.structural_tag())
    one = render(CALLS[0], format=FORMAT, tools=TOOLS)
    for accepts in (judge.accepts, tag.accepts):
        assert accepts(one) and not accepts(one.replace("n=3", "n=x")) and not accepts("<do>lookup:n=3</do>")
    for seed in range(20):
        reply = parse(judge.draw(Random(seed), 40), format=FORMAT, tools=TOOLS, repair="off")
        assert reply.calls and not [problem for call in reply.calls for problem in check(call, TOOLS)]


def test_a_custom_kind_passes_the_format_laws() -> None:
    assert check_format(FORMAT, samples=30) == []


def test_a_toml_format_can_use_a_custom_kind() -> None:
    text = 'name = "mine"\ncall = ["<do>", "</do>"]\nbody = { kind = "pairs", then = "," }'
    assert Format.from_toml(text).body == Pairs(then=",")
    with pytest.raises(BadFormat, match=r"body\.then: the marker is empty"):
        Format.from_toml(text.replace('","', '""'))


@pytest.mark.parametrize("data, kind", BODIES.items())
def test_every_kind_has_its_methods_a_reader_and_a_grammar(data: type[Body], kind: BodyKind[Body]) -> None:
    for word in ("write", "markers", "check"):
        assert word in vars(type(kind)), f"{data.__name__} does not define {word}"
    assert data in READERS, f"READERS has no reader for {data.__name__}"
    assert data in CALL_GRAMMARS, f"CALL_GRAMMARS has no grammar for {data.__name__}"
