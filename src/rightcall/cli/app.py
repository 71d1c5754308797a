"""The command line application: groups of commands, help pages, usage errors and failures of standard output.

`CommandGroup` is used in place of `typer.Typer`. Each command is imported when it is run, so that a command does not
wait for modules that it does not need.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rightcall import __version__
from rightcall.cli.inputs import print_message
from rightcall.cli.layout import Page, console, definitions, line_width, paragraph

# Commands in the order of the help page, each with the module and the function that implement it.
COMMANDS = {
    "parse": "parse_command:parse_command",
    "check": "calls_command:check_command",
    "repair": "calls_command:repair_command",
    "call": "call_command:call_command",
    "report": "report_command:report",
    "tools": "tools_command:tools",
    "contract": "contract_command:contract_command",
    "render": "render_command:render_command",
    "grammar": "grammar_command:grammar_command",
    "detect": "parse_command:detect_command",
    "formats": "formats_command:formats",
    "explain": "explain_command:explain",
    "replay": "replay_command:replay",
    "serve": "serve_command:serve_command",
    "doctor": "doctor_command:doctor",
    "demo": "demo_command:demo",
    "chat": "chat_command:chat",
    "run": "run_command:run_command",
    "capture": "capture_command:capture",
    "eval": "eval_command:eval_command",
    "model": "model_command:model",
    "mcp": "mcp_command:mcp",
    "domains": "domains_command:domains",
    "dataset": "dataset_command:dataset",
}


# -- failures of standard output ---------------------------------------------------------------------------------------

CLOSED = 141  # 128 and the number of SIGPIPE, as shells report it
_CURES = {errno.ENOSPC: "free some space", errno.EDQUOT: "free some space", errno.EFBIG: "see `ulimit -f`"}


@contextmanager
def output_failures() -> Iterator[None]:
    """Return a context that ends this process if standard output cannot be written: silently for a closed pipe, else
    with one line.

    A closed pipe gives exit code 141, as for a program that SIGPIPE ends: a reader that closes it, as `head` does,
    needs no message. A full or failing disk gives exit code 1; any other `OSError` is raised."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        raise SystemExit(CLOSED) from None
    except OSError as error:
        if error.errno not in (*_CURES, errno.EIO):
            raise
        _discard_stdout()
        cure = _CURES.get(error.errno or 0, "check the device")
        print(f"rightcall: cannot write to standard output: {error.strerror}; {cure}", file=sys.stderr)
        raise SystemExit(1) from None


def _discard_stdout() -> None:
    """Redirect standard output to the null device: the interpreter flushes it at exit and would report an error."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # a stream without a file descriptor
        pass


# -- groups and commands -----------------------------------------------------------------------------------------------


class CommandGroup(typer.Typer):
    """`typer.Typer` with our help pages and without its tracebacks."""

    def __init__(self, **options: Any) -> None:
        defaults = {"cls": HelpedGroup, "no_args_is_help": True, "add_completion": False, "rich_markup_mode": None}
        super().__init__(pretty_exceptions_enable=False, **{**defaults, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Return the decorator that adds a function as a command with the help page of `help_page`. `name` is the
        command's name, None for that of the function."""
        return super().command(name, **{"cls": HelpedCommand, **options})


class HelpedCommand(TyperCommand):
    """A command with our help page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write `help_page` of this command to `formatter`."""
        formatter.write(help_page(self, ctx))


class HelpedGroup(TyperGroup):
    """A group of commands with our help page, usage errors in one line, and failures of standard output reported."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write `help_page` of this group to `formatter`."""
        formatter.write(help_page(self, ctx))

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the arguments into a context and return it. Exits if standard output cannot be written, as --help
        does."""
        with output_failures():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name. Exits if standard output cannot be written."""
        with output_failures():
            return super().invoke(ctx)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line and exit. Wrong usage is reported in one line, with exit code 2.

        With `standalone_mode=False`, return the command's result and raise its errors, as in the base class.
        """
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            sys.exit(super().main(*args, **{**options, "standalone_mode": False}))
        except typer.Abort:
            print_message("interrupted")
            sys.exit(130)
        except Exception as error:
            if not hasattr(error, "format_message"):  # not raised by the option parser
                raise
            _report_usage_error(error)


def _report_usage_error(error: Any) -> None:
    """Report an error of the option parser in one line on standard error and exit with its code; for a group that was
    called without arguments, print its help instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help(), err=True)
    else:
        command = getattr(error.ctx, "command_path", "rightcall") if getattr(error, "ctx", None) else "rightcall"
        message = error.format_message().rstrip(".")
        print_message(f"{message}{'' if message.endswith('?') else ';'} see `{command} --help`")
    sys.exit(error.exit_code)


# -- the application ---------------------------------------------------------------------------------------------------


