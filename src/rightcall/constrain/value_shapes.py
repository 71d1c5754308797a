"""Shapes: the values that a schema accepts, without its keywords.

    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    ->  Object((Field("n", Number(True, low=1), True),))

A shape is a union of kinds of values. `OneOf` holds constants as canonical JSON, including true, false and null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sized
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

import msgspec

from rightcall.constrain.algebra import Node


class Anything(msgspec.Struct, frozen=True):
    """Every JSON value."""


class OneOf(msgspec.Struct, frozen=True):
    """One of these constants, as canonical JSON."""

    texts: tuple[str, ...]


class TextShape(msgspec.Struct, frozen=True):
    """A string with `least` to `most` characters; with a pattern, of its texts."""

    least: int = 0
    most: int | None = None
    pattern: Node | None = None


class Number(msgspec.Struct, frozen=True):
    """A number from `low` to `high`; an `open` bound is excluded."""

    integer: bool = False
    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False


class Array(msgspec.Struct, frozen=True, cache_hash=True):
    """A list: the first items by position, then `items`."""

    prefix: tuple[Shape, ...]
    items: Shape
    least: int = 0
    most: int | None = None


class Field(msgspec.Struct, frozen=True):
    """A member. `evaluated` is False if it is only required, and no keyword gives its schema."""

    name: str
    shape: Shape
    required: bool = False
    evaluated: bool = True


class Object(msgspec.Struct, frozen=True, cache_hash=True):
    """`extra` is the shape of undeclared members, `keys` the pattern of their names if not None. `said` is False if the
    schema does not mention undeclared members, so that they are allowed by default."""

    fields: tuple[Field, ...] = ()
    extra: Shape = Anything()
    keys: Node | None = None
    least: int = 0
    most: int | None = None
    said: bool = False


class Union(msgspec.Struct, frozen=True, cache_hash=True):
    """Any of several shapes; without options, no value."""

    options: tuple[Shape, ...]


class ShapeReference(msgspec.Struct, frozen=True):
    """A recursive shape, by its name in `Shapes.named`."""

    name: str


Shape = Anything | OneOf | TextShape | Number | Array | Object | Union | ShapeReference

ANYTHING = Anything()
NOTHING = Union(())
TRUE_FALSE = OneOf(("true", "false"))
NULL = OneOf(("null",))
KINDS: tuple[Shape, ...] = (Object(), Array((), ANYTHING), TextShape(), Number(), TRUE_FALSE, NULL)


def one_of(values: list[Any]) -> Shape:
    """Return the shape of these constants."""
    texts = dict.fromkeys([quoted(v) if type(v) is str else json.dumps(v, ensure_ascii=False) for v in values])
    return OneOf(tuple(texts)) if texts else NOTHING


def whole_text(value: Any) -> bool:
    """Return whether a value contains no lone surrogate, which no engine accepts in a grammar."""
    text = value if type(value) is str else json.dumps(value, ensure_ascii=False)
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def shape_of_value(value: Any) -> Shape:
    """Return the shape of one value; containers become shapes of their items."""
    if isinstance(value, dict):
        return Object(tuple(Field(key, shape_of_value(item), True) for key, item in value.items()), NOTHING, said=True)
    if isinstance(value, list):
        return Array(tuple(map(shape_of_value, value)), NOTHING, len(value), len(value))
    return one_of([value])


def union(*shapes: Shape) -> Shape:
    """Return the union of shapes, with all constants in one `OneOf`."""
    out: dict[Shape, None] = {}
    texts: dict[str, None] = {}
    for shape in shapes:
        for piece in shape.options if type(shape) is Union else (shape,):
            if type(piece) is Anything:
                return ANYTHING
            if type(piece) is OneOf:
                texts.update(dict.fromkeys(piece.texts))
            else:
                out[piece] = None
    found = [*out, *([OneOf(tuple(texts))] if texts else [])]
    return found[0] if len(found) == 1 else Union(tuple(found))


def options(shape: Shape) -> tuple[Shape, ...]:
    """Return the alternatives of a shape."""
    return shape.options if type(shape) is Union else KINDS if type(shape) is Anything else (shape,)


def inner_shapes(shape: Shape) -> tuple[Shape, ...]:
    """Return the shapes directly inside a shape."""
    match shape:
        case Union(parts):
            return parts
        case Array(prefix, items):
            return (*prefix, items)
        case Object(fields, extra):
            return (*[field.shape for field in fields], extra)
    return ()


def holds(shape: Shape, value: Any) -> bool | None:
    """Return whether a value is of a shape; None if that takes a regular expression or a reference."""
    match shape:
        case Anything():
            return True
        case OneOf(texts):
            return _key(value) in keys_of(texts)
        case Union(shapes):
            return _any([holds(one, value) for one in shapes])
        case TextShape():
            return _is_text(shape, value)
        case Number():
            return _in_range(shape, value)
        case Array(prefix, items, least, most):
            return _array_holds(value, prefix, items, least, most)
        case Object():
            return _object_holds(shape, value)
    return None


CONSTANTS_PER_STEP = 8  # constants that take as long to check as a shape to make


@lru_cache(256)
def keys_of(texts: tuple[str, ...]) -> frozenset[Hashable]:
    """Return what makes these constants equal to others."""
    return frozenset([_key(json.loads(text)) for text in texts])


def membership_test(shape: Shape) -> Callable[[Any], bool | None]:
    """Return `holds` of this shape as a function, for many values."""
    if isinstance(shape, OneOf):
        keys = keys_of(shape.texts)
        return lambda value: _key(value) in keys
    if isinstance(shape, Union):
        tests = [membership_test(one) for one in shape.options]
        return lambda value: _any([test(value) for test in tests])
    return lambda value: holds(shape, value)


def _is_text(shape: TextShape, value: Any) -> bool | None:
    if not isinstance(value, str) or not _is_sized(value, shape.least, shape.most):
        return False
    return True if shape.pattern is None else None


def _is_sized(value: Sized, least: int, most: int | None) -> bool:
    return len(value) >= least and (most is None or len(value) <= most)


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _key(value: Any) -> Hashable:
    """Return a key that is equal for values that JSON Schema treats as equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((key, _key(item)) for key, item in value.items())
    if isinstance(value, list):
        return ("array", *map(_key, value))
    return type(value).__name__ if isinstance(value, bool) else "", value


