"""Is this call one that may run? What is wrong comes back as problems, worded for the model.

    check(Call("get_weather", {"days": "three"}, ""), tools)
    # missing: city is required ...   wrong_type: days must be an integer, not the string "three" ...

Arguments are checked by jsonschema-rs against the tool's whole schema, compiled once per tool; nothing is ever fetched.
At most five problems of a call are given, the most useful first; the last says how many more there are. All that is
missing from one object is one problem. A required argument is missing even if it has a default: the repair `default`
fills it in, and reports that.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from rightcall.json_pointer import step
from rightcall.schema.places import Places, value_at
from rightcall.schema.validation import (
    LOOK_AT,
    errors,
    faults,
    fits,
    is_finite,
    is_too_much,
    looks,
    options,
    place,
    plain,
    validator,
    writable,
)
from rightcall.strict_json import Undecodable, decode
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, Problem, Reply, Tool

_ANY_DEPTH = sys.maxsize
__all__ = [
    "JUDGED",
    "argument_problems",
    "check",
    "disagreement_of",
    "errors",
    "faults",
    "fits",
    "is_finite",
    "listing",
]
__all__ += ["name_problem", "place", "plain", "pointer", "validator"]

_NAME = re.compile(r"[A-Za-z0-9_.\-]+").fullmatch
_INCOMPLETE = ("incomplete", "the call was cut off or could not be read; send it again")
_NOT_FINITE = ("not_finite", "the arguments hold a number that JSON cannot carry; send a finite one")
_TOO_LARGE = (
    "too_large",
    "the arguments are too large to be checked against this tool's schema; send fewer values, in several calls",
)
_TOO_MANY = (
    "too_large",
    "the arguments do not fit this tool's schema, and are too large to tell where; send fewer values, in several calls",
)
_MOST = 5
_MOST_NAMES = 64
_LONGEST = 600
_CODES = {
    "required": "missing",
    "type": "wrong_type",
    "enum": "not_allowed",
    "const": "not_allowed",
    "additionalProperties": "unknown_argument",
    "unevaluatedProperties": "unknown_argument",
    "propertyNames": "unknown_argument",
    "falseSchema": "unknown_argument",
    "anyOf": "no_match",
    "oneOf": "no_match",
    "pattern": "wrong_pattern",
    "minimum": "out_of_range",
    "maximum": "out_of_range",
    "exclusiveMinimum": "out_of_range",
    "exclusiveMaximum": "out_of_range",
    "multipleOf": "out_of_range",
    "minLength": "wrong_length",
    "maxLength": "wrong_length",
    "minItems": "wrong_length",
    "maxItems": "wrong_length",
    "minProperties": "wrong_length",
    "maxProperties": "wrong_length",
    "uniqueItems": "not_unique",
}
# Codes that say nothing but what `check` finds by itself: once a call is mended they no longer hold.
JUDGED = frozenset(_CODES.values()) | {
    *("schema", "invalid_name", "unknown_tool", "not_authorised"),
    *("invalid_json", "arguments_not_object", "arguments_disagree"),
}
_ORDER = ("missing", "unknown_argument", "wrong_type", "not_allowed", "no_match")


def check(call: Call | Reply, tools: Toolset | Iterable[ToolLike] | None, *, index: int | None = None) -> list[Problem]:
    """Why this call must not run; empty if it may. What `parse` and `read` give is checked already.

    - `call`: a `Call`, or a `Reply` for all of its attempts. What is known to block it (`Call.problems`) is told first.
    - `tools`: what may be called, as in `parse`; None checks only that the call can be read.
    - `index`: the call's place in a reply, where it has one: the `call` of the problems.
    """
    toolset = Toolset.of(tools)
    if isinstance(call, Reply):
        return [problem for at, each in enumerate(call.attempts) for problem in _check_call(each, toolset, at)]
    return _check_call(call, toolset, index)


def _check_call(call: Call, toolset: Toolset | None, index: int | None) -> list[Problem]:
    if call.problems and (known := [problem for problem in call.problems if problem.blocking]):
        return known
    tool = toolset.get(call.name) if toolset is not None else None
    misnamed = name_problem(call.name, toolset) if tool is None else None
    found = [Problem(*misnamed, call=index)] if misnamed is not None else []
    if not call.complete:
        return [Problem(*_INCOMPLETE, call=index), *found]
    wrong = _NOT_FINITE if not is_finite(call.arguments) else disagreement_of(call)
    if wrong is not None:
        return [*found, Problem(*wrong, call=index)]
    return found if tool is None else argument_problems(tool, call.arguments, index)


def disagreement_of(call: Call) -> tuple[str, str] | None:
    """Code and message, where the arguments are not what the argument text says. Nothing, and null, say `{}`."""
    text = call.json
    if not text or (text == "{}" and not call.arguments):
        return None
    value = _said_by(text)
    if isinstance(value, dict) and (_is_same(value, call.arguments) or _is_same(value, _as_read_back(call.arguments))):
        return None
    if call.arguments or isinstance(value, dict):
        return "arguments_disagree", "the call's arguments are not what its argument text says; send the call again"
    return _no_object(value, text)


def _said_by(text: str) -> Any:
    value = decode(text, _ANY_DEPTH)
    return {} if value is None or (isinstance(value, str) and not value.strip()) else value


def _no_object(value: Any, text: str) -> tuple[str, str] | None:
    """Argument text, read by nobody yet, that holds no object."""
    if isinstance(value, Undecodable):
        return (value.code, value.message) if text.strip() else None
    return "arguments_not_object", "the arguments must be a JSON object; send one"


def _is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1. However deep they are."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            pairs += [(each, other[key]) for key, each in one.items()]
        elif isinstance(one, list):
            if not isinstance(other, list) or len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other or isinstance(one, bool) != isinstance(other, bool):
            return False
    return True


def _as_read_back(arguments: dict[str, Any]) -> Any:
    """What a program made may hold tuples, or keys that are no strings: JSON has neither."""
    try:
        return decode(json.dumps(arguments), _ANY_DEPTH)
    except (TypeError, ValueError, RecursionError):
        return None


def name_problem(name: str, tools: Toolset | None) -> tuple[str, str] | None:
    """Code and message of what is wrong with the name of no declared tool. Without tools a well-formed one will do."""
    if not _NAME(name):
        if not name.strip():
            return "invalid_name", "the call has no tool name; send the name of a tool with its arguments"
        return "invalid_name", f"{name[:80]!r} is no tool name; a name has only letters, digits, '_', '-' and '.'"
    if tools is None:
        return None
    if tools.authorise(name) == "not_authorised":
        return "not_authorised", f"the tool {name[:80]!r} may not be called here; {listing(tools)}"
    if tools.left_out(name) is not None:
        return (
            "unknown_tool",
            f"the tool {name[:80]!r} cannot be called: its definition cannot be used; {listing(tools)}",
        )
    near = tools.nearest(name)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else listing(tools)
    return "unknown_tool", f"there is no tool {name[:80]!r}; {hint}"


def listing(tools: Toolset) -> str:
    names = [tool.name for tool in tools]
    if not names:
        return "no tools may be called here"
    return "available tools: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


# -- the problems ------------------------------------------------------------------------------------------------------


def argument_problems(tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    if not is_finite(arguments):
        return [Problem(*_NOT_FINITE, call=index)]
    if fits(tool, arguments):
        return []
    if is_too_much(tool, arguments):
        return [Problem(*_TOO_LARGE, call=index)]
    found, certain = _found(tool, arguments)
    if not found:
        return [] if certain else [Problem(*_TOO_MANY, call=index)]
    missing = _missing(found, tool, arguments, index)
    others = [error for error in found if not _is_missing(error, tool, arguments)]
    problems = missing + [_problem(error, tool, arguments, index) for error in others[:LOOK_AT]]
    problems.sort(key=lambda p: _ORDER.index(p.code) if p.code in _ORDER else len(_ORDER))
    left = len(missing) + len(others) - _MOST
    return problems if left <= 0 else [*problems[: _MOST - 1], _with_count(problems[_MOST - 1], left)]


def _found(tool: Tool, arguments: dict[str, Any]) -> tuple[list[Any], bool]:
    """The errors that count, and whether none means that there is none."""
    certain = False
    for look in looks(tool, arguments):
        certain = look.is_whole
        if look.errors:
            return look.errors, certain
    return [], certain


def _with_count(problem: Problem, left: int) -> Problem:
    more = f" (and {left} more problem{'s' if left > 1 else ''} of this call)"
    return msgspec.structs.replace(problem, message=problem.message[: _LONGEST - len(more)] + more)


def _is_missing(error: Any, tool: Tool, arguments: dict[str, Any]) -> bool:
    """Is an argument not there that must be, or null where null is not allowed?"""
    if error.kind.name == "required":
        return True
    steps = place(error)
    judged = _CODES.get(error.kind.name) in ("wrong_type", "not_allowed", "no_match")
    return judged and value_at(arguments, steps) is None and _is_required(tool, steps)


def _missing(found: list[Any], tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    """One problem for each object that lacks something: it names all that is missing there."""
    lacking: dict[str, list[Any]] = {}
    for error in found:
        if _is_missing(error, tool, arguments):
            steps = place(error) if error.kind.name == "required" else place(error)[:-1]
            lacking.setdefault(pointer(steps), []).append(error)
    return [
        _problem(errors[0], tool, arguments, index) if len(errors) == 1 else _all_missing(errors, where, index)
        for where, errors in lacking.items()
    ]


def _all_missing(errors: list[Any], where: str, index: int | None) -> Problem:
    absent = [_where([*place(error), error.kind.property]) for error in errors if error.kind.name == "required"]
    null = [_where(place(error)) for error in errors if error.kind.name != "required"]
    names = list(dict.fromkeys([*absent, *null]))
    message = f"{_listed(names)} are required"
    if null:
        message += f", and {_listed(null)} {'are' if len(null) > 1 else 'is'} null"
    value: Any = next((error.instance for error in errors if error.kind.name == "required"), {})
    message += f"; received: {_received(value)}. Send all of them"
    return Problem("missing", writable(message), where, index)


def _listed(names: list[str]) -> str:
    """All of them, within bounds that only a hostile schema reaches; where some are left out, that is said."""
    shown = [name[:80] for name in names[:_MOST_NAMES]]
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _received(value: Any) -> str:
    return (", ".join(sorted(map(str, value))[:20])[:300] if isinstance(value, dict) else "") or "no arguments"


def _problem(error: Any, tool: Tool, arguments: dict[str, Any], index: int | None) -> Problem:
    kind = error.kind
    code = _CODES.get(kind.name, "schema")
    steps = place(error)
    value = error.instance
    if code == "missing":
        steps.append(kind.property)
        message = f"{_where(steps)} is required"
        message += f"; received: {_received(value)}. Send {_where(steps)} too"
    elif code in ("wrong_type", "not_allowed", "no_match") and value_at(arguments, steps) is None:
        required = _is_required(tool, steps)
        code = "missing" if required else code
        wanted = _wanted([error], len(steps)) if code != "no_match" else "a value that is allowed"
        message = f"{_where(steps)} {_is(steps)} {'required and ' if required else ''}null; send {wanted}"
    elif code == "wrong_type":
        message = f"{_where(steps)} must be {_types(kind.types)}, not {_said(value)}"
    elif code == "not_allowed":
        message = f"{_where(steps)} must be {_choices(options(kind))}, not {_said(value)}"
    elif code == "no_match":
        message = f"{_where(steps)} must be {_alternatives(kind, len(steps))}, not {_said(value)}"
        if not all(kind.context):
            message = f"{_where(steps)}: several forms of which only one may fit do; sent: {_said(value)}"
    elif code == "unknown_argument":
        message = _unknown(kind, steps, tool)
    else:
        message = f"{_where(steps)}: {error.message[:200]}"
    return Problem(code, writable(message[:_LONGEST]), pointer(steps), index)


def _is_required(tool: Tool, steps: list[Any]) -> bool:
    """Is this an argument that must be sent?"""
    return len(steps) == 1 and steps[0] in tool.parameters.get("required", ())


def _alternatives(kind: Any, size: int) -> str:
    """What each alternative of an `anyOf` or `oneOf` asks for, in short."""
    wanted = list(dict.fromkeys([_wanted(found, size) for found in kind.context[:9] if found]))
    more = [f"{len(kind.context) - 8} more forms"] if len(kind.context) > 9 else []
    return " or ".join([text[:120] for text in wanted[:8]] + more)[:400]


def _wanted(found: list[Any], size: int) -> str:
    """What the errors of one alternative ask for."""
    error = found[0]
    inner = place(error)[size:]
    if inner:
        return f"one whose {_where(inner)} is {_wanted([error], size + len(inner))}"
    if error.kind.name == "type":
        return _types(error.kind.types)
    if error.kind.name == "required":
        names = [each.kind.property for each in found if each.kind.name == "required"]
        return f"an object with {', '.join(names[:8])}"
    if allowed := options(error.kind):
        return _choices(allowed)
    if names := list(getattr(error.kind, "unexpected", ())):
        return f"an object without {', '.join(names[:8])}"
    if error.kind.name in ("anyOf", "oneOf"):
        return _alternatives(error.kind, size)
    return f"another one ({error.message[:80]})"


def _unknown(kind: Any, steps: list[Any], tool: Tool) -> str:
    names = [str(name) for name in getattr(kind, "unexpected", ())][:5]
    if kind.name == "propertyNames":
        names = [str(kind.error.instance)]
    places = Places(tool.parameters)
    known = ", ".join(list(places.properties(places.at(steps)))[:20])[:300]
    what = ", ".join([repr(writable(name[:100])) for name in names]) or _where(steps)
    where = f" of {_where(steps)}" if steps else ""
    return f"there is no argument {what}" + (f"; the arguments{where} are: {known}" if known else "")


def _is(steps: list[Any]) -> str:
    return "is" if steps else "are"  # of "the arguments"


def pointer(steps: Iterable[Any]) -> str:
    return writable("".join(map(step, steps)))


def _where(steps: list[Any]) -> str:
    text = "".join([f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]).removeprefix(".")
    return text[:200] or "the arguments"


_A = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null"}
_A |= {"array": "an array", "object": "an object"}


def _types(types: Iterable[str]) -> str:
    return " or ".join([_A.get(name, name) for name in types])


def _said(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    kind = "the string " if isinstance(value, str) else "the object " if isinstance(value, dict) else ""
    return ("the array " if isinstance(value, list) else kind) + (text if len(text) <= 80 else text[:77] + "...")


def _choices(options: Any) -> str:
    values = options if isinstance(options, list) else [options]
    texts = [json.dumps(value, ensure_ascii=False) for value in values[:20]]
    if len(values) == 1:
        return texts[0][:80]
    return "one of " + ", ".join(texts) + (f" (and {len(values) - 20} more)" if len(values) > 20 else "")
