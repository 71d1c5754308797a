"""Classify the outcome of a damaged call: right, refused, or run with other arguments.

`other`: the call runs with a repair, and differs from the truth. This must not happen.
`silent`: the same without a repair, for a text that is not valid. This must not happen either.
`valid`: the damaged text is well formed and has another meaning, such as a number without one of its digits.
"""

from __future__ import annotations

import ast
import json
import warnings
from typing import Literal

import msgspec
from same import equal

from damaged.toolsets import Truth
from damaged.wires import Wire
from rightcall import Call, check, parse, repair
from rightcall.types import Repair

_VALUES = {"null_dropped", "scalar_type"}
_PYTHON = {"python_literal", "single_quotes"}
Outcome = Literal["right", "refused", "other", "silent", "valid"]


class Verdict(msgspec.Struct, frozen=True):
    """The outcome. `repairs` are those of the calls that run."""

    outcome: Outcome
    repairs: tuple[Repair, ...] = ()
    calls: tuple[Call, ...] = ()


def judge_call(text: str, wire: Wire, truth: Truth, policy: str = "safe") -> Verdict:
    calls = runnable_calls(text, wire, truth, policy)
    repairs = tuple([each for call in calls for each in call.repairs])
    if not calls:
        return Verdict("refused")
    if all(call.name == truth.name and equal(call.arguments, truth.arguments) for call in calls):
        return Verdict("right", repairs, calls)
    if repairs and {each.rule for each in repairs} <= _PYTHON and _is_literal(_body(text, wire)):
        return Verdict("valid", (), calls)  # the whole text is well-formed Python
    if repairs and {each.rule for each in repairs} <= _VALUES and is_valid(text, wire):
        return Verdict("valid", (), calls)  # every member is kept; only a type was repaired (decision 038)
    if repairs:
        return Verdict("other", repairs, calls)
    return Verdict("valid" if is_valid(text, wire) else "silent", (), calls)


def runnable_calls(text: str, wire: Wire, truth: Truth, policy: str) -> tuple[Call, ...]:
    """Return the calls that would run."""
    if wire.format:
        return parse(text, tools=truth.tools, format=wire.format, repair=policy).calls
    call = repair(Call(truth.name, {}, text), truth.tools, policy=policy)
    return (call,) if call.ok and not [each for each in check(call, truth.tools) if each.blocking] else ()


def is_valid(text: str, wire: Wire) -> bool:
    """Return whether the text is well formed, so that no parser can detect the damage. Checks JSON and Python only."""
    body = _body(text, wire)
    if wire.notation == "python":
        return _is_python(body)
    if wire.notation != "json":
        return True
    head, _, tail = wire.body("\1", "\0").partition("\0")
    if not head.startswith("{"):
        start = body.find("{")
        body = body[start : len(body) - len(tail)] if start >= 0 else body
        if not tail and wire.format:
            return _begins_with_json(body)  # only their bracket closes the arguments; trailing text is content
    return is_json(body)


def _begins_with_json(text: str) -> bool:
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        return False
    return text[end : end + 1] not in ("}", "]")


def _body(text: str, wire: Wire) -> str:
    opens, _, closes = wire.block("\0").partition("\0")
    return text.removeprefix(opens).removesuffix(closes) if closes else text.removeprefix(opens)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text[text.find("{") : text.rfind("}") + 1])
    except (SyntaxError, ValueError):
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python only warns about an unknown escape
            ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
