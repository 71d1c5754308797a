"""Readers for functions and classes that use pydantic: models, fields, validators.

Titles that pydantic derives from names are left out, as are defaults that JSON cannot represent. Arguments are read in
pydantic's strict mode for JSON: a date may be text, because JSON has no dates; a number may not.
"""

from __future__ import annotations

import functools
import inspect
import json
import operator
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from rightcall.extras import require_extra
from rightcall.schema.limits import Refused
from rightcall.tools.argument_reader import ArgumentReader, Parameters, type_name
from rightcall.tools.value_types import ConversionError, ValueFault, annotation_text
from rightcall.types import Json

_CODES = {"missing": "missing", "missing_argument": "missing", "missing_keyword_only_argument": "missing"}


def pydantic_function(parameters: Parameters, label: str) -> ArgumentReader:
    """Return the reader, made by pydantic, for a function's parameters; its results are the arguments by name, and
    descriptions in `Annotated` are in its schema. Raises `Refused`, which names the function by `label`, for a type
    without a JSON Schema, and `MissingExtra` without pydantic."""
    made: dict[Any, Any] = {}
    hints = {key: _readable_type(parameter.annotation, made) for key, parameter in parameters.items()}
    adapter = _make_adapter(_argument_collector(parameters, hints), hints, label)
    schema = _make_schema(adapter, hints, label)
    for key, text in {key: annotation_text(hint) for key, hint in hints.items()}.items():
        inner = schema.get("properties", {}).get(key)
        if text and isinstance(inner, dict):
            inner.setdefault("description", text)
    from pydantic_core import ArgsKwargs

    validator = adapter.validator
    return ArgumentReader(
        schema,
        functools.partial(_read_json, functools.partial(validator.validate_json, strict=True)),
        functools.partial(_accept_python, lambda arguments: validator.validate_python(ArgsKwargs((), arguments))),
    )


def pydantic_class(cls: Any, label: str) -> ArgumentReader:
    """Return the reader, made by pydantic, for a class; its result is an instance. Raises `Refused`, which names the
    class by `label`, for a type without a JSON Schema, and `MissingExtra` without pydantic."""
    adapter = _make_adapter(_readable_type(cls, {}), {}, label)
    return ArgumentReader(
        _make_schema(adapter, {}, label, cls.__name__),
        functools.partial(_read_json, functools.partial(adapter.validate_json, strict=True)),
        functools.partial(_accept_python, adapter.validate_python),
    )


