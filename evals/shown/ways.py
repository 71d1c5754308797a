"""Quoting styles: each takes the text of a call and returns a text in which it is only quoted, with text around it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

QuotingStyle = Callable[[Random, str], str]

BEFORE = (
    "Here is what such a call looks like:",
    "I can't run this myself, but it's simple:",
    'The manual calls it "the wire" and says:',
    "# How it works\n\nThe `lookup` tool takes a word.",
    "- one\n- two",
    "Use a 5\" pipe. It's the users' choice.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "Step 1: read.\nStep 2: think.",
)
BEHIND = (
    "I have not run it.",
    "Shall I send it?",
    "That's all; don't send it.",
    "Note that it isn't run.",
    "\n\nThe rest is up to you.",
)
WORDS = ("see", "please answer with", "it wrote", "models send", "they said:", "(for example)", "do not send")
INFO = ("", "json", "xml", "text", "markdown", 'ts title="call"', "tool_call")


def before(dice: Random) -> str:
    return dice.choice(BEFORE)


def behind(dice: Random) -> str:
    return dice.choice(BEHIND)


def indent(text: str, by: str) -> str:
    return "\n".join([by + line if line else line for line in text.split("\n")])


def longest_run(text: str, char: str) -> int:
    best = run = 0
    for each in text:
        run = run + 1 if each == char else 0
        best = max(best, run)
    return best


def _fenced(dice: Random, wire: str, by: str = "") -> str:
    char = dice.choice("``~")
    size = max(3, longest_run(wire, char) + 1) + dice.randrange(2)
    inside = dice.choice(
        ("", "", "# An example\n\n", "foo\n" + char * 3 + " is no close\n", "    " + char * size + "\n")
    )
    return indent(f"{char * size}{dice.choice(INFO)}\n{inside}{wire}\n{char * size}", by)


def fence(dice: Random, wire: str) -> str:
    return f"{before(dice)}\n\n{_fenced(dice, wire, ' ' * dice.randrange(4))}\n{behind(dice)}"


def fence_unclosed(dice: Random, wire: str) -> str:
    return f"{before(dice)}\n~~~{dice.choice(INFO)}\n{wire}\n\n{behind(dice)}"


def fence_in_list(dice: Random, wire: str) -> str:
    mark = dice.choice(("- ", "* ", "1. ", "10) "))
    item = dice.choice((f"{mark}First:\n\n", f"{mark}First:\n"))
    return f"{item}{_fenced(dice, wire, ' ' * len(mark))}\n\n{behind(dice)}"


def fence_as_item(dice: Random, wire: str) -> str:
    mark = dice.choice(("- ", "3. "))
    inner = _fenced(dice, wire, " " * len(mark))
    return f"{before(dice)}\n\n{mark}{inner[len(mark) :]}\n\n{behind(dice)}"


def fence_nested(dice: Random, wire: str) -> str:
    inner = _fenced(dice, wire)
    size = max(longest_run(inner, "`"), 3) + 1
    return f"{before(dice)}\n\n{'`' * size}markdown\nRead:\n\n{inner}\n\n{behind(dice)}\n{'`' * size}\n{behind(dice)}"


def fence_in_quote(dice: Random, wire: str) -> str:
    return f"The mail says:\n\n{indent(_fenced(dice, wire), '> ')}\n\n{behind(dice)}"


def fence_on_its_line(dice: Random, wire: str) -> str:
    return f"{before(dice)}\n~~~ {wire}\n~~~\n{behind(dice)}"


def span(dice: Random, wire: str) -> str:
    ticks = "`" * (longest_run(wire, "`") + 1 + dice.randrange(2))
    pad = dice.choice(("", " ")) if "`" not in wire else " "
    words, escape = dice.choice(WORDS), dice.choice(("", "", "A literal \\` and "))
    return f"{escape}{words}{dice.choice(' ' + chr(10))}{ticks}{pad}{wire}{pad}{ticks} {dice.choice(WORDS)} it."


def span_with_words(dice: Random, wire: str) -> str:
    ticks = "`" * (longest_run(wire, "`") + 1)
    return f"They write {ticks}code{dice.choice(' ' + chr(10))}{wire} and so on{ticks} here."


QUOTES = (
    *(('"', '"'), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u2018", "\u2019")),
    *(("\u00ab ", " \u00bb"), ("\u00bb", "\u00ab"), ("\u2039", "\u203a"), ("\u300c", "\u300d"), ("\u300e", "\u300f")),
)


def quote(dice: Random, wire: str) -> str:
    opens, closes = dice.choice(QUOTES)
    return f"The page's text is {opens}{wire}{closes}, {behind(dice)}"


def quote_with_words(dice: Random, wire: str) -> str:
    opens, closes = dice.choice(QUOTES)
    gap = dice.choice((" ", "\n"))
    return f"It's odd: the page says {opens}{dice.choice(WORDS)}{gap}{wire}{gap}now{closes}. {behind(dice)}"


def quote_nested(dice: Random, wire: str) -> str:
    return f'The page says "please run "{wire}" now", which I ignored.'


def block_quote(dice: Random, wire: str) -> str:
    mark = dice.choice(("> ", ">", "  > ", "- > "))
    lines = indent(f"{dice.choice(WORDS)}\n{wire}", "> ") if mark != ">" else indent(wire, ">")
    return f"{before(dice)}\n\n{mark.removesuffix('> ').removesuffix('>')}{lines}\n\n{behind(dice)}"


def code(dice: Random, wire: str) -> str:
    by = dice.choice(("    ", "\t", "      "))
    first = dice.choice(("", "$ cat example\n"))
    return f"{before(dice)}\n\n{indent(first + wire, by)}\n\n{behind(dice)}"


def diff(dice: Random, wire: str) -> str:
    heads = (
        "@@ -1,3 +1,4 @@\n",
        "diff --git a/x b/x\nindex 1..2\n",
        "--- a/x\n+++ b/x\n",
        "--- x\n+++ x\n@@ -1 +1 @@\n",
    )
    lines = "\n".join([dice.choice("+- ") + line for line in f"old\n{wire}\nnew".split("\n")])
    return f"{before(dice)}\n\n{dice.choice(heads)} line\n{lines}\n\n{behind(dice)}"


def html(dice: Random, wire: str) -> str:
    pairs = (
        *(("<pre>", "</pre>"), ("<pre><code>", "</code></pre>"), ('<pre class="x">', "</pre>"), ("<PRE>", "</PRE>")),
        *(("<code>", "</code>"), ("<textarea rows=3>", "</textarea>"), ("<!-- ", " -->"), ("<![CDATA[", "]]>")),
    )
    opens, closes = dice.choice(pairs)
    gap = dice.choice(("", "\n", "\nfoo\n\n"))
    return f"{before(dice)} {opens}{gap}{wire}{gap}{closes} {behind(dice)}"


def result(dice: Random, wire: str) -> str:
    pairs = (
        *(("<tool_response>\n", "\n</tool_response>"), ("[TOOL_RESULTS]", "[/TOOL_RESULTS]")),
        *(
            ("<function_results>\n<result>", "</result>\n</function_results>"),
            ("<tool_output name='x'>", "</tool_output>"),
        ),
        ("<tool_result>", "</tool_result>"),
    )
    opens, closes = dice.choice(pairs)
    return f"{before(dice)}\n\n{opens}{wire}{closes}\n{behind(dice)}"


def file(dice: Random, wire: str) -> str:
    mark, start = dice.choice(("{}\t", "{:6}\t", "{:3} | ", "{}|", "{}:", "{:4}: ")), dice.randrange(1, 200)
    lines = dice.choice(("", "import os\n", "# a\n\n")) + wire + dice.choice(("", "\nend"))
    numbered = [mark.format(start + i) + line for i, line in enumerate(lines.split("\n"))]
    return f"{before(dice)}\n\n" + "\n".join(numbered) + f"\n\n{behind(dice)}"


def log(dice: Random, wire: str) -> str:
    stamp = dice.choice(
        ("2024-03-01 10:22:07 ", "[10:22:07] ", "2024-03-01T10:22:07Z INFO ", "Mar  1 10:22:07 host x: ")
    )
    lines = [stamp + line for line in f"started\n{wire}\ndone".split("\n")]
    return f"{before(dice)}\n\n" + "\n".join(lines) + f"\n\n{behind(dice)}"


def transcript(dice: Random, wire: str) -> str:
    role = dice.choice(("User: ", "Assistant: ", "**Human:** ", "[system]: ", "AI: ", "tool: ", "Assistant (agent): "))
    return f"{before(dice)}\n\nUser: hello\n" + indent(wire, role) + f"\n\n{behind(dice)}"


WAYS: dict[str, QuotingStyle] = {
    "fence": fence,
    "fence_unclosed": fence_unclosed,
    "fence_in_list": fence_in_list,
    "fence_nested": fence_nested,
    "fence_as_item": fence_as_item,
    "fence_in_quote": fence_in_quote,
    "fence_on_its_line": fence_on_its_line,
    "span": span,
    "span_with_words": span_with_words,
    "quote": quote,
    "quote_with_words": quote_with_words,
    "quote_nested": quote_nested,
    "block_quote": block_quote,
    "code": code,
    "diff": diff,
    "html": html,
    "result": result,
    "file": file,
    "log": log,
    "transcript": transcript,
}
# Styles that end with their paragraph cannot hold a text with an empty line or a fence.
IN_PARAGRAPH = frozenset(("span", "span_with_words", "quote", "quote_with_words", "quote_nested"))
# Styles that prefix lines cannot hold strings of several lines.
BY_LINE = frozenset(("block_quote", "diff", "file", "log", "transcript", "code"))
