"""Find the declared tool that a call means: by a name with control tokens, a namespace or another spelling, or without
a name by its arguments or its id."""

from __future__ import annotations

import json as stdlib
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rightcall.repairs.schema_repair import Kind, fold_name
from rightcall.tools.toolset import Toolset
from rightcall.types import Repair, Tool

_CONTROL = re.compile(r"<\|.*|\|>.*|<｜.*|\x00.*", re.S)
_TOKEN = re.compile(r"<[|｜][^|｜<>]{1,64}[|｜]>")
_SPLIT = re.compile(r"__|[./:]")
_METHOD = ".call"
_sanitize = partial(re.compile(r"[^A-Za-z0-9_-]").sub, "_")
_SIGNS = dict.fromkeys(map(ord, "_-."))  # allowed in a name next to letters and digits
_NAME_KEYS = ("name", "tool", "tool_name", "function")
_LONGEST = 512  # a longer name is not compared with the tools: each comparison costs


def resolve_tool_name(name: str, tools: Toolset | None, policy: str) -> tuple[str, tuple[Repair, ...]]:
    """Return the declared tool that `name` means, and the receipt of the repair in a tuple. In this order: the name
    without control tokens, without or with a namespace, in another case or with other separators; each only if one tool
    matches. Otherwise, or for the policy "off" or without tools, return `name` itself and ()."""
    if policy == "off" or tools is None or not _may_mean_another(name, tools):
        return name, ()
    clean = _CONTROL.sub("", _TOKEN.sub("", name) if _TOKEN.match(name) else name).strip()
    if clean and clean in tools:
        return clean, (Repair("control_tokens", "exact", "", name, clean),)
    for rule, kind, found in _interpret_name(clean or name, tools):
        if len(found) == 1:
            return found[0], (Repair(rule, kind, "", name, found[0]),)
    return name, ()


def _may_mean_another(name: str, tools: Toolset) -> bool:
    """Return whether `name` is not declared but may mean a declared tool. False if it is declared, empty or longer than
    512 characters, or is the name of a tool whose declaration was invalid and left out: that tool was meant."""
    return name not in tools and 0 < len(name) <= _LONGEST and tools.left_out(name) is None


def _interpret_name(name: str, tools: Toolset) -> Iterator[tuple[str, Kind, list[str]]]:
    """Yield rule, kind of repair and the names of the matching tools for each interpretation of `name`, the strictest
    first; the list of tools may be empty.

    - The longest end of a name with a namespace (`functions.f`, `default_api.f`, `mcp__server__f`), or `f` of `f.call`,
      as Llama writes the tools it was trained with (unslothai/unsloth#5620), that is declared.
    - The tools whose declared name, without its namespace, is `name`.
    - The tools with the same folded name (see `fold_name`), then those with the folded name of its last part.
    """
    ends = [name.removesuffix(_METHOD), *[name[found.end() :] for found in _SPLIT.finditer(name)]]
    yield "namespace", "exact", [end for end in ends if end in tools][:1]
    yield "namespace", "schema", [tool.name for tool in tools if _strip_namespace(tool.name) == name]
    for wanted in (fold_name(name), fold_name(_strip_namespace(name))):
        yield "folded_name", "schema", [tool.name for tool in tools if wanted and fold_name(tool.name) == wanted]


def _strip_namespace(name: str) -> str:
    """Return the part of a name behind its last namespace separator (`__`, `.`, `/` or `:`); the name itself without
    one."""
    return _SPLIT.split(name)[-1]


def infer_name(arguments: Any, tools: Toolset | None) -> str | None:
    """Return the name of the only tool that the arguments of a call without a name fit; None if that is not certain.

    They have all required arguments of that tool, at least one, and no undeclared one, and no other tool has the same
    required arguments. None also for a value that is no dict, without tools, and if an argument such as `name` has the
    name of a tool as its value.
    """
    # The name of a tool among the arguments may be an argument or the name of the call.
    if not isinstance(arguments, dict) or tools is None or _named_tools(arguments, tools):
        return None
    keys = set(arguments)
    fitting = [tool for tool in tools if required_names(tool.parameters) <= keys <= declared_names(tool.parameters)]
    needs = required_names(fitting[0].parameters) if len(fitting) == 1 else set()
    is_alone = [required_names(tool.parameters) for tool in tools].count(needs) == 1
    return fitting[0].name if needs and is_alone else None


def _named_tools(arguments: dict[str, Any], tools: Toolset) -> list[tuple[str, Tool]]:
    """Return the arguments under the keys `name`, `tool`, `tool_name` and `function` whose value is the name of a
    declared tool, as pairs of that key and the tool; [] if there are none."""
    names = [(key, arguments[key]) for key in _NAME_KEYS if isinstance(arguments.get(key), str)]
    return [(key, tool) for key, name in names if (tool := tools.get(name)) is not None]


