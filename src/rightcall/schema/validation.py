"""Validate arguments against a tool's schema, which is compiled once by jsonschema-rs.

Nothing is ever fetched, and no pattern takes more than linear time. The validator cannot be interrupted, so the cost of
a check is estimated first (`Steps`), and a check that would take too long is not started. Errors are listed only if all
of them can be made: for larger arguments, the beginning of each list is checked, then the first error of all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from math import copysign, isinf
from typing import Any, Generic, NamedTuple, TypeVar

from rightcall.schema.limits import MAX_ERRORS, MAX_REPAIR_ERRORS, REGEX_SIZE, STEPS_PER_CALL, STEPS_PER_VALUE, Refused
from rightcall.schema.walk import LISTS, MAPS, ONE, Refs, all_schemas, schemas_and_targets, schemas_in_place, subschemas
from rightcall.types import Json, Tool

_MAX_LEVELS = 6  # deeper levels are treated alike
_TEXT_PIECE = 64  # characters checked in one step
_ERROR_SIZE = 16  # the size of an error in values
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$defs"))


class Cost(NamedTuple):
    """The cost of checking a value: once, and for each of its parts (members, items, pieces of a text)."""

    whole: int
    part: int


class Level(NamedTuple):
    """The number of values at one depth."""

    values: int
    parts: int


class Steps:
    """Estimates the cost of checking values against one schema, which must be a copy made by `relax_schema`."""

    def __init__(self, schema: Json) -> None:
        self._refs = Refs(schema)
        self._cost: dict[int, Cost] = {}
        for each in schemas_and_targets(self._refs):
            self._compute_cost(each)
        self._deep = _maximum_cost(list(self._cost.values()))
        self._costs = self._costs_by_level(schema)

    @property
    def highest_cost(self) -> int:
        """The highest cost of one value and one of its parts, in steps, at any place of the schema."""
        return sum(self._deep)

    def estimate(self, value: Any) -> tuple[int, int]:
        """Return the most steps that checking this value can take, and its size: the number of its values and parts."""
        levels = _count_levels(value)
        steps = sum(
            level.values * cost.whole + level.parts * cost.part for level, cost in self._pair_with_costs(levels)
        )
        return steps, sum(level.values + level.parts for level in levels)

    def estimate_errors(self, value: Any) -> int:
        """Return how many values all errors of this value can have together, at most: each error has a copy of the
        value that it is about."""
        found = inside = 0
        for level, cost in reversed(self._pair_with_costs(_count_levels(value))):
            inside += level.values
            found += cost.whole * (inside + _ERROR_SIZE * level.values)
        return found

    def _pair_with_costs(self, levels: list[Level]) -> list[tuple[Level, Cost]]:
        """Return the levels of a value, outermost first, each with the cost of the schemas there; levels beyond
        `_MAX_LEVELS` get the highest cost."""
        costs = [*self._costs[: len(levels)], *[self._deep] * (len(levels) - _MAX_LEVELS)]
        return list(zip(levels, costs, strict=True))

    def _compute_cost(self, start: Json) -> None:
        """Store the cost of a schema, its own keywords and all schemas that it applies to the same value, and the costs
        of those schemas."""
        stack = [start]
        while stack:
            here = stack[-1]
            below = schemas_in_place(here, self._refs)
            new = [each for each in below if id(each) not in self._cost]
            if new:
                stack += new
            else:
                costs = [cost_of_keywords(here), *[self._cost[id(each)] for each in below]]
                self._cost[id(stack.pop())] = Cost(*map(sum, zip(*costs, strict=True)))

    def _costs_by_level(self, schema: Json) -> list[Cost]:
        """Return the highest cost at each of the first `_MAX_LEVELS` levels of values, where `schema` applies to the
        first."""
        found: list[Cost] = []
        level = [schema]
        for _ in range(_MAX_LEVELS):
            found.append(_maximum_cost([self._cost[id(each)] for each in level]))
            level = self._schemas_of_next_level(level)
        return found

    def _schemas_of_next_level(self, level: list[Json]) -> list[Json]:
        """Return the schemas of the values one level further in, given the schemas of one level, which are also
        followed to all that apply to the same values. `level` is emptied."""
        seen: set[int] = set()
        inner: dict[int, Json] = {}
        while level:
            here = level.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            level += schemas_in_place(here, self._refs)
            subs = [sub.schema for sub in subschemas(here) if sub.keyword not in _IN_PLACE]
            inner.update({id(each): each for each in subs if isinstance(each, dict)})
        return list(inner.values())


def _maximum_cost(costs: list[Cost]) -> Cost:
    """Return the highest `whole` and the highest `part` of these costs; 1 for each without costs."""
    return Cost(max([cost.whole for cost in costs], default=1), max([cost.part for cost in costs], default=1))


def cost_of_keywords(schema: Json) -> Cost:
    """Return the cost of the keywords of one schema, without its subschemas, in units of a plain keyword."""
    whole = len(schema) + len(schema.get("required", ())) + len(schema.get("dependentRequired", ()))
    whole += len(schema.get("dependentSchemas", ()))
    part = 1 + 10 * ("uniqueItems" in schema) + 4 * len(schema.get("patternProperties", ()))
    part += len(schema.get("pattern", "")) // 8
    if "enum" in schema:
        several = len({type(value) for value in schema["enum"]}) > 1
        nested = any(isinstance(value, (dict, list)) for value in schema["enum"])
        whole += len(schema["enum"]) * (40 if nested else 1 if several else 0)
    if "multipleOf" in schema:
        whole += 150 if 1e-20 < schema["multipleOf"] < 1e20 else 4_000
    return Cost(whole, part)


def _count_levels(value: Any) -> list[Level]:
    """Return the numbers of values and parts at each depth of a value, the value itself first."""
    found: list[Level] = []
    values: list[Any] = [value]
    while values:
        parts, inner = 0, list[Any]()
        for each in values:
            if isinstance(each, str):
                parts += len(each) // _TEXT_PIECE
            elif isinstance(each, (dict, list)):
                parts += len(each)
                inner += each.values() if isinstance(each, dict) else each
        found.append(Level(len(values), parts))
        values = inner
    return found


_ASSERTING = frozenset(
    "type enum const required pattern uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains dependentRequired "
    "$ref $defs additionalProperties contains else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties allOf anyOf oneOf prefixItems dependentSchemas patternProperties properties".split()
)
_COUNTS = frozenset(word for word in _ASSERTING if word.startswith(("min", "max")) and not word.endswith("imum"))
_MAX_COUNT = 2**53
_INWARD = frozenset((*ONE, *MAPS, "prefixItems", "$ref")) - {"not", "if", "then", "else"}
_MAX_ALTERNATIVES = 64  # alternatives
_MAX_KEYWORDS = 200_000  # of all cached tools
_MAX_TOOLS = 4_096


class CompiledSchema:
    """The compiled schema of a tool. Making it raises ValueError if the validator does not accept the schema.

    - `validator`: the validator of jsonschema-rs.
    - `keyword_count`: the cost of all its keywords. `size` also counts constants.
    - `is_light`: checking is known to be cheap for any arguments; `is_always_light` finds out.
    """

    __slots__ = ("_has_small_errors", "_steps", "is_light", "keyword_count", "schema", "size", "tool", "validator")

    def __init__(self, tool: Tool) -> None:
        from rightcall.schema.relax import relax_schema

        self.tool = tool  # an id is only unique among living objects
        self.schema = _keep_assertions(relax_schema(tool.name, tool.parameters)[0])
        self.validator = compile_schema(self.schema)
        schemas = list(all_schemas(self.schema))
        self.keyword_count = sum([sum(cost_of_keywords(each)) for each in schemas])
        self.size = self.keyword_count + sum([len(each["enum"]) for each in schemas if "enum" in each])
        self._has_small_errors: bool | None = None
        self.is_light = self.keyword_count <= STEPS_PER_VALUE and "$defs" not in self.schema
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        """The estimate of costs, which is made when it is first needed; `is_light` is then exact."""
        if self._steps is None:
            self._steps = Steps(self.schema)
            self.is_light = self.is_light or self._steps.highest_cost <= STEPS_PER_VALUE
        return self._steps

    @property
    def is_always_light(self) -> bool:
        """Whether checking is cheap for any arguments, with the estimate if necessary."""
        return self.is_light or self.steps.highest_cost <= STEPS_PER_VALUE

    def is_too_much(self, arguments: Any) -> bool:
        """Return whether checking these arguments may take too long; such arguments are not checked and are treated
        as not fitting."""
        if self.is_light:
            return False
        steps, size = self.steps.estimate(arguments)
        return steps > STEPS_PER_CALL + STEPS_PER_VALUE * size

    @property
    def has_small_errors(self) -> bool:
        """Whether the first error of any arguments is small: no schema has a large union, whose error holds all errors
        of each alternative."""
        if self._has_small_errors is None:
            self._has_small_errors = not any(_has_large_union(each) for each in all_schemas(self.schema))
        return self._has_small_errors


def _has_large_union(schema: Json) -> bool:
    """Return whether the `anyOf` or `oneOf` of this schema, not of inner ones, can give an error with many inner
    errors: an alternative has subschemas or a reference, or there are more than `_MAX_ALTERNATIVES`."""
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inward = any(isinstance(each, dict) and not _INWARD.isdisjoint(each) for each in alternatives)
    return inward or len(alternatives) > _MAX_ALTERNATIVES


T = TypeVar("T")


class ToolCache(Generic[T]):
    """A cache by the identity of tools; its values must keep the tool alive. Beyond a size, all of it is dropped.
    `found` has the values by `id(tool)`."""

    def __init__(self) -> None:
        self.found: dict[int, T] = {}
        self._size = 0

    def store(self, tool: Tool, made: T, size: int) -> T:
        """Store a value for a tool, whose cost is `size`, and return it. If the cache is then too large, all other
        values are dropped first."""
        if self._size > _MAX_KEYWORDS or len(self.found) > _MAX_TOOLS:
            self.found.clear()
            self._size = 0
        self.found[id(tool)] = made
        self._size += size
        return made


_COMPILED: ToolCache[CompiledSchema] = ToolCache()


def compiled_schema(tool: Tool) -> CompiledSchema:
    """Return the compiled schema of a tool, from the cache if it is there. Raises ValueError if the schema cannot be
    compiled."""
    found = _COMPILED.found.get(id(tool))
    if found is None:
        found = CompiledSchema(tool)
        _COMPILED.store(tool, found, found.keyword_count)
    return found


def check_compiles(tool: Tool) -> None:
    """Raise `Refused` if the validator does not accept this tool's schema. The compiled schema is cached."""
    try:
        compiled_schema(tool)
    except ValueError as error:
        cause = f"the schema cannot be compiled ({str(error).splitlines()[0][:200]})"
        raise Refused("", cause, "write it as JSON Schema 2020-12 has it") from None


