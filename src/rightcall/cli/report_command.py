"""`rightcall report`: summarize the replies of logs by model, server and format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rightcall.cli.inputs import (
    AsJson,
    Force,
    ReadingOptions,
    choose_format,
    grouped,
    print_message,
    read_tools,
    usage_errors,
)
from rightcall.cli.layout import console, format_json
from rightcall.cli.row_options import Workers, interruptions, report_faults, row_progress, run_key
from rightcall.datasets.rows.engines import make_engine
from rightcall.datasets.rows.mapping import map_rows, refuse_stdin
from rightcall.datasets.rows.replies import ParseOptions, RowKeys
from rightcall.datasets.rows.sources import sources_of

if TYPE_CHECKING:
    from rightcall.evaluation.reports.log_changes import LogComparison
    from rightcall.evaluation.reports.logged_rows import TallyWork
    from rightcall.evaluation.reports.reply_tally import ReplyTally
    from rightcall.evaluation.webpage import WebPage

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS", help="Logs of replies, and globs: .jsonl, .csv, .parquet, also .gz and .zst; - is stdin."
    ),
]


class LogRows(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading the rows of a log."""

    rows_as: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="The format of standard input, or of a file without a known suffix."),
    ] = None
    text_key: Annotated[str | None, typer.Option(metavar="KEY", help="Key of the reply, as a dotted path.")] = None
    model_key: Annotated[str | None, typer.Option(metavar="KEY", help="Key of the model's name.")] = None
    server_key: Annotated[str | None, typer.Option(metavar="KEY", help="Key of the server's name.")] = None
    tools_key: Annotated[str | None, typer.Option(metavar="KEY", help="Key of the tools of a row.")] = None


@grouped
def report(
    *,
    logs: Logs,
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", metavar="LOG", help="An earlier log: show what improved and got worse; repeatable."),
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained web page.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Number of findings with samples.")] = 6,
    reading: ReadingOptions,
    json: AsJson = False,
    force: Force = False,
    many: LogRows,
    workers: Workers,
) -> None:
    """Report problems in logs of replies: how many calls are runnable, repaired or rejected, and why.

    Reads lines with a model's text or a provider's whole response, output of `parse --rows`, and rows of captures.
    Exit codes: 0 the report was made, 1 with --compare something got significantly worse, or no line has a reply,
    2 wrong usage.
    """
    from rightcall.cli.page_screen import write_page
    from rightcall.evaluation.reports.log_changes import compare_logs
    from rightcall.evaluation.reports.report_page import report_page

    with usage_errors():
        work = _make_tally_work(reading, many)
    tally = _tally_logs(logs, work, many, workers)
    before = _tally_logs(compare, work, many, workers) if compare else None
    comparison = compare_logs(before, tally) if before is not None else None
    page = report_page(tally, _title(logs), comparison=comparison, old=_title(compare or []))
    if html is not None:
        write_page(page, html, sources=[*logs, *(compare or [])], force=force)
    _print_report(page, tally, comparison, samples, json=json)
    if not tally.total.counts["replies"] or (comparison is not None and comparison.of("worse")):
        raise typer.Exit(1)


def _make_tally_work(reading: ReadingOptions, many: LogRows) -> TallyWork:
    """Return the work that parses and counts the rows of logs with these options; nothing is read yet but the files of
    format and tools."""
    from rightcall.evaluation.reports.logged_rows import TallyWork

    options = ParseOptions(
        choose_format(reading.format, reading.format_file),
        repair=reading.repair.value,
        rescue=reading.rescue.value,
        reasoning_calls=reading.reasoning_calls.value,
    )
    keys = RowKeys(many.text_key, None, many.model_key, many.tools_key)
    key = run_key(keys, "report", many.server_key, reading, files=(reading.format_file, reading.tools))
    return TallyWork(key, keys, read_tools(reading.tools), options, server_key=many.server_key)


def _tally_logs(logs: Sequence[str], work: TallyWork, many: LogRows, workers: Workers) -> ReplyTally:
    """Parse all rows of the logs on all cores and return the counts. Reports unreadable rows; exits for unusable files,
    lost workers and Ctrl-C."""
    from rightcall.evaluation.reports.logged_rows import TallySink

    with interruptions(), usage_errors():
        sources = sources_of(logs, rows_as=many.rows_as)
        if workers.resume:
            refuse_stdin(sources)
        engine = make_engine(workers.engine or "local", workers.jobs)
        with TallySink(sources, resume=workers.resume) as sink, row_progress("report", sources) as watch:
            report_faults(map_rows(sources, work, sink, engine, watch=watch))
    return sink.tally


def _title(logs: Sequence[str]) -> str:
    """Return the title of a report on these logs: the name of the first, and how many more; "" for none."""
    return "" if not logs else logs[0] if len(logs) == 1 else f"{logs[0]} and {len(logs) - 1} more"


def _print_report(
    page: WebPage, tally: ReplyTally, comparison: LogComparison | None, samples: int, *, json: bool
) -> None:
    """Print the report on the screen or as JSON; if no line has a reply, print a hint."""
    from rightcall.cli.page_screen import show_page
    from rightcall.evaluation.reports.report_page import report_json

    if json:
        typer.echo(format_json(report_json(tally, comparison)))
    elif tally.total.counts["replies"]:
        show_page(console(), page, samples=samples)
    else:
        print_message("no line has a reply; --text-key names its key")
