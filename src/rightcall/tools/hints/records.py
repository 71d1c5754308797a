"""What has fields: dataclasses, TypedDicts, NamedTuples, and the parameters of a function."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from rightcall.tools.hints.defaults import with_default
from rightcall.tools.hints.meaning import (
    Meaning,
    Misfit,
    Read,
    Unsayable,
    ValueFault,
    invalid,
    wrong_type,
)
from rightcall.types import Json

NOTHING = inspect.Parameter.empty


class AnnotatedField(NamedTuple):
    """`hint` is the annotation. `default` is NOTHING where there is none to show; the field may be optional still."""

    name: str
    hint: Any
    required: bool
    default: Any = NOTHING
    description: str = ""


class UnderstoodField(NamedTuple):
    """A field whose annotation is understood."""

    field: AnnotatedField
    meaning: Meaning


def fields_schema(entries: Iterable[UnderstoodField]) -> Json:
    properties = {}
    required = []
    for field, meaning in entries:
        shown = meaning.schema if field.default is NOTHING else with_default(meaning.schema, field.default)
        if field.description:
            shown = {**shown, "description": shown.get("description", field.description)}
        properties[field.name] = shown
        if field.required:
            required.append(field.name)
    return {"properties": properties, **({"required": required} if required else {}), "type": "object"}


def fields_reader(entries: Iterable[UnderstoodField], rest: Read | None = None) -> Callable[[Any], dict[str, Any]]:
    """Reads what was sent of the fields, in their order; `rest` reads what is none of them, which is left out else."""
    readers = [(field.name, meaning.read, field.required) for field, meaning in entries]
    names = frozenset([name for name, _, _ in readers])

    def read(given: Any) -> dict[str, Any]:
        if type(given) is not dict and not isinstance(given, Mapping):
            raise wrong_type("should be an object")
        made: dict[str, Any] = {}
        faults: list[ValueFault] = []
        for name, inner, required in readers:
            if name in given:
                try:
                    made[name] = inner(given[name])
                except Misfit as misfit:
                    faults += misfit.within(name)
            elif required:
                faults.append(ValueFault("missing", "is required", (name,)))
        if rest is not None and len(made) < len(given):
            for name in [name for name in given if name not in names]:
                try:
                    made[name] = rest(given[name])
                except Misfit as misfit:
                    faults += misfit.within(name)
        if faults:
            raise Misfit(faults)
        return made

    return read


def filled(
    entries: Iterable[UnderstoodField], read: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], dict[str, Any]]:
    """The same reader, with the defaults of what was not sent. One that could be changed is given out as a copy."""
    defaults = {field.name: field.default for field, _ in entries if field.default is not NOTHING}
    if not defaults:
        return read

    def read_all(given: Any) -> dict[str, Any]:
        made = read(given)
        for name, value in defaults.items():
            if name not in made:
                made[name] = value if isinstance(value, Hashable) else copy.deepcopy(value)
        return made

    return read_all


# -- classes -----------------------------------------------------------------------------------------------------------


def class_hints(cls: Any) -> dict[str, Any]:
    """The annotations of a class, resolved; it may name itself wherever it was defined. Raises NameError."""
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except TypeError as error:
        raise Unsayable(cls, f"has an annotation that is no type ({error})", "annotate with a type") from None


def class_notes(cls: Any) -> Json:
    """Its docstring, unless Python made it up."""
    notes = inspect.cleandoc(vars(cls).get("__doc__") or "")
    return {"description": notes} if notes and not notes.startswith(f"{cls.__name__}(") else {}


def dataclass_fields(cls: Any) -> list[AnnotatedField]:
    """What making one takes: an InitVar does, a field that is not for `__init__` does not."""
    hints = class_hints(cls)
    declared = {field.name: field for field in dataclasses.fields(cls)}
    found = []
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(name, Any)
        hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
        field = declared.get(name)
        made = field is not None and field.default_factory is not dataclasses.MISSING
        default = NOTHING if made else parameter.default
        found.append(AnnotatedField(name, hint, parameter.default is NOTHING, default, _field_notes(field)))
    return found


def _field_notes(field: dataclasses.Field[Any] | None) -> str:
    if field is None:
        return ""
    notes = field.metadata.get("description") or getattr(field, "doc", None)
    return notes if isinstance(notes, str) else ""


def typed_dict_fields(cls: Any) -> list[AnnotatedField]:
    found = []
    for name, hint in class_hints(cls).items():
        required = name in cls.__required_keys__
        while (word := _word(hint)) in ("Required", "NotRequired", "ReadOnly"):
            hint = typing.get_args(hint)[0]
            required = {"Required": True, "NotRequired": False}.get(word, required)
        found.append(AnnotatedField(name, hint, required))
    return found


def _word(hint: Any) -> str:
    """`Required` of `Required[int]`, whoever it was imported from."""
    return str(getattr(typing.get_origin(hint), "_name", ""))


def named_tuple_fields(cls: Any) -> list[AnnotatedField]:
    hints = class_hints(cls)
    defaults = cls._field_defaults
    return [
        AnnotatedField(name, hints.get(name, Any), name not in defaults, defaults.get(name, NOTHING))
        for name in cls._fields
    ]


def made_by(cls: Any, read: Callable[[Any], dict[str, Any]]) -> Read:
    """Reads the fields and makes an instance. What the class itself refuses is a fault of the value."""

    def read_instance(value: Any) -> Any:
        if type(value) is not dict and isinstance(value, cls):
            return value
        fields = read(value)
        try:
            return cls(**fields)
        except (ValueError, AssertionError) as error:
            raise invalid(f"was refused: {str(error)[:400]}") from error

    return read_instance
