"""`rightcall capture`: a model, driven over stub tools; each of its calls becomes a durable row of a dataset."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer

from rightcall.api_names import Api
from rightcall.backends.address import HABITS
from rightcall.backends.base import BaseBackend
from rightcall.backends.cassette import check
from rightcall.backends.exchange import Timeouts
from rightcall.backends.local import LocalBackend
from rightcall.backends.record import Recorder
from rightcall.backends.replay import ReplayBackend
from rightcall.capture.catalogue import DEFAULT, find_domains
from rightcall.capture.domain import Domain
from rightcall.capture.resumption import CannotResume, journal_of
from rightcall.capture.runner import Capture, CaptureFailed, check_output
from rightcall.capture.settings import Settings
from rightcall.cli import endpoint as server
from rightcall.cli.capture_watch import ShownProgress, bar
from rightcall.cli.chat_command import Local
from rightcall.cli.inputs import AsJson, Force, refuse, say, usage_errors
from rightcall.cli.layout import console, paragraph, table
from rightcall.cli.safe import json_text, visible
from rightcall.files.streams import is_stream
from rightcall.files.whole_files import keep_apart
from rightcall.types import Json

DEFAULT_URL = "http://127.0.0.1:8081/v1"
DEFAULT_DOMAINS = ",".join(DEFAULT)
DEFAULT_OUTPUT = "target/dataset/capture.jsonl"


def _value(text: str | None) -> str | None:
    """A flag in the place of a value means that the value was forgotten."""
    if text is not None and text.startswith("--"):
        raise typer.BadParameter(f"a value is missing before {text}")
    return text


def _values(texts: list[str]) -> list[str]:
    for text in texts:
        if not (_value(text) or "").strip():
            raise typer.BadParameter("the model's name is blank")
    return texts


def _domains(text: str) -> str:
    if not [name for name in (_value(text) or "").split(",") if name.strip()]:
        raise typer.BadParameter("name at least one domain")
    return text


Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        callback=_values,
        help="The model; several times for several, one after the other.",
        rich_help_panel="The server",
    ),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", callback=_value, help="JSON lines; rows are appended.")
]
Domains = Annotated[
    str,
    typer.Option(metavar="NAME,...", callback=_domains, help="Domains by name, or .toml files of your own, or all."),
]


def capture(
    model: Models = [],  # noqa: B006 - typer wants a list, and never changes it
    local: Local = None,
    base_url: server.BaseUrl = None,
    api: server.Api = "chat",
    api_key_env: server.ApiKeyEnv = None,
    mode: server.Mode = server.ModeName.auto,
    guard: Annotated[
        server.GuardName,
        typer.Option(help="What stands between the model and the tools: nothing, or parse with its repairs."),
    ] = server.GuardName.parse,
    output: Output = DEFAULT_OUTPUT,
    domains: Domains = DEFAULT_DOMAINS,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="How often each scenario is run.")] = 1,
    max_turns: Annotated[int, typer.Option(min=1, metavar="N", help="Answers of the model in one scenario.")] = 4,
    max_scenario_errors: Annotated[
        int, typer.Option(min=0, metavar="N", help="More failed scenarios than that end the run; 0: the first does.")
    ] = 25,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that this file was last used for.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Scenarios that are run at a time.")] = 1,
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Solved scenarios of the same domain that the model is shown first.")
    ] = 0,
    required: Annotated[bool, typer.Option("--required", help="The first answer must be a call.")] = False,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 gives the likeliest answer.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="The longest answer, in tokens.")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="For the same answers again, if the server can; run I has seed N+I.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="A call that cannot be read fails its scenario.")] = False,
    forge_compat: Annotated[
        bool, typer.Option("--forge-compat", help="Send a result's status as _forge, which other servers may refuse.")
    ] = False,
    connect_timeout: server.ConnectTimeout = server.LIMITS.connect,
    first_byte_timeout: server.FirstByteTimeout = server.LIMITS.first_byte,
    idle_timeout: server.IdleTimeout = server.LIMITS.idle,
    timeout: server.TotalTimeout = server.LIMITS.total,
    retries: server.RetryCount = 2,
    record: server.Record = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="CASSETTE", help="Answers come from this recording.", rich_help_panel="The server"),
    ] = None,
    force: Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of single scenarios and rows.")] = False,
    json: AsJson = False,
) -> None:
    """Drive a model over harmless stub tools and write each of its calls as a row of a dataset.

    A row is on disk before the next step is taken, and a run that was broken off goes on with --resume: no row is
    written twice and none is lost. A bad call is a row with its problems. Exit code 1 means that the run could not be
    finished; what was written stays.
    """
    with usage_errors():
        chosen = _find(domains)
        _check_sources(model, local, base_url, record, replay)
        _check_files(Path(output), record, replay, force=force)
        settings = Settings(
            models=tuple(model) if local is None else (_local_name(local),),
            runs=runs,
            max_turns=max_turns,
            max_scenario_errors=max_scenario_errors,
            mode=mode.value,
            guard=guard.value,
            choice="required" if required else "auto",
            examples=examples,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            strict=strict,
            forge_compat=forge_compat,
            concurrency=concurrency,
        )
    with run_errors(resumable=Path(output)):
        if replay is not None:
            backend: BaseBackend = ReplayBackend(replay)
        elif local is not None:
            limits = Timeouts(connect=connect_timeout, first_byte=first_byte_timeout, idle=idle_timeout, total=timeout)
            backend = LocalBackend(local, mode=mode.value, timeouts=limits)
        else:
            backend = server.endpoint(
                _address(base_url, cast(Api, api)),
                api=api,
                model=model[0],
                api_key_env=api_key_env,
                mode=mode,
                connect_timeout=connect_timeout,
                first_byte_timeout=first_byte_timeout,
                idle_timeout=idle_timeout,
                timeout=timeout,
                retries=retries,
            )
        if record is not None:
            backend = Recorder(backend, record, force=force)
        run = run_capture(backend, chosen, settings, Path(output), resume=resume, force=force, quiet=quiet)
    print_run(run, as_json=json)


def _find(domains: str) -> list[Domain]:
    from rightcall.capture.catalogue import names

    wanted = [name.strip() for name in domains.split(",") if name.strip()]
    return find_domains([each for name in wanted for each in (names() if name == "all" else [name])])


def _local_name(local: str) -> str:
    from rightcall.backends.models import is_path

    return Path(local).stem if is_path(local) else local


def _check_sources(
    model: list[str], local: str | None, base_url: str | None, record: str | None, replay: str | None
) -> None:
    """The answers come from one place."""
    if local is None and not model:
        refuse("Missing option '--model'; or name one that runs here with --local")
    if replay is not None and (local is not None or base_url is not None or record is not None):
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


def _address(base_url: str | None, api: Api) -> str | None:
    """Where the server is: as said, as the environment says, else where a proxy of one's own listens."""
    habit = HABITS[api]
    if base_url or any(os.environ.get(name) for name in habit.url_names) or "OPENAI_BASE_URL" not in habit.url_names:
        return base_url
    return DEFAULT_URL


def run_capture(
    backend: BaseBackend,
    domains: list[Domain],
    settings: Settings,
    output: Path,
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Capture:
    """One run, told of on standard error. Raises what ended it."""
    with bar() as progress:
        watch = ShownProgress(progress, quiet=quiet)
        run = Capture(backend, domains, settings, output, resume=resume, force=force, watch=watch)
        asyncio.run(_within(backend, run))
    return run


async def _within(backend: BaseBackend, run: Capture) -> None:
    async with backend:
        await run.go()


@contextmanager
def run_errors(*, resumable: Path | None = None) -> Iterator[None]:
    """What ends a run is one line on standard error and exit code 1."""
    try:
        with server.backend_errors():
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
