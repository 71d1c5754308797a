"""Behaviour that no law determines: each test detects a one-line bug of fuzz/mutants.toml that every law accepts.

Two more bugs of the same kind, quadratic joins, are detected by `test_cost.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Call, Ids, Parser, Tool, Toolset, grammar, parse, render
from support.cuts import Setting, hold_of_every_cut, reply_of_events
from support.ebnf import Ebnf
from support.format_sample import sampled

TOOLS = Toolset(
    [
        Tool(
            name="lookup",
            parameters={
                "type": "object",
                "properties": {"word": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["word"],
            },
        ),
        Tool(name="ping", parameters={"type": "object", "properties": {}}),
    ]
)
OWL = ("lookup", {"word": "owl"})


def parse_outcome(text: str, format: str) -> tuple[list[tuple[str, Any]], list[str], str]:
    """Return the runnable calls, the names of the rejected ones, and the text."""
    reply = hold_of_every_cut(text, Setting(format, TOOLS))
    calls = [(call.name, call.arguments) for call in reply.calls]
    return calls, [call.name for call in reply.refused], reply.content


@pytest.mark.parametrize(
    "format, text",
    [
        ("llama3_json", '[{"name": "lookup", "parameters": {"word": "owl"}}, {"name": "lookup", "parameters": {"wo'),
        ("xlam", '[{"name": "lookup", "arguments": {"word": "owl"}}, {"name": "lookup", "arguments": {"word": "b'),
        ("forced_choice", '[{"name": "lookup", "parameters": {"word": "owl"}}, {"name": "lookup", "parameters": {'),
        ("pythonic", '[lookup(word="owl"), lookup(wor'),
        (
            "mistral_v3",
            '[TOOL_CALLS] [{"name": "lookup", "arguments": {"word": "owl"}}, {"name": "lookup", "arguments": {',
        ),
    ],
)
def test_a_call_cut_off_beside_a_complete_one_is_an_attempt_and_not_text(format: str, text: str) -> None:
    assert parse_outcome(text, format) == ([OWL], ["lookup"], "")
    for end in range(text.index("owl") + len('owl"}}'), len(text)):
        reply = parse(text[:end], format=format, tools=TOOLS)
        assert (len(reply.calls), reply.content) == (1, ""), text[:end]


@pytest.mark.parametrize("format", sampled())
def test_a_call_cut_off_inside_its_arguments_is_an_attempt_at_every_position(format: str) -> None:
    text = render([Call("lookup", {"word": "owl", "n": 3})], format=format, tools=TOOLS)
    for end in range(text.index("owl") + 1, len(text)):
        reply = parse(text[:end], format=format, tools=TOOLS)
        assert [call.name for call in reply.attempts] == ["lookup"], text[:end]


def test_bare_calls_that_turn_out_to_be_text_are_not_counted() -> None:
    call = '{"name": "lookup", "parameters": {"word": "owl"}}'
    assert parse_outcome(f"{call} is it. <|python_tag|>{call}", "llama3_json") == ([OWL], [], f"{call} is it.")
    assert parse_outcome(f"{call} is what I send:\n{call}", "llama3_json") == ([OWL], [], f"{call} is what I send:")


@pytest.mark.parametrize(
    "format, text",
    [
        ("glm45", "<tool_call>ping</tool_call>"),
        ("ling3", "<tool_call>ping</tool_call>"),
        ("hermes", '<tool_call>\n{"name": "ping"}\n</tool_call>'),
        ("llama3_json", '{"name": "ping"}'),
        ("contract", "<tool_call>\nping()\n</tool_call>"),
        ("qwen3_coder", "<tool_call>\n<function=ping>\n</function>\n</tool_call>"),
    ],
)
def test_a_declared_name_without_arguments_is_a_call(format: str, text: str) -> None:
    assert parse_outcome(text, format) == ([("ping", {})], [], "")
    assert parse(text, format=format, tools=TOOLS).problems == ()


@pytest.mark.parametrize("format", ["glm45", "ling3"])
def test_a_word_after_an_opener_is_a_call_only_if_it_is_declared(format: str) -> None:
    assert parse_outcome("Use <tool_call>tags to call.", format) == ([], [], "Use <tool_call>tags to call.")
    assert parse_outcome("Use <tool_call>ping now.", format)[1] == ["ping"]


@pytest.mark.parametrize(
    "format", ["hermes", "pythonic", "gemma4", "contract", "mistral_v11", "qwen3_coder", "kimi_k3"]
)
@pytest.mark.parametrize("number", [12, -305, 120])
def test_a_number_is_parsed_only_at_its_end(format: str, number: int) -> None:
    text = render([Call("lookup", {"word": "owl", "n": number})], format=format, tools=TOOLS)
    assert parse_outcome(text, format)[0] == [("lookup", {"word": "owl", "n": number})]
    for cut in range(len(text)):
        calls = parse_outcome(text[:cut], format)[0]
        assert all(arguments["n"] == number for _, arguments in calls), text[:cut]


@pytest.mark.parametrize(
    "format, text",
    [
        ("hermes", '<tool_call>\n{"name": "ping", "arguments": null}\n</tool_call>'),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>null"
            "<|tool_call_end|><|tool_calls_section_end|>",
        ),
    ],
)
def test_arguments_that_are_null_are_none_with_and_without_live(format: str, text: str) -> None:
    assert parse_outcome(text, format) == ([("ping", {})], [], "")


@pytest.mark.parametrize("format", ["kimi_k2", "auto"])
def test_text_after_a_call_that_ended_reasoning_is_text(format: str) -> None:
    call = render([Call(*OWL)], format="kimi_k2", tools=TOOLS)
    reply = hold_of_every_cut(f"<think>I look.{call}Done.", Setting(format, TOOLS))
    assert (reply.reasoning, reply.content, len(reply.calls)) == ("I look.", "Done.", 1)


@pytest.mark.parametrize(
    "format, text",
    [
        ("hermes", '<tool_call>\n{"name": "lookup", "arguments": {"word": "owl"}, "n": 12}\n</tool_call>'),
        ("llama3_json", '{"name": "lookup", "parameters": {"word": "owl"}, "n": 12}'),
        ("xlam", '[{"n": 12, "name": "lookup", "arguments": {"word": "owl"}}]'),
    ],
)
def test_a_number_beside_the_arguments_is_parsed_only_at_its_end(format: str, text: str) -> None:
    assert parse_outcome(text, format)[0] == [("lookup", {"word": "owl", "n": 12})]


@pytest.mark.parametrize(
    "format, text",
    [
        (
            "qwen3_coder",
            "<tool_call>\n<function=lookup>\n{'word': 'owl'}\n</function>\n</tool_call>\n<tool_call>\n"
            "<function=lookup>\n<parameter=word>\nbat\n</parameter>\n</function>\n</tool_call>",
        ),
        (
            "minimax_m2",
            "<minimax:tool_call>\n<invoke name=\"lookup\">\n{'word': 'owl'}</invoke>\n<invoke name=\"lookup\">\n"
            '<parameter name="word">bat</parameter>\n</invoke>\n</minimax:tool_call>',
        ),
    ],
)
def test_a_call_after_a_repaired_one_has_its_own_text(format: str, text: str) -> None:
    calls = hold_of_every_cut(text, Setting(format, TOOLS)).calls
    assert [("owl" in call.raw, "bat" in call.raw) for call in calls] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    "format, text",
    [
        (
            "qwen3_coder",
            "<tool_call>\n<function=lookup>\n<parameter=n>\n1\n</parameter>\n<parameter=word>\nx\n</parameter>\n"
            "<parameter=n>\ny\n</parameter>\n</function>\n</tool_call>",
        ),
        (
            "minimax_m2",
            '<minimax:tool_call>\n<invoke name="lookup">\n<parameter name="n">1</parameter>\n<parameter name="word">x'
            '</parameter>\n<parameter name="n">y</parameter>\n</invoke>\n</minimax:tool_call>',
        ),
        (
            "glm45",
            "<tool_call>lookup\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n<arg_key>word</arg_key>\n<arg_value>x"
            "</arg_value>\n<arg_key>n</arg_key>\n<arg_value>y</arg_value>\n</tool_call>",
        ),
        (
            "minimax_m3",
            '<tool_call>\n<invoke name="lookup"><n>1</n><word>x</word><n>2</n></invoke>\n</tool_call>'.replace(
                "<", "]<]minimax[>[<"
            ),
        ),
    ],
)
def test_a_repeated_key_does_not_make_a_shorter_value_runnable(format: str, text: str) -> None:
    calls, _, _ = parse_outcome(text, format)
    assert calls == []
    assert "duplicate_argument" in {problem.code for problem in parse(text, format=format, tools=TOOLS).problems}


@pytest.mark.parametrize(
    "format, text",
    [
        ("pythonic", '[lookup(word="a", word="b")]'),
        ("llama4_pythonic", '<|python_start|>[lookup(word="a", n=1, word="b")]<|python_end|>'),
        ("contract", '<tool_call>\nlookup({ word: "a", word: "b" })\n</tool_call>'),
        ("gemma4", '<|tool_call>call:lookup{word:<|"|>a<|"|>,word:<|"|>b<|"|>}<tool_call|>'),
        ("hermes", '<tool_call>\n{"name": "lookup", "arguments": {"word": "a", "word": "b"}}\n</tool_call>'),
        ("mistral_v11", '[TOOL_CALLS]lookup[ARGS]{"word": "a", "word": "b"}'),
    ],
)
def test_an_argument_given_twice_with_two_values_blocks_the_call(format: str, text: str) -> None:
    assert parse_outcome(text, format)[:2] == ([], ["lookup"])


@pytest.mark.parametrize("arguments", ["{'word': owl}", '{"word": owl, }', '{"word": "owl" "n": 1, }'])
def test_a_certain_repair_beside_a_guess_does_not_make_it_certain(arguments: str) -> None:
    text = f'<tool_call>\n{{"name": "lookup", "arguments": {arguments}}}\n</tool_call>'
    kinds = {repair.kind for repair in parse(text, format="hermes", tools=TOOLS, repair="lenient").calls[0].repairs}
    assert kinds == {"exact", "guess"}
    assert parse_outcome(text, "hermes")[:2] == ([], ["lookup"])
    assert parse(text, format="hermes", tools=TOOLS).refused[0].repairs == ()


@pytest.mark.parametrize("arguments", ["[1]", '"owl"', '{"word": "owl" "n"', '{"n": 1}', '{"word": "a", "word": "b"}'])
def test_a_problem_with_arguments_names_its_call(arguments: str) -> None:
    calls = [
        f'<tool_call>\n{{"name": {name}}}\n</tool_call>' for name in ('"ping"', f'"lookup", "arguments": {arguments}')
    ]
    reply = hold_of_every_cut("".join(calls), Setting("hermes", TOOLS))
    assert [problem.call for problem in reply.problems if problem.blocking] == [1]


def test_held_back_text_is_emitted_at_the_end() -> None:
    for text in ("Good morning.", "<think>Hm.</think>Good morning.", '<tool_call>\n{"name": "ping"}\n</tool_call> So.'):
        parser = Parser("hermes", tools=TOOLS, hold=True)
        events = [event for piece in text for event in parser.feed(piece)] + parser.close()
        assert reply_of_events(events, "hermes", None) == parser.reply


# -- decisions at the end of the text ----------------------------------------------------------------------------------

BARE = '{"name": "lookup", "arguments": {"word": "owl"}}'


@pytest.mark.parametrize(
    "format, text",
    [
        ("auto", BARE),
        ("qwen3_coder", BARE),
        ("llama3_json", f"So I say:\n{BARE}"),
        ("hermes", f"<think>I call <tool_call>\n{BARE}\n</tool_call></think>"),
    ],
)
@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
def test_nothing_is_rescued_from_an_answer_that_was_cut_off(format: str, text: str, finish: str) -> None:
    assert [call.arguments for call in parse(text, format=format, tools=TOOLS).calls] == [{"word": "owl"}]
    assert parse(text, format=format, tools=TOOLS, finish=finish).attempts == ()


def test_a_rescued_call_has_its_own_id() -> None:
    ids = Ids()
    taken = [call.id for _ in range(2) for call in parse(BARE, format="qwen3_coder", tools=TOOLS, ids=ids).calls]
    assert len(set(taken)) == 2 and all(id.startswith("call_") for id in taken)


@pytest.mark.parametrize(
    "text",
    [
        f"Write `{BARE}`",
        f"Write:\n```\n{BARE}\n```",
        'It is:\n{"name": "ping", "parameters": {"type": "object", "properties": {}}}',
    ],
)
def test_a_quoted_bare_call_or_a_definition_is_not_rescued_after_text(text: str) -> None:
    assert parse_outcome(text, "llama3_json") == ([], [], text)


@pytest.mark.parametrize(
    "format, text, code",
    [
        ("hermes", "Write <tool_call> before a call.", "opener_without_call"),
        ("kimi_k2", "That is all.<|tool_call_end|>", "stray_marker"),
        ("hermes", "Write `lookup(word)` for it.", "looks_like_a_call"),
    ],
)
def test_a_note_blocks_no_call(format: str, text: str, code: str) -> None:
    assert [(each.code, each.blocking) for each in parse(text, format=format, tools=TOOLS).problems] == [(code, False)]


@pytest.mark.parametrize("format", ["hermes", "deepseek_v3", "qwen3_coder"])
@pytest.mark.parametrize("around", ["``{}`` and", "``a ` b {}`` and", "\n\n```\n{}\n```\nand", "`{}` and"])
def test_a_quoted_call_stays_quoted_under_every_chunking_of_its_backticks(format: str, around: str) -> None:
    call = render([Call(*OWL)], format=format, tools=TOOLS)
    assert parse_outcome(f"Write {around.format(call)} no more.", format)[:2] == ([], [])


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "llama3_json"])
def test_text_before_a_late_end_of_reasoning_is_not_content(format: str) -> None:
    reply = hold_of_every_cut("I wonder.</think>Good morning.", Setting(format, TOOLS))
    if format != "llama3_json":  # this format has no reasoning
        assert (reply.reasoning, reply.content) == ("I wonder.", "Good morning.")


@pytest.mark.parametrize("thought", ["I wonder.", "I wonder.<|im_end|>\nHm."])
@pytest.mark.parametrize("format", ["hermes", "glm45"])
def test_a_bare_call_after_a_late_end_of_reasoning_is_the_only_content(format: str, thought: str) -> None:
    text = thought + '</think>\n{"name": "lookup", "arguments": {"word": "owl"}}'
    assert parse_outcome(text, format) == ([OWL], [], "")


# -- the grammar for llama.cpp -----------------------------------------------------------------------------------------

FLAGS = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}},
    "additionalProperties": False,
}
CALL = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'


@pytest.mark.parametrize("least, accepted", [(0, {"{}", '{"a": true}'}), (1, {'{"a": true}'}), (2, set())])
def test_gbnf_enforces_how_many_members_an_object_needs(least: int, accepted: set[str]) -> None:
    tool = Tool(name="f", parameters={**FLAGS, "minProperties": least})
    gbnf = grammar([tool], format="hermes", choice="required").gbnf()
    assert {text for text in ("{}", '{"a": true}') if Ebnf(gbnf).accepts(CALL % text)} == accepted
    assert Ebnf(gbnf).accepts(CALL % '{"a": true, "b": false}')


@pytest.mark.parametrize("shown", ["`{}", '"{}', "'{}", "```\n{}"])
def test_gbnf_does_not_accept_a_call_that_is_only_shown_as_an_example(shown: str) -> None:
    gbnf = grammar([Tool(name="f", parameters=FLAGS)], format="hermes", choice="required", text=True).gbnf()
    call = CALL % "{}"
    assert Ebnf(gbnf).accepts(f"See {call}")
    assert not Ebnf(gbnf).accepts(f"See {shown.format(call)}")


def accepted_values(schema: dict[str, Any], values: list[Any]) -> list[Any]:
    """Return the values that the GBNF grammar accepts for an argument of this schema."""
    tool = Tool(
        name="f",
        parameters={
            "type": "object",
            "properties": {"a": schema},
            "additionalProperties": {"type": "string"},
        },
    )
    gbnf = grammar([tool], format="hermes", choice="required").gbnf()
    return [value for value in values if Ebnf(gbnf).accepts(CALL % json.dumps({"a": value}))]


def test_gbnf_does_not_accept_a_declared_name_as_an_undeclared_one() -> None:
    assert accepted_values({"type": "integer"}, [3, "three"]) == [3]


@pytest.mark.parametrize(
    "bounds, values",
    [
        ({"exclusiveMinimum": 0}, [1, 2]),
        ({"exclusiveMaximum": 2}, [-1, 0, 1]),
        ({"minimum": 0, "maximum": 1}, [0, 1]),
        ({"exclusiveMinimum": -1, "exclusiveMaximum": 1}, [0]),
    ],
)
def test_gbnf_accepts_no_number_that_a_range_leaves_out(bounds: dict[str, int], values: list[int]) -> None:
    assert accepted_values({"type": "integer", **bounds}, [-1, 0, 1, 2]) == values


@pytest.mark.parametrize("least, most, sizes", [(0, 1, [0, 1]), (2, 2, [2]), (2, 3, [2, 3]), (1, 2, [1, 2])])
def test_gbnf_enforces_how_many_items_a_list_has(least: int, most: int, sizes: list[int]) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": least, "maxItems": most}
    assert [len(items) for items in accepted_values(schema, [[], [1], [1, 2], [1, 2, 3], [1, 2, 3, 4]])] == sizes
