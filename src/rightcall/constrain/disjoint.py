"""Alternatives of which at most one can fit: where a `oneOf` says no more than an `anyOf`.

Told by kinds, by constants, or by a member that has constants. What cannot be told counts as overlapping.
"""

from __future__ import annotations

import json

from rightcall.shapes.value_shapes import NOTHING, Named, Object, OneOf, Shape, holds, judge, one_of, options

MAX_APART = 64  # alternatives of one `oneOf` that are compared with each other


def are_disjoint(parts: list[Shape]) -> bool:
    """Can at most one of these fit?"""
    constants = [part for part in parts if isinstance(part, OneOf)]
    if len(constants) == len(parts):
        return _all_differ([text for part in constants for text in part.texts])
    if len(parts) > MAX_APART:
        return False
    return not any(_overlap(one, part) for at, part in enumerate(parts) for one in parts[:at])


def _all_differ(texts: list[str]) -> bool:
    whole = one_of([json.loads(text) for text in texts])
    return isinstance(whole, OneOf) and len(whole.texts) == len(texts) and not _same_numbers(texts)


def _same_numbers(texts: list[str]) -> bool:
    """Is one number spelled in two ways, as 1 and 1.0 are?"""
    numbers = [float(text) for text in texts if text[0] in "-0123456789" and len(text) < 300]
    return len(set(numbers)) < len(numbers)


def _overlap(one: Shape, other: Shape) -> bool:
    return any(_options_overlap(a, b) for a in options(one) for b in options(other))


def _options_overlap(one: Shape, other: Shape) -> bool:
    if isinstance(one, Named) or isinstance(other, Named):
        return True
    if isinstance(one, OneOf):
        return _takes_one(other, one)
    if isinstance(other, OneOf):
        return _takes_one(one, other)
    if isinstance(one, Object) and isinstance(other, Object):
        return not _told_apart(one, other)
    return type(one) is type(other)


def _takes_one(shape: Shape, constants: OneOf) -> bool:
    """May one of the constants be of this shape?"""
    if isinstance(shape, OneOf):
        is_one = judge(shape)
        return not set(constants.texts).isdisjoint(shape.texts) or any(
            is_one(json.loads(text)) for text in constants.texts
        )
    return any(holds(shape, json.loads(text)) is not False for text in constants.texts)


def _told_apart(one: Object, other: Object) -> bool:
    """Does a required member have constants that the other does not, or is a required member of one no member there?"""
    if _needs_foreign(one, other) or _needs_foreign(other, one):
        return True
    there = {field.name: field for field in other.fields}
    pairs = [(field, there[field.name]) for field in one.fields if field.name in there]
    return any((a.required or b.required) and not _overlap(a.shape, b.shape) for a, b in pairs)


def _needs_foreign(one: Object, other: Object) -> bool:
    """Must the one have a member that the other cannot have?"""
    if not other.said or other.extra != NOTHING:
        return False
    known = {field.name for field in other.fields}
    return any(field.required and field.name not in known for field in one.fields)
