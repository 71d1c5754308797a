"""The task: read a file, change a word in it, answer. What a client is told, and whether it did it.

The scripted model does what the user spells out, so that it needs to know no client's tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clients.client import Client, ToolUse, filled
from clients.sandbox import Ended

OLD, NEW = "grey", "green"
ONLY_IN_THE_FILE = "heron-4711"
BEFORE, AFTER = f"{ONLY_IN_THE_FILE} is {OLD}\n", f"{ONLY_IN_THE_FILE} is {NEW}\n"
ANSWER = "The keeper says: all done."

Outcome = Literal["right", "refused", "ended badly", "lost", "out of time"]


@dataclass(frozen=True)
class Room:
    """Where a client works: the folder of the task, and a home of its own."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def file(self) -> Path:
        return self.work / "note.txt"

    def make_ready(self) -> None:
        for folder in (self.work, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(BEFORE, "utf-8")


def told(client: Client, places: Mapping[str, str]) -> str:
    """What the user says: the calls, spelled out, in their order."""
    uses = [client.reads, client.edits, *([client.answers] if client.answers else [])]
    spelled = [filled(_spelled(use), places) for use in uses]
    return f"Change {OLD} to {NEW} in note.txt. Call {', then call '.join(spelled)}. Then say that it is done."


def _spelled(use: ToolUse) -> str:
    return f"{use.name} {json.dumps(dict(use.arguments))}"


def judged(room: Room, ended: Ended, asked: list[str]) -> Outcome:
    """What became of it. `asked` is what the server heard, each request as text."""
    edited = room.file.read_text("utf-8", "replace") == AFTER
    was_read = any(ONLY_IN_THE_FILE in request for request in asked)
    if edited and was_read and ANSWER in ended.printed:
        return "right" if ended.status == 0 else "ended badly"
    if ended.status is None:
        return "out of time"
    return "refused" if ANSWER in ended.printed and not edited else "lost"
