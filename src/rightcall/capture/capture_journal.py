"""The journal of a capture: durable appends for many tasks, and what an earlier run wrote.

The journal of `capture.jsonl` is `capture.jsonl.journal`. A run writes a first line that identifies it, and one line
per answer of the model, synced before the first row made of that answer:

    {"rightcall_journal": 1, "run": {"models": ["qwen3"], "runs": 1, ...}}
    {"task": "...", "group": "...", "turn": 0, "calls": [...], ...}
    {"ran": "tool", "task": "...", "turn": 0, "call": 0, "outcome": {...}}       the result of a real tool

Rows are made of answers and results alone. A killed run can therefore continue: both are read from the journal, missing
rows are written, and existing rows are not written again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from rightcall.capture.captured_rows import OUTCOME, SCHEMA, capture_key
from rightcall.capture.scenario_run import JournalEntry, ToolRan
from rightcall.capture.stubs import StubOutcome
from rightcall.errors import CallerError, FileFailed
from rightcall.storage.file_kinds import LONGEST, json_lines
from rightcall.storage.journal import Journal
from rightcall.storage.jsonl import LineFault, decode_row, read_at, read_rows
from rightcall.storage.streams import is_stream
from rightcall.types import Json

VERSION = 1
ANSWERS = json_lines("journal of a capture", "rightcall_journal", VERSION)
_Place = tuple[int, int]  # the offset and the length of a line


class Commits:
    """Appends rows to one file for many tasks of one event loop (group commit).

        rows = Commits(Journal("capture.jsonl"))
        await rows.append(row)                   # on disk when it returns

    Rows that wait together share one sync: those that arrive during a sync go with the next one. With `alone` there is
    one task, and each row is written at once. After a failure nothing more is accepted.
    """

    def __init__(self, file: Journal, *, alone: bool = False) -> None:
        self._file, self._alone = file, alone
        self._waiting: list[tuple[Json, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._failure: FileFailed | OSError | None = None
        self.syncs = 0

    async def append(self, row: Json) -> None:
        """Append a row and wait until it is on disk. Raises `FileFailed` or `OSError` if this row, or any row before
        it, could not be written."""
        if self._failure is not None:
            raise self._failure
        if self._alone:
            self._write_and_sync([row])
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((row, done))
        if self._writer is None:
            self._writer = asyncio.create_task(self._drain())
        await done

    async def flush(self) -> None:
        """Wait until the rows appended so far are written or have failed, also those of cancelled tasks. Raises nothing
        for a failed row: its `append` does."""
        if self._writer is not None:
            await self._writer

    async def _drain(self) -> None:
        """Write waiting rows in batches, with one sync each, and resolve their futures, until no row is waiting."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write_and_sync, [row for row, _ in batch])
            except (FileFailed, OSError) as error:
                self._failure = error
                batch += self._waiting  # these rows will not be written, so their tasks must not wait
                self._waiting = []
            for _, done in batch:
                if not done.done():
                    done.set_result(None) if self._failure is None else done.set_exception(self._failure)
        self._writer = None

    def _write_and_sync(self, rows: list[Json]) -> None:
        """Append rows to the file with one sync, and count it. Raises `FileFailed`."""
        self._file.append_all(rows)
        self.syncs += 1


class CannotResume(CallerError):
    """The run to be continued has other settings, or its journal is invalid."""


def journal_path(output: Path) -> Path:
    """Return the path of the journal of a capture file; the null device for a stream, which cannot be continued."""
    if is_stream(output):
        return Path(os.devnull)
    return output.with_name(output.name + ".journal")


def journal_head(run: Json) -> Json:
    """Return the first line of a journal as JSON data; `run` identifies the run (see `capture_identity`)."""
    return {"rightcall_journal": VERSION, "run": run}


def check_same_run(before: Json, run: Json) -> None:
    """Raise `CannotResume` for the first setting that differs, or that only one has, between the identity of the
    earlier run (`before`) and that of this one (`run`)."""
    for name in dict.fromkeys([*before, *run]):
        if before.get(name) != run.get(name):
            values = [msgspec.json.encode(each.get(name)).decode()[:200] for each in (before, run)]
            raise CannotResume(
                f"the run to continue had {name} {values[0]}, but this one has {values[1]}; "
                "pass the same value, or leave out --resume to begin another run"
            )


