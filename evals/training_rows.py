"""Chat logs to train on, made of the leaderboard's truths:    python evals/training_rows.py logs.jsonl

    calls    a question of one turn, and the calls that answer it; each the first acceptable one of its truth
    texts    a question that none of the tools answers, and a sentence that says so
    results  a call, what its tool gave back, and a sentence about it

`--mix AUTO REQUIRED` reads two exports (`--to text`, with these contracts) and writes what is trained on: each of the
first once, and a third of the calls of the second. `--crowd FILE` reads an export (`--to openai-sft`) and offers,
beside the tools of each example, some of others: after a split by tool, so that none comes over from the other side.
`--ids FILE` writes the leaderboard's rows of these ids with their truths, as `rightcall eval` takes them.
Every log goes through `rightcall dataset import` and `label`, so what does not pass `check` is not trained on.
Questions that offer a tool of the suite `questions`, which the small model is judged by, are left out.
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
JUDGED_BY = {name for case in question_cases() for name in case.tools.names}
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
    """Every log of these kinds. The same wheel gives the same logs."""
    chosen = random.Random(7)
    for name in bfcl.ONE_TURN:
        truths = wheel.truths(name)
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(row["function"])
            if _is_free(tools):
                calls = [bfcl.called(truth, tools) for truth in truths[row["id"]]]
                yield from _answered(row, tools, calls, set(kinds), chosen)
    for name in ("irrelevance", "live_irrelevance") if "texts" in kinds else ():
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(row["function"])
            if _is_free(tools) and tools:
                said = {"role": "assistant", "content": chosen.choice(NO_TOOL)}
                yield as_log(row["id"], [*row["question"][0], said], tools)


def _is_free(tools: Toolset) -> bool:
    return JUDGED_BY.isdisjoint(tools.names)


def _answered(row: Log, tools: Toolset, calls: list[Call], kinds: set[str], chosen: random.Random) -> Iterator[Log]:
    asked, made = row["question"][0], [entry(call, at) for at, call in enumerate(calls)]
    said = {"role": "assistant", "content": None, "tool_calls": made}
    if "calls" in kinds:
        yield as_log(row["id"], [*asked, said], tools)
    if "results" in kinds and len(made) == 1 and chosen.random() < 0.2:
        result, words = chosen.choice(DONE if chosen.random() < 0.8 else FAILED)
        told = {"role": "tool", "tool_call_id": made[0]["id"], "content": result}
        yield as_log(f"{row['id']}-result", [*asked, said, told, {"role": "assistant", "content": words}], tools)


def entry(call: Call, at: int) -> Log:
    function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": f"call_{at}", "type": "function", "function": function}


def as_log(id: str, messages: list[Log], tools: Toolset) -> Log:
    defined = [{"type": "function", "function": _function(tool)} for tool in tools]
    return {"id": id, "model": "bfcl", "messages": messages, "tools": defined}


def _function(tool: Any) -> Log:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def crowded(examples: list[Log], *, most: int = 4, seed: int = 7) -> Iterator[Log]:
    """Each example that offers fewer than `most` tools, with some of other examples beside them, in any order. None of
    a name that is there."""
    chosen = random.Random(seed)
    known = [tool for example in examples for tool in example["tools"]]
    for number, example in enumerate(examples):
        own = {tool["function"]["name"] for tool in example["tools"]}
        if len(own) >= most:
            continue
        others = {tool["function"]["name"]: tool for tool in chosen.sample(known, min(len(known), most))}
        added = [tool for name, tool in others.items() if name not in own][: chosen.randint(1, most - len(own))]
        tools = [*example["tools"], *added]
        chosen.shuffle(tools)
        yield {"id": f"crowd-{number}", "model": "bfcl", "messages": example["messages"], "tools": tools}


def mixed(auto: list[Log], required: list[Log], *, seed: int = 3) -> Iterator[Log]:
    """The examples to train on: calls, texts and results as they are asked for freely, and a third of the calls once
    more as they are asked for where one must come."""
    forced = [example for example in required if _kind(example) == "calls"]
    found = [example for kind in KINDS for example in auto if _kind(example) == kind]
    yield from _once([*found, *random.Random(seed).sample(forced, len(forced) // 3)])


def _once(examples: Iterable[Log]) -> Iterator[Log]:
    said = [{"prompt": example["prompt"], "completion": example["completion"]} for example in examples]
    yield from {json.dumps(each, ensure_ascii=False): each for each in said}.values()


def _kind(example: Log) -> str:
    if any("<tool_response>" in each["content"] for each in example["prompt"] if each["role"] == "user"):
        return "results"
    return "calls" if example["completion"].startswith("<tool_call>") else "texts"


def cases(wheel: LeaderboardData, ids: list[str]) -> Iterator[Log]:
    """The rows of these ids, in their order. No truth: no call may be made."""
    found: dict[str, Log] = {}
    for name in (*bfcl.ONE_TURN, "irrelevance", "live_irrelevance"):
        truths = wheel.truths(name) if name in bfcl.ONE_TURN else {}
        for row in wheel.rows(f"BFCL_v4_{name}"):
            found[row["id"]] = {**row, "ground_truth": truths.get(row["id"], []), "category": name}
    yield from [found[id] for id in ids]


def _read(path: Path) -> list[Log]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--crowd", type=Path, metavar="FILE", help="an export to offer more tools in")
    parser.add_argument("--mix", type=Path, nargs=2, metavar="FILE", help="two exports to mix for a trainer")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="cases to evaluate with, instead of logs")
    options = parser.parse_args(arguments)
    if options.ids:
        found = cases(bfcl.fetch(), options.ids.read_text("utf-8").split())
    elif options.crowd:
        found = crowded(_read(options.crowd))
    elif options.mix:
        found = mixed(*map(_read, options.mix))
    else:
        found = logs(bfcl.fetch(), options.kinds.split(","))
    lines = [json.dumps(log, ensure_ascii=False) + "\n" for log in found]
    options.output.write_text("".join(lines), "utf-8")
    print(f"{len(lines)} logs in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
