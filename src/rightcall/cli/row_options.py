"""The options of commands that take a log of many rows, and what they have in common: `--rows`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from rightcall.cli.inputs import read_bytes, refuse, usage_errors
from rightcall.cli.layout import console, paragraph, row
from rightcall.cli.progress import working
from rightcall.cli.safe import brief, json_text
from rightcall.cli.workers import EngineChoice, broken_off
from rightcall.datasets.rows.engine_names import engine_of
from rightcall.datasets.rows.mapping import map_rows, refuse_stdin
from rightcall.datasets.rows.outcomes import RowWork, Totals
from rightcall.datasets.rows.row_fields import RowKeys
from rightcall.datasets.rows.row_sources import sources_of
from rightcall.datasets.rows.sinks import sink_to
from rightcall.storage.file_kinds import FileKind
from rightcall.storage.streams import is_stream
from rightcall.types import Json

_PANEL = "Many rows"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_PANEL, **more)


class RowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log of many rows is read, and where the lines that come of it go."""

    rows: Annotated[
        bool,
        _option("--rows", "--jsonl", help="FILES are logs of many rows: .jsonl, .csv, .parquet, also .gz and .zst."),
    ] = False
    rows_as: Annotated[
        str | None, _option(metavar="KIND", help="What standard input holds, or a file whose name does not say it.")
    ] = None
    out: Annotated[
        str | None,
        _option("--out", "-o", metavar="FILE", help="One JSON line per row goes there; else to stdout."),
    ] = None
    resume: Annotated[bool, _option("--resume", help="Go on where a run with the same --out was broken off.")] = False
    jobs: Annotated[int | None, _option("--jobs", "-j", min=1, metavar="N", help="Processes; else one per core.")] = (
        None
    )
    engine: Annotated[
        EngineChoice | None, _option("--engine", help="Who works: processes of this machine, or Ray; else local.")
    ] = None
    text_key: Annotated[str | None, _option(metavar="KEY", help="Where the reply stands: a dotted path.")] = None
    id_key: Annotated[str | None, _option(metavar="KEY", help="Where the id stands; it is kept.")] = None
    model_key: Annotated[str | None, _option(metavar="KEY", help="Where the model's name stands; it is kept.")] = None
    tools_key: Annotated[str | None, _option(metavar="KEY", help="Where the tools of a row stand.")] = None
    force: Annotated[bool, _option("--force", help="Replace what is there, even if rightcall did not write it.")] = (
        False
    )

    @property
    def wanted(self) -> bool:
        """Is this about rows at all? Refuses options that are about nothing else."""
        if self.rows or self.rows_as:
            return True
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        if given:
            refuse(f"--{given[0].replace('_', '-')} is for logs of many rows; add --rows")
        return False

    @property
    def keys(self) -> RowKeys:
        return RowKeys(self.text_key, self.id_key, self.model_key, self.tools_key)


def one_file(files: Sequence[str] | None) -> str:
    """The file of a command that was given no `--rows`."""
    if files and len(files) > 1:
        refuse(f"one file is read at a time, and these are {len(files)}; --rows reads logs of many replies")
    return files[0] if files else "-"


def run_key(keys: RowKeys, *said: object, files: Sequence[str | None]) -> str:
    """What the outcome depends on: the options, and what is in the files that they name."""
    digests = [name and blake2b(read_bytes(name), digest_size=16).hexdigest() for name in files]
    return json_text([msgspec.to_builtins(keys), [str(each) for each in said], digests])


def run_rows(
    what: str, files: Sequence[str] | None, options: RowOptions, work: RowWork, kind: FileKind, *, json: bool
) -> Totals:
    """Works on all rows, tells what could not be, and what came of it. Ends in exit code 1 if there were bad rows."""
    if options.resume and (options.out is None or is_stream(options.out)):
        refuse("--resume goes on with a file: name it with --out")
    start = time.monotonic()
    with broken_off(can_go_on=options.out is not None), usage_errors():
        sources = sources_of(files or ["-"], rows_as=options.rows_as)
        if options.resume:
            refuse_stdin(sources)
        names = [source.path for source in sources if source.path != "-"]
        engine = engine_of(options.engine or "local", options.jobs)
        with (
            sink_to(options.out, kind, sources=names, resume=options.resume, force=options.force) as sink,
            working(what, sources) as watch,
        ):
            totals = map_rows(sources, work, sink, engine, watch=watch)
    _tell(totals, options.out, time.monotonic() - start, json=json)
    return totals


def _tell(totals: Totals, out: str | None, seconds: float, *, json: bool) -> None:
    tell_faults(totals)
    aside = out is None or is_stream(out)  # what is on standard output is the lines themselves
    rate = (totals.rows - totals.resumed) / max(seconds, 1e-9)
    if json:
        told: Json = {"rows": totals.rows, **totals.counts, "bad": totals.bad, "resumed": totals.resumed}
        told |= {"seconds": round(seconds, 3), "rows_per_second": round(rate), "output": out or "/dev/stdout"}
        typer.echo(json_text(told), err=aside)
    elif not aside or sys.stderr.isatty():
        fast = f", {rate:,.0f} rows a second" if rate > 100 else ""
        _show(console(stderr=aside), totals, f"{seconds:,.1f} s{fast}", out)


def tell_faults(totals: Totals) -> None:
    """The first rows that hold nothing, each with its place and why; of the rest how many they are."""
    out, more = console(stderr=True), totals.bad - len(totals.faults)
    for fault in totals.faults:
        paragraph(out, brief(str(fault), 1_000), hang=2)
    if more:
        paragraph(out, f"and {more:,} more {'row' if more == 1 else 'rows'} like these")


def _show(shown: Console, totals: Totals, time: str, out: str | None) -> None:
    earlier = f", {totals.resumed:,} of them by an earlier run" if totals.resumed else ""
    row(shown, "rows", f"{totals.rows:,}{earlier}")
    counts = totals.counts
    said = f"{counts['calls']:,} may run, {counts['refused']:,} must not; repaired: {counts['repaired']:,}"
    row(shown, "calls", said)
    if totals.bad:
        row(shown, "bad", f"{totals.bad:,} rows hold nothing that can be read", "bold red")
    row(shown, "time", time)
    if out is not None:
        row(shown, "output", out)


def end_rows(totals: Totals, *, is_bad: bool = False) -> None:
    if totals.bad or is_bad:
        raise typer.Exit(1)
