"""Who works on rows: the options that the commands over many rows share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer


class EngineChoice(StrEnum):
    local = "local"
    ray = "ray"


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on the rows of a file, and how many at a time."""

    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; else one per core.")
    ] = None
    engine: Annotated[
        EngineChoice | None, typer.Option("--engine", help="Who works: processes of this machine, or Ray; else local.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was broken off.")] = False

    def told(self) -> dict[str, Any]:
        """As the functions of `rightcall.datasets` take it."""
        return {"engine": self.engine or "local", "jobs": self.jobs, "resume": self.resume}
