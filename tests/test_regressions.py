"""What was once read wrong stays mended: every line of `corpus/regressions/` keeps the laws, and gives what it says.

A line has a `text`, its `format`, its `tools` (`lookup`, or `laws`: those of `rightcall.testing.laws`), and `why`.
`expect` says what must come of it: `calls` are those that may run. A line that `make laws` or `make fuzz` printed has
the `law` that was broken instead, and is judged by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rightcall import Reply, Tool, Toolset, parse
from rightcall.formats import find
from rightcall.testing.laws import auto_law, case_from_line, check_case, cut_law, opener_law
from rightcall.testing.laws.samples import TOOLS
from support.format_sample import selected

FOLDER = Path(__file__).resolve().parent / "corpus" / "regressions"
LOOKUP = Toolset(
    [
        Tool(
            name="lookup",
            parameters={
                "type": "object",
                "properties": {"word": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["word"],
            },
        ),
        Tool(name="stop", parameters={"type": "object", "properties": {}}),
    ]
)
TOOLSETS = {"lookup": LOOKUP, "laws": TOOLS}
Row = dict[str, Any]


def rows() -> list[Row]:
    return [
        {**json.loads(text), "file": file.stem, "line": number}
        for file in sorted(FOLDER.glob("*.jsonl"))
        for number, text in enumerate(file.read_text("utf-8").splitlines(), 1)
    ]


def name(row: Row) -> str:
    return f"{row['file']}:{row['line']} {row['format']}"


@pytest.mark.parametrize("row", selected(rows(), kept=rows()[::3]), ids=name)
def test_a_line_keeps_the_laws(row: Row) -> None:
    format, text, tools = find(row["format"]), row["text"], TOOLSETS[row["tools"]]
    if text:
        for seed in range(3):
            assert cut_law(format, text, tools=tools, seed=seed) == [], row["why"]
        assert opener_law(format, text, tools=tools) == [], row["why"]
        assert auto_law(format, text, tools=tools) == [], row["why"]
    if "law" in row:
        assert check_case(format, case_from_line(row), tools=tools) == [], row["why"]


@pytest.mark.parametrize("row", [row for row in rows() if "expect" in row], ids=name)
def test_a_line_gives_the_expected_reply(row: Row) -> None:
    reply = parse(row["text"], format=row["format"], tools=TOOLSETS[row["tools"]])
    wrong = {key: got for key, want in row["expect"].items() if (got := QUESTIONS[key](reply, want)) is not True}
    assert wrong == {}, (row["why"], [(call.name, call.arguments) for call in reply.attempts], reply.problems)


def calls(reply: Reply) -> list[list[Any]]:
    return [[call.name, call.arguments] for call in reply.calls]


def same(got: Any, want: Any) -> Any:
    return True if got == want else got


def codes(reply: Reply) -> set[str]:
    return {problem.code for problem in reply.problems}


# What a line may expect: True where it is so, else what is there instead.
QUESTIONS: dict[str, Callable[[Reply, Any], Any]] = {
    "calls": lambda reply, want: same(calls(reply), want),
    "has_call": lambda reply, want: True if want in calls(reply) else calls(reply),
    "attempts": lambda reply, want: same(len(reply.attempts), want),
    "names": lambda reply, want: same([call.name for call in reply.attempts], want),
    "codes": lambda reply, want: True if set(want) <= codes(reply) else codes(reply),
    "not_codes": lambda reply, want: True if not set(want) & codes(reply) else codes(reply),
    "not_in_arguments": lambda reply, want: (
        not any(word in json.dumps(calls(reply), ensure_ascii=False) for word in want)
    ),
    "repairs": lambda reply, want: set(want) <= {repair.rule for call in reply.calls for repair in call.repairs},
    "content": lambda reply, want: same(reply.content.strip(), want),
    "reasoning": lambda reply, want: same(reply.reasoning.strip(), want),
    "told": lambda reply, want: bool(reply.problems or any(call.repairs for call in reply.attempts)) is want,
}


def test_every_line_says_why_it_is_there() -> None:
    known = {"file", "line", "why", "what", "law", "format", "tools", "text", "sent", "written", "value", "must_carry"}
    for row in rows():
        assert row["why"].strip(), name(row)
        assert set(row) <= known | {"seed", "expect"}, name(row)
        assert set(row.get("expect", {})) <= set(QUESTIONS), name(row)