def compile_schema(schema: Json) -> Any:
    """Return a validator of jsonschema-rs for a schema with assertions only, which never fetches anything. Raises
    `ValueError` if the schema is invalid."""
    import jsonschema_rs

    # Linear in the length of the text, whatever the pattern.
    options = jsonschema_rs.RegexOptions(size_limit=REGEX_SIZE)
    return jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=options)


def _keep_assertions(schema: Any) -> Any:
    """Return a copy of a schema with only the keywords that are checked; annotations may have any value. A value that
    is no object is returned unchanged."""
    if not isinstance(schema, dict):
        return schema
    return {word: _keep_value(word, value) for word, value in schema.items() if word in _ASSERTING}


def _keep_value(word: str, value: Any) -> Any:
    """Return a copy of the value of the keyword `word`, with assertions only in its schemas, and in the form that the
    validator accepts."""
    if word in LISTS:
        return [_keep_assertions(item) for item in value]
    if word in MAPS or word == "$defs":
        return {make_checkable(key): _keep_assertions(item) for key, item in value.items()}
    if word in _COUNTS:
        return min(int(value), _MAX_COUNT)
    return _keep_assertions(value) if word in ONE else make_checkable(value)


# -- values that the validator does not accept -------------------------------------------------------------------------

# A lone surrogate is checked as a private-use character, and infinity (`1e400`) as the largest float.
_LONE = re.compile("[\ud800-\udfff]")
SURROGATE_SHIFT = 0x10F800 - 0xD800


