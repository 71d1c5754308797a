"""Law 3 for GBNF: a grammar accepts every rendering of valid calls, and everything it accepts parses as valid calls.
The judge is a reader of the notation that shares no code with its writer; with `make gbnf`, which installs it, the
judge is llama.cpp itself, and the reader is compared with it.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, Protocol

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rightcall import Call, Toolset, check, grammar, render
from rightcall.constrain import GrammarBounds
from rightcall.constrain.gbnf import emit_gbnf_with_limits
from rightcall.constrain.patterns import FORMAT_PATTERNS
from rightcall.formats import FORMATS
from support.candidates import damage_calls, draw_reply, find_broken_law, quote_calls, render_or_none
from support.ebnf import Ebnf
from support.format_sample import sampled
from support.judge import accepts
from test_constrain_laws import left_out, one_call


class Judge(Protocol):
    def __init__(self, text: str) -> None: ...

    def accepts(self, text: str) -> bool: ...


JUDGES: list[type[Judge]] = [Ebnf]
if os.environ.get("RIGHTCALL_GBNF"):
    from support.llama_judge import Llama

    JUDGES = [Llama]

EVERY = pytest.mark.parametrize("name", sampled())
JUDGED = pytest.mark.parametrize("judge", JUDGES)
# Our own judge runs few examples here; `make gbnf` runs more with llama.cpp.
FEW = settings(max_examples=max(settings().max_examples // (6 if Ebnf in JUDGES else 4), 1))


@JUDGED
@EVERY
@FEW
@given(data=st.data())
def test_every_rendering_is_accepted(name: str, judge: type[Judge], data: st.DataObject) -> None:
    drawn = draw_reply(data, FORMATS[name], left_out)
    tool_grammar = grammar(drawn.tools, format=name, choice="auto", reasoning=True)
    # A call whose opener is a word, or a sign without a token, must follow an empty line, which no rendering has.
    first = tool_grammar.triggers[0].strip()[:1] if tool_grammar.triggers else ""
    is_word = first.isalpha() or not first.isascii()
    assume(not is_word or drawn.text.strip().startswith(tool_grammar.triggers[0].strip()))
    assume(not is_word or drawn.text.count(tool_grammar.triggers[0].strip()) == 1)
    assert judge(tool_grammar.gbnf()).accepts(drawn.text), drawn.text


@JUDGED
@EVERY
@FEW
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_accepted_text_parses_as_valid_calls(name: str, judge: type[Judge], data: st.DataObject, seed: int) -> None:
    format, dice = FORMATS[name], Random(seed)
    drawn = draw_reply(data, format, left_out)
    parallel, free = data.draw(st.booleans()), data.draw(st.booleans())
    tool_grammar = grammar(drawn.tools, format=format, choice="required", parallel=parallel, text=free)
    # An opener with its own fence can appear inside another fence: see below.
    assume(not (free and tool_grammar.triggers and "`" in tool_grammar.triggers[0]))
    text, limits = emit_gbnf_with_limits(tool_grammar)
    found, reader = judge(text), Ebnf(text)
    inside = [reader.draw(dice, most) for most in (0, 20, 60, 200)]
    for candidate in (drawn.alone, *damage_calls(drawn, format, dice), *quote_calls(drawn), *inside):
        taken = found.accepts(candidate)
        assert taken or candidate not in inside, candidate
        if taken:
            assert (
                find_broken_law(candidate, format, drawn.tools, [*tool_grammar.relaxations, *limits], calls=True) == ""
            )


@JUDGED
@EVERY
@FEW
@given(data=st.data())
def test_gbnf_and_lark_agree_on_damaged_calls(name: str, judge: type[Judge], data: st.DataObject) -> None:
    format = FORMATS[name]
    toolset, text = one_call(data, format)
    tool_grammar = grammar(toolset, format=format, choice="required", parallel=False)
    gbnf_text, limits = emit_gbnf_with_limits(tool_grammar)
    assume(not limits)  # A length counted in pieces may be exceeded slightly.
    gbnf, lark = judge(gbnf_text), tool_grammar.lark()
    for _ in range(4):
        at = data.draw(st.integers(0, len(text)))
        damaged = data.draw(
            st.sampled_from(
                [text[:at] + text[at + 1 :], text[:at] + "x" + text[at:], text[:at], text[:at] + "1" + text[at + 1 :]]
            )
        )
        assert gbnf.accepts(damaged) == accepts(lark, damaged), damaged


@JUDGED
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "lfm2"])
def test_bounded_strings_have_a_maximum_length(name: str, judge: type[Judge]) -> None:
    tools = Toolset(
        [{"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}}]
    )
    found = judge(grammar(tools, format=name, choice="required", bounds=GrammarBounds(string=20)).gbnf())
    for size, fits in ((0, True), (20, True), (21, False)):
        text = render(Call("f", {"s": "a" * size}, ""), format=name, tools=tools)
        assert found.accepts(text) is fits


@JUDGED
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "gemma4"])
@settings(max_examples=max(settings().max_examples // 4, 1))
@given(data=st.data())
def test_a_string_bound_does_not_change_the_verdict_on_short_texts(
    name: str, judge: type[Judge], data: st.DataObject
) -> None:
    drawn = draw_reply(data, FORMATS[name], lambda *_: False)
    how: dict[str, Any] = {"format": name, "choice": "auto", "reasoning": True}
    bounded = judge(grammar(drawn.tools, bounds=GrammarBounds(string=300), **how).gbnf())
    free = judge(grammar(drawn.tools, **how).gbnf())
    text = drawn.alone
    at = data.draw(st.integers(0, len(text)))
    for tried in (text, "Well. " + text, text[:at], text[:at] + "<" + text[at:]):
        assert bounded.accepts(tried) == free.accepts(tried), tried


MEMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}
COUNTED = [({"minProperties": 2}, {"a": 1}), ({"maxProperties": 1}, {"a": 1, "b": 2}), ({"minProperties": 1}, {})]


@JUDGED
@EVERY
@pytest.mark.parametrize("bound, arguments", COUNTED)
def test_the_number_of_members_is_enforced(name: str, judge: type[Judge], bound: Any, arguments: Any) -> None:
    parameters = {"type": "object", "properties": MEMBERS, "additionalProperties": False, **bound}
    tools = Toolset([{"name": "f", "parameters": parameters}])
    text, limits = emit_gbnf_with_limits(grammar(tools, format=name, choice="required"))
    assert not limits and check(Call("f", arguments), tools)
    written = render_or_none([Call("f", arguments)], FORMATS[name], tools)
    assert written is None or not judge(text).accepts(written)
    fitting = render_or_none(
        [Call("f", {"a": 1, "b": 2} if "minProperties" in bound else {"a": 1})], FORMATS[name], tools
    )
    assert fitting is not None and judge(text).accepts(fitting)


@JUDGED
@EVERY
def test_a_quoted_call_is_rejected_by_the_grammar(name: str, judge: type[Judge]) -> None:
    """Text before a call must not put the call into code or quotes.

    An opener with its own fence can follow another fence: free text cannot distinguish the two.
    """
    tools = Toolset([{"name": "f", "parameters": {"type": "object", "properties": MEMBERS}}])
    alone = render_or_none([Call("f", {"a": 1})], FORMATS[name], tools)
    assert alone is not None
    tool_grammar = grammar(tools, format=name, choice="required", text=True)
    found = judge(tool_grammar.gbnf())
    assert found.accepts(alone)
    for frame in ("```\n{}", "`{}", '"{}', "'{}", "So:\n```xml\n{}", "~~~\n{}", "See `that {}"):
        if not ("`" in frame and tool_grammar.triggers and "```" in tool_grammar.triggers[0]):
            assert not found.accepts(frame.replace("{}", alone)), frame


REPEATED = ["^(a+)?$", "^(a*)+$", "^([ab]{2})?c$", "^(?:[ab]{1,3})*$", "^((a?)+)?$", "^(?:(?:ab)+)*$"]


@JUDGED
@pytest.mark.parametrize("pattern", REPEATED)
def test_a_nested_repeat_is_accepted_by_engines(pattern: str, judge: type[Judge]) -> None:
    tools = Toolset([{"name": "f", "parameters": {"properties": {"x": {"type": "string", "pattern": pattern}}}}])
    found = judge(grammar(tools, choice="required").gbnf())
    for text in ("", "a", "ab", "abab", "aaa", "abc", "c", "abac", "d"):
        call = Call("f", {"x": text})
        written = render_or_none([call], FORMATS["hermes"], tools)
        assert written is not None
        assert found.accepts(written) is not bool(check(call, tools)), text


@JUDGED
@pytest.mark.parametrize("format", FORMAT_PATTERNS)
def test_the_grammar_of_a_string_format_is_accepted_by_engines(format: str, judge: type[Judge]) -> None:
    tools = Toolset([{"name": "f", "parameters": {"properties": {"x": {"type": "string", "format": format}}}}])
    text = render_or_none([Call("f", {"x": "no value of any format \n"})], FORMATS["hermes"], tools)
    assert text is not None
    assert judge(grammar(tools, choice="required").gbnf()).accepts(text)
    found = judge(grammar(tools, choice="required", formats=True).gbnf())
    assert not found.accepts(text)


@JUDGED
@pytest.mark.parametrize(
    "members, fits",
    [
        ('"city": 1, "x": "any"', True),
        ('"city": 1, "cities": 2', True),
        ('"cit": "any", "c": 1', True),
        ('"citys": "any", "City": true', True),
        ('"": "any"', True),
        ('"city": "any"', False),
        ('"cities": "any"', False),
        ('"x": 1, "city": "any"', False),
        ('"city": 1, "city": 2', False),
        ('"city": 1, "x": 1, "city": "any"', False),
    ],
)
def test_an_undeclared_member_has_none_of_the_declared_names(judge: type[Judge], members: str, fits: bool) -> None:
    properties = {"city": {"type": "integer"}, "cities": {"type": "integer"}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties}}]
    made = grammar(tools, choice="required", parallel=False, undeclared=True)
    text = f'<tool_call>\n{{"name": "f", "arguments": {{{members}}}}}\n</tool_call>'
    assert judge(made.gbnf()).accepts(text) is accepts(made.lark(), text) is fits


def test_a_declared_name_that_could_match_as_undeclared_is_reported() -> None:
    for name, reported in (("plain", False), ("a\nb", True), ("x" * 300, True)):
        tools = [{"name": "f", "parameters": {"properties": {name: {"type": "integer"}}, "additionalProperties": True}}]
        _, limits = emit_gbnf_with_limits(grammar(tools, choice="required"))
        assert [limit.keyword for limit in limits] == ["additionalProperties"] * reported, name
