"""`Backend`: call any server that has OpenAI's Chat or Responses, Anthropic's Messages, Ollama's, Gemini's or a
completions API.

    backend = Backend("http://127.0.0.1:8080", api="chat", model="qwen3")
    answer = backend.complete_sync(Request(messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[weather]))

If there is no answer, a `BackendError` is raised. Mistakes of the server or the model inside an answer are its
problems: a stream that breaks off gives the part that arrived and a problem `truncated`, and never an incomplete call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Self

from rightcall.backends.address import api_address, check_api, find_base_url, find_key, own_secrets, root_url
from rightcall.backends.aiohttp_exchange import Wire
from rightcall.backends.attempts import Asking
from rightcall.backends.auto_mode import ModeSelector
from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.exchange import Exchange, HttpRequest, Retries, Timeouts
from rightcall.backends.profiles import Profile, find_profile
from rightcall.backends.request import MODES, Answer, Mode, Request
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.errors import BackendError, CallerError
from rightcall.redaction.scrubber import Scrubber
from rightcall.types import Event


class Backend(BaseBackend):
    """A model server, called through any of the known APIs. Use it as it is, or with `async with` to keep connections
    open.

    - `base_url`: the server's base URL; None: from OPENAI_BASE_URL, ANTHROPIC_BASE_URL, OLLAMA_HOST or
      GOOGLE_GEMINI_BASE_URL.
    - `api`: `chat`, `responses`, `messages`, `ollama`, `gemini` or `completions`, or the name of its SDK.
    - `model`: the default model; a request can name another.
    - `mode`: the default mode of offering tools: "native" (the API's own field), "text" (in the prompt), "grammar" (in
      the prompt, with a grammar that constrains the server), or "auto", which detects what works.
    - `api_key_env`: the name of the environment variable with the key; None: OPENAI_API_KEY, ANTHROPIC_API_KEY and the
      like. A key is never a parameter, so that none is written into a program.
    - `profile`: the kind of server, by name or as a profile; None: it is detected.
    - `timeouts`, `retries`: time limits, and how often a request is retried; None for the defaults.
    - `headers`: sent with every request.
    - `exchange`: transports the bytes; None: the network, by aiohttp (extra `http`).
    - `environ`: used instead of the environment of this process.
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
        url = find_base_url(base_url, self.api, environ)
        self.root, self.address = root_url(url), api_address(url, self.api)
        self.model, self.mode = model, mode
        self.timeouts, self.retries = timeouts or Timeouts(), retries or Retries()
        self.key = None if exchange is not None else find_key(self.api, api_key_env, self.address, environ)
        self.exchange: Exchange = exchange or Wire(self.key, self.api, self.timeouts)
        self.headers = _build_headers(headers or {}, self.api)
        self.scrubber = Scrubber(own_secrets(self.key, self.headers))
        self.known = find_profile(profile) if isinstance(profile, str) else profile
        self._modes = ModeSelector(self.api, self.root, self.known)

    def __repr__(self) -> str:
        return f"Backend({self.address!r}, api={self.api!r}, model={self.model!r}, mode={self.mode!r})"

    async def __aenter__(self) -> Self:
        self.exchange.keep()
        return self

    async def aclose(self) -> None:
        """Close the connections that were kept open. The backend can be used again afterwards."""
        await self.exchange.aclose()

    def stream(self, request: Request) -> Streaming:
        """Stream the events of the answer to `request`, the same as those of a `Parser`. Raises a `BackendError` before
        the first event or not at all: a later failure is a problem of the answer."""
        return Streaming(self._answer(request, stream=True))

    async def complete(self, request: Request) -> Answer:
        """Return the complete answer to `request`, without streaming. Raises a `BackendError` if there is none."""
        async with aclosing(self._answer(request, stream=False)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer ends the events")

    async def models(self) -> list[str]:
        """Return the names of the models that the server lists; entries without a name are left out. Raises a
        `BackendError`."""
        _, payload = await self.get(MODEL_LIST_PATHS.get(self.api, "/v1/models"))
        body = payload if isinstance(payload, dict) else {}
        entries = body.get("data") or body.get("models") or []
        names = [each.get("id") or each.get("name") for each in entries if isinstance(each, dict)]
        return [name.removeprefix("models/") for name in names if isinstance(name, str)]

    async def profile(self) -> tuple[Profile | None, str]:
        """Return the profile of the server and how it was recognised; None if it is unknown."""
        return await self._modes.recognise(self.get)

    async def get(self, path: str, *, within: float | None = None) -> tuple[dict[str, str], Any]:
        """Return headers and JSON of a GET of `path` below the base URL, `within` that many seconds. Raises a
        `BackendError`."""
        asking = Asking(self, within=within)
        return await asking.get(HttpRequest("GET", self.root + path, None, self.headers))

    async def way(self, request: Request) -> ModeChoice:
        """Return how tools are best offered for this `request`, and why. Raises a `BackendError` if the server must be
        asked and does not answer."""
        return await self._modes.choose(request, self.mode, self._model_for(request), self._probe, self.get)

    def other_way(self, request: Request, choice: ModeChoice, error: BackendError) -> ModeChoice | None:
        """Return another mode for this `request` if the `error` shows that the server does not support the mode of
        `choice`; otherwise None."""
        return self._modes.fallback_after_error(self._model_for(request), choice, error)

    # -- asking --------------------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, *, stream: bool) -> AsyncGenerator[Event | Answer]:
        """Yield the events of the answer (only if `stream`), then the `Answer`. In mode auto, a mode that does not work
        is replaced by the next one and the request sent again, unless events were yielded. Raises a `BackendError` if
        there is no answer."""
        asking, model = Asking(self), self._model_for(request)
        choice = await self._modes.choose(request, self.mode, model, self._probe, self.get)
        while True:
            has_output = False
            try:
                async with aclosing(self._send_in_mode(request, choice, asking, stream=stream)) as events:
                    async for event in events:
                        if isinstance(event, Answer):
                            fallback = self._modes.fallback_after_answer(
                                request, self._model_for(request), choice, event
                            )
                            if fallback is not None and not stream:
                                break
                            yield event
                            return
                        has_output = True
                        if stream:
                            yield event
            except BackendError as error:
                fallback = None if has_output else self._modes.fallback_after_error(model, choice, error)
                if fallback is None:
                    error.tries = tuple(asking.tries)
                    raise
            assert fallback is not None
            choice = fallback

    async def _send_in_mode(
        self, request: Request, choice: ModeChoice, asking: Asking, *, stream: bool
    ) -> AsyncGenerator[Event | Answer]:
        """Send the request with the tools offered as `choice` says; yield the events, then the `Answer`. Failed HTTP
        requests are retried as `retries` allows; another mode is not tried. Raises a `BackendError` if there is no
        answer."""
        plan = make_plan(request, choice, self.api, self._model_for(request), stream=stream)
        async with aclosing(asking.events(plan)) as events:
            async for event in events:
                yield event

    async def _probe(self, request: Request, choice: ModeChoice) -> Answer:
        """Return the answer to a request in the mode of `choice`, which tests whether that mode works. Another mode is
        not tried. Raises a `BackendError` if there is no answer."""
        async with aclosing(self._send_in_mode(request, choice, Asking(self), stream=False)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer ends the events")

    def _model_for(self, request: Request) -> str:
        """Return the model of the request, or the backend's default."""
        return request.model or self.model


MODEL_LIST_PATHS = {"ollama": "/api/tags", "gemini": "/v1beta/models"}
_SECRET = ("authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization")


def _build_headers(given: Mapping[str, str], api: str) -> dict[str, str]:
    """Return the default headers of this API with the given ones, which win. Raises `CallerError` if a given header,
    such as Authorization, holds a secret."""
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
