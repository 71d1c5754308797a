"""`rightcall dataset dedupe` and `mutate`: each row once, and rows that are wrong on purpose."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rightcall.cli.completing import format_names
from rightcall.cli.dataset_command import RowFiles, To, failures, show_result
from rightcall.cli.inputs import AsJson, Force, FormatFile, choose_format_name
from rightcall.cli.option_groups import grouped
from rightcall.cli.progress import reading
from rightcall.cli.workers import Workers, broken_off
from rightcall.errors import CallerError

Near = Annotated[
    float | None,
    typer.Option("--near", metavar="0.3-1", help="Drop what is so alike too: 0.8 is a few changed words."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="NAME", help="Compare only what has this name; a.b is b in a. Repeatable."),
]


@grouped
def dedupe(
    *,
    files: RowFiles,
    output: To,
    near: Near = None,
    key: Keys = None,
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write each row once: the first of those that are the same, as it was, in the order of the files.

    Of captures whole conversations are compared, by what a trainer sees: ids, times and models do not count. Of other
    rows each is compared by itself. With --near, calls must still be the same but for the prose in their arguments.
    """
    from rightcall.datasets.deduping import dedupe_files

    with broken_off(), failures(), reading("dedupe", files, passes=2) as seen:
        options = {"near": near, "keys": key or (), "seen": seen, "force": force, **workers.told()}
        made = dedupe_files(files, output, **options)
    told = msgspec.to_builtins(made)
    show_result(json, told, told)


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND[=MOST]", help="Make only this kind, and at most so many; repeatable."),
]
Most = Annotated[int, typer.Option("--most", min=0, help="How many of each kind there may be.")]
Wires = Annotated[
    list[str] | None,
    typer.Option(
        *("--format", "-f"),
        metavar="NAME",
        help="broken_syntax: a wire format to write; repeatable.",
        autocompletion=format_names,
    ),
]


@grouped
def mutate(
    *,
    files: RowFiles,
    output: To,
    kind: Kinds = None,
    most: Most = 1_000,
    format: Wires = None,
    format_file: FormatFile = None,
    seed: Annotated[str, typer.Option(help="Another seed, other rows.")] = "rightcall-mutate-v1",
    workers: Workers,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Make wrong calls of right ones: hard negatives, each with what was changed and why that is wrong.

    Kinds: wrong_tool, wrong_arguments, not_needed (made already, or nothing to call for), ask_back (the request no
    longer says what an argument is), broken_syntax (in any wire format). Each is looked at before it is written. The
    same rows and seed give the same.
    """
    from rightcall.datasets.mutating import mutate_files

    with broken_off(), failures(), reading("mutate", files) as seen:
        caps = _caps(kind, most)
        own = [choose_format_name("auto", format_file)] if format_file else []
        wires = [*[choose_format_name(name, None) for name in format or ()], *own]
        options = {"kinds": caps, "formats": wires, "seed": seed, "seen": seen, "force": force, **workers.told()}
        made = mutate_files(files, output, **options)
    told = msgspec.to_builtins(made)
    show_result(json, told, told)


def _caps(given: list[str] | None, most: int) -> dict[str, int]:
    """How many of each kind, as told."""
    from rightcall.datasets.mutations import KINDS

    caps: dict[str, int] = {}
    for word in given or KINDS:
        kind, told, number = word.partition("=")
        if told and not number.isdecimal():
            raise CallerError(f"--kind {word}: how many is a number, as in {kind}=500")
        caps[kind] = int(number) if told else most
    return caps
