"""`rightcall eval`: measure how well a model calls tools, and what each part of rightcall adds."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rightcall.backends.base import BaseBackend
from rightcall.backends.request import MODES, Mode
from rightcall.cli.capture_command import run_errors
from rightcall.cli.endpoint import Endpoint, MaxTokens, Model, ModeName, Temperature
from rightcall.cli.inputs import (
    AsJson,
    Force,
    configuration_names,
    exit_with_usage_error,
    grouped,
    print_message,
    suite_names,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, paragraph
from rightcall.cli.page_screen import show_page, write_page
from rightcall.evaluation.case_run import CONFIGURATIONS, find_configurations
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.eval_page import compare_page, eval_page, eval_screen
from rightcall.evaluation.eval_rows import EVALUATION, RecordedRun, read_evaluation
from rightcall.evaluation.eval_tally import EvalTally, steps_json, tally_json
from rightcall.evaluation.evaluation_run import EvalFailed, EvalSettings, Evaluation, EvalWatch
from rightcall.evaluation.suites import find_cases
from rightcall.safe_text import visible
from rightcall.storage.file_kinds import existing
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import refuse_source_as_output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# -- options -----------------------------------------------------------------------------------------------------------

_BUDGET = "The budget"
Suites = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SUITES] | compare A B",
        help="questions, bfcl, domains, tasks, with parts of one as in bfcl:simple_python,multiple; or .jsonl rows of "
        "yours. After compare: two files of raw rows.",
        autocompletion=suite_names,
    ),
]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained web page.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write raw rows as JSON lines, one per case and configuration."),
]


class EvalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for how often and how each case is asked."""

    configurations: Annotated[
        str,
        typer.Option(
            "--configurations",
            "-c",
            metavar="NAME,...",
            autocompletion=configuration_names,
            help=f"Some of {', '.join(CONFIGURATIONS)}; the + is optional. [default: all]",
        ),
    ] = ""
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of runs of each case.")] = 1
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Maximum number of cases of each suite, from all its categories."),
    ] = None
    max_turns: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Maximum number of answers in one case. [default: 3; domains 6, tasks 16]",
            show_default=False,
        ),
    ] = None
    required: Annotated[bool, typer.Option("--required", help="The first answer must be a call.")] = False
    one_call: Annotated[bool, typer.Option("--one-call", help="Allow one call at a time.")] = False
    shots: Annotated[
        int,
        typer.Option(
            "--shots", min=0, metavar="N", help="Number of solved examples before each question, scenario or task."
        ),
    ] = 0
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed, if the server supports one; run I has seed N+I.")
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Number of cases at the same time.")] = 1
    max_errors: Annotated[
        int, typer.Option(min=0, metavar="N", help="End the run after more failed cases than this.")
    ] = 25
    max_requests: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End the run after this many requests.", rich_help_panel=_BUDGET),
    ] = None
    max_total_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="End the run after this many tokens, in and out.", rich_help_panel=_BUDGET
        ),
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="SECONDS", help="End the run after this time.", rich_help_panel=_BUDGET),
    ] = None

    def settings(self, model: str, mode: Mode) -> EvalSettings:
        """Return the settings of a run of this model. Raises `CallerError` if they are invalid."""
        return EvalSettings(
            model=model,
            configurations=tuple(find_configurations(self.configurations.split(","))),
            mode=mode,
            seconds=self.max_seconds,
            **{name: getattr(self, name) for name in self.__struct_fields__ if name not in _CONVERTED},
        )


_CONVERTED = ("configurations", "limit", "shots", "max_seconds")


# -- the command -------------------------------------------------------------------------------------------------------


