"""The value grammar of contract calls: the meaning of each literal under every chunking, and invalid literals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Arguments, Call, Parser, Toolset, parse, render
from rightcall.formats import FORMATS
from support.generated import any_json, strings
from support.replies import STRING, Json, args, blocking, codes, read, tool

CONTRACT = FORMATS["contract"]
ANY: Json = {}
TOOLS = Toolset([tool("edit", path=STRING, text=STRING, x=ANY, y=ANY), tool("ping")])


def block(inside: str) -> str:
    return f"<tool_call>\n{inside}\n</tool_call>"


def value(written: str) -> Any:
    """Return the value of a literal as an argument without a declared type."""
    reply = read(block(f"edit({{ x: {written} }})"), "contract", TOOLS)
    assert codes(reply) == [], reply.problems
    ((_, arguments),) = args(reply)
    return arguments["x"]


def string_value(written: str) -> Any:
    reply = read(block(f"edit({{ path: {written}, text: 'end' }})"), "contract", TOOLS)
    assert codes(reply) == [], reply.problems
    ((_, arguments),) = args(reply)
    assert arguments["text"] == "end"
    assert value(written) == arguments["path"]
    return arguments["path"]


SCALARS: list[tuple[str, Any]] = [
    ("true", True),
    ("false", False),
    ("null", None),
    ("undefined", None),
    ("0", 0),
    ("-1.5", -1.5),
    ("1e3", 1000.0),
    ("-2E-2", -0.02),
    ("9007199254740993", 9007199254740993),
    ("123456789012345678901234567890", 123456789012345678901234567890),
    ("+7", 7),
    (".5", 0.5),
    ("5.", 5.0),
    ("0x1F", 31),
    ("0b101", 5),
    ("-0o17", -15),
    ("1_000_000", 1_000_000),
    ("10n", 10),
]


@pytest.mark.parametrize("written, expected", SCALARS)
def test_a_scalar_has_its_typescript_value(written: str, expected: Any) -> None:
    parsed = value(written)
    assert parsed == expected and type(parsed) is type(expected)


def test_a_number_keeps_its_spelling() -> None:
    (call,) = read(block("edit({ x: 1.50E+2, y: 12345678901234567890 })"), "contract", TOOLS).attempts
    assert call.json == '{"x": 1.50E+2, "y": 12345678901234567890}'


STRINGS: list[tuple[str, str]] = [
    ("'single'", "single"),
    ('"double"', "double"),
    ("`template`", "template"),
    ("''", ""),
    ('""', ""),
    ("``", ""),
    ('"a\\nb\\tc\\rd\\0e"', "a\nb\tc\rd\0e"),
    ('"\\b\\f\\v"', "\b\f\v"),
    ("'it\\'s'", "it's"),
    ('"say \\"hi\\""', 'say "hi"'),
    ("'a \\` b'", "a ` b"),
    ('"back\\\\slash"', "back\\slash"),
    ('"\\q\\/"', "q/"),
    ('"one \\\ntwo"', "one two"),
    ('"one \\\r\ntwo"', "one two"),
    ('"raw\nline"', "raw\nline"),
    ('"caf\\u00e9"', "café"),
    ('"\\u{1F44B}\\u{e9}"', "👋é"),
    ('"\\ud83d\\udc4b"', "👋"),
    ('"\\xe9"', "é"),
    ('"\\ud83d"', "\ud83d"),
    ('"\\u12"', "u12"),
    ('"\\u{110000}"', "u{110000}"),
    ('"日本 👋 é"', "日本 👋 é"),
    ("`日本 👋`", "日本 👋"),
    ("`a \\` b`", "a ` b"),
    ("`\\${x} \\$`", "${x} $"),
    ("`a\\nb\\\\`", "a\nb\\"),
    ("`\\d+ \\u0041`", "\\d+ \\u0041"),
    ("`one \\\ntwo`", "one two"),
    ("`two\nlines`", "two\nlines"),
    ("`${a} and ${ {b: 1} }`", "${a} and ${ {b: 1} }"),
    ("`${`inner`}`", "${`inner`}"),
    ("`cost: $5`", "cost: $5"),
    ("'</tool_call>'", "</tool_call>"),
    ("`<tool_call>{`", "<tool_call>{"),
    ('"// no comment /* here */"', "// no comment /* here */"),
    ('"<<EOF"', "<<EOF"),
]


@pytest.mark.parametrize("written, expected", STRINGS)
def test_a_string_has_its_typescript_value(written: str, expected: str) -> None:
    assert string_value(written) == expected


HEREDOCS: list[tuple[str, str]] = [
    ("<<EOF\na\nEOF", "a"),
    ("<<EOF\na\nEOF\n", "a"),
    ("<<EOF\na\nb\nEOF ", "a\nb"),
    ("<<EOF\nEOF", ""),
    ("<<EOF\n\nEOF", ""),
    ("<<EOF\n\n\nEOF", "\n"),
    ("<<EOF\na\n\nEOF", "a\n"),
    ("<<EOF\r\na\r\nb\r\nEOF", "a\r\nb"),
    ("<<'EOF'\na\nEOF", "a"),
    ('<<"EOF"\na\nEOF', "a"),
    ("<<EOF\na\n   EOF", "a"),
    ("<<EOF\na\n\tEOF", "a"),
    ("<<_9z\na\n_9z", "a"),
    ("<<EOF \na\nEOF", "a"),
    ("<<EOF\nEOFunction\nEOF_2\nEOF9\nxEOF\nEOF", "EOFunction\nEOF_2\nEOF9\nxEOF"),
    ("<<EOF\n`\"' \\n \\ ${x} // y /* z\nEOF", "`\"' \\n \\ ${x} // y /* z"),
    ("<<EOF\n</tool_call> }) ] <tool_call>\nEOF", "</tool_call> }) ] <tool_call>"),
    ("<<A\n<<B\nx\nB\nA", "<<B\nx\nB"),
    ('"<<EOF\na\nEOF"', "a"),
    ('"<<EOF\na\nEOF', "a"),
    ("'<<EOF\na\nEOF'", "a"),
    ("<<EOF\n日本\n👋\nEOF", "日本\n👋"),
]


@pytest.mark.parametrize("written, expected", HEREDOCS)
def test_a_heredoc_is_its_lines_unchanged(written: str, expected: str) -> None:
    assert string_value(written) == expected


def test_text_after_a_heredoc_tag_belongs_to_the_call() -> None:
    reply = read(block("edit({ x: [{ a: <<EOF\n1\nEOF }, <<EOF\n2\nEOF], y: <<EOF\n3\nEOF })"), "contract", TOOLS)
    assert args(reply) == [("edit", {"x": [{"a": "1"}, "2"], "y": "3"})]


def test_one_call_can_have_two_heredocs_with_different_tags() -> None:
    inside = "edit({ path: <<OLD\nif a:\n    b()\nOLD, text: <<NEW\nOLD()\nNEW\n})"
    assert args(read(block(inside), "contract", TOOLS)) == [("edit", {"path": "if a:\n    b()", "text": "OLD()"})]


LITERALS: list[tuple[str, Json]] = [
    ("edit({})", {}),
    ("edit()", {}),
    ("edit( )", {}),
    ("edit({ x: 1, })", {"x": 1}),
    ("edit({ x: 1 },)", {"x": 1}),
    ("edit ({x:1})", {"x": 1}),
    ("edit(\n{ x: [1, 2, ], y: { a: 'b', }, }\n)", {"x": [1, 2], "y": {"a": "b"}}),
    ("edit({ // first\n x: /* one */ 1 /* , */, // last\n })", {"x": 1}),
    ("edit(/* a */ { x: 1 } // b\n)", {"x": 1}),
    ("edit({ 'x': 1, \"y\": 2, `text`: 't' })", {"x": 1, "y": 2, "text": "t"}),
    (
        "edit({ x: { a-b: 1, c.d: 2, $e: 3, 9: 4, größe: 5 } })",
        {"x": {"a-b": 1, "c.d": 2, "$e": 3, "9": 4, "größe": 5}},
    ),
    ("edit({ x: [[], {}, [[1]]] })", {"x": [[], {}, [[1]]]}),
    ("edit({ x: 1 });", {"x": 1}),
    ("`edit({ x: 1 })`", {"x": 1}),
    ("<edit({ x: 1 })>", {"x": 1}),
]


@pytest.mark.parametrize("inside, expected", LITERALS)
def test_a_call_is_one_object_literal(inside: str, expected: Json) -> None:
    reply = read(block(inside), "contract", TOOLS)
    assert args(reply) == [("edit", expected)] and codes(reply) == []


BROKEN: list[tuple[str, str]] = [
    ("edit({ x: 1, x: 2 })", "duplicate_argument"),
    ("edit({ x: { a: 1, a: 2 } })", "duplicate_key"),
    ('edit("a")', "arguments_not_object"),
    ('edit(path="a")', "arguments_not_object"),
    ("edit([1])", "arguments_not_object"),
    ("edit(1)", "arguments_not_object"),
    ("edit({ x: 1 } { y: 2 })", "invalid_call"),
    ("edit({ x })", "invalid_value"),
    ("edit({ x: })", "invalid_value"),
    ("edit({ x: word })", "invalid_value"),
    ("edit({ x: 5px })", "invalid_value"),
    ("edit({ x: 1 y: 2 })", "invalid_value"),
    ("edit({ x: [1 2] })", "invalid_value"),
    ("edit({ x: { a: 1 )", "invalid_value"),
    ("edit({ x: [1 } })", "invalid_value"),
    ("edit({ x: { a } })", "invalid_value"),
    ("edit({ x: [ 1", "invalid_value"),
    ("edit({ x: NaN })", "not_finite"),
    ("edit({ x: -Infinity })", "not_finite"),
    ("edit({ x: 1e999 })", "not_finite"),
    ("edit({ x: << })", "invalid_heredoc"),
    ("edit({ x: <<EOF a\nEOF })", "invalid_heredoc"),
    ("edit({ [x]: 1 })", "invalid_argument_name"),
    ("edit({ ...x })", "invalid_argument_name"),
    ("edit({ x: 'a' + 'b' })", "invalid_value"),
    ("edit({ x: f(1) })", "invalid_value"),
    ("edit({ x: 'never closed })", "unterminated_string"),
    ("edit({ x: `never closed })", "unterminated_string"),
    ("edit({ x: <<EOF\nnever closed })", "unterminated_string"),
]


@pytest.mark.parametrize("inside, code", BROKEN)
def test_an_invalid_literal_keeps_the_call_and_rejects_it(inside: str, code: str) -> None:
    reply = read(block(inside), "contract", TOOLS)
    assert [(call.name, call.complete) for call in reply.attempts] == [("edit", False)]
    assert blocking(reply) == [(code, 0)]


@pytest.mark.parametrize("inside, code", [pair for pair in BROKEN if pair[1] != "unterminated_string"])
def test_a_broken_call_does_not_reject_the_next_call(inside: str, code: str) -> None:
    reply = read(block(inside) + "\n" + block("ping({})"), "contract", TOOLS)
    assert [(call.name, call.complete) for call in reply.attempts] == [("edit", False), ("ping", True)]
    assert blocking(reply) == [(code, 0)]


@pytest.mark.parametrize("end", range(len("<tool_call>\nedit({ path: 'a', text: <<EOF\nb\nEOF })")))
def test_a_truncated_call_is_never_completed(end: int) -> None:
    whole = "<tool_call>\nedit({ path: 'a', text: <<EOF\nb\nEOF })"
    reply = read(whole[:end], "contract", TOOLS)
    assert not any(call.complete for call in reply.attempts)
    assert read(whole, "contract", TOOLS).attempts[0].complete


def test_a_text_argument_is_streamed_while_it_arrives() -> None:
    for written in ('"one two three four five', "<<EOF\none two three\nfour five", "`one two three four five"):
        parser = Parser("contract", tools=TOOLS, live=True)
        events = parser.feed(f"<tool_call>\nedit({{ path: {written}")
        feed_text = "".join([event.json for event in events if isinstance(event, Arguments)])
        assert feed_text.startswith('{"path": "one two three')


def test_a_heredoc_holds_back_only_a_possible_end() -> None:
    parser = Parser("contract", tools=TOOLS, live=True)

    def feed_text(string_value: str) -> str:
        return "".join([event.json for event in parser.feed(string_value) if isinstance(event, Arguments)])

    assert feed_text("<tool_call>edit({ text: <<EOF\nab") == '{"text": "ab'
    assert feed_text("c\n") == "c"
    assert feed_text("  EO") == ""
    assert feed_text("Fx") == "\\n  EOFx"
    assert feed_text("\nEOF }") == '"}'


@given(data=st.data())
def test_any_json_value_reads_back_from_a_literal(data: st.DataObject) -> None:
    expected = data.draw(any_json(CONTRACT))
    call = Call("f", {"x": expected}, "")
    (parsed,) = parse(render(call, format="contract"), format="contract").attempts
    assert json.dumps(parsed.arguments) == json.dumps({"x": expected})


@given(data=st.data())
def test_any_multiline_text_reads_back_from_a_heredoc(data: st.DataObject) -> None:
    lines = st.lists(
        st.one_of(strings(CONTRACT), st.sampled_from(["EOF", " EOF", "EOF2", "EOF)", "\tEOF }"])), min_size=2
    )
    body = data.draw(lines.map("\n".join))
    call = Call("f", {"x": [body], "y": body}, "")
    wire = render(call, format="contract")
    assert ("<<EOF" in wire) == (not body.endswith("\r"))
    (parsed,) = read(wire, "contract", None).attempts
    assert parsed.arguments == call.arguments


@given(body=st.lists(st.text(alphabet="EOF \t\r\nx_2", max_size=12), min_size=1).map("\n".join))
def test_a_heredoc_is_closed_only_by_its_tag(body: str) -> None:
    closes = any(line.lstrip(" \t") == "EOF" for line in body.split("\n"))
    closes = closes or any(line.lstrip(" \t").startswith(("EOF ", "EOF\t", "EOF\r")) for line in body.split("\n"))
    reply = read(block(f"edit({{ text: <<EOF\n{body}\nEOF }})"), "contract", TOOLS)
    if not closes and not body.endswith("\r"):
        assert args(reply) == [("edit", {"text": body})]
