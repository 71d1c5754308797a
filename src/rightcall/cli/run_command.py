"""`rightcall run`: a coding agent in the terminal, on the five workspace tools and those of MCP servers."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from rightcall.cli.approving import asked, typed
from rightcall.cli.endpoint import Endpoint, Model, backend_errors
from rightcall.cli.inputs import AsJson, Force, read_text, refuse, say, usage_errors
from rightcall.cli.layout import console, paragraph
from rightcall.cli.option_groups import grouped
from rightcall.cli.run_files import last_run, new_run, run_named
from rightcall.cli.run_options import AgentOptions, EarlierRun, Permits
from rightcall.cli.run_screen import JsonNotes, RunScreen, summary
from rightcall.cli.run_session import Question, RunSession, SessionSettings, take_back
from rightcall.cli.safe import visible
from rightcall.errors import CallerError, ToolError
from rightcall.loop.task_runner import RunJournal, read_notes
from rightcall.types import Json
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import DENIED
from rightcall.workspace.space import Workspace

LOCAL_CONTEXT = 2800  # tokens: those of a model that runs here, without its tools and its answer
SYSTEM = """\
You are a coding agent. You work in the folder {folder} on {system}. Use the tools: read files before you change them, \
make the smallest change that does the task, and check it. Paths are relative to the folder. When the task is done, or \
cannot be done, answer in a few words without calling a tool."""
_HELP = "/undo takes back the last change of a file, /plan plans and changes nothing or acts again, /exit ends it"
Shown = RunScreen | JsonNotes


@grouped
def run(
    *,
    task: Annotated[
        str, typer.Argument(metavar="[TASK|-]", help="What is to be done; - reads it from standard input.")
    ] = "",
    endpoint: Endpoint,
    model: Model = "",
    permits: Permits,
    agent: AgentOptions,
    earlier: EarlierRun,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Let a model work on the files of this folder: it reads, edits and runs commands, and you see what it does.

    Before a file is changed or a command runs you see the change and are asked; where nobody can be asked, nothing is
    changed unless --yes or --allow says so. Without a task it is a conversation, with /undo, /plan and /exit. Ctrl-C
    stops the task, a second one leaves. Everything is kept, and --resume goes on after a crash.

    Exit codes: 0 the task ended with an answer, 1 it did not (stopped, over a limit, changes refused), 2 wrong usage.
    """
    with backend_errors():
        earlier.check(task)
        _check(endpoint, model)
        if earlier.replay is not None:
            _replay(run_named(earlier.replay, agent.cwd), JsonNotes() if json else RunScreen(live=False))
            return
        space = Workspace(agent.cwd)
        if earlier.undo:
            _undo(space, Path(earlier.journal) if earlier.journal else last_run(agent.cwd))
            return
        words = read_text("-").strip() if task == "-" else task
        talks = not words and not earlier.resume
        if talks and not sys.stdin.isatty():
            refuse("say what is to be done: rightcall run 'the task'; or - to read it from standard input")
        screen: Shown = JsonNotes() if json else RunScreen(live=True, typed=talks)
        how = _settings(endpoint, permits, agent, space)
        journal = _journal(earlier, agent.cwd)
        with RunSession(endpoint.backend(model, force=force), space, journal, how) as session:
            _warn(space, permits, how)
            if talks:
                _converse(session, screen)
                return
            ended = _task(session, screen, words or None)
            if ended["status"] != "done" or _refused(journal, how):
                raise typer.Exit(1)


def _check(endpoint: Endpoint, model: str) -> None:
    if endpoint.local is not None and (endpoint.base_url is not None or model):
        refuse("--local says which model; --base-url and --model are for models elsewhere")


def _settings(endpoint: Endpoint, permits: Permits, agent: AgentOptions, space: Workspace) -> SessionSettings:
    asked_for = {"temperature": agent.temperature, "max_tokens": agent.max_tokens}
    words = SYSTEM.format(folder=space.root.path, system=platform.system())
    return SessionSettings(
        servers=agent.mcp or (),
        guard=agent.guard.value,
        max_turns=agent.max_turns,
        seconds=agent.max_seconds,
        context=agent.context or (LOCAL_CONTEXT if endpoint.local is not None else None),
        system=words if agent.system is None else agent.system,
        fields={name: value for name, value in asked_for.items() if value is not None},
        rules=[AllowRule.read(each) for each in permits.allow or ()],
        yes=permits.yes,
        asks=sys.stdin.isatty(),
        plans=permits.plan,
    )


