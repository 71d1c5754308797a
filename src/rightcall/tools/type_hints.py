"""JSON Schemas and readers for Python type hints: unions, containers, records and nested types."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import inspect
import json
import re
import threading
import types
import typing
from collections import abc
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from rightcall.tools.value_types import (
    ANYTHING,
    MOST_FAULTS,
    NULL,
    SCALARS,
    ConversionError,
    JsonType,
    NeedsPydantic,
    Read,
    UnsupportedType,
    ValueFault,
    annotation_text,
    bounded_type,
    bounds_of,
    enum_type,
    invalid_value_error,
    literal_type,
    read_each,
    with_default,
    wrong_type_error,
)
from rightcall.types import Json


def union_type(members: list[JsonType]) -> JsonType:
    """Return the JSON type of a union of the types in `members`: one schema or an `anyOf`, with equal schemas merged
    and null last. Its reader uses the alternative that fits best, as `_read_alternative` says, and raises
    `ConversionError` if none fits."""
    schemas: list[Json] = []
    for member in members:
        schemas += [each for each in _schema_alternatives(member.schema) if each not in schemas]
    nullable = NULL.schema in schemas
    schemas = [each for each in schemas if each != NULL.schema] + [NULL.schema] * nullable
    others = [member for member in members if member.schema != NULL.schema]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if not others:
        return NULL
    read = others[0].read if len(others) == 1 else _make_union_reader(others)
    if not nullable:
        return JsonType(schema, read)
    return JsonType(schema, lambda value: None if value is None else read(value))


def _schema_alternatives(schema: Json) -> list[Json]:
    """Return the schemas of an `anyOf` if that is all the schema has, else the schema alone in a list."""
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]


def _make_union_reader(members: list[JsonType]) -> Read:
    """Return a reader that converts a value by the best-fitting of the alternatives `members`.

    Alternatives that contain each other would read an inner value once per path to it, which doubles with each level.
    So results for objects and arrays are cached while the outermost value is read.
    """

    def read(value: Any) -> Any:
        """Return the value as the best-fitting alternative converts it. Raises `ConversionError` if none fits."""
        if not isinstance(value, (dict, list)):
            return _read_alternative(members, value)
        outer: Known | None = getattr(_READING, "known", None)
        known: Known = {} if outer is None else outer
        key = (id(read), id(value))
        try:
            _READING.known = known
            if key not in known:
                known[key] = value, _read_or_error(members, value)
        finally:
            _READING.known = outer
        made = known[key][1]
        if isinstance(made, ConversionError):
            raise ConversionError(made.faults)
        return made

    return read


Known = dict[tuple[int, int], tuple[Any, Any]]  # holds the value too: an id is only unique among living objects
_READING = threading.local()


def _read_or_error(members: list[JsonType], value: Any) -> Any:
    """Return the value as the best-fitting of the alternatives `members` converts it; if none fits, return the
    `ConversionError` instead of raising it, so that it can be cached."""
    try:
        return _read_alternative(members, value)
    except ConversionError as misfit:
        return misfit


def _read_alternative(members: list[JsonType], value: Any) -> Any:
    """Return the value as converted by the best-fitting of the alternatives `members` that accept it: the one with most
    field names in common with it, then one that changes nothing, then the first. Raises `ConversionError`, with the
    faults of all, if none accepts it."""
    found: list[tuple[JsonType, Any]] = []
    faults: list[ValueFault] = []
    for member in members:
        try:
            found.append((member, member.read(value)))
        except ConversionError as misfit:
            faults += misfit.faults
    if not found:
        raise _combine_faults(faults)
    if len(found) == 1:
        return found[0][1]
    keys = frozenset(value) if isinstance(value, dict) else frozenset()
    return min(found, key=lambda each: (-len(each[0].keys & keys), _is_changed(value, each[1])))[1]


def _is_changed(value: Any, made: Any) -> bool:
    """Return True if `made`, the result of reading `value`, is another kind of number, an Enum member, or no list where
    `value` is one. Items of lists are compared too, members of objects are not."""
    if isinstance(value, list):
        return not isinstance(made, list) or any(_is_changed(*pair) for pair in zip(value, made, strict=False))
    if isinstance(made, enum.Enum):
        return not isinstance(value, enum.Enum)
    return isinstance(value, (int, float)) and type(made) in (int, float) and type(made) is not type(value)


def _combine_faults(faults: list[ValueFault]) -> ConversionError:
    """Return (not raise) one error for a value that fits no alternative: all faults inside it, and one fault that lists
    what the alternatives expect of the value itself, if any of them says so."""
    messages = list(dict.fromkeys([fault.message for fault in faults if not fault.steps]))
    inside = [fault for fault in faults if fault.steps]
    kinds = {fault.code for fault in faults}
    if inside and not messages:
        return ConversionError(inside)
    message = ", or ".join([*messages[:1], *[each.removeprefix("should be ") for each in messages[1:]]])
    return ConversionError([*inside, ValueFault(kinds.pop() if len(kinds) == 1 else "invalid_argument", message)])


LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    collections.deque: collections.deque,
}
SETS: dict[Any, Callable[[list[Any]], Any]] = {
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}
DICTS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}
_ARRAYS = (list, tuple, set, frozenset, collections.deque)


def array_type(item: JsonType, make: Callable[[list[Any]], Any], *, unique: bool = False) -> JsonType:
    """Return the JSON type of an array whose items have the type `item`; its reader converts them and passes their list
    to `make`, such as `set`. `unique` sets `uniqueItems` in the schema only: equal items are not rejected."""
    schema: Json = {"items": item.schema, "type": "array", **({"uniqueItems": True} if unique else {})}
    read_item = item.read

    def read(value: Any) -> Any:
        """Return `make` of the converted items. Raises `ConversionError` for a value that is no array, for items that
        do not fit, and for items that `make` cannot hold."""
        made = read_each(read_item, check_array(value))
        try:
            return made if make is list else make(made)
        except TypeError:  # the items are not hashable
            raise wrong_type_error("should hold values that can be compared, not lists or objects") from None

    return JsonType(schema, read)


def check_array(value: Any) -> Iterable[Any]:
    """Return the value unchanged if it is a list, tuple, set, frozenset or deque. Raises `ConversionError` for any
    other value."""
    if type(value) is list or isinstance(value, _ARRAYS):
        return value
    raise wrong_type_error("should be an array")


def tuple_type(items: list[JsonType], fewest: int, make: Callable[[list[Any]], Any]) -> JsonType:
    """Return the JSON type of an array with a type for each position (`items`), of which only the first `fewest` are
    required. Its reader converts the items and passes their list, which may be shorter, to `make`; it raises
    `ConversionError` for another number of items."""
    schema: Json = {"maxItems": len(items), "minItems": fewest, "type": "array"}
    if items:
        schema["prefixItems"] = [item.schema for item in items]
    readers = [item.read for item in items]

    def read(value: Any) -> Any:
        """Return `make` of the converted items. Raises `ConversionError` for a value that is no array, for another
        number of items, and for items that do not fit."""
        given = list(check_array(value))
        if not fewest <= len(given) <= len(readers):
            many = str(fewest) if fewest == len(readers) else f"{fewest} to {len(readers)}"
            raise wrong_type_error(f"should be an array of {many} items")
        faults: list[ValueFault] = []
        for at, (each, inner) in enumerate(zip(given, readers, strict=False)):
            try:
                given[at] = inner(each)
            except ConversionError as misfit:
                faults += misfit.within(at)
        if faults:
            raise ConversionError(faults)
        return make(given)

    return JsonType(schema, read)


def mapping_type(key: JsonType, value: JsonType, make: Callable[[dict[Any, Any]], Any]) -> JsonType:
    """Return the JSON type of an object with any keys; its reader converts keys by the type `key` and values by
    `value`, and passes the dict to `make`. Constraints on the keys are in `propertyNames` of the schema."""
    names = dict(key.schema)
    schema: Json = {"additionalProperties": value.schema or True, "type": "object"}
    if "$ref" in names or (names.get("type") == "string" and len(names) > 1):
        names.pop("type", None)
        schema["propertyNames"] = names
    read_key, read_value = _key_reader(key.read), value.read

    def read(given: Any) -> Any:
        """Return `make` of the converted members. Raises `ConversionError` for a value that is no object, and for keys
        or values that do not fit; it stops at `MOST_FAULTS` faults."""
        if not isinstance(given, abc.Mapping):
            raise wrong_type_error("should be an object")
        made: dict[Any, Any] = {}
        faults: list[ValueFault] = []
        for name, inner in given.items():
            try:
                made[read_key(name)] = read_value(inner)
            except ConversionError as misfit:
                faults += misfit.within(name)
                if len(faults) >= MOST_FAULTS:
                    break
        if faults:
            raise ConversionError(faults)
        return made if make is dict else make(made)

    return JsonType(schema, read)


def _key_reader(read: Read) -> Read:
    """Return a reader of object keys from `read`, the reader of their type. A key is text: if the type does not accept
    the text, the text is decoded as JSON and read again. It raises `ConversionError` if neither fits."""

    def read_key(name: Any) -> Any:
        """Return the key as `read` converts its text or the JSON in it. Raises `ConversionError` if neither fits."""
        try:
            return read(name)
        except ConversionError as misfit:
            first = misfit
        try:
            return read(json.loads(name))
        except (ConversionError, ValueError, TypeError, RecursionError):
            raise ConversionError(
                [ValueFault("invalid_argument", f"is a key that {fault.message}") for fault in first.faults]
            ) from None

    return read_key


NOTHING = inspect.Parameter.empty


class AnnotatedField(NamedTuple):
    """A field of a class with its annotation `hint`. `default` is NOTHING if none can be shown; the field may still be
    optional."""

    name: str
    hint: Any
    required: bool
    default: Any = NOTHING
    description: str = ""


class ResolvedField(NamedTuple):
    """A field with its resolved type."""

    field: AnnotatedField
    type: JsonType


def fields_schema(entries: Iterable[ResolvedField]) -> Json:
    """Return the schema of an object with these resolved fields as `properties`, in their order, with defaults,
    descriptions and `required`. It does not forbid other members."""
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


def fields_reader(entries: Iterable[ResolvedField], rest: Read | None = None) -> Callable[[Any], dict[str, Any]]:
    """Return a reader for an object with these resolved fields; it returns a dict of the converted ones, without absent
    ones, and raises `ConversionError` with all faults, missing required ones included. `rest` converts other members;
    if it is None, they are left out."""
    readers = [(field.name, meaning.read, field.required) for field, meaning in entries]
    names = frozenset([name for name, _, _ in readers])

    def read(given: Any) -> dict[str, Any]:
        """Return the converted fields that are present, and other members as `rest` converts them, left out without it.
        Raises `ConversionError` for a value that is no object, and with the faults of all fields."""
        if type(given) is not dict and not isinstance(given, Mapping):
            raise wrong_type_error("should be an object")
        made: dict[str, Any] = {}
        faults: list[ValueFault] = []
        for name, inner, required in readers:
            if name in given:
                try:
                    made[name] = inner(given[name])
                except ConversionError as misfit:
                    faults += misfit.within(name)
            elif required:
                faults.append(ValueFault("missing", "is required", (name,)))
        if rest is not None and len(made) < len(given):
            for name in [name for name in given if name not in names]:
                try:
                    made[name] = rest(given[name])
                except ConversionError as misfit:
                    faults += misfit.within(name)
        if faults:
            raise ConversionError(faults)
        return made

    return read


def fill_defaults(
    entries: Iterable[ResolvedField], read: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], dict[str, Any]]:
    """Return a reader that calls `read` and adds the defaults of those fields in `entries` that are absent from its
    result; `read` itself if no field has one. A default that is not hashable is copied deeply."""
    defaults = {field.name: field.default for field, _ in entries if field.default is not NOTHING}
    if not defaults:
        return read

    def read_all(given: Any) -> dict[str, Any]:
        """Return what `read` returns, with the defaults of absent fields. Raises what `read` raises."""
        made = read(given)
        for name, value in defaults.items():
            if name not in made:
                made[name] = value if isinstance(value, Hashable) else copy.deepcopy(value)
        return made

    return read_all


# -- classes -----------------------------------------------------------------------------------------------------------


def class_hints(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class by field, resolved, with the notes of `Annotated`; they may name the class
    itself. Raises NameError for an undefined name, `UnsupportedType` for an annotation that is no type."""
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except TypeError as error:
        raise UnsupportedType(cls, f"has an annotation that is no type ({error})", "annotate with a type") from None


