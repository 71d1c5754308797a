"""Is this call one that may run? What is wrong comes back as problems, worded for the model.

    check(Call("get_weather", {"days": "three"}, ""), tools)
    # missing: city is required ...   wrong_type: days must be an integer, not the string "three" ...

Arguments are checked by jsonschema-rs against the tool's whole schema, compiled once per tool; nothing is ever fetched.
At most five problems of a call are given, the most useful first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

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
        return "not_authorised", f"the tool {name[:80]!r} may not be called here; {_listing(tools)}"
    near = tools.nearest(name)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else _listing(tools)
    return "unknown_tool", f"there is no tool {name[:80]!r}; {hint}"


def _listing(tools: Toolset) -> str:
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
    try:
        return bool(validator(tool).is_valid(arguments))
    except ValueError:  # a lone surrogate in a key
        return bool(validator(tool).is_valid(plain(arguments)))


def errors(tool: Tool, arguments: Any, most: int = _LOOK_AT) -> list[Any]:
    """The first so many errors of jsonschema-rs. Of a very long list only the beginning is looked at, if that has any:
    each error costs, and all of them are made before the first is given."""
    judge = validator(tool)
    found = list(islice(judge.iter_errors(plain(arguments, _LONG_LIST)), most))
    return found or list(islice(judge.iter_errors(plain(arguments)), most))


def plain(value: Any, items: int | None = None) -> Any:
    """A copy that the checker takes: lone surrogates, which are no text to it, are replaced, and lists are cut."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, list):
        return [plain(item, items) for item in value[:items]]
    if isinstance(value, dict):
        return {plain(key): plain(item, items) for key, item in value.items()}
    return value


def argument_problems(tool: Tool, arguments: dict[str, Any], index: int | None) -> list[Problem]:
    if fits(tool, arguments):
        return []
    found = [_problem(error, tool, arguments, index) for error in errors(tool, arguments)]
    return sorted(found, key=lambda p: _ORDER.index(p.code) if p.code in _ORDER else len(_ORDER))[:_MOST]


def _problem(error: Any, tool: Tool, arguments: dict[str, Any], index: int | None) -> Problem:
    kind = error.kind
    code = _CODES.get(kind.name, "schema")
    steps = list(error.instance_path)
    value = error.instance
    if code == "missing":
        steps.append(kind.property)
        message = f"{_where(steps)} is required"
        received = ", ".join(sorted(map(str, value))[:20])[:300] if isinstance(value, dict) else ""
        message += f"; received: {received or 'no arguments'}. Send {_where(steps)} too"
    elif code in ("wrong_type", "not_allowed", "no_match") and _is_null(arguments, steps):
        required = len(steps) == 1 and steps[0] in tool.parameters.get("required", ())
        code = "missing" if required else code
        wanted = _types(kind.types) if kind.name == "type" else "a value that is allowed"
        message = f"{_where(steps)} is {'required and ' if required else ''}null; send {wanted}"
    elif code == "wrong_type":
        message = f"{_where(steps)} must be {_types(kind.types)}, not {_said(value)}"
    elif code == "not_allowed":
        options = kind.options if kind.name == "enum" else [kind.expected_value]
        message = f"{_where(steps)} must be {_choices(options)}, not {_said(value)}"
    elif code == "no_match":
        message = f"{_where(steps)} fits none of the forms that are allowed here; it is {_said(value)}"
    elif code == "unknown_argument":
        message = _unknown(kind, steps, tool)
    else:
        message = f"{_where(steps)}: {error.message[:200]}"
    return Problem(code, message[:_LONGEST], pointer(steps), index)


def _is_null(value: Any, steps: list[Any]) -> bool:
    """Is this place null? The checker also says null of a number that it cannot carry."""
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False  # a key that was replaced because it is no text
    return value is None


def _unknown(kind: Any, steps: list[Any], tool: Tool) -> str:
    names = [str(name) for name in getattr(kind, "unexpected", ())][:5]
    declared = tool.parameters.get("properties")
    known = ", ".join(list(declared)[:20]) if isinstance(declared, dict) and not steps else ""
    what = ", ".join(map(repr, names)) or _where(steps)
    return f"there is no argument {what}" + (f"; the arguments are: {known}" if known else "")


def pointer(steps: Iterable[Any]) -> str:
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps])


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
