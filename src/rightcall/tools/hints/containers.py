"""Annotations of lists, sets, tuples and dicts, of every name that Python has for them."""

from __future__ import annotations

import collections
import json
from collections import abc
from collections.abc import Callable, Iterable
from typing import Any

from rightcall.tools.hints.meaning import MOST_FAULTS, Meaning, Misfit, Read, ValueFault, read_each, wrong_type
from rightcall.types import Json

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