def make_checkable(value: Any, items: int | None = None) -> Any:
    """Return a deep copy of a value that the validator accepts: lone surrogates and infinity are replaced. Lists longer
    than `items` are truncated, inside objects and lists too; None truncates none."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub(lambda found: chr(ord(found.group()) + SURROGATE_SHIFT), value)
    if isinstance(value, list):
        return [make_checkable(item, items) for item in value[:items]]
    if isinstance(value, dict):
        return {make_checkable(key): make_checkable(item, items) for key, item in value.items()}
    if isinstance(value, float):
        return copysign(sys.float_info.max, value) if isinf(value) else float(value)
    return value


LOOK_AT = 64  # errors
_LONG_LISTS = (500, 50, 5, 1)  # items: of longer lists only the beginning is checked first


def validator(tool: Tool) -> Any:
    """Return the validator of the tool's schema, from the cache if it is there. Raises `ValueError` if the schema
    cannot be compiled."""
    return compiled_schema(tool).validator


def is_too_much(tool: Tool, arguments: Any) -> bool:
    """Return whether checking these arguments against the tool's schema may take too long; such arguments are not
    checked, and are treated as not fitting."""
    return compiled_schema(tool).is_too_much(arguments)


def fits_schema(tool: Tool, arguments: Any) -> bool:
    """Return whether the arguments fit the tool's schema; False also if checking them may take too long."""
    compiled = compiled_schema(tool)
    if not compiled.is_light and compiled.is_too_much(arguments):
        return False
    try:
        if compiled.validator.is_valid(arguments):
            return True
    except ValueError:  # a lone surrogate
        return bool(compiled.validator.is_valid(make_checkable(arguments)))
    return False


class ErrorReport(NamedTuple):
    """The errors of arguments. `is_whole`: these are all there are, so that an empty list proves that the arguments
    fit."""

    errors: list[Any]
    is_whole: bool


