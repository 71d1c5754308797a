"""The journal of a run: every turn is on disk before its calls run, so that a run that was killed can go on.

A line has the messages that are new and the state behind them, the pending turn included; or a note of what happened
(`event` says what), for those who want to see the run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rightcall.errors import FileFailed
from rightcall.loop.conversation import Conversation
from rightcall.storage.file_kinds import existing, json_lines
from rightcall.storage.journal import Journal
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.types import Json

KIND = json_lines("journal of a run", "run_journal", 1)


class RunJournal:
    """One file, opened once. `conversation` is what it held, None for a new one; `notes` are those of it."""

    def __init__(self, path: str | Path) -> None:
        self._file = Journal(path, KIND, torn="cut", alone=True)
        self.conversation: Conversation | None = None
        self.notes: list[Json] = []
        self._written = 0
        if self._file.is_empty:
            self._file.append({"run_journal": 1})
        else:
            self.conversation, self.notes = _read(Path(path))
            self._written = 0 if self.conversation is None else len(self.conversation.messages)
            if self.conversation is not None:  # as it is now that it is taken up again
                self._file.append({"all": self.conversation.messages, "state": _state(self.conversation)})

    def write(self, conversation: Conversation) -> None:
        """What is new since the last time, in one line: a line is there whole or not at all."""
        new = conversation.messages[self._written :]
        self._file.append({"new": new, "state": _state(conversation)})
        self._written = len(conversation.messages)

    def note(self, note: Json) -> None:
        """What happened, by its `event`; it is no part of the conversation."""
        self._file.append(note)
        self.notes.append(note)

    def close(self) -> None:
        self._file.close()


def _state(conversation: Conversation) -> Json:
    """Everything but the messages."""
    return {key: value for key, value in conversation.to_json().items() if key != "messages"}


def read_notes(path: str | Path) -> Iterator[Json]:
    """The notes of a run, in order, also while it goes on. Raises `FileFailed` for a file of another kind."""
    existing(Path(path), KIND)
    for _, row in _rows(Path(path)):
        if "event" in row:
            yield row


def _read(path: Path) -> tuple[Conversation | None, list[Json]]:
    messages: list[Any] = []
    notes: list[Json] = []
    state: Json = {}
    for _, row in _rows(path):
        if "event" in row:
            notes.append(row)
            continue
        messages = list(row["all"]) if "all" in row else messages
        messages += row.get("new", ())
        state = row.get("state", state)
    return Conversation.from_json({**state, "messages": messages}) if state else None, notes


def _rows(path: Path) -> Iterator[tuple[int, Json]]:
    for number, row in read_rows(path):
        if not isinstance(row, LineFault):
            yield number, row
        elif not row.torn:
            raise FileFailed(f"line {number} of {path} is no JSON object; the journal of a run has one in every line")
