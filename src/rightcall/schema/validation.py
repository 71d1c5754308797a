"""Validate arguments against a tool's schema, which is compiled once by jsonschema-rs.

Nothing is ever fetched, and no pattern takes more than linear time. The checker cannot be interrupted, so the cost of
a check is estimated first (`Steps`), and a check that would take too long is not started. Errors are listed only where
all of them can be made: for larger arguments, the beginning of each list is checked, then the first error of all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from math import copysign, isfinite, isinf
from typing import Any, Generic, NamedTuple, TypeVar

from rightcall.schema.limits import MAX_ERRORS, MAX_MENDED, REGEX_SIZE, STEPS_PER_CALL, STEPS_PER_VALUE, Refused
from rightcall.schema.walk import LISTS, MAPS, ONE, Refs, all_schemas, in_place, reachable, subschemas
from rightcall.types import Json, Tool

_LEVELS = 6  # deeper ones are not told apart
_PIECE = 64  # characters that are looked at in one step
_ERROR = 16  # values that an error itself is as large as
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$defs"))


class Cost(NamedTuple):
    """Of a value: once, and for each of its parts (members, items, pieces of a text)."""

    whole: int
    part: int


class Level(NamedTuple):
    """The number of values at one depth."""

    values: int
    parts: int


class Steps:
    """Of one schema, which must be a copy made by `relaxed`."""

    def __init__(self, schema: Json) -> None:
        self._refs = Refs(schema)
        self._cost: dict[int, Cost] = {}
        for each in reachable(self._refs):
            self._add_up(each)
        self._deep = _dearest(list(self._cost.values()))
        self._costs = self._by_level(schema)

    @property
    def most(self) -> int:
        """For one value or one part of it, whatever its place."""
        return sum(self._deep)

    def and_size(self, value: Any) -> tuple[int, int]:
        """The most steps that checking this value can take, and how large it is."""
        levels = _levels(value)
        steps = sum(level.values * cost.whole + level.parts * cost.part for level, cost in self._with_costs(levels))
        return steps, sum(level.values + level.parts for level in levels)

    def errors(self, value: Any) -> int:
        """What all errors of this value can hold: each has a copy of the value that it is about, with all inside."""
        found = inside = 0
        for level, cost in reversed(self._with_costs(_levels(value))):
            inside += level.values
            found += cost.whole * (inside + _ERROR * level.values)
        return found

    def _with_costs(self, levels: list[Level]) -> list[tuple[Level, Cost]]:
        costs = [*self._costs[: len(levels)], *[self._deep] * (len(levels) - _LEVELS)]
        return list(zip(levels, costs, strict=True))

    def _add_up(self, start: Json) -> None:
        """The cost of a schema is its own and that of all that apply to the same value; none applies itself."""
        stack = [start]
        while stack:
            here = stack[-1]
            below = in_place(here, self._refs)
            new = [each for each in below if id(each) not in self._cost]
            if new:
                stack += new
            else:
                costs = [own_cost(here), *[self._cost[id(each)] for each in below]]
                self._cost[id(stack.pop())] = Cost(*map(sum, zip(*costs, strict=True)))

    def _by_level(self, schema: Json) -> list[Cost]:
        found: list[Cost] = []
        level = [schema]
        for _ in range(_LEVELS):
            found.append(_dearest([self._cost[id(each)] for each in level]))
            level = self._below(level)
        return found

    def _below(self, level: list[Json]) -> list[Json]:
        """The schemas of what is inside the values that these speak of."""
        seen: set[int] = set()
        inner: dict[int, Json] = {}
        while level:
            here = level.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            level += in_place(here, self._refs)
            subs = [sub.schema for sub in subschemas(here) if sub.keyword not in _IN_PLACE]
            inner.update({id(each): each for each in subs if isinstance(each, dict)})
        return list(inner.values())


def _dearest(costs: list[Cost]) -> Cost:
    return Cost(max([cost.whole for cost in costs], default=1), max([cost.part for cost in costs], default=1))


def own_cost(schema: Json) -> Cost:
    """What the keywords of one schema cost, measured in what a plain one does."""
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


def _levels(value: Any) -> list[Level]:
    found: list[Level] = []
    values: list[Any] = [value]
    while values:
        parts, inner = 0, list[Any]()
        for each in values:
            if isinstance(each, str):
                parts += len(each) // _PIECE
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
_MOST_COUNT = 2**53
_INWARD = frozenset((*ONE, *MAPS, "prefixItems", "$ref")) - {"not", "if", "then", "else"}
_FEW = 64  # alternatives
_MOST_HELD = 200_000  # keywords, of all tools that are kept compiled
_MOST_TOOLS = 4_096


class Judge:
    """`ask` is the compiled schema. `held` is how many keywords it has, `size` how many constants besides. `is_light`:
    whatever is sent, checking it is cheap."""

    __slots__ = ("_steps", "_tells_one", "ask", "held", "is_light", "schema", "size", "tool")

    def __init__(self, tool: Tool) -> None:
        from rightcall.schema.relax import relaxed

        self.tool = tool  # kept: an id is only unique among living objects
        self.schema = _asserted(relaxed(tool.name, tool.parameters)[0])
        self.ask = compile_schema(self.schema)
        schemas = list(all_schemas(self.schema))
        self.held = sum([sum(own_cost(each)) for each in schemas])
        self.size = self.held + sum([len(each["enum"]) for each in schemas if "enum" in each])
        self._tells_one: bool | None = None
        self.is_light = self.held <= STEPS_PER_VALUE and "$defs" not in self.schema
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        if self._steps is None:
            self._steps = Steps(self.schema)
            self.is_light = self.is_light or self._steps.most <= STEPS_PER_VALUE
        return self._steps

    @property
    def is_always_light(self) -> bool:
        """The same, worked out where it takes a closer look."""
        return self.is_light or self.steps.most <= STEPS_PER_VALUE

    def is_too_much(self, arguments: Any) -> bool:
        """Would it take too long to check this?"""
        if self.is_light:
            return False
        steps, size = self.steps.and_size(arguments)
        return steps > STEPS_PER_CALL + STEPS_PER_VALUE * size

    @property
    def tells_one(self) -> bool:
        """Is the first error of any arguments small? One of alternatives holds all that is wrong with each of them."""
        if self._tells_one is None:
            self._tells_one = not any(_holds_more(each) for each in all_schemas(self.schema))
        return self._tells_one


def _holds_more(schema: Json) -> bool:
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    inward = any(isinstance(each, dict) and not _INWARD.isdisjoint(each) for each in alternatives)
    return inward or len(alternatives) > _FEW


T = TypeVar("T")


class Kept(Generic[T]):
    """What was made of each tool, by the tool's identity, so that it must hold the tool. Beyond a size all is forgotten
    and made again where it is asked for."""

    def __init__(self) -> None:
        self.found: dict[int, T] = {}
        self._size = 0

    def keep(self, tool: Tool, made: T, size: int) -> T:
        if self._size > _MOST_HELD or len(self.found) > _MOST_TOOLS:
            self.found.clear()
            self._size = 0
        self.found[id(tool)] = made
        self._size += size
        return made


_JUDGES: Kept[Judge] = Kept()


def judge_of(tool: Tool) -> Judge:
    found = _JUDGES.found.get(id(tool))
    if found is None:
        found = Judge(tool)
        _JUDGES.keep(tool, found, found.held)
    return found


def check_compiles(tool: Tool) -> None:
    """Raises `Refused` if the checker cannot take this tool's schema."""
    try:
        judge_of(tool)
    except ValueError as error:
        cause = f"the schema cannot be compiled ({str(error).splitlines()[0][:200]})"
        raise Refused("", cause, "write it as JSON Schema 2020-12 has it") from None


