"""Quoted calls are not executed, and no real call is lost: a sample of `make shown`, and edge cases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rightcall import Call, CannotCarry, Parser, Text, Tool, Toolset, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.shown import last_fence, only_fence, shows
from rightcall.testing.laws import cut_law
from rightcall.testing.laws.samples import TOOLS as LAW_TOOLS
from support.format_sample import sampled, selected
from support.replies import codes
from support.steps import ReadingMode, growth

EVALS = Path(__file__).resolve().parent.parent / "evals"
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
TOOLS = Toolset([Tool(name="lookup", parameters=WORD)])
CALL = '<tool_call>\n{"name": "lookup", "arguments": {"word": "owl"}}\n</tool_call>'


def count_runnable(text: str, format: str = "hermes") -> int:
    """Return the number of runnable calls of a text, and check that chunking does not change them."""
    whole = parse(text, tools=TOOLS, format=format)
    for size in (1, 7):
        parser = Parser(format, tools=TOOLS)
        for i in range(0, len(text), size):
            parser.feed(text[i : i + size])
        parser.close()
        assert [call.raw for call in parser.reply.calls] == [call.raw for call in whole.calls]
    return len(whole.calls)


# -- the table of docs/text-or-call.md ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judge() -> Iterator[Any]:
    """Import the module `judge` of evals/shown."""
    if not EVALS.is_dir():
        pytest.skip("the evals are not part of the sdist")
    sys.path.insert(0, str(EVALS))
    try:
        from shown import judge  # type: ignore[import-not-found]

        yield judge
    finally:
        sys.path.remove(str(EVALS))


@pytest.mark.parametrize("name", sampled())
def test_quoted_calls_are_not_runnable_and_real_calls_are_not_lost(name: str, judge: Any) -> None:
    count, faults = judge.check_format(name, 44, 16)
    assert count >= 40 and [fault[:4] for fault in faults] == []


CALLED = [
    "I'll call it's weather tool:\n",
    'He said "hi". ',
    "- ",
    "1. ",
    "# Calling\n",
    'A 5" pipe is "special\n\n',
    "Step 1:\n",
    "User: wants weather.\n\n",
    '| a | b |\n|---|---|\n| 5" | `x` |\n\n',
    "In the '90s, rock 'n' roll and the dogs' bones: ",
    "a \\` b ",
    "`code` ``a ` b`` ",
    "~~~\n```\n~~~\n",
    "```\n~~~\n```\n",
    "````\n```\n````\n",
    "1. one\n   ```\n   x\n   ```\n2. two\n\n",
    "- a\n\n      code\n\nSo: ",
    "> a quote\n\n",
    "> a quote\n",
    "---\n",
    "--- Calling ---\n",
    "@@ -1 +1 @@\n-a\n+b\n\n",
    '<pre>`"</pre> ',
    '<!-- " --> ',
    "<tool_response>\n`\n</tool_response>\n",
    "12:30 is late.\n",
    "The markers are `<tool_call>` and `</tool_call>`.\n",
    'You write `<tool_call>{"name": ...}` and close it. ',
    "\u00abbon\u00bb, \u201efein\u201c, \u201cfine\u201d, \u2018ok\u2019, it\u2019s \u300cgo\u300d. ",
    '(see "a [b") and {"c": ["d"]} ',
]


@pytest.mark.parametrize("before", CALLED)
def test_a_call_after_a_closed_quotation_is_runnable(before: str) -> None:
    assert count_runnable(before + CALL) == 1


PROSE = [
    "Let's get 'em. ",
    "I do it 'cause you asked. ",
    "'Cause you asked: ",
    "Not 'til noon. ",
    "'Tis done, 'twas easy. ",
    "Rock 'n roll! ",
    "Rock 'n' roll, the '90s. ",
    "(look 'round, 'bout now) ",
    "Get \u2018em, \u2019cause \u2018tis late. ",
    "'s avonds en 't weer. ",
    'Use the " key. ',
    "Press ' to go. ",
    "Press ' or \" to go. ",
    'The " and the \t" \tkeys:\n',
    "Set x='y then go. ",
    "Set x='y. ",
    'With path="/a now. ',
    'With path="/a. ',
    "Use --file=\".env and key='a_b.c: ",
]


@pytest.mark.parametrize("name", sampled())
def test_prose_with_apostrophes_and_lone_marks_hides_no_call(name: str) -> None:
    for before in PROSE:
        try:
            text = render([Text(before), Call("lookup", {"word": "owl"})], format=name, tools=TOOLS)
        except CannotCarry:
            continue
        reply = parse(text, tools=TOOLS, format=name)
        assert [call.arguments for call in reply.calls] == [{"word": "owl"}], before
        assert count_runnable(text, name) == 1


@pytest.mark.parametrize("before", PROSE)
def test_prose_with_apostrophes_and_lone_marks_opens_no_quotation(before: str) -> None:
    assert not shows(before)
    assert shows(before + '"see ') and shows(before + "'see ")


@pytest.mark.parametrize("mark", ['"', "'", "\u201c", "\u00ab"])
@pytest.mark.parametrize("name", sampled(name for name, format in FORMATS.items() if format.channels or format.content))
def test_an_open_quotation_mark_ends_with_its_message(name: str, mark: str) -> None:
    format, call = FORMATS[name], Call("lookup", {"word": "owl"})
    for before in (f"Hello {mark}x", f"One.\n{mark}Two [three\nfour", f"a {mark}b {mark}c 'd"):
        if format.channels:
            text = render([Text(before + "\n"), call], format=name, tools=TOOLS)
            assert count_runnable(text, "auto") == 1, text
        else:
            opens, closes = format.content[0]
            text = (
                marker_alternatives(opens)[0]
                + before
                + marker_alternatives(closes)[0]
                + render([call], format=name, tools=TOOLS)
            )
        assert count_runnable(text, name) == 1, text


def test_a_header_in_code_or_in_a_quotation_is_quoted() -> None:
    for before in ("```\n", "a `b\n", 'a "b ', "> a\n> ", "a 'b `c\n"):
        assert count_runnable(f'all\n{before}>>>lookup\n{{"word": "owl"}}', "functionary_v32") == 0
    assert count_runnable('The page says "see\n>>>lookup\n{"word": "owl"}', "functionary_v32") == 0


LINES = (
    "+{}",
    "-{}",
    "7\t{}",
    "7 | {}",
    "> {}",
    "User: {}",
    "**Assistant:** {}",
    "Jan 12 12:00:01 {}",
    "2026-01-12 {}",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", sampled(name for name, format in FORMATS.items() if format.channels))
def test_a_quoted_message_without_its_start_is_reported(name: str, line: str) -> None:
    wire = render([Call("lookup", {"word": "owl"})], format=name, tools=TOOLS)
    shown = "\n".join([line.format(each) for each in wire.split("\n")])
    for parsed_format in (name, "auto"):
        for text in (f"See:\n\n@@ -1 +1 @@\n{shown}\n\nI have not run it.", f"See:\n\n{wire}\n\nI have not run it."):
            reply = parse(text, tools=TOOLS, format=parsed_format)
            assert reply.calls or "looks_like_a_call" in [problem.code for problem in reply.problems], text


SHOWN = [
    "he said 'please send ",
    "he said '",
    "he said ' ",
    'he said " ',
    '"""\n',
    'he said "\n',
    "'Round here we send ",
    "'get 'em with ",
    "body='please send ",
    'body="I send ',
    'path="/a ',
    'body="/a',
    'n="12 of ',
    "x='",
    'x=\'{"a": ',
    "```\n",
    "```xml ",
    "   ```\n",
    "- ```\n  ",
    "1. a\n\n   ```\n   ",
    "````\n```\n",
    "```\n``` x\n",
    "```\n~~~\n",
    "```\n    ```\n",
    "~~~ `a`\n",
    "a `b ",
    "a ``b ` ",
    "a \\`` b ",
    "a\n`b\n",
    'a "b ',
    "a 'b ",
    "a \u201cb\n",
    "a \u00abb ",
    "a \u00bbb ",
    '"a "',
    '"{"a": "b"} ',
    "a\n> ",
    "a\n- > b ",
    "a\n\n    ",
    "a\n\n\t",
    "a\n\n    b\n    ",
    "@@ -1 +1 @@\n+",
    "diff --git a b\n",
    "--- a\n+++ b\n+",
    "<pre>",
    "<CODE class='x'>\n\n",
    "<!-- ",
    "<![CDATA[",
    "<pre><code></code>",
    "<tool_response>\n",
    "[TOOL_RESULTS]",
    "12\t",
    "  3 | ",
    "12:",
    "User: ",
    "**Assistant:** ",
    "- AI: ",
    "2024-01-05 10:00 ",
    "[10:00:01] ",
    "Jan  5 10:00:00 host: ",
]


