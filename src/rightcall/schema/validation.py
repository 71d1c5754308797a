"""Do arguments fit a tool's schema, and if not, what is wrong where?

Errors are asked for only where all of them can be made: of arguments that are too many for that, the beginning of the
lists is looked at, and then the first error of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple

from rightcall.schema.compiled import UP, judge_of, plain
from rightcall.schema.tool_limits import MAX_ERRORS, MAX_MENDED
from rightcall.types import Tool

LOOK_AT = 64  # errors
_LONG_LISTS = (500, 50, 5, 1)  # items: of longer lists only the beginning is looked at first


def validator(tool: Tool) -> Any:
    """The tool's schema, compiled."""
    return judge_of(tool).ask


def is_too_much(tool: Tool, arguments: Any) -> bool:
    """Would it take too long to check these arguments? Then they do not fit."""
    return judge_of(tool).is_too_much(arguments)


def fits(tool: Tool, arguments: Any) -> bool:
    judge = judge_of(tool)
    if not judge.is_light and judge.is_too_much(arguments):
        return False
    try:
        if judge.ask.is_valid(arguments):
            return True
    except ValueError:  # a lone surrogate
        return bool(judge.ask.is_valid(plain(arguments)))
    return False


class Look(NamedTuple):
    """Errors, and whether these are all there are."""

    errors: list[Any]
    is_whole: bool


def looks(tool: Tool, arguments: Any) -> Iterator[Look]:
    """What is wrong, first in the beginning of very long lists and then in all: each error costs, and all of them are
    made before the first is given. Nothing where there is too much to look at."""
    judge = judge_of(tool)
    if judge.is_too_much(arguments):
        return
    whole = plain(arguments)
    for items in _LONG_LISTS:
        cut = plain(arguments, items)
        found = faults(tool, cut)
        if found is not None:
            yield Look(found, is_whole=False)
            break
    found = faults(tool, whole, MAX_MENDED)
    if found is not None:
        yield Look(found, is_whole=True)
    elif judge.tells_one:
        yield Look(_first(judge.ask, whole), is_whole=False)


def errors(tool: Tool, arguments: Any, most: int | None = LOOK_AT) -> list[Any]:
    """The first so many errors."""
    return next((look.errors[:most] for look in looks(tool, arguments) if look.errors), [])


def faults(tool: Tool, arguments: Any, most: int = MAX_ERRORS) -> list[Any] | None:
    """Every error of jsonschema-rs. `arguments` is what `plain` made of them; None where there may be too many."""
    judge = judge_of(tool)
    return _listed(judge.ask, arguments) if judge.steps.errors(arguments) <= most else None


def _listed(ask: Any, arguments: Any) -> list[Any]:
    return [fault for error in ask.iter_errors(arguments) for fault in closest(error)]


def _first(ask: Any, arguments: Any) -> list[Any]:
    from jsonschema_rs import ValidationError

    try:
        ask.validate(arguments)
    except ValidationError as error:
        return closest(error)
    return []


def closest(error: Any) -> list[Any]:
    """The errors of the one alternative that was meant, where that can be told; else the error itself.

    What is of another type was not meant, nor was what differs in a constant that tells alternatives apart.
    """
    if error.kind.name not in ("anyOf", "oneOf"):
        return [error]
    size = len(error.instance_path)
    near = [found for found in error.kind.context if found and not any(_other_type(each, size) for each in found)]
    if len(near) > 1:
        near = [found for found in near if not any(_other_tag(each, size + 1) for each in found)]
    return [fault for inner in near[0] for fault in closest(inner)] if len(near) == 1 else [error]


def _other_type(error: Any, size: int) -> bool:
    if len(error.instance_path) != size:
        return False
    return error.kind.name == "type" or type(error.instance) not in map(type, options(error.kind) or [error.instance])


def _other_tag(error: Any, size: int) -> bool:
    return len(error.instance_path) == size and error.kind.name in ("const", "enum")


def options(kind: Any) -> list[Any]:
    """The values that an `enum` or `const` allows."""
    return list(kind.options) if kind.name == "enum" else [kind.expected_value] if kind.name == "const" else []


# -- values that are no text or number to the checker ------------------------------------------------------------------

_STAND_IN = re.compile("[\U0010f800-\U0010ffff]")


def place(error: Any) -> list[Any]:
    """Where in the arguments themselves the error is."""
    return [step if isinstance(step, int) else _STAND_IN.sub(_lone, step) for step in error.instance_path]


def _lone(found: re.Match[str]) -> str:
    return chr(ord(found.group()) - UP)


def writable(text: str) -> str:
    """Lone surrogates, and what stands for them, as escapes: a message can be written as UTF-8."""
    if text.isascii():
        return text
    return _STAND_IN.sub(_lone, text).encode("utf-8", "backslashreplace").decode("utf-8")


def is_finite(value: Any) -> bool:
    """Is every number in it one that JSON can carry?"""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or isfinite(value)
