"""Check whether a call is runnable. Each reason against it is a problem, worded for the model.

    check(Call("get_weather", {"days": "three"}, ""), tools)
    # missing: city is required ...   wrong_type: days must be an integer, not the string "three" ...

Arguments are checked by jsonschema-rs against the tool's complete schema, compiled once per tool; nothing is fetched.
At most five problems per call are returned, the most useful first; the last one counts the omitted ones. Everything
missing from one object is one problem. A required argument is missing even if it has a default: the repair `default`
fills it in, and is reported.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from math import isfinite
from typing import Any

import msgspec

from rightcall.schema.places import Places, value_at_place
from rightcall.schema.validation import (
    LOOK_AT,
    allowed_values,
    error_path,
    fits_schema,
    is_too_much,
    iter_error_reports,
    writable,
)
from rightcall.strict_json import MAX_CHECKED_DEPTH, Undecodable, decode, pointer_step
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, Problem, Reply, Tool

_ANY_DEPTH = sys.maxsize
_NAME = re.compile(r"[A-Za-z0-9_.\-]+").fullmatch
_INCOMPLETE = ("incomplete", "the call was cut off or could not be read; send it again")
_TOO_DEEP = ("too_deep", f"the arguments are nested deeper than {MAX_CHECKED_DEPTH} levels; send them flatter")
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
# Codes that `check` finds by itself: after a repair they no longer hold.
CHECKED_CODES = frozenset(_CODES.values()) | {
    *("schema", "invalid_name", "unknown_tool", "not_authorised"),
    *("invalid_json", "arguments_not_object", "arguments_disagree"),
}
_ORDER = ("missing", "unknown_argument", "wrong_type", "not_allowed", "no_match")


def check(call: Call | Reply, tools: Toolset | Iterable[ToolLike] | None, *, index: int | None = None) -> list[Problem]:
    """Return the problems that forbid to run a call; empty if it is runnable. `parse` and `read` return calls that are
    already checked.

    - `call`: a `Call`, or a `Reply` for all of its attempts. Blocking `Call.problems` are returned at once.
    - `tools`: the callable tools, as in `parse`; None checks only that the call is readable.
    - `index`: the position of the call in its reply, copied to the problems; None if there is none. That of a `Reply`'s
      call is always its own.
    """
    toolset = Toolset.of(tools)
    if isinstance(call, Reply):
        return [problem for at, each in enumerate(call.attempts) for problem in _check_call(each, toolset, at)]
    return _check_call(call, toolset, index)


def _check_call(call: Call, toolset: Toolset | None, index: int | None) -> list[Problem]:
    """Return the problems that forbid to run a call: its known blocking ones; else those of its completeness, its name
    and its argument text; else those of its arguments against the schema. Notes are neither returned nor do they end
    the check."""
    if blocking := [problem for problem in call.problems if problem.blocking]:
        return blocking
    tool = toolset.get(call.name) if toolset is not None else None
    name_problems = _find_name_problems(call, toolset, index) if tool is None else []
    if not call.complete:
        return [Problem(*_INCOMPLETE, call=index), *name_problems]
    wrong = value_problem(call.arguments) or argument_text_problem(call)
    if wrong is not None:
        return [*name_problems, Problem(*wrong, call=index)]
    return name_problems if tool is None else argument_problems(tool, call.arguments, index)


def _find_name_problems(call: Call, toolset: Toolset | None, index: int | None) -> list[Problem]:
    """Return a list with the problem of the name of a call for which there is no callable tool; [] only if no tools are
    declared (`toolset` is None) and the name is well-formed. `index`: that of the call."""
    found = name_problem(call.name, toolset)
    return [Problem(*found, call=index)] if found is not None else []


def value_problem(arguments: Any) -> tuple[str, str] | None:
    """Return code and message for arguments with a number that is NaN or infinite, or nested too deep to be checked;
    otherwise None."""
    layer = [arguments]
    for _ in range(MAX_CHECKED_DEPTH + 1):
        if not all(map(_is_finite, layer)):
            return _NOT_FINITE
        # A value that is in several places, or in itself, is examined once in each layer.
        nested = {id(value): value for value in layer if isinstance(value, (dict, list))}
        if not nested:
            return None
        layer = [inner for value in nested.values() for inner in (value.values() if isinstance(value, dict) else value)]
    return _TOO_DEEP


def _is_finite(value: Any) -> bool:
    """Return whether a value is no number that is NaN or infinite."""
    return not isinstance(value, float) or isfinite(value)


def argument_text_problem(call: Call) -> tuple[str, str] | None:
    """Return code and message if a call's arguments differ from its argument text, or the text has no JSON object;
    otherwise None. Empty text and null are `{}`."""
    text = call.json
    if not text or (text == "{}" and not call.arguments):
        return None
    value = _decode_argument_text(text)
    if isinstance(value, dict) and (
        _is_same_json(value, call.arguments) or _is_same_json(value, _round_trip(call.arguments))
    ):
        return None
    if call.arguments or isinstance(value, dict):
        return "arguments_disagree", "the call's arguments are not what its argument text says; send the call again"
    return _no_object_problem(value, text)


def _decode_argument_text(text: str) -> Any:
    """Return the decoded value of argument text, `{}` for blank text and null. Text that is no JSON gives an
    `Undecodable`; nothing is raised."""
    value = decode(text, _ANY_DEPTH)
    return {} if value is None or (isinstance(value, str) and not value.strip()) else value


def _no_object_problem(value: Any, text: str) -> tuple[str, str] | None:
    """Return code and message for argument `text` whose decoded `value` is no object: the error of text that is no
    JSON, else that an object is needed. None for blank text."""
    if isinstance(value, Undecodable):
        return (value.code, value.message) if text.strip() else None
    return "arguments_not_object", "the arguments must be a JSON object; send one"


def _is_same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values of any depth are equal; 1 equals 1.0, but not true."""
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


