"""`rightcall run`: a coding agent in the terminal, on the five workspace tools and those of MCP servers."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text as Styled

from rightcall.cli.endpoint import Endpoint, MaxTokens, Model, Temperature, backend_errors
from rightcall.cli.inputs import AsJson, Force, exit_with_usage_error, grouped, print_message, read_text, usage_errors
from rightcall.cli.layout import LABEL, Flow, console, json_line, paragraph, row
from rightcall.cli.run_session import Question, RunSession, SessionSettings, undo_last_edit
from rightcall.cli.show import STYLES, call_status, format_repair
from rightcall.cli.user_tools import ask_permission, read_line
from rightcall.errors import CallerError, ToolError
from rightcall.loop.task_runner import RunJournal, read_notes
from rightcall.safe_text import brief, visible
from rightcall.types import Arguments, Call, CallStart, Event, Json, Reasoning, Recast, Repair, Text
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import DENIED
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, READ_FILE, WRITE_FILE
from rightcall.workspace.space import Workspace

# -- options -----------------------------------------------------------------------------------------------------------

_CHANGES = "Permissions"
_EARLIER = "Earlier runs"


class LoopGuard(StrEnum):
    """A preset of the guard for a run."""

    none = "none"
    parse = "parse"
    full = "full"


class Permits(msgspec.Struct, frozen=True, kw_only=True):
    """Options that permit calls without a question to the user."""

    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Run every call without asking.", rich_help_panel=_CHANGES)
    ] = False
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL[:PATTERN]",
            help="Do not ask about these calls: 'bash:git status *', 'edit_file:src/*', a tool's name; repeatable.",
            rich_help_panel=_CHANGES,
        ),
    ] = None
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Read only, and answer with a plan; change nothing.", rich_help_panel=_CHANGES),
    ] = False


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the agent: its folder, tools, limits and system message."""

    cwd: Annotated[str, typer.Option("--cwd", metavar="DIR", help="The folder to work in.")] = "."
    mcp: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND|URL", help="Add the tools of this MCP server; repeatable."),
    ] = None
    guard: Annotated[
        LoopGuard,
        typer.Option(help="What keeps the model on its task: nothing, feedback on bad calls, or all policies."),
    ] = LoopGuard.full
    max_turns: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum number of answers of the model per task.")
    ] = 50
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="SECONDS", help="Time limit of a task, checked between two answers."),
    ] = None
    context: Annotated[
        int | None,
        typer.Option(min=200, metavar="N", help="Maximum tokens of a request; older turns are shortened or dropped."),
    ] = None
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System message, instead of the default one.")] = (
        None
    )
    temperature: Temperature = None
    max_tokens: MaxTokens = None


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """Options that select an earlier run to continue, show or undo."""

    journal: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file of the run. [default: a new one, or the newest of this folder]",
            rich_help_panel=_EARLIER,
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last run in this folder.", rich_help_panel=_EARLIER)
    ] = False
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|last", help="Show a run again, without running a model or tools.", rich_help_panel=_EARLIER
        ),
    ] = None
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Undo the last file change of the last run; effects of commands are kept.",
            rich_help_panel=_EARLIER,
        ),
    ] = False

    def check(self, task: str) -> None:
        """Exit with a usage error if --replay, --undo, --resume and --journal contradict each other, or if there is a
        `task` with --replay or --undo; otherwise do nothing."""
        if self.replay is not None and (self.resume or self.undo or task or self.journal is not None):
            exit_with_usage_error("--replay only shows a run; it excludes a task, --resume, --undo and --journal")
        if self.undo and (self.resume or task):
            exit_with_usage_error("--undo only undoes a change; it excludes a task and --resume")


# -- the command -------------------------------------------------------------------------------------------------------

