"""Failures that users of other parsers reported, each reproduced there; none of them occurs here."""

from __future__ import annotations

import json

import pytest

from rightcall import Toolset, parse, render
from rightcall.formats import FORMATS
from support.cuts import Setting
from support.cuts import read as read_chunks
from support.format_sample import sampled
from support.replies import (
    NULLABLE,
    STRING,
    TOOLS,
    Args,
    args,
    blocking,
    hermes,
    make_call,
    read,
    runnable,
    tool,
    wrong,
)

every_format = pytest.mark.parametrize("name", sampled())


@every_format
def test_a_truncated_call_is_never_runnable(name: str) -> None:
    text = render([make_call("f", s="first"), make_call("f", s="second", n=-12)], format=name, tools=TOOLS)
    allowed: list[Args] = [[], [("f", {"s": "first"})], [("f", {"s": "first"}), ("f", {"s": "second", "n": -12})]]
    for end in range(len(text)):
        for chunks in ([text[:end]], list(text[:end])):
            assert runnable(read_chunks(chunks, Setting(name, TOOLS), live=True).reply) in allowed


@pytest.mark.parametrize("call", ['[{"name": "g", "arguments": {}}', '{"name": "g", "parameters": {}}', "[g()", "g()"])
@every_format
def test_a_truncated_call_without_markers_is_never_complete(name: str, call: str) -> None:
    for end in range(len(call)):
        reply = parse(call[:end], format=name, tools=TOOLS)
        assert not any(found.complete for found in reply.attempts), call[:end]


@every_format
def test_all_arguments_of_one_large_delta_are_parsed(name: str) -> None:
    calls = [make_call("f", s="x" * 300, n=n) for n in range(5)]
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
def test_an_invalid_call_does_not_affect_its_sibling(format: str, text: str) -> None:
    reply = read(text, format, repair="off")
    assert runnable(reply) == [("g", {})]
    assert {index for _, index in blocking(reply)} == {0}


def test_text_of_a_nullable_parameter_is_a_string() -> None:
    tools = Toolset([tool("f", v=NULLABLE, w={"anyOf": [STRING, {"type": "null"}]}, x={**STRING, "nullable": True})])
    text = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
    values = "".join(f"<parameter={key}>\nParis\n</parameter>\n" for key in "vwx")
    assert args(read(text % values, "qwen3_coder", tools)) == [("f", {"v": "Paris", "w": "Paris", "x": "Paris"})]


@pytest.mark.parametrize(
    "format, text", [("pythonic", "[f(n=-3, b=true), g()]"), ("llama4_pythonic", "[f(n=-3, b=true), g()]")]
)
def test_negative_numbers_and_lower_case_booleans_are_parsed(format: str, text: str) -> None:
    assert runnable(read(text, format)) == [("f", {"n": -3, "b": True}), ("g", {})]


def test_arguments_before_the_name_are_parsed() -> None:
    text = hermes('{"arguments": {"s": "x", "n": 1}, "name": "f"}')
    got = read_chunks(list(text), Setting("hermes", TOOLS), live=True).reply
    assert args(got) == [("f", {"s": "x", "n": 1})]
    assert got.attempts[0].json == '{"s": "x", "n": 1}'


def test_pretty_printed_arguments_are_parsed() -> None:
    inside = json.dumps({"name": "f", "arguments": {"s": "x", "n": 1}}, indent=4)
    assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x", "n": 1})]


def test_renamed_keys_and_a_nested_function_are_parsed() -> None:
    for inside in (
        '{"tool_name": "f", "parameters": {"s": "x"}}',
        '{"tool": "f", "args": {"s": "x"}}',
        '{"type": "function", "function": {"name": "f", "arguments": {"s": "x"}}}',
        '{"id": "1", "type": "function", "function": {"arguments": {"s": "x"}, "name": "f"}}',
    ):
        assert args(read(hermes(inside), "hermes")) == [("f", {"s": "x"})]


# -- truncated calls ---------------------------------------------------------------------------------------------------


@every_format
def test_a_truncated_call_is_kept_and_never_completed(name: str) -> None:
    """The text is truncated everywhere from the argument's first character until before the end of the body."""
    text = render(make_call("f", s="needle in hay"), format=name, tools=TOOLS)
    for end in range(text.index("needle"), text.index("hay") + len("hay") + 1):
        reply = parse(text[:end], format=name, tools=TOOLS)
        [call] = reply.attempts
        assert (call.name, call.arguments, call.complete) == ("f", {}, False)
        assert blocking(reply) == [("truncated", 0)]
        assert call.raw and text[:end].endswith(call.raw)


