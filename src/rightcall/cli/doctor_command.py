"""`rightcall doctor`: probe a model server with requests of clients, and report faults in its answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from rightcall.backends.address import API_DEFAULTS, check_api
from rightcall.cli.endpoint import ApiKeyEnv
from rightcall.cli.inputs import AsJson, Force, grouped, option_parser, usage_errors
from rightcall.cli.layout import Cell, console, format_json, heading, paragraph, row, table
from rightcall.safe_text import brief, visible

if TYPE_CHECKING:
    from rightcall.doctor.diagnosis import Diagnosis, ProbeResult
    from rightcall.doctor.examination import Watch
    from rightcall.doctor.judges import Verdict


class ProbeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the number and the duration of requests."""

    n: Annotated[
        int, typer.Option("--n", metavar="N", min=1, max=100, help="Runs of each probe that depends on chance.")
    ] = 1
    max_requests: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of requests.")] = 500
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Limit for one request.")] = (
        60.0
    )
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Silence after which a stream counts as stalled.")
    ] = 20.0
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Number of requests at the same time.")
    ] = 4


@grouped
def doctor(
    *,
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the server, with or without /v1.")],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="The model. [default: the first that the server lists]")
    ] = "",
    api: Annotated[
        list[str] | None,
        typer.Option(
            parser=option_parser(check_api),
            metavar="|".join(API_DEFAULTS),
            help="A dialect to try; repeatable. [default: all]",
        ),
    ] = None,
    through: Annotated[
        bool, typer.Option("--through", help="Also probe through the proxy, and show what it fixes.")
    ] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained web page.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Number of faults with request and response.")] = 6,
    json: AsJson = False,
    force: Force = False,
    api_key_env: ApiKeyEnv = None,
    how: ProbeLimits,
) -> None:
    """Probe a model server with the requests of clients, and report its faults and their cures.

    Probes every API that the server speaks, streamed and whole: calls and their arguments, ids, index, finish reason,
    order of events, tool_choice, histories, reasoning, truncation, prompt tokens, constraints, and fields of clients.

    Exit codes: 0 the server has no faults, 1 it has, or a probe got no answer, 2 wrong usage.
    """
    from rightcall.cli.page_screen import write_page
    from rightcall.doctor.doctor_page import doctor_page
    from rightcall.doctor.examination import ExamSettings, diagnose_server

    settings = ExamSettings(
        model=model,
        apis=tuple(dict.fromkeys(api or ())),  # type: ignore[arg-type]
        n=how.n,
        max_requests=how.max_requests,
        seconds=how.timeout,
        patience=how.patience,
        concurrency=how.concurrency,
        api_key_env=api_key_env,
    )
    with usage_errors():
        diagnosis = asyncio.run(diagnose_server(url, settings, through=through, watching=_progress_bar))
        if html is not None:
            write_page(doctor_page(diagnosis), html, force=force)
    _print_diagnosis(diagnosis, samples, json=json)
    if not diagnosis.is_sound:
        raise typer.Exit(1)


@contextmanager
def _progress_bar(what: str) -> Iterator[Watch | None]:
    """Yield the function that updates a progress bar with the title `what` on standard error, given the numbers of
    requests done and planned; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (TextColumn(what, markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


def _print_diagnosis(diagnosis: Diagnosis, samples: int, *, json: bool) -> None:
    """Print a diagnosis on the screen or as JSON."""
    if json:
        typer.echo(format_json(diagnosis.to_json()))
    else:
        show_diagnosis(console(), diagnosis, samples=samples)


# -- display -----------------------------------------------------------------------------------------------------------

_STYLES: dict[Verdict, str] = {
    "ok": "green",
    "fault": "red",
    "model": "yellow",
    "not offered": "dim",
    "unreachable": "red",
}
_WORDS: dict[Verdict, str] = {"fault": "FAULT", "not offered": "none"}
_MAX_PLACES = 3
_EXCERPT = 700  # characters of a request, and of an answer


def show_diagnosis(out: Console, found: Diagnosis, *, samples: int = 6) -> None:
    """Print a diagnosis: the server, a table for each API, the classes of failure (the first `samples` with a request
    and its response), and the totals."""
    _print_server(out, found)
    for api in found.spoken:
        out.print()
        heading(out, api)
        table(out, _column_titles(found), [*_table_rows(found, api)])
    _print_failure_classes(out, found, samples)
    _print_totals(out, found)


def _print_server(out: Console, found: Diagnosis) -> None:
    """Print the server, its model, the APIs that it speaks, and why the others are missing."""
    row(out, "server", brief(f"{found.url}  {found.kind}".rstrip(), 300), "bold")
    row(out, "model", brief(found.model or "none was given, and the server lists none", 200))
    row(out, "speaks", ", ".join(found.spoken) or "no dialect that was tried", "green" if found.spoken else "red")
    silent: dict[str, list[str]] = {}
    for each in found.dialects:
        if each.says:
            silent.setdefault(each.says, []).append(each.api)
    for says, apis in silent.items():
        row(out, "", brief(f"{', '.join(apis)}: {says}", 300), "dim")


def _column_titles(found: Diagnosis) -> tuple[str, ...]:
    """Return the titles of the columns of an API's table; with columns for the proxy if it was probed too."""
    if found.through is None:
        return ("probe", "whole", "streamed", "class")
    return ("probe", "whole", "proxy", "streamed", "proxy", "class")


