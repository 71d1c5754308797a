"""Minor damage with one meaning is repaired in every format that can have it, and under every chunking."""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Call, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, Params, marker_alternatives
from rightcall.testing.laws import cut_law
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import INTEGER, STRING, tool

TOOLS = Toolset([tool("lookup", word=STRING, n=INTEGER), tool("ping")])
OWL: dict[str, Any] = {"word": "owl", "n": 3}
BLOCKS = [
    name
    for name, format in FORMATS.items()
    if isinstance(format.body, Envelope)
    and all("" not in marker_alternatives(side) and side[:1] != "`" for side in format.call)
    and not (format.body.outer or format.section or "{name}" in format.call[0][0])
]
TAGGED = [
    name
    for name, format in FORMATS.items()
    if isinstance(format.body, Params) and marker_alternatives(format.body.value_close)[0].strip().startswith("</")
]


def runnable_calls(text: str, format: str, tools: Toolset = TOOLS) -> list[tuple[str, Any]]:
    reply = hold_of_every_cut(text, Setting(format, tools))
    return [(call.name, call.arguments) for call in reply.calls]


def envelope(body: Envelope, name: str, arguments: str) -> str:
    return (
        f'{{"{body.names[0]}": "{name}", "{body.args[0]}": {arguments}}}'
        if body.names
        else f'{{"{name}": {arguments}}}'
    )


@pytest.mark.parametrize("between", [", ", ",\n", ";"])
@pytest.mark.parametrize("name", sampled(BLOCKS))
def test_a_comma_between_two_calls_of_one_block_separates_them(name: str, between: str) -> None:
    format = FORMATS[name]
    assert isinstance(format.body, Envelope)
    calls = [envelope(format.body, "lookup", '{"word": "owl", "n": 3}'), envelope(format.body, "ping", "{}")]
    opens, closes = (marker_alternatives(side)[0] for side in format.call)
    assert runnable_calls(opens + between.join(calls) + closes, name) == [("lookup", OWL), ("ping", {})]


@pytest.mark.parametrize("name", sampled(BLOCKS))
def test_a_comma_before_a_misplaced_argument_does_not_separate_calls(name: str) -> None:
    format = FORMATS[name]
    assert isinstance(format.body, Envelope)
    opens, closes = (marker_alternatives(side)[0] for side in format.call)
    call = envelope(format.body, "lookup", '{"word": "owl"}')
    for lost in (', "n": 3}', ', {"n": 3}'):
        assert runnable_calls(opens + call + lost + closes, name) == []


@pytest.mark.parametrize("letters", ["1", "s", "_word"])
@pytest.mark.parametrize("name", sampled(TAGGED))
def test_a_misspelled_closing_tag_never_becomes_part_of_a_runnable_value(name: str, letters: str) -> None:
    body = FORMATS[name].body
    assert isinstance(body, Params)
    close = marker_alternatives(body.value_close)[0].strip().replace("{key}", "word")
    text = render([Call("lookup", OWL)], format=name, tools=TOOLS)
    drifted = text.replace(close, f"{close[:-1]}{letters}>", 1)
    assert drifted != text
    reply = hold_of_every_cut(drifted, Setting(name, TOOLS))
    wrong = [call for call in reply.calls if call.arguments != OWL]
    assert wrong == [] and len(reply.attempts) == 1 and reply.problems


@pytest.mark.parametrize("name", ["qwen3_coder", "glm45", "minimax_m2", "deepseek_v32"])
def test_a_value_may_contain_tags_similar_to_its_closing_tag(name: str) -> None:
    body = FORMATS[name].bodies[0]
    assert isinstance(body, Params)
    near = marker_alternatives(body.value_close)[0].strip()[:-1] + "List>"
    for word in (near, f"a {near} b", f"a\n{near}"):
        arguments = {"word": word, "n": 3}
        text = render([Call("lookup", arguments)], format=name, tools=TOOLS)
        assert runnable_calls(text, name) == [("lookup", arguments)]


def test_a_tag_with_a_blank_in_place_of_its_equals_sign_is_reported() -> None:
    for name in ("qwen3_coder", "step3p5", "seed_oss"):
        text = render([Call("lookup", OWL)], format=name, tools=TOOLS)
        reply = hold_of_every_cut(text.replace("<function=", "<function ", 1), Setting(name, TOOLS))
        assert not reply.calls and reply.problems
    prose = "A <function lookup> is not a <parameter=word>."
    assert parse(prose, format="qwen3_coder", tools=TOOLS).content == prose