def _in_range(shape: Number, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    number = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    if shape.integer and number != int(number):
        return False
    return _in_order(shape.low, number, shape.low_open) and _in_order(number, shape.high, shape.high_open)


def _in_order(small: Decimal | None, large: Decimal | None, is_open: bool) -> bool:
    """Return whether two bounds are in order. None is no bound, and an open bound excludes equality."""
    return small is None or large is None or small < large or (small == large and not is_open)


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _array_holds(value: Any, prefix: tuple[Shape, ...], items: Shape, least: int, most: int | None) -> bool | None:
    if not isinstance(value, list) or not _is_sized(value, least, most):
        return False
    return _all([holds(prefix[at] if at < len(prefix) else items, item) for at, item in enumerate(value)])


def _object_holds(shape: Object, value: Any) -> bool | None:
    if not isinstance(value, dict) or not _is_sized(value, shape.least, shape.most):
        return False
    fields = {field.name: field for field in shape.fields}
    if any(field.required and field.name not in value for field in shape.fields):
        return False
    # Undeclared members that are left out by default are allowed in a constant, which names them.
    extra = shape.extra if shape.said or shape.extra != NOTHING else ANYTHING
    found = [holds(fields[key].shape if key in fields else extra, item) for key, item in value.items()]
    return None if shape.keys is not None and value.keys() - fields.keys() else _all(found)


MAX_ALTERNATIVES = 64  # alternatives of one `oneOf` that are compared with each other
COMPARISONS_PER_STEP = 8  # comparisons of shapes that take as long as making one
CONSTANTS_PER_COMPARISON = 64  # constants or members in one comparison


def are_disjoint(parts: list[Shape], comparison: OverlapCheck) -> bool:
    """Return whether no value fits two of these shapes; False if that takes too many comparisons."""
    constants = [part for part in parts if isinstance(part, OneOf)]
    if len(constants) == len(parts):
        return _all_differ([text for part in constants for text in part.texts])
    if len(parts) > MAX_ALTERNATIVES:
        return False
    return not any(comparison.overlap(one, part) for at, part in enumerate(parts) for one in parts[:at])


def _all_differ(texts: list[str]) -> bool:
    """Return whether no two constants are equal."""
    whole = one_of([json.loads(text) for text in texts])
    return isinstance(whole, OneOf) and len(whole.texts) == len(texts) and not _has_equal_numbers(texts)


def _has_equal_numbers(texts: list[str]) -> bool:
    """Return whether a number is written in two ways, as 1 and 1.0."""
    numbers = [float(text) for text in texts if text[0] in "-0123456789" and len(text) < 300]
    return len(set(numbers)) < len(numbers)


class OverlapCheck:
    """Tests whether shapes overlap, within a budget of steps. Beyond it every two shapes overlap."""

    def __init__(self, most: int) -> None:
        self.left = most

    def overlap(self, one: Shape, other: Shape) -> bool:
        """Return whether a value may fit both shapes."""
        return any(self._options_overlap(a, b) for a in options(one) for b in options(other))

    def _options_overlap(self, one: Shape, other: Shape) -> bool:
        self.left -= 1
        if self.left < 0 or isinstance(one, ShapeReference) or isinstance(other, ShapeReference):
            return True
        if isinstance(one, OneOf) and isinstance(other, OneOf):
            self.left -= (len(one.texts) + len(other.texts)) // CONSTANTS_PER_COMPARISON
            return not keys_of(one.texts).isdisjoint(keys_of(other.texts))
        if isinstance(one, OneOf) or isinstance(other, OneOf):
            constants, shape = (one, other) if isinstance(one, OneOf) else (other, one)
            assert isinstance(constants, OneOf)
            self.left -= len(constants.texts)
            return any(holds(shape, json.loads(text)) is not False for text in constants.texts)
        if isinstance(one, Object) and isinstance(other, Object):
            return not self._are_distinguishable(one, other)
        return type(one) is type(other)

    def _are_distinguishable(self, one: Object, other: Object) -> bool:
        """Return whether a required member of one object cannot be in the other, or has other values there."""
        if _needs_foreign(one, other) or _needs_foreign(other, one):
            return True
        there = {field.name: field for field in other.fields}
        self.left -= len(there) // CONSTANTS_PER_COMPARISON
        pairs = [(field, there[field.name]) for field in one.fields if field.name in there]
        return any((a.required or b.required) and not self.overlap(a.shape, b.shape) for a, b in pairs)


def _needs_foreign(one: Object, other: Object) -> bool:
    """Return whether one object must have a member that the other cannot have."""
    if not other.said or other.extra != NOTHING:
        return False
    known = {field.name for field in other.fields}
    return any(field.required and field.name not in known for field in one.fields)
