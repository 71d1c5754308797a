"""All commands in one place. Each is imported when it is asked for: what a run does not need it does not wait for."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from rightcall import __version__
from rightcall.cli.help_page import CommandGroup, HelpedGroup

# The word on the command line, in the order of the help page: where it is.
COMMANDS = {
    "parse": "parse_command:parse",
    "check": "calls_command:check",
    "repair": "calls_command:repair",
    "call": "call_command:call",
    "report": "report_command:report",
    "tools": "tools_command:tools",
    "contract": "contract_command:contract",
    "render": "render_command:render",
    "grammar": "grammar_command:grammar",
    "detect": "parse_command:detect",
    "formats": "formats_command:formats",
    "explain": "explain_command:explain",
    "replay": "replay_command:replay",
    "serve": "serve_command:serve",
    "doctor": "doctor_command:doctor",
    "demo": "demo_command:demo",
    "chat": "chat_command:chat",
    "run": "run_command:run",
    "capture": "capture_command:capture",
    "eval": "eval_command:eval_",
    "model": "model_command:model",
    "mcp": "mcp_command:mcp",
    "domains": "domains_command:domains",
    "dataset": "dataset_group:dataset",
}


class LateCommands(HelpedGroup):
    """A group of the commands in `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: Any, name: str) -> Any:
        """For a word that is none, all are imported: the likeliest are named."""
        for each in [name] if name in COMMANDS else COMMANDS:
            if each not in self.commands:
                self.commands[each] = _command(each)
        return super().get_command(ctx, name)


def _command(name: str) -> Any:
    module, _, thing = COMMANDS[name].partition(":")
    found = getattr(import_module(f"rightcall.cli.{module}"), thing)
    if isinstance(found, CommandGroup):
        made: Any = typer.main.get_group(found)
    else:
        alone = CommandGroup()
        alone.command(name)(found)
        made = typer.main.get_command(alone)
    made.name = name
    return made


app = CommandGroup(cls=LateCommands, add_completion=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rightcall {__version__}")
        raise typer.Exit()


@app.callback()
def rightcall(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Turns what any language model writes into tool calls that can be trusted.

    Exit codes: 0 fine, 1 something blocking was found, 2 wrong usage.
    """
