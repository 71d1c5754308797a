"""`Toolset`: the tools of one conversation, looked up by name in constant time.

Toolset([{"type": "function", "function": {"name": "f", "parameters": {...}}}])
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rightcall.declare.kinds import Kind, kinds
from rightcall.errors import BadTools
from rightcall.types import Tool

ToolLike = Tool | Mapping[str, Any]
Tools = "Toolset | Iterable[ToolLike]"


class Toolset:
    """Immutable, and safe to share between threads."""

    __slots__ = ("_by_name", "_kinds")

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._by_name = {tool.name: tool for tool in map(to_tool, tools)}
        self._kinds: dict[str, dict[str, Kind]] = {}

    @staticmethod
    def of(tools: Toolset | Iterable[ToolLike] | None) -> Toolset | None:
        """A toolset as it is, anything else turned into one; None stays None: names are not checked then."""
        if tools is None or isinstance(tools, Toolset):
            return tools
        if isinstance(tools, (Tool, Mapping)):
            tools = [tools]
        return Toolset(tools)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def kinds(self, name: str) -> dict[str, Kind]:
        """How each declared argument of this tool is to be read; empty for a tool that is not declared."""
        found = self._kinds.get(name)
        if found is None:
            tool = self._by_name.get(name)
            if tool is None:
                return {}
            found = self._kinds[name] = kinds(tool)
        return found

    def nearest(self, name: str) -> list[str]:
        """Declared names, the most similar first, at most three."""
        return difflib.get_close_matches(name[:64], list(self._by_name)[:1000], 3, 0.5)


def to_tool(definition: ToolLike) -> Tool:
    """A `Tool` as it is, or one made from an OpenAI-style definition. Raises `BadTools`."""
    if isinstance(definition, Tool):
        return definition
    if not isinstance(definition, Mapping):
        raise BadTools(f"a tool must be a Tool or a definition with a name, not {type(definition).__name__}")
    inner = definition.get("function", definition)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise BadTools('a tool definition has no "name": expected {"type": "function", "function": {"name": ...}}')
    parameters = inner.get("parameters")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise BadTools(f'the "parameters" of tool {name!r} must be a JSON Schema object')
    description = inner.get("description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=dict(parameters or {}),
    )
