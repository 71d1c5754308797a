"""The scenario runner: models, runs, domains and scenarios in order; one durable row per call; a budget for failures.

    run = Capture(backend, domains, settings, Path("capture.jsonl"), resume=True, watch=Watch())
    await run.go()

An answer is in the journal before its first row is written, and a row is on disk before the next step is taken. So a
run may be killed at any moment, and `resume` goes on with it (see `past.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rightcall.backends.base import BaseBackend
from rightcall.capture.captured_rows import CAPTURE, unix_ms
from rightcall.capture.commit import Commits
from rightcall.capture.domain import Domain
from rightcall.capture.real_tools import real_outcome
from rightcall.capture.resumption import ANSWERS, Past, check_same_run, head, journal_of, read_journal
from rightcall.capture.scenario_run import JournalEntry, ScenarioRun, ToolRan
from rightcall.capture.settings import Settings, Task, count, identity, tasks
from rightcall.capture.stubs import StubOutcome
from rightcall.capture.tally import Tally
from rightcall.dispatching.hook import HookLike
from rightcall.errors import BackendError, CallerError, ModelError, RightcallError
from rightcall.storage.file_kinds import existing
from rightcall.storage.journal import Journal
from rightcall.storage.streams import is_stream
from rightcall.types import Call, Json
from rightcall.workspace.approval import Approval


class CaptureFailed(RightcallError):
    """The run ended before its scenarios did, or with none of them. Rows that were written stay."""


class Watch:
    """Told of what a `Capture` does, as it happens. Says nothing; whoever wants to see a run overrides what it
    needs."""

    def start(self, run: Capture) -> None:
        """The files of this `run` are open, and nothing has been asked."""

    def cut(self, path: Path, size: int) -> None:
        """A last line that was torn is cut off the file at `path`: so many bytes (`size`)."""

    def scenario(self, task: Task) -> None:
        """The scenario of this `task` begins, or is gone on with."""

    def renamed(self, said: JournalEntry, call: int, received: str, used: str) -> None:
        """A call of the answer `said`, by its index `call`, had the id of an earlier one: `received`, and now
        `used`."""

    def row(self, row: Json) -> None:
        """This `row` is on disk."""

    def failed(self, task: Task, error: Exception) -> None:
        """The scenario of this `task` failed with this `error`."""

    def done(self, task: Task) -> None:
        """The scenario of this `task` is over, well or not."""

    def complete(self, run: Capture) -> None:
        """Every scenario of this `run` is over."""


class Capture:
    """One run: asks a model every scenario of some domains over stub tools, and writes each of its calls as a row,
    durably. `errors` counts scenarios that failed, `tally` what the rows came to.

    - `backend`: whom to ask.
    - `domains`: those of `find_domains`.
    - `settings`: what is asked and how.
    - `output`: the file, to which rows are appended if it is a capture; a journal of the answers lies beside it.
    - `resume`: go on where an earlier run of the same settings ended.
    - `fresh`: the rows take the place of what is there.
    - `force`: also where that is no capture.
    - `watch`: is told of what happens, as it happens.
    - `hooks`: asked before a real tool is run, as in `dispatch`; without any, only tools that read are run.
    """

    def __init__(
        self,
        backend: BaseBackend,
        domains: Sequence[Domain],
        settings: Settings,
        output: Path,
        *,
        resume: bool = False,
        fresh: bool = False,
        force: bool = False,
        watch: Watch | None = None,
        hooks: Iterable[HookLike] = (),
    ) -> None:
        if settings.examples and any(domain.is_real for domain in domains):
            raise CallerError("examples show what stubs answer; real tools are run for the model alone")
        self.domains, self.settings, self.output = domains, settings, output
        self.total = count(settings, domains)
        self.errors = 0
        self.resumed = 0  # scenarios that were over before this run
        self.tally = Tally(domains)
        self._backend, self._resume, self._watch = backend, resume, watch or Watch()
        self._fresh, self._force, self._hooks = fresh, force, list(hooks)
        self._past = Past()
        self._last: Exception | None = None
        self._latest = 0

    async def go(self) -> None:
        """Runs it. Raises `CaptureFailed`, `FileFailed`, `CannotResume`; what was written stays written."""
        run = identity(self.settings, self.domains)
        check_output(self.output, force=self._force)
        cut: Literal["cut", "refuse"] = "cut" if self._resume else "refuse"
        how = {"fresh": self._fresh, "force": self._force}
        with (
            Journal(self.output, CAPTURE, torn=cut, alone=True, **how) as rows,
            Journal(journal_of(self.output), ANSWERS, torn="cut", **how) as journal,
        ):
            self._tell_cuts(rows, journal)
            self._look_back(run, find_rows=not rows.begins_anew)
            if self._past.run is None:
                journal.append(head(run))
            self._watch.start(self)
            await self._all(rows, journal)
        self._watch.complete(self)
        self._judge()

    def _tell_cuts(self, *files: Journal) -> None:
        for file in files:
            if file.cut:
                self._watch.cut(file.path, file.cut)

    def _look_back(self, run: Json, *, find_rows: bool) -> None:
        if not self._resume:
            return
        self._past = read_journal(journal_of(self.output))
        if self._past.run is not None:
            check_same_run(self._past.run, run)
            if find_rows:
                self._past.find_rows(self.output, self.tally.add)

    def _judge(self) -> None:
        if self.errors and self.errors == self.total - self.resumed:
            raise CaptureFailed(f"all scenarios failed ({self.errors}); the last one: {self._last}")

    # -- scenarios -----------------------------------------------------------------------------------------------------

    async def _all(self, rows: Journal, journal: Journal) -> None:
        """As many at a time as was said; each worker takes the next that is left. One that raises ends them all."""
        alone = self.settings.concurrency == 1
        files = Commits(rows, alone=alone), Commits(journal, alone=alone)
        left = tasks(self.settings, self.domains)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.concurrency, self.total)):
                    group.create_task(self._work(left, *files))
        except BaseExceptionGroup as failures:
            raise first_exception(failures) from None
        finally:
            for file in files:
                await file.flush()

    async def _work(self, left: Iterator[Task], rows: Commits, journal: Commits) -> None:
        for task in left:
            if self._past.is_done(task.key):
                self.resumed += 1
                self._watch.done(task)
                continue
            self._watch.scenario(task)
            try:
                await self._hold(task, rows, journal)
            except (BackendError, ModelError) as error:
                self._count(task, error)
            self._watch.done(task)

    def _count(self, task: Task, error: Exception) -> None:
        self.errors += 1
        self._last = error
        self._watch.failed(task, error)
        most = self.settings.max_scenario_errors
        if self.errors > most:
            raise CaptureFailed(
                f"{self.errors} scenarios failed, and --max-scenario-errors is {most}; the last one: {error}"
            )

    async def _hold(self, task: Task, rows: Commits, journal: Commits) -> None:
        """One conversation: first what was said before, if anything was, then the rest of it."""
        talk = ScenarioRun(task, self.settings, at=self._now(), group=self._past.group(task.key))
        for said in self._past.said(task.key):
            talk.again(said)
            await self._write(talk, said, rows, journal)
        while not talk.ended:
            answer = await self._backend.complete(talk.request())
            said = talk.said(answer, at=unix_ms())
            await journal.append(msgspec.to_builtins(said))
            self._tell_renamed(said)
            await self._write(talk, said, rows, journal)

    async def _write(self, talk: ScenarioRun, said: JournalEntry, rows: Commits, journal: Commits) -> None:
        async def run(index: int, call: Call) -> StubOutcome:
            return await self._ran(talk.task, said, index, call, journal)

        async for row in talk.rows(said, run):
            if not self._past.has_row(row):
                await rows.append(row)
                self.tally.add(row)
                self._watch.row(row)

    async def _ran(self, task: Task, said: JournalEntry, index: int, call: Call, journal: Commits) -> StubOutcome:
        """The result of a call. What a real tool gave is in the journal before anything is made of it."""
        if not task.domain.is_real:
            return task.domain.run(call.name, call.arguments)
        known = self._past.ran(task.key, said.turn, index)
        if known is not None:
            return known
        outcome = await real_outcome(call, task.domain.tools, self._hooks or [Approval()])
        ran = ToolRan(ran=call.name, task=task.key, turn=said.turn, call=index, outcome=outcome)
        await journal.append(msgspec.to_builtins(ran))
        return outcome

    def _tell_renamed(self, said: JournalEntry) -> None:
        for at, (received, call) in enumerate(zip(said.received, said.calls, strict=True)):
            if received != call.id:
                self._watch.renamed(said, at, received, call.id)

    def _now(self) -> int:
        """The time, and never the same twice: it tells groups apart."""
        self._latest = max(self._latest + 1, unix_ms())
        return self._latest


def check_output(output: Path, *, force: bool = False) -> None:
    """Raises `NotOurs` if something else is where the rows or their journal are to be; nothing is written."""
    for path, kind in ((output, CAPTURE), (journal_of(output), ANSWERS)):
        if not is_stream(path):
            existing(path, kind, force=force)


def first_exception(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a task group: the others follow from it."""
    first = failures.exceptions[0]
    return first_exception(first) if isinstance(first, BaseExceptionGroup) else first