TRUNCATED = [
    ("hermes", "<tool_call>\n" + '{"name": "f", "arguments": {"s": "x"}'),
    ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=s>\nx\n</parameter>"),
    ("glm45", "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>"),
    ("kimi_k2", '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"s": "x"'),
    ("lfm2", "<|tool_call_start|>[f(s='x'"),
    ("gemma4", '<|tool_call>call:f{s:<|"|>x<|"|>'),
    ("harmony", '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"s": "x"'),
]


@pytest.mark.parametrize("format, text", TRUNCATED)
def test_a_call_is_complete_only_when_its_own_end_was_seen(format: str, text: str) -> None:
    reply = read(text, format)
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False)]
    assert blocking(reply) == [("truncated", 0)]


# -- tags, tokens and headers in unusual notation ----------------------------------------------------------------------

_LOOKUP = {"type": "object", "properties": {"word": {"type": "string"}, "n": {"type": "integer"}}}
_WORDS = Toolset.of([{"name": "lookup", "parameters": _LOOKUP}])
_OWL = {"word": "owl"}
_TWO = {"word": "owl", "n": 3}
_DSML = '<｜DSML｜{0}>\n<｜DSML｜invoke name="lookup">\n{1}</｜DSML｜invoke>\n</｜DSML｜{0}>'
_DSML_N = '<｜DSML｜parameter name="n" string="false">3</｜DSML｜parameter>\n'
_K3 = '<|open|>tools<|sep|><|open|>call tool="lookup" index="1"<|sep|>{}<|close|>call<|sep|><|close|>tools<|sep|>'
_K3_N = '<|open|>argument key="n" type="integer"<|sep|>3<|close|>argument<|sep|>'
_LING = "<tool_call>lookup{0}<arg_key>word</arg_key>{0}<arg_value>owl</arg_value>{0}</tool_call>"

UNUSUAL_NOTATIONS = {
    "no blanks between tags": ("ling3", _LING.format(""), _OWL),
    "line breaks between tags": ("ling3", _LING.format("\n"), _OWL),
    "blanks between tags": ("ling3", _LING.format("  \n "), _OWL),
    "a value that the next argument ends": (
        "deepseek_v4",
        _DSML.format("tool_calls", '<｜DSML｜parameter name="word" string="true">owl' + _DSML_N),
        _TWO,
    ),
    "the same in another format": (
        "kimi_k3",
        _K3.format('<|open|>argument key="word" type="string"<|sep|>owl' + _K3_N),
        _TWO,
    ),
    "an argument that does not say its type": (
        "deepseek_v32",
        _DSML.format("function_calls", '<｜DSML｜parameter name="word">owl</｜DSML｜parameter>\n' + _DSML_N),
        _TWO,
    ),
    "collapsed tags": (
        "minicpm5",
        '<functionname="lookup"><paramname="word">owl</param><paramname="n">3</param></function>',
        _TWO,
    ),
    "a tag around all arguments": (
        "minicpm5",
        '<function name="lookup"><arguments><param name="word">owl</param></arguments></function>',
        _OWL,
    ),
    "the word before the name lost": ("gemma4", '<|tool_call>:lookup{word:<|"|>owl<|"|>}<tool_call|>', _OWL),
    "and its colon": ("gemma4", '<|tool_call>lookup{word:<|"|>owl<|"|>}<tool_call|>', _OWL),
    "quotes in quotes, before brackets": (
        "lfm2",
        "<|tool_call_start|>[lookup(word='sh -c \"f(g(a='\\,'))\"')]<|tool_call_end|>",
        {"word": "sh -c \"f(g(a='\\,'))\""},
    ),
}


@pytest.mark.parametrize("format, text, arguments", UNUSUAL_NOTATIONS.values(), ids=list(UNUSUAL_NOTATIONS))
def test_a_call_in_an_unusual_notation_is_runnable(format: str, text: str, arguments: dict[str, object]) -> None:
    for name in (format, "auto"):
        reply = read(text, name, _WORDS, repair="safe")
        assert [(call.name, call.arguments) for call in reply.calls] == [("lookup", arguments)]
        assert reply.content == ""


