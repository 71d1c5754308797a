"""JSON Schema to shapes. What a grammar cannot say is left out and noted, never an error.

    {"type": "array", "uniqueItems": true}  ->  Array(...)  and  Relaxation(tool, "/uniqueItems", "uniqueItems", "...")

Keywords that apply to the same value are met (`allOf`, `$ref` beside others) where their shapes can be. The schema must
have passed the judgement of `schema.walk`: its references are local and end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.constrain.disjoint import are_disjoint
from rightcall.constrain.member_shapes import MemberShapes, without_keyword
from rightcall.schema.walk import Refs, unquoted
from rightcall.shapes.intersect import (
    MAX_SHAPES,
    Relaxation,
    array_shape,
)
from rightcall.shapes.value_shapes import (
    ANYTHING,
    NOTHING,
    NULL,
    TRUE_FALSE,
    Array,
    Named,
    Number,
    Object,
    Shape,
    TextShape,
    holds,
    one_of,
    options,
    union,
)
from rightcall.types import Json

MAX_DEPTH = 48
MAX_TUPLE = 256  # items of a tuple, for the same reason as MAX_MEMBERS
MAX_CONSTANTS = 50_000  # of one enum, of which each item of a container is one
_IN_PLACE = ("allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef", "not", "if")
_BESIDE = frozenset(_IN_PLACE)
_CONDITIONAL = frozenset(("anyOf", "oneOf", "if", "dependentSchemas", "not"))
_NOTES = frozenset(
    "title description $comment default examples deprecated readOnly writeOnly $defs definitions $schema $id $anchor "
    "$dynamicAnchor $vocabulary contentEncoding contentMediaType contentSchema then else format".split()
)


class Shapes(MemberShapes):
    """Reads the schemas of one tool."""

    def __init__(
        self, tool: str, root: Json, *, extras: bool = False, formats: bool = False, most: int = MAX_SHAPES
    ) -> None:
        super().__init__(tool, most)
        self.root = root
        self.refs = Refs(root)
        self.extras = extras  # undeclared members are allowed where the schema does not speak of them
        self.formats = formats
        self.open: dict[int, str] = {}  # the schemas being read, and the name of each that turned out recursive

    def read(self) -> Shape:
        return self.shape(self.root, "", 0)

    # -- one schema ----------------------------------------------------------------------------------------------------

    def shape(self, schema: Any, path: str, depth: int) -> Shape:
        if not isinstance(schema, dict):
            return NOTHING if schema is False else ANYTHING
        if id(schema) in self.open:
            name = self.open[id(schema)] = self.open[id(schema)] or f"n{len(self.named)}"
            self.named.setdefault(name, None)
            return Named(name)
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            what = "depth" if depth > MAX_DEPTH else "size"
            self.limit(path, what, f"any value: the schema is beyond the {what} a grammar is made for")
            return ANYTHING
        self.open[id(schema)] = ""
        found = self.whole(schema, path, depth)
        name = self.open.pop(id(schema))
        if not name:
            return found
        self.named[name] = found
        return Named(name)

    def whole(self, schema: Json, path: str, depth: int) -> Shape:
        found = self.stated(schema, path, depth)
        if not _BESIDE.isdisjoint(schema):
            for word in _IN_PLACE:
                if word in schema:
                    found = self.in_place(found, word, schema, path, depth)
        if "enum" in schema or "const" in schema:
            # Last, so that the constants meet all that stands beside them.
            found = self.stated_constants(found, schema, path)
        if "unevaluatedProperties" in schema:
            found = self.unevaluated_members(found, schema, path)
        if "unevaluatedItems" in schema and not _lets_all(schema["unevaluatedItems"]):
            self.limit(f"{path}/unevaluatedItems", "unevaluatedItems", "what no other keyword speaks of")
        return found

    def stated_constants(self, found: Shape, schema: Json, path: str) -> Shape:
        word = "const" if "const" in schema else "enum"
        values = [schema["const"]] if word == "const" else schema["enum"]
        if word == "const" and "enum" in schema:
            values = [value for value in values if holds(one_of(schema["enum"]), value)]
        if _count(values, MAX_CONSTANTS) > MAX_CONSTANTS:
            self.limit(f"{path}/{word}", word, f"other values: a grammar is made for at most {MAX_CONSTANTS:,}")
            return found
        return self.constants(found, values, path, word)

    def in_place(self, found: Shape, word: str, schema: Json, path: str, depth: int) -> Shape:
        at = f"{path}/{word}"
        value = schema[word]
        if word in ("allOf", "anyOf", "oneOf"):
            parts = [self.shape(part, f"{at}/{i}", depth + 1) for i, part in enumerate(value)]
            return self.all_of([found, *parts], at) if word == "allOf" else self.one_of(found, parts, word, at)
        if word == "not":
            return self.without(found, value, at)
        if word == "if":
            return self.condition(found, schema, path, depth)
        target = self.refs.get(value)
        if not isinstance(target, (dict, bool)) or word != "$ref":
            self.limit(at, word, "any value: only plain references are followed")
            return found
        return self.intersect(found, self.shape(target, unquoted(value), depth + 1), at)

    def condition(self, found: Shape, schema: Json, path: str, depth: int) -> Shape:
        self.limit(f"{path}/if", "if", "what either branch allows")
        sides = [self.shape(schema.get(word, True), f"{path}/{word}", depth + 1) for word in ("then", "else")]
        return self.intersect(found, union(*sides), f"{path}/if")

    def one_of(self, found: Shape, parts: list[Shape], word: str, at: str) -> Shape:
        if word == "oneOf" and not are_disjoint(parts):
            self.limit(at, "oneOf", "values that fit more than one of the alternatives")
        return self.intersect(found, union(*parts), at)

    def without(self, found: Shape, value: Any, at: str) -> Shape:
        """`not`, where it is about types alone."""
        if _lets_all(value):
            return NOTHING
        if value is False:
            return found
        if isinstance(value, dict) and set(value) - _NOTES == {"type"}:
            said = value["type"] if isinstance(value["type"], list) else [value["type"]]
            return self.without_types(found, said, at)
        self.limit(at, "not", "what it forbids")
        return found

    def without_types(self, found: Shape, said: list[str], at: str) -> Shape:
        kept = [word for word in _KINDS if word not in said]
        if "integer" in said and "number" in kept:
            self.limit(at, "not", "whole numbers")
        return self.intersect(found, union(*(_PLAIN[word] for word in kept)), at)

    def unevaluated_members(self, found: Shape, schema: Json, path: str) -> Shape:
        value = schema["unevaluatedProperties"]
        if _lets_all(value):
            return union(*(_spoken(one) for one in options(found))) if _settled(found) else found
        if value is False and _CONDITIONAL.isdisjoint(schema) and _settled(found):
            return union(*(_closed(one) for one in options(found)))
        self.limit(f"{path}/unevaluatedProperties", "unevaluatedProperties", "what no other keyword speaks of")
        return found

    # -- what the keywords of one level say ----------------------------------------------------------------------------

    def stated(self, schema: Json, path: str, depth: int) -> Shape:
        said = schema.get("type")
        if said is None:
            if not any(word in _WORDS for word in schema):
                return ANYTHING
            kinds: Iterable[str] = _KINDS
        elif isinstance(said, list):
            kinds = [word for word in said if word != "integer"] if "number" in said else said
        else:
            return self.kind(said, schema, path, depth)
        found = [self.kind(word, schema, path, depth) for word in kinds]
        return found[0] if len(found) == 1 else union(*found)

    def kind(self, word: str, schema: Json, path: str, depth: int) -> Shape:
        if word == "string":
            return _ANY_TEXT if _TEXT_WORDS.isdisjoint(schema) else self.text(schema, path)
        if word in ("number", "integer"):
            return self.number(schema, path, word == "integer")
        if word == "object":
            return self.object(schema, path, depth)
        if word == "array":
            return self.array(schema, path, depth)
        return TRUE_FALSE if word == "boolean" else NULL

    def array(self, schema: Json, path: str, depth: int) -> Shape:
        first = schema.get("prefixItems", ())
        if len(first) > MAX_TUPLE:
            self.limit(f"{path}/prefixItems", "prefixItems", f"any items: a grammar is made for at most {MAX_TUPLE}")
            first, schema = (), without_keyword(schema, "items")
        prefix = tuple(self.shape(item, f"{path}/prefixItems/{at}", depth + 1) for at, item in enumerate(first))
        items = self.shape(schema["items"], f"{path}/items", depth + 1) if "items" in schema else ANYTHING
        least, most = self.count(schema, "minItems", path) or 0, self.count(schema, "maxItems", path)
        if schema.get("uniqueItems") is True and (most is None or most > 1):
            self.limit(f"{path}/uniqueItems", "uniqueItems", "items that come twice")
        if "contains" in schema:
            self.contained(schema, path)
        return array_shape(Array(prefix, items, least, most))

    def contained(self, schema: Json, path: str) -> None:
        """What `contains` asks for cannot be said."""
        if schema.get("minContains") != 0:
            self.limit(f"{path}/contains", "contains", "arrays without such an item")
        elif "maxContains" in schema:
            self.limit(f"{path}/maxContains", "maxContains", "more such items")


_KINDS = ("object", "array", "string", "number", "boolean", "null")
_ANY_TEXT = TextShape()
_TEXT_WORDS = frozenset(("minLength", "maxLength", "pattern", "format"))
_PLAIN: dict[str, Shape] = {
    "object": Object(),
    "array": Array((), ANYTHING),
    "string": TextShape(),
    "number": Number(),
    "boolean": TRUE_FALSE,
    "null": NULL,
}
_WORDS = frozenset(
    "properties required additionalProperties patternProperties minProperties maxProperties dependentRequired "
    "dependentSchemas propertyNames items prefixItems minItems maxItems uniqueItems contains minLength maxLength "
    "pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split()
)


def _count(values: list[Any], most: int) -> int:
    """How many values there are, those inside others ten times: each becomes a rule. Beyond `most` only that."""
    count, waiting = len(values), list(values)
    while waiting and count <= most:
        here = waiting.pop()
        inner = list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else []
        count += 10 * len(inner)
        waiting += inner
    return count


def _lets_all(schema: Any) -> bool:
    return schema is True or schema == {}


def _settled(shape: Shape) -> bool:
    return not any(isinstance(one, Named) for one in options(shape))


def _spoken(shape: Shape) -> Shape:
    """The schema says that undeclared members are allowed: a keyword further out cannot forbid them again."""
    return (
        msgspec.structs.replace(shape, extra=ANYTHING, said=True)
        if isinstance(shape, Object) and not shape.said
        else shape
    )


def _closed(shape: Shape) -> Shape:
    if isinstance(shape, Object) and not shape.said:
        return msgspec.structs.replace(shape, extra=NOTHING, said=True)
    return shape


__all__ = ["Relaxation", "Shapes"]
