"""`rightcall eval`: how well a model calls tools, and what each part of rightcall adds."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rightcall.backends.base import BaseBackend
from rightcall.backends.request import MODES, Mode
from rightcall.cli.capture_command import run_errors
from rightcall.cli.endpoint import Endpoint, Model, ModeName
from rightcall.cli.eval_options import EvalAsking, Words
from rightcall.cli.eval_watch import ShownEvaluation, eval_bar
from rightcall.cli.inputs import AsJson, Force, refuse, say, usage_errors
from rightcall.cli.layout import console
from rightcall.cli.option_groups import grouped
from rightcall.cli.page_screen import show_page
from rightcall.cli.safe import json_text
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.eval_json import eval_json, steps_json
from rightcall.evaluation.eval_page import KIND, compare_page, eval_page, eval_screen
from rightcall.evaluation.eval_rows import EVALUATION, PastRun, read_evaluation
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.evaluation_run import EvalFailed, EvalSettings, Evaluation
from rightcall.evaluation.suites import find_cases
from rightcall.evaluation.webpages.page_parts import WebPage
from rightcall.evaluation.webpages.page_writing import page_kind, written
from rightcall.storage.file_kinds import existing
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import WholeFile, keep_apart

Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write one page too, which can be mailed.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="Raw rows as JSON lines, one per case and configuration."),
]


@grouped
def eval_(
    *,
    words: Words = None,
    model: Model = "",
    endpoint: Endpoint,
    asking: EvalAsking,
    out: Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last run in --out.")] = False,
    html: Html = None,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings while it runs.")] = False,
    force: Force = False,
) -> None:
    """Measure how well a model calls tools: bare, and with each part of rightcall more.

    Suites are asked in configurations, each the one before and one part more, over the same cases. Rows are on disk
    before the next step, and a run that was broken off goes on with --resume. `compare A B` says what changed from the
    rows of A to those of B. Exit code 0: it is done. 1: it could not be finished, or with compare something got worse
    by more than chance explains. 2: wrong usage.
    """
    given = words or []
    if given[:1] == ["compare"]:
        _compare(given[1:], html, as_json=json, force=force)
        return
    with usage_errors():
        output = _checked(out, html, endpoint, resume=resume, force=force)
        cases = find_cases(given or ["questions"], limit=asking.limit, examples=asking.shots)
        settings = asking.settings(_name(model, endpoint), _mode(endpoint.mode))
    with run_errors():
        backend = endpoint.backend(model, force=force)
        run = _ran(backend, cases, settings, output, resume=resume, force=force, quiet=quiet)
    _tell(run, html, _sources(out), as_json=json, force=force)
    if run.stopped or run.errors:
        say(f"{run.stopped or f'{run.errors} cases failed'}; {_how_to_go_on(out)}")
        raise typer.Exit(1)


def _how_to_go_on(out: str | None) -> str:
    return "--resume goes on with it" if out is not None else "with --out FILE it could be gone on with"


def _sources(out: str | None) -> list[str]:
    return [] if out is None else [out]


def _name(model: str, endpoint: Endpoint) -> str:
    if endpoint.local is None and not model:
        refuse("Missing option '--model'; or name one that runs here with --local")
    if endpoint.local is not None and (endpoint.base_url is not None or model):
        refuse("--local says which model; --base-url and --model are for models elsewhere")
    return model if endpoint.local is None else endpoint.local_name


def _mode(mode: ModeName) -> Mode:
    if mode is ModeName.grammar:
        refuse("--mode says how tools are offered where no grammar is; +grammar and full are the ones with it")
    modes: dict[str, Mode] = {each: each for each in MODES}
    return modes[mode]


def _checked(out: str | None, html: str | None, endpoint: Endpoint, *, resume: bool, force: bool) -> Path:
    """Where the rows go. What may not be written over is refused before anything is asked."""
    if out is None:
        if resume:
            refuse("--resume goes on with the rows of a file; say which with --out")
        return Path(os.devnull)
    if not is_stream(out):
        existing(Path(out), EVALUATION, force=force)
    for other in (html, endpoint.record):
        if other is not None:
            keep_apart(Path(out), [other])
    return Path(out)


def _ran(
    backend: BaseBackend,
    cases: Sequence[EvalCase],
    settings: EvalSettings,
    output: Path,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
) -> Evaluation:
    with eval_bar() as progress:
        watch = ShownEvaluation(progress, quiet=quiet)
        command = shlex.join(["rightcall", *sys.argv[1:]])
        run = Evaluation(backend, cases, settings, output, resume=resume, force=force, watch=watch, command=command)
        try:
            asyncio.run(_within(backend, run))
        except EvalFailed as error:
            say(str(error))
            raise typer.Exit(1) from None
    return run


async def _within(backend: BaseBackend, run: Evaluation) -> None:
    async with backend:
        await run.go()


def _tell(run: Evaluation, html: str | None, sources: Sequence[str], *, as_json: bool, force: bool) -> None:
    notes = [] if run.done == run.total else [f"{run.done:,} of {run.total:,} cases: {run.stopped or 'some failed'}."]
    told_as = run.tally, run.settings.model, notes
    if html is not None:
        _write(eval_page(*told_as), html, sources, force=force)
    if as_json:
        told = {"model": run.settings.model, "cases": run.total, "done": run.done, "errors": run.errors}
        typer.echo(json_text({**told, "stopped": run.stopped, **eval_json(run.tally)}))
    else:
        show_page(console(), eval_screen(*told_as))


def _write(page: WebPage, html: str, sources: Sequence[str], *, force: bool) -> None:
    with usage_errors(), WholeFile(html, page_kind(KIND), sources=sources, force=force) as file:
        file.write_bytes(written(page).encode())


# -- compare -----------------------------------------------------------------------------------------------------------


def _compare(files: Sequence[str], html: str | None, *, as_json: bool, force: bool) -> None:
    if len(files) != 2:
        refuse("compare takes two files of raw rows: the older one, then the newer")
    with usage_errors():
        older, newer = [EvalTally(_read(file).rows) for file in files]
    steps = newer.against(older)
    if not steps:
        refuse(f"{files[0]} and {files[1]} have no case in common that was asked alike and wanted the same")
    page = compare_page(newer, older, files[1], files[0])
    if html is not None:
        _write(page, html, files, force=force)
    if as_json:
        typer.echo(json_text({"older": files[0], "newer": files[1], "steps": steps_json(steps)}))
    else:
        show_page(console(), page)
    if any(step.verdict == "worse" for step in steps):
        raise typer.Exit(1)


def _read(file: str) -> PastRun:
    past = read_evaluation(Path(file))
    if past is None:
        refuse(f"{file} holds no evaluation; `rightcall eval --out` writes such files")
    return past
