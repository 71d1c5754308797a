"""Values in every notation, by class of fault: what is parsed, what is rejected, and that chunking changes neither.

Each case is written in every format with that kind of body, and read whole and in pieces.
"""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Call, Parser, Reply, Tool, Toolset, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Braced, Pythonic
from rightcall.parsing.values.notation import PYTHON, PYTHON_LITERALS, TYPESCRIPT
from rightcall.parsing.values.value_reader import BadValue, Ends, Unfinished, ValueReader
from support.cuts import Setting, hold_of_every_cut

STRING = {"type": "string"}
TOOL = Tool(
    name="lookup",
    parameters={
        "type": "object",
        "properties": {"word": STRING, "n": {"type": "integer"}, "tags": {"type": "array", "items": STRING}, "any": {}},
        "required": ["word"],
    },
)
# The block of braced calls in each format, and the quote of its strings.
BRACED_BLOCKS = {
    "gemma4": ("<|tool_call>call:lookup{%s}<tool_call|>", '<|"|>'),
    "functiongemma": ("<start_function_call>call:lookup{%s}<end_function_call>", "<escape>"),
}
# The block of Python calls in each format that has one.
PYTHON_BLOCKS = {
    "lfm2": "<|tool_call_start|>[%s]<|tool_call_end|>",
    "pythonic": "[%s]",
    "llama4_pythonic": "<|python_start|>[%s]<|python_end|>",
    "olmo3": "<function_calls>\n%s\n</function_calls>",
    "minicpm3": "<|tool_call_start|>\n```python\n%s\n```\n<|tool_call_end|>",
}
GEMMA = "<|tool_call>call:lookup{%s}<tool_call|>"
CONTRACT = "<tool_call>\nlookup({ %s })\n</tool_call>"


def comparison_key(reply: Reply) -> Any:
    calls = [(c.name, c.arguments, c.json, c.complete, c.repairs, c.problems) for c in reply.attempts]
    return calls, reply.content, reply.problems


def read(text: str, format: str) -> Reply:
    whole = parse(text, format=format, tools=[TOOL])
    for size in (1, 2, 3, 5, 8):
        parser = Parser(format, tools=[TOOL])
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        assert comparison_key(parser.reply) == comparison_key(whole), size
    return whole


def parse_runnable(text: str, format: str) -> tuple[dict[str, Any], list[str]]:
    reply = read(text, format)
    [call] = reply.attempts
    assert call.ok, call.problems
    return call.arguments, [repair.rule for repair in call.repairs]


def parse_rejected(text: str, format: str) -> str:
    reply = read(text, format)
    [call] = reply.attempts
    assert not call.ok and reply.calls == ()
    return call.problems[0].code


def python_block(arguments: str, format: str) -> str:
    return PYTHON_BLOCKS[format] % f"lookup({arguments})"


def test_every_format_with_python_calls_is_tested() -> None:
    first = {name for name, format in FORMATS.items() if isinstance(format.bodies[0], Pythonic)}
    assert first - NAMED_ONLY <= set(PYTHON_BLOCKS)


BARE = ["2024-01-05", "10:30", "https://x?q=1", "3 days", "50%", "a/b.txt", "C++", "hello world"]


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("bare", BARE)
def test_a_value_that_is_not_python_is_a_string_with_a_receipt(format: str, bare: str) -> None:
    assert parse_runnable(python_block(f"word={bare}, n=3", format), format) == (
        {"word": bare, "n": 3},
        ["unquoted_value"],
    )


@pytest.mark.parametrize("bare", ["datetime(2024, 1, 5)", "a[0]", "x n=3", ":", "f('a')", "it's fine", "a=b"])
def test_code_and_lost_commas_or_quotes_are_rejected_as_bare_strings(bare: str) -> None:
    parse_rejected(python_block(f"word={bare}", "lfm2"), "lfm2")


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("written", ["('a', 'b')", "['a', 'b']"])
def test_a_tuple_is_a_list(format: str, written: str) -> None:
    assert parse_runnable(python_block(f"word='x', tags={written}", format), format) == (
        {"word": "x", "tags": ["a", "b"]},
        [],
    )


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("written", ["{'a', 'b'}", "{'a', 'b',}", "{'a'}"])
def test_a_set_is_rejected(format: str, written: str) -> None:
    assert parse_rejected(python_block(f"word='x', tags={written}", format), format) == "invalid_value"


