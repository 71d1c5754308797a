"""A bar on standard error while files are read: rate, how far, how long still. Nothing where nobody watches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from rightcall.cli.layout import console

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


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # whoever reads it will say so