def _round_trip(arguments: dict[str, Any]) -> Any:
    """Return the arguments encoded to JSON and decoded again, since a program may have used tuples or keys that are not
    strings; None if JSON cannot represent them."""
    try:
        return decode(json.dumps(arguments), _ANY_DEPTH)
    except (TypeError, ValueError, RecursionError):
        return None


def name_problem(name: str, tools: Toolset | None) -> tuple[str, str] | None:
    """Return code and message for a name without a callable tool; None if no tools are declared and the name is
    well-formed. Do not ask for a name that is callable: it would be reported as unknown."""
    if not _NAME(name):
        if not name.strip():
            return "invalid_name", "the call has no tool name; send the name of a tool with its arguments"
        return "invalid_name", f"{name[:80]!r} is no tool name; a name has only letters, digits, '_', '-' and '.'"
    if tools is None:
        return None
    if tools.authorise(name) == "not_authorised":
        return "not_authorised", f"the tool {name[:80]!r} may not be called here; {describe_tool_names(tools)}"
    if tools.left_out(name) is not None:
        return (
            "unknown_tool",
            f"the tool {name[:80]!r} cannot be called: its definition cannot be used; {describe_tool_names(tools)}",
        )
    near = tools.nearest(name)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else describe_tool_names(tools)
    return "unknown_tool", f"there is no tool {name[:80]!r}; {hint}"


def describe_tool_names(tools: Toolset) -> str:
    """Return a sentence part that lists the callable tools for a message, at most 20, in the order of declaration; it
    says so if there are none."""
    names = [tool.name for tool in tools]
    if not names:
        return "no tools may be called here"
    return "available tools: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


# -- the problems ------------------------------------------------------------------------------------------------------