INNER = [
    ("'grep 'owl' notes'", "grep 'owl' notes"),
    ("'it's fine'", "it's fine"),
    ('"say "hi" now"', 'say "hi" now'),
    ("'the dogs' food'", "the dogs' food"),
]


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("written, expected", INNER)
def test_unambiguous_inner_quotes_are_repaired(format: str, written: str, expected: str) -> None:
    assert parse_runnable(python_block(f"word={written}", format), format) == ({"word": expected}, ["inner_quotes"])
    assert parse_runnable(python_block(f"word={written}, n=3", format), format) == (
        {"word": expected, "n": 3},
        ["inner_quotes"],
    )


@pytest.mark.parametrize("written", ["'a' 'b'", "'a' + 'b'", "'a' if x else 'b'", "'a 'b', any='c' d', any='e'"])
def test_ambiguous_inner_quotes_are_rejected(written: str) -> None:
    parse_rejected(python_block(f"word={written}", "lfm2"), "lfm2")


# The string may end at the quote before `any=` or `)`, or at the last one.
SEVERAL_ENDS = ["'a 'b', any='d'", "'a 'b', any=''", "'a 'b', n=3, any='d'", "'a 'b'), lookup(word='c'"]


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("written", SEVERAL_ENDS)
def test_a_string_with_inner_quotes_and_several_possible_ends_is_rejected(format: str, written: str) -> None:
    for text in (written, written.replace("'", '"')):
        reply = read(python_block(f"word={text}", format), format)
        assert reply.calls == () and not reply.attempts[0].ok


@pytest.mark.parametrize("format", PYTHON_BLOCKS)
@pytest.mark.parametrize("digits", ["007", "02134", "+4712345678", "1_000", "1.10", "0x1f", "٣"])
def test_digits_of_a_declared_string_are_kept_as_written(format: str, digits: str) -> None:
    assert parse_runnable(python_block(f"word={digits}", format), format)[0] == {"word": digits}
    listed = python_block(f"word='a', tags=[{digits}]", format)
    if (digits[0] == "0" and digits[1:].isdigit()) or not digits.isascii():
        assert parse_rejected(listed, format) == "uncertain"  # Unquoted text may contain its own commas.
    else:
        assert parse_runnable(listed, format)[0] == {"word": "a", "tags": [digits]}


@pytest.mark.parametrize("digits", ["007", "02134", "+4712345678", "1_000", "1.10", "0x1f"])
def test_digits_of_a_declared_string_are_kept_as_written_in_typescript(digits: str) -> None:
    assert parse_runnable(CONTRACT % f"word: {digits}", "contract")[0] == {"word": digits}
    assert parse_runnable(CONTRACT % f'word: "a", tags: [{digits}]', "contract")[0] == {"word": "a", "tags": [digits]}


@pytest.mark.parametrize("digits", ["007", "+47123", "1.10"])
def test_digits_of_a_declared_string_are_kept_as_written_in_braces(digits: str) -> None:
    assert parse_runnable(GEMMA % f"word:{digits}", "gemma4")[0] == {"word": digits}


@pytest.mark.parametrize("format", ["lfm2", "contract", "gemma4"])
def test_digits_of_other_scripts_are_rejected_as_numbers(format: str) -> None:
    texts = {"lfm2": python_block("word='a', n=٣", "lfm2"), "contract": CONTRACT % 'word: "a", n: ٣'}
    texts["gemma4"] = GEMMA % 'word:<|"|>a<|"|>,n:٣'
    parse_rejected(texts[format], format)


INFINITE = ["1e400", "-1e400", "[1, 1e999]", '{"v": 1.5E+400}']


@pytest.mark.parametrize("number", INFINITE)
def test_a_number_that_overflows_is_rejected_in_every_notation(number: str) -> None:
    hermes = f'<tool_call>{{"name": "lookup", "arguments": {{"word": "a", "any": {number}}}}}</tool_call>'
    loose = hermes.replace('"word": "a"', "'word': 'a'")
    assert parse_rejected(hermes, "hermes") == "not_finite"
    assert parse_rejected(loose, "hermes") in ("not_finite", "invalid_json")
    assert parse_rejected(python_block(f"word='a', any={number}", "lfm2"), "lfm2") == "not_finite"
    assert parse_rejected(CONTRACT % f'word: "a", any: {number}', "contract") == "not_finite"
    braced = number.replace('"v": ', "v:")
    assert parse_rejected(GEMMA % f'word:<|"|>a<|"|>,any:{braced}', "gemma4") == "not_finite"


