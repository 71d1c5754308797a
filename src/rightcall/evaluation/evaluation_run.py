"""An evaluation: every case in every configuration, as often as the settings say; each row is durable.

    run = Evaluation(backend, cases, settings, Path("eval.jsonl"), resume=True)
    await run.go()
    run.tally

All configurations of a case run before the next case. A run may therefore end at any moment, by a budget or a kill, and
its rows still compare the same cases; `resume` continues it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

import msgspec

from rightcall.backends.base import BaseBackend
from rightcall.backends.exchange import Exchange, HttpRequest, HttpResponse
from rightcall.backends.http import Backend
from rightcall.backends.recording import Recorder
from rightcall.backends.request import Answer, Mode, Request
from rightcall.backends.request_plan import can_constrain
from rightcall.capture.capture_journal import Commits, check_same_run
from rightcall.capture.runner import first_exception
from rightcall.errors import BackendError, CallerError, ModelError, RightcallError
from rightcall.evaluation.case_run import CONFIGURATIONS, Configuration, RequestSettings, run_case
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.eval_rows import EVALUATION, EvalRow, case_row, head_json, read_evaluation, row_json
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.suites import max_turns
from rightcall.storage.journal import Journal
from rightcall.types import Json


class AnswersOfCase:
    """The answers to the requests of one case.

    - `requests`: how many were sent.
    - `saved_seconds`: how long the answers took that were reused.
    - `cache`: status, headers, body and seconds of each answer, by request.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.saved_seconds = 0.0
        self.cache: dict[str, tuple[int, dict[str, str], list[bytes], float]] = {}


_CASE: ContextVar[AnswersOfCase | None] = ContextVar("answers_of_case", default=None)