def argument_problems(tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    """Return the problems of the arguments against the tool's schema, the most useful first; at most five, of which the
    last one counts the omitted ones. Arguments that are too large to be checked are a problem."""
    if (wrong := value_problem(arguments)) is not None:
        return [Problem(*wrong, call=index)]
    if fits_schema(tool, arguments):
        return []
    if is_too_much(tool, arguments):
        return [Problem(*_TOO_LARGE, call=index)]
    found, is_certain = _find_errors(tool, arguments)
    if not found:
        return [] if is_certain else [Problem(*_TOO_MANY, call=index)]
    missing = _missing_problems(found, tool, arguments, index)
    others = [error for error in found if not _is_missing(error, tool, arguments)]
    problems = missing + [_make_problem(error, tool, arguments, index) for error in others[:LOOK_AT]]
    problems.sort(key=lambda problem: _ORDER.index(problem.code) if problem.code in _ORDER else len(_ORDER))
    omitted = len(missing) + len(others) - _MOST
    return problems if omitted <= 0 else [*problems[: _MOST - 1], _append_count(problems[_MOST - 1], omitted)]


def _find_errors(tool: Tool, arguments: dict[str, Any]) -> tuple[list[Any], bool]:
    """Return the validator's errors of the arguments against the tool's schema, and whether an empty list proves that
    there is none. A report that is limited in size is tried before a complete one."""
    is_certain = False
    for look in iter_error_reports(tool, arguments):
        is_certain = look.is_whole
        if look.errors:
            return look.errors, is_certain
    return [], is_certain


def _append_count(problem: Problem, omitted: int) -> Problem:
    """Return the problem with the number of `omitted` problems at the end of its message, which is shortened to
    `_LONGEST`."""
    more = f" (and {omitted} more problem{'s' if omitted > 1 else ''} of this call)"
    return msgspec.structs.replace(problem, message=problem.message[: _LONGEST - len(more)] + more)


def _is_missing(error: Any, tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether a schema error says that a required argument is absent, at any depth, or that a required argument
    at the top is null where null is not allowed. `arguments`: those of the call."""
    if error.kind.name == "required":
        return True
    steps = error_path(error)
    is_null_error = _CODES.get(error.kind.name) in ("wrong_type", "not_allowed", "no_match")
    return is_null_error and value_at_place(arguments, steps) is None and _is_required(tool, steps)


def _missing_problems(found: list[Any], tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    """Return one problem for each object with missing arguments, naming all of them; `found` are the schema errors, of
    which others are ignored."""
    lacking: dict[str, list[Any]] = {}
    for error in found:
        if _is_missing(error, tool, arguments):
            steps = error_path(error) if error.kind.name == "required" else error_path(error)[:-1]
            lacking.setdefault(steps_pointer(steps), []).append(error)
    return [
        _make_problem(errors[0], tool, arguments, index)
        if len(errors) == 1
        else _combined_missing_problem(errors, where, index)
        for where, errors in lacking.items()
    ]


def _combined_missing_problem(errors: list[Any], where: str, index: int | None) -> Problem:
    """Return the problem of an object that lacks several arguments, or has null for them, from the schema `errors`
    about them. `where` is its JSON pointer."""
    absent = [
        _display_path([*error_path(error), error.kind.property]) for error in errors if error.kind.name == "required"
    ]
    null = [_display_path(error_path(error)) for error in errors if error.kind.name != "required"]
    names = list(dict.fromkeys([*absent, *null]))
    message = f"{_join_names(names)} are required"
    if null:
        message += f", and {_join_names(null)} {'are' if len(null) > 1 else 'is'} null"
    value: Any = next((error.instance for error in errors if error.kind.name == "required"), {})
    message += f"; received: {_describe_received(value)}. Send all of them"
    return Problem("missing", writable(message), where, index)


def _join_names(names: list[str]) -> str:
    """Return names joined for a message, as "a, b and c", each cut to 80 characters; of more than `_MOST_NAMES`, the
    others are counted. There must be at least one."""
    shown = [name[:80] for name in names[:_MOST_NAMES]]
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _describe_received(value: Any) -> str:
    """Return the names of an object's members for a message, the first 20 of them sorted; "no arguments" for an empty
    object or another value."""
    return (", ".join(sorted(map(str, value))[:20])[:300] if isinstance(value, dict) else "") or "no arguments"


def _make_problem(error: Any, tool: Tool, arguments: dict[str, Any], index: int | None) -> Problem:
    """Return one schema error as a problem for the model: its code is one of `_CODES`, or "schema" for others, and
    `index` is that of the call."""
    kind = error.kind
    code = _CODES.get(kind.name, "schema")
    steps = error_path(error)
    where = _display_path(steps)
    value = error.instance
    if code == "missing":
        steps.append(kind.property)
        where = _display_path(steps)
        message = f"{where} is required; received: {_describe_received(value)}. Send {where} too"
    elif code in ("wrong_type", "not_allowed", "no_match") and value_at_place(arguments, steps) is None:
        required = _is_required(tool, steps)
        code = "missing" if required else code
        expected = _describe_expected([error], len(steps)) if code != "no_match" else "a value that is allowed"
        verb = "is" if steps else "are"  # "the arguments are"
        message = f"{where} {verb} {'required and ' if required else ''}null; send {expected}"
    elif code == "wrong_type":
        message = f"{where} must be {_describe_types(kind.types)}, not {_describe_value(value)}"
    elif code == "not_allowed":
        message = f"{where} must be {_describe_choices(allowed_values(kind))}, not {_describe_value(value)}"
    elif code == "no_match":
        message = f"{where} must be {_describe_alternatives(kind, len(steps))}, not {_describe_value(value)}"
        if not all(kind.context):
            message = f"{where}: several forms of which only one may fit do; sent: {_describe_value(value)}"
    elif code == "unknown_argument":
        message = _unknown_argument_message(kind, steps, tool)
    else:
        message = f"{where}: {error.message[:200]}"
    return Problem(code, writable(message[:_LONGEST]), steps_pointer(steps), index)


def _is_required(tool: Tool, steps: list[Any]) -> bool:
    """Return True if the path `steps` leads to a top-level argument that the tool requires."""
    return len(steps) == 1 and steps[0] in tool.parameters.get("required", ())


def _describe_alternatives(kind: Any, size: int) -> str:
    """Return in short what the alternatives of a failed `anyOf` or `oneOf` expect, at most eight, joined by "or".
    `kind`: the validator's error with their errors; `size`: the number of steps of the path to the value that they
    check."""
    expected = list(dict.fromkeys([_describe_expected(found, size) for found in kind.context[:9] if found]))
    more = [f"{len(kind.context) - 8} more forms"] if len(kind.context) > 9 else []
    return " or ".join([text[:120] for text in expected[:8]] + more)[:400]


def _describe_expected(found: list[Any], size: int) -> str:
    """Return what one alternative of a schema expects, as a phrase, from the first of its errors in `found`, which must
    not be empty. `size`: the number of steps of the path to the value that it checks."""
    error = found[0]
    inner = error_path(error)[size:]
    if inner:
        return f"one whose {_display_path(inner)} is {_describe_expected([error], size + len(inner))}"
    if error.kind.name == "type":
        return _describe_types(error.kind.types)
    if error.kind.name == "required":
        names = [each.kind.property for each in found if each.kind.name == "required"]
        return f"an object with {', '.join(names[:8])}"
    if allowed := allowed_values(error.kind):
        return _describe_choices(allowed)
    if names := list(getattr(error.kind, "unexpected", ())):
        return f"an object without {', '.join(names[:8])}"
    if error.kind.name in ("anyOf", "oneOf"):
        return _describe_alternatives(error.kind, size)
    return f"another one ({error.message[:80]})"


def _unknown_argument_message(kind: Any, steps: list[Any], tool: Tool) -> str:
    """Return the message for a schema error (`kind`) about unknown arguments of the object at `steps`: up to five of
    them, and up to 20 known ones."""
    names = [str(name) for name in getattr(kind, "unexpected", ())][:5]
    if kind.name == "propertyNames":
        names = [str(kind.error.instance)]
    places = Places(tool.parameters)
    known = ", ".join(list(places.properties(places.at(steps)))[:20])[:300]
    unknown = ", ".join([repr(writable(name[:100])) for name in names]) or _display_path(steps)
    where = f" of {_display_path(steps)}" if steps else ""
    return f"there is no argument {unknown}" + (f"; the arguments{where} are: {known}" if known else "")


def steps_pointer(steps: Iterable[Any]) -> str:
    """Return a path of keys and indexes (`steps`) as a JSON pointer, without lone surrogates; "" for no steps."""
    return writable("".join(map(pointer_step, steps)))


def _display_path(steps: list[Any]) -> str:
    """Return a path of keys and indexes (`steps`) as `a.b[0]` for a message, cut to 200 characters; "the arguments" for
    no steps."""
    text = "".join([f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]).removeprefix(".")
    return text[:200] or "the arguments"


_TYPE_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_TYPE_NAMES |= {"array": "an array", "object": "an object"}


def _describe_types(types: Iterable[str]) -> str:
    """Return JSON type names in words for a message, joined by "or"."""
    return " or ".join([_TYPE_NAMES.get(name, name) for name in types])


def _describe_value(value: Any) -> str:
    """Return a value as JSON for a message, cut to 80 characters; the type precedes a string, list or object."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    kind = "the string " if isinstance(value, str) else "the object " if isinstance(value, dict) else ""
    return ("the array " if isinstance(value, list) else kind) + (text if len(text) <= 80 else text[:77] + "...")


def _describe_choices(options: Any) -> str:
    """Return the allowed values for a message, at most 20, as JSON. A value of `options` that is no list is the only
    one."""
    values = options if isinstance(options, list) else [options]
    texts = [json.dumps(value, ensure_ascii=False) for value in values[:20]]
    if len(values) == 1:
        return texts[0][:80]
    return "one of " + ", ".join(texts) + (f" (and {len(values) - 20} more)" if len(values) > 20 else "")
