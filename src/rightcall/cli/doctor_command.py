"""`rightcall doctor`: asks a model server what clients ask, and says what is wrong with its answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from rightcall.backends.address import HABITS, check_api
from rightcall.cli.endpoint import ApiKeyEnv
from rightcall.cli.inputs import AsJson, Force, checked, usage_errors
from rightcall.cli.layout import console
from rightcall.cli.option_groups import grouped
from rightcall.cli.safe import json_text

if TYPE_CHECKING:
    from rightcall.doctor.diagnosis import Diagnosis
    from rightcall.doctor.examination import Watch


class HowMuch(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long a server is asked."""

    n: Annotated[int, typer.Option("--n", metavar="N", min=1, max=100, help="How often each question is asked.")] = 1
    max_requests: Annotated[int, typer.Option(metavar="N", min=1, help="No more requests than these.")] = 500
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Limit for one request.")] = (
        60.0
    )
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Silence after which clients give a stream up.")
    ] = 20.0
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Requests at the same time.")] = 4


@grouped
def doctor(
    *,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the server is, with or without /v1.")],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="The model. [default: the first that it lists]")
    ] = "",
    api: Annotated[
        list[str] | None,
        typer.Option(
            parser=checked(check_api), metavar="|".join(HABITS), help="A dialect to try; repeatable. [default: all]"
        ),
    ] = None,
    through: Annotated[
        bool, typer.Option("--through", help="Ask through the proxy too, and show what it cures.")
    ] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write one page too, which can be mailed.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Of how many faults the exchange is printed.")] = 6,
    json: AsJson = False,
    force: Force = False,
    api_key_env: ApiKeyEnv = None,
    how: HowMuch,
) -> None:
    """Ask a model server what clients ask, and say what is wrong with its answers, and what cures it.

    Every dialect that it speaks is probed, streamed and whole: calls and their arguments, ids, index, finish, order of
    events, tool_choice, histories, reasoning, cuts, prompt tokens, constraints, fields that clients send.

    Exit code 0: nothing is the server's fault. 1: something is, or some question had no answer. 2: wrong usage.
    """
    from rightcall.doctor.diagnosing import diagnosed
    from rightcall.doctor.examination import ExamSettings

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
        diagnosis = asyncio.run(diagnosed(url, settings, through=through, watching=_watching))
        if html is not None:
            _write(diagnosis, html, force=force)
    _tell(diagnosis, samples, json=json)
    if not diagnosis.is_sound:
        raise typer.Exit(1)


@contextmanager
def _watching(what: str) -> Iterator[Watch | None]:
    """A bar on standard error; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (TextColumn(what, markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


def _write(diagnosis: Diagnosis, html: str, *, force: bool) -> None:
    from rightcall.doctor.doctor_page import KIND, doctor_page
    from rightcall.evaluation.webpages.page_writing import page_kind, written
    from rightcall.storage.whole_files import WholeFile

    with WholeFile(html, page_kind(KIND), force=force) as out:
        out.write_bytes(written(doctor_page(diagnosis)).encode())


def _tell(diagnosis: Diagnosis, samples: int, *, json: bool) -> None:
    from rightcall.cli.doctor_screen import show_diagnosis

    if json:
        typer.echo(json_text(diagnosis.to_json()))
    else:
        show_diagnosis(console(), diagnosis, samples=samples)
