"""`rightcall dataset`: from captured rows to data worth training on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rightcall.capture import catalogue
from rightcall.cli.help_page import CommandGroup
from rightcall.cli.inputs import (
    AsJson,
    Force,
    read_text,
    refuse,
    say,
    usage_errors,
)
from rightcall.cli.layout import console, paragraph
from rightcall.cli.option_groups import grouped
from rightcall.cli.progress import reading
from rightcall.cli.safe import brief, json_text
from rightcall.cli.workers import Workers, broken_off
from rightcall.datasets.row_files import BadRows, Where
from rightcall.errors import CallerError
from rightcall.storage.streams import is_standard_output

app = CommandGroup(help="Check, label, split, redact, export and import rows of captures.")

Files = Annotated[list[str], typer.Argument(metavar="FILES", help="Files of rows, as JSON lines.")]
RowFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES", help="Files of rows, and globs: .jsonl, .csv, .parquet, also .gz and .zst; - is stdin."
    ),
]
To = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="The file to write. It appears when it is whole.")
]
OutDir = Annotated[str, typer.Option("--out-dir", "-o", metavar="DIR", help="The folder to write into.")]
_OF_TOOLS = ("left_out", "held_out")


class SplitBy(StrEnum):
    conversation = "conversation"
    tool = "tool"


DomainNames = Annotated[str, typer.Option("--domains", metavar="A,B", help="Names of domains, or TOML files.")]


@contextmanager
def failures() -> Iterator[None]:
    """Rows that are not sound and files that cannot be used end in one line and exit code 1; wrong usage in 2."""
    with usage_errors():
        try:
            yield
        except BadRows as error:
            say(str(error))
            raise typer.Exit(1) from error


def show_result(json: bool, value: Mapping[str, Any], lines: Mapping[str, object]) -> None:
    """The result as JSON, or as labelled lines; on standard error if the rows went to standard output."""
    aside = is_standard_output(str(value.get("output") or value.get("path")))
    if json:
        typer.echo(json_text(dict(value)), err=aside)
        return
    out = console(stderr=aside)
    shown = {label: said for label, said in lines.items() if said not in ("", {}, None)}
    wide = max(map(len, shown)) + 2
    for label, said in shown.items():
        paragraph(out, brief(_counts(said), 2_000), label=f"{label.replace('_', ' '):<{wide}}")


def _counts(said: object) -> str:
    if isinstance(said, bool):
        return "yes" if said else "no"
    if isinstance(said, Mapping):
        return ", ".join([f"{name} {number:,}" for name, number in said.items()])
    return f"{said:,}" if isinstance(said, int) else str(said)


def tell_row(where: Where, why: str) -> None:
    paragraph(console(stderr=True), brief(f"{where} {why}", 1_000), hang=2)


@app.command()
def validate(files: Files, json: AsJson = False) -> None:
    """Say everything that is wrong with rows, each with its path and line.

    Knows captures (ours and forge-dataset's), tool prompts, proxy captures, training rows, rejects and conflicts. Exit
    code 1 means that a row is not as its schema says.
    """
    from rightcall.datasets.validating import validate as validated

    with failures(), reading("validate", files) as seen:
        report = validated(files, tell=tell_row, seen=seen)
    told = msgspec.to_builtins(report)
    lines = {"rows": report.rows, "bad": report.bad, "schemas": report.schemas, "labels": report.labels}
    show_result(json, told, {**lines, "buckets": report.buckets})
    if report.bad:
        raise typer.Exit(1)


@app.command()
def stats(
    files: Files,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write a page with charts too; it needs nothing else.")
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Count rows by label, tool, domain, format and repair, as shares, and measure their lengths."""
    from rightcall.cli.page_screen import show_page
    from rightcall.cli.stats_page import KIND, stats_page
    from rightcall.datasets.stats import statistics
    from rightcall.evaluation.webpages.page_writing import page_kind, written
    from rightcall.storage.whole_files import WholeFile

    with failures(), reading("stats", files) as seen:
        found = statistics(files, seen=seen)
        page = stats_page(found, files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more")
        if html is not None:
            with WholeFile(html, page_kind(KIND), sources=files, force=force) as out:
                out.write_bytes(written(page).encode())
    if json:
        typer.echo(json_text(found.told()))
    else:
        show_page(console(), page)


@app.command()
def prompts(
    domains: DomainNames = "repo_docs,shopping,calendar,support",
    model: Annotated[str, typer.Option(help="The model's name in the requests.")] = "test-model",
    runs: Annotated[int, typer.Option(min=1, help="How often each scenario is asked.")] = 1,
    output: To = "target/dataset/tool_prompts.jsonl",
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write what a capture would send, one row for each run of each scenario. Nothing is sent."""
    from rightcall.datasets.prompts import write_prompts

    with failures():
        rows = write_prompts(catalogue.find_domains(_names(domains)), output, model=model, runs=runs, force=force)
    show_result(json, {"rows": rows, "output": output}, {"rows": rows, "output": output})


def _names(given: str) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        refuse("name at least one domain: --domains shopping")
    return names


@app.command()
@grouped
def label(
    *,
    files: RowFiles,
    output: To,
    domains: Annotated[
        str,
        typer.Option("--domains", metavar="A,B", help="TOML files of your own domains; the built-in ones are known."),
    ] = "",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Label calls without a model: by `check`, and by the calls that their scenario accepts."""
    from rightcall.datasets.label import label_files

    with broken_off(), failures(), reading("label", files) as seen:
        own = catalogue.find_domains([name.strip() for name in domains.split(",") if name.strip()])
        counts = dict(label_files(files, output, domains=own, seen=seen, force=force, **workers.told()).most_common())
    show_result(json, {"labels": counts, "output": output}, {"labels": counts, "output": output})


@app.command()
def assemble(
    files: Files,
    out_dir: OutDir,
    combined: Annotated[str, typer.Option("--combined-output", metavar="NAME", help="Name of the merged file.")] = (
        "training.jsonl"
    ),
    drop_conflicts: Annotated[
        bool, typer.Option("--drop-conflicts", help="Drop every row of an input that has two labels.")
    ] = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Merge files of training rows: doubles once, contradictions and bad rows put aside, all counted in a manifest."""
    from rightcall.datasets.assembling import assemble as assembled

    with failures(), reading("assemble", files) as seen:
        if Path(combined).name != combined:
            raise CallerError("--combined-output is a name inside the folder, not a path")
        made = assembled(files, out_dir, combined=combined, drop_conflicts=drop_conflicts, seen=seen, force=force)
    told = msgspec.to_builtins(made)
    show_result(json, told, told)


@app.command()
def split(
    files: Files,
    out_dir: OutDir,
    ratio: Annotated[
        float, typer.Option("--validation-ratio", min=0, max=1, help="Share of rows to validate on.")
    ] = 0.1,
    seed: Annotated[str, typer.Option(help="Another seed, another choice of groups.")] = "forge-dataset-v1",
    by: Annotated[SplitBy, typer.Option("--by", help="What is held out: conversations, or tools.")] = (
        SplitBy.conversation
    ),
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Split rows into training and validation, conversations whole. The same rows and seed give the same split.

    By tool, no tool that is called in validation is so much as offered in training.
    """
    from rightcall.datasets.splitting import split as made

    with failures(), reading("split", files, passes=2) as seen:
        told = msgspec.to_builtins(made(files, out_dir, ratio=ratio, seed=seed, by=by.value, seen=seen, force=force))
    shown = told if by is SplitBy.tool else {key: said for key, said in told.items() if key not in _OF_TOOLS}
    show_result(json, told, shown)
    if by is SplitBy.tool and told["rows"] and not (told["train"] and told["validation"]):
        say(
            "one side is empty: rows that all offer the same tools cannot be split by tool; bring rows of more toolsets"
        )


@app.command()
def redact(
    files: Files,
    output: To,
    term: Annotated[
        list[str] | None, typer.Option("--term", metavar="TEXT", help="Redact this too; repeatable.")
    ] = None,
    terms: Annotated[str | None, typer.Option("--terms", metavar="FILE", help="Such terms, one on each line.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Replace what looks like a secret or a person's data. It finds patterns, not meaning: read what you release."""
    from rightcall.datasets.releasing import redact_files

    listed = read_text(terms).splitlines() if terms is not None else []
    with failures(), reading("redact", files) as seen:
        rows, counts = redact_files(files, output, terms=[*(term or []), *listed], seen=seen, force=force)
    found = dict(counts.most_common())
    show_result(
        json, {"rows": rows, "found": found, "output": output}, {"rows": rows, "found": found, "output": output}
    )


@app.command()
def release(
    files: Files,
    output: To,
    by: Annotated[str, typer.Option(help="Who answers for it.")],
    note: Annotated[str, typer.Option(help="Why it may be public.")] = "",
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Mark redacted rows as public. Rows that were not redacted, or have changed since, are refused: exit code 1."""
    from rightcall.datasets.releasing import release_files

    with failures(), reading("release", files) as seen:
        rows, refused = release_files(files, output, by=by, note=note, refused=tell_row, seen=seen, force=force)
    told = {"released": rows, "refused": refused, "output": output}
    show_result(json, told, told)
    if refused:
        raise typer.Exit(1)