LOCAL_CONTEXT = 2800  # tokens of a local model's context, without tools and answer
SYSTEM = """\
You are a coding agent. You work in the folder {folder} on {system}. Use the tools: read files before you change them, \
make the smallest change that does the task, and check it. Paths are relative to the folder. When the task is done, or \
cannot be done, answer in a few words without calling a tool."""
_HELP = "/undo undoes the last change of a file, /plan toggles read-only planning, /exit quits"


@grouped
def run_command(
    *,
    task: Annotated[str, typer.Argument(metavar="[TASK|-]", help="The task; - reads it from standard input.")] = "",
    endpoint: Endpoint,
    model: Model = "",
    permits: Permits,
    agent: AgentOptions,
    earlier: EarlierRun,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Run a coding agent in this folder: it reads and edits files and runs commands, and you see what it does.

    You are asked before a file is changed or a command runs. Without a terminal to ask, such calls are refused unless
    --yes or --allow permits them. Without a task it is a conversation, with /undo, /plan and /exit. Ctrl-C stops the
    task, a second one quits. The run is kept in a file, and --resume continues it after a crash.

    Exit codes: 0 the task ended with an answer, 1 it did not (stopped, over a limit, changes refused), 2 wrong usage.
    """
    with backend_errors():
        earlier.check(task)
        endpoint.check_model(model)
        if earlier.replay is not None:
            _replay(find_run(earlier.replay, agent.cwd), JsonNotes() if json else RunScreen(live=False))
            return
        space = Workspace(agent.cwd)
        if earlier.undo:
            _undo_last_edit(space, Path(earlier.journal) if earlier.journal else last_run(agent.cwd))
            return
        text = read_text("-").strip() if task == "-" else task
        interactive = not text and not earlier.resume
        if interactive and not sys.stdin.isatty():
            exit_with_usage_error("no task: pass it as an argument, or - to read it from standard input")
        screen: RunScreen | JsonNotes = JsonNotes() if json else RunScreen(live=True, typed=interactive)
        settings = _session_settings(endpoint, permits, agent, space)
        journal = _open_journal(earlier, agent.cwd)
        with RunSession(endpoint.backend(model, force=force), space, journal, settings) as session:
            _print_warnings(space, permits, settings)
            if interactive:
                _converse(session, screen)
                return
            outcome = _run_task(session, screen, text or None)
            if outcome["status"] != "done" or _report_refusals(journal, settings):
                raise typer.Exit(1)


def _session_settings(endpoint: Endpoint, permits: Permits, agent: AgentOptions, space: Workspace) -> SessionSettings:
    """Return the settings of the session. The context of a local model is limited by default."""
    fields = {"temperature": agent.temperature, "max_tokens": agent.max_tokens}
    system = SYSTEM.format(folder=space.root.path, system=platform.system())
    return SessionSettings(
        servers=agent.mcp or (),
        guard=agent.guard.value,
        max_turns=agent.max_turns,
        seconds=agent.max_seconds,
        context=agent.context or (LOCAL_CONTEXT if endpoint.local is not None else None),
        system=system if agent.system is None else agent.system,
        fields={name: value for name, value in fields.items() if value is not None},
        rules=[AllowRule.read(each) for each in permits.allow or ()],
        yes=permits.yes,
        asks=sys.stdin.isatty(),
        plans=permits.plan,
    )


def _open_journal(earlier: EarlierRun, folder: str) -> RunJournal:
    """Open the journal of the run and return it: the file that --journal names; else a new file, or with --resume the
    newest of `folder`. Exits with a usage error if --resume finds no file, or if the file of a new run is not empty."""
    if earlier.resume:
        path = find_run(earlier.journal, folder) if earlier.journal else last_run(folder)
    else:
        path = Path(earlier.journal) if earlier.journal else new_run(folder)
        if path.exists() and path.stat().st_size:
            exit_with_usage_error(f"{str(path)!r} already has a run; --resume continues it, or name another file")
    return RunJournal(path)


def _print_warnings(space: Workspace, permits: Permits, settings: SessionSettings) -> None:
    """Print on standard error what the agent's commands can reach, and that calls are refused if there is no terminal
    to ask. Nothing is printed for what the options exclude."""
    if space.exposure and not permits.plan:
        print_message(space.exposure)
    if not settings.asks and not (permits.yes or permits.plan):
        print_message("standard input is not a terminal: only what --allow permits is changed; --yes allows everything")


def _report_refusals(journal: RunJournal, settings: SessionSettings) -> bool:
    """Print how many calls were refused because the user could not be asked, and return True; print nothing and return
    False if there are none, or if the user could be asked."""
    denied = [note for note in journal.notes if note["event"] == "result" and note["reason"] == DENIED]
    if settings.asks or not denied:
        return False
    names = ", ".join(dict.fromkeys([str(note["name"]) for note in denied]))
    print_message(f"{len(denied)} calls were refused ({names}): there was no terminal to ask; see --yes and --allow")
    return True


# -- tasks and conversations -------------------------------------------------------------------------------------------


def _run_task(session: RunSession, screen: RunScreen | JsonNotes, task: str | None) -> Json:
    """Run a task (None: continue, see `RunSession.start_task`), show what happens, and return its last note. The first
    Ctrl-C stops the task, a second one ends this process. Raises the error that ended the task."""
    session.start_task(task)
    stopping = False
    while True:
        try:
            for item in session.items():
                _show_item(item, screen)
            screen.pause()
            return session.finish()
        except KeyboardInterrupt:
            screen.pause()
            if stopping:
                print_message("quit; the run is kept, and --resume continues it")
                os._exit(1)  # a tool that cannot be stopped must not block the exit
            stopping = True
            print_message("stopping; Ctrl-C again quits at once")
            session.stop()


def _show_item(item: object, screen: RunScreen | JsonNotes) -> None:
    """Show one item of the session: print a note or an event, or ask a question and set its answer."""
    if isinstance(item, Question):
        screen.pause()
        name = item.invocation.tool.name
        answer = ask_permission(f"allow {name} {call_line(name, item.invocation.arguments)}", item.rule)
        with suppress(Exception):  # the question may have been cancelled in the meantime
            item.answer.set_result(answer)
    elif isinstance(item, dict):
        screen.note(item)
    else:
        screen.event(item)  # type: ignore[arg-type]


def _converse(session: RunSession, screen: RunScreen | JsonNotes) -> None:
    """Read tasks and slash commands from the user until /exit, Ctrl-C or the end of input, and run each. Ctrl-C during
    a task stops only the task."""
    print_message(f"type a task; {_HELP}")
    while True:
        try:
            line = read_line("> ", at_end="/exit").strip()
        except KeyboardInterrupt:
            line = "/exit"
            typer.echo(err=True)
        if line == "/exit":
            return
        if line.startswith("/"):
            _run_slash_command(session, line)
        elif line:
            _run_task(session, screen, line)


def _run_slash_command(session: RunSession, line: str) -> None:
    """Run the command `line`: /plan (switch planning on or off) or /undo (undo the last file change). Print the help
    for any other. Failures are reported, not raised."""
    if line == "/plan":
        session.set_planning(not session.plans)
        print_message("planning: nothing is changed" if session.plans else "planning is off")
    elif line == "/undo":
        try:
            print_message(session.undo())
        except (ToolError, CallerError) as error:
            print_message(str(error))
    else:
        print_message(_HELP)


# -- earlier runs ------------------------------------------------------------------------------------------------------


def _replay(path: Path, screen: RunScreen | JsonNotes) -> None:
    """Show an earlier run from its journal alone, without a model or tools."""
    for note in read_notes(path):
        screen.note(note)
    screen.pause()


def _undo_last_edit(space: Workspace, path: Path) -> None:
    """Undo the last file change that a journal records, and print what was done. Exits with code 1 if that fails."""
    with usage_errors():
        journal = RunJournal(path)
    try:
        message = undo_last_edit(journal, space)
    except (ToolError, CallerError) as error:
        print_message(str(error))
        raise typer.Exit(1) from None
    finally:
        journal.close()
    paragraph(console(), visible(message, one_line=True))


# -- files of runs -----------------------------------------------------------------------------------------------------

_LAST = "last"


def runs_folder(workspace: str) -> Path:
    """Return the folder of the runs of a workspace, below RIGHTCALL_RUNS or the platform's folder for program state.

    It is outside the workspace, so that an agent neither reads nor commits earlier runs. It need not exist.
    """
    real = os.path.realpath(workspace)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", os.path.basename(real))[:40] or "root"
    return _state_folder() / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def _state_folder() -> Path:
    """Return the folder for the runs of all workspaces: RIGHTCALL_RUNS, or one below the platform's folder for program
    state."""
    if own := os.environ.get("RIGHTCALL_RUNS"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "rightcall" / "runs"
    xdg = os.environ.get("XDG_STATE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".local" / "state") / "rightcall" / "runs"


def new_run(workspace: str) -> Path:
    """Return the path of the file for a new run of this workspace; nothing is created. The names sort in the order of
    creation."""
    return runs_folder(workspace) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.jsonl"


def last_run(workspace: str) -> Path:
    """Return the path of the newest run in this workspace. Exits with a usage error if there is none."""
    found = sorted(runs_folder(workspace).glob("*.jsonl"))
    if not found:
        exit_with_usage_error(f"no earlier run in {workspace!r}: pass --journal FILE")
    return found[-1]


def find_run(name: str, workspace: str) -> Path:
    """Return the path of the run in the file `name`; for "last", unless there is such a file, that of the newest run of
    the workspace. Exits with a usage error if the file does not exist."""
    if name == _LAST and not os.path.exists(name):
        return last_run(workspace)
    if not os.path.exists(name):
        exit_with_usage_error(f"file {name!r} does not exist; `last` is the newest run in the folder")
    return Path(name)


# -- display -----------------------------------------------------------------------------------------------------------

MOST_DIFF = 200  # lines of a diff
MOST_OUTPUT = 16  # lines of an output
_FILES = (READ_FILE, WRITE_FILE, EDIT_FILE, LIST_DIR)
_DIFF = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
_SHOWN_WITH_CALL = ("problems", "unknown_tool")
_WAITING = "waiting for the model"


class JsonNotes:
    """Writes the notes of a run as lines of JSON, with the methods of `RunScreen`."""

    def event(self, event: Event) -> None:
        """Do nothing with a partial event: a note with the complete record follows."""

    def note(self, note: Json) -> None:
        """Write a note as one line of JSON to standard output."""
        typer.echo(json_line(note))

    def pause(self) -> None:
        """Do nothing: there is no live display."""


class RunScreen:
    """Shows a run: text, calls, changes as diffs, and results in brief.

    `event` gets partial output, `note` finished records; a replayed run has only notes. With `live`, events are shown
    as they arrive and their notes are not repeated; `typed` means that the user typed the task on this screen.
    """

    def __init__(self, *, live: bool, typed: bool = False) -> None:
        self._out, self._live, self._typed = console(), live, typed
        self._flow = Flow(self._out)
        self._status = WaitStatus(live)
        self._calls: dict[str, Json] = {}
        self._written = 0

    def event(self, event: Event) -> None:
        """Print a piece of text, reasoning or a `Recast`; while a call is written, update only the status line. Other
        events are ignored: a note follows."""
        if isinstance(event, Text | Reasoning):
            self._status.clear()
            self._write("reasoning" if isinstance(event, Reasoning) else "text", event.text)
        elif isinstance(event, CallStart):
            self._flow.close()
            self._written = 0
            self._status.show(f"writing {brief(event.name, 40)}")
        elif isinstance(event, Arguments):
            self._written += len(event.json)
            self._status.show(f"writing a call, {self._written:,} characters")
        elif isinstance(event, Recast) and event.kind != "thought":
            self.pause()
            self._out.print(f"(the last {event.chars} characters were {event.kind})", style="dim")

    def note(self, note: Json) -> None:
        """Print a finished record by the method `_show_...` for its event; nothing if there is none, or for text that
        was shown live."""
        kind = str(note.get("event"))
        if kind in ("text", "reasoning"):
            if not self._live:
                self._write(kind, str(note["text"]))
            return
        show = getattr(self, f"_show_{kind}", None)
        if show is not None:
            self.pause()
            show(note)

    def pause(self) -> None:
        """End the current line and clear the status line."""
        self._status.clear()
        self._flow.close()

    def _write(self, kind: str, text: str) -> None:
        """Print streamed text in the style of its kind: text or reasoning."""
        self._flow.write(visible(text), STYLES["reasoning" if kind == "reasoning" else "text"])

    # -- notes, each by the name of its event --------------------------------------------------------------------------

    def _show_task(self, note: Json) -> None:
        """Print the task, unless the user typed it here."""
        if not self._typed:
            paragraph(self._out, visible(str(note["text"])), "bold", label="> ")
        self._status.show(_WAITING)

    def _show_problem(self, note: Json) -> None:
        """Print a problem or note: its code and message."""
        label, style = ("problem", "red") if note["blocking"] else ("note", "yellow")
        row(self._out, label, f"{note['code']}: {brief(str(note['message']), 500)}", style)

    def _show_call(self, note: Json) -> None:
        """Keep a call for later notes, and print it only if it is rejected: a runnable call is printed when it
        starts."""
        self._calls[str(note["id"])] = note
        call = _read_call(note)
        if not call.ok:
            row(self._out, "call", call_status(call))

    def _show_start(self, note: Json) -> None:
        """Print a call that is starting, except for a read-only one, of which only the result is printed; update the
        status line."""
        if not note["read_only"]:
            self._print_call(str(note["id"]), str(note["name"]))
        self._status.show(f"running {brief(str(note['name']), 40)}")

    def _print_call(self, id: str, name: str, more: str = "", style: str = "bold") -> None:
        """Print the call with this id, of the tool `name`, in one line, followed by `more`, and its repairs below."""
        call = self._calls.get(id, {})
        row(self._out, brief(name, 40), Styled(call_line(name, call.get("arguments") or {}), style).append(more, "dim"))
        for repair in msgspec.convert(call.get("repairs", []), list[Repair]):
            row(self._out, "repair", format_repair(repair), "yellow")

    def _show_diff(self, note: Json) -> None:
        """Print a diff in colours, up to `MOST_DIFF` lines."""
        lines = visible(str(note["diff"])).split("\n")
        for line in lines[:MOST_DIFF]:
            paragraph(self._out, line, _DIFF.get(line[:1], "default"), label=" " * LABEL)
        if len(lines) > MOST_DIFF:
            paragraph(self._out, f"({len(lines) - MOST_DIFF} more lines)", "dim", label=" " * LABEL)

    def _show_asked(self, note: Json) -> None:
        """Print how the user answered the question about a call."""
        answer = visible(str(note["answer"]), one_line=True)
        text = {"yes": "allowed", "no": "not allowed"}.get(answer, f"always allowed: {answer}")
        reason = f": {brief(str(note['words']), 300)}" if note.get("words") else ""
        row(self._out, "", text + reason, "dim")

    def _show_result(self, note: Json) -> None:
        """Print the result of a call, shortened; of a file or folder that was read only its size. Nothing is printed
        for a rejected call, which was shown already."""
        id, name, text = str(note["id"]), str(note["name"]), str(note["text"])
        if note["kind"] == "refused" and id in self._calls and not _read_call(self._calls[id]).ok:
            return  # the call was already shown with its problems
        is_bad = bool(note["error"]) or text.startswith("ERROR")
        if name in (READ_FILE, LIST_DIR) and not is_bad:
            self._print_call(id, name, f"  {_count_entries(name, text)}", "default")
        else:
            if note["kind"] == "refused" or (name in (READ_FILE, LIST_DIR)):
                self._print_call(id, name)
            row(self._out, "", _shorten_output(visible(text)), "red" if is_bad else "dim")
        self._status.show(_WAITING)

    def _show_guard(self, note: Json) -> None:
        """Print what a policy of the guard did; nothing if it refused a call that was shown as rejected already."""
        if note["action"] == "refuse" and note["policy"] in _SHOWN_WITH_CALL:
            return
        row(self._out, "guard", f"{note['policy']}: {note['action']}: {brief(str(note['reason']), 300)}", "yellow")

    def _show_undone(self, note: Json) -> None:
        """Print the path of the file whose change was undone."""
        row(self._out, "undone", brief(str(note["path"]), 300), "yellow")

    def _show_over(self, note: Json) -> None:
        """Print how the task ended and what it cost."""
        reason = f"{brief(str(note['reason']), 500)}; " if note.get("reason") else ""
        row(self._out, str(note["status"]), reason + _format_cost(note), "dim" if note["status"] == "done" else "red")


class WaitStatus:
    """A spinner that shows what the run waits for, on a terminal only."""

    def __init__(self, live: bool) -> None:
        self._err: Console | None = console(stderr=True) if live and sys.stderr.isatty() else None
        self._status: Status | None = None

    def show(self, text: str) -> None:
        """Show this text, and start the spinner if needed."""
        if self._err is None:
            return
        if self._status is None:
            self._status = self._err.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def clear(self) -> None:
        """Stop the spinner, if it is shown."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _read_call(note: Json) -> Call:
    """Return the call that a note of a call records."""
    return msgspec.convert({key: value for key, value in note.items() if key not in ("event", "time")}, Call)


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    """Return what a call does, in one line: the command of bash, the path of a file tool, or the arguments as JSON."""
    if name == BASH:
        folder = f"   (in {brief(str(arguments['cwd']))})" if arguments.get("cwd") else ""
        return f"$ {visible(str(arguments.get('command', '')))}{folder}"
    if name in _FILES:
        line = f", line {arguments['line']}" if arguments.get("line") else ""
        return brief(str(arguments.get("path", "")), 300) + line
    return brief(json_line(dict(arguments)), 300)


def _count_entries(name: str, text: str) -> str:
    """Return the number of lines in `text`, the result of the tool `name`, as text: `3 lines`, or `3 entries` for
    list_dir."""
    count = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    one, many = ("entry", "entries") if name == LIST_DIR else ("line", "lines")
    return f"{count:,} {one if count == 1 else many}"


def _shorten_output(text: str) -> str:
    """Return an output with at most `MOST_OUTPUT` of its lines: a line with their number replaces those in the middle.
    Lines over 1,000 characters are cut."""
    lines = text.split("\n")
    if len(lines) <= MOST_OUTPUT:
        return _cut_long_lines(lines)
    half = MOST_OUTPUT // 2
    return _cut_long_lines([*lines[:half], f"({len(lines) - 2 * half} more lines)", *lines[-half:]])


def _cut_long_lines(lines: Sequence[str]) -> str:
    """Return the lines joined, each cut to 1,000 characters with the number of characters left out."""
    return "\n".join([line if len(line) <= 1000 else f"{line[:1000]} … ({len(line) - 1000} more)" for line in lines])


def _format_cost(note: Json) -> str:
    """Return what a task cost as text: its turns, calls, tokens if known, and seconds."""
    tokens = f", {note['prompt']:,} tokens in, {note['completion']:,} out" if note["prompt"] else ""
    return f"{_count(note['turns'], 'turn')}, {_count(note['calls'], 'call')}{tokens}, {note['seconds']:.1f} s"


def _count(count: int, word: str) -> str:
    """Return a number and a word, in the plural unless the number is 1."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