def _journal(earlier: EarlierRun, folder: str) -> RunJournal:
    """The file of the run; one that is there is gone on with only where that was said."""
    if earlier.resume:
        path = run_named(earlier.journal, folder) if earlier.journal else last_run(folder)
    else:
        path = Path(earlier.journal) if earlier.journal else new_run(folder)
        if path.exists() and path.stat().st_size:
            refuse(f"{str(path)!r} holds a run already; --resume goes on with it, or name another file")
    return RunJournal(path)


def _warn(space: Workspace, permits: Permits, how: SessionSettings) -> None:
    if space.exposure and not permits.plan:
        say(space.exposure)
    if not how.asks and not (permits.yes or permits.plan):
        say("nobody is here to be asked, so nothing is changed but what --allow says; --yes allows everything")


def _refused(journal: RunJournal, how: SessionSettings) -> bool:
    """Was something kept from running because nobody could be asked?"""
    denied = [note for note in journal.notes if note["event"] == "result" and note["reason"] == DENIED]
    if how.asks or not denied:
        return False
    names = ", ".join(dict.fromkeys([str(note["name"]) for note in denied]))
    say(f"{len(denied)} calls were refused ({names}): nobody was here to be asked; see --yes and --allow")
    return True


# -- one task ----------------------------------------------------------------------------------------------------------


def _task(session: RunSession, screen: Shown, task: str | None) -> Json:
    """Runs a task to its end and shows it. The first Ctrl-C stops it, the second one leaves."""
    session.begin(task)
    stopping = False
    while True:
        try:
            for item in session.items():
                _see(item, screen)
            screen.pause()
            return session.finish()
        except KeyboardInterrupt:
            screen.pause()
            if stopping:
                say("left; what was done is kept, and --resume goes on with it")
                os._exit(1)  # a tool that cannot be stopped must not keep anybody here
            stopping = True
            say("stopping; Ctrl-C again leaves at once")
            session.stop()


def _see(item: object, screen: Shown) -> None:
    if isinstance(item, Question):
        screen.pause()
        name = item.invocation.tool.name
        answer = asked(f"allow {name} {summary(name, item.invocation.arguments)}", item.rule)
        with suppress(Exception):  # it was cancelled meanwhile
            item.answer.set_result(answer)
    elif isinstance(item, dict):
        screen.note(item)
    else:
        screen.event(item)  # type: ignore[arg-type]


# -- a conversation ----------------------------------------------------------------------------------------------------


def _converse(session: RunSession, screen: Shown) -> None:
    say(f"what is to be done? {_HELP}")
    while True:
        try:
            line = typed("> ", ends="/exit").strip()
        except KeyboardInterrupt:
            line = "/exit"
            typer.echo(err=True)
        if line == "/exit":
            return
        if line.startswith("/"):
            _command(session, line)
        elif line:
            _task(session, screen, line)


def _command(session: RunSession, line: str) -> None:
    if line == "/plan":
        session.plan(not session.plans)
        say("planning: nothing is changed" if session.plans else "acting again")
    elif line == "/undo":
        try:
            say(session.undo())
        except (ToolError, CallerError) as error:
            say(str(error))
    else:
        say(_HELP)


# -- runs that were ----------------------------------------------------------------------------------------------------


def _replay(path: Path, screen: Shown) -> None:
    """A run again, from its file alone."""
    for note in read_notes(path):
        screen.note(note)
    screen.pause()


def _undo(space: Workspace, path: Path) -> None:
    with usage_errors():
        journal = RunJournal(path)
    try:
        said = take_back(journal, space)
    except (ToolError, CallerError) as error:
        say(str(error))
        raise typer.Exit(1) from None
    finally:
        journal.close()
    paragraph(console(), visible(said, one_line=True))
