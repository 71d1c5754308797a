"""`rightcall render`: write calls as the text that a model would write."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rightcall.cli.inputs import (
    AsJson,
    File,
    FormatFile,
    ToolsFile,
    choose_format,
    exit_with_usage_error,
    format_names,
    print_message,
    read_json_file,
    read_tools,
    usage_errors,
    write_text,
)
from rightcall.cli.layout import format_json
from rightcall.errors import CannotCarry
from rightcall.formats import find
from rightcall.parsing.rendering import render as render_parts
from rightcall.storage.jsonl import finite
from rightcall.types import Call, Part, Reasoning, Text

_EXPECTED = 'expected a reply as `rightcall parse --json` prints it, or calls: [{"name": "f", "arguments": {}}]'


def render_command(
    file: File = "-",
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="NAME", help="Name or alias of the format.", autocompletion=format_names
        ),
    ] = None,
    format_file: FormatFile = None,
    tools: ToolsFile = None,
    as_json: AsJson = False,
) -> None:
    """Write calls, given as JSON, in a format.

    Takes the output of `rightcall parse --json`, or a list of calls. The text is exact in a file or a pipe; on a
    terminal, invisible characters are shown as escapes. Exit code 1 means that the format cannot represent it.
    """
    with usage_errors():
        if format is None and format_file is None:
            exit_with_usage_error(
                "no format: pass --format NAME (`rightcall formats` lists them) or --format-file FILE"
            )
        chosen, toolset = choose_format(format or "auto", format_file), read_tools(tools)
        if chosen == "auto":
            exit_with_usage_error(
                "'auto' is only for parsing; to render, name a format: `rightcall formats` lists them"
            )
        parts = read_parts(read_json_file(file))
        try:
            text = render_parts(parts, format=chosen, tools=toolset)
        except CannotCarry as error:
            print_message(str(error))
            raise typer.Exit(1) from None
    if as_json:
        typer.echo(format_json({"format": find(chosen).name, "text": text}))
    else:
        write_text(text)


def read_parts(data: Any) -> list[Part]:
    """Return the parts in JSON data: a parsed reply, a list of parts, or one call. Exits with a usage error for other
    data."""
    if isinstance(data, dict):
        data = data["parts"] if "parts" in data else data.get("calls", [data])
    if not isinstance(data, list):
        exit_with_usage_error(f"the input is {type(data).__name__}; {_EXPECTED}")
    return [_parse_part(item, i) for i, item in enumerate(data)]


def _parse_part(item: Any, i: int) -> Part:
    """Return the part of a reply (text, reasoning or a call) that a JSON value describes. Exits with a usage error that
    names item `i + 1` for any other value."""
    if not isinstance(item, dict):
        exit_with_usage_error(f"item {i + 1} is {type(item).__name__}; {_EXPECTED}")
    kind = item.get("type", "call")
    if kind in ("text", "reasoning"):
        text = item.get("text")
        if not isinstance(text, str):
            exit_with_usage_error(f'item {i + 1} is {kind} without a string "text"; {_EXPECTED}')
        return Text(text, str(item.get("tag") or "")) if kind == "text" else Reasoning(text)
    inner = item["function"] if isinstance(item.get("function"), dict) else item
    name, arguments = inner.get("name"), inner.get("arguments")
    if not isinstance(name, str):
        exit_with_usage_error(f'item {i + 1} has no "name"; {_EXPECTED}')
    arguments, exact = _parse_arguments(arguments, item.get("json"))
    if not isinstance(arguments, dict):
        exit_with_usage_error(f'the "arguments" of item {i + 1} are not a JSON object; {_EXPECTED}')
    id = item.get("id")
    complete = item.get("complete", True) is not False
    return Call(name, arguments, exact, id if isinstance(id, str) else "", complete=complete)


def _parse_arguments(given: Any, exact: Any) -> tuple[Any, str]:
    """Return the arguments of a call, and their exact JSON text, or "" if it is not known. `given` are the arguments,
    as a value or as JSON text; `exact` is their text in a parsed reply, used only if it means the same.

    The caller checks that the result is an object: JSON text that is invalid is returned as the text itself."""
    if isinstance(given, str):
        return (_decode_json(given), given) if given.strip() else ({}, "{}")
    decoded = _decode_json(exact) if isinstance(exact, str) else None
    if isinstance(decoded, dict) and finite(decoded) == given:
        return decoded, exact
    return ({} if given is None else given), ""


def _decode_json(text: str) -> Any:
    """Return the JSON value in a text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
