"""Who works on rows: the options that the commands over many rows share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from rightcall.cli.inputs import say
from rightcall.errors import WorkerLost


class EngineChoice(StrEnum):
    local = "local"
    ray = "ray"


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on the rows of a file, how many at a time, and whether a run that was broken off is gone on with."""

    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; else one per core.")
    ] = None
    engine: Annotated[
        EngineChoice | None, typer.Option("--engine", help="Who works: processes of this machine, or Ray; else local.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was broken off.")] = False

    def told(self) -> dict[str, Any]:
        """As the functions of `rightcall.datasets` take it."""
        return {**msgspec.structs.asdict(self), "engine": self.engine or "local"}


@contextmanager
def broken_off(*, can_go_on: bool = True) -> Iterator[None]:
    """Workers that were lost end in one line and exit code 1, Ctrl-C in one line and 130."""
    try:
        yield
    except WorkerLost as error:
        say(str(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        say("broken off" + ("; --resume goes on with it" if can_go_on else ""))
        raise typer.Exit(130) from None
