"""What `rightcall capture` says while it runs: lines on standard error, and a bar where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rightcall.capture.captured_rows import OUTCOME
from rightcall.capture.runner import Capture, Watch
from rightcall.capture.scenario_run import JournalEntry
from rightcall.capture.settings import Task
from rightcall.cli.layout import console, paragraph
from rightcall.cli.safe import visible
from rightcall.types import Json

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def bar(*, shown: bool = True) -> Iterator[Progress | None]:
    """A bar with rate and time left, on a terminal where nothing is asked meanwhile."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield progress


class ShownProgress(Watch):
    """One line per event, each `capture` and what it is about, then key=value pairs."""

    def __init__(self, progress: Progress | None, *, quiet: bool = False) -> None:
        self._progress, self._quiet = progress, quiet
        self._bar = None if progress is None else progress.add_task("capture", total=None, rate="")
        self._total = self._rows = 0

    def _say(self, line: str) -> None:
        out = console(stderr=True) if self._progress is None else self._progress.console
        paragraph(out, visible(line, one_line=True), hang=2)

    def start(self, run: Capture) -> None:
        self._total, settings = run.total, run.settings
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, total=run.total)
        domains = ",".join([domain.name for domain in run.domains])
        self._say(
            f"capture start output={run.output} model={','.join(settings.models)} domains={domains} "
            f"runs={settings.runs} scenarios={run.total} max_turns={settings.max_turns} "
            f"max_scenario_errors={settings.max_scenario_errors} mode={settings.mode} guard={settings.guard}"
        )

    def cut(self, path: Path, size: int) -> None:
        self._say(f"capture warning {path}: the last line was not written to its end; its {size} bytes are cut off")

    def scenario(self, task: Task) -> None:
        if not self._quiet:
            self._say(f"capture scenario {self._named(task)}")

    def _named(self, task: Task) -> str:
        where = f"run={task.run} domain={task.domain.name} scenario={task.scenario.name}"
        return f"{task.number}/{self._total} {where} model={task.model}"

    def renamed(self, said: JournalEntry, call: int, received: str, used: str) -> None:
        where = f"group={said.group} turn={said.turn + 1} call={call + 1}"
        self._say(f"capture warning {where} the call id {received} came again; this call is {used}")

    def row(self, row: Json) -> None:
        self._rows += 1
        if self._quiet:
            return
        trace = row["proxy_trace"]
        if row["kind"] == OUTCOME:
            what = f"outcome={row['outcome']['ended']}"
        else:
            call, status = row["candidate_call"], row["tool_result"]["status"]
            what = f"call={trace['call_index'] + 1} tool={call['name']} status={status}"
        self._say(f"capture row group={row['example_group_id']} turn={trace['turn'] + 1} {what}")

    def failed(self, task: Task, error: Exception) -> None:
        self._say(f"capture warning scenario {self._named(task)} failed: {error}")

    def done(self, task: Task) -> None:
        if self._progress is not None and self._bar is not None:
            self._progress.advance(self._bar)
            seconds = self._progress.tasks[0].elapsed or 0.0
            rate = f"{self._rows / seconds:.1f} rows/s" if seconds else ""
            self._progress.update(self._bar, rate=rate)

    def complete(self, run: Capture) -> None:
        total = run.tally.total
        self._say(
            f"capture complete output={run.output} scenario_errors={run.errors} rows={run.tally.rows} "
            f"prompt_tokens={total.prompt_tokens} completion_tokens={total.completion_tokens}"
        )