def _accepts_names(tool: Tool, keys: set[str]) -> bool:
    """Return whether a tool accepts a call with arguments named `keys`: they include the required ones, and all are
    declared. A tool that declares no properties and does not forbid others accepts any names beside the required ones.
    Values are not checked."""
    parameters = tool.parameters
    is_free = "properties" not in parameters and parameters.get("additionalProperties") is not False
    return required_names(parameters) <= keys and (is_free or keys <= declared_names(parameters))


def required_names(parameters: dict[str, Any]) -> set[str]:
    """Return the names of the required arguments in a tool's parameter schema; an empty set if it requires none."""
    found = parameters.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


def declared_names(parameters: dict[str, Any]) -> set[str]:
    """Return the names in `properties` of a tool's parameter schema; an empty set if it declares none."""
    found = parameters.get("properties")
    return set(found) if isinstance(found, dict) else set()


def hoist_name(arguments: Any, tools: Toolset | None) -> tuple[str, dict[str, Any]] | None:
    """Return the tool name that is among the arguments, under a key such as `name`, and a copy of the arguments without
    that key. `arguments`: those of a call without a name.

    None if they are no dict, if no such value is the name of a declared tool, if that tool declares an argument with
    this key, or if some tool accepts the arguments as they are.
    """
    if not isinstance(arguments, dict) or tools is None:
        return None
    if any(_accepts_names(tool, set(arguments)) for tool in tools):
        return None  # the name may be an argument
    for key, tool in _named_tools(arguments, tools):
        if key not in declared_names(tool.parameters):
            return tool.name, {other: value for other, value in arguments.items() if other != key}
    return None


def find_missing_name(arguments: Any, json: str, tools: Toolset | None) -> tuple[str, str, tuple[Repair, ...]]:
    """Find the name of a call without one: among its arguments, or as the only tool that they fit.

    Return the name, the JSON text of the arguments without it, and the receipts; "", `json` itself and () if there is
    none. `arguments`: those of the call, decoded; `json`: their text.
    """
    if (hoisted := hoist_name(arguments, tools)) is not None:
        rest = stdlib.dumps(hoisted[1], ensure_ascii=False)
        return hoisted[0], rest, (Repair("hoisted_name", "schema", "", json, rest),)
    inferred = infer_name(arguments, tools)
    return (inferred, json, (Repair("inferred_name", "schema", "", "", inferred),)) if inferred else ("", json, ())


def name_in_id(id: str, tools: Toolset | None) -> str:
    """Return the name of the declared tool in a call's id of the form `f`, `f:0`, `functions.f` or `functions.f:0`; ""
    if the id has another form or names no declared tool."""
    if tools is None or not id:
        return ""
    before, _, number = id.rpartition(":")
    name = (before if before and number.isdigit() else id).removeprefix("functions.")
    return name if name in tools else ""


def tool_in_sanitized_id(name: str, index: str, tools: Toolset | None) -> str:
    """Return the name of the one declared tool that is meant by an id such as `functions_f_0`, in which every character
    but letters, digits, `_` and `-` became `_`; "" if there is none or another may be meant. `name`: the part `f` of
    the id. `index`: its number `0`, which may instead belong to the name of a tool `f_0`."""
    found = [tool.name for tool in tools or () if _sanitize(tool.name) in (name, f"{name}_{index}")]
    return found[0] if len(found) == 1 and _sanitize(found[0]) == name else ""


def tool_of_nested_call(arguments: Any, tools: Toolset | None) -> str:
    """Return the name of the declared tool if `arguments` are themselves a whole call of it, exactly `{"name": "f",
    "arguments": {...}}`. "" for anything else, without tools, and for a tool that declares an argument `name` or
    `arguments`."""
    if tools is None or type(arguments) is not dict or arguments.keys() != {"name", "arguments"}:
        return ""
    name = arguments["name"]
    tool = tools.get(name) if isinstance(name, str) and type(arguments["arguments"]) is dict else None
    return "" if tool is None or declared_names(tool.parameters) & {"name", "arguments"} else tool.name


def header_name_problem(header: str, name: str, tools: Toolset | None, policy: str) -> tuple[str, str] | None:
    """Return code and message of a problem if the header of a call names another tool than `name`, the one in its body;
    None if they agree.

    `header`: names separated by commas, resolved as tool names are. Ignored are words with other signs than `_`, `-`
    and `.`, and a namespace of `name`, unless a tool is named so.
    """
    for other in [resolve_tool_name(each, tools, policy)[0] for each in header.split(",")]:
        is_before = name.startswith(other) and _SPLIT.match(name, len(other)) is not None
        is_namespace = is_before and (tools is None or other not in tools)
        if other != name and other.translate(_SIGNS).isalnum() and not is_namespace:
            message = f"the call names two tools: {other[:80]!r} in its header, {name[:80]!r} in its body"
            return "names_disagree", f"{message}; send one name in both places"
    return None