def test_a_duplicate_key_with_different_values_is_rejected_in_every_notation() -> None:
    hermes = '<tool_call>{"name": "lookup", "arguments": {"word": "a", "any": {"k": 1, "k": 2}}}</tool_call>'
    assert parse_rejected(hermes, "hermes") == "duplicate_key"
    assert parse_rejected(hermes.replace('"word"', "'word'"), "hermes") in ("duplicate_key", "invalid_json")
    assert parse_rejected(python_block("word='a', any={'k': 1, 'k': 2}", "lfm2"), "lfm2") == "duplicate_key"
    assert parse_rejected(python_block('word="a", any={"k": 1, "k": 2}', "lfm2"), "lfm2") == "duplicate_key"
    assert parse_rejected(CONTRACT % 'word: "a", any: { k: 1, k: 2 }', "contract") == "duplicate_key"
    assert parse_rejected(CONTRACT % 'word: "a", word: "b"', "contract") == "duplicate_argument"
    assert parse_rejected(GEMMA % 'word:<|"|>a<|"|>,any:{k:1,k:2}', "gemma4") == "duplicate_key"


def test_a_duplicate_key_with_equal_values_is_rejected() -> None:
    assert parse_rejected(CONTRACT % 'word: "a", word: "a"', "contract") == "duplicate_argument"
    assert parse_rejected(python_block("word='a', any={'k': 1, 'k': 1}", "lfm2"), "lfm2") == "duplicate_key"


def test_single_backslashes_of_a_regular_expression_are_kept() -> None:
    text = r'<tool_call>{"name": "lookup", "arguments": {"word": "\d+ \w"}}</tool_call>'
    assert parse_runnable(text, "hermes") == ({"word": r"\d+ \w"}, ["bad_escape"])


@pytest.mark.parametrize("written", [r"\\d+\.\w", r"\\w+\s\\d", r"a\\b\.c"])
def test_partly_doubled_backslashes_are_rejected(written: str) -> None:
    parse_rejected(f'<tool_call>{{"name": "lookup", "arguments": {{"word": "{written}"}}}}</tool_call>', "hermes")


def test_an_ambiguous_backspace_escape_is_repaired_only_as_a_guess() -> None:
    text = r'<tool_call>{"name": "lookup", "arguments": {"word": "\bowl\d"}}</tool_call>'
    parse_rejected(text, "hermes")
    [call] = parse(text, format="hermes", tools=[TOOL], repair="lenient").calls
    assert call.arguments == {"word": r"\bowl\d"} and call.repairs[0].kind == "guess"


NAMELESS = {
    "lfm2": [
        "<|tool_call_start|>[[lookup(word='a')]]<|tool_call_end|>",
        "<|tool_call_start|>(word='a')<|tool_call_end|>",
    ],
    "olmo3": ["<function_calls>\n(word='a')\n</function_calls>"],
    "gemma4": ["<|tool_call>call:{word:1}<tool_call|>", "<|tool_call>{word:1}<tool_call|>"],
    "contract": ["<tool_call>\n({ word: 1 })\n</tool_call>"],
}


@pytest.mark.parametrize("format, text", [(name, text) for name, texts in NAMELESS.items() for text in texts])
def test_a_call_without_a_name_after_an_opener_is_rejected(format: str, text: str) -> None:
    assert parse_rejected(text, format) in ("invalid_name", "invalid_call")


CUT = {
    "lfm2": "<|tool_call_start|>[lookup(word='a', n=3",
    "gemma4": "<|tool_call>call:lookup{n:3",
    "contract": "<tool_call>\nlookup({ n: 3",
    "functionary_v31": "<function=lookup>null",
    "hermes": '<tool_call>{"name": "lookup", "arguments": 12',
}


@pytest.mark.parametrize("format", CUT)
def test_a_call_truncated_after_a_scalar_is_rejected_and_keeps_its_name(format: str) -> None:
    reply = read(CUT[format], format)
    assert [(call.name, call.complete) for call in reply.attempts] == [("lookup", False)]


def test_the_slash_that_ends_a_comment_does_not_begin_another() -> None:
    assert parse_runnable(CONTRACT % 'word: /* a *//* b */ "owl"', "contract")[0] == {"word": "owl"}
    assert not parse(CONTRACT % 'word: /* a *// b\n "owl"', format="contract").calls


@pytest.mark.parametrize("format, text", [("lfm2", "<|tool_call_start|>[lookup"), ("contract", "<tool_call>\nlookup")])
def test_a_call_truncated_after_its_name_keeps_the_name(format: str, text: str) -> None:
    assert [(call.name, call.complete) for call in read(text, format).attempts] == [("lookup", False)]


def test_a_value_is_not_read_before_its_end() -> None:
    for notation, text in (
        (PYTHON, "12"),
        (TYPESCRIPT, "12"),
        (PYTHON, "[1, 2"),
        (PYTHON, "'a"),
        (TYPESCRIPT, "<<E\na"),
    ):
        with pytest.raises(Unfinished):
            ValueReader(notation, text, ended=False).value()


