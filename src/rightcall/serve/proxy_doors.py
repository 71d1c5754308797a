"""What the proxy answers beside conversations: what models there are, how it fares, how long a request is.

Each door is a function of a request; `DOORS` has them by the word of `proxy_paths`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rightcall.backends.http import MODEL_LIST_PATHS
from rightcall.errors import BackendError, TransportError
from rightcall.serve.answer_writers import encoded
from rightcall.serve.client_answer import ClientAnswer
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.exchanged import Exchanged, Route
from rightcall.serve.model_lists import (
    OLLAMA_VERSION,
    ListedModel,
    Shape,
    merged,
    model_entry,
    model_list,
    read_models,
    shown_model,
)
from rightcall.serve.prometheus_text import CONTENT_TYPE
from rightcall.serve.proxy_paths import Door
from rightcall.serve.request_bodies import body_of
from rightcall.serve.request_readers import read_request
from rightcall.serve.switchboard import Switchboard
from rightcall.serve.token_estimate import estimate_tokens
from rightcall.serve.upstream_link import UpstreamLink, told_headers
from rightcall.types import Json

if TYPE_CHECKING:
    from aiohttp import web

DoorKeeper = Callable[["web.Request", Door, Switchboard, ClientAnswer, Exchanged], Awaitable["web.StreamResponse"]]
_MAX_FORWARDED = 64_000_000
_LISTING = 5.0  # seconds for a server to list its models


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
            await link.backend.get(MODEL_LIST_PATHS.get(link.api, "/v1/models"), within=_LISTING)
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


async def _listed(board: Switchboard) -> list[ListedModel]:
    """The models of all servers that can be reached."""
    links = list(board.links.values())
    found = await asyncio.gather(*[_models_of(link) for link in links])
    if not any(each is not None for each in found):
        raise TransportError("none of the servers lists its models; are they running?")
    return merged(board.settings, {link.name: each or [] for link, each in zip(links, found, strict=True)})


async def _models_of(link: UpstreamLink) -> list[ListedModel] | None:
    try:
        _, body = await link.backend.get(MODEL_LIST_PATHS.get(link.api, "/v1/models"), within=_LISTING)
    except BackendError:
        return None
    return read_models(link.api, body)


async def _models(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    if door.api == "gemini":
        shape: Shape = "gemini"
    elif "anthropic-version" in http.headers:
        shape = "messages"
    else:
        shape = "codex" if "client_version" in http.query else "openai"
    listed = await _listed(board)
    body = model_entry(shape, _named(listed, door.id)) if door.id else model_list(shape, listed)
    return await client.respond(200, encoded(body))


def _named(listed: list[ListedModel], name: object) -> ListedModel:
    found = next((each for each in listed if each.id == name), None)
    if found is None:
        raise RefusedRequest(f"there is no model {name!r:.100} here", status=404, code="model_not_found")
    return found


async def _tags(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    return await client.respond(200, encoded(model_list("tags", await _listed(board))))


async def _show(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    body = body_of(await http.read())
    found = _named(await _listed(board), body.get("model") or body.get("name"))
    return await client.respond(200, encoded(shown_model(found)))


async def _version(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    return await client.respond(200, encoded({"version": OLLAMA_VERSION}))


async def _metrics(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    return await client.respond(200, board.watch.metrics.text().encode(), CONTENT_TYPE)


async def _count_tokens(
    http: web.Request, door: Door, board: Switchboard, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """As the server counts, if it speaks the client's dialect; else an estimate."""
    raw = await http.read()
    request = read_request("messages", body_of(raw))
    exchanged.model = request.model
    link = board.reach(request.model)[0].link
    if link.api == "messages":
        url = link.backend.address + "/count_tokens"
        async with link.opened(url, raw, link.headers(http.headers, same=True, own_key=board.has_key)) as answer:
            data = await answer.whole(_MAX_FORWARDED)
            if answer.status == 200:
                return await client.respond(200, data)
    return await client.respond(200, encoded({"input_tokens": estimate_tokens(request)}))


DOORS: dict[Route, DoorKeeper] = {
    "health": _health,
    "ready": _ready,
    "compact": _compact,
    "refused": _no_socket,
    "forward": _forward,
    "models": _models,
    "tags": _tags,
    "show": _show,
    "version": _version,
    "metrics": _metrics,
    "count_tokens": _count_tokens,
}
