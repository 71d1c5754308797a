"""An evaluation: every case in every configuration, as often as was said; each row on disk before the next step.

    run = Evaluation(backend, cases, settings, Path("eval.jsonl"), resume=True)
    await run.go()
    run.tally

The configurations of a case follow each other and share equal answers; then comes the next case. So a run may be ended
at any moment, by a budget or by a kill, and what there is compares like with like; `resume` goes on with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import msgspec

from rightcall.backends.base import BaseBackend
from rightcall.backends.http import Backend
from rightcall.backends.recording import Recorder
from rightcall.backends.request import Answer, Mode, Request
from rightcall.backends.request_plan import can_constrain
from rightcall.capture.commit import Commits
from rightcall.capture.resumption import CannotResume
from rightcall.errors import BackendError, CallerError, ModelError, RightcallError
from rightcall.evaluation.case_run import AskedAlike, run_case
from rightcall.evaluation.configurations import CONFIGURATIONS, Configuration
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.eval_rows import EVALUATION, EvalRow, case_row, head_json, read_evaluation, row_json
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.shared_answers import AnswersOfCase, SharedAnswers
from rightcall.evaluation.suites import max_turns
from rightcall.storage.journal import Journal
from rightcall.types import Json


class EvalFailed(RightcallError):
    """The evaluation ended before its cases did. Rows that were written stay."""


class EvalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked and how, and how patient the run is.

    - `model`: whom; a name for the rows.
    - `configurations`: their names, in order.
    - `runs`: how often each case is asked; run I has the `seed` and I.
    - `mode`: how tools are offered where no grammar is: "native", "text", or "auto" for the server's own way.
    - `max_turns`: answers in one case, instead of what its suite says.
    - `required`: the first answer must be a call.
    - `one_call`: the model may make one call at a time.
    - `temperature`, `max_tokens`: as servers take them.
    - `concurrency`: cases at the same time.
    - `max_errors`: more cases that fail than that end the run.
    - `max_requests`, `max_total_tokens`, `seconds`: the budget; None is none.
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


# What may change between a run and its resumption: nothing that a row depends on.
_PATIENCE = ("concurrency", "max_errors", "max_requests", "max_total_tokens", "seconds")


def identity(settings: EvalSettings, cases: Sequence[EvalCase]) -> Json:
    """What two runs must have in common for one to go on with the other, as JSON data."""
    said: Json = msgspec.json.decode(msgspec.json.encode(settings))
    kept = {name: value for name, value in said.items() if name not in _PATIENCE}
    digest = hashlib.sha256("".join([case.digest for case in cases]).encode()).hexdigest()[:16]
    return {
        **kept,
        "suites": list(dict.fromkeys([case.suite for case in cases])),
        "cases": len(cases),
        "digest": digest,
    }


class EvalWatch:
    """Told of what an `Evaluation` does. Says nothing; whoever wants to see a run overrides what it needs."""

    def start(self, run: Evaluation) -> None:
        """The file of this `run` is open, and nothing has been asked."""

    def cut(self, path: Path, size: int) -> None:
        """A last line that was torn is cut off the file at `path`: so many bytes (`size`)."""

    def told(self, words: str) -> None:
        """Something to know, in `words`."""

    def row(self, row: EvalRow) -> None:
        """This `row` is on disk."""

    def failed(self, case: EvalCase, configuration: str, error: Exception) -> None:
        """The `case` failed in this `configuration` with this `error`; it is asked again by a run that resumes."""

    def done(self, run: Evaluation) -> None:
        """One more case is over."""


class Evaluation:
    """One run. `total` cases (each as often as there are runs) in all, of which `done` are over, `resumed` of them
    before this run; `errors` counts what failed, `stopped` says why it ended early; `tally` is what it came to.

    - `backend`: whom to ask.
    - `cases`: those of `find_cases`.
    - `settings`: what is asked and how.
    - `output`: the file, to which rows are appended if it is of their kind.
    - `resume`: go on with the last run in it, which must have been told the same.
    - `force`: replace a file of another kind.
    - `watch`: is told of what happens.
    - `command`: what to type for the same again, for the file's first line.
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
        self._shared = _share(backend)
        self._configurations = {name: CONFIGURATIONS[name] for name in settings.configurations}
        self._written: set[tuple[str, int, str]] = set()
        self._began = 0.0

    async def go(self) -> None:
        """Runs it. Raises `EvalFailed`, `CannotResume`, `FileFailed`, `BackendError`; rows that are written stay."""
        run = identity(self.settings, self.cases)
        torn: Literal["cut", "refuse"] = "cut" if self._resume else "refuse"
        with Journal(self.output, EVALUATION, torn=torn, force=self._force, alone=True) as file:
            if file.cut:
                self._watch.cut(file.path, file.cut)
            is_begun = self._resume and not file.begins_anew and self._look_back(run)
            await self._settle_mode()
            if not is_begun:
                file.append(head_json(run, self._command))
            self._watch.start(self)
            self._began = time.monotonic()
            await self._all(Commits(file, alone=self.settings.concurrency == 1))
        if self.errors and not self.tally.rows:
            raise EvalFailed(f"every case failed ({self.errors}); --resume asks them again")

    def _look_back(self, run: Json) -> bool:
        """Learns what the last run wrote; False if there was none."""
        past = read_evaluation(self.output)
        if past is None:
            return False
        for name in dict.fromkeys([*past.run, *run]):
            if past.run.get(name) != run.get(name):
                raise CannotResume(
                    f"the run to go on with had {name} {_short(past.run.get(name))}, and this one has "
                    f"{_short(run.get(name))}; say the same, or leave out --resume to begin another run"
                )
        for row in past.rows:
            self._written.add(row.key)
            self.tally.add(row)
        return True

    async def _settle_mode(self) -> None:
        """How tools are offered, and whether the server takes a grammar."""
        backend = _asked(self._backend)
        if backend is None:
            self.mode = "text" if self.mode in ("auto", "grammar") else self.mode
            return
        case = next((case for case in self.cases if case.tools), self.cases[0])
        request = Request(messages=case.messages, tools=case.tools, mode=self.settings.mode, model=self.settings.model)
        self.mode = "native" if (await backend.way(request)).mode == "native" else "text"
        if any(each.grammar for each in self._configurations.values()):
            profile, _ = await backend.profile()
            if profile is None or not can_constrain(profile, backend.api):
                self._without_grammar("a server of an unknown kind" if profile is None else profile.title)

    def _without_grammar(self, server: str) -> None:
        held = [name for name, each in self._configurations.items() if each.grammar]
        if held and tuple(self.settings.configurations) != tuple(CONFIGURATIONS):
            raise CallerError(f"{server} takes no grammar; leave out {', '.join(held)}")
        if held:
            self._configurations.pop("+grammar")
            self._configurations["full"] = msgspec.structs.replace(CONFIGURATIONS["full"], grammar=False)
            self._watch.told(f"{server} takes no grammar: +grammar is left out, and full is without one")

    # -- all of them ---------------------------------------------------------------------------------------------------

    async def _all(self, rows: Commits) -> None:
        """As many cases at a time as was said; one that raises ends them all."""
        left = self._left()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.concurrency, max(1, self.total))):
                    group.create_task(self._work(left, rows))
        except BaseExceptionGroup as failures:
            raise _first(failures) from None
        finally:
            await rows.flush()

    def _left(self) -> Iterator[tuple[EvalCase, int]]:
        for run in range(self.settings.runs):
            for case in self.cases:
                if all((case.key, run, name) in self._written for name in self._configurations):
                    self.resumed += 1
                    self.done += 1
                    self._watch.done(self)
                elif not self._is_spent():
                    yield case, run

    def _is_spent(self) -> bool:
        """Is the budget used up? Says so once."""
        settings, spent = self.settings, ""
        if settings.max_requests is not None and self.requests >= settings.max_requests:
            spent = f"{self.requests} requests"
        elif settings.max_total_tokens is not None and self.tokens >= settings.max_total_tokens:
            spent = f"{self.tokens:,} tokens"
        elif settings.seconds is not None and time.monotonic() - self._began >= settings.seconds:
            spent = f"{settings.seconds:g} seconds"
        if spent and not self.stopped:
            self.stopped = f"the budget is spent: {spent}"
        return bool(spent)

    async def _work(self, left: Iterator[tuple[EvalCase, int]], rows: Commits) -> None:
        for case, run in left:
            with self._shared.sharing() if self._shared is not None else nullcontext(AnswersOfCase()) as answers:
                for name, configuration in self._configurations.items():
                    if (case.key, run, name) not in self._written:
                        await self._one(case, run, name, configuration, answers, rows)
            self.done += 1
            self._watch.done(self)

    async def _one(
        self, case: EvalCase, run: int, name: str, configuration: Configuration, answers: AnswersOfCase, rows: Commits
    ) -> None:
        asking = _CaseMeter(self._backend, answers, is_shared=self._shared is not None)
        seed = None if self.settings.seed is None else self.settings.seed + run
        try:
            came = await run_case(case, configuration, self._how(case, seed), asking.ask)
        except (BackendError, ModelError) as error:
            self._count(case, name, error)
            return
        finally:
            self.requests += asking.requests
            self.tokens += asking.tokens
        row = case_row(case, came, run=run, configuration=name, seconds=asking.seconds, seed=seed)
        await rows.append(row_json(row))
        self.tally.add(row)
        self._watch.row(row)

    def _how(self, case: EvalCase, seed: int | None) -> AskedAlike:
        settings = self.settings
        return AskedAlike(
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

    def _count(self, case: EvalCase, configuration: str, error: Exception) -> None:
        self.errors += 1
        self._watch.failed(case, configuration, error)
        if self.errors > self.settings.max_errors:
            raise EvalFailed(
                f"{self.errors} cases failed, and --max-errors is {self.settings.max_errors}; the last one: {error}"
            )


class _CaseMeter:
    """Asks for one conversation, and counts what that cost."""

    def __init__(self, backend: BaseBackend, answers: AnswersOfCase, *, is_shared: bool) -> None:
        self._backend, self._answers, self._is_shared = backend, answers, is_shared
        self.requests = self.tokens = 0
        self.seconds = 0.0

    async def ask(self, request: Request) -> Answer:
        before, borrowed, began = self._answers.requests, self._answers.borrowed, time.monotonic()
        answer = await self._backend.complete(request)
        went_out = self._answers.requests - before if self._is_shared else 1
        self.requests += went_out
        if went_out:
            self.tokens += (answer.tokens.prompt or 0) + (answer.tokens.completion or 0)
        self.seconds += time.monotonic() - began + self._answers.borrowed - borrowed
        return answer


def _asked(backend: BaseBackend) -> Backend | None:
    """The backend with a wire, if there is one."""
    inner = backend.backend if isinstance(backend, Recorder) else backend
    return inner if isinstance(inner, Backend) else None


def _share(backend: BaseBackend) -> SharedAnswers | None:
    inner = _asked(backend)
    if inner is None:
        return None
    shared = SharedAnswers(inner.exchange)
    inner.exchange = shared
    return shared


def _short(value: object) -> str:
    return msgspec.json.encode(value).decode()[:200]


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of those that ended the run together: the others were only faster or slower to find out."""
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