@pytest.mark.parametrize("text", ["[", "[1", "{'a'", "{'a': 1", "'a", "[1 2 [", "{'a': 1 'b': 2}", "[)", "", "word"])
def test_an_invalid_literal_is_rejected(text: str) -> None:
    with pytest.raises(BadValue):
        ValueReader(PYTHON_LITERALS, text).value()


def test_nested_values_use_no_stack_and_have_a_depth_limit() -> None:
    deep = "[" * 50_000
    with pytest.raises(BadValue, match="deeper"):
        ValueReader(PYTHON, deep + "]" * 50_000, depth=40_000).value()
    ValueReader(PYTHON, "[" * 20_000 + "]" * 20_000, depth=20_000).value()


@pytest.mark.parametrize("text", ["['a)', (1, {2: 3})], b", "{'k': '''x'y'''}, b", "[\"\\\"\", '\\'']) "])
def test_the_end_of_a_value_is_independent_of_chunking(text: str) -> None:
    whole = Ends(PYTHON, until=",)")
    assert whole.step(text, 0, True)
    for size in range(1, 4):
        ends, pos = Ends(PYTHON, until=",)"), 0
        for end in range(size, len(text) + size, size):
            done = ends.step(text[:end], pos, end >= len(text))
            pos = ends.pos
            if done:
                break
        assert pos == whole.pos


# -- keys of several words ---------------------------------------------------------------------------------------------


def test_every_braced_format_is_tested() -> None:
    assert set(BRACED_BLOCKS) == {name for name, format in FORMATS.items() if isinstance(format.bodies[0], Braced)}


@pytest.mark.parametrize("format", BRACED_BLOCKS)
@pytest.mark.parametrize(
    "inside, more",
    [
        ("my key:1", {"my key": 1}),
        ("my key :1,your own key:<q>b<q>", {"my key": 1, "your own key": "b"}),
        (
            "any:{Step One:{to:[{at:<q>Step Two<q>}]}, Step Two:{to:[]}}",
            {"any": {"Step One": {"to": [{"at": "Step Two"}]}, "Step Two": {"to": []}}},
        ),
        ("any:{schöner Name:<q>x<q>,the other one:true}", {"any": {"schöner Name": "x", "the other one": True}}),
    ],
)
def test_a_key_in_braces_can_have_several_words(format: str, inside: str, more: dict[str, Any]) -> None:
    block, quote = BRACED_BLOCKS[format]
    arguments = {"word": "owl", **more}
    for text in (f"word:<q>owl<q>,{inside}", f"{inside},word:<q>owl<q>"):
        assert parse_runnable(block % text.replace("<q>", quote), format) == (arguments, [])
    written = render([Call("lookup", arguments)], format=format, tools=[TOOL])
    assert parse_runnable(written, format) == (arguments, [])


@pytest.mark.parametrize("format", BRACED_BLOCKS)
def test_words_before_a_colon_in_a_quoted_string_are_not_a_key(format: str) -> None:
    block, quote = BRACED_BLOCKS[format]
    for inner in (quote, '"'):
        text = block % f"word:{quote}an {inner}owl{inner}, that is to say: a bird{quote},n:1"
        [call] = read(text, format).attempts
        assert call.arguments == {"word": f"an {inner}owl{inner}, that is to say: a bird", "n": 1}


# -- values without a notation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nullable", [{"type": "string", "nullable": True}, {"type": ["string", "null"]}])
@pytest.mark.parametrize("text, value", [("null", None), ("None", None), ("nullable", "nullable"), ("", "")])
def test_raw_null_is_null_only_if_the_schema_allows_it(nullable: dict[str, Any], text: str, value: Any) -> None:
    raw = f"<tool_call>\n<function=note>\n<parameter=a>\n{text}\n</parameter>\n</function>\n</tool_call>"
    for schema, expected in ((nullable, value), ({"type": "string"}, text)):
        tool = Tool(name="note", parameters={"type": "object", "properties": {"a": schema}})
        (call,) = parse(raw, tools=[tool], format="qwen3_coder").calls
        assert call.arguments == {"a": expected}


@pytest.mark.parametrize("name", BRACED_BLOCKS)
@pytest.mark.parametrize("quoted", ["{q}]{q}", "'x'", '"x"'])
@pytest.mark.parametrize("key", ["n=one", "n=", "n =", "n=1"])
def test_a_key_with_an_equals_sign_ends_a_string_the_same_under_every_chunking(
    name: str, quoted: str, key: str
) -> None:
    block, quote = BRACED_BLOCKS[name]
    text = block % f"word:{quoted.replace('{q}', quote)},{key}:true"
    for tools in (None, Toolset([TOOL])):
        hold_of_every_cut(text, Setting(name, tools))
