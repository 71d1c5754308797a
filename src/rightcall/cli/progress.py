"""A bar on standard error while files are read: rate, how far, how long still. Nothing where nobody watches."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text as Styled

from rightcall.cli.layout import console
from rightcall.datasets.rows.outcomes import Totals
from rightcall.datasets.rows.row_sources import RowSource
from rightcall.datasets.rows.stores import store_of

_STEP = 1 << 18  # bytes between two looks at the bar


@contextmanager
def reading(what: str, paths: Iterable[str], *, passes: int = 1) -> Iterator[Callable[[int], None] | None]:
    """Gives a function to tell how many bytes were read, or None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn(what, markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=passes * sum(map(_size, paths)) or None)
        waiting = 0

        def seen(size: int) -> None:
            nonlocal waiting
            waiting += size
            if waiting >= _STEP:
                bar.advance(task, waiting)
                waiting = 0

        yield seen


@contextmanager
def working(what: str, sources: Sequence[RowSource]) -> Iterator[Callable[[Totals], None] | None]:
    """Gives a function to tell how far the work on rows is, or None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        total = sum([store_of(source.path).size(source.path) for source in sources]) or None
        task: TaskID | None = None

        def watch(totals: Totals) -> None:
            nonlocal task
            if task is None and totals.rows > totals.resumed:  # what an earlier run did is no part of the rate
                task = bar.add_task(what, total=total, rows=totals.rows, began=time.monotonic(), first=totals.rows)
            if task is not None:
                bar.update(task, completed=totals.bytes, rows=totals.rows)

        yield watch


class _Rate(ProgressColumn):
    """How many rows so far, and how many a second."""

    def render(self, task: Task) -> Styled:
        rows, seconds = task.fields["rows"], time.monotonic() - task.fields["began"]
        rate = (rows - task.fields["first"]) / seconds if seconds > 0.5 else 0
        return Styled(f"{rows:,} rows" + (f", {rate:,.0f} a second" if rate else ""))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # whoever reads it will say so
