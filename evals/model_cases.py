"""Questions that a tool answers, made from templates and values, as `rightcall eval questions` has them.

Each question offers the tool that it wants and up to two others, and shows one call of each offered tool: a model of
135 million weights makes no calls without. The example is never the question itself. The first forty questions have
every tool twice; more only add values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import rightcall
from rightcall import Call, Toolset, render

HERE = Path(rightcall.__file__).parent / "evaluation" / "own_questions"
TOOLS: list[dict[str, Any]] = json.loads((HERE / "tools.json").read_text("utf-8"))
PROMPTS: list[dict[str, Any]] = json.loads((HERE / "prompts.json").read_text("utf-8"))

_TOLD = "Answer every request with one call of one of these tools:\n{tools}\n"
_TOLD += "A call is a JSON object with name and arguments in tool_call tags."


class Case(msgspec.Struct, frozen=True):
    """One question: what is sent, what may be called, and the call that would answer it."""

    name: str
    tools: Toolset
    messages: tuple[dict[str, str], ...]
    want: Call


def cases(most: int | None = None) -> list[Case]:
    """The first so many questions, all of them unless said."""
    return list(_cases())[:most]


def _cases() -> Iterator[Case]:
    number = 0
    for row in range(max(len(prompt["values"]) for prompt in PROMPTS)):
        for way in range(max(len(prompt["say"]) for prompt in PROMPTS)):
            for wanted, prompt in enumerate(PROMPTS):
                if row < len(prompt["values"]) and way < len(prompt["say"]):
                    yield _case(number, wanted, row, way)
                    number += 1


def _case(number: int, wanted: int, row: int, way: int) -> Case:
    offered = [(wanted + step) % len(PROMPTS) for step in range(1 + number % 3)]
    turned = offered[number % len(offered) :] + offered[: number % len(offered)]  # the wanted one is not always first
    tools = [TOOLS[each] for each in turned]
    listed = "\n".join([json.dumps(tool["function"], ensure_ascii=False) for tool in tools])
    messages = [{"role": "system", "content": _TOLD.format(tools=listed)}]
    for each in turned:
        messages += _example(PROMPTS[each], row + 1, way + 1)
    prompt = PROMPTS[wanted]
    messages.append({"role": "user", "content": _said(prompt, row, way)})
    return Case(f"{prompt['tool']}/{row}/{way}", Toolset(tools), tuple(messages), _call(prompt, row))


def _example(prompt: dict[str, Any], row: int, way: int) -> list[dict[str, str]]:
    row, way = row % len(prompt["values"]), way % len(prompt["say"])
    answer = render([_call(prompt, row)], format="hermes")
    return [{"role": "user", "content": _said(prompt, row, way)}, {"role": "assistant", "content": answer}]


def _call(prompt: dict[str, Any], row: int) -> Call:
    arguments = prompt["values"][row]
    return Call(prompt["tool"], arguments, json.dumps(arguments, ensure_ascii=False))


def _said(prompt: dict[str, Any], row: int, way: int) -> str:
    return str(prompt["say"][way].format(**{key: _words(value) for key, value in prompt["values"][row].items()}))


def _words(value: Any) -> str:
    """A value as someone would say it."""
    if isinstance(value, list):
        return " and ".join([", ".join(value[:-1]), value[-1]] if len(value) > 1 else value)
    return " ".join([_words(each) for each in value.values()]) if isinstance(value, dict) else str(value)
