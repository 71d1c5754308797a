"""Law 3: a grammar accepts every rendering of valid calls, and text that it accepts parses to valid calls.

The judge is llguidance. The law is tested for every format, with bytes alone and with the special tokens of the
format. `left_out` recognizes what a grammar excludes on purpose; a separate test checks the exclusion.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rightcall import Call, CannotCarry, Format, Toolset, check, grammar, parse, render
from rightcall.constrain import Grammar
from rightcall.formats import FORMATS
from rightcall.formats.spec import Braced, Params, marker_alternatives
from support.format_sample import sampled
from support.generated import any_json, parts_around, strings
from support.judge import accepts_tokens, draw_tokens, matcher, vocabulary
from support.schemas import tools_and_calls

EVERY_FORMAT = pytest.mark.parametrize("name", sampled())
FEW = settings(max_examples=max(settings().max_examples // 6, 1))


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *strings_in(item))]
    return [text for item in value for text in strings_in(item)] if isinstance(value, list) else []


def left_out(format: Format, calls: list[Call]) -> bool:
    """Return whether the grammar excludes these calls: a lone surrogate, or a closing marker inside raw text."""
    texts = [text for call in calls for text in strings_in(call.arguments)]
    if any(not text.isascii() and text.encode("utf-8", "replace").decode() != text for text in texts):
        return True
    body = format.bodies[0]
    stops = (
        [t.strip().partition("{key}")[0] for t in marker_alternatives(body.value_close) if t]
        if isinstance(body, Params)
        else []
    )
    stops += list(body.quote or ()) if isinstance(body, Params) else [body.quote] if isinstance(body, Braced) else []
    return any(stop in text for stop in stops for text in texts)


def one_call(data: st.DataObject, format: Format) -> tuple[Toolset, str]:
    """Draw some tools and a valid call of one of them, rendered in this format."""
    tools, calls = data.draw(tools_and_calls(strings(format)))
    toolset = Toolset(tools)
    assume(not check(calls[0], toolset) and not left_out(format, calls))
    try:
        return toolset, render(calls[0], format=format, tools=toolset)
    except CannotCarry:
        assume(False)
        raise


def accepts_text(compiled: Grammar, name: str, text: str, *, specials: bool) -> bool:
    token_vocabulary, tokenizer = vocabulary(name)
    lark = compiled.lark(tokens=token_vocabulary.specials if specials else False)
    return accepts_tokens(matcher(lark, tokenizer), token_vocabulary.encode(text) if specials else list(text.encode()))


@EVERY_FORMAT
@FEW
@given(data=st.data())
def test_every_rendering_of_calls_that_pass_the_check_is_accepted(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    tools, calls = data.draw(tools_and_calls(strings(format)))
    toolset = Toolset(tools)
    assume(not any(check(call, toolset) for call in calls) and not left_out(format, calls))
    parts = data.draw(parts_around(format, calls))
    try:
        text = render(parts, format=format, tools=toolset)
    except CannotCarry:
        assume(False)
    compiled = grammar(toolset, format=format, choice="auto", reasoning=True)
    assert accepts_text(compiled, name, text, specials=False), text
    specials = vocabulary(name)[0].specials
    if specials and not any(
        token in value for call in calls for value in strings_in(call.arguments) for token in specials
    ):
        assert accepts_text(compiled, name, text, specials=True), text


@EVERY_FORMAT
@FEW
@given(data=st.data())
def test_a_grammar_for_one_required_call_accepts_only_that_call(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    toolset, text = one_call(data, format)
    compiled = grammar(toolset, format=format, choice="required", parallel=False)
    assert compiled.start == "call" and len([rule for rule in compiled.rules if rule.lhs == "call"]) == len(toolset)
    assert accepts_text(compiled, name, text, specials=False), text
    assert not accepts_text(compiled, name, "Sure. " + text, specials=False)


@EVERY_FORMAT
@settings(max_examples=max(settings().max_examples // 4, 1), suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_text_sampled_from_the_masks_parses_to_valid_calls(name: str, data: st.DataObject, seed: int) -> None:
    format = FORMATS[name]
    tools, _ = data.draw(tools_and_calls(strings(format)))
    toolset = Toolset(tools)
    choice = data.draw(st.sampled_from(["auto", "required"]))
    compiled = grammar(toolset, format=format, choice=choice, reasoning=True, text=True)
    token_vocabulary, tokenizer = vocabulary(name)
    specials = bool(token_vocabulary.specials) and data.draw(st.booleans())
    lark_matcher = matcher(compiled.lark(tokens=token_vocabulary.specials if specials else False), tokenizer)
    for turn in range(3):
        tokens = draw_tokens(
            lark_matcher.deep_copy(), token_vocabulary.eos_token_id, Random(seed + turn), max_tokens=250
        )
        if tokens is None:
            continue
        text = token_vocabulary.decode(tokens)
        reply = parse(text, tools=toolset, format=format, repair="off")
        assert [problem for problem in reply.problems if problem.blocking] == [], text
        assert reply.attempts or choice == "auto", text
        if not any(limit.keyword for limit in compiled.relaxations):
            assert not [problem for call in reply.attempts for problem in check(call, toolset)], text


@settings(max_examples=settings().max_examples * 2)
@given(value=any_json(FORMATS["hermes"]))
def test_an_argument_without_a_type_accepts_any_json(value: Any) -> None:
    tools = Toolset([{"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}])
    call = Call("f", {"x": value}, "")
    assume(not left_out(FORMATS["hermes"], [call]))
    compiled = grammar(tools, format="hermes", choice="required")
    assert accepts_text(compiled, "hermes", render(call, format="hermes", tools=tools), specials=False)


@pytest.mark.parametrize(
    "name", sampled(name for name, format in FORMATS.items() if isinstance(format.bodies[0], Params))
)
def test_raw_text_cannot_contain_its_closing_marker(name: str) -> None:
    format = FORMATS[name]
    body = format.bodies[0]
    assert isinstance(body, Params)
    tools = Toolset([{"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string"}}}}])
    close = marker_alternatives(body.value_close)[0].rstrip().replace("{key}", "s")
    compiled = grammar(tools, format=format, choice="required", parallel=False)
    text = render(Call("f", {"s": "a b"}, ""), format=format, tools=tools)
    assert accepts_text(compiled, name, text, specials=False)
    assert not accepts_text(compiled, name, text.replace("a b", f"a{close} b"), specials=False) or body.quote
