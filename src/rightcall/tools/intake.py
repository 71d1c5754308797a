"""How a tool takes its arguments: the schema of a function or class, and the conversion from JSON to its types."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rightcall.schema.limits import Refused
from rightcall.tools.type_hints import (
    AnnotatedField,
    Meanings,
    UnderstoodField,
    fields_reader,
    fields_schema,
    filled,
    typed_dict_fields,
)
from rightcall.tools.value_types import Meaning, Misfit, NeedsPydantic, Unsayable, ValueFault
from rightcall.types import Json

_CURE = "use a type JSON can say, or fix the argument with functools.partial"

Parameters = Mapping[str, inspect.Parameter]


class Intake(NamedTuple):
    """`read` takes the arguments as JSON has them; `accept` takes those of a caller in Python, which may be of the
    types already. Both raise `Misfit`."""

    schema: Json
    read: Callable[[Json], Any]
    accept: Callable[[Json], Any]


class Later(Refused):
    """An annotation names something that does not exist, or not yet."""


def function_intake(parameters: Parameters, label: str) -> Intake:
    """`read` gives the arguments by name, defaults included. Raises `Refused`."""
    try:
        return _of_parameters(parameters, label)
    except NeedsPydantic:
        from rightcall.tools.with_pydantic import pydantic_function

        return pydantic_function(parameters, label)


def class_intake(cls: Any, label: str) -> Intake:
    """`read` gives an instance. Raises `Refused`."""
    meanings = Meanings()
    try:
        meaning = meanings.root(cls)
    except NeedsPydantic:
        from rightcall.tools.with_pydantic import pydantic_class

        return pydantic_class(cls, label)
    except Unsayable as unsayable:
        raise _refused(unsayable.place or label, unsayable.hint, unsayable) from None
    except NameError as error:
        raise unresolved(label, error) from error
    read = _not_too_deep(meaning.read)
    return Intake(_whole(meaning.schema, meanings), read, read)


def unresolved(label: str, error: NameError) -> Later:
    return Later(
        "", f"an annotation of {label} cannot be resolved: {error}", "define or import the name at module level"
    )


def _of_parameters(parameters: Parameters, label: str) -> Intake:
    meanings = Meanings()
    entries: list[UnderstoodField] = []
    rest: Meaning | None = None
    for name, parameter in parameters.items():
        hint = parameter.annotation
        if parameter.kind is not parameter.VAR_KEYWORD:
            default = parameter.default
            field = AnnotatedField(name, hint, default is parameter.empty, default)
            entries.append(UnderstoodField(field, _meaning(meanings, name, hint, label)))
        elif typing.get_origin(hint) is typing.Unpack:
            more = typed_dict_fields(typing.get_args(hint)[0])
            entries += [UnderstoodField(field, _meaning(meanings, field.name, field.hint, label)) for field in more]
        else:
            rest = _meaning(meanings, name, hint, label)
    schema = {"additionalProperties": False if rest is None else rest.schema or True, **fields_schema(entries)}
    read = filled(entries, fields_reader(entries, _unexpected if rest is None else rest.read))
    read = _not_too_deep(read)
    return Intake(_whole(schema, meanings), read, read)


def _not_too_deep(read: Callable[[Json], Any]) -> Callable[[Json], Any]:
    def read_all(arguments: Json) -> Any:
        try:
            return read(arguments)
        except RecursionError:
            raise Misfit([ValueFault("too_deep", "are nested too deeply")]) from None

    return read_all


def _unexpected(value: Any) -> Any:
    raise Misfit([ValueFault("unknown_argument", "is no argument of this tool")])


def _meaning(meanings: Meanings, name: str, hint: Any, label: str) -> Meaning:
    try:
        return meanings.of(hint)
    except Unsayable as unsayable:
        raise _refused(f"parameter {name!r} of {label}", hint, unsayable) from None
    except NameError as error:
        raise unresolved(label, error) from error


def _refused(who: str, hint: Any, unsayable: Unsayable) -> Refused:
    inner = type_name(unsayable.hint)
    inside = "" if inner == type_name(hint) else f" (in {unsayable.place or type_name(hint)})"
    if unsayable.cause:
        return Refused("", f"{who} has a type that cannot be used: {inner}{inside} {unsayable.cause}", unsayable.cure)
    return Refused("", f"{who} has a type without a JSON Schema, {inner}{inside}", _CURE)


def type_name(hint: Any) -> str:
    is_bare = isinstance(hint, type) and not typing.get_args(hint)
    return str(hint.__qualname__ if is_bare else hint).replace("typing.", "")


def _whole(schema: Json, meanings: Meanings) -> Json:
    defined = {"$defs": meanings.definitions} if meanings.definitions else {}
    return typing.cast(Json, _ordered({**schema, **defined}))


def _ordered(schema: Any) -> Any:
    """Keywords by name, as pydantic writes them; properties as they are declared."""
    if isinstance(schema, list):
        return [_ordered(each) for each in schema]
    return {key: _value(key, schema[key]) for key in sorted(schema)} if isinstance(schema, dict) else schema


def _value(key: str, value: Any) -> Any:
    if key in ("default", "enum", "const"):
        return value
    return {name: _ordered(each) for name, each in value.items()} if key == "properties" else _ordered(value)
