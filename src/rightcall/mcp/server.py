"""Any toolset as an MCP server. Each call is repaired, checked and dispatched, and its output is bounded.

    serve_stdio(tools)                           for a client that starts this process
    serve_http(tools, key=...)                   on this machine, for clients with the key
    serve_http(tools, host="0.0.0.0", key=...)   for other machines too

A call that does not fit its schema gets a result with `isError` that names the fault. A call of an unknown tool is a
protocol error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import HookLike
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Result
from rightcall.errors import DispatchStopped
from rightcall.extras import require_extra
from rightcall.ids import random_id
from rightcall.listeners import TimedHead, gate_asgi
from rightcall.parsing.options import read_options
from rightcall.repairs.whole_call import repair as repaired
from rightcall.request_gate import RequestLimits, given_key, make_gate
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call, Json

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult

_UNKNOWN_TOOL = -32602
_LIMITS = RequestLimits(body=4_000_000, concurrent=512)  # the SDK's limit for a body; each client keeps a stream open
_HEAD = 64_000  # bytes of a request's first lines that are waited for


def server_of(
    tools: Tools,
    *,
    name: str = "rightcall",
    hooks: Iterable[HookLike] = (),
    limits: RunLimits | None = None,
    repair: str = "safe",
) -> Server[Any]:
    """Return the SDK's server, to run it in another way than `serve_stdio` and `serve_http`. Each call is repaired,
    checked, dispatched and bounded. Serves nothing by itself.

    - `tools`: the tools to serve. A tool without code is listed, and a call of it fails.
    - `name`: the name that the server reports.
    - `hooks`: called before and after each call, as in `dispatch`.
    - `limits`: as in `dispatch`; None: the default limits, with bounded outputs.
    - `repair`: "off", "safe" or "lenient", as in `parse`.

    Raises `CallerError` for another `repair`, `BadTools` for tools that cannot be used, and `MissingExtra` without the
    extra `mcp`.
    """
    require_extra("mcp")
    from mcp import types
    from mcp.server.lowlevel import Server

    from rightcall import __version__

    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    read_options(repair=repair)  # raises CallerError for an invalid policy
    asked, bounds = tuple(hooks), limits or RunLimits(result=Bounds())
    names = {wire: own for own, wire in toolset.wire_names("mcp").items()}
    listing = types.ListToolsResult(tools=[_to_sdk_tool(each) for each in to_provider(toolset, "mcp")])

    async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return listing

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = Call(names.get(params.name, params.name), dict(params.arguments or {}), "", random_id())
        return await _call_tool(repaired(call, toolset, policy=repair), toolset, asked, bounds)

    return Server(name, version=__version__, on_list_tools=on_list_tools, on_call_tool=on_call_tool)


def _to_sdk_tool(definition: Mapping[str, Any]) -> Any:
    """Return the SDK's `Tool` for a tool definition in MCP's JSON form."""
    from mcp import types

    return types.Tool.model_validate(definition)


async def _call_tool(call: Call, tools: Toolset, hooks: tuple[HookLike, ...], limits: RunLimits) -> CallToolResult:
    """Run one call of `tools` with `hooks` within `limits` and return its result, with `isError` if it failed or a hook
    stopped it. Raises `MCPError`, with a suggestion, for an unknown tool."""
    from mcp import MCPError

    if call.name not in tools:
        near = ", ".join(tools.nearest(call.name))
        raise MCPError(
            _UNKNOWN_TOOL, f"there is no tool {call.name!r:.80}" + (f"; did you mean {near}?" if near else "")
        )
    try:
        [result] = await dispatch([call], tools, hooks=hooks, limits=limits)
    except DispatchStopped as stopped:
        [result] = stopped.results
    return _to_sdk_result(result)


def _to_sdk_result(result: Result) -> CallToolResult:
    """Return a call's result in the SDK's form: its text, and its output as structured content if that is an object and
    no error. For an error `isError` is set, and the text is without its "ERROR: "."""
    from mcp import types

    text = result.text.removeprefix("ERROR: ") if result.error else result.text
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=None if result.error else _object_or_none(result.output),
        is_error=result.error,
    )


def _object_or_none(output: Any) -> Json | None:
    """Return the output if it is an object, else None: clients of older versions accept nothing else as structured
    content."""
    return output if isinstance(output, dict) else None


# -- serving -----------------------------------------------------------------------------------------------------------


def serve_stdio(tools: Tools, *, name: str = "rightcall", hooks: Iterable[HookLike] = (), repair: str = "safe") -> None:
    """Serve the client that started this process, over standard input and output; block until it disconnects. `tools`,
    `name`, `hooks` and `repair` are those of `server_of`.

    Standard output carries the protocol, so `sys.stdout` becomes `sys.stderr` for the rest of the process: what tools
    print goes there.
    """
    server = server_of(tools, name=name, hooks=hooks, repair=repair)

    async def run() -> None:
        """Serve the client over standard input and output until it disconnects."""
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (read, write):
            sys.stdout = sys.stderr  # standard output carries the protocol, so a tool must not print to it
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(run())


def serve_http(
    tools: Tools,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str = "",
    no_key: bool = False,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    name: str = "rightcall",
    hooks: Iterable[HookLike] = (),
    repair: str = "safe",
) -> None:
    """Serve `http://host:port/mcp` and block until stopped. `tools`, `name`, `hooks` and `repair` are those of
    `server_of`.

    - `host`: 127.0.0.1 for this machine only; another address serves other machines too.
    - `port`: the port to listen on.
    - `key`: the bearer token that clients must send. Required unless `no_key`.
    - `no_key`: allow every program on this machine to call the tools; only with a loopback `host`.
    - `origins`: web pages that may use the server.
    - `hosts`: further host names under which clients may reach it.

    Raises `CallerError` without a key or `no_key`, for a key that is too short, and for `no_key` on another address
    than loopback. Ends with uvicorn's `SystemExit` if the port is in use.
    """
    import uvicorn

    app = http_app(
        tools,
        host=host,
        key=key,
        no_key=no_key,
        origins=origins,
        hosts=hosts,
        name=name,
        hooks=hooks,
        repair=repair,
    )
    uvicorn.run(app, host=host, port=port, log_level="warning", **uvicorn_options())


def uvicorn_options(limits: RequestLimits = _LIMITS) -> Json:
    """Return keyword arguments for `uvicorn.run`: no web sockets, and `limits` for the size and the time of request
    heads."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    def timed(*given: Any, **named: Any) -> TimedHead:
        return TimedHead(AutoHTTPProtocol(*given, **named), limits.head_seconds)

    return {"http": timed, "ws": "none", "h11_max_incomplete_event_size": _HEAD}


def http_app(
    tools: Tools,
    *,
    host: str,
    key: str = "",
    no_key: bool = False,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    name: str = "rightcall",
    hooks: Iterable[HookLike] = (),
    repair: str = "safe",
) -> Any:
    """Return the ASGI application that `serve_http` runs: the MCP server behind a gate that checks key, host and
    origin. The parameters are those of `serve_http`. Raises `CallerError` as it does."""
    require_extra("mcp")
    from mcp.server.transport_security import TransportSecuritySettings

    chosen = given_key(key) if key else None
    guard = make_gate(host, key=chosen, no_key=no_key, origins=origins, hosts=hosts, limits=_LIMITS)
    server = server_of(tools, name=name, hooks=hooks, repair=repair)
    # The gate checks more than the SDK does, and knows which hosts and origins are allowed.
    theirs = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return gate_asgi(server.streamable_http_app(host=host, transport_security=theirs), guard)