@pytest.mark.parametrize("word", ["tool_calls", "function_calls", "tool_call", "function_call", "toolcalls"])
@pytest.mark.parametrize("name", ["deepseek_v32", "deepseek_v4", "auto"])
def test_a_misspelled_section_marker_is_recognized(name: str, word: str) -> None:
    text = "I look.\n" + _DSML.format(word, '<｜DSML｜parameter name="word" string="true">owl</｜DSML｜parameter>\n')
    reply = read(text, name, _WORDS)
    assert args(reply) == [("lookup", _OWL)] and reply.content == "I look."


@pytest.mark.parametrize(
    "text", ["<|tool_call>call:lookup the owl<tool_call|>", "<|tool_call>:lookup owls<tool_call|>"]
)
def test_a_call_without_its_arguments_is_rejected_and_is_not_text(text: str) -> None:
    reply = read(text + "Done.", "gemma4", _WORDS, repair="safe")
    assert [call.name for call in reply.refused] == ["lookup"] and not reply.calls
    assert reply.content == "Done."


# -- nested tags -------------------------------------------------------------------------------------------------------

_NS = "]<]minimax[>["
_ORDER = {
    "type": "object",
    "properties": {
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        "maybe": {"type": ["array", "null"], "items": {"type": "string"}},
        "free": {"type": "object"},
    },
}
_ORDERS = Toolset.of([{"name": "order", "parameters": _ORDER}])


def _element(tag: str, *inside: str) -> str:
    return f"{_NS}<{tag}>{''.join(inside)}{_NS}</{tag}>"


def _order(*arguments: str) -> str:
    body = f'{_NS}<invoke name="order">{"".join(arguments)}{_NS}</invoke>'
    return f"{_NS}<tool_call>\n{body}\n{_NS}</tool_call>"


_ITEMS = _element("item", "1") + _element("item", "2")
NESTED = {
    "a union of text and list": (_element("either", _ITEMS), {"either": [1, 2]}),
    "the same as text": (_element("either", "both"), {"either": "both"}),
    "a list that may be null": (_element("maybe", _ITEMS), {"maybe": ["1", "2"]}),
    "elements of one tag": (
        _element("free", _element("tag", "a"), _element("tag", "b"), _element("one", "c")),
        {"free": {"tag": ["a", "b"], "one": "c"}},
    ),
}


@pytest.mark.parametrize("inside, arguments", NESTED.values(), ids=list(NESTED))
def test_all_elements_of_nested_tags_are_kept(inside: str, arguments: dict[str, object]) -> None:
    assert args(read(_order(inside), "minimax_m3", _ORDERS)) == [("order", arguments)]


def test_text_between_nested_tags_blocks_the_call() -> None:
    reply = read(_order(_element("free", _element("tag", "a"), "and", _element("one", "c"))), "minimax_m3", _ORDERS)
    assert blocking(reply) == [("unexpected_text", 0)]


# -- tokens that are not text ------------------------------------------------------------------------------------------

