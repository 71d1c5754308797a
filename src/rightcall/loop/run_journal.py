"""The journal of a run: every turn is on disk before its calls run, so that a run that was killed can go on.

Each line has the messages that are new and the state behind them, the pending turn included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rightcall.errors import FileFailed
from rightcall.files.file_kinds import json_lines
from rightcall.files.journal import Journal
from rightcall.files.jsonl import LineFault, read_rows
from rightcall.loop.conversation import Conversation
from rightcall.types import Json

KIND = json_lines("journal of a run", "run_journal", 1)


class RunJournal:
    """One file, opened once. `conversation` is what it held; None for a new one."""

    def __init__(self, path: str | Path) -> None:
        self._file = Journal(path, KIND, torn="cut", alone=True)
        self.conversation: Conversation | None = None
        self._written = 0
        if self._file.is_empty:
            self._file.append({"run_journal": 1})
        else:
            self.conversation = _read(Path(path))
            self._written = 0 if self.conversation is None else len(self.conversation.messages)
            if self.conversation is not None:  # as it is now that it is taken up again
                self._file.append({"all": self.conversation.messages, "state": _state(self.conversation)})

    def write(self, conversation: Conversation) -> None:
        """What is new since the last time, in one line: a line is there whole or not at all."""
        new = conversation.messages[self._written :]
        self._file.append({"new": new, "state": _state(conversation)})
        self._written = len(conversation.messages)

    def close(self) -> None:
        self._file.close()


def _state(conversation: Conversation) -> Json:
    """Everything but the messages."""
    return {key: value for key, value in conversation.to_json().items() if key != "messages"}


def _read(path: Path) -> Conversation | None:
    messages: list[Any] = []
    state: Json = {}
    for number, row in read_rows(path):
        if isinstance(row, LineFault):
            raise FileFailed(f"line {number} of {path} is no JSON object; the journal of a run has one in every line")
        messages = [*row.get("all", messages), *row.get("new", ())]
        state = row.get("state", state)
    return Conversation.from_json({**state, "messages": messages}) if state else None
