"""JSON Schema from Python types, through pydantic, without the noise.

    city: Annotated[str, "Where to look"]   ->   {"type": "string", "description": "Where to look"}

Titles that pydantic makes up from names are left out, and a default that JSON cannot say is not shown.
pydantic is imported when the first function or class is declared, not before.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from typing import Any

from rightcall.types import Json


@functools.cache
def generator() -> type[Any]:
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        """Sets no titles from names; leaves out in silence what JSON cannot say."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Quiet


def object_schema(adapter: Any, name: str = "") -> Json:
    """The schema of what a type adapter takes. The root is written out even when the type refers to itself."""
    schema: Json = adapter.json_schema(schema_generator=generator())
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


def described(hint: Any) -> str:
    """The text in `Annotated[..., "text"]` or `Annotated[..., Doc("text")]`; "" if there is none."""
    for note in getattr(hint, "__metadata__", ()):
        text = note if isinstance(note, str) else getattr(note, "documentation", None)
        if isinstance(text, str):
            return text
    return ""


def allows_none(hint: Any) -> bool:
    if hint in (Any, None, type(None), object):
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return allows_none(inner[0])
    if origin is typing.Literal:
        return None in inner
    return origin in (typing.Union, types.UnionType) and any(map(allows_none, inner))


def understood(hint: Any, made: dict[Any, Any] | None = None) -> Any:
    """The same type, with `typing.TypedDict`s that pydantic cannot read before Python 3.12 in a form it can.

    `made` remembers them, so that one type stays one type."""
    if sys.version_info >= (3, 12):
        return hint
    made = {} if made is None else made
    if typing.is_typeddict(hint):
        return _typed_dict(hint, made)
    inner, origin = typing.get_args(hint), typing.get_origin(hint)
    if not inner or origin is typing.Literal:
        return hint
    changed = tuple(item if isinstance(item, list) else understood(item, made) for item in inner)
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
            understood(_bare(hint), made)
        ]
        for key, hint in typing.get_type_hints(old, include_extras=True).items()
    }
    make: Any = typing_extensions.TypedDict
    new = made[old] = make(old.__name__, fields)
    new.__doc__, new.__module__ = old.__doc__, old.__module__
    return new


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
