"""What one line of a log comes to: rows of ours, through the same reading, repair and check as a live model.

    rows_of({"messages": [...], "tools": [...]}, group="import-log-1")   ->   rows of rightcall-capture/v1

Each call is a row, with its receipts and problems; each answer without a call is an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.capture.captured_rows import RESPOND, LineFault
from rightcall.datasets.log_walk import LogWalk
from rightcall.datasets.logged import PassedOver
from rightcall.datasets.logs import conversation
from rightcall.datasets.text_logs import listed_tools
from rightcall.errors import CallerError, RightcallError
from rightcall.formats.spec import Format
from rightcall.providers.sdk_view import dumps
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Json

_KEPT = 200_000  # characters of tools that are kept when read


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the lines are, and how they are read: as in `import_files`. `at` is the time of lines that say none."""

    kind: str = "auto"
    tools: Toolset | None = None
    format: str | Format = "auto"
    repair: str = "safe"
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    model: str = "unknown"
    at: int | None = None


class ImportedLine(msgspec.Struct, frozen=True):
    """The rows of a line. `before` and `after` stand for what an exchange goes on from and where it ends; `why` says
    why there are no rows, and `is_refused` whether there should be some."""

    rows: list[Json] = []
    before: list[bytes] = []
    after: bytes = b""
    why: str = ""
    is_refused: bool = False


def import_line(row: Json | LineFault, group: str, how: ImportOptions) -> ImportedLine:
    """What one line comes to. Never raises because of what it holds."""
    try:
        if isinstance(row, LineFault):
            raise CallerError(row.message)
        walk = _walk(row, group, how)
        rows = list(walk.rows())
    except PassedOver as reason:
        return ImportedLine(why=str(reason))
    except RightcallError as error:
        return ImportedLine(why=str(error), is_refused=True)
    return ImportedLine(rows, walk.before, walk.after)


def rows_of(row: Json, *, group: str, **options: Any) -> Iterator[Json]:
    """The rows of one logged conversation. Raises `RightcallError` if it is none, or its tools cannot be used."""
    return _walk(row, group, ImportOptions(**options)).rows()


def _walk(row: Json, group: str, how: ImportOptions) -> LogWalk:
    log = conversation(row, how.kind)
    toolset = how.tools if how.tools is not None else _tools(log.tools or listed_tools(log.entries))
    reading: dict[str, Any] = {"format": log.format if how.format == "auto" else how.format, "repair": how.repair}
    reading |= {"rescue": how.rescue, "reasoning_calls": how.reasoning_calls}
    return LogWalk(log, toolset, log.group or group, reading, log.model or how.model, how.at)


def _tools(given: Any) -> Toolset | None:
    """Tools as logged: definitions of any provider, or JSON text with them. None if there are none."""
    if isinstance(given, str) and given.strip():
        given = decode(given, MAX_DEPTH)
    if not given or isinstance(given, Undecodable):
        return None
    said = dumps(given)
    return _read_tools(said) if len(said) < _KEPT else _read_tools.__wrapped__(said)


@lru_cache(64)
def _read_tools(said: str) -> Toolset:
    """Conversations share their tools: what was read is kept for a while."""
    return Toolset([tool for tool in Toolset(json.loads(said)) if tool.name != RESPOND.name])
