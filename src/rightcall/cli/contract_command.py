"""`rightcall contract`: the part of a prompt that tells a model which tools there are and how to call them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rightcall.cli.completing import format_names
from rightcall.cli.inputs import (
    AsJson,
    FormatFile,
    choose_format,
    read_format,
    read_text,
    read_tools,
    refuse,
    usage_errors,
    write_text,
)
from rightcall.cli.safe import json_text
from rightcall.contracts import contract as make
from rightcall.contracts.ledger import Ledger
from rightcall.formats.spec import Format
from rightcall.types import to_json

_MOST = 1_000_000  # bytes of examples


class Mode(StrEnum):
    text = "text"
    native = "native"


def contract(
    tools: Annotated[
        str, typer.Option("--tools", "-t", metavar="FILE|-", help="JSON with tool definitions of any provider.")
    ],
    mode: Annotated[Mode, typer.Option(help="text, or native for an API with a tool channel.")] = Mode.text,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="The wire to write calls in; contract is our own.",
            autocompletion=format_names,
        ),
    ] = "contract",
    format_file: FormatFile = None,
    compact: Annotated[bool, typer.Option("--compact", help="One line per tool; tool_schema shows the rest.")] = False,
    budget: Annotated[
        int | None, typer.Option(min=0, metavar="TOKENS", help="Shorten tools, dearest first, until the text fits.")
    ] = None,
    require_action: Annotated[bool, typer.Option("--require-action", help="The reply must begin with a call.")] = False,
    examples: Annotated[str | None, typer.Option(metavar="FILE", help="Text with examples of your own.")] = None,
    ledger: Annotated[bool, typer.Option("--ledger", help="Add the task ledger and how to keep it.")] = False,
    json: AsJson = False,
) -> None:
    """Write the prompt that lets a model call tools, whether its server knows of tools or not.

    Without --format it asks for the protocol that rightcall reads as format `contract`; with one, tools and calls are
    written as that family of models knows them, for a plain completion endpoint. Tokens are estimated, four bytes
    each. Exit code 1 means that not even the shortest text is within the budget.
    """
    toolset = read_tools(tools)
    assert toolset is not None
    with usage_errors():
        made = make(
            toolset,
            mode=mode.value,
            format=_chosen(format, format_file),
            compact=compact,
            budget=budget,
            require_action=require_action,
            examples=read_text(examples, _MOST) if examples else "",
            ledger=Ledger() if ledger else None,
        )
    if json:
        names = [tool.name for tool in made.tools]
        typer.echo(json_text({"text": made.text, "stats": to_json(made.stats), "tools": names}))
    else:
        write_text(made.text)
    if not made.stats.fits:
        raise typer.Exit(1)


def _chosen(name: str, file: str | None) -> str | Format:
    if file is None:
        return choose_format(name, None)
    if name != "contract":
        refuse("--format and --format-file both say what the format is; give one of them")
    return read_format(file)
