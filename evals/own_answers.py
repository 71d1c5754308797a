"""Record a model's own answers, constrained by a grammar, as chat logs to train it on.

    python evals/own_answers.py choose/train.jsonl own.jsonl --base-url http://127.0.0.1:8000/v1 --model smollm2
    rightcall dataset import own.jsonl --from chat --model smollm2 -o rows.jsonl      # then label and export, as ever

Each request of the rows is sent once, with its tools; no ground truth is used. An answer that does not pass `check`
is not written. `--said FILE` gets only the logs whose values all appear in the request: most wrong calls have others.
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


def select_requests(rows: Sequence[Log]) -> dict[str, Toolset]:
    """Return the requests that a call answers, without duplicates, with the offered tools."""
    rows_with_call = [row for row in rows if row["kind"] == CANDIDATE and row["tool_result"] is None]
    return {row["user_request"]: tools_of(row) for row in rows_with_call}


async def request_answer(backend: Backend, text: str, tools: Toolset, at_a_time: asyncio.Semaphore) -> Log | None:
    """Return the log of one answer, or None if it is not one call that passes `check`."""
    messages: list[Log] = [{"role": "user", "content": text}]
    settings = {"mode": "grammar", "choice": "required", "parallel": False, "temperature": 0.0, "max_tokens": 160}
    try:
        async with at_a_time:
            answer = await backend.complete(Request(messages=messages, tools=tools, **settings))
    except Unsupported:  # no grammar can express these tools
        return None
    if len(answer.calls) != 1 or answer.refused:
        return None
    message = {"role": "assistant", "content": None, "tool_calls": [entry(answer.calls[0], 0)]}
    return as_log("", [*messages, message], tools)


async def logs(backend: Backend, requests: dict[str, Toolset], concurrency: int) -> list[Log]:
    """Request all answers. Return the logs of those that are one call that passes `check`."""
    at_a_time = asyncio.Semaphore(concurrency)
    async with backend:
        tasks = [request_answer(backend, text, tools, at_a_time) for text, tools in requests.items()]
        logs_found = await asyncio.gather(*tasks)
    return [{**log, "id": f"own_{at}"} for at, log in enumerate(logs_found) if log is not None]


def is_grounded(arguments: Any, request: str) -> bool:
    """Return whether there are values and all appear in the request. True, false and null are not checked."""
    texts = [_value_text(leaf) for leaf in _leaves(arguments) if not (leaf is None or isinstance(leaf, bool))]
    return bool(texts) and all(re.search(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)", request, re.I) for text in texts)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _value_text(leaf: Any) -> str:
    return str(int(leaf)) if isinstance(leaf, float) and leaf.is_integer() else str(leaf)


def _is_grounded_log(log: Log) -> bool:
    call = log["messages"][-1]["tool_calls"][0]["function"]
    return is_grounded(json.loads(call["arguments"]), log["messages"][0]["content"])


def _write(path: Path, logs_found: list[Log]) -> None:
    path.write_text("".join([json.dumps(log, ensure_ascii=False) + "\n" for log in logs_found]), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("rows", type=Path, help="rows of `rightcall dataset`, whose requests are sent")
    parser.add_argument("output", type=Path, help="the logs to write")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--limit", type=int, help="number of requests to send")
    parser.add_argument(
        "--said", type=Path, metavar="FILE", help="also write the logs whose values all appear in the request to FILE"
    )
    options = parser.parse_args(arguments)
    requests = select_requests([json.loads(line) for line in options.rows.read_text("utf-8").splitlines()])
    requests_to_send = dict(list(requests.items())[: options.limit])
    timeouts = Timeouts(first_byte=600.0, idle=600.0, total=600.0)
    backend = Backend(options.base_url, model=options.model, timeouts=timeouts)
    logs_found = asyncio.run(logs(backend, requests_to_send, options.concurrency))
    grounded = [log for log in logs_found if _is_grounded_log(log)]
    _write(options.output, logs_found)
    if options.said:
        _write(options.said, grounded)
    print(
        f"{len(requests_to_send)} requests, {len(logs_found)} answers with one call that passes, "
        f"{len(grounded)} of them grounded"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
