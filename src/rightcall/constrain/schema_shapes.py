"""JSON Schema to shapes. What a grammar cannot express is left out and reported, never an error.

    {"type": "array", "uniqueItems": true}  ->  Array(...)  and  Relaxation(tool, "/uniqueItems", "uniqueItems", "...")

Keywords that apply to the same value are intersected (`allOf`, `$ref` next to others). The schema must have been
accepted by `schema.definition`: its references are local and end.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from rightcall.constrain.algebra import MAX_ANY_ORDER
from rightcall.constrain.intersect import (
    IN_LARK,
    MAX_SHAPES,
    PATTERN_SHARE,
    Intersection,
    Relaxation,
    array_shape,
    number_shape,
    object_shape,
)
from rightcall.constrain.patterns import FORMAT_LIMITS, FORMAT_PATTERNS, Irregular, read_format, read_pattern
from rightcall.constrain.value_shapes import (
    ANYTHING,
    COMPARISONS_PER_STEP,
    KINDS,
    NOTHING,
    NULL,
    TRUE_FALSE,
    Array,
    Field,
    Number,
    Object,
    OneOf,
    OverlapCheck,
    Shape,
    ShapeReference,
    TextShape,
    accepts,
    are_disjoint,
    has_no_surrogate,
    most_members,
    one_of,
    options,
    size_of_constants,
    union,
)
from rightcall.schema.limits import pattern_size
from rightcall.schema.walk import Refs, fragment_of, schemas_in_place
from rightcall.strict_json import pointer_step
from rightcall.types import Json

MAX_DIGITS = 40  # of a bound
MAX_COUNT = 2_000  # engines refuse counted repeats beyond this
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_NUMBER_WORDS = frozenset((*_BOUNDS, "multipleOf"))
_ANY_INTEGER, _ANY_NUMBER = (number_shape(Number(integer, None, None, False, False)) for integer in (True, False))


class ScalarShapes(Intersection):
    """Reads texts, numbers and counts."""

    formats = False  # whether `format` is asserted

    def read_count(self, schema: Json, word: str, path: str) -> int | None:
        """Return the value of a keyword that counts, such as `minLength`; None if the schema does not have it. A value
        above `MAX_COUNT` is reported in `limits`; then a minimum is `MAX_COUNT`, and a maximum is None."""
        value = schema.get(word)
        if value is None:
            return None
        value = int(value)
        if value > MAX_COUNT:
            self.limit(f"{path}/{word}", word, f"any count beyond {MAX_COUNT}" if word.startswith("max") else "fewer")
            return None if word.startswith("max") else MAX_COUNT
        return value

    def read_string(self, schema: Json, path: str) -> Shape:
        """Return the shape of the texts that the keywords for strings accept; `NOTHING` if no length is allowed. A
        pattern or format that is too large or not supported, and a format beside a pattern, is left out, which is
        reported in `limits`."""
        least, most = self.read_count(schema, "minLength", path) or 0, self.read_count(schema, "maxLength", path)
        if most is not None and least > most:
            return NOTHING
        pattern, word = schema.get("pattern"), "pattern"
        if self.formats and schema.get("format") in FORMAT_PATTERNS:
            if pattern is None:
                pattern, word = FORMAT_PATTERNS[schema["format"]], "format"
                if schema["format"] in FORMAT_LIMITS:
                    self.limit(f"{path}/format", "format", FORMAT_LIMITS[schema["format"]])
            else:
                self.limit(f"{path}/format", "format", "texts that match only the pattern beside it")
        if pattern is None:
            return TextShape(least, most)
        self.left -= pattern_size(pattern) // PATTERN_SHARE
        if self.left < 0:
            self.limit(f"{path}/{word}", word, "any text: the patterns exceed the size limit of a grammar")
            return TextShape(least, most)
        try:
            node = read_format(schema["format"]) if word == "format" else read_pattern(pattern)
        except Irregular as why:
            self.limit(f"{path}/{word}", word, f"any text: {why}")
            return TextShape(least, most)
        return self.limit_pattern(node, least, most, path)

    def read_number(self, schema: Json, path: str, integer: bool) -> Shape:
        """Return the range of the numbers that the keywords for numbers accept, of integers with `integer`; `NOTHING`
        if it is empty. Reported in `limits`: a bound with too many digits, which is left out, and a `multipleOf` other
        than 1, of which only that a whole one allows no fractions is kept."""
        if _NUMBER_WORDS.isdisjoint(schema):
            return _ANY_INTEGER if integer else _ANY_NUMBER
        bounds = {
            word: schema[word] for word in _BOUNDS if word in schema and self.is_small_bound(schema[word], word, path)
        }
        low, low_open = _tighter_limit(bounds.get("minimum"), bounds.get("exclusiveMinimum"), max)
        high, high_open = _tighter_limit(bounds.get("maximum"), bounds.get("exclusiveMaximum"), min)
        step_ = schema.get("multipleOf")
        if step_ is not None:
            whole = Decimal(repr(step_)) if isinstance(step_, float) else Decimal(step_)
            if whole == 1:
                integer = True
            else:
                self.limit(f"{path}/multipleOf", "multipleOf", "any number within the bounds")
                integer = integer or whole == whole.to_integral_value()
        return number_shape(Number(integer, low, high, low_open, high_open))

    def is_small_bound(self, value: float, word: str, path: str) -> bool:
        """Return whether the bound `value` of the keyword `word` has at most `MAX_DIGITS` digits, so that it can be
        written out. If not, report in `limits` that it is not enforced."""
        small = abs(value) < 10**MAX_DIGITS and (isinstance(value, int) or len(f"{_decimal(value):f}") <= MAX_DIGITS)
        if not small:
            self.limit(f"{path}/{word}", word, "any number: the bound has too many digits")
        return small


def _tighter_limit(inside: Any, outside: Any, tighter: Any) -> tuple[Decimal | None, bool]:
    """Return the tighter of an inclusive and an exclusive bound (None: not given), and whether it is exclusive; (None,
    False) without bounds. `tighter` is `max` for lower bounds, `min` for upper ones."""
    if inside is None or outside is None:
        one = inside if outside is None else outside
        return (None, False) if one is None else (_decimal(one), inside is None)
    within, beyond = _decimal(inside), _decimal(outside)
    best = tighter(within, beyond)
    return best, beyond == best


def _decimal(value: float) -> Decimal:
    """Return a number as a `Decimal` with the digits that it is written with."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


