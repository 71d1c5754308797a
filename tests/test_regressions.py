"""Regression texts: every line of `corpus/regressions/` satisfies the laws and gives the expected reply.

A line has a `text`, its `format`, its `tools` (`lookup`, or `laws`: those of `rightcall.testing.laws`), and `why`.
`expect` lists expectations about the reply; its `calls` are the runnable calls. A line printed by `make laws` or
`make fuzz` has the violated `law` instead, and is checked by it.
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


def row_id(row: Row) -> str:
    return f"{row['file']}:{row['line']} {row['format']}"


@pytest.mark.parametrize("row", selected(rows(), kept=rows()[::5]), ids=row_id)
def test_a_line_satisfies_the_laws(row: Row) -> None:
    format, text, tools = find(row["format"]), row["text"], TOOLSETS[row["tools"]]
    if text:
        for seed in range(3):
            assert cut_law(format, text, tools=tools, seed=seed) == [], row["why"]
        assert opener_law(format, text, tools=tools) == [], row["why"]
        assert auto_law(format, text, tools=tools) == [], row["why"]
    if "law" in row:
        assert check_case(format, case_from_line(row), tools=tools) == [], row["why"]


@pytest.mark.parametrize("row", [row for row in rows() if "expect" in row], ids=row_id)
def test_a_line_gives_the_expected_reply(row: Row) -> None:
    reply = parse(row["text"], format=row["format"], tools=TOOLSETS[row["tools"]])
    wrong = {key: got for key, want in row["expect"].items() if (got := EXPECTATIONS[key](reply, want)) is not True}
    assert wrong == {}, (row["why"], [(call.name, call.arguments) for call in reply.attempts], reply.problems)


def calls(reply: Reply) -> list[list[Any]]:
    return [[call.name, call.arguments] for call in reply.calls]


def match_or_actual(got: Any, want: Any) -> Any:
    return True if got == want else got


def codes(reply: Reply) -> set[str]:
    return {problem.code for problem in reply.problems}


# Checks of the expectations of a line: True if met, otherwise the actual value.
EXPECTATIONS: dict[str, Callable[[Reply, Any], Any]] = {
    "calls": lambda reply, want: match_or_actual(calls(reply), want),
    "has_call": lambda reply, want: True if want in calls(reply) else calls(reply),
    "attempts": lambda reply, want: match_or_actual(len(reply.attempts), want),
    "names": lambda reply, want: match_or_actual([call.name for call in reply.attempts], want),
    "codes": lambda reply, want: True if set(want) <= codes(reply) else codes(reply),
    "not_codes": lambda reply, want: True if not set(want) & codes(reply) else codes(reply),
    "not_in_arguments": lambda reply, want: (
        not any(word in json.dumps(calls(reply), ensure_ascii=False) for word in want)
    ),
    "repairs": lambda reply, want: set(want) <= {repair.rule for call in reply.calls for repair in call.repairs},
    "content": lambda reply, want: match_or_actual(reply.content.strip(), want),
    "reasoning": lambda reply, want: match_or_actual(reply.reasoning.strip(), want),
    "told": lambda reply, want: bool(reply.problems or any(call.repairs for call in reply.attempts)) is want,
}


def test_every_line_has_a_reason_and_known_keys() -> None:
    known = {"file", "line", "why", "what", "law", "format", "tools", "text", "sent", "written", "value", "must_carry"}
    for row in rows():
        assert row["why"].strip(), row_id(row)
        assert set(row) <= known | {"seed", "expect"}, row_id(row)
        assert set(row.get("expect", {})) <= set(EXPECTATIONS), row_id(row)
