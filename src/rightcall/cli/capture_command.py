"""`rightcall capture`: run a model with tools and write each of its calls as a row of a dataset."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from rightcall.api_names import Api
from rightcall.backends.address import API_DEFAULTS
from rightcall.backends.base import BaseBackend
from rightcall.backends.cassette import check_cassette
from rightcall.backends.recording import ReplayBackend
from rightcall.capture.capture_journal import CannotResume, journal_path
from rightcall.capture.captured_rows import OUTCOME
from rightcall.capture.domain import DEFAULT_DOMAINS, Domain, find_domains
from rightcall.capture.runner import Capture, CaptureFailed, Watch, check_output
from rightcall.capture.scenario_run import JournalEntry
from rightcall.capture.settings import SYSTEM, Settings, Task
from rightcall.cli.endpoint import Endpoint, GuardName, MaxTokens, ModeName, Temperature, backend_errors
from rightcall.cli.inputs import (
    AsJson,
    Force,
    domain_names,
    exit_with_usage_error,
    grouped,
    print_message,
    read_text,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, paragraph, table
from rightcall.cli.user_tools import ask_permission, connect_mcp_servers, load_tools
from rightcall.dispatching.hook import HookLike, Invocation
from rightcall.safe_text import brief, visible
from rightcall.storage.streams import is_stream
from rightcall.storage.whole_files import refuse_source_as_output
from rightcall.tools.toolset import Toolset
from rightcall.types import Json
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Approval, Permission

if TYPE_CHECKING:
    from rich.progress import Progress


# -- options -----------------------------------------------------------------------------------------------------------

_DEFAULT_DOMAINS = ",".join(DEFAULT_DOMAINS)
DEFAULT_OUTPUT = "target/dataset/capture.jsonl"
DEFAULT_URL = "http://127.0.0.1:8081/v1"


def _check_value(text: str | None) -> str | None:
    """Return the value of an option unchanged, also None. Raises `BadParameter` if it begins with "--": then it is the
    next option, and the value is missing."""
    if text is not None and text.startswith("--"):
        raise typer.BadParameter(f"a value is missing before {text}")
    return text


def _check_models(texts: list[str]) -> list[str]:
    """Return the names of models unchanged. Raises `BadParameter` if one is blank or begins with "--"."""
    for text in texts:
        if not (_check_value(text) or "").strip():
            raise typer.BadParameter("the model's name is blank")
    return texts


def _check_domains(text: str) -> str:
    """Return the comma-separated text of --domains unchanged. Raises `BadParameter` if it has no name or begins with
    "--"."""
    if not [name for name in (_check_value(text) or "").split(",") if name.strip()]:
        raise typer.BadParameter("name at least one domain")
    return text


Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        callback=_check_models,
        help="The model; repeatable, models run one after the other.",
        rich_help_panel="The server",
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="FILE", callback=_check_value, help="File of JSON lines; rows are appended."
    ),
]
Domains = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        callback=_check_domains,
        autocompletion=domain_names,
        help="Names of domains, paths of .toml files, or all.",
    ),
]
Replay = Annotated[
    str | None,
    typer.Option(metavar="CASSETTE", help="Take the answers from this recording.", rich_help_panel="The server"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the last run with this output file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not report single scenarios and rows.")]


class CaptureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for how often each scenario runs, and how the model is asked."""

    guard: Annotated[
        GuardName,
        typer.Option(help="What checks the calls before the tools: nothing, or the parser with its repairs."),
    ] = GuardName.parse
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of runs of each scenario.")] = 1
    max_turns: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of answers in one scenario.")] = 4
    max_scenario_errors: Annotated[
        int, typer.Option(min=0, metavar="N", help="End the run after more failed scenarios than this.")
    ] = 25
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Number of scenarios at the same time.")] = 1
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of solved scenarios of the same domain in the prompt.")
    ] = 0
    required: Annotated[bool, typer.Option("--required", help="The first answer must be a call.")] = False
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed, if the server supports one; run I has seed N+I.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="A call that cannot be parsed fails its scenario.")] = False
    forge_compat: Annotated[
        bool,
        typer.Option("--forge-compat", help="Send the status of a result as _forge, which other servers may reject."),
    ] = False

    system: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|FILE",
            callback=_check_value,
            help="System message, instead of the one which says that this is a test with stub tools.",
        ),
    ] = None

    def settings(self, models: tuple[str, ...], mode: ModeName) -> Settings:
        """Return the settings of a run with these models in this mode. Raises `CallerError` if they are invalid."""
        unchanged = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _CONVERTED}
        return Settings(
            models=models,
            mode=mode.value,
            guard=self.guard.value,
            choice="required" if self.required else "auto",
            system=SYSTEM if self.system is None else _resolve_system_message(self.system),
            **unchanged,
        )


