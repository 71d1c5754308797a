"""`rightcall dataset`: turn captured rows and logs into training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rightcall.capture.domain import find_domains
from rightcall.cli.app import CommandGroup
from rightcall.cli.inputs import (
    AsJson,
    Force,
    FormatFile,
    Policy,
    ReasoningCalls,
    ReasoningCallsPolicy,
    Rescue,
    RescuePolicy,
    ToolsFile,
    choose_format_name,
    exit_with_usage_error,
    format_names,
    grouped,
    option_parser,
    print_message,
    read_format_names,
    read_text,
    read_tools,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, paragraph
from rightcall.cli.row_options import Workers, interruptions, read_progress
from rightcall.datasets.row_files import BadRows, Where
from rightcall.datasets.training_shapes import SHAPES
from rightcall.errors import CallerError
from rightcall.safe_text import brief
from rightcall.storage.streams import is_standard_output

dataset = CommandGroup(help="Check, label, split, redact, export and import rows of captures.")


# -- options -----------------------------------------------------------------------------------------------------------

Files = Annotated[list[str], typer.Argument(metavar="FILES", help="Files of rows, as JSON lines.")]
RowFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES", help="Files of rows, and globs: .jsonl, .csv, .parquet, also .gz and .zst; - is stdin."
    ),
]
To = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="The file to write. It appears when it is complete.")
]
OutDir = Annotated[str, typer.Option("--out-dir", "-o", metavar="DIR", help="The folder to write into.")]
DomainNames = Annotated[str, typer.Option("--domains", metavar="A,B", help="Names of domains, or TOML files.")]


def _split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list, stripped. Exits with a usage error, which names --domains, if there
    is none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        exit_with_usage_error("name at least one domain: --domains shopping")
    return names


# -- results and errors ------------------------------------------------------------------------------------------------


@contextmanager
def failures() -> Iterator[None]:
    """Return a context in which bad rows (`BadRows`) and unusable files are reported in one line with exit code 1, and
    wrong usage with exit code 2."""
    with usage_errors():
        try:
            yield
        except BadRows as error:
            print_message(str(error))
            raise typer.Exit(1) from error


def show_result(json: bool, value: Mapping[str, Any], lines: Mapping[str, object]) -> None:
    """Print `value` as JSON if `json` is set, else `lines` with their labels, without those that are empty or None. The
    output is on standard error if `value` says that the rows went to standard output."""
    aside = is_standard_output(str(value.get("output") or value.get("path")))
    if json:
        typer.echo(format_json(dict(value)), err=aside)
        return
    out = console(stderr=aside)
    shown = {label: item for label, item in lines.items() if item not in ("", {}, None)}
    wide = max(map(len, shown)) + 2
    for label, item in shown.items():
        paragraph(out, brief(_format_value(item), 2_000), label=f"{label.replace('_', ' '):<{wide}}")


def _format_value(value: object) -> str:
    """Return a value of a result as text: a mapping of counts as `name 1,234, ...`, a bool as yes or no, an integer
    with separators."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join([f"{name} {number:,}" for name, number in value.items()])
    return f"{value:,}" if isinstance(value, int) else str(value)


def report_row(where: Where, why: str) -> None:
    """Print one line on standard error: the place of a row and what is wrong with it."""
    paragraph(console(stderr=True), brief(f"{where} {why}", 1_000), hang=2)


# -- checking and labelling --------------------------------------------------------------------------------------------


@dataset.command("validate")
def validate_command(files: Files, json: AsJson = False) -> None:
    """Validate rows, and report every error with its file and line.

    Supports captures (ours and forge-dataset's), tool prompts, proxy captures, training rows, rejects and conflicts.
    Exit code 1 means that a row does not match its schema.
    """
    from rightcall.datasets.inspection import validate as validate_files

    with failures(), read_progress("validate", files) as seen:
        report = validate_files(files, tell=report_row, seen=seen)
    result = msgspec.to_builtins(report)
    lines = {"rows": report.rows, "bad": report.bad, "schemas": report.schemas, "labels": report.labels}
    show_result(json, result, {**lines, "buckets": report.buckets})
    if report.bad:
        raise typer.Exit(1)


