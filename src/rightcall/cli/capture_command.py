"""`rightcall capture`: a model, driven over stub tools; each of its calls becomes a durable row of a dataset."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import typer

from rightcall.api_names import Api
from rightcall.backends.address import HABITS
from rightcall.backends.base import BaseBackend
from rightcall.backends.cassette import check
from rightcall.backends.replay import ReplayBackend
from rightcall.capture.catalogue import find_domains
from rightcall.capture.domain import Domain
from rightcall.capture.resumption import CannotResume, journal_of
from rightcall.capture.runner import Capture, CaptureFailed, check_output
from rightcall.capture.settings import Settings
from rightcall.cli.capture_options import (
    DEFAULT_DOMAINS,
    DEFAULT_OUTPUT,
    CaptureOptions,
    Domains,
    Models,
    Output,
    Quiet,
    Replay,
    Resume,
    ToolSource,
)
from rightcall.cli.capture_tools import approving, real_tools
from rightcall.cli.capture_watch import ShownProgress, bar
from rightcall.cli.endpoint import Endpoint, backend_errors
from rightcall.cli.inputs import AsJson, Force, refuse, say, usage_errors
from rightcall.cli.layout import console, paragraph, table
from rightcall.cli.option_groups import grouped
from rightcall.cli.safe import json_text, visible
from rightcall.dispatching.hook import HookLike
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import keep_apart
from rightcall.types import Json

DEFAULT_URL = "http://127.0.0.1:8081/v1"


@grouped
def capture(
    *,
    model: Models = [],  # noqa: B006 - typer wants a list, and never changes it
    endpoint: Endpoint,
    replay: Replay = None,
    output: Output = DEFAULT_OUTPUT,
    domains: Domains = DEFAULT_DOMAINS,
    source: ToolSource,
    asking: CaptureOptions,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Drive a model over harmless stub tools, or real ones, and write each of its calls as a row of a dataset.

    A row is on disk before the next step is taken, and a run that was broken off goes on with --resume: no row is
    written twice and none is lost. A bad call is a row with its problems. Exit code 1 means that the run could not be
    finished; what was written stays.
    """
    with usage_errors():
        names = _names(domains)
        chosen = [] if source.is_real else find_domains(names)
        hooks = approving(source)
        _check_sources(model, endpoint, replay)
        _check_files(Path(output), endpoint.record, replay, force=force)
        models = tuple(model) if endpoint.local is None else (endpoint.local_name,)
        settings = asking.settings(models, endpoint.mode)
    with run_errors(resumable=Path(output)):
        backend = _located(endpoint).backend(models[0], force=force) if replay is None else ReplayBackend(replay)
        how: dict[str, Any] = {"resume": resume, "force": force, "quiet": quiet, "hooks": hooks}
        if source.is_real:
            run = asyncio.run(_over_real_tools(source, names, backend, settings, Path(output), how))
        else:
            run = asyncio.run(run_capture(backend, chosen, settings, Path(output), **how))
    print_run(run, as_json=json)


def _names(domains: str) -> list[str]:
    from rightcall.capture.catalogue import names

    wanted = [name.strip() for name in domains.split(",") if name.strip()]
    return [each for name in wanted for each in (names() if name == "all" else [name])]


async def _over_real_tools(
    source: ToolSource, names: list[str], backend: BaseBackend, settings: Settings, output: Path, how: dict[str, Any]
) -> Capture:
    """A run whose tools are real, as long as the servers that have them stand."""
    async with real_tools(source) as tools:
        with contextlib.redirect_stdout(sys.stderr):  # what a tool prints is no part of what we print
            return await run_capture(backend, find_domains(names, tools=tools), settings, output, **how)


def _check_sources(model: list[str], endpoint: Endpoint, replay: str | None) -> None:
    """The answers come from one place."""
    local, base_url = endpoint.local, endpoint.base_url
    if local is None and not model:
        refuse("Missing option '--model'; or name one that runs here with --local")
    if replay is not None and (local is not None or base_url is not None or endpoint.record is not None):
        refuse("--replay takes the answers from a recording; --local, --base-url and --record ask a model")
    if local is not None and (base_url is not None or model):
        refuse("--local says which model; --base-url and --model are for models elsewhere")


def _check_files(output: Path, record: str | None, replay: str | None, *, force: bool) -> None:
    """Whatever may not be written over is refused before anything is asked or written."""
    check_output(output, force=force)
    if record is not None:
        check(record, force=force)
        if not is_stream(record) and Path(record).absolute() in (output.absolute(), journal_of(output).absolute()):
            refuse(f"--record {record!r} is where the rows or their journal are written; name another file")
    if replay is not None:
        keep_apart(output, [replay])


def _located(endpoint: Endpoint) -> Endpoint:
    """Where the server is: as said, as the environment says, else where a proxy of one's own listens."""
    names = HABITS[cast(Api, endpoint.api)].url_names
    if endpoint.base_url or any(os.environ.get(name) for name in names) or "OPENAI_BASE_URL" not in names:
        return endpoint
    return msgspec.structs.replace(endpoint, base_url=DEFAULT_URL)


async def run_capture(
    backend: BaseBackend,
    domains: list[Domain],
    settings: Settings,
    output: Path,
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    hooks: Sequence[HookLike] = (),
) -> Capture:
    """One run, told of on standard error. Raises what ended it."""
    with bar(shown=not hooks) as progress:
        watch = ShownProgress(progress, quiet=quiet)
        run = Capture(backend, domains, settings, output, resume=resume, force=force, watch=watch, hooks=hooks)
        async with backend:
            await run.go()
    return run


@contextmanager
def run_errors(*, resumable: Path | None = None) -> Iterator[None]:
    """What ends a run is one line on standard error and exit code 1."""
    try:
        with backend_errors():
            try:
                yield
            except (CaptureFailed, CannotResume) as error:
                say(str(error))
                raise typer.Exit(1) from None
    except KeyboardInterrupt:
        more = "; --resume goes on with it" if resumable is not None and journal_of(resumable).exists() else ""
        say(f"interrupted{more}")
        raise typer.Exit(1) from None


# -- what it came to ---------------------------------------------------------------------------------------------------


def _as_json(run: Capture) -> Json:
    return {
        "output": str(run.output),
        "journal": str(journal_of(run.output)),
        "scenarios": run.total,
        "scenario_errors": run.errors,
        "resumed": run.resumed,
        "rows": run.tally.rows,
        "models": msgspec.to_builtins(run.tally.models),
        "problems": dict(run.tally.problems),
        "repairs": dict(run.tally.repairs),
    }


HEADS = ("scenarios", "done", "calls wanted", "calls", "valid", "right tool", "right arguments", "tokens in", "out")


def figures(run: Capture, model: str) -> tuple[Any, ...]:
    of = run.tally.models.get(model)
    if of is None:
        return ("",) * len(HEADS)
    counted = (of.scenarios, of.done, of.wanted, of.calls, of.valid, of.right_tool, of.right_arguments)
    return (*counted, of.prompt_tokens, of.completion_tokens)


def print_run(run: Capture, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text(_as_json(run)))
        return
    out = console()
    rows = [(visible(model, one_line=True), *figures(run, model)) for model in run.tally.models]
    table(out, ("model", *HEADS), rows)
    said = f"{run.tally.rows} rows in {visible(str(run.output), one_line=True)}; {run.errors} scenarios failed"
    paragraph(out, said, hang=2)
