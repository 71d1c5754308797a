"""Send one request until it is answered or cannot be: retries, the total time limit, HTTP errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.backends.address import request_address
from rightcall.backends.aiohttp_exchange import out_of_time
from rightcall.backends.event_stream import MAX_LINE, Payload, ServerEvents, Signal
from rightcall.backends.exchange import HttpRequest, HttpResponse
from rightcall.backends.metadata import SHAPES, AnswerMetadata
from rightcall.backends.request import Answer, Timing, Try, to_answer
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import RequestPlan
from rightcall.backends.retry import retry_after, wait_before
from rightcall.errors import (
    AnswerTooLarge,
    BackendError,
    DecodeError,
    ProviderError,
    RateLimited,
    StatusError,
    TimedOut,
    Unauthorised,
)
from rightcall.providers.dialect import Fault
from rightcall.providers.provider_answers import Stream
from rightcall.providers.sdk_view import error_text, obj
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Event, Json

if TYPE_CHECKING:
    from rightcall.backends.http import Backend

MAX_BODY = 64_000_000  # bytes of a whole answer
MAX_ERROR = 64_000  # bytes of an error that are read
_SHOWN = 2_000  # characters of one that are shown
_DEPTH = 400
_PATIENCE = 0.5  # seconds for a connection to end after the answer did


class Asking:
    """Sends one request to a server, with retries, within the total time limit. `tries` gets an entry for every HTTP
    attempt."""

    def __init__(self, backend: Backend, *, within: float | None = None) -> None:
        self._backend = backend
        self._loop = asyncio.get_running_loop()
        self._total = backend.timeouts.total if within is None else within
        self._begun = self._loop.time()
        self._first_byte = 0.0
        self._status = 0
        self.tries: list[Try] = []

    async def get(self, sent: HttpRequest) -> tuple[dict[str, str], Any]:
        """Send one request once and return the headers and the decoded JSON of the response. Raises a `BackendError` if
        the server cannot be reached in time, the status is not 2xx, or the body is not JSON."""
        async with self._open_response(sent) as received:
            body = await self._read_body(received, sent.url)
            return received.headers, _parse_json(body, sent.url, self._scrub)

    async def events(self, plan: RequestPlan) -> AsyncGenerator[Event | Answer]:
        """Yield the events of the answer, then the `Answer`. Failed HTTP requests are retried as the backend's
        `retries` allow, before the first payload only; a stream that breaks off later gives a truncated answer. Raises
        a `BackendError` if there is no answer, such as `DecodeError` for JSON that is not an answer of the plan's
        API."""
        reader, facts = _make_reader(plan), AnswerMetadata(plan.api)
        raw: list[Json] = []
        url = request_address(self._backend.address, plan.api, plan.model, stream=plan.stream)
        sent = HttpRequest("POST", url, write_body(plan), self._backend.headers)
        async with aclosing(self._payloads_with_retries(sent, plan)) as payloads:
            async for payload in payloads:
                if isinstance(payload, Signal):
                    facts.ended = True
                    continue
                if isinstance(payload, Fault) and payload.code == "truncated" and facts.ended:
                    continue  # the answer was complete before the connection broke
                if not isinstance(payload, Fault):
                    facts.add(payload)
                    raw.append(payload)
                    payload = first_choice(payload)
                for event in reader.feed(payload):
                    yield plan.naming.restore_event(event)
        if not facts.is_answer and not (reader.reply.parts or reader.reply.problems):
            raise DecodeError(_missing_answer_message(sent.url, plan.api, raw))
        for event in _close_reader(plan, reader, facts):
            yield event
        yield self._build_answer(plan, reader, facts, raw)

    def _build_answer(self, plan: RequestPlan, reader: Stream, facts: AnswerMetadata, raw: list[Json]) -> Answer:
        """Return the `Answer` for the reply that was read: with the tools' own names, token counts, model, tries and
        timing. Its `raw` is the only payload of an answer that was not streamed, otherwise the list of payloads."""
        return to_answer(
            plan.naming.restore_reply(reader.reply),
            tokens=facts.tokens,
            model=facts.model or plan.model,
            api=plan.api,
            mode=plan.mode,
            evidence=plan.evidence,
            raw=raw if plan.stream or len(raw) != 1 else raw[0],
            tries=tuple(self.tries),
            timing=Timing(self._first_byte, self._loop.time() - self._begun),
        )

    # -- tries ---------------------------------------------------------------------------------------------------------

    async def _payloads_with_retries(self, sent: HttpRequest, plan: RequestPlan) -> AsyncGenerator[Payload]:
        """Yield the payloads of the first attempt that yields any. An attempt that fails before is recorded in `tries`
        and repeated after a wait; its error is raised if the retry policy allows no repetition. After the first payload
        there are no retries, and errors are raised."""
        while True:
            given = False
            try:
                async with aclosing(self._payloads(sent, stream=plan.stream)) as payloads:
                    async for payload in payloads:
                        if not given and isinstance(payload, dict):
                            self._raise_for_error(payload, sent.url)
                        if not given:
                            self.tries.append(Try(self._status))
                        given = True
                        yield payload
                return
            except BackendError as error:
                if given:
                    raise
                await self._wait_or_raise(error)

    async def _wait_or_raise(self, error: BackendError) -> None:
        """Record a failed attempt in `tries`, and wait before the next one. Raises the error, with all `tries`, if the
        retry policy allows no further attempt or the wait would exceed the total time limit."""
        status = error.status if isinstance(error, StatusError) else 0
        seconds = wait_before(len(self.tries) + 1, error, self._backend.retries)
        is_late = seconds is not None and self._loop.time() + seconds > self._begun + self._total
        self.tries.append(Try(status, str(error), 0.0 if is_late else seconds or 0.0))
        if seconds is None or is_late:
            error.tries = tuple(self.tries)
            raise error
        await asyncio.sleep(seconds)

    async def _payloads(self, sent: HttpRequest, *, stream: bool) -> AsyncGenerator[Payload]:
        """Send a request once and yield the payloads of the response, streamed or not, without secrets. Raises a
        `BackendError` if there is no usable response."""
        async with self._open_response(sent) as received:
            if not stream:
                for payload in self._parse_body(await self._read_body(received, sent.url), sent.url):
                    yield self._scrub_payload(payload)
                return
            async with aclosing(self._read_stream(received, sent.url)) as payloads:
                async for payload in payloads:
                    yield payload

    def _parse_body(self, body: bytes, url: str) -> list[Payload]:
        """Return the payloads of a body that was not requested as a stream: its JSON object, or the objects of its JSON
        array; every payload, faults and end markers included, if the server streamed unasked. JSON without an object
        gives []. Raises `DecodeError` if the body is not JSON."""
        reader = ServerEvents(longest=MAX_BODY)
        found = [*reader.feed(body), *reader.close()]
        if any(isinstance(payload, dict) for payload in found):
            return found
        value = _parse_json(body, url, self._scrub)
        return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]

    async def _read_stream(self, received: HttpResponse, url: str) -> AsyncGenerator[Payload]:
        """Yield the payloads of a stream up to the server's end marker. A stream that breaks off after a payload, or is
        too long, ends with a `Fault`. Before the first payload, a broken connection raises its `BackendError`, and a
        stream that is empty or not JSON raises `DecodeError`."""
        reader, given, size = ServerEvents(longest=MAX_LINE), False, 0
        try:
            async with aclosing(self._chunks(received)) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    for payload in reader.feed(chunk):
                        given = True
                        yield self._scrub_payload(payload)
                        if payload is Signal.done:
                            await _drain(chunks)
                            return
                    if reader.too_long:
                        return
                    if size > MAX_BODY:
                        yield Fault("too_large", f"the answer is longer than {MAX_BODY:,} bytes; the rest is not read")
                        return
        except BackendError as error:
            if not given:
                raise
            self.tries[-1] = Try(received.status, str(error))
            yield Fault("truncated", _BROKEN)
            return
        for payload in reader.close():
            if not given and isinstance(payload, Fault):
                break  # nothing that arrived is JSON
            given = True
            yield self._scrub_payload(payload)
        if not given:
            said = reader.head.decode("utf-8", "replace")
            raise DecodeError(self._scrub(_not_json_message(url, said)), self._scrub(said))

    def _scrub_payload(self, payload: Payload) -> Payload:
        """Return a payload with secrets removed from a fault's message and from an object's `error` fields, since both
        may repeat the request with its key. A `Signal` is returned as it is."""
        if isinstance(payload, Signal):
            return payload
        if isinstance(payload, Fault):
            return Fault(payload.code, self._scrub(payload.message), payload.blocking)
        return _clean_errors(payload, self._backend.scrubber.value)

    # -- one connection ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _open_response(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send the request and yield the response if its status is 2xx; leaving the context closes it. Raises a
        `StatusError` for any other status, and another `BackendError`, such as `TimedOut`, if no response arrives."""
        bounded = msgspec.structs.replace(sent, deadline=self._begun + self._total)
        async with AsyncExitStack() as stack:
            async with self._limit_time(sent.url):
                received = await stack.enter_async_context(self._backend.exchange.open(bounded))
            self._status = received.status
            if not 200 <= received.status < 300:
                raise await self._read_status_error(received, sent.url)
            yield received

    async def _read_status_error(self, received: HttpResponse, url: str) -> StatusError:
        """Return (not raise) the error for a response whose status is not 2xx: `Unauthorised` for 401 and 403,
        `RateLimited` for 429, else `StatusError`. It contains the beginning of the body, none if that cannot be read,
        and advice."""
        try:
            body = await self._read_body(received, url, most=MAX_ERROR, cut=True)
        except BackendError:  # its message is lost, its status is not
            body = b""
        said = self._scrub(body.decode("utf-8", "replace"))
        status, after = received.status, retry_after(received.headers)
        where = received.headers.get("location", "")
        cure = (
            f"it redirects to {where[:200]}: use that as the base URL"
            if where
            else _CURES.get(status, _advice_for_status(status))
        )
        message = f"{url} returned HTTP {status}: {shorten_message(said.strip()) or '(nothing)'}; {cure}"
        kind = {401: Unauthorised, 403: Unauthorised, 429: RateLimited}.get(status, StatusError)
        return kind(self._scrub(message), status, said, after)

    async def _read_body(self, received: HttpResponse, url: str, *, most: int = 0, cut: bool = False) -> bytes:
        """Return the bytes of a response's body. Beyond `most` bytes (0: `MAX_BODY`), return the first ones if `cut`;
        otherwise raise `AnswerTooLarge`. Other `BackendError`s are raised if the connection breaks or a time limit is
        reached."""
        most = most or MAX_BODY
        pieces: list[bytes] = []
        size = 0
        async with aclosing(self._chunks(received)) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if size > most and cut:
                    break
                if size > most:
                    raise AnswerTooLarge(f"{url}: the answer is larger than the limit of {most:,} bytes")
        return b"".join(pieces)[:most]

    async def _chunks(self, received: HttpResponse) -> AsyncGenerator[bytes]:
        """Yield the pieces of a response's body, and store the time of the first one. Raises the exchange's
        `BackendError` if the connection breaks or a time limit is reached; for the total limit, a `TimedOut` that names
        the limit of all tries."""
        try:
            async for chunk in received.chunks:
                self._first_byte = self._first_byte or self._loop.time() - self._begun
                yield chunk
        except TimedOut as error:
            raise (out_of_time(self._backend.address, self._total) if error.stage == "total" else error) from None

    @asynccontextmanager
    async def _limit_time(self, url: str) -> AsyncIterator[None]:
        """Return an async context manager that cancels the work inside it at the total time limit and then raises
        `TimedOut`, which names `url`."""
        try:
            async with asyncio.timeout_at(self._begun + self._total):
                yield
        except TimeoutError:
            raise out_of_time(url, self._total) from None

    def _raise_for_error(self, payload: Json, url: str) -> None:
        """Raise `ProviderError` if the payload has an `error` and none of `choices`, `output` and `message`; otherwise
        do nothing."""
        error = payload.get("error")
        if not error or any(payload.get(key) for key in ("choices", "output", "message")):
            return
        fields = obj(error) or {}
        kind = " ".join([str(fields[key]) for key in ("type", "code", "status") if fields.get(key)])
        said = shorten_message(self._scrub(error_text(error)))
        raise ProviderError(f"{url} answered with an error: {said}; see the server's log", kind)

    def _scrub(self, said: str) -> str:
        """Return a text with the backend's secrets masked."""
        return self._backend.scrubber.text(said)