TOKENS = [
    ("inkling", "<|content_text|>Good day.<|content_model_end_sampling|>"),
    ("inkling", "Good day.<|content_model_end_sampling|>"),
    ("inkling", "<|content_tool_error|>Good day.<|end_message|>"),
    ("inkling", "<|message_model|><|content_invoke_tool_text|>Good day.<|end_message|>"),
    ("command_r_plus", "<|CHATBOT_TOKEN|>Good day.<|END_OF_TURN_TOKEN|>"),
    ("cohere_command3", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Good day.<|END_OF_TURN_TOKEN|>"),
    ("gemma4", "<|channel><|channel>thought\nHm.<channel|>Good day."),
    ("gemma4", "<|channel>Hm.<channel|>Good day."),
    ("gemma4", "<|channel>Hm.<channel|><|channel>Well.<channel|>Good day."),
    ("gemma4", "Good day.<|channel>Hm."),
    ("muse", " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Good day.<|eot|>"),
    ("muse", " to=user<|message|>Good day.<|end_of_text|>"),
    ("kimi_k3", '<|end_of_msg|><|open|>message role="assistant"<|sep|><|open|>response<|sep|>Good day.'),
    ("kimi_k3", "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>message<|sep|>Good day.<|close|>message<|sep|>"),
    # The end of the prompt, repeated by the model.
    ("hermes", "<|im_start|>assistant\nGood day.<|im_end|>"),
    ("lfm2", "<|im_start|>assistant\nGood day.<|im_end|>"),
    ("apertus", "<|assistant_start|>Good day.<|assistant_end|>"),
    ("apertus", "<|assistant_start|><|inner_prefix|>Hm.<|inner_suffix|>Good day.<|assistant_end|>"),
    ("gemma4", "<|turn>model\nGood day.<turn|>"),
    ("functiongemma", "<start_of_turn>model\nGood day.<end_of_turn>"),
    ("kimi_k2", "<|im_assistant|>assistant<|im_middle|>Good day.<|im_end|>"),
    ("granite3", "<|start_of_role|>assistant<|end_of_role|>Good day.<|end_of_text|>"),
    ("granite4", "<|start_of_role|>assistant<|end_of_role|>Good day.<|end_of_text|>"),
    ("phi4_mini", "<|assistant|>Good day.<|end|>"),
    ("seed_oss", "<seed:bos>assistant\nGood day.<seed:eos>"),
    ("step3", "<|BOT|>assistant\nGood day.<|EOT|>"),
]


@pytest.mark.parametrize("format, text", TOKENS)
def test_tokens_of_the_format_are_never_text(format: str, text: str) -> None:
    for name in (format, "auto"):
        assert read(text, name).content == "Good day."


@pytest.mark.parametrize("name", ["phi4_mini", "auto"])
def test_calls_of_phi_between_special_tokens_are_parsed(name: str) -> None:
    call = '[{"name": "f", "arguments": {"s": "x"}}]'
    reply = read(f"Well.<|tool_call|>{call}<|/tool_call|><|end|>", name)
    assert (runnable(reply), reply.content, wrong(reply)) == ([("f", {"s": "x"})], "Well.", [])


@pytest.mark.parametrize("name", ["muse", "auto"])
def test_a_first_header_is_recognized_in_reasoning_opened_by_the_prompt(name: str) -> None:
    text = " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Good day."
    reply = read(text, name, reasoning="open")
    assert (reply.reasoning, reply.content) == ("Hm.", "Good day.")


def test_citations_are_removed_from_reasoning() -> None:
    text = "<|START_THINKING|>An <co>owl</co: 0:[1]> flies.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>"
    reply = read(text, "cohere_command3")
    assert (reply.reasoning, reply.content) == ("An owl flies.", "Yes.")


def test_auto_does_not_treat_the_name_before_the_first_call_as_text() -> None:
    text = 'lookup<|content_invoke_tool_json|>{"name": "lookup", "args": {"word": "owl"}}<|end_message|>'
    reply = read(text, "auto", _WORDS)
    assert args(reply) == [("lookup", _OWL)] and reply.content == ""


def test_auto_recognizes_the_end_tokens_of_all_formats_with_the_same_opener() -> None:
    reply = read(_LING.format("\n") + "<|role_end|>", "auto", _WORDS)
    assert args(reply) == [("lookup", _OWL)] and reply.content == ""


# -- the header of the assistant's next message ------------------------------------------------------------------------

HEADERS = {
    "apertus": "<|assistant_start|>",
    "apriel": "<|assistant|>\n",
    "functiongemma": "<start_of_turn>model\n",
    "gemma4": "<|turn>model\n",
    "granite3": "<|start_of_role|>assistant<|end_of_role|>",
    "granite4": "<|start_of_role|>assistant<|end_of_role|>",
    "jamba": "<|bom|><|assistant|>",
    "kimi_k2": "<|im_assistant|>assistant<|im_middle|>",
    "kimi_k3": '<|open|>message role="assistant"<|sep|>',
    "minimax_m2": "]~b]ai\n",
    "phi4_mini": "<|assistant|>",
    "seed_oss": "<seed:bos>assistant\n",
}
# Formats of models whose turn ends as in ChatML; two of them share only that token.
_CHATML = [name for name, format in FORMATS.items() if "<|im_end|>" in format.ends and "<eos>" not in format.ends]
_CHATML = [name for name in _CHATML if name not in (*HEADERS, "poolside_v1", "iquest")]


@pytest.mark.parametrize("name", [*HEADERS, *sampled(_CHATML)])
def test_the_header_of_the_next_message_is_not_text(name: str) -> None:
    header = HEADERS.get(name, "<|im_start|>assistant\n")
    for text, content in ((f"{header}Good day.", "Good day."), (f"Good{header}day.", "Good\nday.")):
        assert (read(text, name).content, read(text, name).problems) == (content, ())
