"""Calls that should not have been made: made already, not asked for, or made where a question was due."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

from rightcall.datasets.mutations.other_values import arguments_of, words_of
from rightcall.datasets.mutations.truth import Negative, Truth, named
from rightcall.providers.openai_chat import assistant_message
from rightcall.providers.sdk_view import dumps
from rightcall.types import Call, Json

_SHORTEST = 2  # characters of a value that can be told from the words around it


def not_needed(truth: Truth, dice: random.Random) -> Negative | None:
    """The same call once more, right behind its result; or a call in place of a good answer that needed none."""
    if truth.is_answer and truth.row.get("scenario_kind") != "clarify":
        return _instead(truth, dice, "not-needed", "tool_not_needed", "the request needs no tool")
    result = truth.row.get("tool_result")
    if not truth.is_call or not isinstance(result, dict) or result.get("status") != "ok":
        return None
    right, content = truth.call, result.get("content")
    said = content if isinstance(content, str) else dumps(content)
    answer = {"role": "tool", "tool_call_id": right.id, "name": right.name, "content": said}
    done = truth.row["workflow_state"].get("completed_steps")
    return Negative(
        named(right, "not-needed"),
        "tool_not_needed",
        f"{right.name} is called a second time",
        f"{right.name} was called with these arguments just before, and gave a result",
        messages=[*truth.messages, assistant_message("", [right]), answer],
        completed=[*(done if isinstance(done, list) else []), right.name],
    )


def ask_back(truth: Truth, dice: random.Random) -> Negative | None:
    """What a required argument was taken from is gone from the request: the model had to ask."""
    if truth.is_answer and truth.row.get("scenario_kind") == "clarify":
        return _instead(truth, dice, "ask-back", "needs_clarification", "the request lacks what the call needs")
    if not truth.is_call:
        return None
    for name, value in _needed(truth, dice):
        messages = [_vaguer(message, value) for message in truth.messages]
        request = _vague(truth.row["user_request"], value)
        if request == truth.row["user_request"] or _is_said(value, [*messages, request]):
            continue
        why = f"nothing in the conversation says what {name} is: {value!r:.60} was made up"
        changed = f"the request no longer says {name}"
        call = named(truth.call, "ask-back")
        return Negative(call, "needs_clarification", changed, why, request=request, messages=messages)
    return None


def _instead(truth: Truth, dice: random.Random, kind: str, label: str, why: str) -> Negative | None:
    tools, words = list(truth.tools), words_of(truth.row["user_request"])
    for tool in dice.sample(tools, len(tools)):
        call = named(Call(tool.name, id="call"), kind, arguments_of(tool.parameters, {}, words))
        if truth.fits(call):
            return Negative(call, label, f"{tool.name} was called instead of an answer", why)
    return None


def _needed(truth: Truth, dice: random.Random) -> Iterator[tuple[str, Any]]:
    required = truth.schema(truth.call.name).get("required")
    given = truth.call.arguments
    names = [name for name in required if name in given] if isinstance(required, list) else []
    for name in dice.sample(names, len(names)):
        value = given[name]
        is_text = isinstance(value, str) and len(value.strip()) >= _SHORTEST
        if is_text or type(value) in (int, float):
            yield name, value


def _pattern(value: Any) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(str(value).strip())}(?!\w)", re.I)


def _vague(text: str, value: Any) -> str:
    return _pattern(value).sub("the one I mean" if isinstance(value, str) else "some", text)


def _vaguer(message: Json, value: Any) -> Json:
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str):
        return message
    return {**message, "content": _vague(content, value)}


def _is_said(value: Any, said: Any) -> bool:
    """Does it stand anywhere in what the model could know?"""
    return str(value).strip().casefold() in dumps(said).casefold()
