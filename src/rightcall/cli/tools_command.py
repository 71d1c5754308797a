"""`rightcall tools`: convert tool definitions for another provider, and report their errors."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from rightcall.api_names import api_name
from rightcall.cli.inputs import (
    AsJson,
    exit_with_usage_error,
    option_parser,
    print_message,
    read_json_file,
    usage_errors,
    write_text,
)
from rightcall.cli.layout import console, format_json, table
from rightcall.contracts.typescript import declarations
from rightcall.safe_text import brief
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import NAME_RULES, Provider, Toolset
from rightcall.types import to_json

_TYPESCRIPT = "typescript"
_FORMS = (*NAME_RULES, _TYPESCRIPT)


def _form(given: str) -> str:
    """Return the canonical name of an output form: a provider or "typescript". Raises `CallerError` for an unknown
    one."""
    return api_name(given, _FORMS, what="form of tools")


To = Annotated[
    str | None,
    typer.Option(
        parser=option_parser(_form),
        metavar="|".join(_FORMS),
        help="The output form; the names of the SDKs (openai, anthropic) work too. [default: a list]",
    ),
]


def tools(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON with tool definitions of any provider.")],
    to: To = None,
    extensions: Annotated[
        bool, typer.Option("--extensions/--no-extensions", help="Keep fields that the provider does not have, as x-...")
    ] = False,
    json: AsJson = False,
) -> None:
    """Convert tool definitions, and report their errors.

    Takes OpenAI, Anthropic, Gemini, Ollama and MCP definitions, a registry or plain schemas, also mixed. Writes them to
    standard output, as JSON or, for a prompt, as TypeScript declarations. Refused, repaired, conflicting, unchecked and
    renamed parts are reported on standard error, or in the object of --json. Exit code 1 means that a definition was
    refused.
    """
    data = read_json_file(file)
    if not isinstance(data, (list, dict)):
        exit_with_usage_error(f"{file!r} holds no tools: expected definitions, found {type(data).__name__}")
    with usage_errors():
        toolset = Toolset.lenient(data)
        converted = _convert(toolset, to, extensions=extensions) if to else []
    renamed = _renamed_tools(toolset, to)
    if json:
        typer.echo(format_json(_tools_json(toolset, to, converted, renamed)))
    else:
        _print_notes(toolset, renamed)
        _print_tools(toolset, converted if to else None)
    if toolset.refused:
        raise typer.Exit(1)


def _renamed_tools(toolset: Toolset, to: str | None) -> dict[str, str]:
    """Return the names that the provider `to` does not accept, with the names that replace them; empty without a
    provider."""
    if to is None or to == _TYPESCRIPT:
        return {}
    return {name: wire for name, wire in toolset.wire_names(to).items() if name != wire}


def _convert(toolset: Toolset, to: str, *, extensions: bool) -> list[Any] | str:
    """Return the definitions as JSON data for the provider `to`, or as the text of declarations for "typescript". With
    `extensions`, fields that the provider does not have are kept as x-...."""
    if to == _TYPESCRIPT:
        return declarations(toolset)
    return to_provider(toolset, cast(Provider, to), extensions=extensions)


def _tools_json(
    toolset: Toolset, to: str | None, converted: list[Any] | str, renamed: dict[str, str]
) -> dict[str, Any]:
    """Return the tools, converted if `to` is given, and all notes about them as JSON data."""
    listed = [{"name": tool.name, "source": toolset.source(tool.name)} for tool in toolset]
    return {
        "tools": converted if to else listed,
        "refused": [to_json(refusal) for refusal in toolset.refused],
        "mended": [to_json(note) for note in toolset.mended],
        "clashes": [to_json(clash) for clash in toolset.clashes],
        "relaxed": [to_json(relaxation) for relaxation in toolset.relaxed],
        "renamed": renamed,
    }


def _print_notes(toolset: Toolset, renamed: dict[str, str]) -> None:
    """Print refused, repaired, conflicting, unchecked and renamed parts on standard error."""
    for refusal in toolset.refused:
        print_message(f"refused: {refusal.message}")
    for note in toolset.mended:
        print_message(f"repaired: {note.tool!r} {note.path}: {note.before} was replaced by {note.after}")
    for clash in toolset.clashes:
        twice = "is declared twice, identically" if clash.same else "is declared twice, differently"
        print_message(f"clash: {clash.name!r} {twice}: kept {clash.kept}, dropped {clash.dropped}")
    for relaxation in toolset.relaxed:
        print_message(f"not checked: {relaxation.tool!r} {relaxation.path} ({relaxation.keyword}): {relaxation.reason}")
    for name, wire in renamed.items():
        print_message(f"renamed: {name!r} is {wire!r} there")


def _print_tools(toolset: Toolset, converted: list[Any] | str | None) -> None:
    """Print converted definitions as text or JSON; a table of the tools if `converted` is None."""
    if isinstance(converted, str):
        write_text(converted)
        return
    if converted is not None:
        typer.echo(format_json(converted))
        return
    rows = [(tool.name, toolset.source(tool.name), tool.description) for tool in toolset]
    if rows:
        table(console(), ("tool", "from", "what it does"), [[brief(cell, 200) for cell in each] for each in rows])
