"""`rightcall dataset import` and `export`: logs of others as rows, and rows as files for a trainer."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from rightcall.cli.completing import format_names, read_format_names
from rightcall.cli.dataset_command import RowFiles, To, failures, show_result, tell_row
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
    checked,
    choose_format_name,
    read_tools,
    say,
)
from rightcall.cli.option_groups import grouped
from rightcall.cli.progress import reading
from rightcall.cli.workers import Workers, broken_off
from rightcall.datasets.message_shapes import SHAPES
from rightcall.datasets.row_files import Where

ContractChoice = StrEnum("ContractChoice", ["auto", "required"])
ExportShape = StrEnum("ExportShape", {name.replace("-", "_"): name for name in SHAPES})  # type: ignore[misc]


def _log_kind(given: str) -> str:
    from rightcall.datasets.logs import log_kind

    return log_kind(given)


LogName = Annotated[
    str,
    typer.Option(
        "--from",
        parser=checked(_log_kind),
        metavar="KIND",
        help="What the lines are; auto tells each by its keys. chat, messages, responses, gemini and ollama are logs "
        "of these APIs (openai, anthropic and google are known too), batch requests and results of a batch, cassette "
        "what --record wrote, capture rows of forge-dataset, sharegpt and glaive datasets, text what a model wrote.",
    ),
]


@grouped
def export(
    *,
    files: RowFiles,
    output: To,
    to: Annotated[ExportShape, typer.Option("--to", help="The shape that the trainer reads.")],
    turns: Annotated[bool, typer.Option("--turns", help="trl-sft: an example for each good turn.")] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="NAME", help="text: the wire format to write.", autocompletion=format_names
        ),
    ] = None,
    format_file: FormatFile = None,
    contract: Annotated[
        ContractChoice | None,
        typer.Option("--contract", help="text: begin with what mode text tells a model, its tools among it."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="A file for everyone: only of released rows.")] = False,
    keep_system: Annotated[
        bool,
        typer.Option("--keep-system", help="Leave in what the harness told the model."),
    ] = False,
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write rows in the shape of a trainer; a name that ends in .parquet is written as Parquet.

    The file is private (mode 0600) unless --public, which refuses every row that was not released: exit code 1, and
    nothing is written. What a shape cannot say is left out and counted, and so is every example in which nobody asks or
    the answer is empty.
    """
    from rightcall.datasets.exporting import Unreleased
    from rightcall.datasets.exporting import export as exported

    with broken_off(), failures(), reading("export", files, passes=2) as seen:
        try:
            wire = choose_format_name(format or "auto", format_file) if format or format_file else None
            options: dict[str, Any] = {"to": to.value, "turns": turns, "format": wire, "public": public}
            options["contract"] = contract and contract.value
            made = exported(files, output, keep_system=keep_system, seen=seen, force=force, **options, **workers.told())
        except Unreleased as error:
            for where, why in error.rows:
                tell_row(where, why)
            raise
    told = msgspec.to_builtins(made)
    show_result(json, told, told)
    if made.why_empty:
        say(made.why_empty)


@grouped
def import_(
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
            help="The format of texts that a model wrote.",
            autocompletion=read_format_names,
        ),
    ] = "auto",
    format_file: FormatFile = None,
    policy: Annotated[Policy, typer.Option("--repair", help="How much may be repaired.")] = Policy.safe,
    rescue: RescuePolicy = Rescue.safe,
    reasoning_calls: ReasoningCallsPolicy = ReasoningCalls.safe,
    model: Annotated[str, typer.Option(help="The model, where a log does not say it.")] = "unknown",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Turn logs and datasets of others into rows: read, repaired and checked as a live model is, receipts kept.

    Cassettes, batches, logs of the APIs (whole or streamed), and datasets, one JSON object on a line. Ids, model and
    time are kept. A request and its result are joined by their id, and exchanges of one conversation are one group. A
    line in which nothing is found is refused: the first three are told with their reason, the rest counted, and the
    exit code is 1.
    """
    from rightcall.datasets.imported import import_files

    refused, passed = _FirstOfMany("refused"), Counter[str]()
    with broken_off(), failures(), reading("import", files) as seen:
        options: dict[str, Any] = {"kind": kind, "repair": policy.value, "model": model}
        options |= {"rescue": rescue.value, "reasoning_calls": reasoning_calls.value, "force": force, "seen": seen}
        options |= {"format": choose_format_name(format, format_file), **workers.told()}
        options["passed_over"] = lambda where, why: passed.update([why])
        counts = import_files(files, output, tools=read_tools(tools), refused=refused.tell, **options)
    refused.tell_rest()
    show_result(json, {**counts, "output": output}, {**counts, "passed_over": dict(passed), "output": output})
    if counts["refused"]:
        raise typer.Exit(1)


class _FirstOfMany:
    """Tells of the first three lines; of a million others only how many they are."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0

    def tell(self, where: Where, why: str) -> None:
        self._count += 1
        if self._count <= _TOLD_OF:
            tell_row(where, why)

    def tell_rest(self) -> None:
        if self._count > _TOLD_OF:
            typer.echo(f"and {self._count - _TOLD_OF:,} more lines are {self._what}", err=True)


_TOLD_OF = 3
