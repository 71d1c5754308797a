"""Hostile text in the contract format: large texts are parsed without loss and at linear cost."""

from __future__ import annotations

from itertools import cycle

import pytest

from rightcall import parse
from support.hostile import TOOLS, times
from support.steps import MOST, ReadingMode, growth

TEXT, ROWS = "<tool_call>write({ text: ", "<tool_call>write({ rows: "
END = " })</tool_call>"

# Each shape: the text before, the repeated text, the text after.
SHAPES: dict[str, tuple[str, str, str]] = {
    "empty lines in a heredoc": (TEXT + "<<EOF\n", "\n", "\nEOF" + END),
    "blanks in a heredoc": (TEXT + "<<EOF\n", " ", "\nEOF" + END),
    "lines that nearly end a heredoc": (TEXT + "<<EOF\n", "\n  EOFx", "\nEOF" + END),
    "blank lines before the end of a heredoc": (TEXT + "<<EOF\n", "\n" + " " * 127, "\nEOF" + END),
    "carriage returns in a heredoc": (TEXT + "<<EOF\n", "\r", "\nEOF" + END),
    "a heredoc that never ends": (TEXT + "<<EOF\n", "a\n", ""),
    "heredocs": (ROWS + "[", "<<A\nx\nA, ", "]" + END),
    "heredocs that never begin": (ROWS + "[", "<<A ", "]" + END),
    "holes in a template": (TEXT + "`", "${", "`" + END),
    "escapes in a template": (TEXT + "`", "${}$\\`", "`" + END),
    "a template that never ends": (TEXT + "`", "a$", ""),
    "escapes": (TEXT + '"', "\\n\\u00e9", '"' + END),
    "half escapes": (TEXT + '"', "\\u12", ""),
    "backslashes": (TEXT + "'", "\\", "'" + END),
    "comments": (TEXT, "/* */", "1" + END),
    "a comment of stars": (TEXT + "/*", "*", ""),
    "comments of a line": (TEXT, "//\n", "1" + END),
    "slashes": (TEXT, "/ ", ""),
    "brackets": (ROWS, "[", ""),
    "braces": (ROWS, "{a:", ""),
    "numbers": (ROWS + "[", "1,", "]" + END),
    "strings": (ROWS + "[", '"a",', "]" + END),
    "angles in a list": (ROWS + "[", "<", "]" + END),
    "closes that are none in a list": (ROWS + "[", "</tool_cal", "]" + END),
    "keys": ("<tool_call>write({ ", "a:1,", "})</tool_call>"),
    "a key that never ends": ("<tool_call>write({ ", "a", ""),
    "a quoted key that never ends": ('<tool_call>write({ "', "a", ""),
    "digits": (ROWS, "1", END),
    "digits and underscores": (ROWS, "1_", "x" + END),
    "hexadecimal digits": (ROWS + "0x", "f", END),
    "lines": ("", "hello world\n", ""),
    "calls on lines": ("", 'write({ text: "x" })\n', ""),
    "calls on lines that never end": ("", 'write({ text: "x\n', ""),
    "broken calls on lines": ("", "write({ text: }\n", ""),
    "labels": ("", "Hint: write({})\n", ""),
    "unknown tools": ("", "x({\n", ""),
    "calls in fences": ("", '```js\nwrite({ text: "x" })\n```\n', ""),
    "broken calls in fences": ("", "```js\nwrite({ text: })\n```\n", ""),
    "fences": ("", "```\n", ""),
    "backticks": ("", "`", ""),
    "blanks and words": ("", "a ", ""),
    "done": ("", "<done>x</done>", ""),
    "done that never ends": ("", "<done>", ""),
    "long done": ("", "<done>" + "x" * 1_990, ""),
    "blocks of prose": ("", "<assistant_prose>a</assistant_prose>", ""),
    "calls like tags": ("", "<write({})>\n", ""),
    "native calls that never begin": ("", '[{"id":', ""),
    "several calls in a block": ("<tool_call>", "write({})\n", "</tool_call>"),
    "blocks": ("", '<tool_call>write({ text: "x" })</tool_call>', ""),
    "blocks that never end": ("", '<tool_call>write({ text: "', ""),
    "broken blocks": ("", "<tool_call>write({ text: })</tool_call>", ""),
}


def text_of(shape: str, size: int) -> str:
    before, again, after = SHAPES[shape]
    return before + times(again, size) + after


MODES = [(0, False), (4, False), (4, True)]


@pytest.mark.parametrize("shape, mode", list(zip(SHAPES, cycle(MODES), strict=False)))
def test_cost_grows_linearly_with_the_text(shape: str, mode: tuple[int, bool]) -> None:
    """Each shape is parsed in one of the modes; `make fuzz` parses it in all of them."""
    pieces, live = mode
    assert growth(lambda size: text_of(shape, size), ReadingMode("contract", pieces, live)) <= MOST


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_text_is_parsed_without_loss(shape: str) -> None:
    text = text_of(shape, 250_000)
    reply = parse(text, format="contract", tools=TOOLS, spans=True)
    assert sum(span.end - span.start for span in reply.spans or ()) == len(text)
    assert len(reply.attempts) <= 256 and len(reply.problems) <= 1_000


def test_many_fences_are_parsed_in_every_format() -> None:
    for format in ("contract", "hermes", "auto"):
        assert not parse("```js\nx({ a: })\n```\n" * 5_000, format=format, tools=TOOLS).attempts


@pytest.mark.parametrize("format", ["contract", "hermes"])
def test_a_run_of_backticks_in_chunks_costs_linear_time(format: str) -> None:
    assert growth(lambda size: "`" * size, ReadingMode(format, 4, True)) <= MOST
