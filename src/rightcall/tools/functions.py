"""Tools from Python functions and classes: schema from the signature, descriptions from the docstring, typed arguments.

bound = binding(tool.run)
typed = bound.typed({"when": "2026-05-17"})    # {"when": date(2026, 5, 17)}, or problems
bound.call(typed)                              # runs the function with just these values
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import msgspec

from rightcall.errors import MalformedArguments
from rightcall.json_pointer import step
from rightcall.schema.limits import Refused
from rightcall.tools.intake import Intake, Later, class_intake, function_intake
from rightcall.tools.provider_forms import judge
from rightcall.tools.signatures import (
    annotated_function,
    docstring_of,
    is_in_class_body,
    label_of,
    name_of,
    parameters_of,
    read_docstring,
)
from rightcall.tools.value_types import Misfit, ValueFault, copied
from rightcall.types import Json, Problem, Tool

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


F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = "__rightcall_options__"
_TOOL = "__rightcall_tool__"


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `tool(...)` was told. None means: see the function."""

    name: str | None = None
    description: str | None = None
    aliases: dict[str, str] = {}
    read_only: bool = False
    compact: bool = False
    output_schema: Json | None = None


@overload
def tool(
    function: F,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    aliases: Mapping[str, str] | None = None,
    read_only: bool = False,
    compact: bool = False,
    output_schema: Mapping[str, Any] | None = None,
) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    aliases: Mapping[str, str] | None = None,
    read_only: bool = False,
    compact: bool = False,
    output_schema: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    aliases: Mapping[str, str] | None = None,
    read_only: bool = False,
    compact: bool = False,
    output_schema: Mapping[str, Any] | None = None,
) -> F | Callable[[F], F]:
    """Marks a function or a class as a tool. It stays what it was; a `Toolset` it is passed to goes by these options.

    - `function`: left out in `@tool(...)`. Its signature gives the schema, its docstring the descriptions.
    - `name`, `description`: instead of the function's own.
    - `aliases`: other names of arguments, each with the name it stands for.
    - `read_only`: a call changes nothing, so it may be guessed at, and run beside others.
    - `compact`: a prompt may show the tool in one line.
    - `output_schema`: the JSON Schema of what it gives; nothing is checked against it.

    Raises `BadTools` for a function that cannot be a tool, unless it is a method or its annotations name something that
    is defined later: those are judged when a `Toolset` gets them.
    """
    options = ToolOptions(
        name=name,
        description=description,
        aliases=dict(aliases or {}),
        read_only=read_only,
        compact=compact,
        output_schema=None if output_schema is None else dict(output_schema),
    )
    if function is None:
        return lambda function: _mark(function, options)
    return _mark(function, options)


def _mark(function: F, options: ToolOptions) -> F:
    inner = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    try:
        setattr(inner, _OPTIONS, options)
    except AttributeError:
        cure = "mark the function it comes from, or wrap it in a function of your own"
        raise Refused("", f"{label_of(function)} cannot be marked", cure, tool=options.name or "") from None
    if inner is function and not is_in_class_body(function):
        with contextlib.suppress(Later):
            made = callable_tool(function)
            judge(made)
            setattr(function, _TOOL, made)
    return function


def callable_tool(function: Callable[..., Any]) -> Tool:
    """The tool that a function or a class is. Raises `BadTools`."""
    own = getattr(function, "__dict__", {})
    if isinstance(own.get(_TOOL), Tool):
        return typing.cast(Tool, own[_TOOL])
    given = own.get(_OPTIONS) if isinstance(function, type) else getattr(function, _OPTIONS, None)
    options = given if isinstance(given, ToolOptions) else ToolOptions()
    name = options.name or name_of(function)
    try:
        return class_tool(function, name, options) if isinstance(function, type) else _tool(function, name, options)
    except Refused as refused:
        raise type(refused)(refused.path, refused.cause, refused.cure, tool=refused.tool or name) from refused.__cause__


def is_marked(value: object) -> bool:
    """Was it marked with `tool`?"""
    return _OPTIONS in getattr(value, "__dict__", {})


def is_class_tool(value: object) -> bool:
    return isinstance(value, type) and (
        hasattr(value, "model_json_schema") or dataclasses.is_dataclass(value) or typing.is_typeddict(value)
    )


def class_tool(cls: type[Any], name: str, options: ToolOptions) -> Tool:
    """A class whose fields are the arguments; running the tool makes an instance."""
    if not is_class_tool(cls):
        cure = "pass a function, a pydantic model, a dataclass or a TypedDict"
        raise Refused("", f"the class {label_of(cls)} has no fields that a model could fill in", cure)
    intake = class_intake(cls, label_of(cls))
    schema = dict(intake.schema)
    docs = read_docstring(schema.pop("description", ""))
    _describe(schema, docs.parameters)

    def run(**arguments: Any) -> Any:
        return _accepted(intake, arguments)

    def validate(arguments: Json) -> Typed:
        made = intake.read(arguments)
        fields = Fields(made if isinstance(made, dict) else {key: getattr(made, key) for key in _fields(cls)})
        fields.made = made
        return fields

    bound = Binding(validate, lambda fields: typing.cast(Fields, fields).made, cls, is_async=False)
    return _made(name, docs.description, schema, attach(run, bound), options)


def _fields(cls: Any) -> list[str]:
    return (
        [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else list(cls.model_fields)
    )


def _tool(function: Callable[..., Any], name: str, options: ToolOptions) -> Tool:
    parameters = parameters_of(function)
    docs = read_docstring(docstring_of(function))
    intake = function_intake(parameters, label_of(function))
    _describe(intake.schema, docs.parameters)
    return _made(name, docs.description, intake.schema, _runner(function, parameters, intake), options)


def _made(name: str, description: str, schema: Json, run: Callable[..., Any], options: ToolOptions) -> Tool:
    return Tool(
        name=name,
        description=description if options.description is None else options.description,
        parameters=schema,
        output_schema=options.output_schema,
        aliases=options.aliases,
        read_only=options.read_only,
        compact=options.compact,
        run=run,
    )


def _describe(schema: Json, texts: Mapping[str, str]) -> None:
    """A description in the schema itself wins over one in the docstring."""
    for key, inner in schema.get("properties", {}).items():
        if key in texts and isinstance(inner, dict):
            inner.setdefault("description", texts[key])


def _runner(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], intake: Intake) -> Any:
    positional = [key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]

    def call_by_name(typed: Typed) -> Any:
        return function(**typed)

    def call_by_place(typed: Typed) -> Any:
        named = {key: value for key, value in typed.items() if key not in positional}
        return function(*[typed[key] for key in positional], **named)

    call = call_by_place if positional else call_by_name

    def run(**arguments: Any) -> Any:
        return call(_accepted(intake, arguments))

    async def run_async(**arguments: Any) -> Any:
        return await run(**arguments)

    waits = inspect.iscoroutinefunction(annotated_function(function))
    bound = Binding(intake.read, call, function, is_async(function), not parameters)
    return attach(run_async if waits else run, bound)


def _accepted(intake: Intake, arguments: Json) -> Any:
    try:
        return intake.accept(arguments)
    except Misfit as misfit:
        found = problems(misfit)
    error = MalformedArguments("; ".join([problem.message for problem in found]))
    error.problems = found
    raise error
