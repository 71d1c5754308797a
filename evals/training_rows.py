"""Generate chat logs to train on from the leaderboard's truths:    python evals/training_rows.py logs.jsonl

    calls    a question of one turn, and the calls that answer it; each the first acceptable one of its truth
    texts    a question that none of the tools answers, and a sentence that says so
    results  a call, what its tool gave back, and a sentence about it

`--mix AUTO REQUIRED` reads two exports (`--to text`, with these contracts) and writes the training examples: each of
the first once, and a third of the calls of the second. `--crowd FILE` reads an export (`--to openai-sft`) and offers
tools of other examples, too; use it after a split by tool, so that no tool crosses the split. `--ids FILE` writes the
leaderboard's rows with these ids and their truths, in the form that `rightcall eval` reads. Every log goes through
`rightcall dataset import` and `label`, so examples that do not pass `check` are not trained on. Questions that offer a
tool of the suite `questions`, which evaluates the small model, are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import bfcl_cases as bfcl

from rightcall import Call, Toolset
from rightcall.evaluation.leaderboard import LeaderboardData, leaderboard_tools
from rightcall.evaluation.suites import question_cases

KINDS = ("calls", "texts", "results")
EVALUATED_TOOLS = {name for case in question_cases() for name in case.tools.names}
NO_TOOL = (
    "None of the tools I have can do that.",
    "I have no tool for this, so I cannot do it here.",
    "That is outside of what my tools can do.",
    "I cannot do that with the tools I have.",
)
DONE = (('{"status": "ok"}', "Done."), ("ok", "That is done."), ('{"success": true}', "It is done."))
FAILED = (
    ("error: not found", "That did not work: not found."),
    ("error: timed out", "That did not work: it timed out."),
)
Log = dict[str, Any]


def logs(wheel: LeaderboardData, kinds: Iterable[str]) -> Iterator[Log]:
    """Yield every log of these kinds. The same wheel gives the same logs."""
    dice = random.Random(7)
    for name in bfcl.ONE_TURN:
        truths = wheel.truths(name)
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(row["function"])
            if _is_unused(tools):
                calls = [bfcl.make_call(truth, tools) for truth in truths[row["id"]]]
                yield from _call_logs(row, tools, calls, set(kinds), dice)
    for name in ("irrelevance", "live_irrelevance") if "texts" in kinds else ():
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(row["function"])
            if _is_unused(tools) and tools:
                message = {"role": "assistant", "content": dice.choice(NO_TOOL)}
                yield as_log(row["id"], [*row["question"][0], message], tools)


def _is_unused(tools: Toolset) -> bool:
    return EVALUATED_TOOLS.isdisjoint(tools.names)


def _call_logs(row: Log, tools: Toolset, calls: list[Call], kinds: set[str], dice: random.Random) -> Iterator[Log]:
    messages, call_entries = row["question"][0], [entry(call, at) for at, call in enumerate(calls)]
    message = {"role": "assistant", "content": None, "tool_calls": call_entries}
    if "calls" in kinds:
        yield as_log(row["id"], [*messages, message], tools)
    if "results" in kinds and len(call_entries) == 1 and dice.random() < 0.2:
        result, summary = dice.choice(DONE if dice.random() < 0.8 else FAILED)
        result_message = {"role": "tool", "tool_call_id": call_entries[0]["id"], "content": result}
        yield as_log(
            f"{row['id']}-result",
            [*messages, message, result_message, {"role": "assistant", "content": summary}],
            tools,
        )


def entry(call: Call, at: int) -> Log:
    function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": f"call_{at}", "type": "function", "function": function}


def as_log(id: str, messages: list[Log], tools: Toolset) -> Log:
    definitions = [{"type": "function", "function": _function(tool)} for tool in tools]
    return {"id": id, "model": "bfcl", "messages": messages, "tools": definitions}


def _function(tool: Any) -> Log:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def add_tools(examples: list[Log], *, most: int = 4, seed: int = 7) -> Iterator[Log]:
    """Yield each example with fewer than `most` tools, with tools of other examples, in random order.

    Tool names stay unique.
    """
    dice = random.Random(seed)
    all_tools = [tool for example in examples for tool in example["tools"]]
    for number, example in enumerate(examples):
        own = {tool["function"]["name"] for tool in example["tools"]}
        if len(own) >= most:
            continue
        others = {tool["function"]["name"]: tool for tool in dice.sample(all_tools, min(len(all_tools), most))}
        extra_tools = [tool for name, tool in others.items() if name not in own][: dice.randint(1, most - len(own))]
        tools = [*example["tools"], *extra_tools]
        dice.shuffle(tools)
        yield {"id": f"crowd-{number}", "model": "bfcl", "messages": example["messages"], "tools": tools}


def mix_examples(auto: list[Log], required: list[Log], *, seed: int = 3) -> Iterator[Log]:
    """Yield the training examples: all of `auto`, and a third of the calls of `required`, where a call is forced."""
    forced = [example for example in required if _kind(example) == "calls"]
    examples = [example for kind in KINDS for example in auto if _kind(example) == kind]
    yield from _without_duplicates([*examples, *random.Random(seed).sample(forced, len(forced) // 3)])


def _without_duplicates(examples: Iterable[Log]) -> Iterator[Log]:
    rows = [{"prompt": example["prompt"], "completion": example["completion"]} for example in examples]
    yield from {json.dumps(each, ensure_ascii=False): each for each in rows}.values()


def _kind(example: Log) -> str:
    if any("<tool_response>" in each["content"] for each in example["prompt"] if each["role"] == "user"):
        return "results"
    return "calls" if example["completion"].startswith("<tool_call>") else "texts"


def cases(wheel: LeaderboardData, ids: list[str]) -> Iterator[Log]:
    """Yield the rows of these ids, in their order. A row without a truth expects no call."""
    rows_by_id: dict[str, Log] = {}
    for name in (*bfcl.ONE_TURN, "irrelevance", "live_irrelevance"):
        truths = wheel.truths(name) if name in bfcl.ONE_TURN else {}
        for row in wheel.rows(f"BFCL_v4_{name}"):
            rows_by_id[row["id"]] = {**row, "ground_truth": truths.get(row["id"], []), "category": name}
    yield from [rows_by_id[id] for id in ids]


def _read(path: Path) -> list[Log]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--crowd", type=Path, metavar="FILE", help="an export to offer more tools in")
    parser.add_argument("--mix", type=Path, nargs=2, metavar="FILE", help="two exports to mix for a trainer")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="write cases to evaluate, instead of logs")
    options = parser.parse_args(arguments)
    if options.ids:
        logs_found = cases(bfcl.fetch(), options.ids.read_text("utf-8").split())
    elif options.crowd:
        logs_found = add_tools(_read(options.crowd))
    elif options.mix:
        logs_found = mix_examples(*map(_read, options.mix))
    else:
        logs_found = logs(bfcl.fetch(), options.kinds.split(","))
    lines = [json.dumps(log, ensure_ascii=False) + "\n" for log in logs_found]
    options.output.write_text("".join(lines), "utf-8")
    print(f"{len(lines)} logs in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
