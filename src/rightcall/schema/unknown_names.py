"""Arguments of a name that the schema does not know, at any depth, where it does not allow for any in so many words.

A schema without `additionalProperties` lets every name pass; a model that writes `UNIT` for `unit` still meant `unit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.schema.places import Places
from rightcall.schema.validation import Kept, compile_schema, fits, judge_of
from rightcall.types import Json, Tool

_OPEN = frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf")
)
_CALLED = frozenset(("arguments", "parameters", "args", "kwargs", "input"))  # what a call has its arguments under
_NAMED = frozenset(("name", "function", "tool"))
_MOST_CLOSED = 5_000  # keywords: compiled once more, a schema takes as much memory again
_ELSEWHERE = frozenset(("$ref", "anyOf", "oneOf"))


class KnownShape:
    """What of a schema matters here: the names it declares, and the places below that declare some."""

    __slots__ = ("inner", "items", "names")

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.inner: dict[str, KnownShape] = {}
        self.items: KnownShape | None = None


def strangers(tool: Tool, arguments: Any) -> list[list[Any]]:
    """The places of all such arguments."""
    found: list[list[Any]] = []
    shape = _asked_of(tool)[2]
    if shape is not None:
        _look(arguments, shape, [], found)
    return found


def is_settled(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Do the arguments fit, with no stranger among them and no alias, and are they no call themselves? Then there is
    nothing to repair. It is asked of every call: what the tool has to say to it is looked up once."""
    _, is_closed, _ = _ASKED.found.get(id(tool)) or _asked_of(tool)
    if tool.aliases or (not _NAMED.isdisjoint(arguments) and _may_be_call(arguments)):
        return False
    if len(arguments) == 1 and is_schema_echo(tool, arguments):
        return False
    try:
        if is_closed(arguments):
            return True
    except ValueError:  # a lone surrogate
        pass
    return fits(tool, arguments) and not strangers(tool, arguments)


def is_schema_echo(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Are the arguments inside an undeclared object named `properties`, as in the schema of the tool?

    LFM2 writes `f(properties={...})` (ml-explore/mlx-swift-lm#481). A tool that allows any name may be meant to get it.
    """
    schema = tool.parameters
    declared = schema.get("properties")
    is_open = not _OPEN.isdisjoint(schema) and schema.get("additionalProperties") is not False
    is_wrapped = arguments.keys() == {"properties"} and isinstance(arguments["properties"], dict)
    return is_wrapped and not is_open and isinstance(declared, dict) and "properties" not in declared


def _may_be_call(arguments: dict[str, Any]) -> bool:
    """Is a name among the arguments, and what a call has beside one?"""
    return isinstance(arguments.get("function"), dict) or not _CALLED.isdisjoint(arguments)


def _look(value: Any, shape: KnownShape, where: list[Any], found: list[list[Any]]) -> None:
    if isinstance(value, dict):
        if shape.names and not value.keys() <= shape.names:
            found += [[*where, key] for key in value if key not in shape.names]
        for key in shape.inner if len(shape.inner) < len(value) else value:
            if key in value and key in shape.inner:
                _look(value[key], shape.inner[key], [*where, key], found)
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            _look(item, shape.items, [*where, index], found)


_ASKED: Kept[tuple[Tool, Callable[[Any], bool], KnownShape | None]] = Kept()


def _asked_of(tool: Tool) -> tuple[Tool, Callable[[Any], bool], KnownShape | None]:
    """What tells at once that arguments fit and no stranger is among them, and their shape. The tool is kept beside it:
    an id is only unique among the living."""
    found = _ASKED.found.get(id(tool))
    if found is None:
        judge = judge_of(tool)
        shape = _shape(tool.parameters, Places(tool.parameters))
        is_small = judge.held <= _MOST_CLOSED and judge.is_always_light
        closed = _closed(judge.schema, shape) if is_small else None
        is_closed = _never if closed is None else compile_schema(closed).is_valid
        found = _ASKED.keep(tool, (tool, is_closed, shape), 2 * judge.held)
    return found


def _never(arguments: Any) -> bool:
    return False


def _closed(schema: Any, shape: KnownShape | None) -> Any:
    """The schema without room for strangers; None where a place that may hold some is not its own (`$ref`)."""
    if shape is None:
        return schema
    declared = schema.get("properties", {})
    if not _ELSEWHERE.isdisjoint(schema) or not declared.keys() >= {*shape.names, *shape.inner}:
        return None
    made = {**schema, "additionalProperties": False} if shape.names else {**schema}
    if declared:
        made["properties"] = {key: _closed(each, shape.inner.get(key)) for key, each in declared.items()}
    if shape.items is not None:
        made["items"] = _closed(schema["items"], shape.items)
    return None if None in (made.get("items", True), *made.get("properties", {}).values()) else made


def _shape(root: Any, places: Places) -> KnownShape | None:
    """None where nothing is declared. A schema that holds itself has a shape that does."""
    made: dict[int, KnownShape] = {}
    waiting: list[Json] = []

    def shape(schema: Any) -> KnownShape | None:
        schema = places.only(schema)
        if not isinstance(schema, dict) or ("properties" not in schema and "items" not in schema):
            return None
        if id(schema) not in made:
            declared = schema.get("properties")
            names = declared if isinstance(declared, dict) and _OPEN.isdisjoint(schema) else {}
            made[id(schema)] = KnownShape(frozenset(names))
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
