"""results/clients.jsonl: what came out of every run, a line for each; docs/clients.md is made from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from clients.everyone import CLIENTS
from clients.faults import BAD, GOOD
from clients.installing import ROOT
from clients.task import Outcome

RESULTS = ROOT / "results" / "clients.jsonl"
Way = Literal["without", "with"]
WAYS: tuple[Way, Way] = ("without", "with")  # the proxy
Key = tuple[str, str, Way]


class Played(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line. `seconds` and `requests` are None where only the outcome was kept; `said` are the last words of a client
    that did not do the task; `namespace` is whether it could reach nothing but this machine."""

    client: str
    version: str
    fault: str
    way: Way
    outcome: Outcome
    seconds: float | None
    requests: int | None
    date: str
    said: str = ""
    namespace: bool = True

    @property
    def cell(self) -> Key:
        return self.client, self.fault, self.way


def read_results(file: Path = RESULTS) -> dict[Key, Played]:
    """The last result of each cell that there is still a client and a server for."""
    if not file.exists():
        return {}
    rows = [msgspec.json.decode(line, type=Played) for line in file.read_bytes().splitlines()]
    return {row.cell: row for row in rows if _is_run(row)}


def _is_run(row: Played) -> bool:
    client = CLIENTS.get(row.client)
    return client is not None and row.fault in (GOOD, *BAD) and row.fault not in client.skips


def add_result(played: Played, file: Path = RESULTS) -> None:
    with file.open("ab") as sink:
        sink.write(msgspec.json.encode(played) + b"\n")


def keep_last(file: Path = RESULTS) -> dict[Key, Played]:
    """Leave one line for each cell, in the order of clients, servers and ways, so that a new run changes few lines."""
    results = read_results(file)
    written = [msgspec.json.encode(row) + b"\n" for row in in_order(results.values())]
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(b"".join(written))
    unfinished.replace(file)
    return results


def in_order(rows: Iterable[Played]) -> list[Played]:
    clients = {name: place for place, name in enumerate(CLIENTS)}
    faults = {name: place for place, name in enumerate([GOOD, *BAD])}
    return sorted(rows, key=lambda row: (clients[row.client], faults[row.fault], WAYS.index(row.way)))
