"""Argument readers: the JSON Schema of a function's parameters or a class, and the conversion from JSON to its
types."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rightcall.schema.limits import Refused
from rightcall.tools.type_hints import (
    AnnotatedField,
    ResolvedField,
    TypeResolver,
    fields_reader,
    fields_schema,
    fill_defaults,
    typed_dict_fields,
)
from rightcall.tools.value_types import ConversionError, JsonType, NeedsPydantic, UnsupportedType, ValueFault
from rightcall.types import Json

_CURE = "use a type that JSON can represent, or fix the argument with functools.partial"

Parameters = Mapping[str, inspect.Parameter]


class ArgumentReader(NamedTuple):
    """The schema of a tool's arguments and their conversion. `read` converts JSON arguments; `accept` converts
    arguments of a Python caller, which may have the declared types already. Both raise `ConversionError`, and leave the
    given dict unchanged."""

    schema: Json
    read: Callable[[Json], Any]
    accept: Callable[[Json], Any]


class UnresolvedAnnotation(Refused):
    """An annotation names something that is not defined, or not yet."""


def function_reader(parameters: Parameters, label: str) -> ArgumentReader:
    """Return the schema of a function's parameters and the functions that convert its arguments (`read`, `accept`), as
    an `ArgumentReader`; both return the arguments by name, with the defaults of absent ones. Annotations that only
    pydantic knows are left to pydantic. Raises `Refused`, which names the function by `label`, for a type without a
    JSON Schema, and `MissingExtra` if pydantic is needed and missing."""
    try:
        return _build_reader(parameters, label)
    except NeedsPydantic:
        from rightcall.tools.with_pydantic import pydantic_function

        return pydantic_function(parameters, label)


def class_reader(cls: Any, label: str) -> ArgumentReader:
    """Return the schema of a class and the functions that convert an object of arguments (`read`, `accept`), as an
    `ArgumentReader`; both return an instance, or a dict for a TypedDict. Annotations that only pydantic knows are left
    to pydantic. Raises `Refused`, which names the class by `label`, for a type without a JSON Schema, and
    `MissingExtra` if pydantic is needed and missing."""
    meanings = TypeResolver()
    try:
        meaning = meanings.resolve_root(cls)
    except NeedsPydantic:
        from rightcall.tools.with_pydantic import pydantic_class

        return pydantic_class(cls, label)
    except UnsupportedType as unsupported:
        raise _unsupported_parameter(unsupported.place or label, unsupported.hint, unsupported) from None
    except NameError as error:
        raise unresolved_annotation(label, error) from error
    read = _limit_depth(meaning.read)
    return ArgumentReader(_with_definitions(meaning.schema, meanings), read, read)


def unresolved_annotation(label: str, error: NameError) -> UnresolvedAnnotation:
    """Return (not raise) the error for an annotation of `label` that names something undefined."""
    return UnresolvedAnnotation(
        "", f"an annotation of {label} cannot be resolved: {error}", "define or import the name at module level"
    )


def _build_reader(parameters: Parameters, label: str) -> ArgumentReader:
    """Return the reader for a function's parameters, by their annotations. It rejects arguments that are not declared,
    unless `**kwargs` allow them. Raises `Refused`, which names the function by `label`, for a type without a JSON
    Schema, and `NeedsPydantic` for one that only pydantic knows."""
    meanings = TypeResolver()
    entries: list[ResolvedField] = []
    rest: JsonType | None = None
    for name, parameter in parameters.items():
        hint = parameter.annotation
        if parameter.kind is not parameter.VAR_KEYWORD:
            default = parameter.default
            field = AnnotatedField(name, hint, default is parameter.empty, default)
            entries.append(ResolvedField(field, _resolve_hint(meanings, name, hint, label)))
        elif typing.get_origin(hint) is typing.Unpack:
            more = typed_dict_fields(typing.get_args(hint)[0])
            entries += [ResolvedField(field, _resolve_hint(meanings, field.name, field.hint, label)) for field in more]
        else:
            rest = _resolve_hint(meanings, name, hint, label)
    schema = {"additionalProperties": False if rest is None else rest.schema or True, **fields_schema(entries)}
    read = fill_defaults(entries, fields_reader(entries, _reject_argument if rest is None else rest.read))
    read = _limit_depth(read)
    return ArgumentReader(_with_definitions(schema, meanings), read, read)


def _limit_depth(read: Callable[[Json], Any]) -> Callable[[Json], Any]:
    """Return a reader that calls `read` and turns a `RecursionError`, for a value that is nested too deeply, into a
    `ConversionError`. The limit of depth is that of Python."""

    def read_all(arguments: Json) -> Any:
        """Return what `read` returns. Raises `ConversionError` for arguments that are nested too deeply."""
        try:
            return read(arguments)
        except RecursionError:
            raise ConversionError([ValueFault("too_deep", "are nested too deeply")]) from None

    return read_all


def _reject_argument(value: Any) -> Any:
    """Raise a `ConversionError` in any case: the reader of an argument that is not declared."""
    raise ConversionError([ValueFault("unknown_argument", "is no argument of this tool")])


def _resolve_hint(meanings: TypeResolver, name: str, hint: Any, label: str) -> JsonType:
    """Return the JSON type of `hint`, the annotation of the parameter `name`. Raises `Refused`, which names the
    function by `label`, if it has no JSON Schema or cannot be resolved, and `NeedsPydantic` for one that only pydantic
    knows. `meanings`: the resolver, which collects definitions."""
    try:
        return meanings.resolve(hint)
    except UnsupportedType as unsupported:
        raise _unsupported_parameter(f"parameter {name!r} of {label}", hint, unsupported) from None
    except NameError as error:
        raise unresolved_annotation(label, error) from error


def _unsupported_parameter(who: str, hint: Any, unsupported: UnsupportedType) -> Refused:
    """Return (not raise) the error for a type without a JSON Schema, or with the cause that `unsupported` gives. `who`:
    the parameter or class that has it, for the message; `hint`: its whole annotation."""
    inner = type_name(unsupported.hint)
    inside = "" if inner == type_name(hint) else f" (in {unsupported.place or type_name(hint)})"
    if unsupported.cause:
        return Refused(
            "", f"{who} has a type that cannot be used: {inner}{inside} {unsupported.cause}", unsupported.cure
        )
    return Refused("", f"{who} has a type without a JSON Schema, {inner}{inside}", _CURE)


def type_name(hint: Any) -> str:
    """Return a type as text for a message: a class's qualified name, any other annotation as Python shows it, without
    `typing.`."""
    is_bare = isinstance(hint, type) and not typing.get_args(hint)
    return str(hint.__qualname__ if is_bare else hint).replace("typing.", "")


def _with_definitions(schema: Json, meanings: TypeResolver) -> Json:
    """Return a copy of the schema with the resolver's definitions, if there are any, and sorted keywords."""
    defined = {"$defs": meanings.definitions} if meanings.definitions else {}
    return typing.cast(Json, _sort_keywords({**schema, **defined}))


def _sort_keywords(schema: Any) -> Any:
    """Return a JSON Schema with sorted keywords at every level, as pydantic writes them; properties keep their order. A
    value that is no schema is returned as it is."""
    if isinstance(schema, list):
        return [_sort_keywords(each) for each in schema]
    return {key: _sort_value(key, schema[key]) for key in sorted(schema)} if isinstance(schema, dict) else schema


def _sort_value(key: str, value: Any) -> Any:
    """Return the value of the schema keyword `key` with the keywords of its subschemas sorted; values such as defaults
    stay as they are."""
    if key in ("default", "enum", "const"):
        return value
    return (
        {name: _sort_keywords(each) for name, each in value.items()} if key == "properties" else _sort_keywords(value)
    )
