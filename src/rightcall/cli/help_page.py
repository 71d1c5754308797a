"""How `--help` looks, and how wrong usage is told: the same for every command.

app = CommandGroup(help="...")       # instead of typer.Typer
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rightcall.cli.closed_output import output_failures
from rightcall.cli.inputs import say
from rightcall.cli.layout import Page, console, definitions, paragraph, room

_WIDEST = 100  # columns: longer lines are hard to read
_USUAL = 80
_POSITIVE = re.compile(r"(; |  \[)x>=(?:0|1|0\.0|0\.001)\b(?=\])")  # which nobody needs to be told
_AT_LEAST = re.compile(r"\bx>=([\d.]+)")
_BETWEEN = re.compile(r"([\d.]+)<=x<=([\d.]+)")
_WHOLE = re.compile(r"(?<![\d.])(\d+)\.0(?![\d.])")
_GLUED = re.compile(r"\[(?:default|at least|required|\d)[^\[\]]{0,28}\]")
_GLUE = "\u00a0"
_KINDS = {"<str>": "TEXT", "<text>": "TEXT", "<int range>": "N", "<int>": "N", "<float range>": "NUMBER"}


class CommandGroup(typer.Typer):
    """As `typer.Typer`, with our help pages and without its tracebacks."""

    def __init__(self, **options: Any) -> None:
        usual = {"cls": HelpedGroup, "no_args_is_help": True, "add_completion": False, "rich_markup_mode": None}
        super().__init__(pretty_exceptions_enable=False, **{**usual, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": HelpedCommand, **options})


class HelpedCommand(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_page(self, ctx))


class HelpedGroup(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_page(self, ctx))

    def make_context(self, *args: Any, **options: Any) -> Any:
        with output_failures():  # --help is written while options are read
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with output_failures():
            return super().invoke(ctx)

    def main(self, *args: Any, **options: Any) -> Any:
        """Wrong usage is one line and exit code 2, as everywhere."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            sys.exit(super().main(*args, **{**options, "standalone_mode": False}))
        except typer.Abort:
            say("interrupted")
            sys.exit(130)
        except Exception as error:
            if not hasattr(error, "format_message"):  # not one of the parser of options
                raise
            _tell(error)


def _tell(error: Any) -> None:
    """What the parser of options refuses; without any words, the help is what was asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help(), err=True)
    else:
        where = getattr(error.ctx, "command_path", "rightcall") if getattr(error, "ctx", None) else "rightcall"
        said = error.format_message().rstrip(".")
        say(f"{said}{'' if said.endswith('?') else ';'} `{where} --help` says what there is")
    sys.exit(error.exit_code)


def help_page(command: Any, ctx: Any) -> str:
    """The whole page, in lines that fit the terminal."""
    page = Page(min(room(console()) or _USUAL, _WIDEST))
    pieces = [piece.replace("{", "").replace("}", "") for piece in command.collect_usage_pieces(ctx)]
    paragraph(page, " ".join(pieces), label=f"Usage: {ctx.command_path} ")
    for text in _paragraphs(command.help or ""):
        page.print()
        paragraph(page, text, hang=2, label="  ")
    for title, pairs in _sections(command, ctx).items():
        page.print(f"\n{title}:")
        definitions(page, pairs)
    return page.text.replace(_GLUE, " ")


def _paragraphs(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        is_argument = param.param_type_name == "argument"
        title = "Arguments" if is_argument else getattr(param, "rich_help_panel", None) or "Options"
        sections.setdefault(title, []).append(_said(_named(record[0], is_argument=is_argument), record[1]))
    if isinstance(command, TyperGroup):
        sections["Commands"] = list(_commands(command, ctx))
    return {title: pairs for title, pairs in sections.items() if pairs}


def _said(word: str, meaning: str) -> tuple[str, str]:
    """An option and what it means, with its limits in words. A short default is not broken."""
    told = _POSITIVE.sub(lambda found: "" if found[1] == "; " else " [", meaning).replace(" []", "")
    told = _BETWEEN.sub(r"\1 to \2", _AT_LEAST.sub(r"at least \1", told))
    told = re.sub(r" {2,}", " ", _WHOLE.sub(r"\1", told)).strip()
    return word, _GLUED.sub(lambda found: found[0].replace(" ", _GLUE), told)


def _named(word: str, *, is_argument: bool) -> str:
    """What is to be written, with a word for its kind."""
    if is_argument:
        return word.partition(" <")[0]
    for kind, said in _KINDS.items():
        word = word.replace(kind, said)
    return word.replace("<", "").replace(">", "")


def _commands(group: TyperGroup, ctx: Any) -> Iterable[tuple[str, str]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            yield name, next(iter(_paragraphs(command.help or "")), "")
