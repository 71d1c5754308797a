"""An MCP server that violates the protocol, written without the SDK, which would prevent that.

python tests/support/odd_mcp_server.py
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {}}
NAMES = ("hello", "hello", "dies", "no_answer", "no_result")


def send(id: Any, **fields: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": id, **fields}), flush=True)


def list_page() -> dict[str, Any]:
    """Return the same page for every cursor."""
    return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in NAMES], "nextCursor": "again"}


def call(id: Any, name: str) -> None:
    if name == "dies":
        os._exit(1)
    if name == "hello":
        send(id, result={"content": [{"type": "text", "text": "hello"}]})
    if name == "no_result":
        print("this is no message", flush=True)
        send(id, result={"content": "this is no list of blocks"})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        id, params = message.get("id"), message.get("params") or {}
        match message.get("method"):
            case "initialize":
                about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
                send(id, result={"protocolVersion": params["protocolVersion"], **about})
            case "tools/list":
                send(id, result=list_page())
            case "tools/call":
                call(id, params["name"])
            case _ if id is not None:
                send(id, error={"code": -32601, "message": "no such method"})


if __name__ == "__main__":
    main()
