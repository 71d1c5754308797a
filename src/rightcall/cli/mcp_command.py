"""`rightcall mcp`: list the tools of an MCP server, and serve tools as one."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from rightcall.cli.app import CommandGroup
from rightcall.cli.inputs import AsJson, exit_with_usage_error, print_message, usage_errors
from rightcall.cli.layout import console, format_json, row
from rightcall.cli.serving import AllowHost, AllowOrigin, KeyEnv, NoKey, choose_key, report_key, reveal_key
from rightcall.cli.user_tools import load_tools
from rightcall.errors import BackendError
from rightcall.safe_text import brief, visible
from rightcall.tools.toolset import Toolset
from rightcall.workspace import Workspace

mcp = CommandGroup(help="List the tools of MCP servers, and serve tools. Needs the extra mcp.")

Server = Annotated[
    list[str],
    typer.Argument(metavar="URL|COMMAND...", help="http://... or https://..., or the command that starts the server."),
]
Source = Annotated[
    str, typer.Option("--from", metavar="MODULE[:NAME]", help="Python module or file with the tools. Its code runs.")
]
Space = Annotated[str, typer.Option("--workspace", metavar="DIR", help="The five coding tools in this folder.")]


@mcp.command("tools")
def tools_command(server: Server, json: AsJson = False) -> None:
    """List the tools of an MCP server, and its invalid definitions.

    Exit code 1 means that a definition is invalid.
    """
    with usage_errors():
        try:
            found = asyncio.run(_list_tools(server[0] if server[0].startswith("http") else server))
        except BackendError as error:
            exit_with_usage_error(str(error))
    if json:
        refused = [{"tool": each.tool, "path": each.path, "message": each.message} for each in found.refused]
        listed = [{"name": each.name, "description": each.description} for each in found]
        typer.echo(format_json({"tools": listed, "refused": refused}))
    else:
        _print_tools(found)
    if found.refused:
        raise typer.Exit(1)


async def _list_tools(server: str | list[str]) -> Toolset:
    """Connect to a server, given as a URL or as the words of a command, and return its tools and invalid definitions;
    the connection is closed. Raises `BackendError`."""
    from rightcall.mcp.client import connect

    async with connect(server) as found:
        return found


def _print_tools(found: Toolset) -> None:
    """Print the tools of a server and its invalid definitions."""
    out = console()
    for tool in found:
        row(out, "tool", f"{brief(tool.name)}  {brief(tool.description, 200)}")
    for refusal in found.refused:
        row(out, "refused", visible(f"{refusal.tool} {refusal.path}: {refusal.message}", one_line=True), "red")


@mcp.command("serve")
def serve_tools_command(
    source: Source = "",
    workspace: Space = "",
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    allow_host: AllowHost = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Serve only read-only tools.")] = False,
) -> None:
    """Serve tools to any MCP client. Each call is repaired, checked and run, and its result is bounded.

    Over HTTP the client sends the key that is shown, as Authorization: Bearer. With --workspace the client
    decides which calls are allowed. File tools stay in the folder, shell commands do not.
    """
    with usage_errors():
        toolset = _load_toolset(source, workspace, read_only)
        from rightcall.mcp.server import serve_http, serve_stdio

        if not http:
            serve_stdio(toolset)
            return
        key = choose_key(key_env, no_key, host)
        print_message(f"serving {len(toolset)} tools at http://{host}:{port}/mcp")
        report_key(key, key_env)
        serve_http(
            toolset,
            host=host,
            port=port,
            key=reveal_key(key),
            no_key=no_key,
            origins=allow_origin or (),
            hosts=allow_host or (),
        )


def _load_toolset(source: str, workspace: str, read_only: bool) -> Toolset:
    """Return the tools of the module `source` and of the workspace folder, each unless it is ""; with `read_only`, only
    read-only ones. Exits with a usage error if both are "" or have no tools."""
    if not source and not workspace:
        exit_with_usage_error("no tools: pass --from MODULE or --workspace DIR")
    found: list[Any] = [load_tools(source)] if source else []
    if workspace:
        space = Workspace(workspace)
        found.append(space.tools)
        if space.exposure and not read_only:
            print_message(space.exposure)
    tools = Toolset(*found)
    return tools.scoped([tool.name for tool in tools if tool.read_only]) if read_only else tools
