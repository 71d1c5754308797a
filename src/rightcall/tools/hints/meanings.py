"""From an annotation to its meaning.

    meanings = Meanings()
    meanings.of(list[Point])    # {"items": {"$ref": "#/$defs/Point"}, "type": "array"}, and how to read it
    meanings.definitions        # {"Point": {...}}

Classes and type aliases are defined once, by name, so that they may refer to themselves. What has no meaning raises
`Unsayable`; what only pydantic understands raises `NeedsPydantic`.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from rightcall.tools.annotations import described
from rightcall.tools.hints import records
from rightcall.tools.hints.choices import enumeration, literal
from rightcall.tools.hints.constraints import bounded, bounds_of
from rightcall.tools.hints.containers import DICTS, LISTS, SETS, array, mapping, places
from rightcall.tools.hints.meaning import Meaning, NeedsPydantic, Unsayable
from rightcall.tools.hints.records import AnnotatedField, UnderstoodField
from rightcall.tools.hints.scalars import ANYTHING, SCALARS
from rightcall.tools.hints.unions import union
from rightcall.types import Json

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
        entries = self._fields(cls, records.dataclass_fields(cls), given)
        read = records.made_by(cls, records.fields_reader(entries))
        return Meaning({**records.class_notes(cls), **records.fields_schema(entries)}, read, _names(entries))

    def _typed_dict(self, cls: Any, given: dict[Any, Any]) -> Meaning:
        entries = self._fields(cls, records.typed_dict_fields(cls), given)
        schema = {**records.class_notes(cls), **records.fields_schema(entries)}
        return Meaning(schema, records.fields_reader(entries), _names(entries))

    def _named_tuple(self, cls: Any, given: dict[Any, Any]) -> Meaning:
        entries = self._fields(cls, records.named_tuple_fields(cls), given)
        shown = list(records.fields_schema(entries)["properties"].values())
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
