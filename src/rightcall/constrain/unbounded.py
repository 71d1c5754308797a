"""Shapes that no finite value has, such as an object that must hold another of itself: a model held to one never ends.

{"properties": {"x": {"$ref": "#"}}, "required": ["x"]}   ->   NOTHING
"""

from __future__ import annotations

import msgspec

from rightcall.shapes.intersect import array_shape, object_shape
from rightcall.shapes.value_shapes import NOTHING, Array, Field, Named, Object, Shape, Union, union

_ROUNDS = 64  # what is not settled by then is taken to end

Known = dict[str, Shape | None]


def without_endless(shape: Shape, named: Known) -> tuple[Shape, Known]:
    """The same where what never ends is nothing: a member that may be left out then is."""
    ending = _ending_names(named)
    if ending is None or len(ending) == len(named):
        return shape, named
    kept: Known = {name: inner and _pruned(inner, ending) for name, inner in named.items() if name in ending}
    return _pruned(shape, ending), kept


def _ending_names(named: Known) -> set[str] | None:
    """Those whose shapes have a finite value; None if it would take too long to tell."""
    ending: set[str] = set()
    for _ in range(_ROUNDS):
        size = len(ending)
        for name, inner in named.items():
            if name not in ending and (inner is None or _ends(inner, ending)):
                ending.add(name)
        if len(ending) == size:
            return ending
    return None


def _ends(shape: Shape, ending: set[str]) -> bool:
    """Has it a finite value, if these names have?"""
    match shape:
        case Named(name):
            return name in ending
        case Union(options):
            return any(_ends(one, ending) for one in options)
        case Array(prefix, items, least):
            needed = prefix[:least] if least <= len(prefix) else (*prefix, items)
            return all(_ends(one, ending) for one in needed)
        case Object(fields):
            return all(_ends(field.shape, ending) for field in fields if field.required)
    return True


def _pruned(shape: Shape, ending: set[str]) -> Shape:
    match shape:
        case Named(name):
            return shape if name in ending else NOTHING
        case Union(options):
            return union(*(_pruned(one, ending) for one in options))
        case Array(prefix, items):
            first = tuple(_pruned(one, ending) for one in prefix)
            return array_shape(msgspec.structs.replace(shape, prefix=first, items=_pruned(items, ending)))
        case Object(fields, extra):
            made = tuple(Field(one.name, _pruned(one.shape, ending), one.required) for one in fields)
            return object_shape(msgspec.structs.replace(shape, fields=made, extra=_pruned(extra, ending)))
    return shape
