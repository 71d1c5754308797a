"""One way to ask any server that speaks OpenAI's Chat or Responses, Anthropic's Messages, Ollama's own, Gemini's, or
completions.

    backend = Backend("http://127.0.0.1:8080", api="chat", model="qwen3")
    answer = backend.complete_sync(Request(messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[weather]))

An answer that could not be had is a `BackendError`. What a server or a model got wrong in an answer is a problem of it:
a stream that breaks in the middle gives what came, a problem `truncated`, and never a call that was not whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Self

from rightcall.backends.address import (
    api_address,
    check_api,
    find_base_url,
    find_key,
    own_secrets,
    root_url,
)
from rightcall.backends.aiohttp_exchange import Wire
from rightcall.backends.attempts import Asking
from rightcall.backends.auto_mode import ModeSelector
from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.exchange import Exchange, Retries, Sent, Timeouts
from rightcall.backends.profiles import Profile, find_profile
from rightcall.backends.request import MODES, Answer, Mode, Request
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.errors import BackendError, CallerError
from rightcall.redaction.scrubber import Scrubber
from rightcall.types import Event


class Backend(BaseBackend):
    """A model behind an address, asked through any of the known APIs. Use it as it is, or with `async with` to keep
    connections open.

    - `base_url`: where it is; None: what OPENAI_BASE_URL, ANTHROPIC_BASE_URL, OLLAMA_HOST or GOOGLE_GEMINI_BASE_URL
      says.
    - `api`: `chat`, `responses`, `messages`, `ollama`, `gemini` or `completions`, or the name of its SDK.
    - `model`: the model to ask, unless a request names another.
    - `mode`: how tools are offered, unless a request says otherwise: "native" (the API's own field), "text" (in the
      prompt), "grammar" (in the prompt, and the server is held to it), or "auto", which finds out what works.
    - `api_key_env`: the name of the variable that holds the key; None: OPENAI_API_KEY, ANTHROPIC_API_KEY and the like.
      A key is never passed, so that none is written into a program.
    - `profile`: what kind of server it is, by name, if you know; None: it is recognised.
    - `timeouts`, `retries`: how long is waited for what, and how often a request is tried again; None for the usual.
    - `headers`: go with every request.
    - `exchange`: carries the bytes; None: the network, by aiohttp (extra `http`).
    - `environ`: is looked at in place of the environment of this process.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api: str = "chat",
        model: str = "",
        mode: Mode = "auto",
        api_key_env: str | None = None,
        profile: str | Profile | None = None,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        headers: Mapping[str, str] | None = None,
        exchange: Exchange | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if mode not in MODES:
            raise CallerError(f"mode={mode!r} is not one of {', '.join(MODES)}")
        self.api = check_api(api)
        found = find_base_url(base_url, self.api, environ)
        self.root, self.address = root_url(found), api_address(found, self.api)
        self.model, self.mode = model, mode
        self.timeouts, self.retries = timeouts or Timeouts(), retries or Retries()
        self.key = None if exchange is not None else find_key(self.api, api_key_env, self.address, environ)
        self.exchange: Exchange = exchange or Wire(self.key, self.api, self.timeouts)
        self.headers = _headers(headers or {}, self.api)
        self.scrubber = Scrubber(own_secrets(self.key, self.headers))
        self.known = find_profile(profile) if isinstance(profile, str) else profile
        self._modes = ModeSelector(self.api, self.root, self.known)

    def __repr__(self) -> str:
        return f"Backend({self.address!r}, api={self.api!r}, model={self.model!r}, mode={self.mode!r})"

    async def __aenter__(self) -> Self:
        self.exchange.keep()
        return self

    async def aclose(self) -> None:
        """Closes the connections that were kept. It can be asked again afterwards."""
        await self.exchange.aclose()

    def stream(self, request: Request) -> Streaming:
        """The events of the answer to this `request` as they come, the same as a `Parser` gives. Raises a
        `BackendError` before the first of them, or not at all: what breaks later is a problem of the answer."""
        return Streaming(self._answer(request, stream=True))

    async def complete(self, request: Request) -> Answer:
        """The whole answer to this `request`, asked for at once. Raises a `BackendError` if there is none."""
        async with aclosing(self._answer(request, stream=False)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer ends the events")

    async def models(self) -> list[str]:
        """The names of the models that the server lists. Raises a `BackendError`."""
        listed = await self.get(LISTS.get(self.api, "/v1/models"))
        body = listed[1] if isinstance(listed[1], dict) else {}
        entries = body.get("data") or body.get("models") or []
        names = [each.get("id") or each.get("name") for each in entries if isinstance(each, dict)]
        return [name.removeprefix("models/") for name in names if isinstance(name, str)]

    async def profile(self) -> tuple[Profile | None, str]:
        """What kind of server this is, if it can be told, and by what."""
        return await self._modes.recognise(self.get)

    async def get(self, path: str, *, within: float | None = None) -> tuple[dict[str, str], Any]:
        """Headers and JSON of the answer to a GET of `path` below the base URL, `within` so many seconds. Raises a
        `BackendError`."""
        asking = Asking(self, within=within)
        return await asking.get(Sent("GET", self.root + path, None, self.headers))

    async def way(self, request: Request) -> ModeChoice:
        """How tools are best offered for this `request`, and why. Raises a `BackendError` where that must be asked and
        cannot be."""
        return await self._modes.choose(request, self.mode, self._model(request), self._probe, self.get)

    def other_way(self, request: Request, choice: ModeChoice, error: BackendError) -> ModeChoice | None:
        """Another way for this `request`, if the server does not take the one of `choice`; None where the `error` is no
        matter of that."""
        return self._modes.refused(self._model(request), choice, error)

    # -- asking --------------------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, *, stream: bool) -> AsyncGenerator[Event | Answer]:
        """The events, then the answer. In mode auto a way that does not work is given up for the next one, once."""
        asking = Asking(self)
        choice = await self._modes.choose(request, self.mode, self._model(request), self._probe, self.get)
        while True:
            given = False
            try:
                async with aclosing(self._once(request, choice, asking, stream=stream)) as events:
                    async for event in events:
                        if isinstance(event, Answer):
                            demoted = self._modes.judge(request, self._model(request), choice, event)
                            if demoted is not None and not stream:
                                break
                            yield event
                            return
                        given = True
                        if stream:
                            yield event
            except BackendError as error:
                demoted = None if given else self._modes.refused(self._model(request), choice, error)
                if demoted is None:
                    error.tries = tuple(asking.tries)
                    raise
            assert demoted is not None
            choice = demoted

    async def _once(
        self, request: Request, choice: ModeChoice, asking: Asking, *, stream: bool
    ) -> AsyncGenerator[Event | Answer]:
        plan = make_plan(request, choice, self.api, self._model(request), stream=stream)
        async with aclosing(asking.events(plan)) as events:
            async for event in events:
                yield event

    async def _probe(self, request: Request, choice: ModeChoice) -> Answer:
        """One request in one way, outside of every other rule."""
        async with aclosing(self._once(request, choice, Asking(self), stream=False)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer ends the events")

    def _model(self, request: Request) -> str:
        return request.model or self.model


LISTS = {"ollama": "/api/tags", "gemini": "/v1beta/models"}
_SECRET = ("authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization")


def _headers(given: Mapping[str, str], api: str) -> dict[str, str]:
    usual = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "User-Agent": "rightcall",
    }
    if api == "messages":
        usual["anthropic-version"] = "2023-06-01"
    secret = [name for name in given if name.lower() in _SECRET]
    if secret:
        raise CallerError(
            f"the header {secret[0]} holds a secret; set a variable to the key and name it with api_key_env"
        )
    return {**usual, **given}