def compile_schema(schema: Json) -> Any:
    """What judges by a schema that has nothing but what is checked."""
    import jsonschema_rs

    # Linear in the length of the text, whatever the pattern.
    options = jsonschema_rs.RegexOptions(size_limit=REGEX_SIZE)
    return jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=options)


def _asserted(schema: Any) -> Any:
    """A copy with nothing but what is checked; what only describes may be of any kind."""
    if not isinstance(schema, dict):
        return schema
    return {word: _keyword(word, value) for word, value in schema.items() if word in _ASSERTING}


def _keyword(word: str, value: Any) -> Any:
    if word in LISTS:
        return [_asserted(item) for item in value]
    if word in MAPS or word == "$defs":
        return {plain(key): _asserted(item) for key, item in value.items()}
    if word in _COUNTS:
        return min(int(value), _MOST_COUNT)
    return _asserted(value) if word in ONE else plain(value)


# -- values that are no text or number to the checker ------------------------------------------------------------------

# A lone surrogate is checked as a private-use character, and infinity (`1e400`) as the largest float.
_LONE = re.compile("[\ud800-\udfff]")
UP = 0x10F800 - 0xD800


def plain(value: Any, items: int | None = None) -> Any:
    """A copy that the checker takes; lists longer than `items` are cut."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub(lambda found: chr(ord(found.group()) + UP), value)
    if isinstance(value, list):
        return [plain(item, items) for item in value[:items]]
    if isinstance(value, dict):
        return {plain(key): plain(item, items) for key, item in value.items()}
    if isinstance(value, float):
        return copysign(sys.float_info.max, value) if isinf(value) else float(value)
    return value


LOOK_AT = 64  # errors
_LONG_LISTS = (500, 50, 5, 1)  # items: of longer lists only the beginning is looked at first


def validator(tool: Tool) -> Any:
    """The tool's schema, compiled."""
    return judge_of(tool).ask


