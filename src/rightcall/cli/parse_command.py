"""`rightcall parse` and `rightcall detect`: parse a model's text into calls, and detect its format."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rightcall.cli.inputs import (
    AsJson,
    File,
    Files,
    ReadingOptions,
    ToolsFile,
    choose_format,
    exit_with_usage_error,
    grouped,
    print_message,
    read_text,
    read_tools,
    register_own_formats,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, heading
from rightcall.cli.row_options import RowOptions, exit_if_bad, one_file, run_key, run_rows
from rightcall.cli.show import show_events, show_reply, show_spans
from rightcall.datasets.rows.replies import REPLIES, ParseOptions, ReplyWork
from rightcall.parsing.detection import detect as detect_formats
from rightcall.parsing.parser import Parser
from rightcall.types import Event, Reply, to_json


class ReasoningMode(StrEnum):
    """Whether the reply begins inside reasoning."""

    auto = "auto"
    open = "open"
    off = "off"


@grouped
def parse_command(
    *,
    files: Files = None,
    reading: ReadingOptions,
    reasoning: Annotated[
        ReasoningMode, typer.Option(help="auto: by its markers; open: the prompt opened it; off: keep it as text.")
    ] = ReasoningMode.auto,
    finish: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Finish reason of the answer; length, content_filter and error mean truncated."
        ),
    ] = None,
    stream: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Feed N characters at a time; the reply is the same.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Emit string arguments while they arrive.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each character was parsed as, and the events in order.")
    ] = False,
    json: AsJson = False,
    many: RowOptions,
) -> None:
    """Parse a model's reply: its text, reasoning and tool calls, and their problems.

    Exit code 1 means that there are blocking problems. With --rows, FILES are logs: each row's reply becomes one line
    of JSON, in order, on all cores; exit code 1 means that some rows have no reply.
    """
    if many.enabled:
        _refuse_with_rows(stream=stream, live=live, explain=explain)
        _parse_rows(files, many, reading, reasoning, finish, json=json)
        return
    file = one_file(files)
    with usage_errors():
        parser = _make_parser(reading, reasoning, spans=explain, live=live)
    text = read_text(file)
    events = _parse_in_chunks(parser, text, stream or len(text) or 1, finish)
    reply = parser.reply
    if json:
        data = to_json(reply)
        typer.echo(format_json({**data, "events": to_json([event for _, event in events])} if explain else data))
    else:
        _print_reply(text, reply, events, explain)
    if any(problem.blocking for problem in reply.problems):
        raise typer.Exit(1)


def _make_parser(reading: ReadingOptions, reasoning: ReasoningMode, *, spans: bool, live: bool) -> Parser:
    """Return a parser with these options. Raises `CallerError` for an invalid option, and exits if a file is
    unreadable."""
    return Parser(
        choose_format(reading.format, reading.format_file),
        tools=read_tools(reading.tools),
        reasoning=reasoning.value,
        repair=reading.repair.value,
        rescue=reading.rescue.value,
        reasoning_calls=reading.reasoning_calls.value,
        spans=spans,
        live=live,
    )


def _refuse_with_rows(**given: object) -> None:
    """Exit with a usage error if one of these options, which --rows excludes, has a value that is not None, False or 0;
    otherwise do nothing."""
    for name, value in given.items():
        if value:
            exit_with_usage_error(f"--{name} is for a single reply; it excludes --rows")


def _parse_rows(
    files: list[str] | None,
    many: RowOptions,
    reading: ReadingOptions,
    reasoning: ReasoningMode,
    finish: str | None,
    *,
    json: bool,
) -> None:
    """Parse the replies of all rows, write one line of JSON for each, and exit with code 1 if a row could not be read
    or has no reply."""
    with usage_errors():
        key = run_key(many.keys, "parse", reading, reasoning, finish, files=(reading.format_file, reading.tools))
        options = ParseOptions(
            choose_format(reading.format, reading.format_file),
            reasoning.value,
            reading.repair.value,
            reading.rescue.value,
            reading.reasoning_calls.value,
            finish,
        )
        work = ReplyWork(key, many.keys, read_tools(reading.tools), options)
    exit_if_bad(run_rows("parse", files, many, work, REPLIES, json=json))


def _parse_in_chunks(parser: Parser, text: str, size: int, finish: str | None) -> list[tuple[int, Event]]:
    """Parse the text in chunks of `size` characters. Return the events, each with the number of characters fed before
    it."""
    events: list[tuple[int, Event]] = []
    for start in range(0, len(text), size):
        fed = min(start + size, len(text))
        events += [(fed, event) for event in parser.feed(text[start:fed])]
    return events + [(len(text), event) for event in parser.close(finish)]


def _print_reply(text: str, reply: Reply, events: list[tuple[int, Event]], explain: bool) -> None:
    """Print a reply; with `explain`, first its spans and events."""
    out = console()
    if explain:
        heading(out, "How each character was parsed")
        show_spans(out, text, reply.spans or ())
        heading(out, "\nEvents, after so many characters")
        show_events(out, events)
        heading(out, "\nReply")
    show_reply(out, reply)


def detect_command(file: File = "-", tools: ToolsFile = None, json: AsJson = False) -> None:
    """List the formats that a text may be written in, the most likely first.

    Exit code 1 means that it has no opening marker of a format.
    """
    with usage_errors():
        toolset = read_tools(tools)
    register_own_formats()
    names = detect_formats(read_text(file), tools=toolset)
    if json:
        typer.echo(format_json(names))
    for name in [] if json else names:
        typer.echo(name)
    if not names:
        print_message("the text has no opening marker of a format; it is plain text")
        raise typer.Exit(1)
