"""Intersection of shapes, and removal of shapes that have no finite value.

Number(True, low=3)  and  Number(high=5)   ->   Number(True, low=3, high=5)

An intersection that no shape expresses is reported as a `Relaxation`, and one of the two shapes is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.constrain.algebra import MAX_ANY_ORDER, Node, limit_length
from rightcall.constrain.regex import regex_text
from rightcall.constrain.value_shapes import (
    ANYTHING,
    CONSTANTS_PER_STEP,
    NOTHING,
    Anything,
    Array,
    Field,
    Number,
    Object,
    OneOf,
    Shape,
    ShapeReference,
    TextShape,
    Union,
    has_no_surrogate,
    inner_shapes,
    membership_test,
    one_of,
    options,
    shape_of_value,
    size_of_constants,
    union,
)
from rightcall.schema.limits import pattern_size

IN_LARK = f"in Lark, members beyond the first {MAX_ANY_ORDER} that are missing, repeated, too few or too many"
MAX_SHAPES = 20_000  # of one tool
MAX_UNION = 256
MAX_MEMBERS = 1_000  # of one object: an engine follows a chain of rules as deep as there are members
PATTERN_SHARE = 64  # bytes of a pattern in the grammar that count as a shape
NAME_PATTERN_SHARE = 512  # bytes of a pattern that names are matched with that count as a shape
NAMES_PER_STEP = 128  # names that take as long to match as a shape to make
MAX_LEVELS = 96  # of all named intersections: an engine compiles rules recursively, in threads with small stacks


class Relaxation(msgspec.Struct, frozen=True):
    """A constraint that a grammar cannot express: its place, its keyword, and what is therefore allowed. `check` still
    enforces it."""

    tool: str
    path: str
    keyword: str
    allows: str


class Intersection:
    """Intersects the shapes of one tool, within a budget of steps.

    `named` maps the names of recursive shapes to their shapes. The intersection of a recursive shape is a new name,
    which `expand_names` works out: nothing is expanded twice, and no chain of references is followed recursively.
    `limits` collects what no shape expresses. Every step is counted in `left`, and the levels of the named
    intersections in `levels_left`; when either is used up, the first of two shapes is kept, and that is reported.
    """

    def __init__(self, tool: str, most: int = MAX_SHAPES) -> None:
        self.tool = tool
        self.limits: dict[Relaxation, None] = {}
        self.named: dict[str, Shape | None] = {}
        self.left = most
        self.levels_left = MAX_LEVELS
        self._names: dict[
            frozenset[Shape], ShapeReference
        ] = {}  # of intersections with a recursive shape, by their parts
        self._parts: dict[str, tuple[tuple[Shape, ...], str]] = {}  # and the parts by the name, with their path
        # By identity: weight and levels. The shape is kept, so that its id stays its own.
        self._sizes: dict[int, tuple[Shape, int, int]] = {}

    def limit(self, path: str, keyword: str, allows: str) -> None:
        """Record in `limits` a keyword that no shape expresses, and what the grammar therefore allows."""
        self.limits[Relaxation(self.tool, path, keyword, allows)] = None

    def new_name(self) -> str:
        """Return a new name for a recursive shape and reserve it in `named`."""
        name = f"n{len(self.named)}"
        self.named[name] = None
        return name

    def constants(self, found: Shape, values: list[Any], path: str, word: str) -> Shape:
        """Return the shape of those `values` that the shape `found` accepts, without values that contain a lone
        surrogate; `word` is the keyword at `path` that lists them. Beyond the budget of steps all are accepted, and so
        is a value that only a pattern could reject; either is reported in `limits`. A value that depends on a recursive
        shape is intersected with it."""
        written = [value for value in values if has_no_surrogate(value)]
        if isinstance(found, Anything):
            return one_of(written)
        self.left -= size_of_constants(written) * self.weight(found) // CONSTANTS_PER_STEP
        if self.left < 0:
            self.limit(f"{path}/{word}", word, "constants that other keywords forbid: there are too many to check")
            return one_of(written)
        is_accepted = membership_test(found)
        answers = [(value, is_accepted(value)) for value in written]
        uncertain = [value for value, answer in answers if answer is None]
        if uncertain and _has_reference(found):
            accepted = one_of([value for value, answer in answers if answer])
            one_by_one = isinstance(found, (Array, Object))
            unclear = [shape_of_value(value) for value in uncertain] if one_by_one else [one_of(uncertain)]
            return union(accepted, *(self.intersect(shape, found, path) for shape in unclear))
        if uncertain:
            self.limit(f"{path}/{word}", word, "constants that a pattern beside them forbids")
        return one_of([value for value, answer in answers if answer is not False])

    def limit_pattern(self, node: Node, least: int, most: int | None, path: str) -> Shape:
        """Return the shape of the texts of a pattern's node that have `least` to `most` characters; of all its texts,
        which is reported in `limits`, if their lengths cannot be limited or none fits."""
        fitting = limit_length(node, least, most)
        if fitting is None:
            self.limit(
                path, "maxLength" if most is not None else "minLength", "any length that the pattern beside it allows"
            )
            return TextShape(0, None, node)
        return TextShape(0, None, fitting)

    def intersect(self, one: Shape, other: Shape, path: str) -> Shape:
        """Return a shape for the values that both shapes accept; `NOTHING` if there are none. Once the budget of steps
        is used up, `one` is returned, which is reported in `limits` with this `path` of the schema."""
        if isinstance(one, Anything) or one == other:
            return other
        if isinstance(other, Anything):
            return one
        self.left -= 1
        if self.left < 0:
            self.limit(path, "size", "what the first of several schemas for one value allows")
            return one
        if isinstance(one, ShapeReference) or isinstance(other, ShapeReference):
            return self.intersect_named(one, other, path)
        if isinstance(one, Union) or isinstance(other, Union):
            return self.intersect_options(one, other, path)
        return self.intersect_kinds(one, other, path)

    def intersect_options(self, one: Shape, other: Shape, path: str) -> Shape:
        """Return the union of the intersections of all pairs of an alternative of one shape and one of the other;
        `one`, which is reported in `limits`, if there are too many pairs."""
        pairs = [(a, b) for a in options(one) for b in options(other)]
        if len(pairs) > MAX_UNION * 8:
            self.limit(path, "size", "what the first of several schemas for one value allows")
            return one
        return union(*(self.intersect(a, b, path) for a, b in pairs))

    def all_of(self, shapes: list[Shape], path: str) -> Shape:
        """Return a shape for the values that all shapes of a list with at least one accept. They are intersected in
        pairs, so that a long list of objects does not visit all members of the first for each further one."""
        while len(shapes) > 1:
            pairs = zip(shapes[::2], [*shapes[1::2], ANYTHING], strict=False)
            shapes = [self.intersect(one, other, path) for one, other in pairs]
        return shapes[0]

    def intersect_named(self, one: Shape, other: Shape, path: str) -> Shape:
        """Return a reference to the intersection of two shapes of which at least one is recursive; `expand_names` works
        it out later. The same parts always get the same name, and two equal shapes are returned as they are. Once
        `levels_left` is used up, `one` is returned, which is reported in `limits`."""
        parts = dict.fromkeys([*self._parts_of(one), *self._parts_of(other)])
        if len(parts) == 1:
            return one
        key = frozenset(parts)
        found = self._names.get(key)
        if found is None and self.levels_left <= 0:
            self.limit(path, "size", "what the first of several schemas for one value allows")
            return one
        if found is None:
            found = self._names[key] = ShapeReference(self.new_name())
            self._parts[found.name] = tuple(parts), path
        return found

    def _parts_of(self, shape: Shape) -> tuple[Shape, ...]:
        """Return the shapes whose intersection a reference names; any other shape or reference itself."""
        known = self._parts.get(shape.name) if isinstance(shape, ShapeReference) else None
        return (shape,) if known is None else known[0]

    def expand_names(self, start: Shape) -> None:
        """Work out the named intersections that a shape refers to, directly or not, and store their shapes in
        `named`."""
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            shape = waiting.pop()
            if not isinstance(shape, ShapeReference):
                waiting += inner_shapes(shape)
            elif shape.name not in seen:
                seen.add(shape.name)
                if shape.name in self._parts and self.named[shape.name] is None:
                    parts, path = self._parts[shape.name]
                    met = self.named[shape.name] = self.all_of(self._resolve_references(parts) or [ANYTHING], path)
                    self.levels_left -= self.weight_and_levels(met)[1]
                waiting.append(self.named[shape.name] or ANYTHING)

    def _resolve_references(self, shapes: Iterable[Shape]) -> list[Shape]:
        """Return these shapes without duplicates, with references replaced by the shapes that they lead to, and a
        reference to an intersection by its parts. A reference that leads only to itself is left out: its schema is
        rejected by `check_schema`."""
        found: dict[Shape, None] = {}
        seen: set[Shape] = set()
        waiting = [*shapes][::-1]
        while waiting:
            shape = waiting.pop()
            if not isinstance(shape, ShapeReference):
                found[shape] = None
            elif shape not in seen:
                seen.add(shape)
                inner = self.named[shape.name]
                waiting += self._parts_of(shape) if shape.name in self._parts else [inner] if inner is not None else []
        return list(found)

    def declared_names(self, shapes: list[Shape]) -> list[str]:
        """Return the names of the members that the objects among these shapes declare, with their alternatives and the
        shapes that they refer to, each once. Members that are forbidden or only required are left out."""
        found: dict[str, None] = {}
        seen: set[Shape] = set()
        waiting = shapes[::-1]
        while waiting:
            shape = waiting.pop()
            if isinstance(shape, Object):
                declared = [field for field in shape.fields if field.evaluated and field.shape != NOTHING]
                found.update(dict.fromkeys([field.name for field in declared]))
            elif isinstance(shape, Union):
                waiting += shape.options[::-1]
            elif isinstance(shape, ShapeReference) and shape not in seen:
                seen.add(shape)
                waiting += self._resolve_references([shape])
        return list(found)

    def count_reuse(self, shape: Shape) -> Shape:
        """Return the shape, after counting its weight once more: a shape that is used in several places is written
        out in each."""
        self.left -= self.weight(shape)
        return shape

    def weight(self, shape: Shape) -> int:
        """Return the number of shapes in a shape, each counted as often as it occurs."""
        return self.weight_and_levels(shape)[0]

    def weight_and_levels(self, shape: Shape) -> tuple[int, int]:
        """Return the number of shapes in a shape, each counted as often as it occurs, and how many levels of shapes are
        nested in it. References are not followed."""
        known = self._sizes.get(id(shape))
        if known is None:
            sizes = [self.weight_and_levels(part) for part in inner_shapes(shape)]
            levels = 1 + max([inner for _, inner in sizes], default=0)
            known = self._sizes[id(shape)] = shape, 1 + sum([weight for weight, _ in sizes]), levels
        return known[1:]

    def intersect_kinds(self, one: Shape, other: Shape, path: str) -> Shape:
        """Return the intersection of two shapes of constants, texts, numbers, lists or objects; `NOTHING` for two
        different kinds of values. Constants are filtered by the other shape."""
        if isinstance(one, OneOf):
            return self.constants(other, [json.loads(text) for text in one.texts], path, "enum")
        if isinstance(other, OneOf):
            return self.intersect_kinds(other, one, path)
        match one, other:
            case TextShape(), TextShape():
                return self.intersect_texts(one, other, path)
            case Number(), Number():
                return self.intersect_numbers(one, other)
            case Array(), Array():
                return self.intersect_arrays(one, other, path)
            case Object(), Object():
                return self.intersect_objects(one, other, path)
        return NOTHING

    def intersect_texts(self, one: TextShape, other: TextShape, path: str) -> Shape:
        """Return the texts that both shapes accept; `NOTHING` if no length fits both. Of two different patterns, the
        first is kept, which is reported in `limits`, as is a pattern whose lengths cannot be limited."""
        least, most = max(one.least, other.least), _least(one.most, other.most)
        if most is not None and least > most:
            return NOTHING
        pattern = one.pattern or other.pattern
        if one.pattern is not None and other.pattern is not None and one.pattern != other.pattern:
            self.limit(path, "pattern", "texts that match only the first of several patterns")
        return TextShape(least, most) if pattern is None else self.limit_pattern(pattern, least, most, path)

    def intersect_numbers(self, one: Number, other: Number) -> Shape:
        """Return the range that both ranges have in common, of integers if one of them is; `NOTHING` if it is empty."""
        low, low_open = _tighter_bound((one.low, one.low_open), (other.low, other.low_open), 1)
        high, high_open = _tighter_bound((one.high, one.high_open), (other.high, other.high_open), -1)
        return number_shape(Number(one.integer or other.integer, low, high, low_open, high_open))

    def intersect_arrays(self, one: Array, other: Array, path: str) -> Shape:
        """Return the arrays that both shapes accept, their items intersected by position; `NOTHING` if there are
        none."""
        size = max(len(one.prefix), len(other.prefix))
        prefix = tuple(self.intersect(self.item_shape(one, at), self.item_shape(other, at), path) for at in range(size))
        items = self.intersect(one.items, other.items, path)
        return array_shape(Array(prefix, items, max(one.least, other.least), _least(one.most, other.most)))

    def intersect_fields(self, one: Object, other: Object, names: list[str], path: str) -> list[Field]:
        """Return the intersected fields of two objects, for these names in order. A field that one object does not
        declare is intersected with what that object allows as an undeclared member. A field is required if it is in
        either object."""
        a, b = ({field.name: field for field in side.fields} for side in (one, other))
        loose_a, loose_b = self.undeclared_fields(one, names, path), self.undeclared_fields(other, names, path)
        fields = []
        for name in names:
            first, second = a.get(name) or loose_a(name), b.get(name) or loose_b(name)
            shape = self.intersect(first.shape, second.shape, path)
            fields.append(Field(name, shape, first.required or second.required, first.evaluated or second.evaluated))
        return fields

    def intersect_objects(self, one: Object, other: Object, path: str) -> Shape:
        """Return the objects that both shapes accept; `NOTHING` if a required member has no value. Any object, which is
        reported in `limits`, if they have too many members together; of two patterns of names, the first is kept and
        that is reported."""
        names = dict.fromkeys([field.name for field in (*one.fields, *other.fields)])
        if len(names) > max(len(one.fields), len(other.fields)) and self.are_too_many_members(len(names), path):
            return Object()
        fields = self.intersect_fields(one, other, list(names), path)
        if one.keys is not None and other.keys is not None and one.keys != other.keys:
            self.limit(path, "patternProperties", "names that match only the first of several patterns")
        # A schema that does not mention undeclared members allows what the other one says of them. By default they are
        # left out where neither does.
        stated = [side.extra for side in (one, other) if side.said] or [one.extra, other.extra]
        extra = self.all_of(stated, path)
        keys = one.keys or other.keys
        found = Object(
            tuple(fields),
            extra,
            keys,
            max(one.least, other.least),
            _least(one.most, other.most),
            one.said or other.said,
        )
        return self.drop_member_limits(object_shape(found), path, path)

    def are_too_many_members(self, count: int, path: str) -> bool:
        """Return whether an object has more members than a grammar can have (`MAX_MEMBERS`), which is reported in
        `limits`. More than Lark keeps count of (`MAX_ANY_ORDER`) are reported too, but are not too many."""
        if count > MAX_MEMBERS:
            self.limit(path, "properties", f"any members: a grammar supports at most {MAX_MEMBERS:,}")
        elif count > MAX_ANY_ORDER:
            self.limit(path, "properties", IN_LARK)
        return count > MAX_MEMBERS

    def drop_member_limits(self, shape: Shape, least_at: str, most_at: str) -> Shape:
        """Return an object shape without limits of the number of members if undeclared ones are allowed, which are not
        counted; any other shape unchanged. A maximum, and a minimum above the number of required members, are reported
        in `limits` as lost, with their places."""
        if not isinstance(shape, Object) or shape.extra == NOTHING or not (shape.least or shape.most is not None):
            return shape
        if shape.least > sum(field.required for field in shape.fields):
            self.limit(least_at, "minProperties", "fewer members")
        if shape.most is not None:
            self.limit(most_at, "maxProperties", "more members")
        return msgspec.structs.replace(shape, least=0, most=None)

    def undeclared_fields(self, side: Object, names: list[str], path: str) -> Callable[[str], Field]:
        """Return a function that returns what an object allows under one of `names` that it does not declare, as a
        field: with the shape of its undeclared members, `NOTHING` if their pattern excludes the name. It is `ANYTHING`
        if its schema does not mention them, or if matching the names is beyond the budget, which is reported in
        `limits`."""
        if not side.said and side.extra == NOTHING:
            return lambda name: Field(name, ANYTHING, evaluated=False)
        if side.keys is None:
            return lambda name: Field(name, self.count_reuse(side.extra), evaluated=side.said)
        declared = {field.name for field in side.fields}
        pattern = f"^(?:{regex_text(side.keys)})$"
        matching = self.match_names([pattern], [name for name in names if name not in declared])
        if matching is None:
            self.limit(path, "patternProperties", "any value under a name that they match")
            return lambda name: Field(name, ANYTHING, evaluated=False)
        return lambda name: Field(name, self.count_reuse(side.extra) if matching[name] else NOTHING)

    def match_names(self, patterns: Iterable[str], names: list[str]) -> dict[str, list[str]] | None:
        """Return, for each of the names, those patterns that match it anywhere; None if that is beyond the budget. The
        matching is counted in `left`."""
        found: dict[str, list[str]] = {name: [] for name in names}
        for pattern in patterns if names else ():
            self.left -= pattern_size(pattern) // NAME_PATTERN_SHARE + len(names) // NAMES_PER_STEP
            if self.left < 0:
                return None
            is_match = _matcher_of(pattern)
            for name in filter(is_match, names):
                found[name].append(pattern)
        return found

    def item_shape(self, array: Array, at: int) -> Shape:
        """Return the shape of the item at this position of an array; its use behind the prefix is counted in `left`."""
        return array.prefix[at] if at < len(array.prefix) else self.count_reuse(array.items)


def _has_reference(shape: Shape) -> bool:
    """Return whether a shape, or one inside it, is a reference to a recursive shape."""
    return isinstance(shape, ShapeReference) or any(map(_has_reference, inner_shapes(shape)))


@lru_cache(256)
def _matcher_of(pattern: str) -> Callable[[Any], bool]:
    """Return a function that returns whether a text matches the pattern anywhere, in linear time. For a pattern that
    the engine does not compile it always returns True."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError:
        return lambda text: True
    return validator.is_valid


