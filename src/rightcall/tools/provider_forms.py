"""Tools in the form that a provider wants them in: the way out of what `providers` reads.

    to_provider(toolset, "messages")   ->   [{"name": ..., "description": ..., "input_schema": ...}]

Out and back loses nothing. What a provider has no field for goes out under `x-output-schema`, which is
`x-harn-output-schema` too, and `x-rightcall`, with `extensions=True`; a name it does not take is changed
(`Toolset.wire_names`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.tools.gemini_schema import to_openapi
from rightcall.tools.provider_definitions import EXTENSION, META, NO_PARAMETERS, OUTPUTS
from rightcall.tools.tool_names import check_provider
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Json, Tool


def to_provider(tools: Tools, provider: str, *, extensions: bool = False) -> list[Json]:
    """The list to send as `tools`. `extensions` adds what the form has no field for, which hosted servers refuse.

    A schema that does not say its type goes out as the object it must be."""
    form = check_provider(provider)
    write = _WRITERS[form]
    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    names = toolset.wire_names(form)
    written = [write(tool, names[tool.name], extensions) for tool in toolset]
    return [{"functionDeclarations": written}] if form == "gemini" and written else written


def _openai(tool: Tool, name: str, extensions: bool) -> Json:
    return {"type": "function", "function": {**_flat(tool, name), **_extra(tool, name, extensions)}}


def _responses(tool: Tool, name: str, extensions: bool) -> Json:
    # Without "strict" this API makes every argument required.
    return {"type": "function", **_flat(tool, name), "strict": False, **_extra(tool, name, extensions)}


def _flat(tool: Tool, name: str) -> Json:
    return {"name": name, "description": tool.description, "parameters": _object(tool.parameters)}


def _anthropic(tool: Tool, name: str, extensions: bool) -> Json:
    written = {"name": name, "description": tool.description, "input_schema": _object(tool.parameters)}
    return {**written, **_extra(tool, name, extensions)}


def _gemini(tool: Tool, name: str, extensions: bool) -> Json:
    written: Json = {"name": name, "description": tool.description}
    if _object(tool.parameters) != NO_PARAMETERS:  # an object without properties is refused there
        written |= _schema("parameters", _object(tool.parameters))
    if tool.output_schema is not None:
        written |= _schema("response", tool.output_schema)
    return {**written, **_extra(tool, name, extensions, output=False)}


def _schema(key: str, schema: Json) -> Json:
    openapi = to_openapi(schema)
    return {f"{key}JsonSchema": schema} if openapi is None else {key: openapi}


def _mcp(tool: Tool, name: str, extensions: bool) -> Json:
    written: Json = {"name": name, "inputSchema": _object(tool.parameters)}
    if tool.description:
        written["description"] = tool.description
    marks = _marks(tool, name)
    if marks.pop("read_only", False):
        written["annotations"] = {"readOnlyHint": True}
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        written["outputSchema"] = tool.output_schema
    elif tool.output_schema is not None:  # MCP has a field for objects only
        marks["output_schema"] = tool.output_schema
    return {**written, "_meta": {META: marks}} if marks and extensions else written


def _object(schema: Json) -> Json:
    if "type" in schema and "properties" in schema:
        return schema
    return {"type": "object", **({} if "$ref" in schema else {"properties": {}}), **schema}


def _extra(tool: Tool, name: str, extensions: bool, *, output: bool = True) -> Json:
    if not extensions:
        return {}
    marks = _marks(tool, name)
    found: Json = dict.fromkeys(OUTPUTS, tool.output_schema) if output and tool.output_schema is not None else {}
    return {**found, EXTENSION: marks} if marks else found


def _marks(tool: Tool, name: str) -> Json:
    """What no provider has a field for, where it is not as usual."""
    marks: dict[str, Any] = {"aliases": tool.aliases, "read_only": tool.read_only, "compact": tool.compact}
    said = {key: value for key, value in marks.items() if value}
    return said if name == tool.name else {"name": tool.name, **said}


_WRITERS: dict[str, Callable[[Tool, str, bool], Json]] = {
    "chat": _openai,
    "responses": _responses,
    "messages": _anthropic,
    "gemini": _gemini,
    "ollama": _openai,
    "mcp": _mcp,
}