def is_too_much(tool: Tool, arguments: Any) -> bool:
    """Would it take too long to check these arguments? Then they do not fit."""
    return judge_of(tool).is_too_much(arguments)


def fits(tool: Tool, arguments: Any) -> bool:
    judge = judge_of(tool)
    if not judge.is_light and judge.is_too_much(arguments):
        return False
    try:
        if judge.ask.is_valid(arguments):
            return True
    except ValueError:  # a lone surrogate
        return bool(judge.ask.is_valid(plain(arguments)))
    return False


class Look(NamedTuple):
    """Errors, and whether these are all there are."""

    errors: list[Any]
    is_whole: bool


def looks(tool: Tool, arguments: Any) -> Iterator[Look]:
    """What is wrong, first in the beginning of very long lists and then in all: each error costs, and all of them are
    made before the first is given. Nothing where there is too much to look at."""
    judge = judge_of(tool)
    if judge.is_too_much(arguments):
        return
    whole = plain(arguments)
    for items in _LONG_LISTS:
        cut = plain(arguments, items)
        found = faults(tool, cut)
        if found is not None:
            yield Look(found, is_whole=False)
            break
    found = faults(tool, whole, MAX_MENDED)
    if found is not None:
        yield Look(found, is_whole=True)
    elif judge.tells_one:
        yield Look(_first(judge.ask, whole), is_whole=False)


def errors(tool: Tool, arguments: Any, most: int | None = LOOK_AT) -> list[Any]:
    """The first so many errors."""
    return next((look.errors[:most] for look in looks(tool, arguments) if look.errors), [])


def faults(tool: Tool, arguments: Any, most: int = MAX_ERRORS) -> list[Any] | None:
    """Every error of jsonschema-rs. `arguments` is what `plain` made of them; None where there may be too many."""
    judge = judge_of(tool)
    return _listed(judge.ask, arguments) if judge.steps.errors(arguments) <= most else None


def _listed(ask: Any, arguments: Any) -> list[Any]:
    return [fault for error in ask.iter_errors(arguments) for fault in closest(error)]


def _first(ask: Any, arguments: Any) -> list[Any]:
    from jsonschema_rs import ValidationError

    try:
        ask.validate(arguments)
    except ValidationError as error:
        return closest(error)
    return []


def closest(error: Any) -> list[Any]:
    """The errors of the one alternative that was meant, where that is certain; else the error itself.

    What is of another type was not meant, nor was what differs in a constant that tells alternatives apart.
    """
    if error.kind.name not in ("anyOf", "oneOf"):
        return [error]
    size = len(error.instance_path)
    near = [found for found in error.kind.context if found and not any(_other_type(each, size) for each in found)]
    if len(near) > 1:
        near = [found for found in near if not any(_other_tag(each, size + 1) for each in found)]
    return [fault for inner in near[0] for fault in closest(inner)] if len(near) == 1 else [error]


def _other_type(error: Any, size: int) -> bool:
    if len(error.instance_path) != size:
        return False
    return error.kind.name == "type" or type(error.instance) not in map(type, options(error.kind) or [error.instance])


def _other_tag(error: Any, size: int) -> bool:
    return len(error.instance_path) == size and error.kind.name in ("const", "enum")


def options(kind: Any) -> list[Any]:
    """The values that an `enum` or `const` allows."""
    return list(kind.options) if kind.name == "enum" else [kind.expected_value] if kind.name == "const" else []


# -- values that are no text or number to the checker ------------------------------------------------------------------

_STAND_IN = re.compile("[\U0010f800-\U0010ffff]")


def place(error: Any) -> list[Any]:
    """Where in the arguments themselves the error is."""
    return [step if isinstance(step, int) else _STAND_IN.sub(_lone, step) for step in error.instance_path]


def _lone(found: re.Match[str]) -> str:
    return chr(ord(found.group()) - UP)


def writable(text: str) -> str:
    """Replace lone surrogates and their stand-ins by escapes, so that a message is valid UTF-8."""
    if text.isascii():
        return text
    return _STAND_IN.sub(_lone, text).encode("utf-8", "backslashreplace").decode("utf-8")


def is_finite(value: Any) -> bool:
    """Is every number in it one that JSON can carry?"""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or isfinite(value)