@pytest.mark.parametrize("before", SHOWN)
def test_a_quoted_call_is_text(before: str) -> None:
    assert count_runnable(before + CALL) == 0
    assert [problem.code for problem in parse(before + CALL, tools=TOOLS, format="hermes").problems] == [
        "looks_like_a_call"
    ]


def test_a_quotation_or_a_code_span_ends_with_its_paragraph() -> None:
    for opened in ('a "b', "a `b", "a \u201cb"):
        assert shows(opened) and shows(opened + "\nc ")
        for end in ("\n\n", "\n \t\n", "\n- ", "\n# c\n"):
            assert not shows(opened + end), (opened, end)


@pytest.mark.parametrize("name", ["qwen3_coder", "kimi_k2", "deepseek_v31", "contract", "minimax_m2", "kimi_k3"])
def test_text_inside_a_quoted_opener_is_quoted(name: str) -> None:
    wire = render([Call("lookup", {"word": 'a "b" `c`\n\nd'})] * 2, format=name, tools=TOOLS)
    for text in (
        f"Models write ``{wire}`` to call it.",
        f'The log has "{wire}" in it.',
        f"So:\n\n~~~\n{wire}\n~~~\n\nYes.",
    ):
        assert count_runnable(text, "auto") == 0, text
    inner = wire.partition("\n\n")[0]
    assert count_runnable(f"Models write ``{inner}`` to call it.", name) == 0


