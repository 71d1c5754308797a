"""Cases out of JSON lines of one's own. Three shapes are read:

    {"id": "a", "messages": [{"role": "user", ...}], "tools": [...], "calls": [{"name": "f", "arguments": {...}}]}
    {"messages": [..., {"role": "assistant", "tool_calls": [...]}], "tools": [...]}        rows to train on
    {"id": "b", "question": [[{"role": "user", ...}]], "function": [...], "ground_truth": [{"f": {"x": [1]}}]}

The first may have a `question`, a text, in the place of its messages; without calls, none may be made. Of the second,
the last turn is what is wanted. The third is the leaderboard's, and is judged by its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rightcall.declare.toolset import Toolset
from rightcall.errors import BadTools, CallerError
from rightcall.evaluation.eval_case import EvalCase, exactly
from rightcall.evaluation.leaderboard_cases import leaderboard_case
from rightcall.files.jsonl import LineFault, read_rows
from rightcall.types import Call, Json


def own_cases(path: Path) -> Iterator[EvalCase]:
    """The cases of a file, which is the name of their suite. Raises `CallerError`, `FileFailed`."""
    for number, row in read_rows(path):
        if isinstance(row, LineFault):
            raise CallerError(f"{path}:{number}: {row.message}")
        try:
            yield _case(row, path.stem, number)
        except (CallerError, BadTools, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CallerError(f"{path}:{number}: it is no case that can be asked: {why:.300}") from error


def _case(row: Json, suite: str, number: int) -> EvalCase:
    if "ground_truth" in row:
        row = {"id": f"line-{number}", **row}
        return leaderboard_case(row, row["ground_truth"], str(row.get("category", suite)), suite)
    messages, wanted = _asked(row)
    return EvalCase(
        suite=suite,
        id=str(row.get("id", f"line-{number}")),
        category=str(row.get("category", suite)),
        tools=Toolset.of(row["tools"]) or Toolset(),
        messages=tuple(messages),
        wanted=[{"name": call.name, "arguments": call.arguments} for call in wanted],
        judge=exactly(wanted),
    )


def _asked(row: Json) -> tuple[Sequence[Json], list[Call]]:
    """What is sent, and the calls that are wanted."""
    if isinstance(row.get("question"), str):
        return [{"role": "user", "content": row["question"]}], _calls(row["calls"])
    messages = row["messages"]
    if "calls" in row:
        return messages, _calls(row["calls"])
    if not messages or messages[-1].get("role") != "assistant":
        raise CallerError("it says neither `calls` nor, in a last turn of the assistant, what is wanted")
    return messages[:-1], _calls([each["function"] for each in messages[-1].get("tool_calls") or ()])


def _calls(said: Sequence[Json]) -> list[Call]:
    return [_call(each["name"], each.get("arguments", {})) for each in said]


def _call(name: str, arguments: Any) -> Call:
    return Call.from_text(name, arguments) if isinstance(arguments, str) else Call(name, arguments)
