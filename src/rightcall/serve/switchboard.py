"""What all requests share: the servers, which of them is asked for which model, and what is kept between two requests.

board = Switchboard(settings)
await board.connect()
board.reach("qwen3")        the servers to ask for this model, in order
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec

from rightcall.api_names import Api
from rightcall.backends.request import Mode, Request
from rightcall.backends.request_plan import ModeChoice
from rightcall.constrain.grammars import Server
from rightcall.errors import BackendError
from rightcall.messages import HISTORY_PROFILES, KeptFields, SaneHistory, kept_of
from rightcall.parsing.options import Policy, ReasoningCalls, Rescue
from rightcall.providers.history_checks import HistoryProfile
from rightcall.providers.provider_answers import Stream
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.answer_flow import AnswerFlow
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.kept_answers import KeptAnswers
from rightcall.serve.proxy_settings import ModelSettings, ProxySettings
from rightcall.serve.proxy_watch import ProxyWatch
from rightcall.serve.upstream_body import mended_history
from rightcall.serve.upstream_link import UpstreamLink
from rightcall.serve.upstream_routes import routed
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Json, Tool

_KEPT_SECONDS = 3600.0  # of what a server wants back with its calls
_KEPT_BYTES = 16_000_000
_WITHOUT_IDS = ("ollama", "gemini")  # dialects whose clients need not send the ids of calls back
_ROUTES = 1000  # names of models whose way is remembered
# Which rules a history is put right by, for the kinds of server that are known; others take what OpenAI's does.
_HISTORIES = {"llama.cpp": "llama_cpp", "lmstudio": "llama_cpp", "vllm": "vllm", "sglang": "vllm", "ollama": "ollama"}


class ReadingRules(msgspec.Struct, frozen=True, kw_only=True):
    """How answers of one model are asked for and read."""

    mode: Mode
    format: str
    repair: Policy
    rescue: Rescue
    reasoning_calls: ReasoningCalls
    grammar: Server | None = None  # in whose form a grammar is sent, where that was said


class Reached:
    """A server, and a model of it."""

    def __init__(self, link: UpstreamLink, model: str, how: ReadingRules, lock: asyncio.Lock) -> None:
        self.link, self.model, self.how, self._lock = link, model, how, lock
        self.rules: HistoryProfile | None = None  # for histories, where it was found to insist on some

    async def choose(self, asked: Request) -> ModeChoice:
        """How tools are offered. Found out once for all requests that come together."""
        async with self._lock:
            choice = await self.link.backend.way(asked)
        return choice if self.how.grammar is None else _constrained(choice, self.how.grammar, self.link.api)

    def other_way(self, asked: Request, choice: ModeChoice, error: BackendError) -> ModeChoice | None:
        return self.link.backend.other_way(asked, choice, error)


class Switchboard:
    """Shared by all requests of one proxy, for as long as its settings hold."""

    def __init__(self, settings: ProxySettings, watch: ProxyWatch) -> None:
        self.settings, self.watch, self.has_key = settings, watch, settings.key is not None
        self.links = {link.name: link for link in [UpstreamLink(each, settings) for each in settings.upstream]}
        self._routes: dict[str, list[Reached]] = {}
        self._locks = {name: asyncio.Lock() for name in self.links}
        self.responses: KeptAnswers[list[Json]] = KeptAnswers(seconds=settings.store_seconds, most=settings.store_bytes)
        self.kept: KeptAnswers[KeptFields] = KeptAnswers(seconds=_KEPT_SECONDS, most=_KEPT_BYTES)

    async def connect(self) -> None:
        for link in self.links.values():
            await link.connect()
        _make_ready()

    def break_off(self) -> None:
        """Answers that are under way end with what has come."""
        for link in self.links.values():
            link.break_off()

    async def close(self) -> None:
        for link in self.links.values():
            await link.close()
        await self.watch.close()

    def reach(self, model: str) -> list[Reached]:
        """The servers to ask for this model, in order. Raises `RefusedRequest` if there is none."""
        if model not in self._routes:
            route = routed(self.settings, model)
            how = _rules(self.settings, route.settings)
            links = [self.links[each.name] for each in route.upstreams]
            if len(self._routes) >= _ROUTES:
                self._routes.clear()  # clients can ask for any name
            self._routes[model] = [Reached(link, route.model, how, self._locks[link.name]) for link in links]
        return self._routes[model]

    # -- conversations -------------------------------------------------------------------------------------------------

    def history(self, request: ClientRequest, reached: Reached, rules: HistoryProfile | None = None) -> SaneHistory:
        """The conversation as this server takes it: what went before put before it, and put right, by these `rules` if
        there are any."""
        if request.previous:
            before = self.responses.get(request.previous)
            if before is None:
                raise RefusedRequest(
                    f"the response {request.previous!r:.80} is not kept any more; send the whole conversation",
                    code="previous_response_not_found",
                )
            request = msgspec.structs.replace(request, messages=[*before, *request.messages])
        profile = rules or reached.rules or self._profile(request, reached.link)
        return mended_history(request, profile, kept=self._wanted(request))

    def _profile(self, request: ClientRequest, link: UpstreamLink) -> str | None:
        """By which rules; None for what every server of the client's own dialect takes."""
        known = link.backend.known
        if link.api == request.api and (known is None or request.api != "chat"):
            return None
        if known is None and link.reasons:  # what gives reasoning takes it back, and may insist on it
            return None
        name = known.name if known is not None else link.api
        return _HISTORIES.get(name, name if name in HISTORY_PROFILES else "openai")

    def _wanted(self, request: ClientRequest) -> dict[str, KeptFields]:
        """What is kept of the calls of a history, by their ids there."""
        found: dict[str, KeptFields] = {}
        for call in [call for message in request.messages for call in objects(message.get("tool_calls"))]:
            id = text(call.get("id"))
            kept = self.kept.get(id)
            if kept is None and request.api in _WITHOUT_IDS:
                function = obj(call.get("function")) or {}
                given = decode(text(function.get("arguments")), MAX_DEPTH)
                kept = self.kept.get(_looks(text(function.get("name")), given))
            if kept is not None:
                found[id] = kept
        return found

    def keep(self, request: ClientRequest, flow: AnswerFlow, history: Sequence[Json], upstream: str) -> None:
        """What may be wanted later of an answer that went out."""
        self.links[upstream].reasons |= bool(flow.reply.reasoning)
        by_id = kept_of(flow.reply)
        for call in flow.reply.attempts:
            kept = by_id.get(call.id)
            if kept is not None and (kept.message or kept.call):
                self.kept.put(call.id, kept)
                if request.api in _WITHOUT_IDS:
                    self.kept.put(_looks(call.name, call.arguments), kept)
        if request.api == "responses" and request.body.get("store") is not False:
            self.responses.put(flow.writer.head.id, [*history, flow.reply.message("chat")])


def _looks(name: str, arguments: object) -> str:
    """What a call is known by whose id a client does not send back."""
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


def _rules(settings: ProxySettings, own: ModelSettings) -> ReadingRules:
    return ReadingRules(
        mode=own.mode or settings.mode,
        format=own.format or settings.format,
        repair=own.repair or settings.repair,
        rescue=own.rescue or settings.rescue,
        reasoning_calls=own.reasoning_calls or settings.reasoning_calls,
        grammar=own.grammar,
    )


def _constrained(choice: ModeChoice, grammar: Server, api: Api) -> ModeChoice:
    """The same choice, where a grammar goes out in the form of this server."""
    profile = msgspec.structs.replace(choice.profile, grammar=grammar, grammar_apis=(api,))
    return msgspec.structs.replace(choice, profile=profile)


def _make_ready() -> None:
    """Reads an answer once: what is compiled on first use is compiled before the first client waits."""
    tools = [Tool(name="f", parameters={"type": "object", "properties": {"x": {"type": "string"}}})]
    stream = Stream("chat", tools=tools, live=True)
    stream.feed({"choices": [{"index": 0, "delta": {"content": '<tool_call>{"name": "f", "arguments": {"x": "a"}}'}}]})
    stream.close()
