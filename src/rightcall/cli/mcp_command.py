"""`rightcall mcp`: what an MCP server offers, and any tools as an MCP server."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from rightcall.cli.call_command import tools_of
from rightcall.cli.help_page import CommandGroup
from rightcall.cli.inputs import AsJson, refuse, say, usage_errors
from rightcall.cli.layout import console, row
from rightcall.cli.safe import brief, json_text, visible
from rightcall.cli.serving import AllowHost, AllowOrigin, KeyEnv, NoKey, chosen_key, revealed, tell_key
from rightcall.errors import BackendError
from rightcall.tools.toolset import Toolset
from rightcall.workspace import Workspace

mcp = CommandGroup(help="Tools from and to MCP servers. Needs the extra mcp.")

Server = Annotated[
    list[str],
    typer.Argument(metavar="URL|COMMAND...", help="http://... or https://..., or the words that start the server."),
]
Source = Annotated[
    str, typer.Option("--from", metavar="MODULE[:NAME]", help="Python module or file with the tools. Its code is run.")
]
Space = Annotated[str, typer.Option("--workspace", metavar="DIR", help="The five coding tools, in this folder.")]


@mcp.command("tools")
def tools_command(server: Server, json: AsJson = False) -> None:
    """List the tools of an MCP server, and those of its definitions that cannot be used.

    Exit code 1 means that some cannot.
    """
    with usage_errors():
        try:
            found = asyncio.run(_listed(server[0] if server[0].startswith("http") else server))
        except BackendError as error:
            refuse(str(error))
    if json:
        refused = [{"tool": each.tool, "path": each.path, "message": each.message} for each in found.refused]
        listed = [{"name": each.name, "description": each.description} for each in found]
        typer.echo(json_text({"tools": listed, "refused": refused}))
    else:
        _show(found)
    if found.refused:
        raise typer.Exit(1)


async def _listed(server: str | list[str]) -> Toolset:
    from rightcall.mcp.client import connect

    async with connect(server) as found:
        return found


def _show(found: Toolset) -> None:
    out = console()
    for tool in found:
        row(out, "tool", f"{brief(tool.name)}  {brief(tool.description, 200)}")
    for refusal in found.refused:
        row(out, "refused", visible(f"{refusal.tool} {refusal.path}: {refusal.message}", one_line=True), "red")


@mcp.command("serve")
def serve(
    source: Source = "",
    workspace: Space = "",
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, not to the process that started us.")] = False,
    host: Annotated[str, typer.Option(help="Where to listen; other machines need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    allow_host: AllowHost = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only the tools that are marked as such.")] = False,
) -> None:
    """Serve tools to any MCP client. Each call is repaired with a receipt, checked, run, and its result cut to size.

    Over HTTP the client sends the key that is shown, as Authorization: Bearer. With --workspace the client
    decides what is allowed: files stay in the folder, shell commands do not.
    """
    with usage_errors():
        toolset = _toolset(source, workspace, read_only)
        from rightcall.mcp.server import serve_http, serve_stdio

        if not http:
            serve_stdio(toolset)
            return
        key = chosen_key(key_env, no_key, host)
        say(f"serving {len(toolset)} tools at http://{host}:{port}/mcp")
        tell_key(key, key_env)
        serve_http(
            toolset,
            host=host,
            port=port,
            key=revealed(key),
            no_key=no_key,
            origins=allow_origin or (),
            hosts=allow_host or (),
        )


def _toolset(source: str, workspace: str, read_only: bool) -> Toolset:
    if not source and not workspace:
        refuse("say which tools: --from MODULE, or --workspace DIR")
    found: list[Any] = [tools_of(source)] if source else []
    if workspace:
        space = Workspace(workspace)
        found.append(space.tools)
        if space.exposure and not read_only:
            say(space.exposure)
    tools = Toolset(*found)
    return tools.scoped([tool.name for tool in tools if tool.read_only]) if read_only else tools
