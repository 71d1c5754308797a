"""Results of real clients with a real model, stored in `found/clients.json`."""

from __future__ import annotations

import msgspec

from real_servers.examined import FOUND

RUNS_FILE = FOUND / "clients.json"


class ClientRun(msgspec.Struct, frozen=True):
    """One run of a client.

    The requests it made, the calls it received and those that fit their schemas, the retries for them, the completed
    parts of the task, and its last output.
    """

    client: str
    version: str
    api: str
    requests: int
    calls: int
    sound: int
    retries: int
    was_read: bool
    was_edited: bool
    is_done: bool
    seconds: float
    said: str = ""


class ClientRuns(msgspec.Struct, frozen=True):
    """All runs, on a day, with the command that started the proxy."""

    on: str
    line: str
    workers: tuple[ClientRun, ...] = ()


def load_workers() -> ClientRuns | None:
    return msgspec.json.decode(RUNS_FILE.read_bytes(), type=ClientRuns) if RUNS_FILE.exists() else None
