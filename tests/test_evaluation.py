"""`rightcall eval`: what each configuration adds is seen, rows are durable, runs can be gone on with and compared.

The models are scripted, behind a server on this machine: each has faults that one part of rightcall is there for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import run
from rightcall.evaluation.configurations import CONFIGURATIONS
from rightcall.evaluation.eval_rows import PastRun, read_evaluation
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.question_cases import question_cases
from scripted_server import scripted

Json = dict[str, Any]
LLAMA = {"/props": {"default_generation_settings": {}, "chat_template": ""}}
WANTED = {case.messages[-1]["content"]: case.wanted[0] for case in question_cases()}
NUMBERS = {text: number for number, text in enumerate(WANTED)}
ANNOUNCED = "Let me call {name} for you."


def said(text: str) -> Json:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def hermes(call: Json) -> str:
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def asked(body: Json) -> tuple[int, Json, str]:
    """The number of the question, the call that answers it, and what was said behind it."""
    texts = [message["content"] for message in body["messages"]]
    at = next(at for at, text in enumerate(texts) if text in WANTED)
    return NUMBERS[texts[at]], WANTED[texts[at]], "\n".join(texts[at + 1 :])


def faulty(path: str, body: Json) -> Json:
    """Of six questions: one is answered rightly; one in a form that was not asked for; one with a number that is a
    string; one in a form of its own, until it is told; one with nothing, unless it is held; one is announced."""
    number, call, after = asked(body)
    kind = number % 6
    if "grammar" in body and kind != 5:
        return said(hermes(call))
    if kind == 1:
        return said(f"```json\n{json.dumps(call)}\n```")
    if kind == 2:
        loose = {key: str(value) if type(value) in (int, float) else value for key, value in call["arguments"].items()}
        return said(hermes({"name": call["name"], "arguments": loose}))
    if kind == 3 and "[guard: near_call]" not in after:
        return said(f"Action: {call['name']}\nAction Input: {json.dumps(call['arguments'])}")
    if kind == 4 or (kind == 5 and "[guard: announced]" not in after):
        return said("I cannot." if kind == 4 else ANNOUNCED.format(name=call["name"]))
    return said(hermes(call))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, list[Json]]]:
    with scripted(faulty, LLAMA) as found:
        yield found


def evaluated(url: str, out: Path, *more: str) -> EvalTally:
    done = run(
        "eval",
        "questions",
        "--base-url",
        url,
        "-m",
        "scripted",
        "--limit",
        "60",
        "-o",
        str(out),
        "-q",
        "--mode",
        "text",
        *more,
    )
    assert done.exit_code == 0, done.output
    return EvalTally(past(out).rows)


def past(out: Path) -> PastRun:
    found = read_evaluation(out)
    assert found is not None
    return found


def test_each_part_adds_what_it_is_there_for(server: tuple[str, list[Json]], tmp_path: Path) -> None:
    tally = evaluated(server[0], tmp_path / "rows.jsonl")
    right = {name: tally.share(name, "right_arguments").part for name in tally.configurations}
    assert list(right) == list(CONFIGURATIONS)
    assert (
        right["bare"] < right["+parse"] < right["+repair"] < right["+nudge"] < right["+grammar"] < right["full"] == 60
    )
    assert all(not step.lost for step in tally.steps())
