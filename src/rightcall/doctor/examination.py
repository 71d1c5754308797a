"""The examination of a server: send all questions in every dialect, and judge the answers.

    diagnosis = await examine("http://127.0.0.1:8080", ExamSettings(model="m"))
    diagnose("http://127.0.0.1:8080", model="m").check()          the same without an event loop

`diagnose_server` can repeat the questions through the proxy that the diagnosis recommends: it runs in this process, on
a free port, with the flags of the command that is shown. The number of requests, their time and their size are limited.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from rightcall.api_names import Api
from rightcall.backends.address import check_api
from rightcall.backends.base import LoopThread
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.doctor.diagnosis import Diagnosis, ProbeResult, SpokenDialect, upstream
from rightcall.doctor.judges import PATIENCE, ProbedCase
from rightcall.doctor.probes import PROBES, ProbeResults, describe_odd_answer, describe_odd_status, rejection_message
from rightcall.doctor.questions import BARE, QUESTIONS, Sending, ServerQuestion, Way, follow_up, question_body
from rightcall.doctor.server_answers import (
    RawAnswer,
    ServerConnection,
    StrictClientAnswer,
    find_rule_violations,
    parse_answer,
)
from rightcall.errors import BackendError
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.serve.proxy_settings import ProxySettings

DIALECTS: tuple[Api, ...] = ("chat", "responses", "messages", "ollama", "gemini", "completions")
_NO_SUCH_ADDRESS = (404, 405, 501)
_ABOUT_THE_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)
_ABOUT_TEMPERATURE = re.compile(r"temperature", re.IGNORECASE)
_ABOUT_LIMIT = re.compile(r"max_completion_tokens", re.IGNORECASE)
_MAX_TIMEOUTS = 4  # consecutive requests out of time, after which a dialect is abandoned
_PROFILE_SECONDS = 5.0  # for the requests that identify the server
Watch = Callable[[int, int], None]


class ExamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to examine a server.

    - `model`: the model; if empty, the first that the server lists.
    - `apis`: the dialects to try; empty for all.
    - `n`: how often each question is sent; those whose answer does not depend on chance are sent once.
    - `max_requests`: the maximum number of requests.
    - `seconds`: the time limit of one request.
    - `patience`: seconds of silence that clients tolerate in a stream.
    - `concurrency`: how many requests are sent at the same time.
    - `api_key_env`: the variable that holds the key; None: OPENAI_API_KEY and the like.
    """

    model: str = ""
    apis: tuple[Api, ...] = ()
    n: int = 1
    max_requests: int = 500
    seconds: float = 60.0
    patience: float = PATIENCE
    concurrency: int = 4
    api_key_env: str | None = None


async def examine(url: str, settings: ExamSettings, watch: Watch | None = None) -> Diagnosis:
    """Examine the server at `url` and return the diagnosis.

    `watch` is called after each request with the numbers of sent and of planned requests. Raises `CallerError` for an
    invalid address or key, and never because of what the server does."""
    start = time.monotonic()
    backend = _make_identifying_backend(url, settings)
    async with backend:
        kind, model = await _identify_server(backend, settings.model)
    examination = _Examination(url, msgspec.structs.replace(settings, model=model), watch)
    dialects, results = await examination.run()
    return Diagnosis(
        url=url,
        model=model,
        kind=kind,
        dialects=tuple(dialects),
        results=tuple(results),
        requests=examination.requests,
        seconds=time.monotonic() - start,
        skipped=examination.skipped,
    )


def _make_identifying_backend(url: str, settings: ExamSettings) -> Backend:
    """Return a backend for requests that identify the server at `url`: short timeouts, no retries."""
    limits = Timeouts(
        connect=_PROFILE_SECONDS, first_byte=_PROFILE_SECONDS, idle=_PROFILE_SECONDS, total=_PROFILE_SECONDS
    )
    return Backend(url, api_key_env=settings.api_key_env, timeouts=limits, retries=Retries(most=0))


async def _identify_server(backend: Backend, model: str) -> tuple[str, str]:
    """Return the type of the server, and `model` if it is given, else the first model that the server lists. Each is ""
    if it is unknown, also if requests fail."""
    try:
        profile, _ = await backend.profile()
    except BackendError:
        return "", model
    kind = "" if profile is None else profile.title
    if model:
        return kind, model
    try:
        return kind, next(iter(await backend.models()), "")
    except BackendError:
        return kind, ""