class LazyCommands(HelpedGroup):
    """The group of the commands in `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help page."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return the command, imported on first use; None if the name is unknown.

        For an unknown name all commands are imported, so that the error message can suggest the closest one.
        """
        for each in [name] if name in COMMANDS else COMMANDS:
            if each not in self.commands:
                self.commands[each] = _load_command(each)
        return super().get_command(ctx, name)


def _load_command(name: str) -> Any:
    """Import the attribute that `COMMANDS` gives for `name` and return it as a command: a `CommandGroup` as a group, a
    function wrapped."""
    module, _, attribute = COMMANDS[name].partition(":")
    value = getattr(import_module(f"rightcall.cli.{module}"), attribute)
    if isinstance(value, CommandGroup):
        command: Any = typer.main.get_group(value)
    else:
        group = CommandGroup()
        group.command(name)(value)
        command = typer.main.get_command(group)
    command.name = name
    return command


app = CommandGroup(cls=LazyCommands, add_completion=True)


def _print_version(requested: bool) -> None:
    """Print the version and exit, if `requested`; otherwise do nothing."""
    if requested:
        typer.echo(f"rightcall {__version__}")
        raise typer.Exit()


@app.callback()
def rightcall(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Turn the output of any language model into tool calls that can be trusted.

    Exit codes: 0 success, 1 a blocking problem was found, 2 wrong usage.
    """


# -- help pages --------------------------------------------------------------------------------------------------------

_MAX_COLUMNS = 100  # longer lines are hard to read
_DEFAULT_COLUMNS = 80
_POSITIVE = re.compile(r"(; |  \[)x>=(?:0|1|0\.0|0\.001)\b(?=\])")  # an obvious limit, not worth showing
_AT_LEAST = re.compile(r"\bx>=([\d.]+)")
_BETWEEN = re.compile(r"(?<![\d.])([\d.]++)<=x<=([\d.]++)")
_WHOLE_NUMBER = re.compile(r"(?<![\d.])(\d+)\.0(?![\d.])")
_SHORT_NOTE = re.compile(r"\[(?:default|at least|required|\d)[^\[\]]{0,28}\]")
_NO_BREAK_SPACE = "\u00a0"
_TYPE_NAMES = {"<str>": "TEXT", "<text>": "TEXT", "<int range>": "N", "<int>": "N", "<float range>": "NUMBER"}


def help_page(command: Any, ctx: Any) -> str:
    """Return the help page of a command as text, in lines that fit the terminal."""
    page = Page(min(line_width(console()) or _DEFAULT_COLUMNS, _MAX_COLUMNS))
    pieces = [piece.replace("{", "").replace("}", "") for piece in command.collect_usage_pieces(ctx)]
    paragraph(page, " ".join(pieces), label=f"Usage: {ctx.command_path} ")
    for text in _paragraphs(command.help or ""):
        page.print()
        paragraph(page, text, hang=2, label="  ")
    for title, pairs in _sections(command, ctx).items():
        page.print(f"\n{title}:")
        definitions(page, pairs)
    return page.text.replace(_NO_BREAK_SPACE, " ")


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines separate, each on one line."""
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return a dict from the title of each section of a help page to the names and help texts of its arguments, options
    or commands. Empty sections are left out."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        if param.param_type_name == "argument":
            title, name = "Arguments", record[0].partition(" <")[0]
        else:
            title, name = getattr(param, "rich_help_panel", None) or "Options", _option_name(record[0])
        sections.setdefault(title, []).append((name, _option_help(record[1])))
    if isinstance(command, TyperGroup):
        sections["Commands"] = list(_commands(command, ctx))
    return {title: pairs for title, pairs in sections.items() if pairs}


def _option_name(name: str) -> str:
    """Return the names of an option, as the option parser formats them, with our names for its type: `--n N` for `--n
    <int>`."""
    for type_name, metavar in _TYPE_NAMES.items():
        name = name.replace(type_name, metavar)
    return name.replace("<", "").replace(">", "")


def _option_help(text: str) -> str:
    """Return the help text of an option with its limits in words, such as "at least 2" or "1 to 65535".

    Obvious limits are left out. A short default gets no-break spaces, so that it stays on one line.
    """
    text = _POSITIVE.sub(lambda match: "" if match[1] == "; " else " [", text).replace(" []", "")
    text = _BETWEEN.sub(r"\1 to \2", _AT_LEAST.sub(r"at least \1", text))
    text = re.sub(r" {2,}", " ", _WHOLE_NUMBER.sub(r"\1", text)).strip()
    return _SHORT_NOTE.sub(lambda match: match[0].replace(" ", _NO_BREAK_SPACE), text)


def _commands(group: TyperGroup, ctx: Any) -> Iterable[tuple[str, str]]:
    """Yield the name and the first paragraph of help ("" without help) of each visible command of a group. The commands
    are imported."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            yield name, next(iter(_paragraphs(command.help or "")), "")
