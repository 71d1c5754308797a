"""The options of `rightcall run`; those of every command that asks a model are in `endpoint.py`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from rightcall.cli.endpoint import MaxTokens, Temperature
from rightcall.cli.inputs import refuse

_CHANGES = "What may be changed"
_EARLIER = "Runs that were"


class LoopGuard(StrEnum):
    none = "none"
    parse = "parse"
    full = "full"


class Permits(msgspec.Struct, frozen=True, kw_only=True):
    """What may be changed without being asked about."""

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
        typer.Option("--plan", help="Only read, and answer with a plan; nothing is changed.", rich_help_panel=_CHANGES),
    ] = False


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the agent works, with what, and for how long."""

    cwd: Annotated[str, typer.Option("--cwd", metavar="DIR", help="The folder to work in.")] = "."
    mcp: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND|URL", help="The tools of this MCP server too; repeatable."),
    ] = None
    guard: Annotated[
        LoopGuard,
        typer.Option(
            help="What keeps the model on its task: nothing, being told what was wrong with its calls, or everything."
        ),
    ] = LoopGuard.full
    max_turns: Annotated[int, typer.Option(min=1, metavar="N", help="Answers of the model that a task may take.")] = 50
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="SECONDS", help="How long a task may take; looked at between two answers."),
    ] = None
    context: Annotated[
        int | None,
        typer.Option(min=200, metavar="N", help="Tokens of a request; older turns are shortened and left out."),
    ] = None
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the model is told first, instead of our own words.")
    ] = None
    temperature: Temperature = None
    max_tokens: MaxTokens = None


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """Which run to go on with, to show or to undo."""

    journal: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file of the run. [default: a new one, or the newest of this folder]",
            rich_help_panel=_EARLIER,
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last run in this folder.", rich_help_panel=_EARLIER)
    ] = False
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|last", help="Show a run again, without a model; no tool is run.", rich_help_panel=_EARLIER
        ),
    ] = None
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Take back the last change that the last run made to a file; not what a command did.",
            rich_help_panel=_EARLIER,
        ),
    ] = False

    def check(self, task: str) -> None:
        """One thing at a time."""
        if self.replay is not None and (self.resume or self.undo or task or self.journal is not None):
            refuse("--replay shows a run and does nothing else; leave out the task, --resume, --undo and --journal")
        if self.undo and (self.resume or task):
            refuse("--undo takes back a change and does nothing else; leave out the task and --resume")