class _Examination:
    """The requests of one examination, their answers and results, with a connection for each dialect to try. Raises
    `CallerError` for an invalid address or key."""

    def __init__(self, url: str, settings: ExamSettings, watch: Watch | None) -> None:
        self._settings, self._watch = settings, watch
        named = settings.apis or DIALECTS
        self._connections = {
            api: ServerConnection(url, api, api_key_env=settings.api_key_env, seconds=settings.seconds) for api in named
        }
        self._sending = dict.fromkeys(self._connections, Sending())
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._timeouts = dict.fromkeys(self._connections, 0)  # consecutive requests out of time
        self.requests = self.skipped = self._planned = 0

    async def run(self) -> tuple[list[SpokenDialect], list[ProbeResult]]:
        """Try all dialects, ask and judge the questions of those that the server has, and return both: whether it has
        each dialect, and the results of all probes. The connections are closed, also after an exception."""
        for connection in self._connections.values():
            connection.keep()
        try:
            dialects = await asyncio.gather(*[self._try_dialect(api) for api in self._connections])
            spoken = [each.api for each in dialects if each.spoken]
            self._planned = self.requests + sum([len(self._plan_requests(api)) for api in spoken])
            judged = await asyncio.gather(*[self._examine_dialect(api) for api in spoken])
        finally:
            for connection in self._connections.values():
                await connection.aclose()
        return list(dialects), [each for results in judged for each in results]

    # -- dialects ------------------------------------------------------------------------------------------------------

    async def _try_dialect(self, api: Api) -> SpokenDialect:
        """Send a greeting in one dialect, again with a rejected field renamed or left out, until that changes nothing;
        later requests are sent likewise. Return whether the server has the dialect, and if not, why."""
        while True:
            case = await self._ask(BARE, api, "whole")
            if case is None:
                return SpokenDialect(
                    api=api, spoken=False, says="the budget of requests is spent; allow more (--max-requests)"
                )
            message = rejection_message(case.raw.body) if case.raw.is_refused else ""
            wanted = _adapt_sending(self._sending[api], message)
            if wanted == self._sending[api]:
                spoken, says = _check_dialect(case, message, named=api in self._settings.apis)
                return SpokenDialect(api=api, spoken=spoken, says=self._connections[api].scrubber.text(says))
            self._sending[api] = wanted

    # -- asking --------------------------------------------------------------------------------------------------------

    def _plan_requests(self, api: Api) -> list[tuple[ServerQuestion, Way, int]]:
        """Return the requests for all questions of this dialect: each question in each of its modes (whole or
        streamed), with the number of the repetition, `n` times or once."""
        return [
            (question, way, number)
            for question in QUESTIONS.values()
            if api in question.apis
            for way in question.ways
            for number in range(1 if question.once else self._settings.n)
        ]

    async def _examine_dialect(self, api: Api) -> list[ProbeResult]:
        """Send all questions of a dialect, first those that stand alone, then those that follow an answer, and return
        the results of all probes."""
        requests = self._plan_requests(api)
        first = [each for each in requests if not each[0].follows]
        cases = await self._ask_all(api, first, {})
        cases |= await self._ask_all(api, [each for each in requests if each[0].follows], cases)
        return list(self._judge_cases(api, cases))

    async def _ask_all(
        self, api: Api, asked: Iterable[tuple[ServerQuestion, Way, int]], before: dict[tuple[str, Way, int], ProbedCase]
    ) -> dict[tuple[str, Way, int], ProbedCase]:
        """Send the questions `asked`, each with its mode and number, concurrently; `before` are the cases whose answers
        they may follow. Return the new cases by question name, mode and number, without questions that were not
        sent."""
        asked = list(asked)
        plain = {number: case for (name, way, number), case in before.items() if (name, way) == ("plain", "whole")}
        made = await asyncio.gather(*[self._ask(question, api, way, plain.get(at)) for question, way, at in asked])
        keys = [(question.name, way, at) for question, way, at in asked]
        return {key: case for key, case in zip(keys, made, strict=True) if case is not None}

    async def _ask(
        self, question: ServerQuestion, api: Api, way: Way, plain: ProbedCase | None = None
    ) -> ProbedCase | None:
        """Send one question, pass the counts to the watch, and return the case. None if it is not sent: the case
        `plain`, whose answer it follows, is missing or unsuitable; or, counted in `skipped`, the budget is spent or too
        many requests in a row ran out of time."""
        connection, stream = self._connections[api], way == "streamed"
        body = question_body(question, api, self._settings.model, stream=stream, sending=self._sending[api])
        if question.follows:
            followed = follow_up_body(question, api, body, plain)
            if followed is None:
                return None
            body = followed
        async with self._slots:
            if self.requests >= self._settings.max_requests or self._timeouts[api] >= _MAX_TIMEOUTS:
                self.skipped += 1
                return None
            self.requests += 1
            raw = await connection.ask(body, self._settings.model, stream=stream)
        self._timeouts[api] = self._timeouts[api] + 1 if raw.broke and raw.seconds >= self._settings.seconds else 0
        if self._watch is not None:
            self._watch(self.requests, max(self._planned, self.requests))
        found = case_of(question, api, way, body, raw)
        return msgspec.structs.replace(found, patience=self._settings.patience)

    # -- judging -------------------------------------------------------------------------------------------------------

    def _judge_cases(self, api: Api, cases: dict[tuple[str, Way, int], ProbedCase]) -> Iterable[ProbeResult]:
        """Yield the result of each probe in each mode for which there are cases, which are given by question name, mode
        and number of repetition."""
        results = ProbeResults(self._connections[api].scrubber)
        for probe in PROBES.values():
            for way in probe.ways:
                mine = [
                    msgspec.structs.replace(case, others=_cases_of_round(cases, number))
                    for (name, its_way, number), case in cases.items()
                    if (name, its_way) == (probe.question, way)
                ]
                if mine:
                    yield results.result_of(probe, mine)


