"""Tools from Python functions and classes: the schema from the signature, descriptions from the docstring, typed
arguments.

    bound = get_binding(tool.run)
    typed = bound.typed({"when": "2026-05-17"})    # {"when": date(2026, 5, 17)}, or problems
    bound.call(typed)                              # calls the function with exactly these values
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
from rightcall.schema.limits import Refused
from rightcall.strict_json import pointer_step
from rightcall.tools.argument_reader import ArgumentReader, UnresolvedAnnotation, class_reader, function_reader
from rightcall.tools.provider_forms import check_tool
from rightcall.tools.signatures import (
    annotated_function,
    function_docstring,
    function_label,
    function_name,
    is_in_class_body,
    read_docstring,
    resolve_parameters,
)
from rightcall.tools.value_types import ConversionError, ValueFault, copy_json
from rightcall.types import Json, Problem, Tool

_BINDING = "__rightcall_binding__"

Typed = dict[str, Any]


class Binding(msgspec.Struct, frozen=True, eq=False):
    """How a tool's arguments are converted and its function is called. `validate` converts JSON to typed arguments or
    raises `ConversionError` (None: JSON is passed unchanged); `call` runs the function with them; `function` is the
    user's function."""

    validate: Callable[[Json], Typed] | None
    call: Callable[[Typed], Any]
    function: Callable[..., Any]
    is_async: bool
    no_parameters: bool = False

    def typed(self, arguments: Json) -> Typed | tuple[Problem, ...]:
        """Return the JSON arguments converted to the function's types, or the problems, at least one. Without
        `validate` they are a deep copy. A user's validator that raises anything but a ValueError or an AssertionError
        is not caught."""
        if self.no_parameters and not arguments:
            return {}
        if self.validate is None:
            return {key: copy_json(value) for key, value in arguments.items()}
        try:
            return self.validate(arguments)
        except ConversionError as misfit:
            return conversion_problems(misfit)


class Fields(dict[str, Any]):
    """The fields of a class tool as a dict, together with the `instance` that was made from the arguments."""

    instance: Any = None


def is_async(function: Any) -> bool:
    """Return whether a function is an `async def`, whose call only returns a coroutine; also inside a partial, or as
    the `__call__` of an object. False for an async generator."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & inspect.CO_COROUTINE)


def attach_binding(run: Callable[..., Any], bound: Binding) -> Callable[..., Any]:
    """Store the binding as an attribute of the function `run`, which is changed, and return the function."""
    setattr(run, _BINDING, bound)
    return run


def get_binding(run: Callable[..., Any] | None) -> Binding | None:
    """Return the binding of a `Tool.run`; None for None, and for a callable that takes JSON unchanged."""
    return getattr(run, _BINDING, None)


def conversion_problems(misfit: ConversionError) -> tuple[Problem, ...]:
    """Return the problems of a failed conversion of arguments, one per fault, worded for the model; they block and have
    no call index."""
    return tuple([_fault_problem(fault) for fault in misfit.faults])


def _fault_problem(fault: ValueFault) -> Problem:
    """Return one fault of a conversion as a blocking problem for the model, with the JSON pointer of its place and
    without a call index."""
    steps = [str(each) for each in fault.steps]
    path = "".join(map(pointer_step, steps))
    where = ".".join(steps)[:200] or "the arguments"
    return Problem(fault.code, f"{where}: {fault.message}; send another value", path)


F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = "__rightcall_options__"
_TOOL = "__rightcall_tool__"


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `tool(...)`. None means: derive it from the function."""

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
    """Mark a function or a class as a tool and return it unchanged. A `Toolset` uses these options when it gets it.

    - `function`: omitted in `@tool(...)`. Its signature gives the schema, its docstring the descriptions.
    - `name`, `description`: override those of the function.
    - `aliases`: other names of arguments, each with the argument it stands for.
    - `read_only`: a call changes nothing, so its name may be repaired by guessing, and it may run in parallel.
    - `compact`: a prompt may show the tool in one line.
    - `output_schema`: the JSON Schema of the result; results are not checked against it.

    Raises `BadTools` for a function that cannot be a tool. A method, or a function with an annotation that is defined
    later, is checked when a `Toolset` gets it.
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
        return lambda function: _mark_tool(function, options)
    return _mark_tool(function, options)


def _mark_tool(function: F, options: ToolOptions) -> F:
    """Attach the options to a function or class and return it; build and check its tool at once, unless it is in a
    class body or its annotations cannot be resolved yet. Raises `Refused` if it takes no attributes or cannot be a
    tool."""
    inner = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    try:
        setattr(inner, _OPTIONS, options)
    except AttributeError:
        cure = "mark the function it comes from, or wrap it in a function of your own"
        raise Refused(
            "", f"{function_label(function)} takes no attributes, so it cannot be marked", cure, tool=options.name or ""
        ) from None
    if inner is function and not is_in_class_body(function):
        with contextlib.suppress(UnresolvedAnnotation):
            built = callable_tool(function)
            check_tool(built)
            setattr(function, _TOOL, built)
    return function


def callable_tool(function: Callable[..., Any]) -> Tool:
    """Return the tool of a function or a class: the one that `tool` built, or a new one, which is not checked. Raises
    `Refused`, a `BadTools`, with the tool's name, if it cannot be one."""
    own = getattr(function, "__dict__", {})
    if isinstance(own.get(_TOOL), Tool):
        return typing.cast(Tool, own[_TOOL])
    given = own.get(_OPTIONS) if isinstance(function, type) else getattr(function, _OPTIONS, None)
    options = given if isinstance(given, ToolOptions) else ToolOptions()
    name = options.name or function_name(function)
    try:
        return (
            class_tool(function, name, options)
            if isinstance(function, type)
            else _function_tool(function, name, options)
        )
    except Refused as refused:
        raise type(refused)(refused.path, refused.cause, refused.cure, tool=refused.tool or name) from refused.__cause__