def test_a_special_token_can_follow_the_end_of_a_fence_directly() -> None:
    wire = render(Call("lookup", {"word": "owl"}), format="deepseek_v31", tools=TOOLS)
    assert count_runnable(f"```py\nx = 1\n```{wire}", "deepseek_v31") == 1
    assert count_runnable(f"```py\nx = 1\n``` y{wire}\n```", "deepseek_v31") == 0
    assert count_runnable(f"```py\nx = 1\n```{CALL}\n```") == 0


@pytest.mark.parametrize("name", ["kimi_k3", "muse", "harmony", "cohere_command3", "inkling", "contract", "ernie45"])
def test_an_unclosed_quotation_in_a_message_hides_no_call_in_the_next(name: str) -> None:
    """In Functionary's formats only the next header ends a message, and that header may be quoted."""
    wire = render([Text("a plain word", "assistant_prose"), Call("lookup", {"word": "owl"})], format=name, tools=TOOLS)
    if not wire.startswith("a plain word"):
        for prose in ("Use the ` key", "```py\nx = 1", 'He said "yes', "<pre>"):
            assert count_runnable(wire.replace("a plain word", prose), name) == 1, prose


# -- fences of whole texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, inner",
    [
        ("```json\n{}\n```", "{}"),
        ("~~~\n{}\n~~~\n", "{}"),
        ("````\n```\n{}\n```\n````", "```\n{}\n```"),
        ("```json\n{}```", "{}"),
        ("```\n{}\n```\nmore", None),
        ("```\n{}\n```\n```\n{}\n```", None),
        ("```a`b\n{}\n```", None),
        ("```\n{}", None),
        ("a\n```\n{}\n```", None),
    ],
)
def test_a_text_that_is_one_fence_is_recognised(text: str, inner: str | None) -> None:
    assert only_fence(text) == inner


