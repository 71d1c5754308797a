"""Questions that a tool answers, generated from templates and values, as in `rightcall eval questions`.

Each question offers the expected tool and up to two others, and shows one call of each offered tool: a model with 135
million weights makes no calls without examples. The example never is the question itself. The first forty questions use
every tool twice; later ones only add values.
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

_SYSTEM_PROMPT = "Answer every request with one call of one of these tools:\n{tools}\n"
_SYSTEM_PROMPT += "A call is a JSON object with name and arguments in tool_call tags."


class Case(msgspec.Struct, frozen=True):
    """One question: the messages, the offered tools, and the expected call."""

    name: str
    tools: Toolset
    messages: tuple[dict[str, str], ...]
    want: Call


def cases(most: int | None = None) -> list[Case]:
    """Return the first `most` questions, or all of them."""
    return list(_cases())[:most]


def _cases() -> Iterator[Case]:
    number = 0
    for row in range(max(len(prompt["values"]) for prompt in PROMPTS)):
        for phrasing in range(max(len(prompt["say"]) for prompt in PROMPTS)):
            for expected, prompt in enumerate(PROMPTS):
                if row < len(prompt["values"]) and phrasing < len(prompt["say"]):
                    yield _case(number, expected, row, phrasing)
                    number += 1


def _case(number: int, expected: int, row: int, phrasing: int) -> Case:
    offered = [(expected + step) % len(PROMPTS) for step in range(1 + number % 3)]
    rotated = (
        offered[number % len(offered) :] + offered[: number % len(offered)]
    )  # the expected tool is not always first
    tools = [TOOLS[each] for each in rotated]
    tool_lines = "\n".join([json.dumps(tool["function"], ensure_ascii=False) for tool in tools])
    messages = [{"role": "system", "content": _SYSTEM_PROMPT.format(tools=tool_lines)}]
    for each in rotated:
        messages += _example(PROMPTS[each], row + 1, phrasing + 1)
    prompt = PROMPTS[expected]
    messages.append({"role": "user", "content": _question_text(prompt, row, phrasing)})
    return Case(f"{prompt['tool']}/{row}/{phrasing}", Toolset(tools), tuple(messages), _call(prompt, row))


def _example(prompt: dict[str, Any], row: int, phrasing: int) -> list[dict[str, str]]:
    row, phrasing = row % len(prompt["values"]), phrasing % len(prompt["say"])
    answer = render([_call(prompt, row)], format="hermes")
    return [
        {"role": "user", "content": _question_text(prompt, row, phrasing)},
        {"role": "assistant", "content": answer},
    ]


def _call(prompt: dict[str, Any], row: int) -> Call:
    arguments = prompt["values"][row]
    return Call(prompt["tool"], arguments, json.dumps(arguments, ensure_ascii=False))


def _question_text(prompt: dict[str, Any], row: int, phrasing: int) -> str:
    return str(
        prompt["say"][phrasing].format(**{key: _value_text(value) for key, value in prompt["values"][row].items()})
    )


def _value_text(value: Any) -> str:
    """Return a value as a person would write it."""
    if isinstance(value, list):
        return " and ".join([", ".join(value[:-1]), value[-1]] if len(value) > 1 else value)
    return " ".join([_value_text(each) for each in value.values()]) if isinstance(value, dict) else str(value)
