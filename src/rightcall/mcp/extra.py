"""The extra `mcp`: is it installed?"""

from __future__ import annotations

from importlib.util import find_spec

from rightcall.errors import CallerError


def needs_mcp() -> None:
    if find_spec("mcp") is None:
        raise CallerError("MCP needs the official SDK, which is not installed: pip install 'rightcall[mcp]'")
