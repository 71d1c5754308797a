"""Arguments of a name that the schema does not know, at any depth, where it does not allow for any in so many words.

A schema without `additionalProperties` lets every name pass; a model that writes `UNIT` for `unit` still meant `unit`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rightcall.declare.compiled import Kept, judge_of
from rightcall.declare.places import Places
from rightcall.declare.validation import fits
from rightcall.types import Json, Tool

_OPEN = frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf")
)


class Shape:
    """What of a schema matters here: the names it declares, and the places below that declare some."""

    __slots__ = ("inner", "items", "names")

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.inner: dict[str, Shape] = {}
        self.items: Shape | None = None


def strangers(tool: Tool, arguments: Any) -> list[list[Any]]:
    """The places of all such arguments."""
    found: list[list[Any]] = []
    shape = _asked_of(tool)[2]
    if shape is not None:
        _look(arguments, shape, [], found)
    return found


def is_settled(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Do the arguments fit, with no stranger among them and no alias? Then there is nothing to repair. It is asked of
    every call: what the tool has to say to it is looked up once."""
    _, is_valid, shape = _ASKED.found.get(id(tool)) or _asked_of(tool)
    try:
        if not is_valid(arguments):
            return False
    except ValueError:  # a lone surrogate
        if not fits(tool, arguments):
            return False
    if tool.aliases:
        return False
    return shape is None or _has_none(arguments, shape) or not strangers(tool, arguments)


def _has_none(value: Any, shape: Shape) -> bool:
    """Are all names known, in objects inside objects? Lists are for `_look`."""
    if type(value) is not dict:
        return shape.items is None
    if shape.names and not shape.names.issuperset(value):
        return False
    for key in shape.inner if len(shape.inner) < len(value) else value:
        if key in value and key in shape.inner and not _has_none(value[key], shape.inner[key]):
            return False
    return True


def _look(value: Any, shape: Shape, where: list[Any], found: list[list[Any]]) -> None:
    if isinstance(value, dict):
        if shape.names and not value.keys() <= shape.names:
            found += [[*where, key] for key in value if key not in shape.names]
        for key in shape.inner if len(shape.inner) < len(value) else value:
            if key in value and key in shape.inner:
                _look(value[key], shape.inner[key], [*where, key], found)
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            _look(item, shape.items, [*where, index], found)


_ASKED: Kept[tuple[Tool, Callable[[Any], bool], Shape | None]] = Kept()


def _asked_of(tool: Tool) -> tuple[Tool, Callable[[Any], bool], Shape | None]:
    """What judges its arguments, and their shape. The tool is kept beside it: an id is only unique among the living."""
    found = _ASKED.found.get(id(tool))
    if found is None:
        judge = judge_of(tool)
        asked = judge.ask.is_valid if judge.is_always_light else partial(fits, tool)
        found = _ASKED.keep(tool, (tool, asked, _shape(tool.parameters, Places(tool.parameters))), judge.held)
    return found


def _shape(root: Any, places: Places) -> Shape | None:
    """None where nothing is declared. A schema that holds itself has a shape that does."""
    made: dict[int, Shape] = {}
    waiting: list[Json] = []

    def shape(schema: Any) -> Shape | None:
        schema = places.only(schema)
        if not isinstance(schema, dict) or ("properties" not in schema and "items" not in schema):
            return None
        if id(schema) not in made:
            declared = schema.get("properties")
            names = declared if isinstance(declared, dict) and _OPEN.isdisjoint(schema) else {}
            made[id(schema)] = Shape(frozenset(names))
            waiting.append(schema)
        return made[id(schema)]

    found = shape(root)
    while waiting:  # not one inside another: a chain of references may be as long as the schema
        schema = waiting.pop()
        declared = schema.get("properties")
        here = made[id(schema)]
        here.items = shape(schema.get("items"))
        inner = {key: shape(each) for key, each in declared.items()} if isinstance(declared, dict) else {}
        here.inner = {key: each for key, each in inner.items() if each is not None}
    return found