class PastRun:
    """The last run of a journal: the answers of each task, and which of their rows were written. `run` is its identity;
    None if the journal has no run. Entries are read from the file when they are needed."""

    def __init__(self) -> None:
        self.run: Json | None = None
        self._path: Path | None = None
        self._entries: dict[str, list[_Place]] = {}  # by task
        self._groups: dict[str, str] = {}  # by task
        self._written: dict[str, set[str]] = {}  # keys of the rows, by group; only of groups that have not ended
        self._done: set[str] = set()  # groups that have ended
        self._results: dict[tuple[str, int, int], _Place] = {}  # of real tools, by task, turn and call

    @classmethod
    def read(cls, path: Path) -> PastRun:
        """Return the last run of the journal at `path`; an empty one if there is no file. Raises `CannotResume` for an
        invalid line, `FileFailed` for a file that cannot be read."""
        past = cls()
        if not path.exists():
            return past
        try:
            with path.open("rb") as file:
                number = offset = 0
                while line := file.readline(LONGEST + 1):
                    number += 1
                    past._add_line(path, number, line, (offset, len(line)))
                    offset += len(line)
        except OSError as error:
            raise FileFailed(f"cannot read {path}: {error.strerror or error}") from error
        return past

    def _add_line(self, path: Path, number: int, line: bytes, place: _Place) -> None:
        """Record one line of the journal: the head of a run, which discards the earlier run, an answer of the model, or
        the result of a tool. `place` is its offset and length. Raises `CannotResume` for an invalid line, one of
        another version, and an answer before any head."""
        value = decode_row(line)
        if isinstance(value, LineFault):
            raise CannotResume(f"{path}:{number}: {value.message}; the run cannot be continued with this journal")
        if "rightcall_journal" in value:
            if value["rightcall_journal"] != VERSION:
                raise CannotResume(
                    f"{path}:{number}: a journal of version {value['rightcall_journal']!r}, not {VERSION}"
                )
            self.run, self._path = value.get("run") or {}, path
            self._entries, self._groups, self._results = {}, {}, {}
            return
        try:
            if "ran" in value:
                ran = msgspec.convert(value, ToolRan)
                self._results[ran.task, ran.turn, ran.call] = place
                return
            entry = msgspec.convert(value, JournalEntry)
        except msgspec.ValidationError as error:
            raise CannotResume(f"{path}:{number}: {error}; the run cannot be continued with this journal") from error
        if self.run is None:
            raise CannotResume(f"{path}: its first line does not identify a run; the run cannot be continued")
        self._entries.setdefault(entry.task, []).append(place)
        self._groups[entry.task] = entry.group

    def find_rows(self, output: Path, report: Callable[[Json], None]) -> None:
        """Read the capture file, record its rows of this run for `has_row` and `is_done`, and call `report` with each.

        Rows of other runs are skipped. Raises `FileFailed` for a line that is not a row.
        """
        groups = set(self._groups.values())
        for number, row in read_rows(output) if groups else ():
            if isinstance(row, LineFault):
                raise FileFailed(f"{output}:{number}: {row.message}; fix the line, or name another file")
            group = row.get("example_group_id")
            if row.get("schema_version") == SCHEMA and group in groups:
                self._written.setdefault(group, set()).add(capture_key(row))
                report(row)
                if row.get("kind") == OUTCOME:
                    self._done.add(group)
                    self._written.pop(group)

    def entries(self, task: str) -> list[JournalEntry]:
        """Return the journaled answers to a task, in order; none if the run did not reach it."""
        if self._path is None or task not in self._entries:
            return []
        with self._path.open("rb") as file:
            return [msgspec.convert(read_at(file, *place), JournalEntry) for place in self._entries[task]]

    def tool_result(self, task: str, turn: int, call: int) -> StubOutcome | None:
        """Return the result of a call by a real tool, by task, turn and index; None if the tool did not run."""
        place = self._results.get((task, turn, call))
        if self._path is None or place is None:
            return None
        with self._path.open("rb") as file:
            return msgspec.convert(read_at(file, *place), ToolRan).outcome

    def group(self, task: str) -> str:
        """Return the id that the rows of a task share; "" if the task has no answer yet."""
        return self._groups.get(task, "")

    def is_done(self, task: str) -> bool:
        """Return whether `find_rows` found the row of the task's outcome, which is its last row."""
        return self._groups.get(task) in self._done

    def has_row(self, row: Json) -> bool:
        """Return whether `find_rows` found this row in the capture file. Rows of conversations that have ended are not
        kept: for them it is False."""
        return capture_key(row) in self._written.get(row["example_group_id"], ())