def class_description(cls: Any) -> Json:
    """Return `{"description": ...}` with the class's own docstring; {} if it has none, or Python generated it."""
    notes = inspect.cleandoc(vars(cls).get("__doc__") or "")
    return {"description": notes} if notes and not notes.startswith(f"{cls.__name__}(") else {}


def dataclass_fields(cls: Any) -> list[AnnotatedField]:
    """Return the fields with which an instance of a dataclass is created: including InitVar, excluding fields without
    `init`. A field with a default factory is optional, but has no default that can be shown. Raises as
    `class_hints`."""
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
        found.append(AnnotatedField(name, hint, parameter.default is NOTHING, default, _field_description(field)))
    return found


def _field_description(field: dataclasses.Field[Any] | None) -> str:
    """Return the description of a dataclass field: the text `description` in its metadata, else its `doc`; "" if it has
    neither, and for None."""
    if field is None:
        return ""
    notes = field.metadata.get("description") or getattr(field, "doc", None)
    return notes if isinstance(notes, str) else ""


def typed_dict_fields(cls: Any) -> list[AnnotatedField]:
    """Return the fields of a TypedDict, with Required, NotRequired and ReadOnly evaluated and removed from the
    annotations. Raises as `class_hints`."""
    found = []
    for name, hint in class_hints(cls).items():
        required = name in cls.__required_keys__
        while (word := _qualifier(hint)) in ("Required", "NotRequired", "ReadOnly"):
            hint = typing.get_args(hint)[0]
            required = {"Required": True, "NotRequired": False}.get(word, required)
        found.append(AnnotatedField(name, hint, required))
    return found