def _tighter_bound(
    one: tuple[Decimal | None, bool], other: tuple[Decimal | None, bool], sign: int
) -> tuple[Decimal | None, bool]:
    """Return the tighter of two bounds, each a number (None: no bound) and whether it is excluded; of equal ones, it is
    excluded if either is. `sign` is 1 for lower bounds, -1 for upper ones."""
    if one[0] is None or other[0] is None:
        return one if other[0] is None else other
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return one if (one[0] - other[0]) * sign > 0 else other


def _least(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two upper limits, where None is no limit."""
    return other if one is None else one if other is None else min(one, other)


def number_shape(shape: Number) -> Shape:
    """Return the range of numbers unchanged, or `NOTHING` if its bounds exclude each other. A range of integers without
    an integer between its bounds is not noticed."""
    low, high = shape.low, shape.high
    if low is not None and high is not None and (low > high or (low == high and (shape.low_open or shape.high_open))):
        return NOTHING
    return shape


def array_shape(shape: Array) -> Shape:
    """Return an array shape cut before the first position that no value fits, and not longer than its maximum;
    `NOTHING` if too few items remain for its minimum."""
    prefix, most = shape.prefix, shape.most
    for at, one in enumerate(prefix):
        if one == NOTHING:
            prefix, most = prefix[:at], _least(most, at)
            break
    if shape.items == NOTHING:
        most = _least(most, len(prefix))
    if most is not None and shape.least > most:
        return NOTHING
    return Array(prefix[:most] if most is not None else prefix, shape.items, shape.least, most)


def object_shape(shape: Object) -> Shape:
    """Return an object shape without members that no value fits; `NOTHING` if such a member is required, or more
    members are required than allowed. Those members stay where undeclared members are allowed, or another schema may
    declare them."""
    required = [field for field in shape.fields if field.required]
    if any(field.shape == NOTHING for field in required) or (shape.most is not None and len(required) > shape.most):
        return NOTHING
    # One that is forbidden stays where undeclared ones are allowed, or may be declared by another schema.
    return _drop_impossible_fields(shape) if shape.said and shape.extra == NOTHING else shape


def _drop_impossible_fields(shape: Object) -> Shape:
    """Return the object shape without the fields that no value fits; `NOTHING` if fewer fields than its minimum
    remain."""
    fields = tuple(field for field in shape.fields if field.shape != NOTHING)
    if shape.least > len(fields):
        return NOTHING
    return shape if len(fields) == len(shape.fields) else msgspec.structs.replace(shape, fields=fields)


_ROUNDS = 64  # a name that is undecided after these rounds counts as finite

Known = dict[str, Shape | None]


def remove_endless_shapes(shape: Shape, named: Known) -> tuple[Shape, Known]:
    """Return the shape and the named shapes, with shapes that have only infinite values replaced by `NOTHING`, such as
    an object that requires itself as a member, and without the names of those. Both are unchanged if there are none, or
    if that takes too many rounds to find out."""
    ending = _names_of_finite_shapes(named)
    if ending is None or len(ending) == len(named):
        return shape, named
    kept: Known = {name: inner and _prune_endless(inner, ending) for name, inner in named.items() if name in ending}
    return _prune_endless(shape, ending), kept


def _names_of_finite_shapes(named: Known) -> set[str] | None:
    """Return the names of the shapes with a finite value; a name without a shape counts as one. None if that takes more
    than `_ROUNDS` rounds."""
    ending: set[str] = set()
    for _ in range(_ROUNDS):
        size = len(ending)
        for name, inner in named.items():
            if name not in ending and (inner is None or _has_finite_value(inner, ending)):
                ending.add(name)
        if len(ending) == size:
            return ending
    return None


def _has_finite_value(shape: Shape, ending: set[str]) -> bool:
    """Return whether a shape has a finite value, if exactly the shapes named in `ending` have one."""
    match shape:
        case ShapeReference(name):
            return name in ending
        case Union(options):
            return any(_has_finite_value(one, ending) for one in options)
        case Array(prefix, items, least):
            needed = prefix[:least] if least <= len(prefix) else (*prefix, items)
            return all(_has_finite_value(one, ending) for one in needed)
        case Object(fields):
            return all(_has_finite_value(field.shape, ending) for field in fields if field.required)
    return True


def _prune_endless(shape: Shape, ending: set[str]) -> Shape:
    """Return the shape with references to shapes not named in `ending` replaced by `NOTHING`, at any depth; `NOTHING`
    if no value is left."""
    match shape:
        case ShapeReference(name):
            return shape if name in ending else NOTHING
        case Union(options):
            return union(*(_prune_endless(one, ending) for one in options))
        case Array(prefix, items):
            first = tuple(_prune_endless(one, ending) for one in prefix)
            return array_shape(msgspec.structs.replace(shape, prefix=first, items=_prune_endless(items, ending)))
        case Object(fields, extra):
            made = tuple(Field(one.name, _prune_endless(one.shape, ending), one.required) for one in fields)
            return object_shape(msgspec.structs.replace(shape, fields=made, extra=_prune_endless(extra, ending)))
    return shape