class SharedAnswers:
    """An exchange that sends equal requests of one case once: configurations that differ only in how they read an
    answer share it.

        exchange = SharedAnswers(backend.exchange)
        with exchange.sharing() as shared:
            ...                                 # the requests of one case
        shared.requests                         # how many were sent

    Outside `sharing`, every request is sent. An answer with another status than 200 is never reused.
    """

    def __init__(self, inner: Exchange) -> None:
        self._inner = inner

    @contextmanager
    def sharing(self) -> Iterator[AnswersOfCase]:
        """Share answers within this block and yield its `AnswersOfCase`. Concurrent asyncio tasks share nothing with
        it."""
        of_case = AnswersOfCase()
        token = _CASE.set(of_case)
        try:
            yield of_case
        finally:
            _CASE.reset(token)

    def keep(self) -> None:
        """Keep connections open, as the inner exchange does."""
        self._inner.keep()

    async def aclose(self) -> None:
        """Close the inner exchange."""
        await self._inner.aclose()

    @asynccontextmanager
    async def open(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request and yield its response, read to its end; within `sharing`, yield the stored response to an
        equal POST instead, if there is one. A GET is always sent."""
        of_case = _CASE.get()
        if of_case is None or sent.method == "GET":
            async with self._inner.open(sent) as received:
                yield received
            return
        key = json.dumps([sent.url, sent.body], sort_keys=True, default=str)
        if key in of_case.cache:
            status, headers, pieces, seconds = of_case.cache[key]
            of_case.saved_seconds += seconds
            yield HttpResponse(status, headers, _iterate_pieces(pieces))
            return
        of_case.requests += 1
        began = time.monotonic()
        async with self._inner.open(sent) as received:
            pieces = [piece async for piece in received.chunks]
            if received.status == 200:
                of_case.cache[key] = received.status, received.headers, pieces, time.monotonic() - began
            yield HttpResponse(received.status, received.headers, _iterate_pieces(pieces))


async def _iterate_pieces(pieces: list[bytes]) -> AsyncIterator[bytes]:
    """Yield these pieces, as an async iterator."""
    for piece in pieces:
        yield piece


class EvalFailed(RightcallError):
    """The evaluation ended early. Its file keeps the rows that were written."""


class EvalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of an evaluation, and its limits.

    - `model`: the name of the model.
    - `configurations`: their names, in order.
    - `runs`: how often each case is run; run number I has the seed `seed` + I.
    - `mode`: how tools are offered where no grammar is: "native", "text", or "auto" for the mode that suits the server.
    - `max_turns`: the maximum number of answers in one case, instead of the default of its suite.
    - `required`: the first answer must be a call.
    - `one_call`: an answer may have at most one call.
    - `temperature`, `max_tokens`: as in a request.
    - `concurrency`: how many cases run at the same time.
    - `max_errors`: the run ends when more cases than this failed.
    - `max_requests`, `max_total_tokens`, `seconds`: the budget; None is unlimited.
    """

    model: str
    configurations: tuple[str, ...] = tuple(CONFIGURATIONS)
    runs: int = 1
    mode: Mode = "auto"
    max_turns: int | None = None
    required: bool = False
    one_call: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    concurrency: int = 1
    max_errors: int = 25
    max_requests: int | None = None
    max_total_tokens: int | None = None
    seconds: float | None = None


# These may differ between a run and its continuation: no row depends on them.
_LIMITS = ("concurrency", "max_errors", "max_requests", "max_total_tokens", "seconds")


def evaluation_identity(settings: EvalSettings, cases: Sequence[EvalCase]) -> Json:
    """Return, as JSON data, the settings and cases that two runs must share so that one can continue the other."""
    fields: Json = msgspec.json.decode(msgspec.json.encode(settings))
    compared = {name: value for name, value in fields.items() if name not in _LIMITS}
    digest = hashlib.sha256("".join([case.digest for case in cases]).encode()).hexdigest()[:16]
    return {
        **compared,
        "suites": list(dict.fromkeys([case.suite for case in cases])),
        "cases": len(cases),
        "digest": digest,
    }


class EvalWatch:
    """Callbacks of an `Evaluation`. They do nothing here; override those that are needed."""

    def start(self, run: Evaluation) -> None:
        """Report that the file of this `run` is open. No request has been sent."""

    def cut(self, path: Path, size: int) -> None:
        """Report that an incomplete last line of `size` bytes was removed from the file at `path`."""

    def notice(self, text: str) -> None:
        """Report a `text` for the user."""

    def row(self, row: EvalRow) -> None:
        """Report that this `row` is on disk."""

    def failed(self, case: EvalCase, configuration: str, error: Exception) -> None:
        """Report that the `case` failed in this `configuration` with this `error`; a resumed run repeats it."""

    def done(self, run: Evaluation) -> None:
        """Report that one more case has ended."""


class Evaluation:
    """One run.

    - `backend`: sends the requests.
    - `cases`: those of `find_cases`.
    - `settings`: the requests and the limits.
    - `output`: the file of rows; rows are appended if it is an evaluation.
    - `resume`: continue the last run in the file, which must have the same cases and settings.
    - `force`: replace a file of another kind.
    - `watch`: callbacks.
    - `command`: the command line that repeats the run, for the file's first line.

    While it runs, `total` is the number of cases times runs, `done` how many have ended, `resumed` how many of those
    ended in an earlier run, `errors` how many failed, `requests` and `tokens` the budget used, `stopped` why it ended
    early, and `tally` the results.
    """

    def __init__(
        self,
        backend: BaseBackend,
        cases: Sequence[EvalCase],
        settings: EvalSettings,
        output: Path,
        *,
        resume: bool = False,
        force: bool = False,
        watch: EvalWatch | None = None,
        command: str = "",
    ) -> None:
        self.cases, self.settings, self.output = list(cases), settings, output
        self.total = len(self.cases) * settings.runs
        self.done = self.resumed = self.errors = self.requests = self.tokens = 0
        self.stopped = ""
        self.tally = EvalTally()
        self.mode: str = settings.mode
        self._backend, self._resume, self._force, self._watch = backend, resume, force, watch or EvalWatch()
        self._command = command
        self._shared = _share_answers(backend)
        self._configurations = {name: CONFIGURATIONS[name] for name in settings.configurations}
        self._finished: set[tuple[str, int, str]] = set()
        self._began = 0.0

    async def go(self) -> None:
        """Run all cases, writing a row for each. Written rows stay if an error is raised.

        Raises `EvalFailed` after too many failures, `CannotResume`, `FileFailed` or `BackendError`.
        """
        run = evaluation_identity(self.settings, self.cases)
        torn: Literal["cut", "refuse"] = "cut" if self._resume else "refuse"
        with Journal(self.output, EVALUATION, torn=torn, force=self._force, alone=True) as file:
            if file.cut:
                self._watch.cut(file.path, file.cut)
            is_continued = self._resume and not file.begins_anew and self._read_last_run(run)
            await self._choose_mode()
            if not is_continued:
                file.append(head_json(run, self._command))
            self._watch.start(self)
            self._began = time.monotonic()
            await self._run_cases(Commits(file, alone=self.settings.concurrency == 1))
        if self.errors and not self.tally.rows:
            raise EvalFailed(f"every case failed ({self.errors}); --resume repeats them")

    def _read_last_run(self, run: Json) -> bool:
        """Add the rows of the file's last run to the tally and to the finished cases. Return False if the file has no
        run. Raises `CannotResume` if its identity differs from `run`."""
        past = read_evaluation(self.output)
        if past is None:
            return False
        check_same_run(past.run, run)
        for row in past.rows:
            self._finished.add(row.key)
            self.tally.add(row)
        return True

    async def _choose_mode(self) -> None:
        """Set `mode`, how tools are offered without a grammar, to "native" or "text" as suits the server, which may be
        asked, and remove grammars that it does not support. Raises `BackendError` if it must be asked and does not
        answer, and `CallerError` as `_drop_grammars`."""
        backend = _http_backend(self._backend)
        if backend is None:
            self.mode = "text" if self.mode in ("auto", "grammar") else self.mode
            return
        case = next((case for case in self.cases if case.tools), self.cases[0])
        request = Request(messages=case.messages, tools=case.tools, mode=self.settings.mode, model=self.settings.model)
        self.mode = "native" if (await backend.way(request)).mode == "native" else "text"
        if any(each.grammar for each in self._configurations.values()):
            await self._drop_unsupported_grammars(backend)

    async def _drop_unsupported_grammars(self, backend: Backend) -> None:
        """Remove grammars from the configurations if the server does not support them, or is of unknown type. Raises
        `CallerError` as `_drop_grammars`."""
        profile, _ = await backend.profile()
        if profile is None:
            self._drop_grammars("a server of unknown type")
        elif not can_constrain(profile, backend.api):
            self._drop_grammars(profile.title)

    def _drop_grammars(self, server: str) -> None:
        """Remove the configuration that only adds a grammar, and the grammar of `full`, and report it; `server` is the
        name for messages. Raises `CallerError` instead if the user chose the configurations and one has a grammar."""
        constrained = [name for name, each in self._configurations.items() if each.grammar]
        if constrained and tuple(self.settings.configurations) != tuple(CONFIGURATIONS):
            raise CallerError(f"{server} does not support grammars; leave out {', '.join(constrained)}")
        if constrained:
            self._configurations.pop("+grammar")
            self._configurations["full"] = msgspec.structs.replace(CONFIGURATIONS["full"], grammar=False)
            self._watch.notice(f"{server} does not support grammars: +grammar is left out, and full has none")

    # -- cases ---------------------------------------------------------------------------------------------------------

    async def _run_cases(self, rows: Commits) -> None:
        """Run the cases, `concurrency` at a time, and write their rows. An exception in one case cancels the others and
        is raised."""
        tasks = self._unfinished_tasks()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.concurrency, max(1, self.total))):
                    group.create_task(self._run_tasks(tasks, rows))
        except BaseExceptionGroup as failures:
            raise first_exception(failures) from None
        finally:
            await rows.flush()

    def _unfinished_tasks(self) -> Iterator[tuple[EvalCase, int]]:
        """Yield the cases to run, each with the number of the repetition; none once the budget of this run is spent. A
        case that an earlier run finished in all configurations is not yielded, but added to `done` and `resumed` and
        reported to the watcher, also after that."""
        for run in range(self.settings.runs):
            for case in self.cases:
                if all((case.key, run, name) in self._finished for name in self._configurations):
                    self.resumed += 1
                    self.done += 1
                    self._watch.done(self)
                elif not self._is_budget_spent():
                    yield case, run

    def _is_budget_spent(self) -> bool:
        """Return whether this run has used up its budget of requests, tokens or seconds. The first time, `stopped` is
        set to the reason."""
        settings, used = self.settings, ""
        if settings.max_requests is not None and self.requests >= settings.max_requests:
            used = f"{self.requests} requests"
        elif settings.max_total_tokens is not None and self.tokens >= settings.max_total_tokens:
            used = f"{self.tokens:,} tokens"
        elif settings.seconds is not None and time.monotonic() - self._began >= settings.seconds:
            used = f"{settings.seconds:g} seconds"
        if used and not self.stopped:
            self.stopped = f"the budget is spent: {used}"
        return bool(used)

    async def _run_tasks(self, tasks: Iterator[tuple[EvalCase, int]], rows: Commits) -> None:
        """Take cases from an iterator that is shared with other workers until it ends; run each in all configurations
        in which it has not been run, and report it to the watcher."""
        for case, run in tasks:
            with self._shared.sharing() if self._shared is not None else nullcontext(AnswersOfCase()) as answers:
                for name, configuration in self._configurations.items():
                    if (case.key, run, name) not in self._finished:
                        await self._run_case_once(case, run, name, configuration, answers, rows)
            self.done += 1
            self._watch.done(self)

    async def _run_case_once(
        self, case: EvalCase, run: int, name: str, configuration: Configuration, answers: AnswersOfCase, rows: Commits
    ) -> None:
        """Run a case in the configuration `name`, write its row, add it to the tally and report it to the watcher.

        A failure of the backend or the model is counted and writes no row; raises `EvalFailed` after too many.
        """
        meter = _CaseMeter(self._backend, answers, is_shared=self._shared is not None)
        seed = None if self.settings.seed is None else self.settings.seed + run
        try:
            result = await run_case(case, configuration, self._request_settings(case, seed), meter.complete)
        except (BackendError, ModelError) as error:
            self._count_error(case, name, error)
            return
        finally:
            self.requests += meter.requests
            self.tokens += meter.tokens
        row = case_row(case, result, run=run, configuration=name, seconds=meter.seconds, seed=seed)
        await rows.append(row_json(row))
        self.tally.add(row)
        self._watch.row(row)

    def _request_settings(self, case: EvalCase, seed: int | None) -> RequestSettings:
        """Return the settings of the requests of a case, with this `seed`. The limit of answers is that of its suite,
        unless the evaluation sets one."""
        settings = self.settings
        return RequestSettings(
            turns=settings.max_turns or max_turns(case),
            mode=self.mode,
            fields={
                "model": settings.model,
                "temperature": settings.temperature,
                "max_tokens": settings.max_tokens,
                "seed": seed,
            },
            choice="required" if settings.required else "auto",
            parallel=not settings.one_call,
        )

    def _count_error(self, case: EvalCase, configuration: str, error: Exception) -> None:
        """Count a failed case and report it to the watcher. Raises `EvalFailed` if more than `max_errors` failed."""
        self.errors += 1
        self._watch.failed(case, configuration, error)
        if self.errors > self.settings.max_errors:
            raise EvalFailed(
                f"{self.errors} cases failed, and --max-errors is {self.settings.max_errors}; the last one: {error}"
            )