def tool_with_required(name: str, key: str) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": {key: STRING}, "required": [key]})


def kimi_call(id: str, arguments: str) -> str:
    call = f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
    return f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"


def test_a_number_in_place_of_the_tool_name_is_the_index_of_the_call() -> None:
    needs = Toolset([tool_with_required("lookup", "word"), tool_with_required("read", "path")])
    assert runnable_calls(kimi_call("0", '{"word": "owl"}'), "kimi_k2", needs) == [("lookup", {"word": "owl"})]
    assert runnable_calls(kimi_call("12", '{"path": "a"}'), "kimi_k2", needs) == [("read", {"path": "a"})]
    assert runnable_calls(kimi_call("0", '{"other": 1}'), "kimi_k2", needs) == []
    assert runnable_calls(kimi_call("7", "{}"), "kimi_k2", Toolset([tool("7")])) == [("7", {})]


def test_a_header_without_a_role_is_recognized() -> None:
    text = "<|start|><|channel|>analysis<|message|>Birds.<|end|><|start|><|channel|>final<|message|>An owl.<|return|>"
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert (reply.reasoning, reply.content) == ("Birds.", "An owl.")
    prose = "The token <|start|> stands alone there."
    assert parse(prose, format="harmony").content == prose


def test_the_name_of_a_channel_between_two_messages_is_text() -> None:
    call = '<|channel|>commentary to=functions.lookup<|message|>{"word": "owl", "n": 3}<|call|>'
    reply = hold_of_every_cut(f"{call}commentary{call}assistant{call}commentary is rare", Setting("harmony", TOOLS))
    assert [call.arguments for call in reply.calls] == [OWL, OWL, OWL]
    assert reply.content == "commentary\nassistant\ncommentary is rare"


@pytest.mark.parametrize(
    "text, reasoning, content",
    [
        ("a thought<|close|>think<|open|>response<|sep|>an owl<|close|>response<|sep|>", "a thought", "an owl"),
        ("a thought<|close|>think", "a thought", ""),
        ("a thought<|close|>", "a thought", ""),
        ("<|close|>think<|sep|><|open|>response", "", ""),
        ("<|close|>think<|sep|><|open|>response<|sep|>an owl<|close|>response", "", "an owl"),
        ("<|close|>think<|sep|><|open|>response<|sep|>an owl<|close|>response<|sep|><|close|>message", "", "an owl"),
    ],
)
def test_a_marker_of_several_tokens_is_recognized_without_its_last_token(
    text: str, reasoning: str, content: str
) -> None:
    reply = hold_of_every_cut(text, Setting("kimi_k3", TOOLS, reasoning="open"))
    assert (reply.reasoning, reply.content) == (reasoning, content)


@pytest.mark.parametrize(
    "name, opens, quote, closes",
    [
        ("gemma4", "<|tool_call>", '<|"|>', "<tool_call|>"),
        ("functiongemma", "<start_function_call>", "<escape>", "<end_function_call>"),
    ],
)
def test_a_string_without_its_opening_quote_is_rejected(name: str, opens: str, quote: str, closes: str) -> None:
    for inside in (f"word:a barn owl{quote},n:3", f"n:3,word:owls, bats{quote}"):
        reply = hold_of_every_cut(f"{opens}call:lookup{{{inside}}}{closes}", Setting(name, TOOLS))
        assert not reply.calls and len(reply.refused) == 1
    assert runnable_calls(f"{opens}call:lookup{{word:{quote}owl{quote},n:3}}{closes}", name) == [("lookup", OWL)]
    assert runnable_calls(f"{opens}call:lookup{{word:owl {quote} bat,n:3}}{closes}", name) == []


def test_json_with_escaped_quotation_marks_is_unescaped() -> None:
    tools = Toolset([tool("note", items={"type": "array"}, about={"type": "object"})])
    for name in ("glm45", "qwen3_coder", "minimax_m2"):
        text = render([Call("note", {"items": ["a"], "about": {"b": 'c "d"'}})], format=name, tools=tools)
        head, marks, tail = text.partition('["a"]')
        text = head + marks.replace('"', '\\"') + tail
        assert runnable_calls(text, name, tools) == [("note", {"items": ["a"], "about": {"b": 'c "d"'}})]


@pytest.mark.parametrize("quoted", ["'3'", '\\"3\\"', "\\'3\\'", "' 3 '"])
def test_a_quoted_number_is_parsed_as_a_number(quoted: str) -> None:
    for name in ("glm45", "qwen3_coder", "minimax_m2"):
        text = render([Call("lookup", {"word": "owl", "n": 77})], format=name, tools=TOOLS).replace("77", quoted)
        assert runnable_calls(text, name) == [("lookup", OWL)]
        assert runnable_calls(text.replace(quoted, "'3 or 4'"), name) == []