def is_marked(value: object) -> bool:
    """Return True if `tool` marked this value itself, and not a base class."""
    return _OPTIONS in getattr(value, "__dict__", {})


def is_class_tool(value: object) -> bool:
    """Return True for a class that can be a tool: a pydantic model, a dataclass or a TypedDict."""
    return isinstance(value, type) and (
        hasattr(value, "model_json_schema") or dataclasses.is_dataclass(value) or typing.is_typeddict(value)
    )


def class_tool(cls: type[Any], name: str, options: ToolOptions) -> Tool:
    """Return the tool of a class whose fields are the arguments; running the tool creates an instance. Raises `Refused`
    for a class that is no pydantic model, dataclass or TypedDict, or has a field without a JSON Schema."""
    if not is_class_tool(cls):
        cure = "pass a function, a pydantic model, a dataclass or a TypedDict"
        raise Refused("", f"the class {function_label(cls)} has no fields that a model could fill in", cure)
    reader = class_reader(cls, function_label(cls))
    schema = dict(reader.schema)
    docs = read_docstring(schema.pop("description", ""))
    _add_descriptions(schema, docs.parameters)

    def run(**arguments: Any) -> Any:
        return _accept_arguments(reader, arguments)

    def validate(arguments: Json) -> Typed:
        """Return the fields of the instance that the arguments make, with the instance. Raises `ConversionError`."""
        instance = reader.read(arguments)
        is_dict = isinstance(instance, dict)
        fields = Fields(instance if is_dict else {key: getattr(instance, key) for key in _field_names(cls)})
        fields.instance = instance
        return fields

    bound = Binding(validate, lambda fields: typing.cast(Fields, fields).instance, cls, is_async=False)
    return _build_tool(name, docs.description, schema, attach_binding(run, bound), options)


def _field_names(cls: Any) -> list[str]:
    """Return the field names of a dataclass or a pydantic model, in order."""
    return (
        [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else list(cls.model_fields)
    )


def _function_tool(function: Callable[..., Any], name: str, options: ToolOptions) -> Tool:
    """Return the tool of a function: its schema from the signature, its descriptions from the docstring. Raises
    `Refused` for a signature or an annotation that cannot be used."""
    parameters = resolve_parameters(function)
    docs = read_docstring(function_docstring(function))
    reader = function_reader(parameters, function_label(function))
    _add_descriptions(reader.schema, docs.parameters)
    return _build_tool(name, docs.description, reader.schema, _make_runner(function, parameters, reader), options)


def _build_tool(name: str, description: str, schema: Json, run: Callable[..., Any], options: ToolOptions) -> Tool:
    """Return a `Tool` with these parts; `schema` is that of its parameters. A description in `options` replaces the
    given one; all other fields come from the options."""
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


def _add_descriptions(schema: Json, texts: Mapping[str, str]) -> None:
    """Add `texts`, the docstring's descriptions by parameter, to the properties of the schema that have none. The
    schema is changed."""
    for key, inner in schema.get("properties", {}).items():
        if key in texts and isinstance(inner, dict):
            inner.setdefault("description", texts[key])


def _make_runner(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], reader: ArgumentReader
) -> Any:
    """Return the `Tool.run` of a function, with its binding attached: it converts keyword arguments and calls the
    function, asynchronously if it is async. It raises `MalformedArguments` for arguments that do not fit."""
    positional = [key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]

    def call_by_name(typed: Typed) -> Any:
        return function(**typed)

    def call_by_place(typed: Typed) -> Any:
        named = {key: value for key, value in typed.items() if key not in positional}
        return function(*[typed[key] for key in positional], **named)

    call = call_by_place if positional else call_by_name

    def run(**arguments: Any) -> Any:
        return call(_accept_arguments(reader, arguments))

    async def run_async(**arguments: Any) -> Any:
        return await run(**arguments)

    waits = inspect.iscoroutinefunction(annotated_function(function))
    bound = Binding(reader.read, call, function, is_async(function), not parameters)
    return attach_binding(run_async if waits else run, bound)


def _accept_arguments(reader: ArgumentReader, arguments: Json) -> Any:
    """Return the arguments of a Python caller as the reader converts them. Raises `MalformedArguments`, which has the
    problems, if they do not fit."""
    try:
        return reader.accept(arguments)
    except ConversionError as misfit:
        found = conversion_problems(misfit)
    error = MalformedArguments("; ".join([problem.message for problem in found]))
    error.problems = found
    raise error