def _make_reader(plan: RequestPlan) -> Stream:
    """Return a new `Stream` that parses the payloads of the answer into events, with the API, tools and format of the
    plan and the reading options of its request."""
    request = plan.request
    return Stream(
        plan.api,
        tools=plan.allowed,
        format=plan.format,
        reasoning=request.reasoning,
        repair=request.repair,
        choice=request.choice,
        ids=request.ids,
        live=request.live,
        limits=request.limits,
    )


def _missing_answer_message(url: str, api: str, raw: list[Json]) -> str:
    """Return the message for an answer of `url` that lacks the fields of the API: the missing field, and the names of
    the first payload's fields."""
    keys = ", ".join([repr(key)[:40] for key in list(raw[0])[:8]]) if raw else "nothing"
    missing = SHAPES[api]
    return f"the answer of {url} is missing {missing}: it has {keys}; does the server speak api={api!r}?"


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read and discard the rest of a finished stream, so that its connection can be used again. Gives up after half a
    second; a `BackendError` is ignored."""
    try:
        async with asyncio.timeout(_PATIENCE):
            async for _ in chunks:
                pass
    except (TimeoutError, BackendError):  # the answer is complete already
        pass


_BROKEN = "the stream broke before its end; send the whole answer again"
_UNFINISHED = "the stream ended without an end marker; the end of the answer may be missing"
_CURES = {
    400: "the server rejected the request: see its message",
    401: "the key is missing or wrong: set OPENAI_API_KEY or the like, or name its variable with api_key_env",
    403: "the key has no permission for this: set another, or name its variable with api_key_env",
    404: "there is no such address or model: check the base URL, the api and the model's name",
    413: "the request is too large: send fewer or shorter messages",
    429: "too many requests: wait, or send fewer at a time",
}


def _advice_for_status(status: int) -> str:
    """Return a phrase about what to do after an HTTP error status that has no specific advice: retry or check the log
    from 500 on, otherwise read the server's message."""
    return "the server failed: retry later, or check its log" if status >= 500 else "see its message"


