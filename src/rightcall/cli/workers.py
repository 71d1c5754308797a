"""Who works on rows: the options that the commands over many rows share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer


class EngineChoice(StrEnum):
    local = "local"
    ray = "ray"


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on the rows of a file, and how many at a time."""

    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; else one per core.")
    ] = None
    engine: Annotated[
        EngineChoice | None, typer.Option("--engine", help="Who works: processes of this machine, or Ray; else local.")
    ] = None

    def told(self) -> dict[str, Any]:
        """As the functions of `rightcall.datasets` take it."""
        return {**msgspec.structs.asdict(self), "engine": self.engine or "local"}


class Workers(EngineOptions, frozen=True, kw_only=True):
    """And whether a run that was broken off is gone on with."""

    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was broken off.")] = False
