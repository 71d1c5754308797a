"""One request answered: which server is asked, how often, and what the client gets.

    response = await Answering(board, asked, client).answer()

A request without tools goes through as it is where the server speaks the client's dialect. Any other answer is read,
put right and checked; one that cannot be settled is asked for again with what was wrong with it, as long as nothing of
it has reached the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.request import Request
from rightcall.backends.request_body import write_body, write_tool_fields
from rightcall.backends.request_plan import ModeChoice, RequestPlan, make_plan, without_named_choice
from rightcall.errors import BackendError, BodyError, DecodeError, TimedOut, TransportError, Unsupported
from rightcall.formats.spec import Envelope, Format
from rightcall.serve.answer_flow import AnswerFlow, AnswerReading
from rightcall.serve.answer_notes import note_answer, note_cut, raise_for_nothing, shown_reply
from rightcall.serve.answer_writer import AnswerHead, AnswerWriter
from rightcall.serve.answer_writers import WRITERS, encoded, new_answer_id
from rightcall.serve.client_answer import ClientAnswer
from rightcall.serve.client_ask import ClientAsk, UpstreamQuestion, with_query
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.exchanged import Exchanged
from rightcall.serve.flow_rules import flow_rules
from rightcall.serve.passed_streams import PassedStream, beginning, is_stream
from rightcall.serve.plain_requests import PlainRequest, plain_request
from rightcall.serve.refused_fields import without_fields
from rightcall.serve.request_bodies import body_of
from rightcall.serve.request_readers import read_request
from rightcall.serve.second_ways import SecondWays, leaves_out, upstream_question
from rightcall.serve.settling import Settled, guard_for, is_other, settle
from rightcall.serve.switchboard import Reached, Switchboard
from rightcall.serve.upstream_body import dropped_fields, same_dialect_body
from rightcall.serve.upstream_link import UpstreamAnswer, UpstreamLink, told_headers
from rightcall.serve.upstream_refusals import UpstreamRefusal, error_code, refusal_of, refused_with
from rightcall.serve.upstream_tape import UpstreamTape
from rightcall.types import Json

if TYPE_CHECKING:
    from aiohttp import web

MAX_WHOLE = 64_000_000  # bytes of an answer that is read whole
# A reader for answers in which nothing may be called: whatever looks like a call is text.
_PLAIN = Format(name="plain", body=Envelope(), call=("\ufdd0", "\ufdd1"))
COMPLETES: tuple[Api, ...] = ("completions", "chat", "responses")
_JSON, _SSE = "application/json", "text/event-stream"
_STREAM_KINDS = {api: writer.content_type for api, writer in WRITERS.items()} | {"completions": _SSE}
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json")


class Answering:
    """One request on its way."""

    def __init__(self, board: Switchboard, asked: ClientAsk, client: ClientAnswer, exchanged: Exchanged) -> None:
        self._board, self._asked, self._client, self._exchanged = board, asked, client, exchanged
        self._settings = board.settings
        self._read_request: ClientRequest | None = None
        self._known: AnswerWriter | None = None  # of the answer that is under way, once the server has said something
        self._sent: Json = {}  # what the server was last asked
        self._broke = False  # a connection, before anything of the answer went out
        self._until = asyncio.get_running_loop().time() + board.settings.retry_seconds

    @property
    def _request(self) -> ClientRequest:
        """What is asked for; read when it is needed."""
        if self._read_request is None:
            asked, exchanged = self._asked, self._exchanged
            request = read_request(asked.api, body_of(asked.raw), model=asked.model, stream=asked.stream)
            self._read_request = request
            exchanged.model, exchanged.stream = request.model, request.stream
            exchanged.tools = len(request.tools or ())
            exchanged.warnings += request.warnings
        return self._read_request

    async def answer(self) -> web.StreamResponse:
        """Raises `RefusedRequest` or a `BackendError` where there is no answer and nothing has gone out."""
        plain = plain_request(self._asked.raw, self._asked.api)
        model = self._asked.model or (plain.model if plain is not None else self._request.model)
        self._exchanged.model = model
        reached = self._board.reach(model)
        for at, each in enumerate(reached):
            self._exchanged.upstream, self._exchanged.upstream_api = each.link.name, each.link.api
            self._exchanged.upstream_model = each.model
            try:
                return await self._by(each, plain)
            except TransportError:
                if self._client.has_content or at == len(reached) - 1:
                    raise
                self._exchanged.failovers += 1
        raise AssertionError("a model has a server, or it was refused")

    async def _by(self, reached: Reached, plain: PlainRequest | None) -> web.StreamResponse:
        if self._asked.api == "completions":
            return await self._completed(reached)
        if plain is not None and reached.link.api == self._asked.api and not self._wants_array:
            stream = self._asked.stream if self._asked.stream is not None else bool(plain.stream)
            passed = await self._passed(reached, stream)
            if passed is not None:
                return passed
        return await self._judged(reached)

    async def _completed(self, reached: Reached) -> web.StreamResponse:
        """Text that goes on, which is nobody's to judge. Servers that speak Chat mostly have it too."""
        if reached.link.api not in COMPLETES:
            raise RefusedRequest("no server for this model speaks completions; use /v1/chat/completions")
        passed = await self._passed(reached, self._request.stream)
        if passed is None:
            raise DecodeError("the answer of the server is no stream of completions", "")
        return passed

    # -- through as it is ----------------------------------------------------------------------------------------------

    async def _passed(self, reached: Reached, stream: bool) -> web.StreamResponse | None:
        """The answer byte for byte, if it is of the kind that was asked for; None if it must be read after all."""
        link, asked, exchanged = reached.link, self._asked, self._exchanged
        body = asked.raw
        if link.refused or (reached.model != exchanged.model and not asked.model):
            given = without_fields(body_of(asked.raw), link.refused)
            body = encoded(given if asked.model else {**given, "model": reached.model})
        exchanged.mode, exchanged.stream = "pass", stream
        exchanged.tries += 1
        url = with_query(link.url(reached.model, stream=stream, api=asked.api), asked.query)
        if stream:
            self._client.wait(self._own_writer, _STREAM_KINDS[asked.api])
        async with self._opened(link, url, body, same=True) as (answer, tape):
            if not stream or not answer.is_ok:
                return await self._passed_whole(link, answer, tape)
            pieces = answer.pieces()
            async with aclosing(pieces):
                first = await beginning(pieces)
                if not is_stream(first, asked.api):
                    return None
                return await self._relayed(first, pieces, answer, tape)

    @asynccontextmanager
    async def _opened(
        self, link: UpstreamLink, url: str, body: bytes, *, same: bool
    ) -> AsyncIterator[tuple[UpstreamAnswer, UpstreamTape]]:
        """The server's answer to this body, and what keeps it for whoever watches."""
        tape = UpstreamTape(self._board.watch, self._exchanged, link, url, body)
        headers = link.headers(self._asked.headers, same=same, own_key=self._board.has_key)
        broken = ""
        try:
            async with link.opened(url, body, headers) as answer:
                tape.heard(answer)
                self._client.headers |= told_headers(answer.headers)
                yield answer, tape
        except BackendError as error:
            broken = str(error)
            raise
        finally:
            tape.over(broken)

    async def _passed_whole(
        self, link: UpstreamLink, answer: UpstreamAnswer, tape: UpstreamTape
    ) -> web.StreamResponse | None:
        if not (answer.is_ok or answer.is_error):
            raise await refusal_of(answer)
        data = await answer.whole(MAX_WHOLE + 1)
        tape.piece(data)
        if len(data) > MAX_WHOLE:
            raise BodyError(f"the answer of the server is larger than {MAX_WHOLE:,} bytes")
        if answer.is_ok and not data.lstrip().startswith(b"{"):
            return None
        if answer.is_error and self._asked.api != "completions":
            self._sent = body_of(self._asked.raw)
            if leaves_out(link, refused_with(answer, data), self._sent, self._exchanged):
                return None
        if self._client.has_begun:  # the head could not wait for this status
            raise refused_with(answer, data)
        return await self._client.respond(answer.status, data, answer.headers.get("content-type", _JSON))

    async def _relayed(
        self, first: bytes, pieces: AsyncIterator[bytes], answer: UpstreamAnswer, tape: UpstreamTape
    ) -> web.StreamResponse:
        stream, client, kind = PassedStream(self._asked.api), self._client, answer.kind
        client.wait(self._own_writer, kind if kind in _STREAMS else _STREAM_KINDS[self._asked.api])
        self._exchanged.note_upstream_first_byte()
        tape.piece(first)
        await client.send(stream.pass_on(first), is_last=answer.is_read)
        try:
            async for piece in pieces:
                tape.piece(piece)
                await client.send(stream.pass_on(piece), is_last=answer.is_read)
        except BackendError as error:
            self._exchanged.error = error_code(error)
            if not stream.has_begun:
                raise
        self._exchanged.finish = "stop" if stream.is_whole else "length"
        await client.send(stream.ending(), is_last=True)
        return await client.end()

    # -- read and judged -----------------------------------------------------------------------------------------------

    async def _judged(self, reached: Reached) -> web.StreamResponse:
        request, exchanged = self._request, self._exchanged
        if request.choices > 1:  # of which only one would be judged, and so only one may be given
            raise RefusedRequest(
                f"{request.choices} answers to one request are not read here; ask for one, and as often as you want",
                code="unsupported_n",
            )
        history = self._board.history(request, reached)
        messages = history.messages
        question = upstream_question(request, reached, history)
        asked = question.asked
        exchanged.warnings += dropped_fields(request, reached.link.api)
        choice = await reached.choose(asked)
        guard = guard_for(self._settings.guard, request)
        while True:
            flow, question = await self._persistent(reached, question, choice)
            note_answer(exchanged, flow)
            note_cut(exchanged, request, len(self._asked.raw))
            settled = settle(flow, request, messages, asked.toolset, guard, self._settings.give_up)
            exchanged.guard += settled.guard
            if not (settled.again and self._may_ask_again()):
                return await self._finish(flow, settled, messages)
            exchanged.retries += 1
            if is_other(flow, choice, request.choice):
                choice = without_named_choice(choice)
                continue
            # Some servers lose in streams what their whole answers have, so the last try is for one of these.
            stream = question.stream and not (flow.refused and exchanged.retries == self._settings.max_retries)
            question = msgspec.structs.replace(question, again=(*question.again, *settled.again), stream=stream)

    def _may_ask_again(self) -> bool:
        in_time = asyncio.get_running_loop().time() < self._until
        return in_time and self._exchanged.retries < self._settings.max_retries and not self._client.has_content

    async def _persistent(
        self, reached: Reached, question: UpstreamQuestion, choice: ModeChoice
    ) -> tuple[AnswerFlow, UpstreamQuestion]:
        """An answer, by the way that works, and what was asked: what the server refuses is given up for the next way; a
        connection that breaks before anything went out is made again, once."""
        ways = SecondWays(self._board, self._request, reached, self._exchanged)
        while True:
            try:
                flow = await self._once(reached, question, choice)
                ways.worked()
                return flow, question
            except (UpstreamRefusal, Unsupported) as error:
                if self._client.has_content:
                    raise
                question, choice = ways.after(error, question, choice, self._sent)
            except BodyError:
                if self._broke or self._client.has_content or not self._may_ask_again():
                    raise
                self._broke = True

    async def _once(self, reached: Reached, question: UpstreamQuestion, choice: ModeChoice) -> AnswerFlow:
        """One answer of the server, read to its end."""
        link, request, asked = reached.link, self._request, question.asked
        said = asked
        if question.again:
            said = msgspec.structs.replace(asked, messages=[*asked.messages, *question.again])
        plan = make_plan(said, choice, link.api, reached.model, stream=question.stream)
        same = self._is_same(reached, plan)
        if same:
            body = same_dialect_body(
                request,
                model=reached.model,
                stream=question.stream,
                messages=question.changed,
                appended=question.again,
                tools=write_tool_fields(plan) if plan.is_narrowed else None,
            )
        else:
            body = write_body(plan)
        body = self._sent = without_fields(body, link.refused)
        exchanged = self._exchanged
        exchanged.mode, exchanged.why = choice.mode, choice.evidence
        exchanged.tries += 1
        reading = AnswerReading(api=link.api, naming=plan.naming, options=self._reading(reached, asked, plan))
        self._known = None
        flow = AnswerFlow(reading, self._named_writer, flow_rules(request, self._settings, same=same))
        url = link.url(reached.model, stream=question.stream)
        url = with_query(url, self._asked.query) if same else url
        if request.stream and not self._client.is_stream:
            self._client.wait(self._own_writer, _JSON if self._wants_array else _STREAM_KINDS[request.api])
        async with self._opened(link, url, encoded(body), same=same) as (answer, tape):
            if not answer.is_ok:
                raise await refusal_of(answer)
            await self._read(answer, flow, tape)
        return flow

    def _is_same(self, reached: Reached, plan: RequestPlan) -> bool:
        """May the client's own body go up, and the server's own answer come down?"""
        request, link = self._request, reached.link
        if link.api != request.api or plan.mode != "native" or plan.naming.has_renames or request.previous:
            return False
        kinds = {each.kind for each in request.tools or ()}
        return kinds <= {"function"} or (
            plan.profile.name in ("openai", "anthropic") and "namespace" not in kinds  # its calls have two names
        )

    async def _read(self, answer: UpstreamAnswer, flow: AnswerFlow, tape: UpstreamTape) -> None:
        client, broken = self._client, ""
        try:
            async with aclosing(answer.pieces()) as pieces:
                async for piece in pieces:
                    if self._exchanged.upstream_first_byte is None:
                        self._exchanged.note_upstream_first_byte()
                    tape.piece(piece)
                    await client.send(flow.feed(piece), is_last=answer.is_read)
        except (BodyError, TimedOut) as error:
            self._exchanged.error = error_code(error)
            if not (flow.begun or flow.facts.ended or self._broke):
                raise
            broken = str(error)  # what has come is better than nothing
        await client.send(flow.end(broken=bool(broken)), is_last=True)
        if not flow.begun:
            raise_for_nothing(flow, answer, broken)

    def _reading(self, reached: Reached, asked: Request, plan: RequestPlan) -> dict[str, Any]:
        if not self._request.tools or self._request.choice == "none":
            return {"tools": (), "choice": "none", "format": _PLAIN, "rescue": "off", "reasoning": "off"}
        how = reached.how
        return {
            "tools": plan.allowed,
            "choice": asked.choice,
            "format": plan.format if plan.mode != "native" else how.format,
            "repair": how.repair,
            "rescue": how.rescue,
            "reasoning_calls": how.reasoning_calls,
            "ids": asked.ids,
        }

    def _writer(self, first: Json) -> AnswerWriter:
        """The writer of an answer that begins with this payload of the server."""
        request = self._request
        given = first.get("id") if request.api == "chat" else None
        created = first.get("created")
        head = AnswerHead(
            id=given if isinstance(given, str) and given else new_answer_id(request.api),
            model=request.model,
            created=created if type(created) is int else int(self._exchanged.began),
            request=request,
            as_array=self._wants_array,
        )
        return WRITERS["chat" if request.api == "completions" else request.api](head)

    def _named_writer(self, first: Json) -> AnswerWriter:
        self._known = self._writer(first)
        return self._known

    @property
    def _wants_array(self) -> bool:
        """A Gemini stream as one JSON array: servers are asked for events."""
        asked = self._asked
        return asked.api == "gemini" and asked.stream is True and "alt=sse" not in asked.query.split("&")

    def _own_writer(self) -> AnswerWriter:
        """The writer of the answer that is under way, if there is one."""
        return self._writer({}) if self._known is None else self._known

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _finish(self, flow: AnswerFlow, settled: Settled, messages: list[Json]) -> web.StreamResponse:
        exchanged, request = self._exchanged, self._request
        if settled.passed or flow.passed_live:
            exchanged.gave_up = "pass"
        if settled.wrong:
            exchanged.gave_up = "error"
            if not self._client.has_begun and not flow.begun:
                raise RefusedRequest(settled.wrong, status=400, code="invalid_tool_call")
        for call in () if flow.is_spoiled else settled.calls:
            flow.send(call)
        exchanged.calls, exchanged.finish = len(flow.sent), flow.how_ended()
        if exchanged.content is not None:
            exchanged.content.answered = flow.reply
        self._board.keep(request, flow, messages, exchanged.upstream)
        if request.stream:
            spoiled = flow.writer.error(flow.error, "invalid_tool_call") if flow.is_spoiled else b""
            await self._client.send(spoiled or flow.finish(exchanged.finish), is_last=True)
            return await self._client.end()
        reply = shown_reply(flow)
        given = flow.raw if flow.is_same else None
        body = flow.writer.whole(reply, flow.ending(exchanged.finish), given)
        return await self._client.respond(200, encoded(body))