@grouped
def eval_command(
    *,
    arguments: Suites = None,
    model: Model = "",
    endpoint: Endpoint,
    options: EvalOptions,
    out: Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the last run in --out.")] = False,
    html: Html = None,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report only warnings during the run.")] = False,
    force: Force = False,
) -> None:
    """Measure how well a model calls tools: without rightcall, and with more of its parts step by step.

    Each configuration adds one part to the one before, over the same cases. Rows are on disk before the next step, and
    --resume continues an interrupted run. `compare A B` shows what changed from the rows of A to those of B. Exit
    codes: 0 done, 1 the run could not be finished, or with compare something got significantly worse, 2 wrong usage.
    """
    given = arguments or []
    if given[:1] == ["compare"]:
        _compare_files(given[1:], html, as_json=json, force=force)
        return
    with usage_errors():
        output = _check_files(out, html, endpoint, resume=resume, force=force)
        cases = find_cases(given or ["questions"], limit=options.limit, examples=options.shots)
        settings = options.settings(_model_name(model, endpoint), _mode_without_grammar(endpoint.mode))
    with run_errors():
        backend = endpoint.backend(model, force=force)
        run = _run_evaluation(backend, cases, settings, output, resume=resume, force=force, quiet=quiet)
    _print_result(run, html, _sources(out), as_json=json, force=force)
    if run.stopped or run.errors:
        print_message(f"{run.stopped or f'{run.errors} cases failed'}; {_resume_hint(out)}")
        raise typer.Exit(1)


def _model_name(model: str, endpoint: Endpoint) -> str:
    """Return the name of the model for the rows: `model`, or that of the local model. Exits with a usage error if
    neither is given."""
    endpoint.check_model(model, required=True)
    return model if endpoint.local is None else endpoint.local_name


def _mode_without_grammar(mode: ModeName) -> Mode:
    """Return the mode for configurations that add no grammar. Exits with a usage error for the mode grammar."""
    if mode is ModeName.grammar:
        exit_with_usage_error("--mode is for configurations without a grammar; +grammar and full use one")
    modes: dict[str, Mode] = {each: each for each in MODES}
    return modes[mode]


def _check_files(out: str | None, html: str | None, endpoint: Endpoint, *, resume: bool, force: bool) -> Path:
    """Return the path of the rows; the null device without --out. Before anything is sent, raise `CallerError` if a
    foreign file would be overwritten, unless `force`, or if --out is also the page or the recording. Exits with a usage
    error for --resume without --out."""
    if out is None:
        if resume:
            exit_with_usage_error("--resume needs the file of the interrupted run: pass --out FILE")
        return Path(os.devnull)
    if not is_stream(out):
        existing(Path(out), EVALUATION, force=force)
    for other in (html, endpoint.record):
        if other is not None:
            refuse_source_as_output(Path(out), [other])
    return Path(out)


def _run_evaluation(
    backend: BaseBackend,
    cases: Sequence[EvalCase],
    settings: EvalSettings,
    output: Path,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
) -> Evaluation:
    """Run the cases with a progress bar and return the run. Exits with code 1 after too many errors."""
    with eval_progress_bar() as progress:
        watch = EvalProgress(progress, quiet=quiet)
        command = shlex.join(["rightcall", *sys.argv[1:]])
        run = Evaluation(backend, cases, settings, output, resume=resume, force=force, watch=watch, command=command)
        try:
            asyncio.run(_run_in_backend(backend, run))
        except EvalFailed as error:
            print_message(str(error))
            raise typer.Exit(1) from None
    return run


async def _run_in_backend(backend: BaseBackend, run: Evaluation) -> None:
    """Open the backend, run the evaluation to its end, and close the backend. Raises the error that ended the run."""
    async with backend:
        await run.go()


def _sources(out: str | None) -> list[str]:
    """Return --out as a list of files that must not be overwritten; empty without it."""
    return [] if out is None else [out]


def _resume_hint(out: str | None) -> str:
    """Return a clause about how to resume the run, which needs --out."""
    return "--resume continues it" if out is not None else "to resume a run, pass --out FILE"


# -- result ------------------------------------------------------------------------------------------------------------


def _print_result(run: Evaluation, html: str | None, sources: Sequence[str], *, as_json: bool, force: bool) -> None:
    """Print the rates on the screen or as JSON, and write the page to the file `html` if one is given, which must be
    none of `sources`."""
    notes = [] if run.done == run.total else [f"{run.done:,} of {run.total:,} cases: {run.stopped or 'some failed'}."]
    described = run.tally, run.settings.model, notes
    if html is not None:
        write_page(eval_page(*described), html, sources=sources, force=force)
    if as_json:
        progress = {"model": run.settings.model, "cases": run.total, "done": run.done, "errors": run.errors}
        typer.echo(format_json({**progress, "stopped": run.stopped, **tally_json(run.tally)}))
    else:
        show_page(console(), eval_screen(*described))


