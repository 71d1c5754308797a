"""`dataset import`: logs of others as rows of ours, through the same reading, repair and check as a live model.

    rows_of({"messages": [...], "tools": [...]}, group="import-log-1")   ->   rows of rightcall-capture/v1

Each call is a row, with its receipts and problems; each answer without a call is an outcome. `import_line` does the
work of one line and knows of no other; what lines have to do with each other is settled by `joining`.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from rightcall.apis.sdk_view import dumps
from rightcall.capture.captured_rows import RESPOND, LineFault, unix_ms
from rightcall.datasets.joining import LinkedTurns, LogLine, joined_lines
from rightcall.datasets.log_walk import LogWalk
from rightcall.datasets.logged import PassedOver
from rightcall.datasets.logs import conversation, log_kind
from rightcall.datasets.row_files import Seen, Where, digest
from rightcall.datasets.text_logs import listed_tools
from rightcall.datasets.validating import count
from rightcall.datasets.written_kinds import IMPORTED
from rightcall.declare.toolset import Toolset
from rightcall.errors import CallerError, RightcallError
from rightcall.files.whole_files import WholeFile
from rightcall.rows.engine_names import engine_of
from rightcall.rows.engines import Engine
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.types import Json

_KEPT = 200_000  # characters of tools that are kept when read


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the lines are, and how they are read: as in `import_files`. `at` is the time of lines that say none."""

    kind: str = "auto"
    tools: Toolset | None = None
    format: str = "auto"
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
    reading = {"format": log.format if how.format == "auto" else how.format, "repair": how.repair}
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


# -- files -------------------------------------------------------------------------------------------------------------


def import_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kind: str = "auto",
    tools: Toolset | None = None,
    format: str = "auto",
    repair: str = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    model: str = "unknown",
    refused: Callable[[Where, str], None],
    passed_over: Callable[[Where, str], None] | None = None,
    engine: str = "local",
    jobs: int | None = None,
    seen: Seen | None = None,
    force: bool = False,
) -> Counter[str]:
    """Writes logs of others as rows of ours, through the same reading, repair and check as a live model. Gives counts
    of what was found.

    - `paths`: files of JSON lines: cassettes, batches, logs, datasets; a file may hold lines of several kinds.
    - `output`: the file.
    - `kind`: what the lines are; "auto" tells by their keys.
    - `tools`: what could be called, where the logs do not say.
    - `format`, `repair`, `rescue`, `reasoning_calls`: as in `parse`.
    - `model`: the model's name, where the logs do not say.
    - `refused`: is told of each line in which nothing is found, with its place and the reason.
    - `passed_over`: is told of each line that is as it should be and holds no conversation, such as the head of a
      cassette.
    - `engine`, `jobs`: who reads the lines ("local" or "ray"), and how many at a time.
    - `seen`, `force`: as in `export`.
    """
    files, counts = list(paths), Counter[str]()
    how = ImportOptions(
        kind=log_kind(kind),
        tools=tools,
        format=format,
        repair=repair,
        rescue=rescue,
        reasoning_calls=reasoning_calls,
        model=model,
        at=unix_ms(),
    )
    tell = passed_over or (lambda where, why: None)
    with WholeFile(output, IMPORTED, sources=files, force=force) as out, LinkedTurns() as linked:
        for where, made in _imported(joined_lines(files, how.kind, seen=seen), how, engine_of(engine, jobs)):
            if not made.rows:
                counts["refused" if made.is_refused else "passed_over"] += 1
                (refused if made.is_refused else tell)(where, made.why)
                continue
            counts["conversations"] += linked.take(made.rows, made.before, made.after)
            for each in made.rows:
                _counted(counts, each)
                out.write(each)
    return counts


_TOGETHER = 32  # lines that travel to a worker together


def _imported(lines: Iterator[LogLine], how: ImportOptions, engine: Engine) -> Iterator[tuple[Where, ImportedLine]]:
    """Each line with what it comes to, in order. They are read one after the other, and worked on by many."""
    for result in engine.map(_ImportWork(how), _batches(lines)):
        yield from pickle.loads(result)  # noqa: S301 - our own bytes


def _batches(lines: Iterator[LogLine]) -> Iterator[bytes]:
    while batch := list(islice(lines, _TOGETHER)):
        yield pickle.dumps(batch)


class _ImportWork:
    """What an engine carries: lines in, what they come to out."""

    def __init__(self, how: ImportOptions) -> None:
        self._how = how

    def __call__(self, item: bytes) -> bytes:
        return pickle.dumps([(line.where, self._line(line)) for line in pickle.loads(item)])  # noqa: S301 - our own bytes

    def _line(self, line: LogLine) -> ImportedLine:
        how = self._how if line.kind == self._how.kind else replace(self._how, kind=line.kind)
        return import_line(line.row, group_of(line.where), how)


def group_of(where: Where) -> str:
    """The name of the conversation that begins with this line."""
    return f"import-{digest(where.path).hex()[:8]}-{where.number:08d}"


def _counted(counts: Counter[str], row: Json) -> None:
    count(counts, "calls" if "candidate_call" in row else "answers")
    counts["repairs"] += len(row.get("repairs", ()))
    counts["problems"] += len(row["problems"])
