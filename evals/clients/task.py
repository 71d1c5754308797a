"""The task: read a file, change a word in it, answer. The prompt for a client, and the outcome of its run.

The scripted model makes the calls that the user spells out, so it does not need to know the tools of any client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clients.client import Client, ToolUse, fill_placeholders
from clients.sandbox import ProcessResult

OLD, NEW = "grey", "green"
ONLY_IN_THE_FILE = "heron-4711"
BEFORE, AFTER = f"{ONLY_IN_THE_FILE} is {OLD}\n", f"{ONLY_IN_THE_FILE} is {NEW}\n"
ANSWER = "The keeper says: all done."

Outcome = Literal["right", "refused", "ended badly", "lost", "out of time"]


@dataclass(frozen=True)
class ClientFolders:
    """The folders of a client: the workspace of the task, and its own home."""

    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def file(self) -> Path:
        return self.workspace / "note.txt"

    def prepare(self) -> None:
        for folder in (self.workspace, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(BEFORE, "utf-8")


def describe_task(client: Client, places: Mapping[str, str]) -> str:
    """Return the user's prompt: the calls, spelled out, in their order."""
    uses = [client.reads, client.edits, *([client.answers] if client.answers else [])]
    calls = [fill_placeholders(_spell_out(use), places) for use in uses]
    return f"Change {OLD} to {NEW} in note.txt. Call {', then call '.join(calls)}. Then say that it is done."


def _spell_out(use: ToolUse) -> str:
    return f"{use.name} {json.dumps(dict(use.arguments))}"


def classify_outcome(folders: ClientFolders, process: ProcessResult, requests: list[str]) -> Outcome:
    """Return the outcome of a run. `requests` are the requests that the server received, as text."""
    edited = folders.file.read_text("utf-8", "replace") == AFTER
    was_read = any(ONLY_IN_THE_FILE in request for request in requests)
    if edited and was_read and ANSWER in process.printed:
        return "right" if process.status == 0 else "ended badly"
    if process.status is None:
        return "out of time"
    return "refused" if ANSWER in process.printed and not edited else "lost"