def _qualifier(hint: Any) -> str:
    """Return the name of the form around an annotation, `Required` for `Required[int]`, from `typing` or
    `typing_extensions`; "" if there is none."""
    return str(getattr(typing.get_origin(hint), "_name", ""))


def named_tuple_fields(cls: Any) -> list[AnnotatedField]:
    """Return the fields of a NamedTuple, in order, with their defaults; one without an annotation has the type `Any`.
    Raises as `class_hints`."""
    hints = class_hints(cls)
    defaults = cls._field_defaults
    return [
        AnnotatedField(name, hints.get(name, Any), name not in defaults, defaults.get(name, NOTHING))
        for name in cls._fields
    ]


def instance_reader(cls: Any, read: Callable[[Any], dict[str, Any]]) -> Read:
    """Return a reader that creates an instance of the class `cls` from the fields, as keywords, that the reader `read`
    returns. A value that is an instance already is returned itself; a ValueError or AssertionError of the class becomes
    a `ConversionError`."""

    def read_instance(value: Any) -> Any:
        """Return an instance of the class made from the fields of the value; an instance is returned itself. Raises
        `ConversionError` if the fields do not fit, or if the class refuses them."""
        if type(value) is not dict and isinstance(value, cls):
            return value
        fields = read(value)
        try:
            return cls(**fields)
        except (ValueError, AssertionError) as error:
            raise invalid_value_error(f"was refused: {str(error)[:400]}") from error

    return read_instance


