"""What became of the work of real clients with a real model, kept in `found/clients.json`."""

from __future__ import annotations

import msgspec

from real_servers.examined import FOUND

KEPT = FOUND / "clients.json"


class Worked(msgspec.Struct, frozen=True):
    """One client's try: the requests it made, the calls that it was given and those of them that fit their schemas, how
    often the model was asked again for them, which parts of the task were done, and what was printed last."""

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


class Working(msgspec.Struct, frozen=True):
    """All of them, on a day, with the line that the proxy was started with."""

    on: str
    line: str
    workers: tuple[Worked, ...] = ()


def load_workers() -> Working | None:
    return msgspec.json.decode(KEPT.read_bytes(), type=Working) if KEPT.exists() else None
