"""Find arguments with undeclared names, at any depth, where the schema does not explicitly allow any name.

A schema without `additionalProperties` accepts every name; a model that writes `UNIT` for `unit` still meant `unit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.schema.places import Places
from rightcall.schema.validation import ToolCache, compile_schema, compiled_schema, fits_schema
from rightcall.types import Json, Tool

_OPEN = frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf")
)
_ARGUMENT_KEYS = frozenset(("arguments", "parameters", "args", "kwargs", "input"))  # of a call
_NAME_KEYS = frozenset(("name", "function", "tool"))
_MAX_CLOSED = 5_000  # keywords: a second validator takes as much memory again
_ELSEWHERE = frozenset(("$ref", "anyOf", "oneOf"))


class KnownShape:
    """The names that a schema declares, and the shapes below it that declare some. If `names` is None, any name is
    allowed at this level."""

    __slots__ = ("inner", "items", "names")

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.inner: dict[str, KnownShape] = {}
        self.items: KnownShape | None = None


def unknown_arguments(tool: Tool, arguments: Any) -> list[list[Any]]:
    """Return the places, as paths, of all arguments with undeclared names, outer ones first; [] if there are none.
    Where the schema has one of the keywords in `_OPEN`, or declares no properties, any name is allowed."""
    found: list[list[Any]] = []
    shape = _shape_of(tool)[2]
    if shape is not None:
        _find_unknown(arguments, shape, [], found)
    return found


def needs_no_repair(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether the arguments fit the schema, have no undeclared names, and are not a call themselves; False for a
    tool with aliases.

    It is called for every call, so what it needs of the tool is cached."""
    _, is_closed, _ = _SHAPES.found.get(id(tool)) or _shape_of(tool)
    if tool.aliases or (not _NAME_KEYS.isdisjoint(arguments) and _may_be_call(arguments)):
        return False
    if len(arguments) == 1 and is_schema_echo(tool, arguments):
        return False
    try:
        if is_closed(arguments):
            return True
    except ValueError:  # a lone surrogate
        pass
    return fits_schema(tool, arguments) and not unknown_arguments(tool, arguments)


def is_schema_echo(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether the arguments are only an object named `properties`, copied from the schema of the tool, which
    neither declares that name nor allows any name.

    LFM2 writes `f(properties={...})` (ml-explore/mlx-swift-lm#481)."""
    schema = tool.parameters
    declared = schema.get("properties")
    is_open = not _OPEN.isdisjoint(schema) and schema.get("additionalProperties") is not False
    is_wrapped = arguments.keys() == {"properties"} and isinstance(arguments["properties"], dict)
    return is_wrapped and not is_open and isinstance(declared, dict) and "properties" not in declared


def _may_be_call(arguments: dict[str, Any]) -> bool:
    """Return whether the arguments look like a call: they have an object `function`, or a key that calls use for
    their arguments."""
    return isinstance(arguments.get("function"), dict) or not _ARGUMENT_KEYS.isdisjoint(arguments)


def _find_unknown(value: Any, shape: KnownShape, where: list[Any], found: list[list[Any]]) -> None:
    """Append to `found` the places of undeclared names in a value, at any depth. `shape` has the declared names,
    `where` is the place of the value."""
    if isinstance(value, dict):
        if shape.names and not value.keys() <= shape.names:
            found += [[*where, key] for key in value if key not in shape.names]
        for key in shape.inner if len(shape.inner) < len(value) else value:
            if key in value and key in shape.inner:
                _find_unknown(value[key], shape.inner[key], [*where, key], found)
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            _find_unknown(item, shape.items, [*where, index], found)


_SHAPES: ToolCache[tuple[Tool, Callable[[Any], bool], KnownShape | None]] = ToolCache()


def _shape_of(tool: Tool) -> tuple[Tool, Callable[[Any], bool], KnownShape | None]:
    """Return the tool, a predicate and the shape of its schema, from the cache if they are there. If the predicate is
    true, arguments fit and have no undeclared names; if not, nothing is known. The shape is None if the schema declares
    nothing. The tool is kept because an id is only unique among living objects."""
    found = _SHAPES.found.get(id(tool))
    if found is None:
        compiled = compiled_schema(tool)
        shape = _build_shape(tool.parameters, Places(tool.parameters))
        is_small = compiled.keyword_count <= _MAX_CLOSED and compiled.is_always_light
        closed = _close_schema(compiled.schema, shape) if is_small else None
        is_closed = _always_false if closed is None else compile_schema(closed).is_valid
        found = _SHAPES.store(tool, (tool, is_closed, shape), 2 * compiled.keyword_count)
    return found


def _always_false(arguments: Any) -> bool:
    """Return False for any arguments."""
    return False


def _close_schema(schema: Any, shape: KnownShape | None) -> Any:
    """Return a copy of the schema that forbids undeclared names in all places of the shape; the schema itself without a
    shape. None if that cannot be expressed, since a place is behind a reference or an alternative."""
    if shape is None:
        return schema
    declared = schema.get("properties", {})
    if not _ELSEWHERE.isdisjoint(schema) or not declared.keys() >= {*shape.names, *shape.inner}:
        return None
    made = {**schema, "additionalProperties": False} if shape.names else {**schema}
    if declared:
        made["properties"] = {key: _close_schema(each, shape.inner.get(key)) for key, each in declared.items()}
    if shape.items is not None:
        made["items"] = _close_schema(schema["items"], shape.items)
    return None if None in (made.get("items", True), *made.get("properties", {}).values()) else made


def _build_shape(root: Any, places: Places) -> KnownShape | None:
    """Return the declared names of a schema and of those inside it as a shape; None if it has neither properties nor
    items. The shape of a recursive schema is recursive."""
    made: dict[int, KnownShape] = {}
    waiting: list[Json] = []

    def shape(schema: Any) -> KnownShape | None:
        """Return the shape of one schema, registered to be filled later if it is new; None if it has neither properties
        nor items."""
        schema = places.without_null(schema)
        if not isinstance(schema, dict) or ("properties" not in schema and "items" not in schema):
            return None
        if id(schema) not in made:
            declared = schema.get("properties")
            names = declared if isinstance(declared, dict) and _OPEN.isdisjoint(schema) else {}
            made[id(schema)] = KnownShape(frozenset(names))
            waiting.append(schema)
        return made[id(schema)]

    found = shape(root)
    while waiting:  # without recursion: a chain of references may be as long as the schema
        schema = waiting.pop()
        declared = schema.get("properties")
        here = made[id(schema)]
        here.items = shape(schema.get("items"))
        inner = {key: shape(each) for key, each in declared.items()} if isinstance(declared, dict) else {}
        here.inner = {key: each for key, each in inner.items() if each is not None}
    return found
