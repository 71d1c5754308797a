"""Visits to the zoo: a client asks a bad server without the proxy and through it, and what it saw is judged.

with Visits() as visits:
    visits.bare(server, "chat", stream=True)            what is wrong with what a client saw; "" if nothing is
    visits.proxied(server, "chat", stream=True)         the same through the proxy, in any dialect of the client
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
from zoo.keeper import Keeper, keeping
from zoo.naive import Seen, naive
from zoo.question import Json, Question
from zoo.scenes import asked, asked_next
from zoo.script import Said
from zoo.sdk_clients import Sdks

T = TypeVar("T")
_SETTINGS: Json = {"mode": "native", "port": 0, "first_byte_seconds": 20.0, "idle_seconds": 20.0, "stop_seconds": 0.5}


class Heard(NamedTuple):
    """An answer as it came: what a client makes of it is `seen`, or it `broke`."""

    status: int
    headers: dict[str, str]
    data: bytes
    seen: Seen | None
    broke: str
    faults: list[str]
    asked: Json


class Visits:
    """The zoo, and a proxy before it for each dialect and settings, for as long as this is open."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._proxies: dict[str, Proxy] = {}
        self._stack = AsyncExitStack()
        self._sdks = Sdks()
        self.keeper = Keeper()

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(self, *gone: object) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _open(self) -> None:
        self.keeper = await self._stack.enter_async_context(keeping())
        self._stack.push_async_callback(self._sdks.close)
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())

    async def _proxy(self, api: str, settings: Json) -> Proxy:
        key = json.dumps([api, settings], sort_keys=True)
        if key not in self._proxies:
            given = {**_SETTINGS, **settings}
            profile = given.pop("profile", "")
            upstream = UpstreamSettings(url=self.keeper.url, api=cast(Any, api), name="zoo", profile=profile)
            made = ProxySettings(upstream=(upstream,), **cast(Any, given))
            self._proxies[key] = await self._stack.enter_async_context(Proxy(made))
        return self._proxies[key]

    def address(self, server: BadServer, api: str) -> str:
        """Of the proxy before this server, which speaks `api`."""
        return self.run(self._proxy(api, server.settings)).address

    # -- asking --------------------------------------------------------------------------------------------------------

    def hear(self, base: str, path: str, body: Json, api: str, *, stream: bool) -> Heard:
        """Asks there, and reads the answer as a client of this dialect does."""
        return self.run(self._hear(base + path, body, api, stream=stream))

    async def _hear(self, url: str, body: Json, api: str, *, stream: bool) -> Heard:
        broke, data, status, headers = "", b"", 0, {}
        try:
            async with self._session.post(url, json=body) as answer:
                status, headers = answer.status, {name.lower(): value for name, value in answer.headers.items()}
                async for piece, _ in answer.content.iter_chunks():
                    data += piece
        except aiohttp.ClientError as error:
            broke = repr(error)
        if status != 200:
            return Heard(status, headers, data, None, broke or f"status {status}: {data[:300].decode()}", [], body)
        found = faults(api, data, stream=stream) if not broke else []
        try:
            seen = naive(api, data, stream=stream)
        except Exception as error:  # noqa: BLE001  (whatever breaks a client is what the zoo is about)
            return Heard(status, headers, data, None, broke or repr(error), found, body)
        return Heard(status, headers, data, None if broke else seen, broke, found, body)

    def bare(self, server: BadServer, api: str, *, stream: bool) -> Heard:
        """The server as it is."""
        return self._visited(f"{self.keeper.url}/{server.name}", server, api, stream=stream)

    def proxied(self, server: BadServer, api: str, *, stream: bool, client: str = "") -> Heard:
        """The server, which speaks `api`, behind the proxy."""
        return self._visited(self.address(server, api), server, client or api, stream=stream)

    def by_sdk(self, server: BadServer, api: str, *, stream: bool) -> tuple[Seen, Json]:
        """What the SDK of this dialect sees through the proxy, and what it was told to ask."""
        _, body = asked(server.scene, api, model=server.name, stream=stream)
        address = self.address(server, api)
        return self.run(self._sdks.seen(api, address, {**body, "model": server.name}, stream=stream)), body

    def _visited(self, base: str, server: BadServer, api: str, *, stream: bool) -> Heard:
        path, body = asked(server.scene, api, model=server.name, stream=stream)
        heard = self.hear(base, path, body, api, stream=stream)
        if server.scene != "two_rounds" or heard.seen is None:
            return heard
        calls = [(id, name, given) for id, (name, given) in zip(heard.seen.ids, heard.seen.calls, strict=True)]
        path, body = asked_next(api, calls, model=server.name, stream=stream)
        return self.hear(base, path, body, api, stream=stream)


def faults(api: str, data: bytes, *, stream: bool) -> list[str]:
    """How an answer breaks the rules of its dialect."""
    return conforms(data, api, stream=stream)


def wrong_with(heard: Heard, server: BadServer, api: str, *, stream: bool) -> str:
    """What of this is not as it should be; empty if all is."""
    seen = heard.seen
    if server.right == "no_call":
        refused = heard.status == 400
        return (
            ""
            if refused or (seen is not None and not seen.calls)
            else f"calls that must not run: {seen}, {heard.broke}"
        )
    if seen is None:
        return heard.broke
    if server.right == "told":
        return "" if "tokens" in heard.headers.get("x-rightcall-warnings", "") else "nobody is told"
    if server.right == "alive" and not (heard.data.startswith(b":") or b"event: ping" in heard.data):
        return "no sign of life"
    return unmeant(seen, server.meant(Question(api, heard.asked, stream))) or _old_ids(seen, heard.asked)


def unmeant(seen: Seen, meant: Said) -> str:
    """How what was seen differs from what was meant."""
    if seen.calls != [(call.name, call.arguments) for call in meant.calls]:
        return f"calls {seen.calls}, text {seen.text!r:.80}"
    return "" if meant.calls or seen.text == meant.text else f"text {seen.text!r:.80}"


def _old_ids(seen: Seen, body: Json) -> str:
    known = json.dumps(body)
    old = [id for id in seen.ids if isinstance(id, str) and json.dumps(id) in known]
    return f"ids that the conversation has already: {old}" if old else ""