def _table_rows(found: Diagnosis, api: str) -> Iterator[list[Cell]]:
    """Yield the rows of the table of one API: each probe with its verdicts, whole and streamed, without and with the
    proxy if it was probed, and the classes of its faults."""
    sides = [found] if found.through is None else [found, found.through]
    by_place = {
        (side, each.probe, each.way): each
        for side, diagnosis in enumerate(sides)
        for each in diagnosis.results
        if each.api == api
    }
    titles = {each.probe: each.title for each in found.results if each.api == api}
    for probe, title in titles.items():
        both = [by_place.get((side, probe, way)) for way in ("whole", "streamed") for side in range(len(sides))]
        slugs = [each.slug for each in both if each is not None and each.is_named]
        yield [title, *[_format_verdict(each) for each in both], ", ".join(dict.fromkeys(slugs))]


def _format_verdict(result: ProbeResult | None) -> Text:
    """Return the verdict of a probe as text in its colour, with the pass rate if the probe was repeated; blank for
    None."""
    if result is None:
        return Text("")
    rate = f" {result.passed}/{result.of}" if result.of > 1 else ""
    return Text(_WORDS.get(result.verdict, result.verdict) + rate, _STYLES[result.verdict])


def _print_failure_classes(out: Console, found: Diagnosis, samples: int) -> None:
    """Print each class of failure: where it occurred, its cure, and for the first `samples` classes one request with
    its response."""
    for at, failure in enumerate((*found.classes, *found.habits)):
        mine = found.shown(failure)
        out.print()
        whose = " (caused by the model)" if failure in found.habits else ""
        heading(out, f"{failure.slug}: {failure.title}{whose}")
        paragraph(out, failure.what, "dim", label="  ")
        seen = _describe_places(mine)
        for says, where in [*seen.items()][:_MAX_PLACES]:
            row(out, "  seen", brief(f"{where}: {says}", 400))
        if len(seen) > _MAX_PLACES:
            row(out, "", f"and {len(seen) - _MAX_PLACES} more, in --html and --json", "dim")
        if at < samples:
            _print_evidence(out, mine[0])
        says, line = found.advice(failure)
        row(out, "  cure", says)
        if line:
            row(out, "", visible(line, one_line=True), "cyan")


def _describe_places(results: list[ProbeResult]) -> dict[str, str]:
    """Return a dict from each message of these results to a text with the places where it occurred: `chat native:
    probe, probe; ollama text: probe`."""
    places: dict[str, dict[tuple[str, str], list[str]]] = {}
    for each in results:
        places.setdefault(each.says, {}).setdefault((each.api, each.way), []).append(each.title)
    return {
        says: "; ".join([f"{api} {way}: {', '.join(titles)}" for (api, way), titles in of.items()])
        for says, of in places.items()
    }


def _print_evidence(out: Console, result: ProbeResult) -> None:
    """Print the request and the response of a result, if they were kept."""
    shown = result.evidence
    if shown is None:
        return
    row(out, "  sent", _excerpt(shown.request, shown.request_left_out), "dim")
    row(out, f"  {shown.status or 'came'}", _excerpt(shown.answer, shown.answer_left_out), "dim")


def _excerpt(text: str, left_out: int) -> str:
    """Return the beginning of a text in one line; if it is longer, or `left_out` characters were dropped before, also
    the number of characters that are missing. Compact JSON gets spaces."""
    text = text.replace(',"', ', "').replace('":', '": ').replace('":  ', '": ')
    left = max(0, len(text) - _EXCERPT) + left_out
    return visible(text[:_EXCERPT], one_line=True) + (f" … ({left:,} more)" if left else "")


def _print_totals(out: Console, found: Diagnosis) -> None:
    """Print the number of failed checks, requests and seconds, and the cure for all faults."""
    out.print()
    both = found.requests + (0 if found.through is None else found.through.requests)
    took = found.seconds + (0.0 if found.through is None else found.through.seconds)
    checks = f"{len(found.faults)} of {len(found.results)} checks failed" if found.results else "no check was made"
    row(out, "found", f"{checks}; {len(found.classes)} classes of failure", "bold red" if found.faults else "bold")
    if found.through is not None:
        left = len(found.through.faults)
        row(out, "proxy", f"{left} of {len(found.through.results)} checks failed", "red" if left else "green")
    row(out, "asked", f"{both} requests in {took:.1f} s" + _format_skipped(found))
    if cure := found.cure():
        row(out, "cure", visible(cure, one_line=True), "cyan")


def _format_skipped(found: Diagnosis) -> str:
    """Return the number of requests that were not sent, with the reason; "" if there are none."""
    count = found.skipped + (0 if found.through is None else found.through.skipped)
    why = "--max-requests was reached, or the server stopped answering"
    return f"; {count} more were left out: {why}" if count else ""
