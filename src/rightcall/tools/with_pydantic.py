"""Functions and classes that hold something of pydantic: models, fields, validators.

Titles that pydantic makes up from names are left out, and a default that JSON cannot say is not shown. Arguments are
read in its strict mode for JSON: a date may come as text, because JSON has no dates; a number may not.
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

from rightcall.extras import needs
from rightcall.schema.limits import Refused
from rightcall.tools.intake import Intake, Parameters, type_name
from rightcall.tools.value_types import Misfit, ValueFault, described
from rightcall.types import Json

_CODES = {"missing": "missing", "missing_argument": "missing", "missing_keyword_only_argument": "missing"}


def pydantic_function(parameters: Parameters, label: str) -> Intake:
    made: dict[Any, Any] = {}
    hints = {key: _understood(parameter.annotation, made) for key, parameter in parameters.items()}
    adapter = _adapter(_collecting(parameters, hints), hints, label)
    schema = _schema(adapter, hints, label)
    for key, text in {key: described(hint) for key, hint in hints.items()}.items():
        inner = schema.get("properties", {}).get(key)
        if text and isinstance(inner, dict):
            inner.setdefault("description", text)
    from pydantic_core import ArgsKwargs

    validator = adapter.validator
    return Intake(
        schema,
        functools.partial(_read, functools.partial(validator.validate_json, strict=True)),
        functools.partial(_accepted, lambda arguments: validator.validate_python(ArgsKwargs((), arguments))),
    )


def pydantic_class(cls: Any, label: str) -> Intake:
    adapter = _adapter(_understood(cls, {}), {}, label)
    return Intake(
        _schema(adapter, {}, label, cls.__name__),
        functools.partial(_read, functools.partial(adapter.validate_json, strict=True)),
        functools.partial(_accepted, adapter.validate_python),
    )


def _collecting(parameters: Parameters, hints: Mapping[str, Any]) -> Callable[..., Any]:
    """Takes what the function takes, every parameter by name, as a model calls; gives the arguments back, typed."""

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


def _adapter(target: Any, hints: Mapping[str, Any], label: str) -> Any:
    needs("pydantic")
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(target)
    except (PydanticUserError, NameError) as error:
        raise _unfit(hints, label, error) from error


def _schema(adapter: Any, hints: Mapping[str, Any], label: str, name: str = "") -> Json:
    from pydantic import PydanticUserError

    try:
        return _object_schema(adapter, name)
    except PydanticUserError as error:
        raise _unfit(hints, label, error) from error


def _unfit(hints: Mapping[str, Any], label: str, error: Exception) -> Refused:
    """Names the parameter whose type has no JSON Schema."""
    from pydantic import PydanticUserError, TypeAdapter

    for key, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema()
        except (PydanticUserError, NameError):
            cause = f"parameter {key!r} of {label} has a type without a JSON Schema, {type_name(hint)}"
            return Refused("", cause, "use a type JSON can say, or fix the argument with functools.partial")
    return Refused("", f"{label} has no JSON Schema: {str(error).splitlines()[0]}", "use types JSON can say")


@functools.cache
def _generator() -> type[Any]:
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        """Sets no titles from names; leaves out in silence what JSON cannot say."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Quiet


def _object_schema(adapter: Any, name: str) -> Json:
    """The schema of what a type adapter takes. The root is written out even when the type refers to itself."""
    schema: Json = adapter.json_schema(schema_generator=_generator())
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


def _read(validate: Callable[[str], Any], arguments: Json, *, again: bool = True) -> Any:
    try:
        return validate(json.dumps(arguments))
    except ValueError as error:
        found = _listed(error)
    if again and (whole := _with_whole_numbers(arguments, found)) is not None:
        return _read(validate, whole, again=False)
    raise Misfit([_fault(each) for each in found])


def _accepted(validate: Callable[[Json], Any], arguments: Json) -> Any:
    try:
        return validate(arguments)
    except ValueError as error:
        found = _listed(error)
    raise Misfit([_fault(each) for each in found])


def _listed(error: ValueError) -> list[Any]:
    """What pydantic says is wrong; any other ValueError is raised again."""
    listed = getattr(error, "errors", None)
    if listed is None:
        raise error
    return list(listed(include_url=False, include_context=False))


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


def _fault(error: Mapping[str, Any]) -> ValueFault:
    code = "wrong_type" if str(error["type"]).endswith("_type") else _CODES.get(error["type"], "invalid_argument")
    said = str(error["msg"])[:400]
    return ValueFault(code, f"{said[:1].lower()}{said[1:]}", tuple(error["loc"]))


# -- TypedDicts before Python 3.12 -------------------------------------------------------------------------------------


def _understood(hint: Any, made: dict[Any, Any]) -> Any:
    """The same type, with `typing.TypedDict`s that pydantic cannot read before Python 3.12 in a form it can.

    `made` remembers them, so that one type stays one type."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint):
        return _typed_dict(hint, made)
    inner, origin = typing.get_args(hint), typing.get_origin(hint)
    if not inner or origin is typing.Literal:
        return hint
    changed = tuple(item if isinstance(item, list) else _understood(item, made) for item in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return hint
    if origin is typing.Annotated:
        return typing.Annotated[(changed[0], *hint.__metadata__)]
    return functools.reduce(operator.or_, changed) if origin in (types.UnionType, typing.Union) else origin[changed]


def _typed_dict(old: Any, made: dict[Any, Any]) -> Any:
    import typing_extensions

    if type(old).__module__ != "typing" or old in made:
        return made.get(old, old)
    made[old] = old  # one that refers to itself stays as it is, and is refused with a reason
    fields = {
        key: (typing_extensions.Required if key in old.__required_keys__ else typing_extensions.NotRequired)[
            _understood(_bare(hint), made)
        ]
        for key, hint in typing.get_type_hints(old, include_extras=True).items()
    }
    make: Any = typing_extensions.TypedDict
    new = made[old] = make(old.__name__, fields)
    new.__doc__, new.__module__ = old.__doc__, old.__module__
    return new


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
