"""Commands over many rows (`--rows`): their options, progress bars, interruptions and summary."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
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

from rightcall.cli.inputs import exit_with_usage_error, print_message, read_bytes, usage_errors
from rightcall.cli.layout import console, format_json, paragraph, row
from rightcall.datasets.rows.engines import make_engine
from rightcall.datasets.rows.mapping import RowWork, Totals, map_rows, refuse_stdin
from rightcall.datasets.rows.replies import RowKeys
from rightcall.datasets.rows.sinks import sink_to
from rightcall.datasets.rows.sources import RowSource, sources_of
from rightcall.datasets.rows.stores import store_of
from rightcall.errors import WorkerLost
from rightcall.safe_text import brief
from rightcall.storage.file_kinds import FileKind
from rightcall.storage.streams import is_stream
from rightcall.types import Json

# -- options -----------------------------------------------------------------------------------------------------------


class EngineChoice(StrEnum):
    """Where rows are processed."""

    local = "local"
    ray = "ray"


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the workers of a command over rows, and for resuming an interrupted run."""

    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Number of processes. [default: one per core]"),
    ] = None
    engine: Annotated[
        EngineChoice | None,
        typer.Option("--engine", help="Where workers run: as processes on this machine, or on Ray. [default: local]"),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue the same command after an interruption.")] = False

    def arguments(self) -> dict[str, Any]:
        """Return the values of `jobs`, `engine` and `resume` as keyword arguments for the functions of
        `rightcall.datasets`; the engine is "local" by default."""
        return {**msgspec.structs.asdict(self), "engine": self.engine or "local"}


_PANEL = "Many rows"


def _option(*names: str, **more: Any) -> Any:
    """Return an option of typer in the panel "Many rows" of the help page."""
    return typer.Option(*names, rich_help_panel=_PANEL, **more)


class RowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading a log of many rows and writing one line of JSON for each."""

    rows: Annotated[
        bool,
        _option("--rows", "--jsonl", help="FILES are logs of many rows: .jsonl, .csv, .parquet, also .gz and .zst."),
    ] = False
    rows_as: Annotated[
        str | None, _option(metavar="KIND", help="The format of standard input, or of a file without a known suffix.")
    ] = None
    out: Annotated[
        str | None,
        _option("--out", "-o", metavar="FILE", help="Write one line of JSON per row to this file. [default: stdout]"),
    ] = None
    resume: Annotated[bool, _option("--resume", help="Continue an interrupted run with the same --out.")] = False
    jobs: Annotated[
        int | None, _option("--jobs", "-j", min=1, metavar="N", help="Number of processes. [default: one per core]")
    ] = None
    engine: Annotated[
        EngineChoice | None,
        _option("--engine", help="Where workers run: as processes on this machine, or on Ray. [default: local]"),
    ] = None
    text_key: Annotated[str | None, _option(metavar="KEY", help="Key of the reply, as a dotted path.")] = None
    id_key: Annotated[str | None, _option(metavar="KEY", help="Key of the id, which is copied.")] = None
    model_key: Annotated[str | None, _option(metavar="KEY", help="Key of the model's name, which is copied.")] = None
    tools_key: Annotated[str | None, _option(metavar="KEY", help="Key of the tools of a row.")] = None
    force: Annotated[bool, _option("--force", help="Replace an existing file, even if rightcall did not write it.")] = (
        False
    )

    @property
    def enabled(self) -> bool:
        """Return whether the command reads rows. Exits with a usage error if it does not, but an option is given that
        needs --rows."""
        if self.rows or self.rows_as:
            return True
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        if given:
            exit_with_usage_error(f"--{given[0].replace('_', '-')} needs --rows, which reads logs of many rows")
        return False

    @property
    def keys(self) -> RowKeys:
        """Return the keys under which the rows have reply, id, model and tools."""
        return RowKeys(self.text_key, self.id_key, self.model_key, self.tools_key)


def one_file(files: Sequence[str] | None) -> str:
    """Return the only file of a command without --rows; `-`, standard input, if none is given. Exits with a usage error
    for several."""
    if files and len(files) > 1:
        exit_with_usage_error(f"expected one file, got {len(files)}; --rows reads several logs of replies")
    return files[0] if files else "-"


# -- running over rows -------------------------------------------------------------------------------------------------


def run_key(keys: RowKeys, *options: object, files: Sequence[str | None]) -> str:
    """Return a text that identifies a run: it differs for other keys, other options and other contents of these files
    (None stands for no file). A run is only resumed with the same text. Exits if a file is unreadable."""
    digests = [name and blake2b(read_bytes(name), digest_size=16).hexdigest() for name in files]
    return format_json([msgspec.to_builtins(keys), [str(each) for each in options], digests])


def run_rows(
    what: str, files: Sequence[str] | None, options: RowOptions, work: RowWork, kind: FileKind, *, json: bool
) -> Totals:
    """Process all rows of the files, write the results, print a summary, and return the totals. Unreadable rows are
    reported on standard error and counted as `bad`. Exits for wrong options, unusable files, lost workers and
    Ctrl-C."""
    if options.resume and (options.out is None or is_stream(options.out)):
        exit_with_usage_error("--resume needs the file of the interrupted run: pass --out FILE")
    start = time.monotonic()
    with interruptions(resumable=options.out is not None), usage_errors():
        sources = sources_of(files or ["-"], rows_as=options.rows_as)
        if options.resume:
            refuse_stdin(sources)
        names = [source.path for source in sources if source.path != "-"]
        engine = make_engine(options.engine or "local", options.jobs)
        with (
            sink_to(options.out, kind, sources=names, resume=options.resume, force=options.force) as sink,
            row_progress(what, sources) as watch,
        ):
            totals = map_rows(sources, work, sink, engine, watch=watch)
    _print_totals(totals, options.out, time.monotonic() - start, json=json)
    return totals


@contextmanager
def interruptions(*, resumable: bool = True) -> Iterator[None]:
    """Return a context in which lost workers (`WorkerLost`) are reported in one line with exit code 1, and Ctrl-C with
    exit code 130. For Ctrl-C the line mentions --resume unless `resumable` is False."""
    try:
        yield
    except WorkerLost as error:
        print_message(str(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        print_message("interrupted" + ("; --resume continues it" if resumable else ""))
        raise typer.Exit(130) from None


def exit_if_bad(totals: Totals, *, is_bad: bool = False) -> None:
    """Exit with code 1 if a row could not be read (`totals.bad`) or `is_bad` is set; otherwise do nothing."""
    if totals.bad or is_bad:
        raise typer.Exit(1)


# -- summary -----------------------------------------------------------------------------------------------------------


def _print_totals(totals: Totals, out: str | None, seconds: float, *, json: bool) -> None:
    """Print the counts of a run, as JSON or with labels; on standard error if the rows went to standard output."""
    report_faults(totals)
    aside = out is None or is_stream(out)  # the rows are on standard output
    rate = (totals.rows - totals.resumed) / max(seconds, 1e-9)
    if json:
        summary: Json = {"rows": totals.rows, **totals.counts, "bad": totals.bad, "resumed": totals.resumed}
        summary |= {"seconds": round(seconds, 3), "rows_per_second": round(rate), "output": out or "/dev/stdout"}
        typer.echo(format_json(summary), err=aside)
    elif not aside or sys.stderr.isatty():
        speed = f", {rate:,.0f} rows a second" if rate > 100 else ""
        _print_counts(console(stderr=aside), totals, f"{seconds:,.1f} s{speed}", out)


def _print_counts(out_console: Console, totals: Totals, time: str, out: str | None) -> None:
    """Print the counts of rows and calls, the `time` as given, and the output file `out` unless it is None, each with
    its label."""
    earlier = f", {totals.resumed:,} of them by an earlier run" if totals.resumed else ""
    row(out_console, "rows", f"{totals.rows:,}{earlier}")
    counts = totals.counts
    calls = f"{counts['calls']:,} runnable, {counts['refused']:,} rejected; repaired: {counts['repaired']:,}"
    row(out_console, "calls", calls)
    if totals.bad:
        row(out_console, "bad", f"{totals.bad:,} rows could not be read", "bold red")
    row(out_console, "time", time)
    if out is not None:
        row(out_console, "output", out)


def report_faults(totals: Totals) -> None:
    """Print the first unreadable rows with place and reason on standard error, and the number of the others; nothing if
    there are none."""
    out, more = console(stderr=True), totals.bad - len(totals.faults)
    for fault in totals.faults:
        paragraph(out, brief(str(fault), 1_000), hang=2)
    if more:
        paragraph(out, f"and {more:,} more {'row' if more == 1 else 'rows'} like these")


# -- progress bars -----------------------------------------------------------------------------------------------------

_STEP = 1 << 18  # bytes between two updates of the bar


@contextmanager
def read_progress(what: str, paths: Iterable[str], *, passes: int = 1) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar while files are read, each `passes` times. Yields the function to call with the number of
    bytes that were just read, or None without a terminal."""
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
        task = bar.add_task(what, total=passes * sum(map(_file_size, paths)) or None)
        pending = 0

        def add_bytes(size: int) -> None:
            """Add a number of bytes, and advance the progress bar once enough have come together."""
            nonlocal pending
            pending += size
            if pending >= _STEP:
                bar.advance(task, pending)
                pending = 0

        yield add_bytes


@contextmanager
def row_progress(what: str, sources: Sequence[RowSource]) -> Iterator[Callable[[Totals], None] | None]:
    """Show a progress bar while the rows of these sources are processed. Yields the function to call with the totals so
    far, or None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), _RowRate(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        total = sum([store_of(source.path).size(source.path) for source in sources]) or None
        task: TaskID | None = None

        def update(totals: Totals) -> None:
            """Advance the progress bar to the rows and bytes done."""
            nonlocal task
            if task is None and totals.rows > totals.resumed:  # rows of an earlier run do not count for the rate
                task = bar.add_task(what, total=total, rows=totals.rows, began=time.monotonic(), first=totals.rows)
            if task is not None:
                bar.update(task, completed=totals.bytes, rows=totals.rows)

        yield update


class _RowRate(ProgressColumn):
    """The number of rows so far, and the rows per second."""

    def render(self, task: Task) -> Styled:
        """Return the number of rows, and the rate after half a second."""
        rows, seconds = task.fields["rows"], time.monotonic() - task.fields["began"]
        rate = (rows - task.fields["first"]) / seconds if seconds > 0.5 else 0
        return Styled(f"{rows:,} rows" + (f", {rate:,.0f} a second" if rate else ""))


def _file_size(path: str) -> int:
    """Return the size of a file; 0 if it cannot be read."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # the error is reported when the file is read
