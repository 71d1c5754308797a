"""What stands between the JSON of a call and the Python function that runs: validation, apart from the run itself.

    bound = binding(tool.run)
    typed = bound.typed({"when": "2026-05-17"})    # {"when": date(2026, 5, 17)}, or problems
    bound.call(typed)                              # runs the function with just these values

Strict JSON mode: a date may come as text, because JSON has no dates; a number may not, because JSON has numbers. What
`typed` gives can be looked at before it runs, and nothing is converted after that.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rightcall.types import Json, Problem

_BINDING = "__rightcall_binding__"
_MOST = 5
_CODES = {"missing": "missing", "missing_argument": "missing", "missing_keyword_only_argument": "missing"}

Typed = dict[str, Any]


class Binding(msgspec.Struct, frozen=True, eq=False):
    """`validate` takes JSON text and gives the typed arguments (None: JSON is taken as it is); `call` runs with them;
    `function` is what the user wrote."""

    validate: Callable[[str], Typed] | None
    call: Callable[[Typed], Any]
    function: Callable[..., Any]
    is_async: bool
    no_parameters: bool = False

    def typed(self, arguments: Json) -> Typed | tuple[Problem, ...]:
        """The arguments as the function's own types, or what is wrong with them. A validator of the user's that fails
        with anything but a ValueError or an AssertionError raises."""
        if self.no_parameters and not arguments:
            return {}
        if self.validate is None:
            return {key: _copied(value) for key, value in arguments.items()}
        return _tried(self.validate, arguments, again=True)


class Fields(dict[str, Any]):
    """The fields of an instance that was made of the arguments, for a tool that is a class."""

    made: Any = None


def is_async(function: Any) -> bool:
    """Is it an `async def`, so that calling it gives a coroutine and nothing else?"""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_COROUTINE)


def attach(run: Callable[..., Any], bound: Binding) -> Callable[..., Any]:
    setattr(run, _BINDING, bound)
    return run


def binding(run: Callable[..., Any] | None) -> Binding | None:
    """How arguments are bound for this `Tool.run`; None for a callable that takes JSON as it is."""
    return getattr(run, _BINDING, None)


def _copied(value: Any) -> Any:
    """What a tool does to its arguments must not change the call they came from."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _tried(validate: Callable[[str], Typed], arguments: Json, *, again: bool) -> Typed | tuple[Problem, ...]:
    try:
        return validate(json.dumps(arguments))
    except ValueError as error:  # pydantic's own is one; it can list what is wrong
        listed = getattr(error, "errors", None)
        if listed is None:
            raise
        found = listed(include_url=False, include_context=False)
    if again and (whole := _with_whole_numbers(arguments, found)) is not None:
        return _tried(validate, whole, again=False)
    return tuple([_problem(each) for each in found[:_MOST]])


def _with_whole_numbers(arguments: Json, found: list[Any]) -> Json | None:
    """JSON Schema calls 2.0 an integer, Python does not: where only that is wrong, the arguments with 2 instead."""
    if not all(_is_whole(each) for each in found):
        return None
    for each in found:
        arguments = _replaced(arguments, each["loc"], int(each["input"]))
    return arguments


def _is_whole(error: Mapping[str, Any]) -> bool:
    given = error["input"]
    return error["type"] == "int_type" and isinstance(given, float) and given.is_integer()


def _replaced(value: Any, steps: tuple[Any, ...], new: int) -> Any:
    """A copy with one value replaced. A step that leads nowhere (a union's label) changes nothing."""
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict) and first in value:
        return {**value, first: _replaced(value[first], rest, new)}
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        return [*value[:first], _replaced(value[first], rest, new), *value[first + 1 :]]
    return value


def _problem(error: Mapping[str, Any]) -> Problem:
    steps = [str(step) for step in error["loc"]]
    path = "".join(["/" + step.replace("~", "~0").replace("/", "~1") for step in steps])
    where = ".".join(steps)[:200] or "the arguments"
    code = _CODES.get(error["type"], "invalid_argument")
    if str(error["type"]).endswith("_type"):
        code = "wrong_type"
    said = str(error["msg"])[:400]
    return Problem(code, f"{where}: {said[:1].lower()}{said[1:]}; send another value", path)