@dataset.command("stats")
def stats_command(
    files: Files,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained web page with charts.")
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Count rows by label, tool, domain, format and repair, and measure their lengths."""
    from rightcall.cli.page_screen import show_page, write_page
    from rightcall.cli.stats_page import stats_page
    from rightcall.datasets.inspection import statistics

    with failures(), read_progress("stats", files) as seen:
        found = statistics(files, seen=seen)
        page = stats_page(found, files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more")
        if html is not None:
            write_page(page, html, sources=files, force=force)
    if json:
        typer.echo(format_json(found.to_json()))
    else:
        show_page(console(), page)


@dataset.command("prompts")
def prompts_command(
    domains: DomainNames = "repo_docs,shopping,calendar,support",
    model: Annotated[str, typer.Option(help="The model's name in the requests.")] = "test-model",
    runs: Annotated[int, typer.Option(min=1, help="Number of runs of each scenario.")] = 1,
    output: To = "target/dataset/tool_prompts.jsonl",
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the prompts that a capture would send, one row for each run of each scenario. Nothing is sent."""
    from rightcall.datasets.forge_rows import write_prompts

    with failures():
        rows = write_prompts(find_domains(_split_names(domains)), output, model=model, runs=runs, force=force)
    show_result(json, {"rows": rows, "output": output}, {"rows": rows, "output": output})


@dataset.command("label")
@grouped
def label_command(
    *,
    files: RowFiles,
    output: To,
    domains: Annotated[
        str,
        typer.Option("--domains", metavar="A,B", help="TOML files of domains, in addition to the built-in ones."),
    ] = "",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Label calls without a model: by `check`, and by the calls that their scenario accepts."""
    from rightcall.datasets.label import label_files

    with interruptions(), failures(), read_progress("label", files) as seen:
        own = find_domains([name.strip() for name in domains.split(",") if name.strip()])
        counts = dict(
            label_files(files, output, domains=own, seen=seen, force=force, **workers.arguments()).most_common()
        )
    show_result(json, {"labels": counts, "output": output}, {"labels": counts, "output": output})


# -- assembling, splitting and releasing -------------------------------------------------------------------------------


@dataset.command("assemble")
def assemble_command(
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
    """Merge files of training rows: drop duplicates, set conflicts and bad rows aside, and write a manifest."""
    from rightcall.datasets.assembling import assemble as assemble_files

    with failures(), read_progress("assemble", files) as seen:
        if Path(combined).name != combined:
            raise CallerError(f"--combined-output is the name of a file in --out-dir, not a path: {combined!r}")
        made = assemble_files(files, out_dir, combined=combined, drop_conflicts=drop_conflicts, seen=seen, force=force)
    result = msgspec.to_builtins(made)
    show_result(json, result, result)


_TOOL_SPLIT_ONLY = ("left_out", "held_out")


class SplitBy(StrEnum):
    """What a split keeps together."""

    conversation = "conversation"
    tool = "tool"


@dataset.command("split")
def split_command(
    files: Files,
    out_dir: OutDir,
    ratio: Annotated[
        float, typer.Option("--validation-ratio", min=0, max=1, help="Share of rows for validation.")
    ] = 0.1,
    seed: Annotated[str, typer.Option(help="Seed that selects the groups.")] = "forge-dataset-v1",
    by: Annotated[SplitBy, typer.Option("--by", help="What to hold out: conversations, or tools.")] = (
        SplitBy.conversation
    ),
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Split rows into training and validation by whole conversations. The same rows and seed give the same split.

    With --by tool, no tool that is called in validation is offered in training.
    """
    from rightcall.datasets.splitting import split as split_files

    with failures(), read_progress("split", files, passes=2) as seen:
        counts = split_files(files, out_dir, ratio=ratio, seed=seed, by=by.value, seen=seen, force=force)
    result = msgspec.to_builtins(counts)
    lines = {key: item for key, item in result.items() if by is SplitBy.tool or key not in _TOOL_SPLIT_ONLY}
    show_result(json, result, lines)
    if by is SplitBy.tool and result["rows"] and not (result["train"] and result["validation"]):
        print_message(
            "one side is empty: rows that all offer the same tools cannot be split by tool; add rows with other tools"
        )


@dataset.command("redact")
def redact_command(
    files: Files,
    output: To,
    term: Annotated[
        list[str] | None, typer.Option("--term", metavar="TEXT", help="Redact this text too; repeatable.")
    ] = None,
    terms: Annotated[
        str | None, typer.Option("--terms", metavar="FILE", help="A file of such texts, one on each line.")
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Replace text that looks like secrets or personal data. It finds patterns, not meaning: check what you release."""
    from rightcall.datasets.releasing import redact_files

    more_terms = read_text(terms).splitlines() if terms is not None else []
    with failures(), read_progress("redact", files) as seen:
        rows, counts = redact_files(files, output, terms=[*(term or []), *more_terms], seen=seen, force=force)
    found = dict(counts.most_common())
    show_result(
        json, {"rows": rows, "found": found, "output": output}, {"rows": rows, "found": found, "output": output}
    )


@dataset.command("release")
def release_command(
    files: Files,
    output: To,
    by: Annotated[str, typer.Option(help="Who approves the release.")],
    note: Annotated[str, typer.Option(help="Why the rows may be public.")] = "",
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Mark redacted rows as public. Rows that are not redacted, or changed since, are rejected with exit code 1."""
    from rightcall.datasets.releasing import release_files

    with failures(), read_progress("release", files) as seen:
        rows, refused = release_files(files, output, by=by, note=note, refused=report_row, seen=seen, force=force)
    result = {"released": rows, "refused": refused, "output": output}
    show_result(json, result, result)
    if refused:
        raise typer.Exit(1)


# -- export ------------------------------------------------------------------------------------------------------------

ContractChoice = StrEnum("ContractChoice", ["auto", "required"])
ExportShape = StrEnum("ExportShape", {name.replace("-", "_"): name for name in SHAPES})  # type: ignore[misc]


@dataset.command("export")
@grouped
def export_command(
    *,
    files: RowFiles,
    output: To,
    to: Annotated[ExportShape, typer.Option("--to", help="The format that the trainer reads.")],
    turns: Annotated[bool, typer.Option("--turns", help="trl-sft: write an example for each good turn.")] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="NAME", help="text: the wire format to write.", autocompletion=format_names
        ),
    ] = None,
    format_file: FormatFile = None,
    contract: Annotated[
        ContractChoice | None,
        typer.Option("--contract", help="text: begin with the prompt of mode text, including the tools."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Write a public file, only from released rows.")] = False,
    keep_system: Annotated[
        bool,
        typer.Option("--keep-system", help="Keep the system messages that a capture or a text backend added."),
    ] = False,
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write rows in the format of a trainer; a file name that ends in .parquet selects Parquet.

    The file is private (mode 0600) unless --public. --public exits with code 1 and writes nothing if a row was not
    released. Rows that the format cannot represent are left out and counted, as are examples without a question or
    with an empty answer.
    """
    from rightcall.datasets.exporting import Unreleased
    from rightcall.datasets.exporting import export as export_files

    with interruptions(), failures(), read_progress("export", files, passes=2) as seen:
        try:
            wire_format = choose_format_name(format or "auto", format_file) if format or format_file else None
            options: dict[str, Any] = {"to": to.value, "turns": turns, "format": wire_format, "public": public}
            options["contract"] = contract and contract.value
            result = export_files(
                files, output, keep_system=keep_system, seen=seen, force=force, **options, **workers.arguments()
            )
        except Unreleased as error:
            for where, why in error.rows:
                report_row(where, why)
            raise
    fields = msgspec.to_builtins(result)
    show_result(json, fields, fields)
    if result.why_empty:
        print_message(result.why_empty)


# -- import ------------------------------------------------------------------------------------------------------------


def _log_kind(name: str) -> str:
    """Return the canonical name of the kind of log with this name or alias. Raises `CallerError` for an unknown one."""
    from rightcall.datasets.logs import resolve_log_kind

    return resolve_log_kind(name)


LogName = Annotated[
    str,
    typer.Option(
        "--from",
        parser=option_parser(_log_kind),
        metavar="KIND",
        help="Kind of the lines; auto recognizes each by its keys. chat, messages, responses, gemini, ollama: logs of "
        "these APIs (openai, anthropic and google work too); batch: requests and results of a batch; cassette: files "
        "of --record; capture: rows of forge-dataset; sharegpt, glaive: datasets; text: output of a model.",
    ),
]


@dataset.command("import")
@grouped
def import_command(
    *,
    files: RowFiles,
    output: To,
    kind: LogName = "auto",
    tools: ToolsFile = None,
    format: Annotated[
        str,
        typer.Option(
            *("--format", "-f"),
            metavar="NAME",
            help="The format of raw model output.",
            autocompletion=read_format_names,
        ),
    ] = "auto",
    format_file: FormatFile = None,
    policy: Annotated[Policy, typer.Option("--repair", help="How calls are repaired.")] = Policy.safe,
    rescue: RescuePolicy = Rescue.safe,
    reasoning_calls: ReasoningCallsPolicy = ReasoningCalls.safe,
    model: Annotated[str, typer.Option(help="Name of the model, where a log does not have it.")] = "unknown",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Turn logs and datasets of others into rows. Calls are parsed, repaired and checked like those of a live model.

    Reads cassettes, batches, logs of the APIs (whole or streamed), and datasets, one JSON object on a line. Ids, model
    and time are kept. Requests and results are joined by id, and exchanges of one conversation form a group. Lines
    without usable content are refused: the first three are reported with the reason, the others counted, and the
    exit code is 1.
    """
    from rightcall.datasets.importing import import_files

    refused, passed = _FirstRows("refused"), Counter[str]()
    with interruptions(), failures(), read_progress("import", files) as seen:
        options: dict[str, Any] = {"kind": kind, "repair": policy.value, "model": model}
        options |= {"rescue": rescue.value, "reasoning_calls": reasoning_calls.value, "force": force, "seen": seen}
        options |= {"format": choose_format_name(format, format_file), **workers.arguments()}
        options["passed_over"] = lambda where, why: passed.update([why])
        counts = import_files(files, output, tools=read_tools(tools), refused=refused.report, **options)
    refused.report_count()
    show_result(json, {**counts, "output": output}, {**counts, "passed_over": dict(passed), "output": output})
    if counts["refused"]:
        raise typer.Exit(1)


_MAX_REPORTED = 3


class _FirstRows:
    """Reports the first three rows on standard error, and at the end the number of the others."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0

    def report(self, where: Where, why: str) -> None:
        """Count a row, and print its place and the reason `why` on standard error if it is one of the first three."""
        self._count += 1
        if self._count <= _MAX_REPORTED:
            report_row(where, why)

    def report_count(self) -> None:
        """Print the number of rows that were counted but not printed, if there are any."""
        if self._count > _MAX_REPORTED:
            typer.echo(f"and {self._count - _MAX_REPORTED:,} more lines are {self._what}", err=True)


# -- changing rows -----------------------------------------------------------------------------------------------------

Near = Annotated[
    float | None,
    typer.Option("--near", metavar="0.3-1", help="Also drop rows of this similarity: 0.8 is a few changed words."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="NAME", help="Compare only this key; a.b is b in a. Repeatable."),
]


@dataset.command("dedupe")
@grouped
def dedupe_command(
    *,
    files: RowFiles,
    output: To,
    near: Near = None,
    key: Keys = None,
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Remove duplicate rows: keep the first of equal rows unchanged, in the order of the files.

    Captures are compared as whole conversations by what a trainer sees, without ids, times and models. Other rows are
    compared one by one. With --near, calls must still be equal except for the prose in their arguments.
    """
    from rightcall.datasets.deduping import dedupe_files

    with interruptions(), failures(), read_progress("dedupe", files, passes=2) as seen:
        options = {"near": near, "keys": key or (), "seen": seen, "force": force, **workers.arguments()}
        result = msgspec.to_builtins(dedupe_files(files, output, **options))
    show_result(json, result, result)


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND[=MOST]", help="Make only this kind, and at most this many; repeatable."),
]
Most = Annotated[int, typer.Option("--most", min=0, help="Maximum number of each kind.")]
Wires = Annotated[
    list[str] | None,
    typer.Option(
        *("--format", "-f"),
        metavar="NAME",
        help="broken_syntax: a wire format to write; repeatable.",
        autocompletion=format_names,
    ),
]


@dataset.command("mutate")
@grouped
def mutate_command(
    *,
    files: RowFiles,
    output: To,
    kind: Kinds = None,
    most: Most = 1_000,
    format: Wires = None,
    format_file: FormatFile = None,
    seed: Annotated[str, typer.Option(help="Seed that selects the changes.")] = "rightcall-mutate-v1",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Make wrong calls from correct ones as hard negatives, each with the change and why it is wrong.

    Kinds: wrong_tool, wrong_arguments, not_needed (already made, or no reason to call), ask_back (the request no
    longer has the value of an argument), broken_syntax (in any wire format). Each is verified before it is written.
    The same rows and seed give the same result.
    """
    from rightcall.datasets.mutating import mutate_files

    with interruptions(), failures(), read_progress("mutate", files) as seen:
        limits = _parse_kinds(kind, most)
        own = [choose_format_name("auto", format_file)] if format_file else []
        wires = [*[choose_format_name(name, None) for name in format or ()], *own]
        options = {"kinds": limits, "formats": wires, "seed": seed, "seen": seen, "force": force, **workers.arguments()}
        result = msgspec.to_builtins(mutate_files(files, output, **options))
    show_result(json, result, result)


def _parse_kinds(options: list[str] | None, most: int) -> dict[str, int]:
    """Return a dict from each kind of mutation in the KIND[=MOST] options to its maximum number, which is `most`
    without "=MOST"; all kinds if there are no options. Raises `CallerError` for a number that is none; the names of
    kinds are not checked."""
    from rightcall.datasets.mutating import KINDS

    limits: dict[str, int] = {}
    for option in options or KINDS:
        kind, has_limit, number = option.partition("=")
        if has_limit and not number.isdecimal():
            raise CallerError(f"--kind {option}: {number!r} is not a number; write {kind}=500")
        limits[kind] = int(number) if has_limit else most
    return limits