def _adapt_sending(sending: Sending, message: str) -> Sending:
    """Return `sending` changed for a server that rejected a request with this message: it uses `max_completion_tokens`,
    or sends no temperature, if the message names that field; else unchanged."""
    if _ABOUT_LIMIT.search(message):
        return msgspec.structs.replace(sending, max_tokens="max_completion_tokens")
    if _ABOUT_TEMPERATURE.search(message):
        return msgspec.structs.replace(sending, temperature=None)
    return sending


def _cases_of_round(cases: dict[tuple[str, Way, int], ProbedCase], number: int) -> dict[tuple[str, Way], ProbedCase]:
    """Return the cases of repetition `number` by question name and mode; for questions without such a case, those of
    the first repetition."""
    first = {(name, way): case for (name, way, at), case in cases.items() if at == 0}
    return first | {(name, way): case for (name, way, at), case in cases.items() if at == number}


def follow_up_body(question: ServerQuestion, api: Api, body: Json, plain: ProbedCase | None) -> Json | None:
    """Return the body of a question that continues the conversation of `body` after the answer in `plain`, with that
    answer's reasoning or without, as the question asks.

    None if that answer is missing or failed, has no call, or has no reasoning that could be dropped."""
    if plain is None or not plain.raw.is_ok or not plain.answer.calls:
        return None
    kept = follow_up(body, api, plain.answer, reasoning=True)
    if question.follows == "kept":
        return kept
    dropped = follow_up(body, api, plain.answer, reasoning=False)
    return dropped if dropped != kept else None


def case_of(question: ServerQuestion, api: Api, way: Way, body: Json, raw: RawAnswer) -> ProbedCase:
    """Return the case of a question and its response, with the answer parsed, and checked against the rules of the
    dialect if the status is a success. An incomplete response is not parsed: `is_json` of its answer is False."""
    stream = way == "streamed"
    wire, answer = [], StrictClientAnswer(is_json=False)
    if not raw.broke:
        answer = parse_answer(raw, api, stream=stream)
        wire = find_rule_violations(raw, api, stream=stream) if raw.is_ok else []
    return ProbedCase(api=api, way=way, question=question, body=body, raw=raw, answer=answer, violations=tuple(wire))


def _check_dialect(case: ProbedCase, message: str, *, named: bool) -> tuple[bool, str]:
    """Return whether the response to a greeting shows that the server has this dialect, and what is wrong with the
    response ("" if nothing). `message` is the server's message if it rejected the greeting.

    A dialect that the user `named` counts as there in spite of a wrong response, unless nothing answers, or the status
    is a redirect, 401, 403, 404, 405 or 501."""
    raw, answer = case.raw, case.answer
    if raw.broke in ("unreachable", "late"):
        return False, raw.says
    if raw.is_refused:
        there = raw.status not in _NO_SUCH_ADDRESS
        if not there and not _ABOUT_THE_MODEL.search(message):
            return False, f"no such address (status {raw.status})"
        return named and there and raw.status not in (401, 403), f"status {raw.status}: {message}"
    if not 200 <= raw.status < 300:
        return False, describe_odd_status(raw)
    if raw.broke:
        return named, raw.says
    if answer.error:
        return named, f"an error in place of an answer: {answer.error[:200]}"
    if not (answer.finish or answer.text or answer.reasoning):
        return named, describe_odd_answer(raw)
    return True, ""


