"""The tools of an MCP server as a `Toolset`: each tool runs by a call to the server.

    async with connect(["uvx", "some-server"]) as tools: ...          a command, over its standard input and output
    async with connect("https://host/mcp", headers={...}) as tools:   streamable HTTP

The annotations of a server are not trusted: that a tool only reads counts with `trust_annotations=True`. A definition
that cannot be used is left out and listed in `tools.refused`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from rightcall.errors import BackendError, CallerError, ToolError
from rightcall.extras import require_extra
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

MOST_TOOLS = 1000
_MOST_PAGES = 100


@asynccontextmanager
async def connect(
    server: str | Sequence[str],
    *,
    trust_annotations: bool = False,
    prefix: str = "",
    seconds: float = 60.0,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Toolset]:
    """Yield the tools of an MCP server while connected; an async context manager. Definitions that cannot be used are
    omitted and listed in `tools.refused`.

    - `server`: a URL (streamable HTTP), or the words of a command that is started and used over its standard input and
      output.
    - `trust_annotations`: trust the server's annotation that a tool only reads.
    - `prefix`: put before the tools' names.
    - `seconds`: the time limit of each answer.
    - `headers`: are sent with every request over HTTP.
    - `env`: variables for the command, added to the few of ours that it gets.

    Raises `BackendError` for a server that cannot be used, `CallerError` for an invalid `server`. An exception inside
    the context is raised unchanged.
    """
    require_extra("mcp")
    from mcp import Client

    is_connected = False
    raised: Exception | None = None
    try:
        async with (
            _open_transport(server, headers, env) as transport,
            Client(transport, read_timeout_seconds=seconds) as client,
        ):
            tools = await _list_tools(client, trust_annotations, prefix)
            is_connected = True
            try:
                yield tools
            except Exception as error:  # noqa: BLE001 - the caller's; raised below, outside the task group
                raised = error
    except CallerError:
        raise
    except Exception as error:  # before the connection is established, every failure is the server's fault
        if is_connected:
            raise
        address, cause = _strip_secrets(server), _describe_cause(error)
        cause = cause.replace(server, address) if isinstance(server, str) else cause
        raise BackendError(f"the MCP server {address} cannot be used: {cause}") from error
    if raised is not None:
        raise raised


def _describe_cause(error: BaseException) -> str:
    """Return type and message of an exception; of nested exception groups, those of the first exception inside."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


@asynccontextmanager
async def _open_transport(
    server: str | Sequence[str], headers: Mapping[str, str] | None, env: Mapping[str, str] | None
) -> AsyncIterator[Any]:
    """Yield what the SDK's `Client` connects with: parameters of a command to start, or an HTTP transport that sends
    `headers`. `env`: variables for a command, added to the few of ours that it gets. Raises `CallerError` for an empty
    command and for a text that is no URL."""
    from mcp import StdioServerParameters

    if not isinstance(server, str):
        words = list(server)
        if not words:
            raise CallerError("no command to start the MCP server; pass the command as a list of words, or a URL")
        yield StdioServerParameters(command=words[0], args=words[1:], env=dict(env) if env is not None else None)
    elif not server.startswith(("http://", "https://")):
        raise CallerError(f"{server!r:.80} is no URL; pass http://... or https://..., or a command as a list of words")
    else:
        async with _open_http_transport(server, dict(headers or {})) as transport:
            yield transport


@asynccontextmanager
async def _open_http_transport(url: str, headers: dict[str, str]) -> AsyncIterator[Any]:
    """Yield a transport for the SDK's `Client` over HTTP to `url`, which sends `headers`. Its HTTP client is closed at
    the end."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http:
        yield streamable_http_client(url, http_client=http)


async def _list_tools(client: Client, trust_annotations: bool, prefix: str) -> Toolset:
    """List the server's tools, page by page, and return them as a toolset of which each tool runs by calling the
    server. Definitions that cannot be used are in its `refused`. Stops at a repeated cursor or after `_MOST_PAGES`
    pages; raises `BackendError` beyond `MOST_TOOLS` definitions."""
    listed: list[Json] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    while cursor not in seen and len(seen) < _MOST_PAGES:
        seen.add(cursor)
        page = await client.list_tools(cursor=cursor)
        listed += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
        cursor = page.next_cursor or None
        if len(listed) > MOST_TOOLS:
            raise BackendError(f"the MCP server lists more than {MOST_TOOLS} tools; that is more than can be used")
    described = Toolset.lenient(listed)
    tools = Toolset.lenient([_bind_to_server(tool, client, trust_annotations, prefix) for tool in described])
    tools.refused, tools.clashes = (*described.refused, *tools.refused), (*described.clashes, *tools.clashes)
    return tools


def _bind_to_server(tool: Tool, client: Client, trust_annotations: bool, prefix: str) -> Tool:
    """Return a copy of a listed `Tool` that runs by calling the server, with the prefix before its name. It stays
    read-only only if `trust_annotations` is set."""
    return msgspec.structs.replace(
        tool,
        name=prefix + tool.name,
        read_only=tool.read_only and trust_annotations,
        run=_make_runner(client, tool.name),
    )


def _make_runner(client: Client, name: str) -> Callable[..., Any]:
    """Return an async function that calls the server's tool `name` with its keyword arguments and returns the output.
    It raises `ToolError` if the call fails or the answer cannot be used; the time limit is that of the `client`."""

    async def run(**arguments: Any) -> Any:
        """Call the server's tool with these arguments and return its output. Raises `ToolError`."""
        from mcp import MCPError

        try:
            return read_output(await client.call_tool(name, arguments))
        except MCPError as error:  # a protocol error, a timeout, or a lost connection
            raise ToolError(f"the MCP server could not run the tool: {error}") from error
        except (ValueError, RuntimeError) as error:  # the SDK rejects an invalid answer
            raise ToolError(f"the MCP server's answer cannot be used: {error!s:.300}") from error

    return run


def read_output(result: CallToolResult) -> Any:
    """Return the output of a tool's result: its structured content if there is any; else its texts, joined by line
    breaks, if all content blocks are texts; else all blocks as JSON data. Raises `ToolError` if the result reports a
    failure."""
    blocks: list[Json] = [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in result.content]
    texts = [str(block["text"]) for block in blocks if block.get("type") == "text"]
    if result.is_error:
        raise ToolError("\n".join(texts) or "the tool failed without a message")
    if result.structured_content is not None:
        return result.structured_content
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _strip_secrets(server: str | Sequence[str]) -> str:
    """Return the name of a server for messages: a URL without query, fragment and credentials, or the first word of a
    command, "" for an empty one."""
    if not isinstance(server, str):
        return " ".join(list(server)[:1])
    parts = urlsplit(server)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
