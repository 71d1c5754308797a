"""Is this call one that may run? What is wrong comes back as problems, worded for the model.

    check(Call("get_weather", {"days": "three"}, ""), tools)
    # missing: city is required ...   wrong_type: days must be an integer, not the string "three" ...

Arguments are checked by jsonschema-rs against the tool's whole schema, compiled once per tool; nothing is ever fetched.
At most five problems of a call are given, the most useful first. A required argument that has a default is not missing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from math import copysign, isfinite, isinf
from typing import Any

from rightcall.declare.places import MISSING, Places, value_at
from rightcall.declare.toolset import ToolLike, Toolset
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.types import Call, Problem, Tool

_NAME = re.compile(r"[A-Za-z0-9_.\-]+").fullmatch
_MOST = 5
_LOOK_AT = 64
_LONGEST = 600
_LONG_LIST = 500
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
_ORDER = ("missing", "unknown_argument", "wrong_type", "not_allowed", "no_match")


def check(call: Call, tools: Toolset | Iterable[ToolLike] | None, *, index: int | None = None) -> list[Problem]:
    """What is wrong with this call, if anything. `index` is its place in a reply, where it has one."""
    toolset = Toolset.of(tools)
    found: list[Problem] = []
    if not call.complete:
        found.append(Problem("incomplete", "the call was cut off or could not be read; send it again", call=index))
    tool = toolset.get(call.name) if toolset is not None else None
    if tool is None:
        wrong = name_problem(call.name, toolset)
        return [*found, Problem(*wrong, call=index)] if wrong else found
    if not call.complete:
        return found
    if not call.arguments and call.json and call.json[0] != "{" and _is_no_object(call.json):
        return [Problem("arguments_not_object", "the arguments must be a JSON object; send one", call=index)]
    return argument_problems(tool, call.arguments, index)


def _is_no_object(text: str) -> bool:
    """Was something sent that is no object, so that `{}` only stands in for it? Nothing at all counts as `{}`."""
    value = decode(text, MAX_DEPTH)
    return not isinstance(value, (dict, Undecodable)) and value is not None and value != ""


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
    near = tools.nearest(name)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else listing(tools)
    return "unknown_tool", f"there is no tool {name[:80]!r}; {hint}"


def listing(tools: Toolset) -> str:
    names = [tool.name for tool in tools]
    if not names:
        return "no tools may be called here"
    return "available tools: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


# -- the schema --------------------------------------------------------------------------------------------------------

_VALIDATORS: dict[int, tuple[Tool, Any]] = {}


def validator(tool: Tool) -> Any:
    """The tool's schema, compiled. Kept with the tool: an id is only unique among living objects."""
    found = _VALIDATORS.get(id(tool))
    if found is None:
        if len(_VALIDATORS) > 4096:
            _VALIDATORS.clear()
        found = _VALIDATORS[id(tool)] = (tool, _compile(tool))
    return found[1]


def _compile(tool: Tool) -> Any:
    import jsonschema_rs

    from rightcall.declare.relax import REGEX_SIZE, relaxed

    options = jsonschema_rs.RegexOptions(
        size_limit=REGEX_SIZE
    )  # linear in the length of the text, whatever the pattern
    schema, _ = relaxed(tool.name, tool.parameters)
    return jsonschema_rs.Draft202012Validator(plain(schema), offline=True, pattern_options=options)


def fits(tool: Tool, arguments: Any) -> bool:
    judge = validator(tool)
    try:
        if judge.is_valid(arguments):
            return True
    except ValueError:  # a lone surrogate
        return bool(judge.is_valid(plain(arguments)))
    return False


def errors(tool: Tool, arguments: Any, most: int | None = _LOOK_AT) -> list[Any]:
    """The first so many errors. Of a very long list only the beginning is looked at, if that has any: each error costs,
    and all of them are made before the first is given."""
    return (faults(tool, plain(arguments, _LONG_LIST)) or faults(tool, plain(arguments)))[:most]


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
    return error.kind.name == "type" or type(error.instance) not in map(type, _options(error.kind) or [error.instance])


def _other_tag(error: Any, size: int) -> bool:
    return len(error.instance_path) == size and error.kind.name in ("const", "enum")


def _options(kind: Any) -> list[Any]:
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


def _writable(text: str) -> str:
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


# -- the problems ------------------------------------------------------------------------------------------------------


def argument_problems(tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    if not is_finite(arguments):
        message = "the arguments hold a number that JSON cannot carry; send a finite one"
        return [Problem("not_finite", message, call=index)]
    if fits(tool, arguments):
        return []
    places = Places(tool.parameters)
    for items in (_LONG_LIST, None):
        found = [error for error in faults(tool, plain(arguments, items)) if not _is_excused(error, places)]
        if found:
            break
    problems = [_problem(error, tool, arguments, index) for error in found[:_LOOK_AT]]
    return sorted(problems, key=lambda p: _ORDER.index(p.code) if p.code in _ORDER else len(_ORDER))[:_MOST]


def _is_excused(error: Any, places: Places) -> bool:
    """Is it only that a required argument is missing which has a default?"""
    return error.kind.name == "required" and places.default([*place(error), error.kind.property]) is not MISSING


def _problem(error: Any, tool: Tool, arguments: dict[str, Any], index: int | None) -> Problem:
    kind = error.kind
    code = _CODES.get(kind.name, "schema")
    steps = place(error)
    value = error.instance
    if code == "missing":
        steps.append(kind.property)
        message = f"{_where(steps)} is required"
        received = ", ".join(sorted(map(str, value))[:20])[:300] if isinstance(value, dict) else ""
        message += f"; received: {received or 'no arguments'}. Send {_where(steps)} too"
    elif code in ("wrong_type", "not_allowed", "no_match") and value_at(arguments, steps) is None:
        required = _is_required(tool, steps)
        code = "missing" if required else code
        wanted = _wanted([error], len(steps)) if code != "no_match" else "a value that is allowed"
        message = f"{_where(steps)} is {'required and ' if required else ''}null; send {wanted}"
    elif code == "wrong_type":
        message = f"{_where(steps)} must be {_types(kind.types)}, not {_said(value)}"
    elif code == "not_allowed":
        message = f"{_where(steps)} must be {_choices(_options(kind))}, not {_said(value)}"
    elif code == "no_match":
        message = f"{_where(steps)} must be {_alternatives(kind, len(steps))}, not {_said(value)}"
        if not all(kind.context):
            message = f"{_where(steps)} fits several forms of which only one may fit; it is {_said(value)}"
    elif code == "unknown_argument":
        message = _unknown(kind, steps, tool)
    else:
        message = f"{_where(steps)}: {error.message[:200]}"
    return Problem(code, _writable(message[:_LONGEST]), pointer(steps), index)


def _is_required(tool: Tool, steps: list[Any]) -> bool:
    """Is this an argument that must be sent? One with a default need not be."""
    schema = tool.parameters
    return len(steps) == 1 and steps[0] in schema.get("required", ()) and Places(schema).default(steps) is MISSING


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
    if options := _options(error.kind):
        return _choices(options)
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
    what = ", ".join([repr(_writable(name[:100])) for name in names]) or _where(steps)
    where = f" of {_where(steps)}" if steps else ""
    return f"there is no argument {what}" + (f"; the arguments{where} are: {known}" if known else "")


def pointer(steps: Iterable[Any]) -> str:
    return _writable("".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps]))


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
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    if len(texts) == 1:
        return texts[0][:80]
    return "one of " + ", ".join(texts[:20]) + (f" (and {len(texts) - 20} more)" if len(texts) > 20 else "")
