"""`Proxy`: the server that stands between clients and model servers.

    async with Proxy(settings) as proxy:
        proxy.address
        await proxy.reload(other_settings)

It listens through `servers`, as every server of ours does. Each request has its own `Exchanged`, which whoever watches
is told when the request is over.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from rightcall.api_names import Api
from rightcall.errors import BackendError
from rightcall.listeners import WebServer
from rightcall.serve.answer_writers import encoded
from rightcall.serve.client_answer import ClientAnswer
from rightcall.serve.client_ask import ClientAsk
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.exchanged import Exchanged, ExchangedContent, new_request_id
from rightcall.serve.proxy_answer import Answering
from rightcall.serve.proxy_doors import DOORS, kept_response
from rightcall.serve.proxy_metrics import ProxyMetrics
from rightcall.serve.proxy_paths import Door, door_of
from rightcall.serve.proxy_settings import ProxySettings
from rightcall.serve.proxy_watch import ProxyWatch
from rightcall.serve.switchboard import Switchboard
from rightcall.serve.upstream_refusals import failure

if TYPE_CHECKING:
    from aiohttp import web

_LAST_WORDS = 1.0  # seconds for answers whose time is up to say so
_LOG = logging.getLogger("rightcall.serve")


class Proxy:
    """Serves as long as it is entered. Raises `CallerError` where it cannot listen, or must not."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._server: WebServer | None = None
        self._board: Switchboard | None = None
        self._busy: dict[Switchboard, int] = {}  # requests that are being answered
        self._retired: set[Switchboard] = set()
        self._metrics = ProxyMetrics()

    @property
    def address(self) -> str:
        assert self._server is not None, "enter it first"
        return self._server.address

    async def __aenter__(self) -> Self:
        gate = self.settings.gate()
        self._board = await self._made(self.settings)
        self._server = WebServer(
            self._handle,
            gate,
            port=self.settings.port,
            stop_seconds=self.settings.stop_seconds + _LAST_WORDS,
            on_refused=self._note_refused,
        )
        try:
            await self._server.__aenter__()
        except BaseException:
            await self._board.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        late = asyncio.create_task(self._end_late_answers())
        if self._server is not None:
            await self._server.__aexit__()
        late.cancel()
        for board in self._boards():
            await board.close()

    async def _end_late_answers(self) -> None:
        """Answers that are not over in time end as if their servers had left: a client that sees no end asks again."""
        await asyncio.sleep(self.settings.stop_seconds)
        for board in self._boards():
            board.break_off()

    def _boards(self) -> list[Switchboard]:
        return [each for each in {self._board, *self._retired} if each is not None]

    async def reload(self, settings: ProxySettings) -> None:
        """Goes on with these settings: requests that are being answered end under the old ones. What it listens on, and
        its key, stay as they are."""
        old, self._board = self._board, await self._made(settings)
        self.settings = settings
        if old is not None:
            self._retired.add(old)
            await self._close_retired()

    async def _made(self, settings: ProxySettings) -> Switchboard:
        board = Switchboard(settings, ProxyWatch(settings, self._metrics))
        await board.connect()
        return board

    async def _close_retired(self) -> None:
        for board in [each for each in self._retired if not self._busy.get(each)]:
            self._retired.discard(board)
            await board.close()

    def _note_refused(self, method: str, status: int, code: str) -> None:
        """A request that did not come in is counted and logged too."""
        assert self._board is not None
        exchanged = Exchanged(id=new_request_id(), route="refused", method=method[:20], status=status, error=code)
        self._board.watch.over(exchanged)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        board = self._board
        assert board is not None
        self._busy[board] = self._busy.get(board, 0) + 1
        try:
            return await self._watched(http, board)
        finally:
            self._busy[board] -= 1
            if not self._busy[board]:
                del self._busy[board]
                if board in self._retired:
                    await self._close_retired()

    async def _watched(self, http: web.Request, board: Switchboard) -> web.StreamResponse:
        door = door_of(http.method, http.path)
        exchanged = Exchanged(
            id=new_request_id(),
            route=door.route if door is not None else "refused",
            method=http.method,
            client_api=(door.api if door is not None else None) or "",
        )
        client = ClientAnswer(http, exchanged, board.settings)
        api: Api = (door.api if door is not None else None) or "chat"
        watch = board.watch
        span = watch.begin(http.headers)
        if board.settings.wants_content:
            exchanged.content = ExchangedContent()
        self._metrics.opened(exchanged)
        try:
            return await self._answered(http, door, board, client, exchanged, watch.carried(span))
        except (RefusedRequest, BackendError) as error:
            return await _told(error, api, client, exchanged)
        except ConnectionError:
            exchanged.client_gone = True
            return client.response
        except asyncio.CancelledError:
            exchanged.client_gone = True
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer, and the log the reason
            _LOG.exception("request %s failed", exchanged.id)
            wrong = RefusedRequest("the proxy failed; its log says why", status=500, code="proxy_failed")
            return await _told(wrong, api, client, exchanged)
        finally:
            await client.leave()
            exchanged.total = exchanged.seconds()
            watch.over(exchanged, span)

    async def _answered(
        self,
        http: web.Request,
        door: Door | None,
        board: Switchboard,
        client: ClientAnswer,
        exchanged: Exchanged,
        carried: dict[str, str],
    ) -> web.StreamResponse:
        if door is None:
            raise RefusedRequest(f"there is no {http.method} {http.path:.100} here", status=404, code="not_found")
        if door.route in DOORS:
            return await DOORS[door.route](http, door, board, client, exchanged)
        if door.id:
            return await kept_response(http, door, board, client, exchanged)
        raw = await http.read()
        exchanged.bytes_in = len(raw)
        asked = ClientAsk(
            api=door.api or "chat",
            raw=raw,
            headers={**http.headers, **carried} if carried else http.headers,
            query=http.rel_url.raw_query_string,
            model=door.model,
            stream=door.stream,
        )
        return await Answering(board, asked, client, exchanged).answer()


async def _told(
    error: RefusedRequest | BackendError, api: Api, client: ClientAnswer, exchanged: Exchanged
) -> web.StreamResponse:
    """The client learns that there is no answer, in a status or, if the head has gone out, in the stream."""
    status, body, headers = failure(error, api)
    exchanged.error = exchanged.error or (error.code if isinstance(error, RefusedRequest) else type(error).__name__)
    if not client.has_begun:
        return await client.respond(status, encoded(body), headers=headers)
    await client.send(client.writer.error(str(error)))
    return await client.end()