def iter_error_reports(tool: Tool, arguments: Any) -> Iterator[ErrorReport]:
    """Yield reports of the same errors, of which a caller takes the first that has any: for the arguments with very
    long lists truncated, then always for the whole arguments or, if these errors may be too many, the first one if it
    is small. A report may be empty or left out. Nothing is yielded if checking may take too long."""
    compiled = compiled_schema(tool)
    if compiled.is_too_much(arguments):
        return
    whole = make_checkable(arguments)
    for items in _LONG_LISTS:
        cut = make_checkable(arguments, items)
        found = all_errors(tool, cut)
        if found is not None:
            yield ErrorReport(found, is_whole=False)
            break
    found = all_errors(tool, whole, MAX_REPAIR_ERRORS)
    if found is not None:
        yield ErrorReport(found, is_whole=True)
    elif compiled.has_small_errors:
        yield ErrorReport(_first_error(compiled.validator, whole), is_whole=False)


def errors(tool: Tool, arguments: Any, most: int | None = LOOK_AT) -> list[Any]:
    """Return the first `most` errors (None: all) of the first report of `iter_error_reports` that has any; [] if none
    has, which does not prove that the arguments fit."""
    return next((look.errors[:most] for look in iter_error_reports(tool, arguments) if look.errors), [])


def all_errors(tool: Tool, arguments: Any, most: int = MAX_ERRORS) -> list[Any] | None:
    """Return every error of jsonschema-rs, those of alternatives replaced by `closest_errors`; [] if the arguments fit,
    None if the errors may hold more than `most` values. `arguments` must be made by `make_checkable`."""
    compiled = compiled_schema(tool)
    return _list_errors(compiled.validator, arguments) if compiled.steps.estimate_errors(arguments) <= most else None


def _list_errors(validator: Any, arguments: Any) -> list[Any]:
    """Return all errors of the arguments; each error of `anyOf` or `oneOf` is replaced by `closest_errors`."""
    return [fault for error in validator.iter_errors(arguments) for fault in closest_errors(error)]


def _first_error(validator: Any, arguments: Any) -> list[Any]:
    """Return a list with the first error, or with those that `closest_errors` puts in its place; empty if there is
    none."""
    from jsonschema_rs import ValidationError

    try:
        validator.validate(arguments)
    except ValidationError as error:
        return closest_errors(error)
    return []


def closest_errors(error: Any) -> list[Any]:
    """Return a list with the error or, for an error of `anyOf` or `oneOf`, the errors of the one alternative that the
    value must be meant for, in turn replaced. If several alternatives are possible, the list has the error itself.

    An alternative is excluded if it has another type, or another constant that distinguishes the alternatives.
    """
    if error.kind.name not in ("anyOf", "oneOf"):
        return [error]
    size = len(error.instance_path)
    near = [found for found in error.kind.context if found and not any(_is_other_type(each, size) for each in found)]
    if len(near) > 1:
        near = [found for found in near if not any(_is_other_tag(each, size + 1) for each in found)]
    return [fault for inner in near[0] for fault in closest_errors(inner)] if len(near) == 1 else [error]


def _is_other_type(error: Any, size: int) -> bool:
    """Return whether an error says that the value whose path has `size` steps has another type than an alternative
    accepts, by its `type`, `enum` or `const`."""
    if len(error.instance_path) != size:
        return False
    return error.kind.name == "type" or type(error.instance) not in map(
        type, allowed_values(error.kind) or [error.instance]
    )


def _is_other_tag(error: Any, size: int) -> bool:
    """Return whether an error is one of `const` or `enum` for a value whose path has `size` steps: a tag that excludes
    its alternative."""
    return len(error.instance_path) == size and error.kind.name in ("const", "enum")


def allowed_values(kind: Any) -> list[Any]:
    """Return the values that the `enum` or `const` of an error's kind allows; an empty list for any other kind."""
    return list(kind.options) if kind.name == "enum" else [kind.expected_value] if kind.name == "const" else []


# -- paths and messages of errors --------------------------------------------------------------------------------------

_STAND_IN = re.compile("[\U0010f800-\U0010ffff]")


def error_path(error: Any) -> list[Any]:
    """Return the path of the error in the original arguments, keys and indexes, with lone surrogates restored, as a new
    list."""
    return [step if isinstance(step, int) else _STAND_IN.sub(_restore_surrogate, step) for step in error.instance_path]


def _restore_surrogate(found: re.Match[str]) -> str:
    """Return the lone surrogate that a stand-in replaces."""
    return chr(ord(found.group()) - SURROGATE_SHIFT)


def writable(text: str) -> str:
    """Return the text with lone surrogates and their stand-ins as escapes, so that a message is valid UTF-8."""
    if text.isascii():
        return text
    return _STAND_IN.sub(_restore_surrogate, text).encode("utf-8", "backslashreplace").decode("utf-8")