# -- compare -----------------------------------------------------------------------------------------------------------


def _compare_files(files: Sequence[str], html: str | None, *, as_json: bool, force: bool) -> None:
    """Compare two files of raw rows, the older one first, and print what changed; write the page to `html` if given.
    Exits with code 1 if something got significantly worse, with a usage error if they cannot be compared."""
    if len(files) != 2:
        exit_with_usage_error("compare takes two files of raw rows: the older one, then the newer")
    with usage_errors():
        older, newer = [EvalTally(_read_rows(file).rows) for file in files]
    steps = newer.against(older)
    if not steps:
        exit_with_usage_error(
            f"{files[0]} and {files[1]} have no case in common with the same question and the same expected answer"
        )
    page = compare_page(newer, older, files[1], files[0])
    if html is not None:
        write_page(page, html, sources=files, force=force)
    if as_json:
        typer.echo(format_json({"older": files[0], "newer": files[1], "steps": steps_json(steps)}))
    else:
        show_page(console(), page)
    if any(step.verdict == "worse" for step in steps):
        raise typer.Exit(1)


def _read_rows(file: str) -> RecordedRun:
    """Return the raw rows in a file that `rightcall eval --out` wrote. Exits with a usage error if the file has
    none."""
    past = read_evaluation(Path(file))
    if past is None:
        exit_with_usage_error(f"{file} has no rows of an evaluation; `rightcall eval --out` writes such files")
    return past


# -- progress ----------------------------------------------------------------------------------------------------------

_REPORT_EVERY = 10.0  # seconds between two lines, without a progress bar


class EvalProgress(EvalWatch):
    """Reports progress on standard error: as a bar on a terminal, otherwise as lines; with `quiet`, only warnings."""

    def __init__(self, progress: Progress | None, *, quiet: bool) -> None:
        self._progress, self._quiet = progress, quiet
        self._bar: TaskID | None = None
        self._began = self._last = time.monotonic()
        self._before = 0

    def _print_line(self, line: str) -> None:
        """Print one line on standard error, above the progress bar if there is one."""
        out = console(stderr=True) if self._progress is None else self._progress.console
        paragraph(out, visible(f"eval {line}", one_line=True), hang=2)

    def start(self, run: Evaluation) -> None:
        """Start the progress bar and, unless quiet, print the number of cases, the model and the mode."""
        self._began = self._last = time.monotonic()
        if self._progress is not None:
            self._bar = self._progress.add_task("eval", total=run.total)
        if not self._quiet:
            self._print_line(
                f"{run.total} cases of {run.settings.model} in {len(run.settings.configurations)} configurations, "
                f"mode {run.mode}"
            )

    def cut(self, path: Path, size: int) -> None:
        """Print a warning that the incomplete last line of the file at `path`, `size` bytes long, was removed."""
        self._print_line(f"warning {path}: the last line is incomplete; its {size} bytes are removed")

    def notice(self, text: str) -> None:
        """Print a text in one line on standard error, also if quiet."""
        self._print_line(text)

    def failed(self, case: EvalCase, configuration: str, error: Exception) -> None:
        """Print a warning that this case failed in this configuration."""
        self._print_line(f"warning {case.key} {configuration} failed: {error}")

    def done(self, run: Evaluation) -> None:
        """Advance the progress bar; without one and unless quiet, print the progress every `_REPORT_EVERY` seconds."""
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, completed=run.done)
        elif not self._quiet and time.monotonic() - self._last >= _REPORT_EVERY:
            self._last = time.monotonic()
            self._print_line(f"{run.done}/{run.total} cases, {run.requests} requests, {self._time_left(run)}")

    def _time_left(self, run: Evaluation) -> str:
        """Return the estimated remaining time as text, from the mean time of the cases of this run."""
        now = run.done - run.resumed
        seconds = (time.monotonic() - self._began) / max(1, now) * (run.total - run.done)
        return f"{seconds / 60:.0f} minutes left" if seconds >= 90 else f"{seconds:.0f} seconds left"


@contextmanager
def eval_progress_bar() -> Iterator[Progress | None]:
    """Yield a progress bar on standard error with the time left, or None if that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield progress