def _argument_collector(parameters: Parameters, hints: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that returns its keyword arguments as a dict. Its signature has the given parameters, all by
    keyword and with the types in `hints`, so that pydantic can validate them."""

    def collect(**arguments: Any) -> Json:
        return arguments

    named = [
        parameter.replace(
            annotation=hints[key],
            kind=parameter.kind if parameter.kind is parameter.VAR_KEYWORD else parameter.KEYWORD_ONLY,
        )
        for key, parameter in parameters.items()
    ]
    collect.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    collect.__annotations__ = dict(hints)
    return collect


# -- schemas -----------------------------------------------------------------------------------------------------------


def _make_adapter(target: Any, hints: Mapping[str, Any], label: str) -> Any:
    """Return pydantic's `TypeAdapter` of `target`, a function or class that messages name by `label`. Raises `Refused`,
    which names the first of the parameters in `hints` (annotations by name) that has no schema, or else `label`, and
    `MissingExtra` without pydantic."""
    require_extra("pydantic")
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(target)
    except (PydanticUserError, NameError) as error:
        raise _schema_error(hints, label, error) from error


def _make_schema(adapter: Any, hints: Mapping[str, Any], label: str, name: str = "") -> Json:
    """Return the JSON Schema of a `TypeAdapter`, without a title that equals `name`. Raises `Refused`, which names the
    first parameter of `hints` without a schema, or else `label`."""
    from pydantic import PydanticUserError

    try:
        return _object_schema(adapter, name)
    except PydanticUserError as error:
        raise _schema_error(hints, label, error) from error


def _schema_error(hints: Mapping[str, Any], label: str, error: Exception) -> Refused:
    """Return (not raise) the error that names the first parameter of `hints` whose type has no JSON Schema, or else the
    function or class `label`."""
    from pydantic import PydanticUserError, TypeAdapter

    for key, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema()
        except (PydanticUserError, NameError):
            cause = f"parameter {key!r} of {label} has a type without a JSON Schema, {type_name(hint)}"
            return Refused("", cause, "use a type that JSON can represent, or fix the argument with functools.partial")
    return Refused("", f"{label} has no JSON Schema: {str(error).splitlines()[0]}", "use types that JSON can represent")


@functools.cache
def _generator_class() -> type[Any]:
    """Return the class that generates schemas for pydantic without derived titles and without warnings. It is created
    at first use, since pydantic is optional."""
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        """Set no titles from names, and omit without a warning what JSON cannot represent."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Quiet


def _object_schema(adapter: Any, name: str) -> Json:
    """Return the schema of a `TypeAdapter` with its root inline, even if the type refers to itself. Titles that
    pydantic derived from names, and one that equals `name`, are left out."""
    schema: Json = adapter.json_schema(schema_generator=_generator_class())
    definitions: Json = schema.get("$defs", {})
    for key, inner in definitions.items():
        if key.endswith(str(inner.get("title"))):
            del inner["title"]
    if schema.get("title") == name:
        del schema["title"]
    target = definitions.get(str(schema.get("$ref")).removeprefix("#/$defs/"))
    if target is None:
        return schema
    del schema["$ref"]
    return {**target, **schema}


# -- arguments ---------------------------------------------------------------------------------------------------------


def _read_json(validate: Callable[[str], Any], arguments: Json, *, convert: bool = True) -> Any:
    """Return JSON arguments as converted by `validate`, which takes JSON text. If the only errors are floats such as
    2.0 for an integer, and `convert` is set, they are converted to integers first. Raises `ConversionError` if the
    arguments do not fit."""
    try:
        return validate(json.dumps(arguments))
    except ValueError as error:
        found = _list_errors(error)
    if convert and (whole := _convert_whole_numbers(arguments, found)) is not None:
        return _read_json(validate, whole, convert=False)
    raise ConversionError([_convert_error(each) for each in found])


def _accept_python(validate: Callable[[Json], Any], arguments: Json) -> Any:
    """Return the arguments of a Python caller as pydantic's `validate` converts them. Raises `ConversionError` if they
    do not fit."""
    try:
        return validate(arguments)
    except ValueError as error:
        found = _list_errors(error)
    raise ConversionError([_convert_error(each) for each in found])


def _list_errors(error: ValueError) -> list[Any]:
    """Return the errors inside pydantic's validation error as a list of dicts. A ValueError that is not pydantic's is
    raised."""
    listed = getattr(error, "errors", None)
    if listed is None:
        raise error
    return list(listed(include_url=False, include_context=False))


def _convert_whole_numbers(arguments: Json, found: list[Any]) -> Json | None:
    """Return a copy of the arguments with 2 for 2.0, as JSON Schema allows, if such numbers are all that the errors in
    `found` report; None if there are others."""
    if not all(_is_whole_number(each) for each in found):
        return None
    for each in found:
        arguments = _replace_at(arguments, each["loc"], int(each["input"]))
    return arguments


def _is_whole_number(error: Mapping[str, Any]) -> bool:
    """Return True if an error of pydantic says that a float such as 2.0 was given for an integer."""
    given = error["input"]
    return error["type"] == "int_type" and isinstance(given, float) and given.is_integer()


def _replace_at(value: Any, steps: tuple[Any, ...], new: int) -> Any:
    """Return a copy of a JSON value with `new` at the path `steps`, of keys and indexes. A step that leads nowhere,
    such as the label of a union, changes nothing."""
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict) and first in value:
        return {**value, first: _replace_at(value[first], rest, new)}
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        return [*value[:first], _replace_at(value[first], rest, new), *value[first + 1 :]]
    return value


def _convert_error(error: Mapping[str, Any]) -> ValueFault:
    """Return one of pydantic's errors as a fault, with one of our codes, its message and its place."""
    code = "wrong_type" if str(error["type"]).endswith("_type") else _CODES.get(error["type"], "invalid_argument")
    message = str(error["msg"])[:400]
    return ValueFault(code, f"{message[:1].lower()}{message[1:]}", tuple(error["loc"]))


# -- TypedDicts before Python 3.12 -------------------------------------------------------------------------------------


def _readable_type(hint: Any, made: dict[Any, Any]) -> Any:
    """Return the type in a form that pydantic can read: before Python 3.12 it cannot read `typing.TypedDict`; later it
    is returned unchanged.

    `made` keeps the converted types, so that one type stays one type.
    """
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint):
        return _convert_typed_dict(hint, made)
    inner, origin = typing.get_args(hint), typing.get_origin(hint)
    if not inner or origin is typing.Literal:
        return hint
    changed = tuple(item if isinstance(item, list) else _readable_type(item, made) for item in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return hint
    if origin is typing.Annotated:
        return typing.Annotated[(changed[0], *hint.__metadata__)]
    return functools.reduce(operator.or_, changed) if origin in (types.UnionType, typing.Union) else origin[changed]


def _convert_typed_dict(old: Any, made: dict[Any, Any]) -> Any:
    """Return a `typing.TypedDict` (`old`) as one of `typing_extensions`, and store that in `made`, from where it is
    taken the next time; a TypedDict of `typing_extensions` is returned unchanged."""
    import typing_extensions

    if type(old).__module__ != "typing" or old in made:
        return made.get(old, old)
    made[old] = old  # a TypedDict that refers to itself stays as it is and is rejected later
    fields = {
        key: (typing_extensions.Required if key in old.__required_keys__ else typing_extensions.NotRequired)[
            _readable_type(_strip_qualifier(hint), made)
        ]
        for key, hint in typing.get_type_hints(old, include_extras=True).items()
    }
    make: Any = typing_extensions.TypedDict
    new = made[old] = make(old.__name__, fields)
    new.__doc__, new.__module__ = old.__doc__, old.__module__
    return new


def _strip_qualifier(hint: Any) -> Any:
    """Return the annotation inside `Required` or `NotRequired`; any other annotation unchanged."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