_OF_PYDANTIC = ("__get_pydantic_core_schema__", "__pydantic_core_schema__", "__pydantic_config__")


class _Definition:
    """A class or alias that is referenced by name. `type` is set once it is resolved."""

    def __init__(self, name: str) -> None:
        self.name, self.uses = name, 0
        self.type = ANYTHING
        self.keys: set[str] = set()

    def resolve(self, json_type: JsonType) -> None:
        """Set the JSON type of this definition, also for the references to it that exist already."""
        self.type = json_type
        self.keys |= json_type.keys

    def reference(self) -> JsonType:
        """Return a JSON type that refers to this definition by `$ref`, and count the use. Its reader works once the
        definition is resolved."""
        self.uses += 1
        return JsonType({"$ref": f"#/$defs/{self.name}"}, lambda value: self.type.read(value), self.keys)


class TypeResolver:
    """Resolve the annotations of one function or class to JSON types, and collect their definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {}
        self._definitions: dict[Any, _Definition] = {}

    def resolve(self, hint: Any) -> JsonType:
        """Return the JSON type of an annotation; classes with fields become definitions. Raises `UnsupportedType` for
        one without a JSON Schema, and `NeedsPydantic` for one that only pydantic knows."""
        if typing.get_origin(hint) is typing.Annotated:
            return self._resolve_annotated(hint)
        return _find_scalar_type(hint) or self._resolve_typing_form(hint) or self._resolve_class(hint)

    def resolve_root(self, cls: Any) -> JsonType:
        """Return the JSON type of a class with its fields inline. The class remains in `definitions` only if something
        inside refers to it. Raises as `resolve`."""
        self.resolve(cls)
        definition = self._definitions[cls]
        if definition.uses == 1:  # nothing else refers to it
            del self.definitions[definition.name]
        return definition.type

    def _resolve_fields(self, cls: Any, fields: list[AnnotatedField], given: dict[Any, Any]) -> list[ResolvedField]:
        """Return the fields of the class `cls` with their JSON types. `given` maps the type variables of the class to
        types. Raises as `resolve`."""
        return [ResolvedField(field, self._resolve_field(cls, field, given)) for field in fields]

    def _resolve_field(self, cls: Any, field: AnnotatedField, given: dict[Any, Any]) -> JsonType:
        """Return the JSON type of one field of the class `cls`. `given` maps the type variables of the class to types.
        Raises as `resolve`; an `UnsupportedType` gets the field's place, `Class.field`, unless it has one."""
        try:
            return self.resolve(_substitute(field.hint, given) if given else field.hint)
        except UnsupportedType as unsupported:
            unsupported.place = unsupported.place or f"{cls.__name__}.{field.name}"
            raise

    def _resolve_annotated(self, hint: Any) -> JsonType:
        """Return the JSON type of an `Annotated`: its bounds and description are added to the schema, other notes are
        ignored. Raises `NeedsPydantic` for notes of pydantic, `UnsupportedType` for bounds that do not apply."""
        inner, notes = typing.get_args(hint)[0], hint.__metadata__
        if any(type(note).__module__.partition(".")[0] == "pydantic" or _is_pydantic(note) for note in notes):
            raise NeedsPydantic
        meaning = self.resolve(inner)
        bounds = {word: limit for note in notes for word, limit in bounds_of(note).items()}
        if bounds:
            meaning = self._resolve_bounded(hint, inner, meaning, bounds)
        text = annotation_text(hint)
        return meaning._replace(schema={**meaning.schema, "description": text}) if text else meaning

    def _resolve_bounded(self, hint: Any, inner: Any, meaning: JsonType, bounds: dict[str, Any]) -> JsonType:
        """Return the JSON type of the annotation `inner`, which is `meaning`, with `bounds`; in a union they apply to
        each alternative except null. Raises `UnsupportedType`, for `hint`, if a bound does not apply."""
        if typing.get_origin(inner) not in (typing.Union, types.UnionType):
            return bounded_type(hint, meaning, bounds)
        members = [(each, self.resolve(each)) for each in typing.get_args(inner)]
        return union_type([one if each is type(None) else bounded_type(hint, one, bounds) for each, one in members])

    def _resolve_typing_form(self, hint: Any) -> JsonType | None:
        """Return the JSON type of a form of `typing` that is no class, such as Literal, a union or an alias; None for
        any other annotation. Raises as `resolve`."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Literal:
            return literal_type(hint, inner)
        if origin in (typing.Union, types.UnionType):
            return union_type([self.resolve(each) for each in inner])
        if isinstance(hint, typing.NewType):
            return self.resolve(hint.__supertype__)
        if isinstance(hint, typing.TypeVar):
            return self._resolve_type_variable(hint)
        alias = origin if origin is not None else hint
        if type(alias).__name__ == "TypeAliasType":
            value = _substitute(alias.__value__, dict(zip(alias.__type_params__, inner, strict=False)))
            return self._define(hint, _definition_name(alias, inner), lambda: self.resolve(value))
        return None

    def _resolve_type_variable(self, hint: Any) -> JsonType:
        """Return the JSON type of a type variable: the union of its constraints, its bound, or anything."""
        if hint.__constraints__:
            return union_type([self.resolve(each) for each in hint.__constraints__])
        return ANYTHING if hint.__bound__ is None else self.resolve(hint.__bound__)

    def _resolve_class(self, hint: Any) -> JsonType:
        """Return the JSON type of an annotation that is a class, perhaps with type arguments: a container or scalar, or
        a reference to the definition of an Enum or a class with fields, which is added to `definitions`. Raises
        `UnsupportedType` for any other annotation, and `NeedsPydantic` for a class of pydantic."""
        cls, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
        if _is_pydantic(cls):
            raise NeedsPydantic
        if found := self._resolve_container(hint, cls, inner) or SCALARS.get(cls):
            return found
        if not isinstance(cls, type):
            raise UnsupportedType(hint)
        if issubclass(cls, enum.Enum):
            return self._define(cls, cls.__name__, lambda: enum_type(cls))
        build = next((build for fits, build in _RECORDS if fits(cls)), None)
        if build is None:
            raise UnsupportedType(hint)
        given = dict(zip(getattr(cls, "__parameters__", ()), inner, strict=False))
        return self._define(hint, _definition_name(cls, inner), lambda: build(self, cls, given))

    def _resolve_container(self, hint: Any, cls: Any, inner: tuple[Any, ...]) -> JsonType | None:
        """Return the JSON type of a list, set, tuple or mapping whose class is `cls` and whose type arguments are
        `inner`; None for any other class. Raises as `resolve`."""
        if cls is tuple:
            return array_type(ANYTHING, tuple) if hint in (tuple, typing.Tuple) else self._resolve_tuple(inner)  # noqa: UP006
        if cls in LISTS or cls in SETS:
            item = self.resolve(inner[0]) if inner else ANYTHING
            return array_type(item, LISTS.get(cls) or SETS[cls], unique=cls in SETS)
        if cls in DICTS:
            key, value = inner or (Any, Any)
            return mapping_type(self._resolve_key(key), self.resolve(value), DICTS[cls])
        return None

    def _resolve_key(self, hint: Any) -> JsonType:
        """Return the JSON type of a mapping's keys. Raises `UnsupportedType` for arrays, objects and null, which the
        text of a key cannot express."""
        meaning = self.resolve(hint)
        target = self.definitions.get(str(meaning.schema.get("$ref")).rpartition("/")[2], meaning.schema)
        if target.get("type") in ("array", "object", "null"):
            raise UnsupportedType(hint, "cannot be the key of a JSON object, which is text", "use str for the keys")
        return meaning

    def _resolve_tuple(self, inner: tuple[Any, ...]) -> JsonType:
        """Return the JSON type of a tuple with the type arguments `inner`: for `tuple[int, ...]` an array of any
        length, otherwise an array with one type for each position."""
        if len(inner) == 2 and inner[1] is ...:
            return array_type(self.resolve(inner[0]), tuple)
        return tuple_type([self.resolve(each) for each in inner], len(inner), tuple)

    def _define(self, key: Any, name: str, build: Callable[[], JsonType]) -> JsonType:
        """Return a reference to the definition of `key`, a class or alias; at first use `build` makes its type, which
        is stored in `definitions` under `name` or a similar one. A class may refer to itself."""
        definition = self._definitions.get(key)
        if definition is None:
            definition = self._definitions[key] = _Definition(self._unused_name(key, name))
            self.definitions[definition.name] = {}  # reserves the name
            definition.resolve(build())
            self.definitions[definition.name] = definition.type.schema
        return definition.reference()

    def _unused_name(self, key: Any, name: str) -> str:
        """Return a name for the definition of `key`, a class or alias, that no other has: `name`, else one with its
        module, else that with a number."""
        if name not in self.definitions:
            return name
        longer = _identifier(
            f"{getattr(key, '__module__', '')}.{getattr(key, '__qualname__', name)}".replace(".", "__")
        )
        return longer if longer not in self.definitions else f"{longer}_{len(self.definitions)}"

    # -- classes with fields -------------------------------------------------------------------------------------------

    def _build_dataclass_type(self, cls: Any, given: dict[Any, Any]) -> JsonType:
        """Return the JSON type of a dataclass: an object, which is read as an instance. Other members are ignored.
        `given` maps its type variables to types."""
        entries = self._resolve_fields(cls, dataclass_fields(cls), given)
        read = instance_reader(cls, fields_reader(entries))
        return JsonType({**class_description(cls), **fields_schema(entries)}, read, _field_names(entries))

    def _build_typed_dict_type(self, cls: Any, given: dict[Any, Any]) -> JsonType:
        """Return the JSON type of a TypedDict: an object, which is read as a dict without other members. `given` maps
        its type variables to types."""
        entries = self._resolve_fields(cls, typed_dict_fields(cls), given)
        schema = {**class_description(cls), **fields_schema(entries)}
        return JsonType(schema, fields_reader(entries), _field_names(entries))

    def _build_named_tuple_type(self, cls: Any, given: dict[Any, Any]) -> JsonType:
        """Return the JSON type of a NamedTuple: an array with a type for each position, which is read as an instance.
        Fields with defaults may be absent. `given` maps its type variables to types."""
        entries = self._resolve_fields(cls, named_tuple_fields(cls), given)
        shown = list(fields_schema(entries)["properties"].values())
        items = [each.type._replace(schema=schema) for each, schema in zip(entries, shown, strict=True)]
        return tuple_type(items, sum(each.field.required for each in entries), lambda got: cls(*got))


_RECORDS: list[tuple[Callable[[Any], bool], Callable[[TypeResolver, Any, dict[Any, Any]], JsonType]]] = [
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_field_defaults"), TypeResolver._build_named_tuple_type),
    (lambda cls: issubclass(cls, dict) and hasattr(cls, "__required_keys__"), TypeResolver._build_typed_dict_type),
    (dataclasses.is_dataclass, TypeResolver._build_dataclass_type),
]


def _find_scalar_type(hint: Any) -> JsonType | None:
    """Return the `JsonType` (schema and reader) of a scalar annotation such as `int` or `date`; None for any other
    annotation."""
    try:
        return SCALARS.get(hint)
    except TypeError:  # an annotation inside it is not hashable
        return None


def _is_pydantic(value: Any) -> bool:
    """Return whether a class or value has an attribute of pydantic, so that only pydantic can convert values to it."""
    return any(hasattr(value, name) for name in _OF_PYDANTIC)


def _field_names(entries: list[ResolvedField]) -> frozenset[str]:
    """Return the names of resolved fields."""
    return frozenset([entry.field.name for entry in entries])


def _substitute(hint: Any, given: dict[Any, Any]) -> Any:
    """Return the annotation with its type variables replaced by the types that `given` has for them: `list[T]` as
    `list[int]`. Others remain."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    free = getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(each, each) for each in free)] if free and not isinstance(hint, type) else hint


def _definition_name(cls: Any, inner: tuple[Any, ...]) -> str:
    """Return the name of the definition of a class or alias with the type arguments `inner`: `Box_int_` for
    `Box[int]`."""
    names = [each.__name__ if isinstance(each, type) else str(each) for each in inner]
    return _identifier(f"{cls.__name__}[{', '.join(names)}]") if inner else str(cls.__name__)


def _identifier(text: str) -> str:
    """Return text with all but letters, digits, `_`, `.` and `-` replaced by `_`."""
    return re.sub(r"[^\w.-]", "_", text)
