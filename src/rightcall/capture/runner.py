"""The capture runner: run every scenario against every model, and write each call as a durable row.

    run = Capture(backend, domains, settings, Path("capture.jsonl"), resume=True, watch=Watch())
    await run.go()

An answer is in the journal before its first row is written, and a row is on disk before the next step. A run may
therefore be killed at any moment, and `resume` continues it (see `capture_journal.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rightcall.backends.base import BaseBackend
from rightcall.capture.capture_journal import ANSWERS, Commits, PastRun, check_same_run, journal_head, journal_path
from rightcall.capture.captured_rows import CAPTURE, unix_ms
from rightcall.capture.domain import Domain
from rightcall.capture.scenario_run import JournalEntry, ScenarioRun, ToolRan
from rightcall.capture.score import Tally
from rightcall.capture.settings import Settings, Task, capture_identity, count_tasks, tasks
from rightcall.capture.stubs import StubOutcome
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import HookLike
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.plain_json_values import plain
from rightcall.errors import BackendError, CallerError, ModelError, RightcallError
from rightcall.storage.file_kinds import existing
from rightcall.storage.journal import Journal
from rightcall.storage.streams import is_stream
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json
from rightcall.workspace.approval import DENIED, Approval

_MAX_RESULT = 200_000  # bytes of a tool's result in a row; of a longer one the row has the text that the model gets


class CaptureFailed(RightcallError):
    """The run ended early, or all scenarios failed. The file keeps the rows that were written."""


class Watch:
    """Callbacks of a `Capture`. They do nothing here; override those that are needed."""

    def start(self, run: Capture) -> None:
        """Report that the files of this `run` are open. No request has been sent."""

    def cut(self, path: Path, size: int) -> None:
        """Report that an incomplete last line of `size` bytes was removed from the file at `path`."""

    def scenario(self, task: Task) -> None:
        """Report that the scenario of this `task` begins, or that it is resumed."""

    def renamed(self, entry: JournalEntry, call: int, received: str, used: str) -> None:
        """Report a duplicate call id: the call with the index `call` of the answer `entry` came with the id `received`
        of an earlier call, and now has the id `used`."""

    def row(self, row: Json) -> None:
        """Report that this `row` is on disk."""

    def failed(self, task: Task, error: Exception) -> None:
        """Report that the scenario of this `task` failed with this `error`."""

    def done(self, task: Task) -> None:
        """Report that the scenario of this `task` has ended or failed."""

    def complete(self, run: Capture) -> None:
        """Report that all scenarios of this `run` have ended."""


class Capture:
    """One run: sends every scenario of some domains to a model, with stub tools, and writes each call as a durable row.
    `errors` counts failed scenarios, `tally` the calls of the rows.

    - `backend`: sends the requests.
    - `domains`: those of `find_domains`.
    - `settings`: the requests and the limits.
    - `output`: the file of rows; rows are appended if it is a capture. The journal is written next to it.
    - `resume`: continue an earlier run with the same settings.
    - `fresh`: replace the rows of the file.
    - `force`: replace a file that is not a capture.
    - `watch`: callbacks.
    - `hooks`: called before a real tool runs, as in `dispatch`; without any, only read-only tools run.
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
            raise CallerError("examples need the answers of stubs; leave them out with real tools")
        self.domains, self.settings, self.output = domains, settings, output
        self.total = count_tasks(settings, domains)
        self.errors = 0
        self.resumed = 0  # scenarios that ended in an earlier run
        self.tally = Tally(domains)
        self._backend, self._resume, self._watch = backend, resume, watch or Watch()
        self._fresh, self._force, self._hooks = fresh, force, list(hooks)
        self._past = PastRun()
        self._last_error: Exception | None = None
        self._last_ms = 0

    async def go(self) -> None:
        """Run all scenarios. Written rows stay if an error is raised.

        Raises `CaptureFailed` if all scenarios or more than `max_scenario_errors` failed, `CannotResume`, `NotOurs` or
        `FileFailed`.
        """
        run = capture_identity(self.settings, self.domains)
        check_output(self.output, force=self._force)
        cut: Literal["cut", "refuse"] = "cut" if self._resume else "refuse"
        replace = {"fresh": self._fresh, "force": self._force}
        with (
            Journal(self.output, CAPTURE, torn=cut, alone=True, **replace) as rows,
            Journal(journal_path(self.output), ANSWERS, torn="cut", **replace) as journal,
        ):
            for file in (rows, journal):
                if file.cut:
                    self._watch.cut(file.path, file.cut)
            if self._resume:
                self._read_past_run(run, find_rows=not rows.begins_anew)
            if self._past.run is None:
                journal.append(journal_head(run))
            self._watch.start(self)
            await self._run_tasks(rows, journal)
        self._watch.complete(self)
        if self.errors and self.errors == self.total - self.resumed:
            raise CaptureFailed(f"all scenarios failed ({self.errors}); the last one: {self._last_error}")

    def _read_past_run(self, run: Json, *, find_rows: bool) -> None:
        """Read the journal, check that its run is the same, and with `find_rows` count the rows that exist. Raises
        `CannotResume`."""
        self._past = PastRun.read(journal_path(self.output))
        if self._past.run is not None:
            check_same_run(self._past.run, run)
            if find_rows:
                self._past.find_rows(self.output, self.tally.add)

    # -- scenarios -----------------------------------------------------------------------------------------------------

    async def _run_tasks(self, rows: Journal, journal: Journal) -> None:
        """Run all tasks, `concurrency` at a time, and write their rows and journal. Failures of backend or model are
        counted up to `max_scenario_errors`; any other exception cancels all tasks and is raised."""
        alone = self.settings.concurrency == 1
        files = Commits(rows, alone=alone), Commits(journal, alone=alone)
        remaining = tasks(self.settings, self.domains)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.concurrency, self.total)):
                    group.create_task(self._run_remaining_tasks(remaining, *files))
        except BaseExceptionGroup as failures:
            raise first_exception(failures) from None
        finally:
            for file in files:
                await file.flush()

    async def _run_remaining_tasks(self, remaining: Iterator[Task], rows: Commits, journal: Commits) -> None:
        """Run tasks from this iterator, which other workers share, until none remains. Tasks that an earlier run ended
        are skipped; failures of backend or model are counted (see `_count_error`)."""
        for task in remaining:
            if self._past.is_done(task.key):
                self.resumed += 1
                self._watch.done(task)
                continue
            self._watch.scenario(task)
            try:
                await self._run_task(task, rows, journal)
            except (BackendError, ModelError) as error:
                self._count_error(task, error)
            self._watch.done(task)

    def _count_error(self, task: Task, error: Exception) -> None:
        """Count and report a failed scenario. Raises `CaptureFailed` beyond `max_scenario_errors`."""
        self.errors += 1
        self._last_error = error
        self._watch.failed(task, error)
        most = self.settings.max_scenario_errors
        if self.errors > most:
            raise CaptureFailed(
                f"{self.errors} scenarios failed, and --max-scenario-errors is {most}; the last one: {error}"
            )

    async def _run_task(self, task: Task, rows: Commits, journal: Commits) -> None:
        """Run one conversation: write the missing rows of an earlier run's answers, then continue it to its end. Raises
        the errors of backend, model and files."""
        scenario = ScenarioRun(task, self.settings, at=self._unique_time_ms(), group=self._past.group(task.key))
        for entry in self._past.entries(task.key):
            scenario.replay(entry)
            await self._execute_and_write_rows(scenario, entry, rows, journal)
        while not scenario.ended:
            answer = await self._backend.complete(scenario.request())
            entry = scenario.entry(answer, at=unix_ms())
            await journal.append(msgspec.to_builtins(entry))
            for index, (received, call) in enumerate(zip(entry.received, entry.calls, strict=True)):
                if received != call.id:
                    self._watch.renamed(entry, index, received, call.id)
            await self._execute_and_write_rows(scenario, entry, rows, journal)

    async def _execute_and_write_rows(
        self, scenario: ScenarioRun, entry: JournalEntry, rows: Commits, journal: Commits
    ) -> None:
        """Execute the calls of a journaled answer and append its rows, except those that an earlier run wrote.

        Only the results of real tools are written to `journal`.
        """

        async def run(index: int, call: Call) -> StubOutcome:
            return await self._run_call(scenario.task, entry, index, call, journal)

        async for row in scenario.rows(entry, run):
            if not self._past.has_row(row):
                await rows.append(row)
                self.tally.add(row)
                self._watch.row(row)

    async def _run_call(self, task: Task, entry: JournalEntry, index: int, call: Call, journal: Commits) -> StubOutcome:
        """Return the result of a call: the answer of a stub, or that of a real tool. A real tool runs once: its result
        is journaled, and a resumed run takes it from the journal."""
        if not task.domain.is_real:
            return task.domain.run(call.name, call.arguments)
        earlier = self._past.tool_result(task.key, entry.turn, index)
        if earlier is not None:
            return earlier
        outcome = await _run_real_tool(call, task.domain.tools, self._hooks or [Approval()])
        ran = ToolRan(ran=call.name, task=task.key, turn=entry.turn, call=index, outcome=outcome)
        await journal.append(msgspec.to_builtins(ran))
        return outcome

    def _unique_time_ms(self) -> int:
        """Return the time in milliseconds, later than any before, since it distinguishes groups of rows."""
        self._last_ms = max(self._last_ms + 1, unix_ms())
        return self._last_ms


def check_output(output: Path, *, force: bool = False) -> None:
    """Raise `NotOurs` if the file of the rows, or of their journal, exists and is of another kind; with `force` it is
    accepted. Streams are not checked, and nothing is written."""
    for path, kind in ((output, CAPTURE), (journal_path(output), ANSWERS)):
        if not is_stream(path):
            existing(path, kind, force=force)


async def _run_real_tool(call: Call, tools: Toolset, hooks: Iterable[HookLike]) -> StubOutcome:
    """Execute a call with a real tool and return its output as JSON data; a long output gives the text that a model
    gets. The outcome is an error if the tool failed or the user did not allow it."""
    (result,) = await dispatch(call, tools, hooks=hooks, limits=RunLimits())
    if result.error or result.reason == DENIED:
        return StubOutcome("error", {"error": result.text.removeprefix("ERROR: ")})
    content = plain(result.output)
    is_long = len(msgspec.json.encode(content)) > _MAX_RESULT
    return StubOutcome("ok", result.text if is_long else content)


def first_exception(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group that is not a group itself. The others are its consequences."""
    first = failures.exceptions[0]
    return first_exception(first) if isinstance(first, BaseExceptionGroup) else first
