"""A tool's schema, compiled once by jsonschema-rs: does a value fit, and if not, what is wrong where?

Nothing is ever fetched, and no pattern takes more than linear time.
"""

from __future__ import annotations

import re
import sys
from math import copysign, isfinite, isinf
from typing import Any

from rightcall.types import Json, Tool

LOOK_AT = 64  # errors
LONG_LIST = 500  # items: of a longer list only the beginning is looked at first

_VALIDATORS: dict[int, tuple[Tool, Any]] = {}


def validator(tool: Tool) -> Any:
    """The tool's schema, compiled. Kept with the tool: an id is only unique among living objects."""
    found = _VALIDATORS.get(id(tool))
    if found is None:
        if len(_VALIDATORS) > 4096:
            _VALIDATORS.clear()
        found = _VALIDATORS[id(tool)] = (tool, compile_schema(tool.name, tool.parameters))
    return found[1]


def compile_schema(name: str, parameters: Json) -> Any:
    """What judges arguments by this schema of the tool of that name."""
    import jsonschema_rs

    from rightcall.declare.relax import REGEX_SIZE, relaxed

    options = jsonschema_rs.RegexOptions(
        size_limit=REGEX_SIZE
    )  # linear in the length of the text, whatever the pattern
    schema, _ = relaxed(name, parameters)
    return jsonschema_rs.Draft202012Validator(plain(schema), offline=True, pattern_options=options)


def fits(tool: Tool, arguments: Any) -> bool:
    judge = validator(tool)
    try:
        if judge.is_valid(arguments):
            return True
    except ValueError:  # a lone surrogate
        return bool(judge.is_valid(plain(arguments)))
    return False


def errors(tool: Tool, arguments: Any, most: int | None = LOOK_AT) -> list[Any]:
    """The first so many errors. Of a very long list only the beginning is looked at, if that has any: each error costs,
    and all of them are made before the first is given."""
    return (faults(tool, plain(arguments, LONG_LIST)) or faults(tool, plain(arguments)))[:most]


def faults(tool: Tool, arguments: Any) -> list[Any]:
    """Every error of jsonschema-rs. `arguments` is what `plain` made of them."""
    return [fault for error in validator(tool).iter_errors(arguments) for fault in closest(error)]


def closest(error: Any) -> list[Any]:
    """The errors of the one alternative that was meant, where that can be told; else the error itself.

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

# A lone surrogate is judged as a character of its own that nobody writes, and infinity (`1e400`) as the largest float.
_LONE = re.compile("[\ud800-\udfff]")
_STAND_IN = re.compile("[\U0010f800-\U0010ffff]")
_UP = 0x10F800 - 0xD800


def plain(value: Any, items: int | None = None) -> Any:
    """A copy that the checker takes; lists longer than `items` are cut."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE.sub(lambda found: chr(ord(found.group()) + _UP), value)
    if isinstance(value, list):
        return [plain(item, items) for item in value[:items]]
    if isinstance(value, dict):
        return {plain(key): plain(item, items) for key, item in value.items()}
    if isinstance(value, float):
        return copysign(sys.float_info.max, value) if isinf(value) else float(value)
    return value


def place(error: Any) -> list[Any]:
    """Where in the arguments themselves the error is."""
    return [step if isinstance(step, int) else _STAND_IN.sub(_lone, step) for step in error.instance_path]


def _lone(found: re.Match[str]) -> str:
    return chr(ord(found.group()) - _UP)


def writable(text: str) -> str:
    """Lone surrogates, and what stands for them, as escapes: a message can be written as UTF-8."""
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
