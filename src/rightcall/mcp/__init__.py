"""Tools from MCP servers, and any toolset as an MCP server. Needs the extra `mcp`.

    async with connect("http://127.0.0.1:8000/mcp") as tools:
        results = await dispatch(reply, tools)

`serve_stdio(tools)` serves them to the client that started this process, `serve_http(tools, key=...)` to others.
"""

from rightcall.mcp.client import connect
from rightcall.mcp.server import serve_http, serve_stdio, server_of

__all__ = ["connect", "serve_http", "serve_stdio", "server_of"]
