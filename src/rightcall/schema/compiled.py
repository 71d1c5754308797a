"""A tool's schema, compiled once by jsonschema-rs, and what it costs to ask it.

Nothing is ever fetched, and no pattern takes more than linear time.
"""

from __future__ import annotations

import re
import sys
from math import copysign, isinf
from typing import Any, Generic, TypeVar

from rightcall.schema.refusals import Refused
from rightcall.schema.steps import Steps, own_cost
from rightcall.schema.tool_limits import REGEX_SIZE, STEPS_PER_CALL, STEPS_PER_VALUE
from rightcall.schema.walk import LISTS, MAPS, ONE, all_schemas
from rightcall.types import Json, Tool

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

# A lone surrogate is judged as a character of its own that nobody writes, and infinity (`1e400`) as the largest float.
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