def _close_reader(plan: RequestPlan, reader: Stream, facts: AnswerMetadata) -> Iterator[Event]:
    """End the reader and yield its last events, with the tools' own names. A stream without an end marker first gets a
    `truncated` fault, unless the reply has a problem that explains its end already."""
    if plan.stream and not facts.is_over and not _has_end_fault(reader):
        yield from reader.feed(Fault("truncated", _UNFINISHED))
    for event in reader.close():
        yield plan.naming.restore_event(event)


def _has_end_fault(reader: Stream) -> bool:
    """Return whether the reply has a problem that explains a missing end: `truncated`, `too_large` or
    `provider_error`."""
    return any(problem.code in ("truncated", "too_large", "provider_error") for problem in reader.reply.problems)


def first_choice(payload: Json) -> Json:
    """Return the payload with only the first of its `choices`: the others are alternatives, and their calls must not
    run too. A payload without alternatives is returned as it is."""
    choices = payload.get("choices")
    if not isinstance(choices, list) or not any(_is_alternative(choice, at) for at, choice in enumerate(choices)):
        return payload
    return {**payload, "choices": [choice for at, choice in enumerate(choices) if not _is_alternative(choice, at)]}


def _is_alternative(choice: Any, at: int) -> bool:
    """Return whether a choice is not the first one, by its `index`, or by its position `at` without one."""
    index = choice.get("index") if isinstance(choice, dict) else None
    return (index if type(index) is int else at) > 0


