"""240 questions that one call answers, made from templates and values: `prompts.json` times `tools.json`.

Each offers the tool that it wants and up to two others. The first forty have every tool twice; more only add values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rightcall.evaluation.eval_case import EvalCase, exactly
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json

SUITE = "questions"
_FOLDER = Path(__file__).with_name("own_questions")


@cache
def _prompts() -> list[Json]:
    found: list[Json] = json.loads((_FOLDER / "prompts.json").read_text("utf-8"))
    return found


@cache
def _tools() -> list[Json]:
    found: list[Json] = json.loads((_FOLDER / "tools.json").read_text("utf-8"))
    return found


def question_cases(examples: int = 0) -> Iterator[EvalCase]:
    """The questions in their order. Of as many of the offered tools as `examples` says, another question is shown
    first, with the call that answers it."""
    number = 0
    for row in range(max(len(prompt["values"]) for prompt in _prompts())):
        for way in range(max(len(prompt["say"]) for prompt in _prompts())):
            for wanted, prompt in enumerate(_prompts()):
                if row < len(prompt["values"]) and way < len(prompt["say"]):
                    yield _case(number, wanted, row, way, examples)
                    number += 1


def _case(number: int, wanted: int, row: int, way: int, examples: int) -> EvalCase:
    offered = [(wanted + step) % len(_prompts()) for step in range(1 + number % 3)]
    turned = offered[number % len(offered) :] + offered[: number % len(offered)]  # the wanted one is not always first
    messages = [message for each in turned[:examples] for message in _example(_prompts()[each], row + 1, way + 1)]
    prompt = _prompts()[wanted]
    call = Call(prompt["tool"], prompt["values"][row])
    return EvalCase(
        suite=SUITE,
        id=f"{prompt['tool']}/{row}/{way}",
        category=prompt["tool"],
        tools=Toolset([_tools()[each] for each in turned]),
        messages=(*messages, {"role": "user", "content": _said(prompt, row, way)}),
        wanted=[{"name": call.name, "arguments": call.arguments}],
        judge=exactly([call]),
    )


def _example(prompt: Json, row: int, way: int) -> list[Json]:
    row, way = row % len(prompt["values"]), way % len(prompt["say"])
    made = {"name": prompt["tool"], "arguments": json.dumps(prompt["values"][row], ensure_ascii=False)}
    id = f"example_{prompt['tool']}"
    return [
        {"role": "user", "content": _said(prompt, row, way)},
        {"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": made}]},
        {"role": "tool", "tool_call_id": id, "name": prompt["tool"], "content": "ok"},
    ]


def _said(prompt: Json, row: int, way: int) -> str:
    return str(prompt["say"][way].format(**{key: _words(value) for key, value in prompt["values"][row].items()}))


def _words(value: Any) -> str:
    """A value as someone would say it."""
    if isinstance(value, list):
        return " and ".join([", ".join(value[:-1]), value[-1]] if len(value) > 1 else value)
    return " ".join([_words(each) for each in value.values()]) if isinstance(value, dict) else str(value)
