"""What an earlier run left behind, and how a run goes on from there.

Beside `capture.jsonl` stands `capture.jsonl.journal`. Its first line of a run says what the run is; then follows one
line per answer of a model, written and synced before the first row that is made of it:

    {"rightcall_journal": 1, "run": {"models": ["qwen3"], "runs": 1, ...}}
    {"task": "...", "group": "...", "turn": 0, "calls": [...], ...}
    {"ran": "tool", "task": "...", "turn": 0, "call": 0, "outcome": {...}}       the result of a real tool

Rows are made of answers and results, and of nothing else, so a run that was killed at any moment can be gone on with:
both are taken from the journal, rows that are missing are written, and those that are there are not written again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from rightcall.capture.captured_rows import OUTCOME, SCHEMA, capture_key
from rightcall.capture.scenario_run import JournalEntry, ToolRan
from rightcall.capture.stubs import StubOutcome
from rightcall.errors import CallerError, FileFailed
from rightcall.storage.file_kinds import LONGEST, json_lines
from rightcall.storage.jsonl import LineFault, decode_row, read_at, read_rows
from rightcall.storage.streams import is_stream
from rightcall.types import Json

VERSION = 1
ANSWERS = json_lines("journal of a capture", "rightcall_journal", VERSION)
Place = tuple[int, int]  # of a line: where it begins, how long it is


class CannotResume(CallerError):
    """The run that is to be gone on with is another one, or its journal cannot be read."""


def journal_of(output: Path) -> Path:
    """Beside the rows. Rows that go to a stream are not gone on with, and leave no journal."""
    if is_stream(output):
        return Path(os.devnull)
    return output.with_name(output.name + ".journal")


def head(run: Json) -> Json:
    """The line that begins a run."""
    return {"rightcall_journal": VERSION, "run": run}


class Past:
    """The last run of a journal: its answers by task, and which of their rows are written. Empty if there was none."""

    def __init__(self) -> None:
        self.run: Json | None = None
        self._path: Path | None = None
        self._said: dict[str, list[Place]] = {}
        self._groups: dict[str, str] = {}  # of each task
        self._written: dict[str, set[str]] = {}  # keys of the rows, by group; of groups that have not ended
        self._done: set[str] = set()  # groups that have
        self._ran: dict[tuple[str, int, int], Place] = {}  # results of real tools, by task, turn and call

    def begin(self, path: Path, run: Json) -> None:
        """Forgets what was before: another run begins here."""
        self.run, self._path = run, path
        self._said, self._groups, self._ran = {}, {}, {}

    def add_ran(self, ran: ToolRan, place: Place) -> None:
        self._ran[ran.task, ran.turn, ran.call] = place

    def ran(self, task: str, turn: int, call: int) -> StubOutcome | None:
        """What a real tool gave to this call; None if it was not run."""
        place = self._ran.get((task, turn, call))
        if self._path is None or place is None:
            return None
        with self._path.open("rb") as file:
            return msgspec.convert(read_at(file, *place), ToolRan).outcome

    def add(self, said: Json, place: Place) -> None:
        self._said.setdefault(said["task"], []).append(place)
        self._groups[said["task"]] = said["group"]

    def group(self, task: str) -> str:
        return self._groups.get(task, "")

    def is_done(self, task: str) -> bool:
        return self._groups.get(task) in self._done

    def has_row(self, row: Json) -> bool:
        return capture_key(row) in self._written.get(row["example_group_id"], ())

    def said(self, task: str) -> list[JournalEntry]:
        """The answers to a task, in order."""
        if self._path is None or task not in self._said:
            return []
        with self._path.open("rb") as file:
            return [_said(file, place) for place in self._said[task]]

    def find_rows(self, output: Path, tell: Callable[[Json], None]) -> None:
        """Learns which rows of this run are written, and tells of each. Raises `FileFailed` for a line that is none."""
        mine = set(self._groups.values())
        for number, row in read_rows(output) if mine else ():
            if isinstance(row, LineFault):
                raise FileFailed(f"{output}:{number}: {row.message}; mend the line, or name another file")
            group = row.get("example_group_id")
            if row.get("schema_version") == SCHEMA and group in mine:
                self._written.setdefault(group, set()).add(capture_key(row))
                tell(row)
                if row.get("kind") == OUTCOME:
                    self._done.add(group)
                    self._written.pop(group)


def _said(file: BinaryIO, place: Place) -> JournalEntry:
    return msgspec.convert(read_at(file, *place), JournalEntry)


def read_journal(path: Path) -> Past:
    """The last run that a journal holds. Raises `CannotResume`, `FileFailed`."""
    past = Past()
    if not path.exists():
        return past
    try:
        with path.open("rb") as file:
            number = at = 0
            while line := file.readline(LONGEST + 1):
                number += 1
                _take(past, path, number, line, (at, len(line)))
                at += len(line)
    except OSError as error:
        raise FileFailed(f"cannot read {path}: {error.strerror or error}") from error
    return past


def _take(past: Past, path: Path, number: int, line: bytes, place: Place) -> None:
    value = decode_row(line)
    if isinstance(value, LineFault):
        raise CannotResume(f"{path}:{number}: {value.message}; it is no journal that can be gone on with")
    if "rightcall_journal" in value:
        if value["rightcall_journal"] != VERSION:
            raise CannotResume(f"{path}:{number}: a journal of version {value['rightcall_journal']!r}, not {VERSION}")
        past.begin(path, value.get("run") or {})
        return
    try:
        if "ran" in value:
            past.add_ran(msgspec.convert(value, ToolRan), place)
            return
        said = msgspec.convert(value, JournalEntry)
    except msgspec.ValidationError as error:
        raise CannotResume(f"{path}:{number}: {error}; it is no journal that can be gone on with") from error
    if past.run is None:
        raise CannotResume(f"{path}: it does not say what run it is of; it is no journal that can be gone on with")
    past.add({"task": said.task, "group": said.group}, place)


def check_same_run(before: Json, run: Json) -> None:
    """Raise `CannotResume` if the settings of the earlier run (`before`) differ from those of this one."""
    for name in dict.fromkeys([*before, *run]):
        if before.get(name) != run.get(name):
            raise CannotResume(
                f"the run to go on with had {name} {_short(before.get(name))}, and this one has "
                f"{_short(run.get(name))}; say the same, or leave out --resume to begin another run"
            )


def _short(value: object) -> str:
    return msgspec.json.encode(value).decode()[:200]
