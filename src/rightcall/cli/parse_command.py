"""`rightcall parse` and `rightcall detect`: from a model's text to calls, and to the format it is written in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rightcall.cli.inputs import (
    AsJson,
    File,
    Files,
    ToolsFile,
    choose_format,
    own_formats,
    read_text,
    read_tools,
    refuse,
    say,
    usage_errors,
)
from rightcall.cli.layout import console, heading
from rightcall.cli.option_groups import grouped
from rightcall.cli.reading_options import ReadingOptions
from rightcall.cli.row_options import RowOptions, end_rows, one_file, run_key, run_rows
from rightcall.cli.safe import json_text
from rightcall.cli.show import show_events, show_reply, show_spans
from rightcall.datasets.rows.reply_lines import REPLIES, ReplyWork, RowReading
from rightcall.parsing.detection import detect as detect_formats
from rightcall.parsing.parser import Parser
from rightcall.types import Event, Reply, to_json


class ReasoningMode(StrEnum):
    auto = "auto"
    open = "open"
    off = "off"


@grouped
def parse(
    *,
    files: Files = None,
    how: ReadingOptions,
    reasoning: Annotated[
        ReasoningMode, typer.Option(help="auto: by its markers; open: the prompt had opened it; off: take it as text.")
    ] = ReasoningMode.auto,
    finish: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="How the answer ended; length, content_filter and error mean that it was cut."
        ),
    ] = None,
    stream: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Feed N characters at a time; the reply is the same.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Pass string arguments on while they arrive.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what every character became, and the events in order.")
    ] = False,
    json: AsJson = False,
    many: RowOptions,
) -> None:
    """Read a model's reply: its text, reasoning and tool calls, and what is wrong with them.

    Exit code 1 means that there are blocking problems. With --rows FILES are logs: each row's reply becomes one line
    of JSON, in order, on all cores; exit code 1 means that some rows hold no reply.
    """
    if many.wanted:
        _refuse_with_rows(stream=stream, live=live, explain=explain)
        _parse_rows(files, many, how, reasoning, finish, json=json)
        return
    file = one_file(files)
    with usage_errors():
        parser = _parser(how, reasoning, spans=explain, live=live)
    text = read_text(file)
    events = _feed(parser, text, stream or len(text) or 1, finish)
    reply = parser.reply
    if json:
        data = to_json(reply)
        typer.echo(json_text({**data, "events": to_json([event for _, event in events])} if explain else data))
    else:
        _show(text, reply, events, explain)
    if any(problem.blocking for problem in reply.problems):
        raise typer.Exit(1)


def _parser(how: ReadingOptions, reasoning: ReasoningMode, *, spans: bool, live: bool) -> Parser:
    return Parser(
        choose_format(how.format, how.format_file),
        tools=read_tools(how.tools),
        reasoning=reasoning.value,
        repair=how.repair.value,
        rescue=how.rescue.value,
        reasoning_calls=how.reasoning_calls.value,
        spans=spans,
        live=live,
    )


def _refuse_with_rows(**given: object) -> None:
    for name, value in given.items():
        if value:
            refuse(f"--{name} shows how one reply is read; leave it out, or leave out --rows")


def _parse_rows(
    files: list[str] | None,
    many: RowOptions,
    how: ReadingOptions,
    reasoning: ReasoningMode,
    finish: str | None,
    *,
    json: bool,
) -> None:
    with usage_errors():
        key = run_key(many.keys, "parse", how, reasoning, finish, files=(how.format_file, how.tools))
        options = RowReading(
            choose_format(how.format, how.format_file),
            reasoning.value,
            how.repair.value,
            how.rescue.value,
            how.reasoning_calls.value,
            finish,
        )
        work = ReplyWork(key, many.keys, read_tools(how.tools), options)
    end_rows(run_rows("parse", files, many, work, REPLIES, json=json))


def _feed(parser: Parser, text: str, size: int, finish: str | None) -> list[tuple[int, Event]]:
    """Every event, with how much of the text had been fed when it came."""
    events: list[tuple[int, Event]] = []
    for start in range(0, len(text), size):
        fed = min(start + size, len(text))
        events += [(fed, event) for event in parser.feed(text[start:fed])]
    return events + [(len(text), event) for event in parser.close(finish)]


def _show(text: str, reply: Reply, events: list[tuple[int, Event]], explain: bool) -> None:
    out = console()
    if explain:
        heading(out, "What every character became")
        show_spans(out, text, reply.spans or ())
        heading(out, "\nEvents, after so many characters")
        show_events(out, events)
        heading(out, "\nReply")
    show_reply(out, reply)


def detect(file: File = "-", tools: ToolsFile = None, json: AsJson = False) -> None:
    """Name the formats a text may be written in, the likeliest first.

    Exit code 1 means that no format's opener occurs in it.
    """
    with usage_errors():
        toolset = read_tools(tools)
    own_formats()
    names = detect_formats(read_text(file), tools=toolset)
    if json:
        typer.echo(json_text(names))
    for name in [] if json else names:
        typer.echo(name)
    if not names:
        say("no format's opener occurs in the text; it is plain text")
        raise typer.Exit(1)