@pytest.mark.parametrize("word", ["uint8", "uint32", "int16", "ulong", "unsigned", "smallint"])
def test_integer_type_names_of_other_languages_are_integers(word: str) -> None:
    tools = Toolset([{"name": "count", "parameters": {"type": "object", "properties": {"n": {"type": word}}}}])
    assert runnable_calls(
        "<tool_call>count<arg_key>n</arg_key><arg_value>42</arg_value></tool_call>", "glm45", tools
    ) == [("count", {"n": 42})]


@pytest.mark.parametrize("name", sampled())
def test_a_tool_name_may_be_in_any_script(name: str) -> None:
    tools = Toolset([tool_with_required("поиск", "слово"), tool_with_required("查找", "词")])
    for tool_name, key in (("поиск", "слово"), ("查找", "词")):
        text = render([Call(tool_name, {key: "owl"})], format=name, tools=tools)
        assert runnable_calls(text, name, tools) == [(tool_name, {key: "owl"})]
        assert [call.name for call in parse(text, tools=tools).attempts] in ([tool_name], [])


@pytest.mark.parametrize("name", ["pythonic", "lfm2", "olmo3", "llama4_pythonic"])
@pytest.mark.parametrize(
    "inside",
    ['**{"word": "owl", "n": 3}', "**{'word': 'owl'}, n=3", "word='owl', **{'word': 'bat'}", "**['owl']", "**word"],
)
def test_unpacked_arguments_are_rejected(name: str, inside: str) -> None:
    text = render([Call("ping", {})], format=name, tools=TOOLS).replace("ping()", f"lookup({inside})")
    reply = hold_of_every_cut(text, Setting(name, TOOLS))
    assert not reply.calls and reply.problems


@pytest.mark.parametrize("name", sampled(TAGGED))
def test_an_argument_with_an_incomplete_tag_is_rejected(name: str) -> None:
    body = FORMATS[name].body
    assert isinstance(body, Params)
    if "{key}" not in body.param[0].rpartition("<")[2]:
        pytest.skip("its last tag holds no key")
    whole = render([Call("lookup", OWL)], format=name, tools=TOOLS)
    for value in ("owl", "3"):
        head, _, tail = whole.partition(value)
        tag = head.rstrip()
        assert runnable_calls(tag[:-1] + "\n" + value + tail, name) == []
        assert runnable_calls(tag[:-1] + "s\n" + value + tail, name) == []  # there is no such argument
        assert runnable_calls(tag[:-1] + "\n>" + value + tail, name) == []


def test_a_call_without_its_index_is_parsed() -> None:
    argument = '<|open|>argument key="word" type="string"<|sep|>owl<|close|>argument<|sep|>'
    call = f'<|open|>call tool="lookup"<|sep|>{argument}<|close|>call<|sep|>'
    assert (
        runnable_calls(f"<|open|>tools<|sep|>{call}{call}<|close|>tools<|sep|>", "kimi_k3")
        == [("lookup", {"word": "owl"})] * 2
    )


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("id", ["#7", "a.b-c", "x" * 40])
def test_an_opener_missing_a_character_is_awaited_for_every_id(name: str, id: str) -> None:
    text = render(Call("ping", {}, id="call_0"), format=name, tools=TOOLS).replace("call_0", id)
    if id not in text:
        return  # the text before the name contains no id
    for at in range(text.index("ping")):
        damaged = text[:at] + text[at + 1 :]
        chunkings = {f"at {end}": [damaged[:end], damaged[end:]] for end in range(1, text.index("ping") + 4)}
        assert cut_law(name, damaged, tools=TOOLS, cuts=chunkings) == [], damaged


@pytest.mark.parametrize("gap", ["", "\n"])
@pytest.mark.parametrize("opener", ["<function name", "<functionname"])
def test_arguments_may_be_in_a_separate_tag(gap: str, opener: str) -> None:
    param = '<param name="word">owl</param>'
    call = gap.join([f'{opener}="lookup">', "<arguments>", param, "</arguments>", "</function>"])
    assert runnable_calls(f"{call}{gap}{call}", "minicpm5") == [("lookup", {"word": "owl"})] * 2
    assert runnable_calls(call.replace(param, param.replace("owl", "a</arguments> b")), "minicpm5") == [
        ("lookup", {"word": "a</arguments> b"})
    ]
