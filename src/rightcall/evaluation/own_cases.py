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

from rightcall.errors import BadTools, CallerError
from rightcall.evaluation.eval_case import EvalCase, exactly
from rightcall.evaluation.leaderboard_cases import leaderboard_case
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.toolset import Toolset
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
        _check_truths(row["ground_truth"])
        return leaderboard_case(row, row["ground_truth"], str(row.get("category", suite)), suite)
    messages, wanted = _asked(row)
    tools = Toolset.of(row["tools"]) or Toolset()
    if strangers := [call.name for call in wanted if call.name not in tools]:
        raise CallerError(f"a call of {strangers[0]!r:.80} is wanted, which is none of its tools; offer it too")
    return EvalCase(
        suite=suite,
        id=str(row.get("id", f"line-{number}")),
        category=str(row.get("category", suite)),
        tools=tools,
        messages=tuple(messages),
        wanted=[{"name": call.name, "arguments": call.arguments} for call in wanted],
        judge=exactly(wanted),
    )


def _asked(row: Json) -> tuple[Sequence[Json], list[Call]]:
    """What is sent, and the calls that are wanted."""
    if isinstance(row.get("question"), str):
        return [{"role": "user", "content": row["question"]}], _calls(row["calls"])
    messages = row["messages"]
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "role" in each for each in messages):
        raise CallerError("`messages` must be a list of objects that have a role")
    if "calls" in row and not messages:
        raise CallerError("`messages` is empty, so nothing would be asked")
    if "calls" in row:
        return messages, _calls(row["calls"])
    if not messages or messages[-1].get("role") != "assistant":
        raise CallerError("it says neither `calls` nor, in a last turn of the assistant, what is wanted")
    return messages[:-1], _calls([each["function"] for each in messages[-1].get("tool_calls") or ()])


def _calls(said: Any) -> list[Call]:
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise CallerError("the calls that are wanted must be a list of objects")
    return [_call(each["name"], each.get("arguments", {})) for each in said]


def _call(name: Any, arguments: Any) -> Call:
    given = decode(arguments or "{}", MAX_DEPTH) if isinstance(arguments, str) else arguments
    if not isinstance(name, str) or not isinstance(given, dict):
        raise CallerError(f"the call of {name!r:.80} must have a name, and arguments that are an object")
    return Call(name, given)


def _check_truths(truths: Any) -> None:
    """Each is one name, and of each argument a list of what is right."""
    for truth in truths if isinstance(truths, list) else [None]:
        values = next(iter(truth.values())) if isinstance(truth, dict) and len(truth) == 1 else None
        if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
            raise CallerError('`ground_truth` must be a list of objects like {"f": {"x": [1, 2]}}')
