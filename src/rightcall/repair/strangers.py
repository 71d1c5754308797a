"""Arguments of a name that the schema does not know, at any depth, where it does not allow for any in so many words.

A schema without `additionalProperties` lets every name pass; a model that writes `UNIT` for `unit` still meant `unit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.declare.places import Places
from rightcall.declare.validation import compile_schema, fits, validator
from rightcall.types import Tool

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
    _, is_closed, _ = _ASKED.get(id(tool)) or _asked_of(tool)
    if tool.aliases:
        return False
    try:
        if is_closed(arguments):
            return True
    except ValueError:  # a lone surrogate
        pass
    return fits(tool, arguments) and not strangers(tool, arguments)


def _look(value: Any, shape: Shape, where: list[Any], found: list[list[Any]]) -> None:
    if isinstance(value, dict):
        if shape.names and not value.keys() <= shape.names:
            found += [[*where, key] for key in value if key not in shape.names]
        for key, inner in shape.inner.items():
            if key in value:
                _look(value[key], inner, [*where, key], found)
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            _look(item, shape.items, [*where, index], found)


_ASKED: dict[int, tuple[Tool, Callable[[Any], bool], Shape | None]] = {}


def _asked_of(tool: Tool) -> tuple[Tool, Callable[[Any], bool], Shape | None]:
    """What tells that arguments fit and no stranger is among them, and their shape. The tool is kept beside it: an id
    is only unique among the living."""
    if id(tool) not in _ASKED:
        if len(_ASKED) > 4096:
            _ASKED.clear()
        places = Places(tool.parameters)
        shape, closed = _shape(tool.parameters, places, {}), _closed(tool.parameters, places)
        is_closed = _never if closed is None else compile_schema(tool.name, closed).is_valid
        _ASKED[id(tool)] = (tool, validator(tool).is_valid if shape is None else is_closed, shape)
    return _ASKED[id(tool)]


def _never(arguments: Any) -> bool:
    return False


def _closed(schema: Any, places: Places) -> Any:
    """The schema without room for strangers; None where a place that may hold some is not its own (`$ref`)."""
    if places.only(schema) is not schema:
        return None
    if not isinstance(schema, dict):
        return schema
    made, declared = dict(schema), schema.get("properties")
    if isinstance(declared, dict):
        made["properties"] = {key: _closed(each, places) for key, each in declared.items()}
        if declared and _OPEN.isdisjoint(schema):
            made["additionalProperties"] = False
    if "items" in schema:
        made["items"] = _closed(schema["items"], places)
    inside = [made.get("items", True), *made.get("properties", {}).values()]
    return None if any(each is None for each in inside) else made


def _shape(schema: Any, places: Places, made: dict[int, Shape]) -> Shape | None:
    """None where nothing is declared. A schema that holds itself has a shape that does."""
    schema = places.only(schema)
    if not isinstance(schema, dict) or ("properties" not in schema and "items" not in schema):
        return None
    if id(schema) in made:
        return made[id(schema)]
    declared = schema.get("properties")
    declared = declared if isinstance(declared, dict) else {}
    shape = made[id(schema)] = Shape(frozenset(declared) if _OPEN.isdisjoint(schema) else frozenset())
    shape.items = _shape(schema.get("items"), places, made)
    shape.inner = {key: inner for key in declared if (inner := _shape(declared[key], places, made)) is not None}
    return shape if shape.names or shape.inner or shape.items else None