_SERVE_PREFIX = "RIGHTCALL_SERVE_"


async def examine_through(direct: Diagnosis, settings: ExamSettings, watch: Watch | None = None) -> Diagnosis:
    """Examine a server through a proxy in this process, in each dialect that the `direct` diagnosis found, and return
    the diagnosis. All dialects share a new budget of requests. Raises as `examine`."""
    from rightcall.serve.proxy import Proxy

    start = time.monotonic()
    remaining = settings.max_requests
    found: list[Diagnosis] = []
    for api in direct.spoken:
        mine = msgspec.structs.replace(settings, apis=(api,), model=direct.model, max_requests=remaining)
        async with Proxy(proxy_settings(direct, api, settings)) as proxy:
            found.append(await examine(proxy.address, mine, watch))
        remaining = max(0, remaining - found[-1].requests)
    return Diagnosis(
        url=direct.url,
        model=direct.model,
        kind="rightcall",
        dialects=tuple([each for part in found for each in part.dialects]),
        results=tuple([each for part in found for each in part.results]),
        requests=sum([each.requests for each in found]),
        seconds=time.monotonic() - start,
        skipped=sum([each.skipped for each in found]),
    )


def proxy_settings(direct: Diagnosis, api: Api, settings: ExamSettings) -> ProxySettings:
    """Return the settings of a proxy in front of the examined server for this dialect, on a free port, with the flags
    that cure the faults of the `direct` diagnosis. Variables of the environment that configure a proxy are ignored."""
    from rightcall.serve.settings_source import source_of, upstream_key

    environ = {name: value for name, value in os.environ.items() if not name.startswith(_SERVE_PREFIX)}
    flags = {name.removeprefix("--").replace("-", "_"): value for name, value in direct.cure_flags(api).items()}
    source = source_of({"upstream": [upstream(direct.url, api)], "port": "0", **flags}, environ=environ)
    made = source.read()
    if settings.api_key_env is None:
        return made
    server = msgspec.structs.replace(made.upstream[0], api_key_env=settings.api_key_env)
    keyed = msgspec.structs.replace(server, key=upstream_key(server, environ))
    return msgspec.structs.replace(made, upstream=(keyed,))


def diagnose(
    url: str,
    *,
    model: str = "",
    apis: Sequence[str] = (),
    n: int = 1,
    max_requests: int = 500,
    timeout: float = 60.0,
    patience: float = PATIENCE,
    concurrency: int = 4,
    api_key_env: str | None = None,
    through: bool = False,
) -> Diagnosis:
    """Examine a server with the requests of real clients, in every dialect that it has, and return what is wrong.
    Raises `CallerError` for an invalid address or key, and never because of what the server does; the `check` of the
    diagnosis raises an AssertionError that lists the faults.

    - `url`: the address of the server, with or without `/v1`.
    - `model`: the model; if empty, the first that the server lists.
    - `apis`: the dialects to try (`chat`, `responses`, `messages`, `ollama`, `gemini`, `completions`); all if empty.
    - `n`: how often each question is sent; those whose answer does not depend on chance are sent once.
    - `max_requests`: the maximum number of requests.
    - `timeout`: the time limit of one request, in seconds.
    - `patience`: seconds of silence that clients tolerate in a stream.
    - `concurrency`: how many requests are sent at the same time.
    - `api_key_env`: the environment variable with the API key; None: OPENAI_API_KEY and the like.
    - `through`: also examine the server through the proxy; the result is `Diagnosis.through`.
    """
    settings = ExamSettings(
        model=model,
        apis=tuple([check_api(api) for api in apis]),
        n=n,
        max_requests=max_requests,
        seconds=timeout,
        patience=patience,
        concurrency=concurrency,
        api_key_env=api_key_env,
    )
    with LoopThread() as loop:
        return loop.run(diagnose_server(url, settings, through=through))


def _unwatched(what: str) -> AbstractContextManager[Watch | None]:
    return nullcontext()


async def diagnose_server(
    url: str,
    settings: ExamSettings,
    *,
    through: bool,
    watching: Callable[[str], AbstractContextManager[Watch | None]] = _unwatched,
) -> Diagnosis:
    """Examine a server, and with `through` once more through the proxy, and return the diagnosis. Raises `CallerError`
    for an invalid address or key, and never because of what the server does.

    `watching` is called with the title of each round and returns a context manager that gives its `Watch`."""
    with watching("asking") as watch:
        found = await examine(url, settings, watch)
    if not through:
        return found
    with watching("through the proxy") as watch:
        return msgspec.structs.replace(found, through=await examine_through(found, settings, watch))
