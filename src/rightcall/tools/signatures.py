"""What Python says of a function: its parameters with their types, its name, its docstring."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from rightcall.schema.limits import Refused
from rightcall.tools.annotations import allows_none
from rightcall.tools.hints.intake import unresolved


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters a model may fill in, with their types resolved."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Refused("", f"{label_of(function)} has no signature", "wrap it in a function that has one") from error
    fixed = _fixed(function)
    shown = {key: parameter for key, parameter in signature.parameters.items() if key not in fixed}
    hints = _hints(function)
    for at, (key, parameter) in enumerate(shown.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            cause = f"{label_of(function)} takes *{key}, and a model names its arguments"
            raise Refused("", cause, f"declare a parameter that is a list, {key}: list[...]")
        if at == 0 and key in ("self", "cls") and is_in_class_body(function):
            raise Refused(
                "", f"{label_of(function)} is a method without its object", "pass it from an instance: obj.method"
            )
    return {key: _typed(parameter, hints.get(key, Any)) for key, parameter in shown.items()}


def _typed(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    if parameter.default is None and not allows_none(hint):
        hint = hint | None
    return parameter.replace(annotation=hint)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(annotated_function(function), include_extras=True)
    except NameError as error:
        raise unresolved(label_of(function), error) from error
    except TypeError as error:
        raise Refused(
            "", f"an annotation of {label_of(function)} is no type: {error}", "annotate with a type"
        ) from error


def annotated_function(function: Callable[..., Any]) -> Any:
    """The function that carries the annotations: behind a partial, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _fixed(function: Callable[..., Any]) -> set[str]:
    """What a partial has filled in already is not the model's to say."""
    found: set[str] = set()
    while isinstance(function, functools.partial):
        found |= function.keywords.keys()
        function = function.func
    return found


def name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise Refused("", "a lambda has no name", "give it one: tool(function, name=...)")
    return str(name)


def docstring_of(function: Any) -> str | None:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function if inspect.isroutine(function) else type(function).__call__) or inspect.getdoc(
        function
    )


def label_of(function: Any) -> str:
    function = annotated_function(function) if isinstance(function, functools.partial) else function
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def is_in_class_body(function: Any) -> bool:
    """Was it defined in a class and not bound to an object since?"""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    return inspect.isfunction(function) and bool(outer) and not outer.endswith("<locals>")
