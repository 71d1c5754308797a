"""Shapes: the values that a schema accepts, without its keywords.

    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    ->  Object((Field("n", Number(True, low=1), True),))

A shape is a union of kinds of values. `OneOf` accepts constants as canonical JSON, including true, false and null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sized
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

import msgspec

from rightcall.constrain.algebra import Node


class Anything(msgspec.Struct, frozen=True):
    """Every JSON value."""


class OneOf(msgspec.Struct, frozen=True, cache_hash=True):
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
    """An object. `extra` is the shape of undeclared members, `keys` the pattern of their names if not None. `said`
    is False if the schema does not mention undeclared members, so that they are allowed by default."""

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
    """Return the shape of these constants; `NOTHING` without values."""
    texts = dict.fromkeys([quoted(v) if type(v) is str else json.dumps(v, ensure_ascii=False) for v in values])
    return OneOf(tuple(texts)) if texts else NOTHING


def has_no_surrogate(value: Any) -> bool:
    """Return whether a JSON value contains no lone surrogate, which no engine accepts in a grammar."""
    text = value if type(value) is str else json.dumps(value, ensure_ascii=False)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def shape_of_value(value: Any) -> Shape:
    """Return the shape of exactly this JSON value: a list or an object with the shapes of its items, and constants
    inside."""
    if isinstance(value, dict):
        return Object(tuple(Field(key, shape_of_value(item), True) for key, item in value.items()), NOTHING, said=True)
    if isinstance(value, list):
        return Array(tuple(map(shape_of_value, value)), NOTHING, len(value), len(value))
    return one_of([value])


def union(*shapes: Shape) -> Shape:
    """Return a shape for the values that any of the shapes accepts: `ANYTHING` if one is, and all constants in one
    `OneOf`. One remaining shape is returned itself; without shapes it is `NOTHING`."""
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
    """Return the alternatives of a shape: the options of a union, all kinds of values for `ANYTHING`, otherwise the
    shape itself."""
    return shape.options if type(shape) is Union else KINDS if type(shape) is Anything else (shape,)


def inner_shapes(shape: Shape) -> tuple[Shape, ...]:
    """Return the shapes directly inside a union, a list or an object; none for other shapes and for a reference, which
    is not followed."""
    match shape:
        case Union(parts):
            return parts
        case Array(prefix, items):
            return (*prefix, items)
        case Object(fields, extra):
            return (*[field.shape for field in fields], extra)
    return ()


def accepts(shape: Shape, value: Any) -> bool | None:
    """Return whether a shape accepts a value; None if only a regular expression or a reference, neither of which is
    followed, can tell."""
    match shape:
        case Anything():
            return True
        case OneOf():
            return _comparison_key(value) in comparison_keys(shape)
        case Union(shapes):
            return _any_true([accepts(one, value) for one in shapes])
        case TextShape():
            return _accepts_text(shape, value)
        case Number():
            return _accepts_number(shape, value)
        case Array(prefix, items, least, most):
            return _accepts_array(value, prefix, items, least, most)
        case Object():
            return _accepts_object(shape, value)
    return None


CONSTANTS_PER_STEP = 8  # constants that take as long to check as a shape to make
_CHARACTERS = 1024  # of a constant that take as long to check as an item


def size_of_constants(values: Iterable[Any], item: int = 1) -> int:
    """Return the size of these values: each counts 1, each item or member value inside them, at any depth, counts
    `item`, and a text one more for each `_CHARACTERS` characters."""
    size, count, waiting = 0, 1, list(values)
    while waiting:
        inner: list[Any] = []
        for here in waiting:
            if type(here) is str:
                size += len(here) // _CHARACTERS
            elif type(here) is dict:
                inner += here.values()
            elif type(here) is list:
                inner += here
        size += count * len(waiting)
        count, waiting = item, inner
    return size


def most_members(values: Iterable[Any]) -> int:
    """Return the number of members of the largest object among these values and in them, at any depth; 0 without
    objects."""
    most, waiting = 0, list(values)
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            most = max(most, len(here))
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return most


@lru_cache(256)
def comparison_keys(shape: OneOf) -> frozenset[Hashable]:
    """Return a key for each of the constants of a shape; equal values have equal keys."""
    return frozenset([_comparison_key(json.loads(text)) for text in shape.texts])


def membership_test(shape: Shape) -> Callable[[Any], bool | None]:
    """Return a function that returns whether this shape accepts a value, None if only a regular expression or a
    reference can tell. It is faster than `accepts` for many values."""
    if isinstance(shape, OneOf):
        keys = comparison_keys(shape)
        return lambda value: _comparison_key(value) in keys
    if isinstance(shape, Union):
        tests = [membership_test(one) for one in shape.options]
        return lambda value: _any_true([test(value) for test in tests])
    return lambda value: accepts(shape, value)


def _accepts_text(shape: TextShape, value: Any) -> bool | None:
    """Return whether a text shape accepts a value; False for one that is not a text or has a wrong length, None if its
    pattern must be matched."""
    if not isinstance(value, str) or not _has_length(value, shape.least, shape.most):
        return False
    return True if shape.pattern is None else None


def _has_length(value: Sized, least: int, most: int | None) -> bool:
    """Return whether a value has `least` to `most` items or characters (None: no upper limit)."""
    return len(value) >= least and (most is None or len(value) <= most)


def _any_true(found: list[bool | None]) -> bool | None:
    """Return True if one of the answers is True, else None if one is None, else False."""
    return True if True in found else None if None in found else False


def _comparison_key(value: Any) -> Hashable:
    """Return a key that is equal for values that JSON Schema treats as equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((key, _comparison_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return ("array", *map(_comparison_key, value))
    return type(value).__name__ if isinstance(value, bool) else "", value


def _accepts_number(shape: Number, value: Any) -> bool:
    """Return whether a range accepts a value; False for anything but a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    number = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    if shape.integer and number != int(number):
        return False
    return _is_in_order(shape.low, number, shape.low_open) and _is_in_order(number, shape.high, shape.high_open)


def _is_in_order(small: Decimal | None, large: Decimal | None, is_open: bool) -> bool:
    """Return whether `small` is at most `large`, or less if `is_open`; True if one of them is None, which is no
    bound."""
    return small is None or large is None or small < large or (small == large and not is_open)


def _all_true(found: list[bool | None]) -> bool | None:
    """Return False if one of the answers is False, else None if one is None, else True."""
    return False if False in found else None if None in found else True


def _accepts_array(value: Any, prefix: tuple[Shape, ...], items: Shape, least: int, most: int | None) -> bool | None:
    """Return whether a list shape with these parts accepts a value; False for one that is not a list, None if only a
    regular expression or a reference can tell."""
    if not isinstance(value, list) or not _has_length(value, least, most):
        return False
    return _all_true([accepts(prefix[at] if at < len(prefix) else items, item) for at, item in enumerate(value)])


def _accepts_object(shape: Object, value: Any) -> bool | None:
    """Return whether an object shape accepts a value; False for one that is not an object, None if only a regular
    expression or a reference can tell."""
    if not isinstance(value, dict) or not _has_length(value, shape.least, shape.most):
        return False
    fields = {field.name: field for field in shape.fields}
    if any(field.required and field.name not in value for field in shape.fields):
        return False
    # Undeclared members that are left out by default are allowed in a constant, which names them.
    extra = shape.extra if shape.said or shape.extra != NOTHING else ANYTHING
    found = [accepts(fields[key].shape if key in fields else extra, item) for key, item in value.items()]
    return None if shape.keys is not None and value.keys() - fields.keys() else _all_true(found)


MAX_ALTERNATIVES = 64  # alternatives of one `oneOf` that are compared with each other
COMPARISONS_PER_STEP = 8  # comparisons of shapes that take as long as making one
CONSTANTS_PER_COMPARISON = 64  # constants or members in one comparison


def are_disjoint(parts: list[Shape], comparison: OverlapCheck) -> bool:
    """Return whether no value fits two of these shapes; False if that is uncertain, or there are too many shapes or
    comparisons."""
    constants = [part for part in parts if isinstance(part, OneOf)]
    if len(constants) == len(parts):
        return _are_disjoint_constants(constants)
    if len(parts) > MAX_ALTERNATIVES:
        return False
    return not any(comparison.may_overlap(one, part) for at, part in enumerate(parts) for one in parts[:at])


def _are_disjoint_constants(parts: list[OneOf]) -> bool:
    """Return whether no two of these sets of constants have equal values."""
    seen: set[Hashable] = set()
    for part in parts:
        keys = {_comparison_key(json.loads(text)) for text in part.texts}
        if not seen.isdisjoint(keys):
            return False
        seen |= keys
    return True


class OverlapCheck:
    """Tests whether shapes overlap, within a budget of steps. Once it is used up, every two shapes overlap. `weight`
    returns the number of shapes in a shape."""

    def __init__(self, most: int, weight: Callable[[Shape], int]) -> None:
        self.left = most
        self.weight = weight

    def may_overlap(self, one: Shape, other: Shape) -> bool:
        """Return whether some value may fit both shapes; False is certain."""
        return any(self._options_may_overlap(a, b) for a in options(one) for b in options(other))

    def _options_may_overlap(self, one: Shape, other: Shape) -> bool:
        """Return whether some value may fit both shapes, of which neither is a union; False is certain. True for
        references, and once the budget of steps, `left`, is used up; the comparison is counted in it."""
        self.left -= 1
        if self.left < 0 or isinstance(one, ShapeReference) or isinstance(other, ShapeReference):
            return True
        if isinstance(one, OneOf) and isinstance(other, OneOf):
            self.left -= (len(one.texts) + len(other.texts)) // CONSTANTS_PER_COMPARISON
            return not comparison_keys(one).isdisjoint(comparison_keys(other))
        if isinstance(one, OneOf) or isinstance(other, OneOf):
            constants, shape = (one, other) if isinstance(one, OneOf) else (other, one)
            assert isinstance(constants, OneOf)
            values = [json.loads(text) for text in constants.texts]
            self.left -= size_of_constants(values) * self.weight(shape)
            return self.left < 0 or any(accepts(shape, value) is not False for value in values)
        if isinstance(one, Object) and isinstance(other, Object):
            return not self._are_distinguishable(one, other)
        return type(one) is type(other)

    def _are_distinguishable(self, one: Object, other: Object) -> bool:
        """Return whether it is certain that no value fits both object shapes, because a required member of one cannot
        be in the other or has other values there. The comparisons are counted in `left`."""
        if _requires_forbidden_member(one, other) or _requires_forbidden_member(other, one):
            return True
        there = {field.name: field for field in other.fields}
        self.left -= len(there) // CONSTANTS_PER_COMPARISON
        pairs = [(field, there[field.name]) for field in one.fields if field.name in there]
        return any((a.required or b.required) and not self.may_overlap(a.shape, b.shape) for a, b in pairs)


def _requires_forbidden_member(one: Object, other: Object) -> bool:
    """Return whether object `one` must have a member that object `other` cannot have."""
    if not other.said or other.extra != NOTHING:
        return False
    known = {field.name for field in other.fields}
    return any(field.required and field.name not in known for field in one.fields)