class MemberShapes(ScalarShapes):
    """Reads objects."""

    extras = False  # undeclared members are allowed where the schema does not mention them

    def shape(self, schema: Any, path: str, depth: int) -> Shape:
        """Return the shape of a schema; the subclass reads all keywords."""
        raise NotImplementedError

    def read_object(self, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape of the objects that the keywords for objects accept; `NOTHING` if there are none. With too
        many members it is any object. Constraints that no shape expresses are reported in `limits`."""
        declared = {key: value for key, value in schema.get("properties", {}).items() if has_no_surrogate(key)}
        required = dict.fromkeys(schema.get("required", ()))
        if not all(map(has_no_surrogate, required)):
            return NOTHING
        undeclared = [key for key in required if key not in declared]
        if self.are_too_many_members(len(declared) + len(undeclared), path):
            return Object()
        patterns: Json = schema.get("patternProperties", {})
        matching = self.match_names(patterns, [*declared, *undeclared]) if patterns else {}
        if matching is None:
            self.limit(f"{path}/patternProperties", "patternProperties", "any value under a name that they match")
            schema = {**without_keyword(schema, "patternProperties"), "additionalProperties": True}
            matching = {}
        extra, keys, said = self.read_undeclared(schema, path, depth)
        fields = [
            Field(key, self.shape(value, f"{path}/properties{pointer_step(key)}", depth + 1), key in required)
            for key, value in declared.items()
        ]
        fields += [
            self.undeclared_required(key, bool(matching.get(key)), schema, extra, path, depth) for key in undeclared
        ]
        if matching:
            fields = [self.apply_name_patterns(field, matching[field.name], schema, path, depth) for field in fields]
        self.report_dependent_members(schema, path)
        least, most = self.read_count(schema, "minProperties", path), self.read_count(schema, "maxProperties", path)
        found = object_shape(Object(tuple(fields), extra, keys, least or 0, most, said))
        found = self.drop_member_limits(found, f"{path}/minProperties", f"{path}/maxProperties")
        for key, value in schema.get("dependentSchemas", {}).items():
            at = f"{path}/dependentSchemas{pointer_step(key)}"
            part = self.shape(value, at, depth + 1)
            if key not in required:
                self.limit(f"{path}/dependentSchemas", "dependentSchemas", "members that it forbids")
                part = self.either([part, ANYTHING], at)
            found = self.intersect(found, part, at)
        return found

    def either(self, parts: list[Shape], path: str) -> Shape:
        """Return a shape for the values that any of the alternatives accepts. If one of them is any value, the members
        that the others declare may still be written, with any values. `ANYTHING` if these declare none, or too many,
        which is reported in `limits`."""
        if ANYTHING not in parts:
            return union(*parts)
        names = self.declared_names(parts)
        if not names or self.are_too_many_members(len(names), path):
            return ANYTHING
        fields = tuple(Field(name, ANYTHING) for name in names)
        return self.count_reuse(union(Object(fields, ANYTHING if self.extras else NOTHING), *KINDS[1:]))

    def report_dependent_members(self, schema: Json, path: str) -> None:
        """Report in `limits` the keywords of the schema that relate members to each other or check their names, which a
        grammar cannot express; nothing without such keywords."""
        for word in ("dependentRequired", "propertyNames"):
            if word in schema and schema[word] not in ({}, True):
                self.limit(f"{path}/{word}", word, "members that it forbids")

    def read_undeclared(self, schema: Json, path: str, depth: int) -> tuple[Shape, Any, bool]:
        """Return the shape of undeclared members, the pattern of their names (None: any name), and whether the
        schema mentions them."""
        said = "additionalProperties" in schema
        patterns: Json = schema.get("patternProperties", {})
        if said:
            extra = self.shape(schema["additionalProperties"], f"{path}/additionalProperties", depth + 1)
        else:
            extra = ANYTHING if self.extras or "properties" not in schema or patterns else NOTHING
        if not patterns:
            return extra, None, said
        return self.read_name_patterns(patterns, extra, said, path, depth)

    def read_name_patterns(
        self, patterns: Json, extra: Shape, said: bool, path: str, depth: int
    ) -> tuple[Shape, Any, bool]:
        """Return the shape of undeclared members, the pattern of their names (None: any name), and whether the schema
        mentions them, for a schema with these `patternProperties`; `extra` is the shape of all other members. If no
        shape expresses it, undeclared members may have any value, which is reported in `limits`."""
        at = f"{path}/patternProperties"
        shapes = {key: self.shape(value, at + pointer_step(key), depth + 1) for key, value in patterns.items()}
        if extra == NOTHING and len(patterns) == 1:
            ((pattern, shape),) = shapes.items()
            self.left -= pattern_size(pattern) // PATTERN_SHARE
            try:
                if self.left >= 0:
                    return shape, read_pattern(pattern), True
            except Irregular:
                pass
        if all(shape == extra for shape in shapes.values()):
            return extra, None, said
        self.limit(at, "patternProperties", "any value under an undeclared name")
        return ANYTHING, None, True

    def apply_name_patterns(self, field: Field, patterns: list[str], schema: Json, path: str, depth: int) -> Field:
        """Return a member, intersected with the schemas of the `patterns` that its name matches."""
        shape = field.shape
        for pattern in patterns:
            at = f"{path}/patternProperties{pointer_step(pattern)}"
            shape = self.intersect(shape, self.shape(schema["patternProperties"][pattern], at, depth + 1), at)
        return Field(field.name, shape, field.required) if patterns else field

    def undeclared_required(self, key: str, matched: bool, schema: Json, extra: Shape, path: str, depth: int) -> Field:
        """Return the field of a member that is required but not declared. Its shape is given by
        `additionalProperties`; it is `ANYTHING` without that, or if its name is `matched` by a pattern, which then
        gives its shape."""
        if "additionalProperties" not in schema or matched:
            return Field(key, ANYTHING, True, evaluated=False)
        if "patternProperties" in schema:  # `extra` is the shape of the names that match one
            extra = self.shape(schema["additionalProperties"], path, depth + 1)
        return Field(key, extra, True)


def without_keyword(schema: Json, left_out: str) -> Json:
    """Return a copy of the schema without one keyword."""
    return {word: value for word, value in schema.items() if word != left_out}


MAX_DEPTH = 48
MAX_TUPLE = 256  # items of a tuple, for the same reason as MAX_MEMBERS
MAX_CONSTANTS = 50_000  # of one enum
CONSTANTS_PER_ITEM = 10  # an item of a container in a constant becomes a rule
CONSTANTS_READ_PER_STEP = 256
_IN_PLACE = ("allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef", "not", "if")
_BESIDE = frozenset(_IN_PLACE)
_ALWAYS = ("allOf", "oneOf", "$ref")  # of `oneOf`, one alternative and no other applies
_CONDITIONAL = ("anyOf", "if", "then", "else", "dependentSchemas", "$dynamicRef", "$recursiveRef")
_EVALUATING = frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"))
_NOTES = frozenset(
    "title description $comment default examples deprecated readOnly writeOnly $defs definitions $schema $id $anchor "
    "$dynamicAnchor $vocabulary contentEncoding contentMediaType contentSchema then else format".split()
)


class Shapes(MemberShapes):
    """Reads the schemas of one tool, `root` and those in it, as shapes. What no shape expresses is reported in
    `limits`. `extras` allows undeclared members that a schema does not mention; `formats` enforces `format`; `most` is
    the budget of steps."""

    def __init__(
        self, tool: str, root: Json, *, extras: bool = False, formats: bool = False, most: int = MAX_SHAPES
    ) -> None:
        super().__init__(tool, most)
        self.root = root
        self.refs = Refs(root)
        self.extras = extras  # undeclared members are allowed where the schema does not mention them
        self.formats = formats
        self.open: dict[int, str] = {}  # the schemas being read, and the name of each that turned out recursive

    def read(self, among: Shape = ANYTHING) -> Shape:
        """Return the shape of the whole schema, restricted to the values of `among`."""
        found = self.shape(self.root, "", 0)
        if type(found) is not type(among):
            found = self.intersect(found, among, "")
        if self.named:
            self.expand_names(found)
        return found

    # -- one schema ----------------------------------------------------------------------------------------------------

    def shape(self, schema: Any, path: str, depth: int) -> Shape:
        """Return the shape of a schema, which may be a boolean. A schema inside itself becomes a reference to a named
        shape; beyond the limits of depth and size any value is allowed, which is reported in `limits`."""
        if not isinstance(schema, dict):
            return NOTHING if schema is False else ANYTHING
        if id(schema) in self.open:
            name = self.open[id(schema)] = self.open[id(schema)] or self.new_name()
            return ShapeReference(name)
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            what = "depth" if depth > MAX_DEPTH else "size"
            self.limit(path, what, f"any value: the schema exceeds the {what} limit of a grammar")
            return ANYTHING
        self.open[id(schema)] = ""
        found = self.read_keywords(schema, path, depth)
        name = self.open.pop(id(schema))
        if not name:
            return found
        self.named[name] = found
        return ShapeReference(name)

    def read_keywords(self, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape of one schema object from all its keywords: those of its types, then those that apply other
        schemas to the same value, unevaluated members, and constants. `unevaluatedItems` is not enforced, which is
        reported in `limits`."""
        found = self.read_level(schema, path, depth)
        if not _BESIDE.isdisjoint(schema):
            for word in _IN_PLACE:
                if word in schema:
                    found = self.apply_in_place(found, word, schema, path, depth)
        if "unevaluatedProperties" in schema:
            found = self.apply_unevaluated_members(found, schema, path)
        if "enum" in schema or "const" in schema:
            # Last, so that the constants are checked against all keywords beside them.
            found = self.read_constants(found, schema, path)
        if "unevaluatedItems" in schema and not _accepts_all(schema["unevaluatedItems"]):
            self.limit(f"{path}/unevaluatedItems", "unevaluatedItems", "what no other keyword describes")
        return found

    def read_constants(self, found: Shape, schema: Json, path: str) -> Shape:
        """Return the shape of the constants of `enum` and `const` that the shape `found` of the other keywords accepts;
        `found` unchanged, which is reported in `limits`, if there are too many constants."""
        word = "const" if "const" in schema else "enum"
        values = [schema["const"]] if word == "const" else schema["enum"]
        if word == "const" and "enum" in schema:
            values = [value for value in values if accepts(one_of(schema["enum"]), value)]
        size = size_of_constants(values, CONSTANTS_PER_ITEM)
        self.left -= size // CONSTANTS_READ_PER_STEP
        if size > MAX_CONSTANTS:
            self.limit(f"{path}/{word}", word, f"other values: a grammar supports at most {MAX_CONSTANTS:,}")
            return found
        if size > CONSTANTS_PER_ITEM * MAX_ANY_ORDER and most_members(values) > MAX_ANY_ORDER:
            self.limit(f"{path}/{word}", word, IN_LARK)
        return self.constants(found, values, path, word)

    def apply_in_place(self, found: Shape, word: str, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape `found` intersected with the keyword `word`, which applies to the same value, such as
        `allOf`, `not` or `$ref`. A dynamic or unresolved reference changes nothing, which is reported in `limits`."""
        at = f"{path}/{word}"
        value = schema[word]
        if word in ("allOf", "anyOf", "oneOf"):
            parts = [self.shape(part, f"{at}/{i}", depth + 1) for i, part in enumerate(value)]
            return (
                self.all_of([found, *parts], at) if word == "allOf" else self.apply_alternatives(found, parts, word, at)
            )
        if word == "not":
            return self.exclude(found, value, at)
        if word == "if":
            return self.read_condition(found, schema, path, depth)
        target = self.refs.get(value)
        if not isinstance(target, (dict, bool)) or word != "$ref":
            self.limit(at, word, "any value: only plain references are followed")
            return found
        return self.intersect(found, self.shape(target, fragment_of(value), depth + 1), at)

    def read_condition(self, found: Shape, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape `found` intersected with the union of `then` and `else`. The condition `if` is not checked,
        which is reported in `limits`."""
        self.limit(f"{path}/if", "if", "what either branch allows")
        sides = [self.shape(schema.get(word, True), f"{path}/{word}", depth + 1) for word in ("then", "else")]
        return self.intersect(found, self.either(sides, path), f"{path}/if")

    def apply_alternatives(self, found: Shape, parts: list[Shape], word: str, at: str) -> Shape:
        """Return the shape `found` intersected with the union of the alternatives `parts`. For `oneOf`, alternatives
        that may overlap are reported in `limits`, since values that fit several are allowed; the comparisons are
        counted in `left`."""
        if word == "oneOf":
            comparison = OverlapCheck(COMPARISONS_PER_STEP * max(self.left, 0), self.weight)
            if not are_disjoint(parts, comparison):
                self.limit(at, "oneOf", "values that fit more than one of the alternatives")
            self.left = min(self.left, comparison.left // COMPARISONS_PER_STEP)
        return self.intersect(found, self.either(parts, at), at)

    def exclude(self, found: Shape, value: Any, at: str) -> Shape:
        """Return the shape `found` without the values of the schema `value` of a `not`, if that is everything, nothing
        or a set of types; otherwise `found` itself, which is reported in `limits`."""
        if _accepts_all(value):
            return NOTHING
        if value is False:
            return found
        if isinstance(value, dict) and set(value) - _NOTES == {"type"} and not (self.formats and "format" in value):
            said = value["type"] if isinstance(value["type"], list) else [value["type"]]
            return self.exclude_types(found, said, at)
        self.limit(at, "not", "what it forbids")
        return found

    def exclude_types(self, found: Shape, said: list[str], at: str) -> Shape:
        """Return the shape `found` without the values of the JSON types `said`. Integers alone, without all numbers,
        cannot be excluded, which is reported in `limits`."""
        kept = [word for word in _KINDS if word not in said]
        if "integer" in said and "number" in kept:
            self.limit(at, "not", "whole numbers")
        return self.intersect(found, union(*(_PLAIN[word] for word in kept)), at)

    def apply_unevaluated_members(self, found: Shape, schema: Json, path: str) -> Shape:
        """Return the shape `found` with `unevaluatedProperties` of the schema applied, if that allows all or forbids
        all of them; unchanged for another schema, and where conditions, references or constants decide which members
        are evaluated, which is reported in `limits` unless it allows all."""
        value, at = schema["unevaluatedProperties"], f"{path}/unevaluatedProperties"
        if _accepts_all(value) and _is_plain(found):
            opened = [self.drop_member_limits(_allow_undeclared(one), at, at) for one in options(found)]
            return union(*opened)
        if value is False and _is_plain(found) and not self.has_condition(schema):
            return union(*(_forbid_undeclared(one) for one in options(found)))
        if not _accepts_all(value):
            self.limit(at, "unevaluatedProperties", "what no other keyword describes")
        return found

    def has_condition(self, schema: Json) -> bool:
        """Return whether a value decides which of its members the schemas that apply to it evaluate: at any depth, an
        alternative, a condition or a dependent schema declares some, or a pattern of names. Each schema is counted in
        `left`."""
        seen: set[tuple[int, bool]] = set()
        waiting = [(schema, False)]
        while waiting:
            here, decided = waiting.pop()
            by_name = "patternProperties" in here and "additionalProperties" not in here
            if by_name or (decided and not _EVALUATING.isdisjoint(here)):
                return True
            if (id(here), decided) in seen:
                continue
            seen.add((id(here), decided))
            self.left -= 1
            for words, by_value in ((_ALWAYS, decided), (_CONDITIONAL, True)):
                part = {word: here[word] for word in words if word in here}
                waiting += [(inner, by_value) for inner in schemas_in_place(part, self.refs)]
        return False

    # -- the keywords of one level -------------------------------------------------------------------------------------

    def read_level(self, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape from `type` and the keywords of each type. Keywords that apply other schemas to the same
        value, such as `allOf`, are not read. Without `type`, each kind of value is restricted by its own keywords. A
        `format` without a grammar is reported in `limits` if formats are to be enforced."""
        said = schema.get("type")
        asserts_format = self.formats and "format" in schema
        if asserts_format and schema["format"] not in FORMAT_PATTERNS:
            self.limit(
                f"{path}/format", "format", f"any value: there is no grammar for the format {schema['format']!r:.60}"
            )
        if said is None:
            if not asserts_format and _WORDS.isdisjoint(schema):
                return ANYTHING
            kinds: Iterable[str] = _KINDS
        elif isinstance(said, list):
            kinds = [word for word in said if word != "integer"] if "number" in said else said
        else:
            return self.read_type(said, schema, path, depth)
        found = [self.read_type(word, schema, path, depth) for word in kinds]
        return found[0] if len(found) == 1 else union(*found)

    def read_type(self, word: str, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape of the values of the JSON type `word` that the keywords of that type accept."""
        if word == "string":
            return _ANY_TEXT if _TEXT_WORDS.isdisjoint(schema) else self.read_string(schema, path)
        if word in ("number", "integer"):
            return self.read_number(schema, path, word == "integer")
        if word == "object":
            return self.read_object(schema, path, depth)
        if word == "array":
            return self.read_array(schema, path, depth)
        return TRUE_FALSE if word == "boolean" else NULL

    def read_array(self, schema: Json, path: str, depth: int) -> Shape:
        """Return the shape of the lists that the keywords for arrays accept; `NOTHING` if there are none.
        `uniqueItems`, `contains` and too many `prefixItems` are not enforced, which is reported in `limits`."""
        first = schema.get("prefixItems", ())
        if len(first) > MAX_TUPLE:
            self.limit(f"{path}/prefixItems", "prefixItems", f"any items: a grammar supports at most {MAX_TUPLE}")
            first, schema = (), without_keyword(schema, "items")
        prefix = tuple(self.shape(item, f"{path}/prefixItems/{at}", depth + 1) for at, item in enumerate(first))
        items = self.shape(schema["items"], f"{path}/items", depth + 1) if "items" in schema else ANYTHING
        least, most = self.read_count(schema, "minItems", path) or 0, self.read_count(schema, "maxItems", path)
        if schema.get("uniqueItems") is True and (most is None or most > 1):
            self.limit(f"{path}/uniqueItems", "uniqueItems", "duplicate items")
        if "contains" in schema:
            self.report_contains(schema, path)
        return array_shape(Array(prefix, items, least, most))

    def report_contains(self, schema: Json, path: str) -> None:
        """Report `contains` in `limits`, since a grammar cannot express it; only `maxContains` if `minContains` is 0,
        or nothing if that is missing too."""
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


def _accepts_all(schema: Any) -> bool:
    """Return whether a schema is `true` or `{}`, which accept every value; others that do are not recognized."""
    return schema is True or schema == {}


def _is_plain(shape: Shape) -> bool:
    """Return whether no alternative of a shape is a recursive one, or an object as a constant: it is not known which of
    their members are evaluated."""
    return not any(
        isinstance(one, ShapeReference) or (isinstance(one, OneOf) and any(text[0] == "{" for text in one.texts))
        for one in options(shape)
    )


def _allow_undeclared(shape: Shape) -> Shape:
    """Return an object shape with any undeclared members explicitly allowed, so that an outer keyword cannot forbid
    them. An object whose schema mentions undeclared members, and any other shape, is returned unchanged."""
    return (
        msgspec.structs.replace(shape, extra=ANYTHING, said=True)
        if isinstance(shape, Object) and not shape.said
        else shape
    )


def _forbid_undeclared(shape: Shape) -> Shape:
    """Return an object shape that allows no undeclared members, nor members that are only required and have no schema;
    `NOTHING` if one of those is required. An object whose schema mentions undeclared members, and any other shape, is
    returned unchanged."""
    if not isinstance(shape, Object) or shape.said:
        return shape
    fields = tuple(one if one.evaluated else Field(one.name, NOTHING, one.required) for one in shape.fields)
    return object_shape(msgspec.structs.replace(shape, fields=fields, extra=NOTHING, said=True))


__all__ = ["Relaxation", "Shapes"]
