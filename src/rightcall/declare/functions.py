"""Tools from Python functions and classes.

    @tool(read_only=True, aliases={"town": "city"})
    async def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
        '''The weather now.

        Args:
            city: Where.
        '''

A function's signature gives the schema, its docstring the descriptions. `Tool.run` takes the arguments as JSON has them
and passes them on as the types that the function was written for. A class (pydantic model, dataclass, TypedDict) is a
tool whose arguments are its fields.
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

from rightcall.declare.annotations import allows_none, described, object_schema, understood
from rightcall.declare.binding import Binding, Fields, Typed, attach, is_async
from rightcall.declare.docstrings import read_docstring
from rightcall.declare.providers import judge
from rightcall.schema.refusals import Refused
from rightcall.types import Json, Tool

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
        raise Refused("", f"{_label(function)} cannot be marked", cure, tool=options.name or "") from None
    if inner is function and not _in_class_body(function):
        with contextlib.suppress(_Later):
            made = callable_tool(function)
            judge(made)
            setattr(function, _TOOL, made)
    return function


class _Later(Refused):
    """An annotation names something that does not exist, or not yet."""


def callable_tool(function: Callable[..., Any]) -> Tool:
    """The tool that a function or a class is. Raises `BadTools`."""
    own = getattr(function, "__dict__", {})
    if isinstance(own.get(_TOOL), Tool):
        return typing.cast(Tool, own[_TOOL])
    given = own.get(_OPTIONS) if isinstance(function, type) else getattr(function, _OPTIONS, None)
    options = given if isinstance(given, ToolOptions) else ToolOptions()
    name = options.name or _name(function)
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
        raise Refused("", f"the class {_label(cls)} has no fields that a model could fill in", cure)
    adapter = _adapter(understood(cls), {}, cls)
    schema = _schema(adapter, {}, cls)
    docs = read_docstring(schema.pop("description", ""))
    _describe(schema, docs.parameters)

    def run(**arguments: Any) -> Any:
        return adapter.validate_python(arguments)

    def validate(text: str) -> Typed:
        made = adapter.validate_json(text, strict=True)
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
    parameters = _parameters(function)
    docs = read_docstring(_docstring(function))
    hints = {key: parameter.annotation for key, parameter in parameters.items()}
    adapter = _adapter(_collecting(parameters), hints, function)
    schema = _schema(adapter, hints, function)
    notes = {key: described(hint) for key, hint in hints.items()}
    _describe(schema, {**docs.parameters, **{key: text for key, text in notes.items() if text}})
    return _made(name, docs.description, schema, _runner(function, parameters, adapter), options)


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


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters a model may fill in, with their types resolved."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Refused("", f"{_label(function)} has no signature", "wrap it in a function that has one") from error
    fixed = _fixed(function)
    shown = {key: parameter for key, parameter in signature.parameters.items() if key not in fixed}
    hints = _hints(function)
    for at, (key, parameter) in enumerate(shown.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            cause = f"{_label(function)} takes *{key}, and a model names its arguments"
            raise Refused("", cause, f"declare a parameter that is a list, {key}: list[...]")
        if at == 0 and key in ("self", "cls") and _in_class_body(function):
            raise Refused(
                "", f"{_label(function)} is a method without its object", "pass it from an instance: obj.method"
            )
    made: dict[Any, Any] = {}
    return {key: _typed(parameter, understood(hints.get(key, Any), made)) for key, parameter in shown.items()}


def _typed(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    if parameter.default is None and not allows_none(hint):
        hint = hint | None
    return parameter.replace(annotation=hint)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    inner = _inner(function)
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except NameError as error:
        cause = f"an annotation of {_label(function)} cannot be resolved: {error}"
        raise _Later("", cause, "define or import the name at module level") from error
    except TypeError as error:
        raise Refused("", f"an annotation of {_label(function)} is no type: {error}", "annotate with a type") from error


def _inner(function: Callable[..., Any]) -> Any:
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


def _collecting(parameters: Mapping[str, inspect.Parameter]) -> Callable[..., Any]:
    """Takes what the function takes, every parameter by name, as a model calls; gives the arguments back, typed."""

    def collect(**arguments: Any) -> Typed:
        return arguments

    named = [
        parameter if parameter.kind is parameter.VAR_KEYWORD else parameter.replace(kind=parameter.KEYWORD_ONLY)
        for parameter in parameters.values()
    ]
    collect.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    collect.__annotations__ = {key: parameter.annotation for key, parameter in parameters.items()}
    return collect


def _runner(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], adapter: Any) -> Any:
    from pydantic_core import ArgsKwargs

    inner = adapter.validator
    positional = [key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]

    def call_by_name(typed: Typed) -> Any:
        return function(**typed)

    def call_by_place(typed: Typed) -> Any:
        named = {key: value for key, value in typed.items() if key not in positional}
        return function(*[typed[key] for key in positional], **named)

    call = call_by_place if positional else call_by_name

    def run(**arguments: Any) -> Any:
        return call(inner.validate_python(ArgsKwargs((), arguments)))

    async def run_async(**arguments: Any) -> Any:
        return await run(**arguments)

    waits = inspect.iscoroutinefunction(_inner(function))
    validate = functools.partial(inner.validate_json, strict=True)
    return attach(run_async if waits else run, Binding(validate, call, function, is_async(function), not parameters))


def _adapter(target: Any, hints: Mapping[str, Any], named: object) -> Any:
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(target)
    except (PydanticUserError, NameError) as error:
        raise _unfit(hints, named, error) from error


def _schema(adapter: Any, hints: Mapping[str, Any], named: object) -> Json:
    from pydantic import PydanticUserError

    try:
        return object_schema(adapter, getattr(named, "__name__", ""))
    except PydanticUserError as error:
        raise _unfit(hints, named, error) from error


def _unfit(hints: Mapping[str, Any], named: object, error: Exception) -> Refused:
    """Names the parameter whose type has no JSON Schema."""
    from pydantic import PydanticUserError, TypeAdapter

    for key, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema()
        except (PydanticUserError, NameError):
            cause = f"parameter {key!r} of {_label(named)} has a type without a JSON Schema, {_type_name(hint)}"
            return Refused("", cause, "use a type JSON can say, or fix the argument with functools.partial")
    return Refused("", f"{_label(named)} has no JSON Schema: {str(error).splitlines()[0]}", "use types JSON can say")


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise Refused("", "a lambda has no name", "give it one: tool(function, name=...)")
    return str(name)


def _docstring(function: Any) -> str | None:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function if inspect.isroutine(function) else type(function).__call__) or inspect.getdoc(
        function
    )


def _label(function: Any) -> str:
    function = _inner(function) if isinstance(function, functools.partial) else function
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def _in_class_body(function: Any) -> bool:
    """Was it defined in a class and not bound to an object since?"""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    return inspect.isfunction(function) and bool(outer) and not outer.endswith("<locals>")
