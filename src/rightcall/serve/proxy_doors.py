"""What the proxy answers beside conversations: what models there are, how it fares, how long a request is.

Each door is a function of a request; `DOORS` has them by the word of `proxy_paths`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rightcall.errors import BackendError
from rightcall.serve.answer_writers import encoded
from rightcall.serve.client_answer import ClientAnswer
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.exchanged import Exchanged, Route
from rightcall.serve.proxy_paths import Door
from rightcall.serve.switchboard import Switchboard
from rightcall.serve.upstream_link import told_headers
from rightcall.types import Json

if TYPE_CHECKING:
    from aiohttp import web

DoorKeeper = Callable[["web.Request", Door, Switchboard, ClientAnswer, Exchanged], Awaitable["web.StreamResponse"]]
_MAX_FORWARDED = 64_000_000


async def _health(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    return await client.respond(200, b'{"status":"ok"}')


async def _ready(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """Can any of the servers be reached?"""
    said: Json = {}
    for name, link in board.links.items():
        try:
            await link.backend.get("/v1/models" if link.api != "ollama" else "/api/tags", within=5.0)
            said[name] = "ok"
        except BackendError as error:
            said[name] = f"{type(error).__name__}"
    ready = any(word not in ("TransportError", "TimedOut") for word in said.values())
    return await client.respond(200 if ready else 503, encoded({"ready": ready, "upstreams": said}))


async def _compact(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    raise RefusedRequest("conversations are not compacted here; send them whole", code="unsupported")


async def _no_socket(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """Whoever would rather have a web socket is told at once to use HTTP."""
    if "upgrade" not in http.headers:
        raise RefusedRequest("use POST", status=405, code="method_not_allowed")
    return await client.respond(426, b"", headers={"Upgrade": "HTTP/1.1", "Connection": "close"})


async def kept_response(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """A response that was given before, or its end."""
    if http.method == "DELETE" and board.responses.forget(door.id):
        return await client.respond(200, encoded({"id": door.id, "object": "response", "deleted": True}))
    raise RefusedRequest(f"there is no response {door.id!r:.80} to get here", status=404, code="not_found")


async def _forward(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """What changes nothing is asked of the first server, and answered as it answers."""
    link = next(iter(board.links.values()))
    exchanged.upstream, exchanged.upstream_api, exchanged.mode = link.name, link.api, "pass"
    raw = await http.read() if http.method == "POST" else None
    url = link.backend.root + http.path_qs
    headers = link.headers(http.headers, same=True, own_key=board.has_key)
    async with link.opened(url, raw, headers, http.method) as answer:
        data = await answer.whole(_MAX_FORWARDED)
        kind = answer.headers.get("content-type", "application/json")
        return await client.respond(answer.status, data, kind, told_headers(answer.headers))


DOORS: dict[Route, DoorKeeper] = {
    "health": _health,
    "ready": _ready,
    "compact": _compact,
    "refused": _no_socket,
    "forward": _forward,
}
