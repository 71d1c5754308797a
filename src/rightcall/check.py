"""Is this call one that may run? What is wrong comes back as problems, worded for the model."""

from __future__ import annotations

import re

from rightcall.declare.toolset import Toolset

_NAME = re.compile(r"[A-Za-z0-9_.\-]+").fullmatch


def name_problem(name: str, tools: Toolset | None) -> tuple[str, str] | None:
    """Code and message of what is wrong with the name of no declared tool. Without tools a well-formed one will do."""
    if not _NAME(name):
        if not name.strip():
            return "invalid_name", "the call has no tool name; send the name of a tool with its arguments"
        return "invalid_name", f"{name[:80]!r} is no tool name; a name has only letters, digits, '_', '-' and '.'"
    if tools is None:
        return None
    near = tools.nearest(name)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else _listing(tools)
    return "unknown_tool", f"there is no tool {name[:80]!r}; {hint}"


def _listing(tools: Toolset) -> str:
    names = [tool.name for tool in tools]
    if not names:
        return "no tools may be called here"
    return "available tools: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