_CONVERTED = ("guard", "required", "system")


def _resolve_system_message(text: str) -> str:
    """Return the content of the file whose name is `text`, stripped; if there is no such file, `text` itself. Exits if
    the file cannot be read."""
    is_file = len(text) < 4_000 and "\n" not in text and os.path.isfile(text)
    return read_text(text).strip() if is_file else text


class ToolSource(msgspec.Struct, frozen=True, kw_only=True):
    """Options for real tools in the place of stubs."""

    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            callback=_check_value,
            help="Run the tools of this Python module or file instead of stubs. The module's code runs.",
            rich_help_panel="Real tools",
        ),
    ] = None
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND|URL",
            help="Run the tools of this MCP server; repeatable.",
            rich_help_panel="Real tools",
        ),
    ] = None
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Run every call without asking; by default only read-only tools run unasked.",
            rich_help_panel="Real tools",
        ),
    ] = False

    @property
    def is_real(self) -> bool:
        """Return whether real tools are to be run, of a module or an MCP server, and not stubs."""
        return bool(self.tools or self.mcp)


# -- the command -------------------------------------------------------------------------------------------------------


@grouped
def capture(
    *,
    model: Models = [],  # noqa: B006 - typer needs a list, and never changes it
    endpoint: Endpoint,
    replay: Replay = None,
    output: Output = DEFAULT_OUTPUT,
    domains: Domains = _DEFAULT_DOMAINS,
    source: ToolSource,
    asking: CaptureOptions,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Run a model with harmless stub tools, or real ones, and write each of its calls as a row of a dataset.

    Each row is on disk before the next step, and --resume continues an interrupted run: no row is written twice or
    lost. A bad call is a row with its problems. Exit code 1 means that the run could not be finished; rows already
    written are kept.
    """
    with usage_errors():
        names = _parse_domain_option(domains)
        chosen = [] if source.is_real else find_domains(names)
        hooks = _approval_hooks(source)
        _check_sources(model, endpoint, replay)
        _check_files(Path(output), endpoint.record, replay, force=force)
        models = tuple(model) if endpoint.local is None else (endpoint.local_name,)
        settings = asking.settings(models, endpoint.mode)
    with run_errors(resumable=Path(output)):
        located = _with_default_url(endpoint)
        backend = ReplayBackend(replay) if replay is not None else located.backend(models[0], force=force)
        options: dict[str, Any] = {"resume": resume, "force": force, "quiet": quiet, "hooks": hooks}
        if source.is_real:
            run = asyncio.run(_run_with_real_tools(source, names, backend, settings, Path(output), options))
        else:
            run = asyncio.run(run_capture(backend, chosen, settings, Path(output), **options))
    _print_run(run, as_json=json)


def _parse_domain_option(domains: str) -> list[str]:
    """Split the option --domains into names of capture domains and paths of TOML files; "all" stands for all built-in
    domains. Duplicates are kept, names are not checked."""
    from rightcall.capture.domain import built_in_names

    wanted = [name.strip() for name in domains.split(",") if name.strip()]
    return [each for name in wanted for each in (built_in_names() if name == "all" else [name])]


def _check_sources(model: list[str], endpoint: Endpoint, replay: str | None) -> None:
    """Exit with a usage error if --replay is given together with a server or --record, if --local is combined with
    another server or --model, or if no model is named."""
    if replay is not None and (endpoint.local or endpoint.base_url or endpoint.record) is not None:
        exit_with_usage_error(
            "--replay takes the answers from a recording; it excludes --local, --base-url and --record"
        )
    endpoint.check_model(model[0] if model else "", required=True)


def _check_files(output: Path, record: str | None, replay: str | None, *, force: bool) -> None:
    """Check, before anything is sent, that the rows and the recording would overwrite no foreign file and not each
    other or the `replay`. Raises `CallerError`, or exits with a usage error."""
    check_output(output, force=force)
    if record is not None:
        check_cassette(record, force=force)
        if not is_stream(record) and Path(record).absolute() in (output.absolute(), journal_path(output).absolute()):
            exit_with_usage_error(f"--record {record!r} is the file of the rows or of their journal; name another file")
    if replay is not None:
        refuse_source_as_output(output, [replay])


def _with_default_url(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the URL of a local proxy as its server; unchanged if --base-url or an environment
    variable names a server, or if its API is not one of OpenAI's."""
    names = API_DEFAULTS[cast(Api, endpoint.api)].url_names
    if endpoint.base_url or any(os.environ.get(name) for name in names) or "OPENAI_BASE_URL" not in names:
        return endpoint
    return msgspec.structs.replace(endpoint, base_url=DEFAULT_URL)


@contextmanager
def run_errors(*, resumable: Path | None = None) -> Iterator[None]:
    """Return a context in which an error that ends a run, or Ctrl-C, is reported in one line and exits with code 1, and
    wrong usage with code 2.

    For Ctrl-C the line mentions --resume if the output file `resumable` has a journal."""
    try:
        with backend_errors():
            try:
                yield
            except (CaptureFailed, CannotResume) as error:
                print_message(str(error))
                raise typer.Exit(1) from None
    except KeyboardInterrupt:
        more = "; --resume continues it" if resumable is not None and journal_path(resumable).exists() else ""
        print_message(f"interrupted{more}")
        raise typer.Exit(1) from None


# -- the run -----------------------------------------------------------------------------------------------------------


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
    """Run a capture, report its progress on standard error, and return it. Raises the error that ended it."""
    with _progress_bar(shown=not hooks) as progress:
        watch = CaptureProgress(progress, quiet=quiet)
        run = Capture(backend, domains, settings, output, resume=resume, force=force, watch=watch, hooks=hooks)
        async with backend:
            await run.go()
    return run


async def _run_with_real_tools(
    source: ToolSource,
    names: list[str],
    backend: BaseBackend,
    settings: Settings,
    output: Path,
    options: dict[str, Any],
) -> Capture:
    """Connect to the tools that `source` names, run the capture of the domains `names` with them, and return it.
    Whatever tools print goes to standard error."""
    async with _open_real_tools(source) as tools:
        with contextlib.redirect_stdout(sys.stderr):  # keep what tools print out of our output
            return await run_capture(backend, find_domains(names, tools=tools), settings, output, **options)


@asynccontextmanager
async def _open_real_tools(source: ToolSource) -> AsyncIterator[Toolset]:
    """Yield the tools of the module and of the MCP servers as one toolset. The servers stay connected in this context.
    Raises `BackendError` for a server that cannot be used."""
    async with AsyncExitStack() as stack:
        loaded = [load_tools(source.tools)] if source.tools else []
        yield Toolset(*loaded, *await connect_mcp_servers(stack, source.mcp or ()))


def _approval_hooks(source: ToolSource) -> list[HookLike]:
    """Return a list with the hook that asks the user before a real tool runs, or with --yes one that allows all; an
    empty list for stubs. Exits with a usage error if the user must be asked without a terminal."""
    if not source.is_real:
        return []
    if source.yes:
        return [Approval(mode="bypass")]
    if not sys.stdin.isatty():
        exit_with_usage_error(
            "--tools and --mcp ask before each call, but standard input is not a terminal: pass --yes to allow all"
        )
    return [Approval(ask=_ask_user)]


async def _ask_user(invocation: Invocation) -> Permission:
    """Ask the user on the terminal whether this call may run, in a thread so that the event loop goes on, and return
    the answer."""
    name = invocation.tool.name
    text = f"run {brief(name)} {brief(invocation.call.json, 500)}?"
    return await asyncio.to_thread(ask_permission, text, AllowRule.offered(name, invocation.arguments, None))


# -- progress ----------------------------------------------------------------------------------------------------------


@contextmanager
def _progress_bar(*, shown: bool = True) -> Iterator[Progress | None]:
    """Yield a progress bar on standard error with rate and time left; None if `shown` is False or standard error is no
    terminal."""
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


class CaptureProgress(Watch):
    """Report the events of a run on standard error, one line each: `capture`, the kind of event, key=value pairs."""

    def __init__(self, progress: Progress | None, *, quiet: bool = False) -> None:
        self._progress, self._quiet = progress, quiet
        self._bar = None if progress is None else progress.add_task("capture", total=None, rate="")
        self._total = self._rows = 0

    def _print_line(self, line: str) -> None:
        """Print one line on standard error, above the progress bar if there is one."""
        out = console(stderr=True) if self._progress is None else self._progress.console
        paragraph(out, visible(line, one_line=True), hang=2)

    def start(self, run: Capture) -> None:
        """Print the output file and the settings of the run, and set the length of the progress bar."""
        self._total, settings = run.total, run.settings
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, total=run.total)
        domains = ",".join([domain.name for domain in run.domains])
        self._print_line(
            f"capture start output={run.output} model={','.join(settings.models)} domains={domains} "
            f"runs={settings.runs} scenarios={run.total} max_turns={settings.max_turns} "
            f"max_scenario_errors={settings.max_scenario_errors} mode={settings.mode} guard={settings.guard}"
        )

    def cut(self, path: Path, size: int) -> None:
        """Print a warning that the incomplete last line of the file at `path`, `size` bytes long, was removed."""
        self._print_line(f"capture warning {path}: the last line is incomplete; its {size} bytes are removed")

    def scenario(self, task: Task) -> None:
        """Print, unless quiet, that the scenario of this task begins."""
        if not self._quiet:
            self._print_line(f"capture scenario {self._describe_task(task)}")

    def _describe_task(self, task: Task) -> str:
        """Return number, run, domain, scenario and model of a task as text."""
        where = f"run={task.run} domain={task.domain.name} scenario={task.scenario.name}"
        return f"{task.number}/{self._total} {where} model={task.model}"

    def renamed(self, entry: JournalEntry, call: int, received: str, used: str) -> None:
        """Print a warning that the model repeated the call id `received`, and that the call gets the id `used`."""
        where = f"group={entry.group} turn={entry.turn + 1} call={call + 1}"
        self._print_line(f"capture warning {where} duplicate call id {received}; this call gets id {used}")

    def row(self, row: Json) -> None:
        """Count the row and, unless quiet, print a line with its group, turn, and tool and status, or outcome."""
        self._rows += 1
        if self._quiet:
            return
        trace = row["proxy_trace"]
        if row["kind"] == OUTCOME:
            what = f"outcome={row['outcome']['ended']}"
        else:
            call, status = row["candidate_call"], row["tool_result"]["status"]
            what = f"call={trace['call_index'] + 1} tool={call['name']} status={status}"
        self._print_line(f"capture row group={row['example_group_id']} turn={trace['turn'] + 1} {what}")

    def failed(self, task: Task, error: Exception) -> None:
        """Print a warning that the scenario of this task failed with this error."""
        self._print_line(f"capture warning scenario {self._describe_task(task)} failed: {error}")

    def done(self, task: Task) -> None:
        """Advance the progress bar, if there is one, by one scenario, whichever the `task` is, and update its rate of
        rows. Prints no line."""
        if self._progress is not None and self._bar is not None:
            self._progress.advance(self._bar)
            seconds = self._progress.tasks[0].elapsed or 0.0
            rate = f"{self._rows / seconds:.1f} rows/s" if seconds else ""
            self._progress.update(self._bar, rate=rate)

    def complete(self, run: Capture) -> None:
        """Print the totals of the finished run: file, errors, rows and tokens."""
        total = run.tally.total
        self._print_line(
            f"capture complete output={run.output} scenario_errors={run.errors} rows={run.tally.rows} "
            f"prompt_tokens={total.prompt_tokens} completion_tokens={total.completion_tokens}"
        )


