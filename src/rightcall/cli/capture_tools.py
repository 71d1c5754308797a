"""The real tools of `rightcall capture`: a module's, an MCP server's, and the question before each call."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import typer

from rightcall.capture.real_tools import Allowed, ApprovedCalls
from rightcall.cli.call_command import tools_of
from rightcall.cli.capture_options import ToolSource
from rightcall.cli.inputs import refuse
from rightcall.cli.safe import brief
from rightcall.declare.toolset import Toolset
from rightcall.dispatching.hook import HookLike, Invocation

_ANSWERS: dict[str, Allowed] = {"y": "yes", "yes": "yes", "a": "yes to all", "all": "yes to all"}


@asynccontextmanager
async def real_tools(source: ToolSource) -> AsyncIterator[Toolset]:
    """The tools of the module and of the servers, as long as these stand."""
    async with AsyncExitStack() as stack:
        found = [tools_of(source.tools)] if source.tools else []
        for server in source.mcp or ():
            from rightcall.mcp.client import connect

            words = server if server.startswith(("http://", "https://")) else shlex.split(server)
            found.append(await stack.enter_async_context(connect(words)))
        yield Toolset(*found)


def approving(source: ToolSource) -> list[HookLike]:
    """Who is asked before a real tool is run. Without --yes there must be somebody to ask."""
    if not source.is_real:
        return []
    if source.yes:
        return [ApprovedCalls(lambda _: "yes")]
    if not sys.stdin.isatty():
        refuse("--tools and --mcp run real tools, and nobody is here to be asked; say --yes to run every call")
    return [ApprovedCalls(_asked)]


async def _asked(invocation: Invocation) -> Allowed:
    shown = f"{brief(invocation.tool.name)} {brief(invocation.call.json, 500)}"
    said = await asyncio.to_thread(typer.prompt, f"run {shown}? [y]es, [n]o, [a]ll of this tool", default="n", err=True)
    return _ANSWERS.get(str(said).strip().lower(), "no")
