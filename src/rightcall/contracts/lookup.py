"""`tool_schema`: the tool that shows a model the whole declaration of a tool that its prompt only mentions."""

from __future__ import annotations

from collections.abc import Callable, Container

from rightcall.errors import ToolError
from rightcall.tools.toolset import Toolset
from rightcall.types import Tool

NAME = "tool_schema"


def tool_schema(tools: Toolset, show: Callable[[Tool], str]) -> Tool:
    """A tool like any other; `show` makes the text for a tool. A name that is not declared is a `ToolError`."""

    def run(name: str) -> str:
        tool = tools.get(name)
        if tool is None:
            near = tools.nearest(name)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "the prompt lists the names"
            raise ToolError(f"there is no tool {name[:80]!r}; {hint}")
        return show(tool)

    return Tool(
        name=_free(tools),
        description="Shows the whole declaration of one tool: what it does, its arguments and their types.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name of the tool, as it is listed."}},
            "required": ["name"],
            "additionalProperties": False,
        },
        read_only=True,
        run=run,
    )


def _free(taken: Container[str]) -> str:
    name, number = NAME, 1
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name
