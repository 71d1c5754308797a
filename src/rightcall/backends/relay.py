"""The address of a local model: requests that the gate accepts are passed to llama.cpp, which listens on a Unix socket.

llama.cpp answers any Host header and has routes that need no key, so only this relay can reach its socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rightcall.listeners import WebServer
from rightcall.request_gate import Gate, given_key, make_gate

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import web

_HOST = "127.0.0.1"
_PASSED = ("content-type", "accept")
_GONE = "llama.cpp did not answer"


async def relay(order: dict[str, Any], socket: str, ready: Callable[[str], None]) -> None:
    """Start a server for llama.cpp on the Unix socket `socket`, call `ready` with its address, and serve until
    cancelled. Raises `CallerError` if the port cannot be used."""
    import aiohttp

    limits = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.UnixConnector(path=socket, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=limits, auto_decompress=False) as session,
        WebServer(_make_relay_handler(session), _make_gate(order), port=order["port"]) as server,
    ):
        ready(server.address)
        await asyncio.Event().wait()


def _make_gate(order: dict[str, Any]) -> Gate:
    """Return the gate that checks clients' requests, for the `key` (empty: none is needed) and the `origins` of the
    order."""
    key = given_key(order["key"]) if order["key"] else None
    return make_gate(_HOST, key=key, no_key=key is None, origins=order["origins"])


def _make_relay_handler(session: aiohttp.ClientSession) -> Any:
    """Return a handler for the web server that sends each request to llama.cpp through `session` and copies the
    response; it answers 502 if llama.cpp does not answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        """Return llama.cpp's response to a client's request, or a 502 with the reason if it does not answer."""
        import aiohttp
        from aiohttp import web

        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        body = await request.read() if request.can_read_body or request.body_exists else None
        url = f"http://localhost{request.path_qs}"
        try:
            async with session.request(request.method, url, data=body, headers=headers, allow_redirects=False) as got:
                return await _copy_response(got, request)
        except aiohttp.ClientError as error:
            message = f"{_GONE}: {str(error) or type(error).__name__}; see the output of the program that started it"
            return web.json_response({"error": {"message": message, "type": "server_error", "code": 502}}, status=502)

    return answer


async def _copy_response(got: aiohttp.ClientResponse, request: web.Request) -> web.StreamResponse:
    """Copy llama.cpp's response `got` to the client piece by piece, and return the client's response. If llama.cpp
    breaks off, the connection to the client is aborted too."""
    import aiohttp
    from aiohttp import web

    kind = got.headers.get("content-type", "application/json")
    response = web.StreamResponse(status=got.status, headers={"Content-Type": kind, "Server": "llama.cpp"})
    await response.prepare(request)
    try:
        async for piece in got.content.iter_any():
            await response.write(piece)
    except aiohttp.ClientError:
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response
