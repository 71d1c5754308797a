"""What stands between the JSON of a call and the Python function that runs: validation, apart from the run itself.

    bound = binding(tool.run)
    typed = bound.typed({"when": "2026-05-17"})    # {"when": date(2026, 5, 17)}, or problems
    bound.call(typed)                              # runs the function with just these values

A date may come as text, because JSON has no dates; a number may not, because JSON has numbers. What `typed` gives can
be looked at before it runs, and nothing is converted after that.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.json_pointer import step
from rightcall.tools.hints.meaning import Misfit, ValueFault, copied
from rightcall.types import Json, Problem

_BINDING = "__rightcall_binding__"

Typed = dict[str, Any]


class Binding(msgspec.Struct, frozen=True, eq=False):
    """`validate` takes JSON and gives the typed arguments, or raises `Misfit` (None: JSON is taken as it is); `call`
    runs with them; `function` is what the user wrote."""

    validate: Callable[[Json], Typed] | None
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
            return {key: copied(value) for key, value in arguments.items()}
        try:
            return self.validate(arguments)
        except Misfit as misfit:
            return problems(misfit)


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


def problems(misfit: Misfit) -> tuple[Problem, ...]:
    """What is wrong with the arguments, in words for the model."""
    return tuple([_problem(fault) for fault in misfit.faults])


def _problem(fault: ValueFault) -> Problem:
    steps = [str(step) for step in fault.steps]
    path = "".join(map(step, steps))
    where = ".".join(steps)[:200] or "the arguments"
    return Problem(fault.code, f"{where}: {fault.said}; send another value", path)
