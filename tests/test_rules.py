"""The rules where sources disagree, each pinned by name, and the failures that users of other parsers pay for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuts import Setting, hold_of_every_cut
from cuts import read as read_chunks
from rightcall import (
    Call,
    CallStart,
    Ids,
    Parser,
    Reasoning,
    Recast,
    Reply,
    Text,
    Tool,
    Toolset,
    parse,
    render,
)
from rightcall.errors import CallerError
from rightcall.formats import FORMATS
from rightcall.formats.spec import Params, alternatives
from rightcall.parse.engine import Limits
from rightcall.types import Part

Json = dict[str, Any]
Args = list[tuple[str, Json]]
every_format = pytest.mark.parametrize("name", list(FORMATS))

BARE = {"pythonic", "forced_choice", "xlam"}  # a call has no opener, so it opens only where the reply begins
EITHER = {"generic_json"}  # carries text or calls, never both
BESIDE = [name for name in FORMATS if name not in BARE | EITHER]


def tool(name: str = "f", **properties: Json) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties})


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = Toolset([tool("f", s=STRING, n=INTEGER), tool("get_weather", city=STRING), tool("g")])


def read(text: str, format: str, tools: Toolset | None = TOOLS, **how: Any) -> Reply:
    return hold_of_every_cut(text, Setting(format, tools, **how))


def args(reply: Reply) -> Args:
    return [(call.name, call.arguments) for call in reply.calls]


def codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems]


def blocking(reply: Reply) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.call) for problem in reply.problems if problem.blocking]


def runnable(reply: Reply) -> Args:
    blocked = {problem.call for problem in reply.problems if problem.blocking}
    return [(call.name, call.arguments) for i, call in enumerate(reply.calls) if call.complete and i not in blocked]


def made(name: str, **arguments: Any) -> Call:
    return Call(name, arguments, json.dumps(arguments))


def hermes(inside: str) -> str:
    return f"<tool_call>\n{inside}\n</tool_call>"


# -- arguments ---------------------------------------------------------------------------------------------------------

NO_ARGUMENTS = [
    ("hermes", hermes('{"name": "g"}')),
    ("hermes", hermes('{"name": "g", "arguments": null}')),
    ("hermes", hermes('{"name": "g", "arguments": ""}')),
    ("hermes", hermes('{"arguments": " \\n", "name": "g"}')),
    ("jamba", '<tool_calls>[{"name": "g", "arguments": null}]</tool_calls>'),
    ("llama3_json", '{"name": "g", "parameters": ""}'),
    ("apertus", '<|tools_prefix|>[{"g": null}]<|tools_suffix|>'),
    ("mistral_v11", '[TOOL_CALLS]g[ARGS]""'),
    ("functionary_v31", "<function=g></function>"),
    ("functionary_v31", "<function=g>\n</function>"),
    ("kimi_k2", "<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|><|tool_call_end|>"),
    ("harmony", "<|channel|>commentary to=functions.g<|message|><|call|>"),
    ("qwen3_coder", "<tool_call>\n<function=g>\n</function>\n</tool_call>"),
    ("glm45", "<tool_call>g</tool_call>"),
    ("deepseek_v32", '<｜DSML｜function_calls><｜DSML｜invoke name="g"/></｜DSML｜function_calls>'),
    ("pythonic", "[g()]"),
    ("gemma4", "<|tool_call>call:g{}<tool_call|>"),
]


@pytest.mark.parametrize("format, text", NO_ARGUMENTS)
def test_blank_null_or_absent_arguments_are_an_empty_object(format: str, text: str) -> None:
    reply = read(text, format)
    assert args(reply) == [("g", {})]
    assert reply.calls[0].json == "{}"
    assert reply.problems == ()


NOT_OBJECTS = ["[1]", "5", "true", '"x"', "[]", "-0.5"]


@pytest.mark.parametrize("sent", NOT_OBJECTS)
@pytest.mark.parametrize(
    "format, text",
    [
        ("hermes", hermes('{"name": "f", "arguments": %s}')),
        ("jamba", '<tool_calls>[{"arguments": %s, "name": "f"}]</tool_calls>'),
        ("mistral_v11", "[TOOL_CALLS]f[ARGS]%s</s>"),
        ("apertus", '<|tools_prefix|>[{"f": %s}]<|tools_suffix|>'),
    ],
)
def test_arguments_that_are_no_object_keep_the_call_and_their_text_and_block_it(
    format: str, text: str, sent: str
) -> None:
    reply = read(text % sent, format)
    assert args(reply) == [("f", {})]
    assert reply.calls[0].json == sent
    assert blocking(reply) == [("arguments_not_object", 0)]


# -- types of bare values ----------------------------------------------------------------------------------------------

NULLABLE = {"type": ["string", "null"]}
TYPING: list[tuple[str, Json, Any]] = [
    # text, schema, value
    ("007", STRING, "007"),
    ("null", STRING, "null"),
    ("None", STRING, "None"),
    ("1e5", STRING, "1e5"),
    ("true", STRING, "true"),
    ('"quoted"', STRING, '"quoted"'),
    ('{"a": 1}', STRING, '{"a": 1}'),
    ("", STRING, ""),
    ("a", {"enum": ["a", "b"]}, "a"),
    ("1", {"enum": ["1", "2"]}, "1"),
    ("null", NULLABLE, None),
    ("None", NULLABLE, None),
    ("Paris", NULLABLE, "Paris"),
    ("12", NULLABLE, "12"),
    ("null", {"anyOf": [STRING, {"type": "null"}]}, None),
    ("none", {"anyOf": [STRING, {"type": "null"}]}, "none"),
    ("12", {"type": ["string", "integer"]}, "12"),
    ("null", {"type": ["string", "integer"]}, "null"),
    ("12", INTEGER, 12),
    (" 12 ", INTEGER, 12),
    ("-3", {"type": "number"}, -3),
    ("1e5", {"type": "number"}, 1e5),
    ("true", {"type": "boolean"}, True),
    ("True", {"type": "boolean"}, True),
    ("null", {"type": ["integer", "null"]}, None),
    ("None", {"type": ["integer", "null"]}, None),
    ('{"a": [1, null]}', {"type": "object"}, {"a": [1, None]}),
    ("{'a': [1, None]}", {"type": "object"}, {"a": [1, None]}),
    ("['x', \"y\"]", {"type": "array"}, ["x", "y"]),
]
UNDECLARED = [
    ("12", 12),
    ("true", True),
    ('{"a": 1}', {"a": 1}),
    ("True", "True"),
    ("two words", "two words"),
    ("012", "012"),
]
TAGGED = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=v>\n%s\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>%s</arg_value>\n</tool_call>",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="v">%s</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "step3": '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">'
    '<steptml:parameter name="v">%s</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
    "minicpm5": '<function name="f"><param name="v">%s</param></function>',
}


@pytest.mark.parametrize("format", TAGGED)
@pytest.mark.parametrize("text, schema, value", TYPING)
def test_the_schema_says_how_a_bare_value_is_read(format: str, text: str, schema: Json, value: Any) -> None:
    reply = read(TAGGED[format] % text, format, Toolset([tool("f", v=schema)]))
    assert json.dumps(reply.calls[0].arguments) == json.dumps({"v": value})
    assert reply.problems == ()


@pytest.mark.parametrize("format", TAGGED)
@pytest.mark.parametrize("text, value", UNDECLARED)
def test_an_undeclared_argument_is_json_if_it_is_valid_json_and_else_text(format: str, text: str, value: Any) -> None:
    for tools in (Toolset([tool("f")]), None):
        reply = read(TAGGED[format] % text, format, tools)
        assert json.dumps(reply.calls[0].arguments) == json.dumps({"v": value})


@pytest.mark.parametrize("format", TAGGED)
def test_text_that_is_not_of_its_type_stays_text_with_a_problem(format: str) -> None:
    reply = read(TAGGED[format] % "a dozen", format, Toolset([tool("f", v=INTEGER)]))
    assert args(reply) == [("f", {"v": "a dozen"})]
    assert blocking(reply) == [("wrong_type", 0)]
    assert reply.problems[0].path == "/v"


@pytest.mark.parametrize(
    "format, text",
    [
        (
            "deepseek_v32",
            '<｜DSML｜function_calls><｜DSML｜invoke name="f">'
            '<｜DSML｜parameter name="s" string="false">7</｜DSML｜parameter>'
            '<｜DSML｜parameter name="n" string="true">7</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>',
        ),
        (
            "kimi_k3",
            '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="s" type="number"<|sep|>7'
            '<|close|>argument<|sep|><|open|>argument key="n" type="string"<|sep|>7<|close|>argument<|sep|>'
            "<|close|>call<|sep|><|close|>tools<|sep|>",
        ),
        ("gemma4", '<|tool_call>call:f{n:<|"|>7<|"|>}<tool_call|>'),
    ],
)
def test_a_type_in_the_text_wins_over_the_schema(format: str, text: str) -> None:
    [(_, arguments)] = args(read(text, format))
    assert arguments == {"s": 7, "n": "7"} if "s" in arguments else arguments == {"n": "7"}


# -- markers in values, in prose, in the middle ------------------------------------------------------------------------


@every_format
def test_closing_markers_inside_a_value_do_not_close(name: str) -> None:
    format = FORMATS[name]
    pairs = [format.section, format.call, format.reasoning, *format.content]
    closes = [text.strip() for pair in pairs if pair for text in alternatives(pair[1])]
    if isinstance(format.bodies[0], Params):
        closes += [text.strip() for text in alternatives(format.bodies[0].value_close) if "{" not in text]
    value = f"see {' or '.join(filter(None, [*closes, *format.ends]))} in a string"
    calls = [made("f", s=value, n=1), made("f", s="other")]
    text = render(calls, format=name, tools=TOOLS)
    assert args(read(text, name)) == [("f", {"s": value, "n": 1}), ("f", {"s": "other"})]


@every_format
def test_an_undeclared_tool_keeps_its_call_and_names_the_nearest(name: str) -> None:
    text = render([made("f", s="x"), made("get_wether", city="Rome")], format=name)
    reply = read(text, name)
    assert args(reply) == [("f", {"s": "x"}), ("get_wether", {"city": "Rome"})]
    assert blocking(reply) == [("unknown_tool", 1)]
    assert "'get_weather'" in reply.problems[0].message


@every_format
def test_with_no_tools_at_all_nothing_may_be_called(name: str) -> None:
    reply = read(render(made("f", s="x"), format=name), name, Toolset(()))
    assert [call.name for call in reply.calls] == ["f"]
    assert blocking(reply) == [("unknown_tool", 0)]


@pytest.mark.parametrize(
    "format, text, name",
    [
        ("hermes", hermes('{"name": "get weather", "arguments": {"s": "x"}}'), "get weather"),
        ("hermes", hermes('{"name": "a/b", "arguments": {"s": "x"}}'), "a/b"),
        ("hermes", hermes('{"name": " ", "arguments": {"s": "x"}}'), " "),
        ("jamba", '<tool_calls>[{"name": "f<x>", "arguments": {"s": "x"}}]</tool_calls>', "f<x>"),
        ("lfm2", "<|tool_call_start|>[a/b(s='x')]<|tool_call_end|>", "a/b"),
        ("llama3_json", '<|python_tag|>{"name": "größe!", "parameters": {"s": "x"}}', "größe!"),
    ],
)
def test_a_name_with_other_characters_keeps_the_call_and_blocks_it(format: str, text: str, name: str) -> None:
    for tools in (TOOLS, None):
        reply = read(text, format, tools)
        assert args(reply) == [(name, {"s": "x"})]
        assert blocking(reply) == [("invalid_name", 0)]


@pytest.mark.parametrize("name", BESIDE)
def test_text_before_between_and_after_calls_is_kept_in_order(name: str) -> None:
    parts: list[Part] = [Text("One."), made("f", s="x"), Text("Two."), made("f", s="y"), made("g"), Text("Three.")]
    reply = read(render(parts, format=name, tools=TOOLS), name)
    assert [part.name if isinstance(part, Call) else part.text for part in reply.parts] == [
        "One.",
        "f",
        "Two.",
        "f",
        "g",
        "Three.",
    ]
    assert reply.content == "One.\nTwo.\nThree."


def openers(name: str) -> list[str]:
    """What opens a section or a call, as prose would quote it."""
    format = FORMATS[name]
    pairs = [format.section, format.call]
    found = [text.strip() for pair in pairs if pair for text in alternatives(pair[0])]
    return [text for text in found if text and "{" not in text]


MENTIONS = [(name, opener) for name in FORMATS for opener in openers(name)]


@pytest.mark.parametrize("name, opener", MENTIONS)
def test_prose_that_mentions_an_opener_stays_text(name: str, opener: str) -> None:
    for text in (f"Use {opener} to call a tool. Bye.", f'The marker "{opener}" opens a call. Bye.'):
        for tools in (TOOLS, None):
            reply = read(text, name, tools)
            assert runnable(reply) == []
            assert "".join(reply.content.split()) == "".join(text.split())


@pytest.mark.parametrize("name, opener", MENTIONS)
def test_a_call_behind_prose_that_mentions_the_opener_is_still_read(name: str, opener: str) -> None:
    parts: list[Part] = [Text("Use the tag"), made("f", s="x")]
    if name in BARE:
        return
    call = render(parts[1:], format=name, tools=TOOLS)
    reply = read(f"Use {opener} to call a tool: \n{call}", name)
    assert runnable(reply) == [("f", {"s": "x"})]
    assert "to call a tool:" in reply.content


@pytest.mark.parametrize("name", ["llama3_json", "generic_json", "xlam", "granite3", "forced_choice"])
@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 42}',
        '{"name": "Bob", "age": 3}',
        '[{"id": 1}, {"id": 2}]',
        "[1, 2]",
        '{"a": {"name": "f"}}',
        "{}",
        "[]",
    ],
)
def test_json_that_is_no_call_stays_text(name: str, text: str) -> None:
    reply = read(text, name)
    assert (reply.content, reply.calls, reply.problems) == (text, (), ())


# -- white space and end tokens ----------------------------------------------------------------------------------------


@every_format
@pytest.mark.parametrize("text", ["  a  b \n\n", "\n\nHello\n", "\t", " ", "x", "two\r\nlines\r\n"])
def test_a_reply_without_markers_is_kept_to_the_byte(name: str, text: str) -> None:
    reply = read(text, name)
    assert (reply.content, reply.calls, reply.problems) == (text, (), ())


@pytest.mark.parametrize("name", BESIDE)
def test_white_space_that_touches_a_marker_is_the_markers(name: str) -> None:
    call = render(made("f", s="x"), format=name, tools=TOOLS)
    if not FORMATS[name].channels and not FORMATS[name].content:
        reply = read(f" \n One \n{call} \n ", name)
        assert [part for part in reply.parts if isinstance(part, Text)] == [Text(" \n One")]
    reply = read(f"\n {call}\n", name)
    assert [type(part) for part in reply.parts] == [Call]


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.ends and not format.channels])
def test_end_of_turn_tokens_are_never_content(name: str) -> None:
    for end in FORMATS[name].ends:
        if "assistant" in end or end == "<|message_model|>" or name == "gigachat3":
            continue  # these begin the next message
        reply = read(render(made("f", s="x"), format=name, tools=TOOLS) + end, name)
        assert (args(reply), reply.content) == ([("f", {"s": "x"})], "")
        assert read(f"Done.{end}", name).content == "Done."


@pytest.mark.parametrize(
    "format, text",
    [
        ("nemotron_v2", 'Look.<SPECIAL_12><TOOLCALL>[{"name": "f", "arguments": {"s": "x"}}]</TOOLCALL>'),
        ("gigachat31", 'Look.<|message_sep|><|function_call|>{"name": "f", "arguments": {"s": "x"}}'),
        (
            "harmony",
            "<|channel|>final<|message|>Look.<|end|><|start|>assistant"
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"s": "x"}<|call|>',
        ),
        (
            "muse",
            " to=user<|message|>Look.<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n"
            '<atem:invoke name="f">\n<atem:parameter name="s">x</atem:parameter>\n</atem:invoke>\n'
            "</atem:function_calls><|eom|>",
        ),
        (
            "solar_open",
            "<|content|>Look.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>abc<|tool_call:name|>f<|tool_call:args|>"
            '{"s": "x"}<|tool_call:end|><|calls|>',
        ),
        ("hermes", "Look.<|im_end|>" + hermes('{"name": "f", "arguments": {"s": "x"}}')),
    ],
)
def test_a_reply_goes_on_behind_an_end_token_in_its_middle(format: str, text: str) -> None:
    reply = read(text, format)
    assert (args(reply), reply.content) == ([("f", {"s": "x"})], "Look.")
    assert reply.problems == ()


# -- reasoning ---------------------------------------------------------------------------------------------------------

THINKING = [name for name, format in FORMATS.items() if format.reasoning and name not in ("solar_open", "inkling")]


@pytest.mark.parametrize("name", THINKING)
def test_a_close_of_reasoning_without_its_opener_makes_the_text_before_it_reasoning(name: str) -> None:
    pair = FORMATS[name].reasoning
    assert pair is not None
    close = alternatives(pair[1])[0]
    text = f"First I look.{close}" + render(made("f", s="x"), format=name, tools=TOOLS)
    reply = read(text, name)
    assert (reply.reasoning, reply.content, args(reply)) == ("First I look.", "", [("f", {"s": "x"})])
    opened = read(text, name, reasoning="open")
    assert (opened.parts, opened.problems) == (reply.parts, reply.problems)


@pytest.mark.parametrize("name", THINKING)
def test_reasoning_that_the_prompt_opened_is_reasoning_from_the_first_character(name: str) -> None:
    parser = Parser(name, reasoning="open")
    assert parser.feed("Let me") == [Reasoning("Let me")]
    parser.feed(" think")
    parser.close()
    assert parser.reply.parts == (Reasoning("Let me think"),)


def test_text_is_given_at_once_and_recast_when_it_turns_out_to_be_reasoning() -> None:
    parser = Parser("hermes")
    assert parser.feed("I look") == [Text("I look")]
    assert parser.feed(" first</think>") == [Text(" first"), Recast(12, "reasoning")]
    assert parser.feed("Hi") == [Text("Hi")]
    parser.close()
    assert parser.reply.parts == (Reasoning("I look first"), Text("Hi"))


def test_with_hold_text_waits_until_it_is_known_what_it_is() -> None:
    parser = Parser("hermes", hold=True)
    assert parser.feed("I look first") == []
    assert parser.feed("</think>Hi") == [Reasoning("I look first"), Text("Hi")]
    other = Parser("hermes", hold=True)
    assert other.feed("Plain text.") == []
    assert other.close() == [Text("Plain text.")]


def test_with_hold_text_goes_out_when_a_call_begins() -> None:
    parser = Parser("hermes", hold=True)
    events = parser.feed('I look.\n<tool_call>{"name": "f", "arguments": {')
    assert [type(event) for event in events] == [Text, CallStart]


def test_a_close_of_reasoning_behind_a_call_is_text() -> None:
    text = hermes('{"name": "f", "arguments": {"s": "x"}}') + "\nso </think> what"
    reply = read(text, "hermes")
    assert (reply.reasoning, reply.content) == ("", "so </think> what")


# -- calls that were cut off -------------------------------------------------------------------------------------------


@every_format
def test_a_call_that_was_cut_off_is_kept_and_never_completed(name: str) -> None:
    """At every place from the argument's first character on, until the body's own end has been seen."""
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    for end in range(text.index("needle"), text.index("hay") + len("hay") + 1):
        reply = parse(text[:end], format=name, tools=TOOLS)
        [call] = reply.calls
        assert (call.name, call.arguments, call.complete) == ("f", {}, False)
        assert blocking(reply) == [("truncated", 0)]
        assert call.raw and text[:end].endswith(call.raw)


CUT_SHORT = [
    ("hermes", "<tool_call>\n" + '{"name": "f", "arguments": {"s": "x"}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=s>\nx\n</parameter>"),
    ("glm45", "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>"),
    ("kimi_k2", '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"s": "x"'),
    ("lfm2", "<|tool_call_start|>[f(s='x'"),
    ("gemma4", '<|tool_call>call:f{s:<|"|>x<|"|>'),
    ("harmony", '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"s": "x"'),
]


@pytest.mark.parametrize("format, text", CUT_SHORT)
def test_a_call_is_complete_only_when_its_own_end_was_seen(format: str, text: str) -> None:
    reply = read(text, format)
    assert [(call.name, call.complete) for call in reply.calls] == [("f", False)]
    assert blocking(reply) == [("truncated", 0)]


# -- ids ---------------------------------------------------------------------------------------------------------------

IDS = [
    # format, text, id of the call
    ("hermes", hermes('{"id": "abc", "name": "f", "arguments": {"s": "x"}}'), "abc"),
    (
        "cohere_command3",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {}}]<|END_ACTION|>',
        "0",
    ),
    ("kimi_k2", "<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|>", "functions.f:3"),
    ("mistral_v11", "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}", "abcdefghi"),
    (
        "solar_open",
        "<|tool_calls|><|tool_call:begin|>tc-1<|tool_call:name|>f<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        "tc-1",
    ),
]


@pytest.mark.parametrize("format, text, id", IDS)
def test_an_id_before_the_arguments_is_kept_and_final(format: str, text: str, id: str) -> None:
    got = read_chunks(list(text), Setting(format))
    assert [event.id for event in got.events if isinstance(event, CallStart)] == [id]
    assert [call.id for call in got.reply.calls] == [id]


def test_an_id_behind_the_arguments_is_ignored_and_stays_in_the_raw_text() -> None:
    text = '[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "abcdefghi"}]'
    [call] = read(text, "mistral_v3").calls
    assert call.id == "c_0_0"
    assert "abcdefghi" in call.raw


def test_a_call_without_an_id_gets_one_and_no_two_are_alike() -> None:
    one = hermes('{"name": "f", "arguments": {"s": "x"}}')
    ids = [call.id for call in parse("\n".join([one] * 5), format="hermes").calls]
    assert len(set(ids)) == 5
    assert all(id.startswith("call_") for id in ids)


def test_an_id_given_twice_in_a_reply_is_told_apart() -> None:
    one = hermes('{"id": "a", "name": "f", "arguments": {}}')
    assert [call.id for call in parse(one * 3, format="hermes").calls] == ["a", "a_dup_1", "a_dup_2"]


def test_ids_of_one_conversation_are_told_apart_over_its_turns() -> None:
    ids = Ids.numbered("capture_call")
    turns = [["a", "a", "a"], ["a", ""], ["capture_call_1_1"]]
    used = []
    for turn in turns:
        used.append([ids.take(received) for received in turn])
        ids.next_turn()
    assert used == [
        ["a", "a_dup_1", "a_dup_2"],
        ["a_dup_3", "capture_call_1_1"],
        ["capture_call_1_1_dup_1"],
    ]
    assert ids.received("a_dup_3") == "a"
    assert ids.received("capture_call_1_1") == "capture_call_1_1"


def test_nine_character_ids_are_kept_or_minted_anew_and_never_suffixed() -> None:
    ids = Ids.nine()
    assert ids.take("abcdefghi") == "abcdefghi"
    others = [ids.take("abcdefghi"), ids.take("functions.f:0"), ids.take(""), ids.take("too-short")]
    assert all(len(id) == 9 and id.isalnum() and id.isascii() for id in others)
    assert len({"abcdefghi", *others}) == 5
    assert ids.received(others[1]) == "functions.f:0"


def test_numbered_ids_are_the_same_on_every_run() -> None:
    text = hermes('{"name": "f"}') * 2
    for _ in range(2):
        assert [call.id for call in parse(text, format="hermes", ids=Ids.numbered("run")).calls] == [
            "run_0_0",
            "run_0_1",
        ]


# -- exact text --------------------------------------------------------------------------------------------------------

EXACT = [
    '{"n": 123456789012345678901234567890}',
    '{"n": 1.50, "m": 1E+2, "z": -0.0, "e": 1e400}',
    '{"s": "\\u00e9 é \\ud83d\\ude00 👋"}',
    '{"s": "\\ud800"}',
    '{"s":"a\\/b\\t"  ,\n "t" : [ ]}',
    '{"s": "\ud800 raw"}',
]


@pytest.mark.parametrize("sent", EXACT)
@pytest.mark.parametrize(
    "format, text",
    [
        ("hermes", hermes('{"name": "h", "arguments": %s}')),
        ("hermes", hermes('{"arguments": %s, "name": "h"}')),
        ("mistral_v11", "[TOOL_CALLS]h[ARGS]%s</s>"),
        ("harmony", "<|channel|>commentary to=functions.h<|message|>%s<|call|>"),
    ],
)
def test_json_arguments_are_never_reformatted(format: str, text: str, sent: str) -> None:
    [call] = read(text % sent, format, None).calls
    assert call.json == sent
    assert json.dumps(call.arguments) == json.dumps(json.loads(sent))


# -- what users of other parsers pay for -------------------------------------------------------------------------------


@every_format
def test_a_cut_off_call_never_runs(name: str) -> None:
    text = render([made("f", s="first"), made("f", s="second", n=-12)], format=name, tools=TOOLS)
    allowed: list[Args] = [[], [("f", {"s": "first"})], [("f", {"s": "first"}), ("f", {"s": "second", "n": -12})]]
    for end in range(len(text)):
        for chunks in ([text[:end]], list(text[:end])):
            assert runnable(read_chunks(chunks, Setting(name, TOOLS), live=True).reply) in allowed


@every_format
def test_one_big_delta_gives_all_arguments(name: str) -> None:
    calls = [made("f", s="x" * 300, n=n) for n in range(5)]
    text = render(calls, format=name, tools=TOOLS)
    assert args(read_chunks([text], Setting(name, TOOLS), live=True).reply) == [(c.name, c.arguments) for c in calls]


BAD_FIRST = [
    ("hermes", hermes('{"name": "f", "arguments": {"s": x}}') + hermes('{"name": "g"}')),
    ("hermes", hermes("{bad}") + hermes('{"name": "g"}')),
    ("hermes", hermes('{"name": "f", "arguments": {"s": "x"}') + hermes('{"name": "g"}')),
    ("jamba", '<tool_calls>[{"name": "f", "arguments": {"s": x}}, {"name": "g"}]</tool_calls>'),
    ("lfm2", "<|tool_call_start|>[f(1), g()]<|tool_call_end|>"),
    (
        "kimi_k2",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{bad<|tool_call_end|>"
        "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
    ),
    (
        "qwen3_coder",
        "<tool_call>\n<function=f>\noops\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=g>\n</function>\n</tool_call>",
    ),
    ("gemma4", "<|tool_call>call:f{s:<oops>}<tool_call|><|tool_call>call:g{}<tool_call|>"),
    (
        "harmony",
        "<|channel|>commentary to=functions.f<|message|>{bad<|call|><|start|>assistant"
        "<|channel|>commentary to=functions.g<|message|>{}<|call|>",
    ),
]


@pytest.mark.parametrize("format, text", BAD_FIRST)
def test_one_bad_call_leaves_its_sibling_alone(format: str, text: str) -> None:
    reply = read(text, format, repair="off")
    assert runnable(reply) == [("g", {})]
    assert {index for _, index in blocking(reply)} == {0}


def test_a_nullable_parameter_keeps_its_text() -> None:
    tools = Toolset([tool("f", v=NULLABLE, w={"anyOf": [STRING, {"type": "null"}]}, x={**STRING, "nullable": True})])
    text = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
    values = "".join(f"<parameter={key}>\nParis\n</parameter>\n" for key in "vwx")
    assert args(read(text % values, "qwen3_coder", tools)) == [("f", {"v": "Paris", "w": "Paris", "x": "Paris"})]


@pytest.mark.parametrize(
    "format, text", [("pythonic", "[f(n=-3, b=true), g()]"), ("llama4_pythonic", "[f(n=-3, b=true), g()]")]
)
def test_a_negative_number_or_a_lower_case_true_costs_nothing(format: str, text: str) -> None:
    assert runnable(read(text, format)) == [("f", {"n": -3, "b": True}), ("g", {})]


def test_arguments_before_the_name_are_read_as_they_are() -> None:
    text = hermes('{"arguments": {"s": "x", "n": 1}, "name": "f"}')
    got = read_chunks(list(text), Setting("hermes", TOOLS), live=True).reply
    assert args(got) == [("f", {"s": "x", "n": 1})]
    assert got.calls[0].json == '{"s": "x", "n": 1}'


def test_pretty_printed_arguments_are_read() -> None:
    inside = json.dumps({"name": "f", "arguments": {"s": "x", "n": 1}}, indent=4)
    assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x", "n": 1})]


def test_renamed_keys_and_a_nested_function_are_read() -> None:
    for inside in (
        '{"tool_name": "f", "parameters": {"s": "x"}}',
        '{"tool": "f", "args": {"s": "x"}}',
        '{"type": "function", "function": {"name": "f", "arguments": {"s": "x"}}}',
        '{"id": "1", "type": "function", "function": {"arguments": {"s": "x"}, "name": "f"}}',
    ):
        assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x"})]


# -- live --------------------------------------------------------------------------------------------------------------


@every_format
def test_live_passes_a_plain_string_on_while_it_arrives(name: str) -> None:
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    parser = Parser(name, tools=TOOLS, live=True)
    events = parser.feed(text[: text.index("hay")])
    pieces = "".join(event.json for event in events if hasattr(event, "json"))
    assert "needle" in pieces


@pytest.mark.parametrize(
    "schema", [{"enum": ["needle"]}, {**STRING, "pattern": "n"}, {**STRING, "format": "uri"}, NULLABLE, {}]
)
@every_format
def test_live_holds_a_string_back_that_its_schema_may_judge(name: str, schema: Json) -> None:
    tools = Toolset([tool("f", s=schema)])
    text = render(made("f", s="needle in hay"), format=name, tools=tools)
    parser = Parser(name, tools=tools, live=True)
    events = parser.feed(text[: text.index("hay")])
    assert "needle" not in "".join(event.json for event in events if hasattr(event, "json"))


# -- limits ------------------------------------------------------------------------------------------------------------


@every_format
def test_a_reply_that_is_too_long_is_text_from_there_on(name: str) -> None:
    text = "Hello there. " * 10
    for chunks in ([text], list(text)):
        parser = Parser(name, limits=Limits(reply=40), spans=True)
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        reply = parser.reply
        assert reply.content == text
        assert codes(reply) == ["too_large"]
        assert reply.spans is not None and reply.spans[-1].end == len(text)


@every_format
def test_a_call_that_is_too_large_is_kept_and_never_runs(name: str) -> None:
    text = render([made("f", s="x" * 400), made("f", s="y")], format=name, tools=TOOLS)
    reply = parse(text, format=name, tools=TOOLS, limits=Limits(call=300))
    assert [(call.name, call.complete) for call in reply.calls] == [("f", False), ("f", True)]
    assert "x" * 400 in reply.calls[0].raw
    assert blocking(reply) == [("too_large", 0)]


@every_format
def test_calls_beyond_the_limit_are_text(name: str) -> None:
    text = render([made("f", s=str(n)) for n in range(6)], format=name, tools=TOOLS)
    for chunks in ([text], list(text)):
        parser = Parser(name, tools=TOOLS, limits=Limits(calls=3))
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        reply = parser.reply
        assert len(reply.calls) == 3
        assert "too_large" in codes(reply)
        assert "5" in reply.content


def nested(depth: int) -> Json:
    value: Json = {"n": 1}
    for _ in range(depth - 1):
        value = {"o": value}
    return value


@every_format
def test_arguments_that_are_too_deep_are_kept_and_never_run(name: str) -> None:
    tools = Toolset([tool("f", o={"type": "object"}), tool("g")])
    text = render([made("f", **nested(30)), made("g")], format=name, tools=tools)
    for chunks in ([text], list(text)):
        parser = Parser(name, tools=tools, limits=Limits(depth=20))
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        reply = parser.reply
        assert [call.name for call in reply.calls] == ["f", "g"]
        assert blocking(reply) == [("too_deep", 0)]
        assert runnable(reply) == [("g", {})]
    assert runnable(parse(text, format=name, tools=tools, limits=Limits(depth=30)))[0][0] == "f"


# -- callers' mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["reasoning", "repair"])
def test_an_option_with_another_value_is_refused(option: str) -> None:
    with pytest.raises(CallerError, match="maybe"):
        Parser("hermes", **{option: "maybe"})  # type: ignore[arg-type]


def test_a_closed_parser_takes_no_more_text() -> None:
    parser = Parser("hermes")
    parser.close()
    assert parser.close() == []
    with pytest.raises(CallerError):
        parser.feed("x")
