"""What `rightcall eval` says while it runs: a bar with the time left where standard error is a terminal, else a line
now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rightcall.cli.layout import console, paragraph
from rightcall.cli.safe import visible
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.evaluation_run import Evaluation, EvalWatch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_EVERY = 10.0  # seconds between two lines where there is no bar


class ShownEvaluation(EvalWatch):
    """A bar, or lines; nothing but warnings if `quiet`."""

    def __init__(self, progress: Progress | None, *, quiet: bool) -> None:
        self._progress, self._quiet = progress, quiet
        self._bar: TaskID | None = None
        self._began = self._last = time.monotonic()
        self._before = 0

    def _say(self, line: str) -> None:
        out = console(stderr=True) if self._progress is None else self._progress.console
        paragraph(out, visible(f"eval {line}", one_line=True), hang=2)

    def start(self, run: Evaluation) -> None:
        self._began = self._last = time.monotonic()
        if self._progress is not None:
            self._bar = self._progress.add_task("eval", total=run.total)
        if not self._quiet:
            self._say(
                f"{run.total} cases of {run.settings.model} in {len(run.settings.configurations)} configurations, "
                f"mode {run.mode}"
            )

    def cut(self, path: Path, size: int) -> None:
        self._say(f"warning {path}: the last line was not written to its end; its {size} bytes are cut off")

    def told(self, words: str) -> None:
        self._say(words)

    def failed(self, case: EvalCase, configuration: str, error: Exception) -> None:
        self._say(f"warning {case.key} {configuration} failed: {error}")

    def done(self, run: Evaluation) -> None:
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, completed=run.done)
        elif not self._quiet and time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            self._say(f"{run.done}/{run.total} cases, {run.requests} requests, {self._time_left(run)}")

    def _time_left(self, run: Evaluation) -> str:
        now = run.done - run.resumed
        seconds = (time.monotonic() - self._began) / max(1, now) * (run.total - run.done)
        return f"{seconds / 60:.0f} minutes left" if seconds >= 90 else f"{seconds:.0f} seconds left"


@contextmanager
def eval_bar() -> Iterator[Progress | None]:
    """A bar with the time left, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield progress
