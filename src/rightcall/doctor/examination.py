"""Asks a server all questions, in every dialect that it speaks, and lets the probes judge what came back.

    diagnosis = await examine("http://127.0.0.1:8080", ExamSettings(model="m"))

The number of requests, their time and their size are bounded, whatever the server does.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable

import msgspec

from rightcall.api_names import Api
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.doctor.diagnosis import Diagnosis, ProbeResult, SpokenDialect
from rightcall.doctor.judging import PATIENCE, ProbedCase
from rightcall.doctor.probes import PROBES
from rightcall.doctor.question_bodies import Sending, body_of, going_on
from rightcall.doctor.questions import BARE, QUESTIONS, ServerQuestion, Way
from rightcall.doctor.raw_answer import RawAnswer, ServerLine
from rightcall.doctor.seen_answer import SeenAnswer, see
from rightcall.doctor.verdicts import ProbeResults, odd_answer, odd_status, refusal_words
from rightcall.doctor.wire_faults import wire_faults
from rightcall.errors import BackendError
from rightcall.types import Json

DIALECTS: tuple[Api, ...] = ("chat", "responses", "messages", "ollama", "gemini", "completions")
_NOT_THERE = (404, 405, 501)
_ABOUT_THE_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)
_ABOUT_TEMPERATURE = re.compile(r"temperature", re.IGNORECASE)
_ABOUT_LIMIT = re.compile(r"max_completion_tokens", re.IGNORECASE)
_PATIENT = 4  # requests that run out of time, one after the other: then the dialect is given up
_PATIENCE = 5.0  # seconds for what a server says of itself
Watch = Callable[[int, int], None]


class ExamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is examined.

    - `model`: the model to ask; the first that the server lists, if none is named.
    - `apis`: the dialects to try; empty for all.
    - `n`: how often each question is asked, but for those whose answer does not depend on chance.
    - `max_requests`: no more are sent; nor in a dialect in which several in a row ran out of time.
    - `seconds`: the limit for one request.
    - `patience`: seconds of silence after which clients give a stream up.
    - `concurrency`: requests at the same time.
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
    """Raises `CallerError` for an address or a key that cannot be; never for what the server does. `watch` is told how
    many requests are done, of how many."""
    begun = time.monotonic()
    backend = _backend(url, settings)
    async with backend:
        kind, model = await _told(backend, settings.model)
    round_ = _Rounds(url, msgspec.structs.replace(settings, model=model), watch)
    dialects, results = await round_.run()
    return Diagnosis(
        url=url,
        model=model,
        kind=kind,
        dialects=tuple(dialects),
        results=tuple(results),
        requests=round_.requests,
        seconds=time.monotonic() - begun,
        skipped=round_.skipped,
    )


def _backend(url: str, settings: ExamSettings) -> Backend:
    limits = Timeouts(connect=_PATIENCE, first_byte=_PATIENCE, idle=_PATIENCE, total=_PATIENCE)
    return Backend(url, api_key_env=settings.api_key_env, timeouts=limits, retries=Retries(most=0))


async def _told(backend: Backend, model: str) -> tuple[str, str]:
    """What the server says of itself: its kind, and the first of its models if none was named."""
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


class _Rounds:
    """The requests to one server."""

    def __init__(self, url: str, settings: ExamSettings, watch: Watch | None) -> None:
        self._settings, self._watch = settings, watch
        named = settings.apis or DIALECTS
        self._lines = {
            api: ServerLine(url, api, api_key_env=settings.api_key_env, seconds=settings.seconds) for api in named
        }
        self._sending = dict.fromkeys(self._lines, Sending())
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._in_vain = dict.fromkeys(self._lines, 0)  # requests in a row that did not end
        self.requests = self.skipped = self._planned = 0

    async def run(self) -> tuple[list[SpokenDialect], list[ProbeResult]]:
        for line in self._lines.values():
            line.keep()
        try:
            dialects = await asyncio.gather(*[self._tried(api) for api in self._lines])
            spoken = [each.api for each in dialects if each.spoken]
            self._planned = self.requests + sum([len(self._asked(api)) for api in spoken])
            judged = await asyncio.gather(*[self._examined(api) for api in spoken])
        finally:
            for line in self._lines.values():
                await line.aclose()
        return list(dialects), [each for results in judged for each in results]

    # -- which dialects ------------------------------------------------------------------------------------------------

    async def _tried(self, api: Api) -> SpokenDialect:
        """Is there an answer in this dialect? A server that does not take a temperature gets none."""
        while True:
            case = await self._ask(BARE, api, "whole")
            if case is None:
                return SpokenDialect(api=api, spoken=False, says="the budget of requests is spent")
            words = refusal_words(case.raw.body) if case.raw.is_refused else ""
            wanted = _wanted(self._sending[api], words)
            if wanted == self._sending[api]:
                spoken, says = _is_spoken(case, words, named=api in self._settings.apis)
                return SpokenDialect(api=api, spoken=spoken, says=self._lines[api].scrubber.text(says))
            self._sending[api] = wanted

    # -- asking --------------------------------------------------------------------------------------------------------

    def _asked(self, api: Api) -> list[tuple[ServerQuestion, Way, int]]:
        """Every question of this dialect, each way, as often as it is to be asked."""
        return [
            (question, way, number)
            for question in QUESTIONS.values()
            if api in question.apis
            for way in question.ways
            for number in range(1 if question.once else self._settings.n)
        ]

    async def _examined(self, api: Api) -> list[ProbeResult]:
        asked = self._asked(api)
        first = [each for each in asked if not each[0].follows]
        cases = await self._round(api, first, {})
        cases |= await self._round(api, [each for each in asked if each[0].follows], cases)
        return list(self._judged(api, cases))

    async def _round(
        self, api: Api, asked: Iterable[tuple[ServerQuestion, Way, int]], before: dict[tuple[str, Way, int], ProbedCase]
    ) -> dict[tuple[str, Way, int], ProbedCase]:
        asked = list(asked)
        plain = {number: case for (name, way, number), case in before.items() if (name, way) == ("plain", "whole")}
        made = await asyncio.gather(*[self._ask(question, api, way, plain.get(at)) for question, way, at in asked])
        keys = [(question.name, way, at) for question, way, at in asked]
        return {key: case for key, case in zip(keys, made, strict=True) if case is not None}

    async def _ask(
        self, question: ServerQuestion, api: Api, way: Way, plain: ProbedCase | None = None
    ) -> ProbedCase | None:
        """None where there is nothing to go on from, or the budget is spent."""
        line, stream = self._lines[api], way == "streamed"
        body = body_of(question, api, self._settings.model, stream=stream, sending=self._sending[api])
        if question.follows:
            followed = going_on_from(question, api, body, plain)
            if followed is None:
                return None
            body = followed
        async with self._slots:
            if self.requests >= self._settings.max_requests or self._in_vain[api] >= _PATIENT:
                self.skipped += 1
                return None
            self.requests += 1
            raw = await line.ask(body, self._settings.model, stream=stream)
        self._in_vain[api] = self._in_vain[api] + 1 if raw.broke and raw.seconds >= self._settings.seconds else 0
        if self._watch is not None:
            self._watch(self.requests, max(self._planned, self.requests))
        found = case_of(question, api, way, body, raw)
        return msgspec.structs.replace(found, patience=self._settings.patience)

    # -- judging -------------------------------------------------------------------------------------------------------

    def _judged(self, api: Api, cases: dict[tuple[str, Way, int], ProbedCase]) -> Iterable[ProbeResult]:
        results = ProbeResults(self._lines[api].scrubber)
        for probe in PROBES.values():
            for way in probe.ways:
                mine = [
                    msgspec.structs.replace(case, others=_others(cases, number))
                    for (name, its_way, number), case in cases.items()
                    if (name, its_way) == (probe.question, way)
                ]
                if mine:
                    yield results.of(probe, mine)


def _wanted(sending: Sending, refused: str) -> Sending:
    """How a server wants its requests that refused one with these words."""
    if _ABOUT_LIMIT.search(refused):
        return msgspec.structs.replace(sending, max_tokens="max_completion_tokens")
    if _ABOUT_TEMPERATURE.search(refused):
        return msgspec.structs.replace(sending, temperature=None)
    return sending


def _others(cases: dict[tuple[str, Way, int], ProbedCase], number: int) -> dict[tuple[str, Way], ProbedCase]:
    """The cases of the same round; of questions that are asked once, that one."""
    first = {(name, way): case for (name, way, at), case in cases.items() if at == 0}
    return first | {(name, way): case for (name, way, at), case in cases.items() if at == number}


def going_on_from(question: ServerQuestion, api: Api, body: Json, plain: ProbedCase | None) -> Json | None:
    """The next request after the answer to `plain`; None where no call came, or there is no reasoning to drop."""
    if plain is None or not plain.raw.is_ok or not plain.seen.calls:
        return None
    kept = going_on(body, api, plain.seen, reasoning=True)
    if question.follows == "kept":
        return kept
    dropped = going_on(body, api, plain.seen, reasoning=False)
    return dropped if dropped != kept else None


def case_of(question: ServerQuestion, api: Api, way: Way, body: Json, raw: RawAnswer) -> ProbedCase:
    stream = way == "streamed"
    wire, seen = [], SeenAnswer(is_json=False)
    if not raw.broke:
        seen = see(raw, api, stream=stream)
        wire = wire_faults(raw, api, stream=stream) if raw.is_ok else []
    return ProbedCase(api=api, way=way, question=question, body=body, raw=raw, seen=seen, wire=tuple(wire))


def _is_spoken(case: ProbedCase, words: str, *, named: bool) -> tuple[bool, str]:
    """Whether the answer to a plain greeting is one in this dialect, and what it says otherwise. A dialect that was
    named is examined wherever its address is there."""
    raw, seen = case.raw, case.seen
    if raw.broke in ("unreachable", "late"):
        return False, raw.says
    if raw.is_refused:
        there = raw.status not in _NOT_THERE
        if not there and not _ABOUT_THE_MODEL.search(words):
            return False, f"no such address (status {raw.status})"
        return named and there and raw.status not in (401, 403), f"status {raw.status}: {words}"
    if not 200 <= raw.status < 300:
        return False, odd_status(raw)
    if raw.broke:
        return named, raw.says
    if seen.error:
        return named, f"an error in place of an answer: {seen.error[:200]}"
    if not (seen.finish or seen.text or seen.reasoning):
        return named, odd_answer(raw)
    return True, ""
