"""results/clients.jsonl: one line for the outcome of each run; docs/clients.md is generated from it."""

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
Route = Literal["without", "with"]
ROUTES: tuple[Route, Route] = ("without", "with")  # the proxy
Key = tuple[str, str, Route]


class RunResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line.

    `seconds` and `requests` are None if only the outcome was stored. `said` is the last output of a client that did not
    do the task. `namespace` is whether the client could reach only this machine.
    """

    client: str
    version: str
    fault: str
    way: Route
    outcome: Outcome
    seconds: float | None
    requests: int | None
    date: str
    said: str = ""
    namespace: bool = True

    @property
    def cell(self) -> Key:
        return self.client, self.fault, self.way


def read_results(file: Path = RESULTS) -> dict[Key, RunResult]:
    """Return the last result of each cell whose client and server still exist."""
    if not file.exists():
        return {}
    rows = [msgspec.json.decode(line, type=RunResult) for line in file.read_bytes().splitlines()]
    return {row.cell: row for row in rows if _is_run(row)}


def _is_run(row: RunResult) -> bool:
    client = CLIENTS.get(row.client)
    return client is not None and row.fault in (GOOD, *BAD) and row.fault not in client.skips


def add_result(result: RunResult, file: Path = RESULTS) -> None:
    with file.open("ab") as sink:
        sink.write(msgspec.json.encode(result) + b"\n")


def keep_last(file: Path = RESULTS) -> dict[Key, RunResult]:
    """Keep one line for each cell, in the order of clients, servers and routes, so that a new run changes few lines."""
    results = read_results(file)
    lines = [msgspec.json.encode(row) + b"\n" for row in in_order(results.values())]
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(b"".join(lines))
    unfinished.replace(file)
    return results


def in_order(rows: Iterable[RunResult]) -> list[RunResult]:
    clients = {name: place for place, name in enumerate(CLIENTS)}
    faults = {name: place for place, name in enumerate([GOOD, *BAD])}
    return sorted(rows, key=lambda row: (clients[row.client], faults[row.fault], ROUTES.index(row.way)))
