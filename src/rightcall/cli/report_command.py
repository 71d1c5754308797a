"""`rightcall report`: what became of the replies of a log, by model, server and format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rightcall.cli.inputs import AsJson, Force, choose_format, read_tools, say, usage_errors
from rightcall.cli.layout import console
from rightcall.cli.option_groups import grouped
from rightcall.cli.progress import working
from rightcall.cli.reading_options import ReadingOptions
from rightcall.cli.row_options import run_key, tell_faults
from rightcall.cli.safe import json_text
from rightcall.cli.workers import Workers, broken_off
from rightcall.datasets.rows.engine_names import engine_of
from rightcall.datasets.rows.mapping import map_rows, refuse_stdin
from rightcall.datasets.rows.reply_lines import RowReading
from rightcall.datasets.rows.row_fields import RowKeys
from rightcall.datasets.rows.row_sources import sources_of

if TYPE_CHECKING:
    from rightcall.evaluation.reports.log_changes import Comparison
    from rightcall.evaluation.reports.logged_rows import TallyWork
    from rightcall.evaluation.reports.reply_tally import ReplyTally
    from rightcall.evaluation.webpages.page_parts import WebPage

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS", help="Logs of replies, and globs: .jsonl, .csv, .parquet, also .gz and .zst; - is stdin."
    ),
]


class LogRows(msgspec.Struct, frozen=True, kw_only=True):
    """How the rows of a log are found and read."""

    rows_as: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="What stdin holds, or a file whose name does not say it."),
    ] = None
    text_key: Annotated[str | None, typer.Option(metavar="KEY", help="Where the reply stands: a dotted path.")] = None
    model_key: Annotated[str | None, typer.Option(metavar="KEY", help="Where the model's name stands.")] = None
    server_key: Annotated[str | None, typer.Option(metavar="KEY", help="Where the server's name stands.")] = None
    tools_key: Annotated[str | None, typer.Option(metavar="KEY", help="Where the tools of a row stand.")] = None


@grouped
def report(
    *,
    logs: Logs,
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", metavar="LOG", help="An earlier log: say what got better and worse; repeatable."),
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write one page too, which can be mailed.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Of how many findings samples are printed.")] = 6,
    reading: ReadingOptions,
    json: AsJson = False,
    force: Force = False,
    many: LogRows,
    workers: Workers,
) -> None:
    """Say what went wrong in logs of replies: calls that may run, were repaired or refused, and why.

    Reads lines with a model's text or a provider's whole answer, what `parse --rows` wrote, and rows of captures.
    Exit code 0: the report was made. 1: with --compare something got worse by more than chance explains; or no
    line holds a reply. 2: wrong usage.
    """
    from rightcall.evaluation.reports.log_changes import compared
    from rightcall.evaluation.reports.report_page import report_page

    with usage_errors():
        work = _work(reading, many)
    tally = _tallied(logs, work, many, workers)
    before = _tallied(compare, work, many, workers) if compare else None
    comparison = compared(before, tally) if before is not None else None
    page = report_page(tally, _title(logs), comparison=comparison, old=_title(compare or []))
    if html is not None:
        _write(page, html, [*logs, *(compare or [])], force=force)
    _tell(page, tally, comparison, samples, json=json)
    if not tally.total.counts["replies"] or (comparison is not None and comparison.of("worse")):
        raise typer.Exit(1)


def _work(reading: ReadingOptions, many: LogRows) -> TallyWork:
    from rightcall.evaluation.reports.logged_rows import TallyWork

    options = RowReading(
        choose_format(reading.format, reading.format_file),
        repair=reading.repair.value,
        rescue=reading.rescue.value,
        reasoning_calls=reading.reasoning_calls.value,
    )
    keys = RowKeys(many.text_key, None, many.model_key, many.tools_key)
    key = run_key(keys, "report", many.server_key, reading, files=(reading.format_file, reading.tools))
    return TallyWork(key, keys, read_tools(reading.tools), options, server_key=many.server_key)


def _tallied(logs: Sequence[str], work: TallyWork, many: LogRows, workers: Workers) -> ReplyTally:
    from rightcall.evaluation.reports.logged_rows import TallySink

    with broken_off(), usage_errors():
        sources = sources_of(logs, rows_as=many.rows_as)
        if workers.resume:
            refuse_stdin(sources)
        engine = engine_of(workers.engine or "local", workers.jobs)
        with TallySink(sources, resume=workers.resume) as sink, working("report", sources) as watch:
            tell_faults(map_rows(sources, work, sink, engine, watch=watch))
    return sink.tally


def _title(logs: Sequence[str]) -> str:
    return "" if not logs else logs[0] if len(logs) == 1 else f"{logs[0]} and {len(logs) - 1} more"


def _write(page: WebPage, html: str, sources: Sequence[str], *, force: bool) -> None:
    from rightcall.evaluation.reports.report_page import KIND
    from rightcall.evaluation.webpages.page_writing import page_kind, written
    from rightcall.storage.whole_files import WholeFile

    with usage_errors(), WholeFile(html, page_kind(KIND), sources=sources, force=force) as out:
        out.write_bytes(written(page).encode())


def _tell(page: WebPage, tally: ReplyTally, comparison: Comparison | None, samples: int, *, json: bool) -> None:
    from rightcall.cli.page_screen import show_page
    from rightcall.evaluation.reports.report_json import report_json

    if json:
        typer.echo(json_text(report_json(tally, comparison)))
    elif tally.total.counts["replies"]:
        show_page(console(), page, samples=samples)
    else:
        say("no line holds a reply; --text-key says where it stands")
