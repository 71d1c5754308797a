"""`rightcall contract`: write the part of a prompt that describes the tools and how to call them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rightcall.cli.inputs import (
    AsJson,
    FormatFile,
    choose_format,
    exit_with_usage_error,
    format_names,
    read_format_file,
    read_text,
    read_tools,
    usage_errors,
    write_text,
)
from rightcall.cli.layout import format_json
from rightcall.contracts import contract as make_contract
from rightcall.contracts.ledger import Ledger
from rightcall.formats.spec import Format
from rightcall.types import to_json

_MAX_EXAMPLES = 1_000_000  # bytes of examples


class Mode(StrEnum):
    """Whether the model has a tool channel."""

    text = "text"
    native = "native"


def contract_command(
    tools: Annotated[
        str, typer.Option("--tools", "-t", metavar="FILE|-", help="JSON with tool definitions of any provider.")
    ],
    mode: Annotated[Mode, typer.Option(help="text, or native for an API with native tools.")] = Mode.text,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="The wire format of calls; contract is rightcall's own.",
            autocompletion=format_names,
        ),
    ] = "contract",
    format_file: FormatFile = None,
    compact: Annotated[bool, typer.Option("--compact", help="One line per tool; tool_schema shows the rest.")] = False,
    budget: Annotated[
        int | None, typer.Option(min=0, metavar="TOKENS", help="Shorten tools, longest first, until the text fits.")
    ] = None,
    require_action: Annotated[bool, typer.Option("--require-action", help="The reply must begin with a call.")] = False,
    examples: Annotated[str | None, typer.Option(metavar="FILE", help="A file with additional examples.")] = None,
    ledger: Annotated[bool, typer.Option("--ledger", help="Add the task ledger and how to keep it.")] = False,
    json: AsJson = False,
) -> None:
    """Write a prompt with which a model can call tools, also on a server without tool support.

    Without --format, the prompt describes the protocol that rightcall parses as format `contract`. With it, tools and
    calls are written in the format of that model family, for a plain completion endpoint. Tokens are estimated as four
    bytes each. Exit code 1 means that even the shortest text exceeds the budget.
    """
    toolset = read_tools(tools)
    assert toolset is not None
    with usage_errors():
        prompt = make_contract(
            toolset,
            mode=mode.value,
            format=_choose_format(format, format_file),
            compact=compact,
            budget=budget,
            require_action=require_action,
            examples=read_text(examples, _MAX_EXAMPLES) if examples else "",
            ledger=Ledger() if ledger else None,
        )
    if json:
        names = [tool.name for tool in prompt.tools]
        typer.echo(format_json({"text": prompt.text, "stats": to_json(prompt.stats), "tools": names}))
    else:
        write_text(prompt.text)
    if not prompt.stats.fits:
        raise typer.Exit(1)


def _choose_format(name: str, file: str | None) -> str | Format:
    """Return the format called `name`, or the one that the TOML `file` defines (None: no file). Exits with a usage
    error if a file and another name than "contract" are given; raises `CallerError` for an unknown or invalid
    format."""
    if file is None:
        return choose_format(name, None)
    if name != "contract":
        exit_with_usage_error("--format and --format-file exclude each other; give one of them")
    return read_format_file(file)
