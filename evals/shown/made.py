"""Generate the texts: quoting styles x formats x calls, and real calls after text that quotes something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rightcall import Call, CannotCarry, Text, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, marker_alternatives
from shown.ways import BY_LINE, IN_PARAGRAPH, WAYS, before

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpus"
SEED = 20_261_115
STRING: dict[str, Any] = {"type": "string"}


def _tool(name: str, required: list[str], properties: dict[str, Any]) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": required})


TOOLS = Toolset(
    [
        _tool("lookup", ["word"], {"word": STRING, "n": {"type": "integer"}}),
        _tool("bash", ["command"], {"command": STRING}),
        _tool("ping", [], {}),
    ]
)
VALUES = ("owl", "rm -rf /", 'it\'s "raw"', "a `tick` b", "C:\\temp", "x = {1: [2]}", '5" pipe', "über", "a, b; c")
LINES = ("one\ntwo", "def f():\n    return 1", "# a\n- b\n> c")


class Sample(NamedTuple):
    """A text, and the runnable calls in it."""

    kind: str
    format: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    tools: str = ""  # the key of the corpus' tools; "" for `TOOLS`


def call(dice: Random, lines: bool) -> Call:
    value = dice.choice((*VALUES, *LINES) if lines else VALUES)
    made = ({"word": value}, {"word": value, "n": dice.randrange(99)})
    return dice.choice((Call("lookup", dice.choice(made)), Call("bash", {"command": value}), Call("ping", {})))


def wire(dice: Random, format: Format, style: str) -> str | None:
    calls = [call(dice, style not in BY_LINE) for _ in range(dice.choice((1, 1, 2)))]
    try:
        text = (dice.choice((_start(format), "")) + render(calls, format=format, tools=TOOLS)).strip()
    except CannotCarry:
        return None
    if style in IN_PARAGRAPH and ("\n\n" in text or "```" in text or "~~~" in text):
        return None
    return text


def _start(format: Format) -> str:
    """Return the start of the first header, which a reply omits because it ends the prompt; a quotation may have it."""
    return marker_alternatives(format.channels.start)[0] if format.channels else ""


def generate_quoted(name: str, count: int) -> Iterator[Sample]:
    """Yield texts in which no call is runnable."""
    format, dice = FORMATS[name], Random(f"{SEED} {name}")
    styles = sorted(WAYS)
    count_made = tries = 0
    while count_made < count and tries < count * 4:
        style = styles[tries % len(styles)]
        tries += 1
        text = wire(dice, format, style)
        if text is not None:
            count_made += 1
            yield Sample(style, name, WAYS[style](dice, text))


# -- real calls --------------------------------------------------------------------------------------------------------

CLOSED = ("fence", "span", "quote", "block_quote", "diff", "html", "result", "file", "log", "transcript", "code")
USUAL = (
    "I'll call it's weather tool:",
    'He said "hi".',
    "- one\n- two",
    "# A heading",
    'You need a 5" pipe.\n\nI look it up.',
    "Step 1:",
    "User: wants weather.\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "The users' list is 'short'.",
    "It\u2019s \u201cfine\u201d, \u00abbon\u00bb.",
    "Use `x` and ``y ` z``; a \\` too.",
    "```py\nprint('a')\n```",
    '1. one\n\n   ```\n   x = "\n   ```\n\n2. two',
    "~~~\n```\n~~~",
    '> quoted "\n\nSo:',
    '<pre>a " b</pre> and <code>`</code>',
    "---\n",
    "rock 'n' roll in the '90s",
    "Let's get 'em, 'cause 'tis late.",
    "Use the \" key, not the ' key.",
    "Set x='y and path=\"/a there.",
)


def closed_quotation(dice: Random) -> str:
    """Return text that quotes something and closes the quotation."""
    if dice.random() < 0.5:
        return dice.choice(USUAL)
    style = dice.choice(CLOSED)
    inner = dice.choice(("x = 1", 'print("a")', "an `example`, isn't it", "{'a': [1]}", "one\ntwo"))
    inner = inner.replace("`", "") if style == "span" else inner
    return WAYS[style](dice, inner).rstrip()


def generate_calls(name: str, count: int) -> Iterator[Sample]:
    """Yield texts whose calls must all be found, after text that quotes something and closes the quotation."""
    format, dice = FORMATS[name], Random(f"{SEED} {name} called")
    corpus = list(_corpus(name))
    tries = 0
    while tries < count:
        tries += 1
        text = closed_quotation(dice) + "\n\n" + before(dice).rstrip()
        if corpus and tries % 3 == 0 and not format.channels:
            yield _append_row(dice.choice(corpus), text)
            continue
        calls = [call(dice, True) for _ in range(dice.choice((1, 1, 2)))]
        parts = [Text(dice.choice((text, text + "\n", text + "\n\n"))), *calls]
        try:
            text_with_calls = render(parts, format=format, tools=TOOLS)
        except CannotCarry:
            continue
        yield Sample("rendered", name, text_with_calls, tuple([(each.name, each.arguments) for each in calls]))


def _corpus(name: str) -> Iterator[dict[str, Any]]:
    file = CORPUS / f"{name}.jsonl"
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        row = json.loads(line)
        expect = row["expect"]
        if (
            expect.get("calls")
            and _is_found_after_text(row)
            and not expect.get("content")
            and not expect.get("reasoning")
            and not row.get("options")
        ):
            yield row


def _is_found_after_text(row: dict[str, Any]) -> bool:
    """Return whether the calls are found after plain text too. Some are found only where a reply begins."""
    tools = json.loads((CORPUS / "tools.json").read_text("utf-8"))[row["tools"]] if row.get("tools") else None
    reply = parse(f"Hello.\n\n{row['text'].lstrip()}", format=row["format"], tools=tools)
    return [(call.name, call.arguments) for call in reply.calls] == [
        (each["name"], each["arguments"]) for each in row["expect"]["calls"]
    ]


def _append_row(row: dict[str, Any], text: str) -> Sample:
    calls = tuple([(each["name"], each["arguments"]) for each in row["expect"]["calls"]])
    return Sample("corpus", row["format"], f"{text}\n\n{row['text'].lstrip()}", calls, row.get("tools", ""))


def has_own_fence(format: Format) -> bool:
    """Return whether a code fence is the format's own opener."""
    return any(text.lstrip().startswith("```") for text in marker_alternatives(format.call[0]))