def shorten_message(said: str) -> str:
    """Return a server's message; beyond 2,000 characters, its beginning with a note of how many were left out."""
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN].rstrip()} ... ({len(said) - _SHOWN:,} characters more)"


def _clean_errors(payload: Json, clean: Callable[[Any], Any]) -> Json:
    """Return the payload with `clean` applied to the whole of it if it has an `error`, otherwise only to the `error`
    in `response` and in each of `choices`. `clean` must accept any JSON value."""
    if payload.get("error"):
        return dict(clean(payload))
    out = payload
    for key in ("response", "choices"):
        found = payload.get(key)
        inner = found if isinstance(found, list) else [found]
        if any(isinstance(each, dict) and each.get("error") for each in inner):
            made = [{**each, "error": clean(each.get("error"))} if isinstance(each, dict) else each for each in inner]
            out = {**out, key: made if isinstance(found, list) else made[0]}
    return out


def _parse_json(body: bytes, url: str, scrub: Any) -> Any:
    """Return the decoded JSON of a body; NaN and infinity are accepted. Raises `DecodeError` if it is not JSON, with
    the text of the error passed through `scrub`, which removes secrets."""
    said = body.decode("utf-8-sig", "replace")
    value = decode(said, _DEPTH)
    if isinstance(value, Undecodable):
        try:
            return json.loads(said)  # NaN and the like: not JSON, but readable
        except (ValueError, RecursionError):
            raise DecodeError(scrub(_not_json_message(url, said)), scrub(shorten_message(said))) from None
    return value


def _not_json_message(url: str, said: str) -> str:
    """Return the message for an answer that is not JSON, with its beginning."""
    shown = f"it begins {said[:80]!r}" if said.strip() else "it is empty"
    return f"the answer of {url} is not JSON: {shown}; is this the address of an API?"