class _CaseMeter:
    """Sends the requests of one conversation, and counts requests, tokens and seconds. A reused answer adds no request
    and no tokens, and as many seconds as it took when it was sent."""

    def __init__(self, backend: BaseBackend, answers: AnswersOfCase, *, is_shared: bool) -> None:
        self._backend, self._answers, self._is_shared = backend, answers, is_shared
        self.requests = self.tokens = 0
        self.seconds = 0.0

    async def complete(self, request: Request) -> Answer:
        """Send a request, add its cost (requests, tokens, seconds) to the counts, and return the answer. Raises a
        `BackendError` if there is none."""
        before, saved, began = self._answers.requests, self._answers.saved_seconds, time.monotonic()
        answer = await self._backend.complete(request)
        sent = self._answers.requests - before if self._is_shared else 1
        self.requests += sent
        if sent:
            self.tokens += (answer.tokens.prompt or 0) + (answer.tokens.completion or 0)
        self.seconds += time.monotonic() - began + self._answers.saved_seconds - saved
        return answer


def _http_backend(backend: BaseBackend) -> Backend | None:
    """Return the backend that sends HTTP requests: this one, or the one inside a recorder; None if it is none."""
    inner = backend.backend if isinstance(backend, Recorder) else backend
    return inner if isinstance(inner, Backend) else None


def _share_answers(backend: BaseBackend) -> SharedAnswers | None:
    """Replace the exchange of the HTTP backend by one that shares answers between configurations (within its
    `sharing()`), and return that; None, with nothing changed, if there is no HTTP backend."""
    inner = _http_backend(backend)
    if inner is None:
        return None
    shared = SharedAnswers(inner.exchange)
    inner.exchange = shared
    return shared
