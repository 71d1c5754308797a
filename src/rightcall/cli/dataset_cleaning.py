"""`rightcall dataset dedupe`: each row once."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rightcall.cli.dataset_command import Files, To, failures, show_result
from rightcall.cli.inputs import AsJson, Force
from rightcall.cli.progress import reading

Near = Annotated[
    float | None,
    typer.Option("--near", metavar="0.3-1", help="Drop what is so alike too: 0.8 is a few changed words."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="NAME", help="Compare only what has this name; a.b is b in a. Repeatable."),
]


def dedupe(
    files: Files, output: To, near: Near = None, key: Keys = None, force: Force = False, json: AsJson = False
) -> None:
    """Write each row once: the first of those that are the same, as it was, in the order of the files.

    Of captures whole conversations are compared, by what a trainer sees: ids, times and models do not count. Of other
    rows each is compared by itself. With --near, calls must still be the same but for the prose in their arguments.
    """
    from rightcall.datasets.deduping import dedupe_files

    with failures(), reading("dedupe", files, passes=2) as seen:
        made = dedupe_files(files, output, near=near, keys=key or (), seen=seen, force=force)
    told = msgspec.to_builtins(made)
    show_result(json, told, told)
