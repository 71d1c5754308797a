"""An experiment: can the small model recognize wrong calls?    python evals/verifier.py rows|judge ...

    rightcall dataset mutate choose/train.jsonl --kind wrong_tool=700 --kind wrong_arguments=1400 -o wrong.jsonl
    python evals/verifier.py rows choose/train.jsonl wrong.jsonl -o train.jsonl        # then examples/train/train.py
    python examples/train/answers.py --model ... --adapter ... --rows test.jsonl --out answers.jsonl --most 3
    python evals/verifier.py judge answers.jsonl

The right calls are the leaderboard's truths, the wrong ones are mutations by `dataset mutate`, so every label is known
without a model. Each question has its own prompt and is answered with yes or no. `judge` prints how many rejections are
right (precision) and how many of the wrong calls are rejected (recall), for the model and for a rule without a model:
a call is rejected if one of its values does not appear in the request. `check` rejects none: all these calls fit their
schemas.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from own_answers import is_grounded
from report import percent, wilson

from rightcall.capture.captured_rows import tools_of

Row = dict[str, Any]
SYSTEM_PROMPT = (
    "You check tool calls. Answer yes if the call does what the request asks for, with the right tool and the right "
)
SYSTEM_PROMPT += "arguments, and no if not.\n\nTools:\n{tools}"
WRONG = ("wrong_tool", "wrong_arguments")


def example(row: Row, answer: str) -> Row:
    tool_data = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools_of(row)]
    tool_lines = "\n".join([json.dumps(tool, ensure_ascii=False) for tool in tool_data])
    call = {key: row["candidate_call"][key] for key in ("name", "arguments")}
    question = f"Request: {row['user_request']}\nCall: {json.dumps(call, ensure_ascii=False)}"
    prompt = [
        {"role": "system", "content": SYSTEM_PROMPT.format(tools=tool_lines)},
        {"role": "user", "content": question},
    ]
    kind = row["metadata"].get("mutation", {}).get("kind", "right")
    return {"prompt": prompt, "completion": answer, "kind": kind}


def examples(right: list[Row], wrong: list[Row], most: int) -> list[Row]:
    """Choose right calls of conversations with one call, and as many mutations of them, of both kinds."""
    dice = random.Random(5)
    calls = [row for row in right if row["kind"] == "tool_call_candidate" and row["tool_result"] is None]
    several = Counter(row["example_group_id"] for row in calls)
    good = [row for row in calls if several[row["example_group_id"]] == 1 and not row.get("label")]
    groups = {row["example_group_id"] for row in good}
    bad = [row for row in wrong if row["example_group_id"] in groups]
    dice.shuffle(good)
    dice.shuffle(bad)
    rows = [example(row, "yes") for row in good[:most]]
    for kind in WRONG:
        rows += [example(row, "no") for row in bad if row["metadata"]["mutation"]["kind"] == kind][: most // 2]
    return rows


def report(answers: list[Row]) -> str:
    wrong_count = sum(row["completion"] == "no" for row in answers)
    lines = [f"{len(answers)} calls, {wrong_count} of them wrong"]
    is_refused_by_model = [row["answer"].strip().lower().startswith("no") for row in answers]
    lines += _figures("verifier", answers, is_refused_by_model)
    lines += _figures("rule", answers, [not is_grounded(*_parse_prompt(row)) for row in answers])
    return "\n".join(lines)


def _figures(name: str, answers: list[Row], is_refused: list[bool]) -> list[str]:
    refused = [row for row, no in zip(answers, is_refused, strict=True) if no]
    lines = [_figure_line(f"{name}: precision", sum(row["completion"] == "no" for row in refused), len(refused))]
    for kind in (*WRONG, "right"):
        of = [no for row, no in zip(answers, is_refused, strict=True) if row["kind"] == kind]
        lines.append(_figure_line(f"{name}: refused of {kind}", sum(of), len(of)))
    return lines


def _parse_prompt(row: Row) -> tuple[Row, str]:
    """Return the arguments of the call, and the request."""
    request, _, call = row["prompt"][-1]["content"].rpartition("\nCall: ")
    return json.loads(call)["arguments"], request


def _figure_line(name: str, count: int, of: int) -> str:
    low, high = wilson(count, of) if of else (0.0, 1.0)
    return f"{name}: {count} of {of}, {percent(count / max(1, of))} ({low * 100:.0f}-{high * 100:.0f})"


def _read(path: Path) -> list[Row]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("rows", "judge"))
    parser.add_argument(
        "files", type=Path, nargs="+", help="rows: files of right and wrong calls; judge: files of answers"
    )
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--most", type=int, default=1300, help="number of right calls, and of wrong calls")
    options = parser.parse_args(arguments)
    if options.what == "judge":
        print(report([row for file in options.files for row in _read(file)]))
        return 0
    right, wrong = map(_read, options.files)
    rows = examples(right, wrong, options.most)
    options.output.write_text("".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows]), "utf-8")
    print(f"{len(rows)} rows: {dict(Counter(row['kind'] for row in rows))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
