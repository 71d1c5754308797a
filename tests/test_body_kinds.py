"""A body kind is one file and one line of `BODIES`: one that rightcall does not have is read, streamed, written,
constrained and held to the laws like any other."""

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
from support.generated import plainly
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
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[Any, Any] = BODIES
    monkeypatch.setitem(kinds, Pairs, PairsKind())
    readers: dict[Any, Any] = READERS
    monkeypatch.setitem(readers, Pairs, PairsReader)
    grammars: dict[Any, Any] = CALL_GRAMMARS
    monkeypatch.setitem(grammars, Pairs, pairs_grammar)


def test_it_is_read() -> None:
    reply = parse(TEXT, format=FORMAT, tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.calls] == [(call.name, call.arguments) for call in CALLS]
    assert reply.content.strip() == "Well." and not reply.problems


def test_it_is_streamed() -> None:
    whole = parse(TEXT, format=FORMAT, tools=TOOLS)
    for size in (1, 3, 7):
        parser = Parser(FORMAT, tools=TOOLS)
        for at in range(0, len(TEXT), size):
            parser.feed(TEXT[at : at + size])
        parser.close()
        assert plainly(parser.reply.parts) == plainly(whole.parts)


def test_it_is_written() -> None:
    assert render([Text("Well."), *CALLS], format=FORMAT, tools=TOOLS) == TEXT


def test_a_call_that_was_cut_off_is_not_complete() -> None:
    reply = parse('<do>lookup:word="a";n=1', format=FORMAT, tools=TOOLS)
    assert not reply.calls and [call.name for call in reply.refused] == ["lookup"]


def test_it_is_constrained() -> None:
    made = grammar(TOOLS, format=FORMAT, choice="required")
    judge, tag = Ebnf(made.gbnf()), Tag(made.structural_tag())
    one = render(CALLS[0], format=FORMAT, tools=TOOLS)
    for accepts in (judge.accepts, tag.accepts):
        assert accepts(one) and not accepts(one.replace("n=3", "n=x")) and not accepts("<do>lookup:n=3</do>")
    for seed in range(20):
        reply = parse(judge.drawn(Random(seed), 40), format=FORMAT, tools=TOOLS, repair="off")
        assert reply.calls and not [problem for call in reply.calls for problem in check(call, TOOLS)]


def test_it_keeps_the_laws() -> None:
    assert check_format(FORMAT, samples=30) == []


def test_a_file_may_say_it() -> None:
    text = 'name = "mine"\ncall = ["<do>", "</do>"]\nbody = { kind = "pairs", then = "," }'
    assert Format.from_toml(text).body == Pairs(then=",")
    with pytest.raises(BadFormat, match=r"body\.then: the marker is empty"):
        Format.from_toml(text.replace('","', '""'))


@pytest.mark.parametrize("data, kind", BODIES.items())
def test_every_kind_says_all_there_is_to_say(data: type[Body], kind: BodyKind[Body]) -> None:
    for word in ("write", "markers", "check"):
        assert word in vars(type(kind)), f"{data.__name__} says nothing of {word}"
    assert data in READERS, f"READERS has no reader of {data.__name__}"
    assert data in CALL_GRAMMARS, f"CALL_GRAMMARS has no grammar of {data.__name__}"
