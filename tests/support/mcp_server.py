"""A real MCP server for the tests, made with the official SDK alone.    python tests/support/mcp_server.py"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ANY = {"type": "object"}
REMOTE = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x.json"}}}
READS = types.ToolAnnotations(read_only_hint=True)

PAGES = {
    None: [
        types.Tool(name="add", description="Adds.", input_schema=NUMBERS, output_schema=SUM, annotations=READS),
        types.Tool(name="fail", input_schema=ANY),
        types.Tool(name="bad", input_schema=REMOTE),
    ],
    "2": [types.Tool(name="say.it", input_schema={"type": "object", "properties": {"a-b": {"type": "string"}}})],
    "3": [types.Tool(name="picture", input_schema=ANY), types.Tool(name="gone", input_schema=ANY)],
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    at = params.cursor if params is not None else None
    keys = list(PAGES)
    after = keys.index(at) + 1
    return types.ListToolsResult(tools=PAGES[at], next_cursor=keys[after] if after < len(keys) else None)


def text(message: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=message)]


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    if params.name == "add":
        total = arguments["a"] + arguments["b"]
        return types.CallToolResult(content=text(str(total)), structured_content={"sum": total})
    if params.name == "fail":
        return types.CallToolResult(content=text("it broke"), is_error=True)
    if params.name == "say.it":
        return types.CallToolResult(content=[*text(arguments["a-b"]), *text("over")])
    if params.name == "picture":
        return types.CallToolResult(content=[types.ImageContent(type="image", data="AA==", mime_type="image/png")])
    raise MCPError(-32602, "no such tool")


SERVER = Server("numbers", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
