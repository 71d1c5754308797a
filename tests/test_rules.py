"""Rules on which sources disagree, each fixed by a test. Every text is parsed under every chunking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Call, Text, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Params, Special, marker_alternatives
from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.types import Part
from support.format_sample import SWEEP, sampled, sampled_rows
from support.replies import (
    BARE,
    EITHER,
    INTEGER,
    NULLABLE,
    STRING,
    TOOLS,
    Json,
    args,
    blocking,
    hermes,
    make_call,
    notes,
    read,
    runnable,
    tool,
    wrong,
)

every_format = pytest.mark.parametrize("name", sampled())
FORMATS_WITH_TEXT_AROUND_CALLS = [name for name in FORMATS if name not in BARE | EITHER]


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
    assert reply.attempts[0].json == "{}"
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
def test_arguments_that_are_not_an_object_block_the_call_and_keep_their_text(format: str, text: str, sent: str) -> None:
    reply = read(text % sent, format)
    assert args(reply) == [("f", {})]
    assert reply.attempts[0].json == sent
    assert blocking(reply) == [("arguments_not_object", 0)]


# -- types of bare values ----------------------------------------------------------------------------------------------

BARE_VALUES: list[tuple[str, Json, Any]] = [
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
@pytest.mark.parametrize("text, schema, value", BARE_VALUES)
def test_the_schema_determines_the_type_of_a_bare_value(format: str, text: str, schema: Json, value: Any) -> None:
    reply = read(TAGGED[format] % text, format, Toolset([tool("f", v=schema)]))
    assert json.dumps(reply.attempts[0].arguments) == json.dumps({"v": value})
    assert reply.problems == ()


@pytest.mark.parametrize("format", TAGGED)
@pytest.mark.parametrize("text, value", UNDECLARED)
def test_an_undeclared_argument_is_json_if_valid_and_otherwise_text(format: str, text: str, value: Any) -> None:
    for tools in (Toolset([tool("f")]), None):
        reply = read(TAGGED[format] % text, format, tools)
        assert json.dumps(reply.attempts[0].arguments) == json.dumps({"v": value})


@pytest.mark.parametrize("format", TAGGED)
def test_a_bare_value_of_the_wrong_type_stays_text_with_a_problem(format: str) -> None:
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
def test_a_type_in_the_text_takes_precedence_over_the_schema(format: str, text: str) -> None:
    [(_, arguments)] = args(read(text, format))
    assert arguments == {"s": 7, "n": "7"} if "s" in arguments else arguments == {"n": "7"}


# -- markers in values and in prose ------------------------------------------------------------------------------------


@every_format
def test_closing_markers_inside_a_value_do_not_close_the_call(name: str) -> None:
    format = FORMATS[name]
    pairs = [format.section, format.call, format.reasoning, *format.content]
    closes = [text.strip() for pair in pairs if pair for text in marker_alternatives(pair[1])]
    if isinstance(format.bodies[0], Params):
        closes += [text.strip() for text in marker_alternatives(format.bodies[0].value_close) if "{" not in text]
    value = f"see {' or '.join(filter(None, [*closes, *format.ends]))} in a string"
    calls = [make_call("f", s=value, n=1), make_call("f", s="other")]
    text = render(calls, format=name, tools=TOOLS)
    assert args(read(text, name)) == [("f", {"s": value, "n": 1}), ("f", {"s": "other"})]


@every_format
def test_a_call_of_an_undeclared_tool_is_kept_and_the_nearest_tool_is_named(name: str) -> None:
    text = render([make_call("f", s="x"), make_call("get_wether", city="Rome")], format=name)
    reply = read(text, name)
    assert args(reply) == [("f", {"s": "x"}), ("get_wether", {"city": "Rome"})]
    assert blocking(reply) == [("unknown_tool", 1)]
    assert "'get_weather'" in reply.problems[0].message


@every_format
def test_with_an_empty_toolset_every_call_is_blocked(name: str) -> None:
    reply = read(render(make_call("f", s="x"), format=name), name, Toolset(()))
    assert [call.name for call in reply.attempts] == ["f"]
    assert blocking(reply) == [("unknown_tool", 0)]


@pytest.mark.parametrize(
    "format, text, name",
    [
        ("hermes", hermes('{"name": "get weather", "arguments": {"s": "x"}}'), "get weather"),
        ("hermes", hermes('{"name": "a/b", "arguments": {"s": "x"}}'), "a/b"),
        ("hermes", hermes('{"name": " ", "arguments": {"s": "x"}}'), ""),
        ("jamba", '<tool_calls>[{"name": "f<x>", "arguments": {"s": "x"}}]</tool_calls>', "f<x>"),
        ("lfm2", "<|tool_call_start|>[a/b(s='x')]<|tool_call_end|>", "a/b"),
        ("llama3_json", '<|python_tag|>{"name": "größe!", "parameters": {"s": "x"}}', "größe!"),
    ],
)
def test_a_name_with_invalid_characters_blocks_the_call(format: str, text: str, name: str) -> None:
    for tools in (TOOLS, None):
        reply = read(text, format, tools)
        assert args(reply) == [(name, {"s": "x"})]
        assert blocking(reply) == [("invalid_name", 0)]


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_TEXT_AROUND_CALLS))
def test_text_before_between_and_after_calls_is_kept_in_order(name: str) -> None:
    parts: list[Part] = [
        Text("One."),
        make_call("f", s="x"),
        Text("Two."),
        make_call("f", s="y"),
        make_call("g"),
        Text("Three."),
    ]
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


def is_special(name: str, opener: str) -> bool:
    """Return whether the opener consists of special tokens, which are dropped from text with a note."""
    pairs = [FORMATS[name].section, FORMATS[name].call]
    found = [text for pair in pairs if pair for text in marker_alternatives(pair[0])]
    return any(isinstance(text, Special) and text.strip() == opener for text in found)


def openers(name: str) -> list[str]:
    """Return the openers of a section or a call, as prose would quote them."""
    format = FORMATS[name]
    pairs = [format.section, format.call]
    found = [text.strip() for pair in pairs if pair for text in marker_alternatives(pair[0])]
    return [text for text in found if text and "{" not in text]


MENTIONS = [(name, opener) for name in FORMATS for opener in openers(name)]


@pytest.mark.parametrize("name, opener", sampled_rows(MENTIONS))
def test_prose_that_mentions_an_opener_is_text(name: str, opener: str) -> None:
    for text in (f"Use {opener} to call a tool. Bye.", f'The marker "{opener}" opens a call. Bye.'):
        for tools in (TOOLS, None):
            reply = read(text, name, tools)
            assert (runnable(reply), wrong(reply)) == ([], [])
            assert '"' in text or "```" in opener or notes(reply)
            dropped = is_special(name, opener) and '"' not in text
            expected_text = text.replace(opener, "") if dropped else text
            assert "".join(reply.content.split()) == "".join(expected_text.split())


# Text after an opener that contains a fence is inside that fence.
@pytest.mark.parametrize(
    "name, opener", sampled_rows(pair for pair in MENTIONS if pair[0] not in BARE and "```" not in pair[1])
)
def test_a_call_after_prose_that_mentions_the_opener_is_parsed(name: str, opener: str) -> None:
    call = render(make_call("f", s="x"), format=name, tools=TOOLS)
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
def test_json_that_is_not_a_call_is_text(name: str, text: str) -> None:
    reply = read(text, name)
    assert (reply.content, reply.attempts, wrong(reply)) == (text, (), [])
    assert notes(reply) == ({"looks_like_a_call"} if '"name": "f"' in text else set())


# -- white space and end tokens ----------------------------------------------------------------------------------------


@every_format
@pytest.mark.parametrize("text", ["  a  b \n\n", "\n\nHello\n", "\t", " ", "x", "two\r\nlines\r\n"])
def test_a_reply_without_markers_is_unchanged_text(name: str, text: str) -> None:
    reply = read(text, name)
    assert (reply.content, reply.attempts, wrong(reply)) == (text, (), [])
    assert notes(reply) == ({"looks_like_a_call"} if '"name": "f"' in text else set())


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_TEXT_AROUND_CALLS))
def test_white_space_next_to_a_marker_is_dropped(name: str) -> None:
    call = render(make_call("f", s="x"), format=name, tools=TOOLS)
    if not FORMATS[name].channels and not FORMATS[name].content:
        reply = read(f" \n One \n{call} \n ", name)
        assert [part for part in reply.parts if isinstance(part, Text)] == [Text(" \n One")]
    reply = read(f"\n {call}\n", name)
    assert [type(part) for part in reply.parts] == [Call]


@pytest.mark.parametrize(
    "name", sampled(name for name, format in FORMATS.items() if format.ends and not format.channels)
)
def test_end_of_turn_tokens_are_never_content(name: str) -> None:
    for end in FORMATS[name].ends:
        if "assistant" in end or end == "<|message_model|>" or name == "gigachat3":
            continue  # these begin the next message
        reply = read(render(make_call("f", s="x"), format=name, tools=TOOLS) + end, name)
        assert (args(reply), reply.content) == ([("f", {"s": "x"})], "")
        assert read(f"Done.{end}", name).content == "Done."


@pytest.mark.parametrize("name", [*sampled(), "auto"])
def test_end_of_turn_tokens_of_other_models_are_dropped_at_the_end(name: str) -> None:
    """A format is used by models of several families, and no model knows the tokens of all."""
    call = render(make_call("f", s="x"), format="hermes" if name == "auto" else name, tools=TOOLS)
    for number, token in enumerate(LAST_TOKENS):
        endings = [token, f"\n{token}\n", f"{token}<|im_end|>"]
        for last in endings if SWEEP or name in ("hermes", "auto") else [endings[number % 3]]:
            reply = read(call + last, name)
            assert (args(reply), reply.content) == ([("f", {"s": "x"})], "")
            assert read(f"Done.{last}", name).content == "Done."


@pytest.mark.parametrize("name", sampled(name for name, format in FORMATS.items() if "</s>" not in format.ends))
def test_end_of_turn_tokens_of_other_models_are_text_before_text(name: str) -> None:
    text = "Llama 2 writes </s> last."
    assert (read(text, name).content, read(text, name).problems) == (text, ())


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
def test_a_reply_continues_after_an_end_token(format: str, text: str) -> None:
    reply = read(text, format)
    assert (args(reply), reply.content) == ([("f", {"s": "x"})], "Look.")
    assert reply.problems == ()


# -- exact text --------------------------------------------------------------------------------------------------------

EXACT = [
    '{"n": 123456789012345678901234567890}',
    '{"n": 1.50, "m": 1E+2, "z": -0.0, "e": 1e300}',
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
    [call] = read(text % sent, format, None).attempts
    assert call.json == sent
    assert json.dumps(call.arguments) == json.dumps(json.loads(sent))
