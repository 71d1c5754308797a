"""Find the declared tool that a call means: by a name with control tokens, a namespace or another spelling, or without
a name by its arguments or its id."""

from __future__ import annotations

import json as stdlib
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rightcall.repairs.schema_repair import Kind, fold
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
    """Return the declared tool that a name means, and the receipt of the repair. If none is certain, or the policy is
    "off", return the name unchanged and no receipt."""
    if policy == "off" or tools is None or not _may_mean_another(name, tools):
        return name, ()
    clean = _CONTROL.sub("", _TOKEN.sub("", name) if _TOKEN.match(name) else name).strip()
    if clean and clean in tools:
        return clean, (Repair("control_tokens", "exact", "", name, clean),)
    for rule, kind, found in _interpretations(clean or name, tools):
        if len(found) == 1:
            return found[0], (Repair(rule, kind, "", name, found[0]),)
    return name, ()


def _may_mean_another(name: str, tools: Toolset) -> bool:
    """Return whether an unknown name may mean a declared tool. False for a name that is declared, empty, longer than
    512 characters, or of a tool whose declaration was invalid: that tool was meant."""
    return name not in tools and 0 < len(name) <= _LONGEST and tools.left_out(name) is None


def _interpretations(name: str, tools: Toolset) -> Iterator[tuple[str, Kind, list[str]]]:
    """Yield rule, kind of repair and matching tools for each interpretation of a name, the strictest first.

    The first is the longest declared end of a name with a namespace (`functions.f`, `default_api.f`, `mcp__server__f`),
    or `f` of `f.call`, as Llama writes the tools it was trained with.
    """
    ends = [name.removesuffix(_METHOD), *[name[found.end() :] for found in _SPLIT.finditer(name)]]
    yield "namespace", "exact", [end for end in ends if end in tools][:1]
    yield "namespace", "schema", [tool.name for tool in tools if _last(tool.name) == name]
    for wanted in (fold(name), fold(_last(name))):
        yield "folded_name", "schema", [tool.name for tool in tools if wanted and fold(tool.name) == wanted]


def _last(name: str) -> str:
    """Return the part of a name behind its last namespace separator."""
    return _SPLIT.split(name)[-1]


def infer_name(arguments: Any, tools: Toolset | None) -> str | None:
    """Return the name of the one tool whose arguments these are; None if that is not certain.

    All its required arguments are given, it declares every argument, and no other tool requires the same ones. An
    argument whose value is the name of a tool makes it uncertain.
    """
    # The name of a tool among the arguments may be an argument or the name of the call.
    if not isinstance(arguments, dict) or tools is None or _named_tools(arguments, tools):
        return None
    keys = set(arguments)
    fitting = [tool for tool in tools if required(tool.parameters) <= keys <= declared(tool.parameters)]
    needs = required(fitting[0].parameters) if len(fitting) == 1 else set()
    is_alone = [required(tool.parameters) for tool in tools].count(needs) == 1
    return fitting[0].name if needs and is_alone else None


def _named_tools(arguments: dict[str, Any], tools: Toolset) -> list[tuple[str, Tool]]:
    """Return the keys such as `name` and `tool` whose value is the name of a declared tool, each with that tool."""
    names = [(key, arguments[key]) for key in _NAME_KEYS if isinstance(arguments.get(key), str)]
    return [(key, tool) for key, name in names if (tool := tools.get(name)) is not None]


def _takes(tool: Tool, keys: set[str]) -> bool:
    """Return whether a tool accepts arguments of these names. A tool without declared properties accepts any."""
    parameters = tool.parameters
    is_free = "properties" not in parameters and parameters.get("additionalProperties") is not False
    return required(parameters) <= keys and (is_free or keys <= declared(parameters))


def required(parameters: dict[str, Any]) -> set[str]:
    """Return the names of the required arguments in a tool's parameter schema."""
    found = parameters.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


def declared(parameters: dict[str, Any]) -> set[str]:
    """Return the names of the declared arguments in a tool's parameter schema."""
    found = parameters.get("properties")
    return set(found) if isinstance(found, dict) else set()


def hoist_name(arguments: Any, tools: Toolset | None) -> tuple[str, dict[str, Any]] | None:
    """Return the tool name that is among the arguments, and the arguments without it.

    None if no value is the name of a tool, if that tool declares an argument with this key, or if some tool accepts the
    arguments as they are.
    """
    if not isinstance(arguments, dict) or tools is None:
        return None
    if any(_takes(tool, set(arguments)) for tool in tools):
        return None  # the name may be an argument
    for key, tool in _named_tools(arguments, tools):
        if key not in declared(tool.parameters):
            return tool.name, {other: value for other, value in arguments.items() if other != key}
    return None


def find_name(arguments: Any, json: str, tools: Toolset | None) -> tuple[str, str, tuple[Repair, ...]]:
    """Find the name of a call without one: in its arguments, or as the only tool that they fit.

    Return the name ("" if there is none), the JSON of the arguments without it, and the receipts.
    """
    if (hoisted := hoist_name(arguments, tools)) is not None:
        rest = stdlib.dumps(hoisted[1], ensure_ascii=False)
        return hoisted[0], rest, (Repair("hoisted_name", "schema", "", json, rest),)
    inferred = infer_name(arguments, tools)
    return (inferred, json, (Repair("inferred_name", "schema", "", "", inferred),)) if inferred else ("", json, ())


def name_in_id(id: str, tools: Toolset | None) -> str:
    """Return the declared tool that a call's id names, as `functions.f:0` and `f` do; "" if it names none."""
    if tools is None or not id:
        return ""
    before, _, number = id.rpartition(":")
    name = (before if before and number.isdigit() else id).removeprefix("functions.")
    return name if name in tools else ""


def tool_in_id(name: str, index: str, tools: Toolset | None) -> str:
    """Return the one declared tool that `name` means, from an id in which every sign became `_`, as `functions_f_0`.
    Return "" if another tool may be meant: `index`, the number behind the name, may be a part of its name."""
    found = [tool.name for tool in tools or () if _sanitize(tool.name) in (name, f"{name}_{index}")]
    return found[0] if len(found) == 1 and _sanitize(found[0]) == name else ""


def tool_of_call(arguments: Any, tools: Toolset | None) -> str:
    """Return the declared tool of a whole call that was sent in place of its arguments, `{"name": "f", "arguments":
    {...}}`; "" for anything else, and for a tool that itself has an argument of one of these names."""
    if tools is None or type(arguments) is not dict or arguments.keys() != {"name", "arguments"}:
        return ""
    name = arguments["name"]
    tool = tools.get(name) if isinstance(name, str) and type(arguments["arguments"]) is dict else None
    return "" if tool is None or declared(tool.parameters) & {"name", "arguments"} else tool.name


def two_names(header: str, name: str, tools: Toolset | None, policy: str) -> tuple[str, str] | None:
    """Return code and message of the problem if the header of a call names another tool than `name`; None if they
    agree.

    `header`: names separated by commas. Words that cannot be a name are ignored, and namespaces of the tool that are no
    tools.
    """
    for other in [resolve_tool_name(each, tools, policy)[0] for each in header.split(",")]:
        is_before = name.startswith(other) and _SPLIT.match(name, len(other)) is not None
        is_namespace = is_before and (tools is None or other not in tools)
        if other != name and other.translate(_SIGNS).isalnum() and not is_namespace:
            message = f"the call names two tools: {other[:80]!r} in its header, {name[:80]!r} in its body"
            return "names_disagree", f"{message}; send one name in both places"
    return None
