"""Law 3 for structural tags, which vLLM and SGLang hand to xgrammar, judged by an interpreter of tags that shares no
code with their writer: a tag accepts every rendering, and whatever it accepts reads as calls that pass the check."""

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
from support.candidates import broken_law, damaged_calls, drawn_reply, shown_calls
from support.format_sample import sampled
from support.tag_judge import Tag
from test_constrain_laws import left_out

EVERY = pytest.mark.parametrize("name", sampled())
FEW = settings(max_examples=max(settings().max_examples // 6, 1))


def judged(made: Grammar) -> tuple[Tag, list[Relaxation]]:
    document, limits = emit_structural_tag_with_limits(made)
    assert json.loads(json.dumps(document)) == document
    return Tag(document), [*made.relaxations, *limits]


@EVERY
@FEW
@given(data=st.data())
def test_a_tag_accepts_every_rendering(name: str, data: st.DataObject) -> None:
    drawn = drawn_reply(data, FORMATS[name], left_out, spelled=False)
    judge, _ = judged(grammar(drawn.tools, format=name, choice="auto", reasoning=True))
    assert judge.accepts(drawn.text), drawn.text
    judge, _ = judged(grammar(drawn.tools, format=name, choice="required", parallel=False))
    assert judge.accepts(drawn.alone), drawn.alone
    assert not judge.accepts("Sure. " + drawn.alone)


@EVERY
@FEW
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_text_accepted_by_a_tag_parses_as_valid_calls(name: str, data: st.DataObject, seed: int) -> None:
    drawn, dice = drawn_reply(data, FORMATS[name], left_out, spelled=False), Random(seed)
    parallel = data.draw(st.booleans())
    judge, limits = judged(grammar(drawn.tools, format=name, choice="required", parallel=parallel))
    values = {json.dumps(drawn.tools.schema(call.name)): call.arguments for call in drawn.calls}
    texts = [drawn.alone, *damaged_calls(drawn, FORMATS[name], dice), *shown_calls(drawn)]
    texts += [judge.drawn(dice, lambda schema: some_json(schema, list(values.values()), dice)) for _ in range(4)]
    for text in texts:
        if judge.accepts(text):
            assert broken_law(text, FORMATS[name], drawn.tools, limits, calls=True) == ""


def some_json(schema: dict[str, Any], values: list[Any], dice: Random) -> str:
    styles: list[dict[str, Any]] = [{}, {"indent": 1}, {"separators": (",", ":")}]
    return json.dumps(dice.choice(values), **dice.choice(styles))