def test_the_last_fence_is_not_inside_another() -> None:
    assert last_fence("a") == -1
    assert last_fence("a\n```\nb\n```\nc\n  ```json\nd\n```") == 16
    assert last_fence("````\n```\n````\n> ```\n> a") == 0


# -- quotations in every format ----------------------------------------------------------------------------------------

DELETE = Tool(name="delete_rows", parameters={"type": "object", "properties": {"table": {"type": "string"}}})


@pytest.mark.parametrize("break_", [" ", "\\n"])
@pytest.mark.parametrize("name", sampled())
def test_a_call_quoted_on_one_line_is_reported(name: str, break_: str) -> None:
    text = render(Call("delete_rows", {"table": "users"}), format=name, tools=[DELETE]).strip().replace("\n", break_)
    for shown in (f"> {text}", f'The form is "{text}".', f"It is ````{text}````."):
        for format in (name, "auto"):
            reply = parse(shown, format=format, tools=[DELETE])
            assert reply.attempts == () and "looks_like_a_call" in codes(reply)


TWO_CALLS = [Call("get_weather", {"city": "Oslo"}), Call("ping", {})]
QUOTATIONS = {
    "double quotes": 'The page says "{}" and I do not.',
    "single quotes": "The page says '{}' and I do not.",
    "curly quotes": "The page says \u201c{}\u201d and I do not.",
    "corner brackets": "\u300c{}\u300d",
    "a span": "Do not send ``{}`` to me.",
    "a fence": "For example:\n```\n{}\n```\nThat is how.",
    "HTML": "For example <pre>{}</pre> is how.",
}


def reasoning_markers(format: Format) -> list[tuple[str, str]]:
    own = [(marker_alternatives(side)[0] for side in format.reasoning)] if format.reasoning is not None else []
    return [("<think>", "</think>"), *[(opens, closes) for opens, closes in own]]


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_neither_of_two_calls_in_one_quotation_is_runnable(name: str, quotation: str) -> None:
    text = QUOTATIONS[quotation].replace("{}", render(TWO_CALLS, format=name, tools=LAW_TOOLS))
    for format in ("auto", name) if name not in NAMED_ONLY else (name,):
        reply = parse(text, format=format, tools=LAW_TOOLS)
        assert reply.calls == (), text
        assert reply.problems, text
    assert cut_law(FORMATS[name], text, tools=LAW_TOOLS) == []


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("quotation", selected(QUOTATIONS, kept=["double quotes", "a fence"]))
def test_neither_of_two_quoted_calls_in_reasoning_is_runnable(name: str, quotation: str) -> None:
    shown = QUOTATIONS[quotation].replace("{}", render(TWO_CALLS, format=name, tools=LAW_TOOLS))
    for opens, closes in reasoning_markers(FORMATS[name]):
        for text in (opens + shown, opens + shown + closes, f"{opens}{shown}{closes}Well."):
            for format in ("auto", name) if name not in NAMED_ONLY else (name,):
                assert parse(text, format=format, tools=LAW_TOOLS).calls == (), (format, text)


# -- cost --------------------------------------------------------------------------------------------------------------

HOSTILE = [
    "```\n" + " " * 99 + "x",
    "`",
    '"',
    "'",
    "- ",
    "> ",
    "<pre>",
    "<",
    "\\`",
    "```\n",
    "~~~\n",
    '"(',
    "\u201c",
    "1\t\n",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_is_scanned_in_linear_time(unit: str) -> None:
    def text(size: int) -> str:
        return (unit + "<tool_call> ") * max(1, size // (len(unit) + 12))

    assert growth(text, ReadingMode("hermes", pieces=8)) < 6
    assert growth(lambda size: unit * max(1, size // len(unit)), ReadingMode("auto")) < 6
