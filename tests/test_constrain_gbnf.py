"""Law 3 for GBNF, judged by llama.cpp itself (`make gbnf` installs it): it accepts every rendering that llguidance's
grammar does, and refuses what that refuses."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generated import around, strings
from judge import accepts
from rightcall import Call, CannotCarry, Toolset, check, render
from rightcall.constrain import Bounds, grammar
from rightcall.constrain.gbnf import emit_with_limits
from rightcall.formats import FORMATS
from schemas import tools_and_calls
from test_constrain_laws import left_out, one_call

if not os.environ.get("RIGHTCALL_GBNF"):
    pytest.skip("`make gbnf` runs these: they need llama.cpp, and half a minute", allow_module_level=True)
pytest.importorskip("xllamacpp")

from llama_judge import Llama

EVERY = pytest.mark.parametrize("name", list(FORMATS))
FEW = settings(max_examples=max(settings().max_examples // 2, 1))


@EVERY
@FEW
@given(data=st.data())
def test_llama_cpp_accepts_every_rendering(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    tools, calls = data.draw(tools_and_calls(strings(format)))
    toolset = Toolset(tools)
    assume(not any(check(call, toolset) for call in calls) and not left_out(format, calls))
    assume(not any("\0" in text for call in calls for text in (str(call.arguments), call.json)))
    try:
        text = render(data.draw(around(format, calls)), format=format, tools=toolset)
    except CannotCarry:
        assume(False)
    made = grammar(toolset, format=format, choice="auto", reasoning=True)
    judge = Llama(made.gbnf())
    taken, _ = judge.taken(text)
    assert judge.accepts(text), text[:taken] + " <-here-> " + text[taken:]


@EVERY
@settings(max_examples=max(settings().max_examples // 4, 1))
@given(data=st.data())
def test_llama_cpp_and_llguidance_say_the_same_of_damaged_calls(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    toolset, text = one_call(data, format)
    made = grammar(toolset, format=format, choice="required", parallel=False)
    text_of_it, limits = emit_with_limits(made)
    assume(not limits)  # what is counted in pieces may be a little longer
    gbnf, lark = Llama(text_of_it), made.lark()
    for _ in range(4):
        at = data.draw(st.integers(0, len(text)))
        damaged = data.draw(
            st.sampled_from(
                [text[:at] + text[at + 1 :], text[:at] + "x" + text[at:], text[:at], text[:at] + "1" + text[at + 1 :]]
            )
        )
        assert gbnf.accepts(damaged) == accepts(lark, damaged), damaged


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "lfm2"])
def test_bounded_strings_are_bounded(name: str) -> None:
    tools = Toolset(
        [{"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}}]
    )
    judge = Llama(grammar(tools, format=name, choice="required", bounds=Bounds(string=20)).gbnf())
    for size, fits in ((0, True), (20, True), (21, False)):
        text = render(Call("f", {"s": "a" * size}, ""), format=name, tools=tools)
        assert judge.accepts(text) is fits


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "gemma4"])
@settings(max_examples=max(settings().max_examples // 4, 1))
@given(data=st.data())
def test_bounded_texts_are_what_unbounded_ones_are_as_long_as_they_are_short(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    tools, calls = data.draw(tools_and_calls(strings(format)))
    toolset = Toolset(tools)
    assume(not check(calls[0], toolset) and "\0" not in str(calls[0].arguments))
    try:
        text = render(calls[0], format=format, tools=toolset)
    except CannotCarry:
        assume(False)
    how: dict[str, Any] = {"format": format, "choice": "auto", "reasoning": True}
    bounded = Llama(grammar(toolset, bounds=Bounds(string=300), **how).gbnf())
    free = Llama(grammar(toolset, **how).gbnf())
    at = data.draw(st.integers(0, len(text)))
    for tried in (text, "Well. " + text, text[:at], text[:at] + "<" + text[at:]):
        assert bounded.accepts(tried) == free.accepts(tried), tried
