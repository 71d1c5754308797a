"""The real tools of `rightcall capture`: a module's, an MCP server's, and the question before each call."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from rightcall.cli.approving import asked
from rightcall.cli.call_command import tools_of
from rightcall.cli.capture_options import ToolSource
from rightcall.cli.inputs import refuse
from rightcall.cli.safe import brief
from rightcall.dispatching.hook import HookLike, Invocation
from rightcall.tools.toolset import Toolset
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Approval, Permission


@asynccontextmanager
async def real_tools(source: ToolSource) -> AsyncIterator[Toolset]:
    """The tools of the module and of the servers, as long as these stand."""
    async with AsyncExitStack() as stack:
        found = [tools_of(source.tools)] if source.tools else []
        yield Toolset(*found, *await mcp_tools(stack, source.mcp or ()))


async def mcp_tools(stack: AsyncExitStack, servers: Iterable[str]) -> list[Toolset]:
    """The tools of each of these MCP servers, URLs or commands, as long as the stack stands."""
    found: list[Toolset] = []
    for server in servers:
        from rightcall.mcp.client import connect

        words = server if server.startswith(("http://", "https://")) else shlex.split(server)
        found.append(await stack.enter_async_context(connect(words)))
    return found


def approving(source: ToolSource) -> list[HookLike]:
    """Who is asked before a real tool is run. Without --yes there must be somebody to ask."""
    if not source.is_real:
        return []
    if source.yes:
        return [Approval(mode="bypass")]
    if not sys.stdin.isatty():
        refuse("--tools and --mcp run real tools, and nobody is here to be asked; say --yes to run every call")
    return [Approval(ask=_asked)]


async def _asked(invocation: Invocation) -> Permission:
    name = invocation.tool.name
    shown = f"run {brief(name)} {brief(invocation.call.json, 500)}?"
    return await asyncio.to_thread(asked, shown, AllowRule.offered(name, invocation.arguments, None))
