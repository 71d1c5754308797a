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
    Meaning,
    Misfit,
    NeedsPydantic,
    Read,
    Unsayable,
    ValueFault,
    bounded,
    bounds_of,
    described,
    enumeration,
    invalid,
    literal,
    read_each,
    with_default,
    wrong_type,
)
from rightcall.types import Json


def union(members: list[Meaning]) -> Meaning:
    """Two that say the same are one. Null stands last."""
    said: list[Json] = []
    for member in members:
        said += [each for each in _flat(member.schema) if each not in said]
    nullable = NULL.schema in said
    said = [each for each in said if each != NULL.schema] + [NULL.schema] * nullable
    others = [member for member in members if member.schema != NULL.schema]
    schema = said[0] if len(said) == 1 else {"anyOf": said}
    if not others:
        return NULL
    read = others[0].read if len(others) == 1 else _best(others)
    if not nullable:
        return Meaning(schema, read)
    return Meaning(schema, lambda value: None if value is None else read(value))


def _flat(schema: Json) -> list[Json]:
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]


def _best(members: list[Meaning]) -> Read:
    """Alternatives that hold each other would read what is inside a value once for each way to it, which doubles with
    every level: what was made of an object or an array is remembered as long as the outermost is read."""

    def read(value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return _chosen(members, value)
        outer: Known | None = getattr(_READING, "known", None)
        known: Known = {} if outer is None else outer
        key = (id(read), id(value))
        try:
            _READING.known = known
            if key not in known:
                known[key] = value, _tried(members, value)
        finally:
            _READING.known = outer
        made = known[key][1]
        if isinstance(made, Misfit):
            raise Misfit(made.faults)
        return made

    return read


Known = dict[tuple[int, int], tuple[Any, Any]]  # holds the value too: an id is only unique among living objects
_READING = threading.local()


def _tried(members: list[Meaning], value: Any) -> Any:
    try:
        return _chosen(members, value)
    except Misfit as misfit:
        return misfit


def _chosen(members: list[Meaning], value: Any) -> Any:
    found: list[tuple[Meaning, Any]] = []
    faults: list[ValueFault] = []
    for member in members:
        try:
            found.append((member, member.read(value)))
        except Misfit as misfit:
            faults += misfit.faults
    if not found:
        raise _none_of(faults)
    if len(found) == 1:
        return found[0][1]
    keys = frozenset(value) if isinstance(value, dict) else frozenset()
    return min(found, key=lambda each: (-len(each[0].keys & keys), _is_changed(value, each[1])))[1]


def _is_changed(value: Any, made: Any) -> bool:
    """Is a number of another kind, a tuple, or a member of an Enum in place of what was sent?"""
    if isinstance(value, list):
        return not isinstance(made, list) or any(_is_changed(*pair) for pair in zip(value, made, strict=False))
    if isinstance(made, enum.Enum):
        return not isinstance(value, enum.Enum)
    return isinstance(value, (int, float)) and type(made) in (int, float) and type(made) is not type(value)


def _none_of(faults: list[ValueFault]) -> Misfit:
    """What each alternative has against the value, at the one place that all of them are about."""
    said = dict.fromkeys([fault.said for fault in faults if not fault.steps])
    inside = [fault for fault in faults if fault.steps]
    kinds = {fault.code for fault in faults}
    if inside and not said:
        return Misfit(inside)
    words = ", or ".join([each if not at else each.removeprefix("should be ") for at, each in enumerate(said)])
    return Misfit([*inside, ValueFault(kinds.pop() if len(kinds) == 1 else "invalid_argument", words)])


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


def array(item: Meaning, make: Callable[[list[Any]], Any], *, unique: bool = False) -> Meaning:
    schema: Json = {"items": item.schema, "type": "array", **({"uniqueItems": True} if unique else {})}
    read_item = item.read

    def read(value: Any) -> Any:
        made = read_each(read_item, array_of(value))
        try:
            return made if make is list else make(made)
        except TypeError:  # what stands in it cannot be in a set
            raise wrong_type("should hold values that can be compared, not lists or objects") from None

    return Meaning(schema, read)


def array_of(value: Any) -> Iterable[Any]:
    if type(value) is list or isinstance(value, _ARRAYS):
        return value
    raise wrong_type("should be an array")


def places(items: list[Meaning], fewest: int, make: Callable[[list[Any]], Any]) -> Meaning:
    """An array in which every place has a type of its own; those after the `fewest` may be left out."""
    schema: Json = {"maxItems": len(items), "minItems": fewest, "type": "array"}
    if items:
        schema["prefixItems"] = [item.schema for item in items]
    readers = [item.read for item in items]

    def read(value: Any) -> Any:
        given = list(array_of(value))
        if not fewest <= len(given) <= len(readers):
            many = str(fewest) if fewest == len(readers) else f"{fewest} to {len(readers)}"
            raise wrong_type(f"should be an array of {many} items")
        faults: list[ValueFault] = []
        for at, (each, inner) in enumerate(zip(given, readers, strict=False)):
            try:
                given[at] = inner(each)
            except Misfit as misfit:
                faults += misfit.within(at)
        if faults:
            raise Misfit(faults)
        return make(given)

    return Meaning(schema, read)


def mapping(key: Meaning, value: Meaning, make: Callable[[dict[Any, Any]], Any]) -> Meaning:
    """An object with any keys. What `key` says of the text of a key stands in `propertyNames`."""
    names = dict(key.schema)
    schema: Json = {"additionalProperties": value.schema or True, "type": "object"}
    if "$ref" in names or (names.get("type") == "string" and len(names) > 1):
        names.pop("type", None)
        schema["propertyNames"] = names
    read_key, read_value = _key_reader(key.read), value.read

    def read(given: Any) -> Any:
        if not isinstance(given, abc.Mapping):
            raise wrong_type("should be an object")
        made: dict[Any, Any] = {}
        faults: list[ValueFault] = []
        for name, inner in given.items():
            try:
                made[read_key(name)] = read_value(inner)
            except Misfit as misfit:
                faults += misfit.within(name)
                if len(faults) >= MOST_FAULTS:
                    break
        if faults:
            raise Misfit(faults)
        return made if make is dict else make(made)

    return Meaning(schema, read)


def _key_reader(read: Read) -> Read:
    """Keys are text. Where the type is another, the text is what JSON would write for the key."""

    def read_key(name: Any) -> Any:
        try:
            return read(name)
        except Misfit as misfit:
            first = misfit
        try:
            return read(json.loads(name))
        except (Misfit, ValueError, TypeError, RecursionError):
            raise Misfit(
                [ValueFault("invalid_argument", f"is a key that {fault.said}") for fault in first.faults]
            ) from None

    return read_key


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
        while (word := _field_word(hint)) in ("Required", "NotRequired", "ReadOnly"):
            hint = typing.get_args(hint)[0]
            required = {"Required": True, "NotRequired": False}.get(word, required)
        found.append(AnnotatedField(name, hint, required))
    return found


def _field_word(hint: Any) -> str:
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


_OF_PYDANTIC = ("__get_pydantic_core_schema__", "__pydantic_core_schema__", "__pydantic_config__")


class _Named:
    """A class or an alias that others refer to by name. `meaning` is set once it is understood."""

    def __init__(self, name: str) -> None:
        self.name, self.uses = name, 0
        self.meaning = ANYTHING
        self.keys: set[str] = set()

    def understood(self, meaning: Meaning) -> None:
        """Known from now on to those too who refer to it already."""
        self.meaning = meaning
        self.keys |= meaning.keys

    def reference(self) -> Meaning:
        self.uses += 1
        return Meaning({"$ref": f"#/$defs/{self.name}"}, lambda value: self.meaning.read(value), self.keys)


class Meanings:
    """The meanings of the annotations of one function or class."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {}
        self._named: dict[Any, _Named] = {}

    def of(self, hint: Any) -> Meaning:
        if typing.get_origin(hint) is typing.Annotated:
            return self._annotated(hint)
        return _scalar(hint) or self._special(hint) or self._of_class(hint)

    def root(self, cls: Any) -> Meaning:
        """A class, with its fields written out."""
        self.of(cls)
        named = self._named[cls]
        if named.uses == 1:  # nobody else refers to it
            del self.definitions[named.name]
        return named.meaning

    def _fields(self, cls: Any, fields: list[AnnotatedField], given: dict[Any, Any]) -> list[UnderstoodField]:
        return [UnderstoodField(field, self._field(cls, field, given)) for field in fields]

    def _field(self, cls: Any, field: AnnotatedField, given: dict[Any, Any]) -> Meaning:
        try:
            return self.of(_substituted(field.hint, given) if given else field.hint)
        except Unsayable as unsayable:
            unsayable.place = unsayable.place or f"{cls.__name__}.{field.name}"
            raise

    def _annotated(self, hint: Any) -> Meaning:
        inner, notes = typing.get_args(hint)[0], hint.__metadata__
        if any(type(note).__module__.partition(".")[0] == "pydantic" or _is_pydantic(note) for note in notes):
            raise NeedsPydantic
        meaning = self.of(inner)
        bounds = {word: limit for note in notes for word, limit in bounds_of(note).items()}
        if bounds:
            meaning = self._bounded(hint, inner, meaning, bounds)
        text = described(hint)
        return meaning._replace(schema={**meaning.schema, "description": text}) if text else meaning

    def _bounded(self, hint: Any, inner: Any, meaning: Meaning, bounds: dict[str, Any]) -> Meaning:
        """Bounds of alternatives are those of each, null aside."""
        if typing.get_origin(inner) not in (typing.Union, types.UnionType):
            return bounded(hint, meaning, bounds)
        members = [(each, self.of(each)) for each in typing.get_args(inner)]
        return union([one if each is type(None) else bounded(hint, one, bounds) for each, one in members])

    def _special(self, hint: Any) -> Meaning | None:
        """The forms of `typing` that are no classes."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Literal:
            return literal(hint, inner)
        if origin in (typing.Union, types.UnionType):
            return union([self.of(each) for each in inner])
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        if isinstance(hint, typing.TypeVar):
            return self._variable(hint)
        alias = origin if origin is not None else hint
        if type(alias).__name__ == "TypeAliasType":
            value = _substituted(alias.__value__, dict(zip(alias.__type_params__, inner, strict=False)))
            return self._define(hint, _title(alias, inner), lambda: self.of(value))
        return None

    def _variable(self, hint: Any) -> Meaning:
        if hint.__constraints__:
            return union([self.of(each) for each in hint.__constraints__])
        return ANYTHING if hint.__bound__ is None else self.of(hint.__bound__)

    def _of_class(self, hint: Any) -> Meaning:
        cls, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
        if _is_pydantic(cls):
            raise NeedsPydantic
        if found := self._container(hint, cls, inner) or SCALARS.get(cls):
            return found
        if not isinstance(cls, type):
            raise Unsayable(hint)
        if issubclass(cls, enum.Enum):
            return self._define(cls, cls.__name__, lambda: enumeration(cls))
        build = next((build for fits, build in _RECORDS if fits(cls)), None)
        if build is None:
            raise Unsayable(hint)
        given = dict(zip(getattr(cls, "__parameters__", ()), inner, strict=False))
        return self._define(hint, _title(cls, inner), lambda: build(self, cls, given))

    def _container(self, hint: Any, cls: Any, inner: tuple[Any, ...]) -> Meaning | None:
        if cls is tuple:
            return array(ANYTHING, tuple) if hint in (tuple, typing.Tuple) else self._tuple(inner)  # noqa: UP006
        if cls in LISTS or cls in SETS:
            item = self.of(inner[0]) if inner else ANYTHING
            return array(item, LISTS.get(cls) or SETS[cls], unique=cls in SETS)
        if cls in DICTS:
            key, value = inner or (Any, Any)
            return mapping(self._key(key), self.of(value), DICTS[cls])
        return None

    def _key(self, hint: Any) -> Meaning:
        meaning = self.of(hint)
        target = self.definitions.get(str(meaning.schema.get("$ref")).rpartition("/")[2], meaning.schema)
        if target.get("type") in ("array", "object", "null"):
            raise Unsayable(hint, "cannot be the key of a JSON object, which is text", "use str for the keys")
        return meaning

    def _tuple(self, inner: tuple[Any, ...]) -> Meaning:
        if len(inner) == 2 and inner[1] is ...:
            return array(self.of(inner[0]), tuple)
        return places([self.of(each) for each in inner], len(inner), tuple)

    def _define(self, key: Any, name: str, build: Callable[[], Meaning]) -> Meaning:
        named = self._named.get(key)
        if named is None:
            named = self._named[key] = _Named(self._free(key, name))
            self.definitions[named.name] = {}  # the name is taken
            named.understood(build())
            self.definitions[named.name] = named.meaning.schema
        return named.reference()

    def _free(self, key: Any, name: str) -> str:
        """A name that no other class has."""
        if name not in self.definitions:
            return name
        longer = _word(f"{getattr(key, '__module__', '')}.{getattr(key, '__qualname__', name)}".replace(".", "__"))
        return longer if longer not in self.definitions else f"{longer}_{len(self.definitions)}"

    # -- classes with fields -------------------------------------------------------------------------------------------

    def _dataclass(self, cls: Any, given: dict[Any, Any]) -> Meaning:
        entries = self._fields(cls, dataclass_fields(cls), given)
        read = made_by(cls, fields_reader(entries))
        return Meaning({**class_notes(cls), **fields_schema(entries)}, read, _names(entries))

    def _typed_dict(self, cls: Any, given: dict[Any, Any]) -> Meaning:
        entries = self._fields(cls, typed_dict_fields(cls), given)
        schema = {**class_notes(cls), **fields_schema(entries)}
        return Meaning(schema, fields_reader(entries), _names(entries))

    def _named_tuple(self, cls: Any, given: dict[Any, Any]) -> Meaning:
        entries = self._fields(cls, named_tuple_fields(cls), given)
        shown = list(fields_schema(entries)["properties"].values())
        items = [each.meaning._replace(schema=schema) for each, schema in zip(entries, shown, strict=True)]
        return places(items, sum(each.field.required for each in entries), lambda got: cls(*got))


_RECORDS: list[tuple[Callable[[Any], bool], Callable[[Meanings, Any, dict[Any, Any]], Meaning]]] = [
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_field_defaults"), Meanings._named_tuple),
    (lambda cls: issubclass(cls, dict) and hasattr(cls, "__required_keys__"), Meanings._typed_dict),
    (dataclasses.is_dataclass, Meanings._dataclass),
]


def _scalar(hint: Any) -> Meaning | None:
    try:
        return SCALARS.get(hint)
    except TypeError:  # a note inside it has no hash
        return None


def _is_pydantic(value: Any) -> bool:
    return any(hasattr(value, name) for name in _OF_PYDANTIC)


def _names(entries: list[UnderstoodField]) -> frozenset[str]:
    return frozenset([entry.field.name for entry in entries])


def _substituted(hint: Any, given: dict[Any, Any]) -> Any:
    """`list[T]` as `list[int]`."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    free = getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(each, each) for each in free)] if free and not isinstance(hint, type) else hint


def _title(cls: Any, inner: tuple[Any, ...]) -> str:
    said = [each.__name__ if isinstance(each, type) else str(each) for each in inner]
    return _word(f"{cls.__name__}[{', '.join(said)}]") if inner else str(cls.__name__)


def _word(text: str) -> str:
    return re.sub(r"[^\w.-]", "_", text)
