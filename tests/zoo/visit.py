"""Requests to the bad servers, without the proxy and through it, and the check of what a client gets.

with ZooSession() as session:
    session.request_bare(server, "chat", stream=True)            a `Received`
    session.request_proxied(server, "chat", stream=True)         the same through the proxy, in any dialect
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, Self, TypeVar, cast

import aiohttp

from rightcall.serve.proxy import Proxy
from rightcall.serve.proxy_settings import ProxySettings, UpstreamSettings
from rightcall.testing import conforms
from zoo.bad_server import BadServer
from zoo.keeper import ZooServer, run_server
from zoo.naive import ClientView, read_naively
from zoo.question import Json, Question
from zoo.scenes import build_next_request, build_request
from zoo.script import Output
from zoo.sdk_clients import Sdks

T = TypeVar("T")
_SETTINGS: Json = {"mode": "native", "port": 0, "first_byte_seconds": 20.0, "idle_seconds": 20.0, "stop_seconds": 0.5}


class Received(NamedTuple):
    """An answer, and what a naive client makes of it: a view (`seen`), or an error (`broke`)."""

    status: int
    headers: dict[str, str]
    data: bytes
    seen: ClientView | None
    broke: str
    faults: list[str]
    body: Json


class ZooSession:
    """The bad servers, and one proxy for each dialect and settings, as long as the session is open."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._proxies: dict[str, Proxy] = {}
        self._stack = AsyncExitStack()
        self._sdks = Sdks()
        self.server = ZooServer()

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _open(self) -> None:
        self.server = await self._stack.enter_async_context(run_server())
        self._stack.push_async_callback(self._sdks.close)
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())

    async def _proxy(self, api: str, settings: Json) -> Proxy:
        key = json.dumps([api, settings], sort_keys=True)
        if key not in self._proxies:
            values = {**_SETTINGS, **settings}
            profile = values.pop("profile", "")
            upstream = UpstreamSettings(url=self.server.url, api=cast(Any, api), name="zoo", profile=profile)
            settings_of_proxy = ProxySettings(upstream=(upstream,), **cast(Any, values))
            self._proxies[key] = await self._stack.enter_async_context(Proxy(settings_of_proxy))
        return self._proxies[key]

    def address(self, server: BadServer, api: str) -> str:
        """Return the address of the proxy in front of this server, which uses `api`."""
        return self.run(self._proxy(api, server.settings)).address

    # -- requests ------------------------------------------------------------------------------------------------------

    def request(self, base: str, path: str, body: Json, api: str, *, stream: bool) -> Received:
        """Send a request and parse the answer as a client of this dialect does."""
        return self.run(self._request(base + path, body, api, stream=stream))

    async def _request(self, url: str, body: Json, api: str, *, stream: bool) -> Received:
        broke, data, status, headers = "", b"", 0, {}
        try:
            async with self._session.post(url, json=body) as answer:
                status, headers = answer.status, {name.lower(): value for name, value in answer.headers.items()}
                async for piece, _ in answer.content.iter_chunks():
                    data += piece
        except aiohttp.ClientError as error:
            broke = repr(error)
        if status != 200:
            return Received(status, headers, data, None, broke or f"status {status}: {data[:300].decode()}", [], body)
        found = rule_violations(api, data, stream=stream) if not broke else []
        try:
            seen = read_naively(api, data, stream=stream)
        except Exception as error:  # noqa: BLE001  (every exception of the client is a finding)
            return Received(status, headers, data, None, broke or repr(error), found, body)
        return Received(status, headers, data, None if broke else seen, broke, found, body)

    def request_bare(self, server: BadServer, api: str, *, stream: bool) -> Received:
        """Send the request directly to the server."""
        return self._request_scene(f"{self.server.url}/{server.name}", server, api, stream=stream)

    def request_proxied(self, server: BadServer, api: str, *, stream: bool, client: str = "") -> Received:
        """Send the request to the server, which uses `api`, through the proxy."""
        return self._request_scene(self.address(server, api), server, client or api, stream=stream)

    def request_with_sdk(self, server: BadServer, api: str, *, stream: bool) -> tuple[ClientView, Json]:
        """Send the request with the SDK of this dialect through the proxy. Return its view and the body."""
        _, body = build_request(server.scene, api, model=server.name, stream=stream)
        address = self.address(server, api)
        return self.run(self._sdks.request(api, address, {**body, "model": server.name}, stream=stream)), body

    def _request_scene(self, base: str, server: BadServer, api: str, *, stream: bool) -> Received:
        path, body = build_request(server.scene, api, model=server.name, stream=stream)
        received = self.request(base, path, body, api, stream=stream)
        if server.scene != "two_rounds" or received.seen is None:
            return received
        calls = [(id, name, given) for id, (name, given) in zip(received.seen.ids, received.seen.calls, strict=True)]
        path, body = build_next_request(api, calls, model=server.name, stream=stream)
        return self.request(base, path, body, api, stream=stream)


def rule_violations(api: str, data: bytes, *, stream: bool) -> list[str]:
    """Return the violations of the rules of the dialect."""
    return conforms(data, api, stream=stream)


def find_deviation(received: Received, server: BadServer, api: str, *, stream: bool) -> str:
    """Return how this differs from what the client must get, or an empty string."""
    seen = received.seen
    if server.right == "no_call":
        refused = received.status == 400
        return (
            ""
            if refused or (seen is not None and not seen.calls)
            else f"calls where none is allowed: {seen}, {received.broke}"
        )
    if seen is None:
        return received.broke
    if server.right == "warned":
        return "" if "tokens" in received.headers.get("x-rightcall-warnings", "") else "no warning"
    if server.right == "alive" and not (received.data.startswith(b":") or b"event: ping" in received.data):
        return "no keep-alive message"
    return compare_output(seen, server.intended_output(Question(api, received.body, stream))) or _reused_ids(
        seen, received.body
    )


def compare_output(seen: ClientView, intended: Output) -> str:
    """Return how a view differs from the intended output, or an empty string."""
    if seen.calls != [(call.name, call.arguments) for call in intended.calls]:
        return f"calls {seen.calls}, text {seen.text!r:.80}"
    return "" if intended.calls or seen.text == intended.text else f"text {seen.text!r:.80}"


def _reused_ids(seen: ClientView, body: Json) -> str:
    body_text = json.dumps(body)
    old = [id for id in seen.ids if isinstance(id, str) and json.dumps(id) in body_text]
    return f"ids that the conversation has already: {old}" if old else ""