# -- result ------------------------------------------------------------------------------------------------------------

_HEADS = ("scenarios", "done", "calls wanted", "calls", "valid", "right tool", "right arguments", "tokens in", "out")


def _print_run(run: Capture, *, as_json: bool) -> None:
    """Print the counts of each model in a finished run and where the rows are; `as_json`: the data of `_run_json`."""
    if as_json:
        typer.echo(format_json(_run_json(run)))
        return
    out = console()
    rows = [(visible(model, one_line=True), *_model_counts(run, model)) for model in run.tally.models]
    table(out, ("model", *_HEADS), rows)
    summary = f"{run.tally.rows} rows in {visible(str(run.output), one_line=True)}; {run.errors} scenarios failed"
    paragraph(out, summary, hang=2)


def _run_json(run: Capture) -> Json:
    """Return a finished run as JSON data: files, rows, and the counts of models, problems and repairs."""
    return {
        "output": str(run.output),
        "journal": str(journal_path(run.output)),
        "scenarios": run.total,
        "scenario_errors": run.errors,
        "resumed": run.resumed,
        "rows": run.tally.rows,
        "models": msgspec.to_builtins(run.tally.models),
        "problems": dict(run.tally.problems),
        "repairs": dict(run.tally.repairs),
    }


def _model_counts(run: Capture, model: str) -> tuple[Any, ...]:
    """Return the counts of one model in the order of `_HEADS`."""
    counts = run.tally.models[model]
    calls = (counts.scenarios, counts.done, counts.wanted, counts.calls, counts.valid)
    return (*calls, counts.right_tool, counts.right_arguments, counts.prompt_tokens, counts.completion_tokens)
