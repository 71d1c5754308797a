"""Chat logs of a model's own answers, held to a grammar, to train it on.

    python evals/own_answers.py choose/train.jsonl own.jsonl --base-url http://127.0.0.1:8000/v1 --model smollm2
    rightcall dataset import own.jsonl --from chat --model smollm2 -o rows.jsonl      # then label and export, as ever

Each request of the rows is asked once, with its tools; nobody's truth is looked at. What does not pass `check` is not
written. `--said FILE` gets those alone whose every value is said in the request: most of the wrong ones have another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from training_rows import as_log, entry

from rightcall.backends import Backend, Request, Timeouts
from rightcall.capture.captured_rows import CANDIDATE, tools_of
from rightcall.errors import Unsupported
from rightcall.tools.toolset import Toolset

Log = dict[str, Any]


def asked(rows: Sequence[Log]) -> dict[str, Toolset]:
    """Requests that a call answers, each once, with the tools that were offered."""
    wanted = [row for row in rows if row["kind"] == CANDIDATE and row["tool_result"] is None]
    return {row["user_request"]: tools_of(row) for row in wanted}


async def answered(backend: Backend, text: str, tools: Toolset, at_a_time: asyncio.Semaphore) -> Log | None:
    """The log of one answer; None where it is not one call that passes."""
    messages: list[Log] = [{"role": "user", "content": text}]
    held = {"mode": "grammar", "choice": "required", "parallel": False, "temperature": 0.0, "max_tokens": 160}
    try:
        async with at_a_time:
            answer = await backend.complete(Request(messages=messages, tools=tools, **held))
    except Unsupported:  # no grammar says what these tools take
        return None
    if len(answer.calls) != 1 or answer.refused:
        return None
    said = {"role": "assistant", "content": None, "tool_calls": [entry(answer.calls[0], 0)]}
    return as_log("", [*messages, said], tools)


async def logs(backend: Backend, requests: dict[str, Toolset], concurrency: int) -> list[Log]:
    at_a_time = asyncio.Semaphore(concurrency)
    async with backend:
        tasks = [answered(backend, text, tools, at_a_time) for text, tools in requests.items()]
        found = await asyncio.gather(*tasks)
    return [{**log, "id": f"own_{at}"} for at, log in enumerate(found) if log is not None]


def is_grounded(arguments: Any, request: str) -> bool:
    """Is there a value, and is each of them said in the request? Of true, false and null nothing can be said."""
    said = [_written(leaf) for leaf in _leaves(arguments) if not (leaf is None or isinstance(leaf, bool))]
    return bool(said) and all(re.search(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)", request, re.I) for text in said)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _written(leaf: Any) -> str:
    return str(int(leaf)) if isinstance(leaf, float) and leaf.is_integer() else str(leaf)


def _says_nothing_new(log: Log) -> bool:
    call = log["messages"][-1]["tool_calls"][0]["function"]
    return is_grounded(json.loads(call["arguments"]), log["messages"][0]["content"])


def _write(path: Path, found: list[Log]) -> None:
    path.write_text("".join([json.dumps(log, ensure_ascii=False) + "\n" for log in found]), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("rows", type=Path, help="rows of `rightcall dataset`, whose requests are asked")
    parser.add_argument("output", type=Path, help="the logs to write")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--limit", type=int, help="so many requests")
    parser.add_argument(
        "--said", type=Path, metavar="FILE", help="those whose every value is said in the request, once more"
    )
    options = parser.parse_args(arguments)
    requests = asked([json.loads(line) for line in options.rows.read_text("utf-8").splitlines()])
    some = dict(list(requests.items())[: options.limit])
    patient = Timeouts(first_byte=600.0, idle=600.0, total=600.0)
    backend = Backend(options.base_url, model=options.model, timeouts=patient)
    found = asyncio.run(logs(backend, some, options.concurrency))
    kept = [log for log in found if _says_nothing_new(log)]
    _write(options.output, found)
    if options.said:
        _write(options.said, kept)
    print(f"{len(some)} asked, {len(found)} are one call that passes, {len(kept)} of them say nothing of their own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
