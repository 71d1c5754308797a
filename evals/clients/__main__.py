"""Run real clients before bad servers, without the proxy and with it; write docs/clients.md.

python -m clients [--client NAME] [--fault NAME] [--all] [--resume] [--minutes N] [--page]
"""

from __future__ import annotations

import argparse
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path

from clients import sandbox
from clients.client import Client
from clients.everyone import CLIENTS
from clients.faults import BAD, faults_for
from clients.incurable import INCURABLE
from clients.installing import install, is_installed
from clients.page import PAGE, page
from clients.playing import play
from clients.result_rows import WAYS, Key, Played, Way, add_result, keep_last, read_results
from clients.stage import Stage

Cell = tuple[Client, str, Way]


def main() -> int:
    options = _options()
    if options.page:
        PAGE.write_text(page(keep_last()), "utf-8")
        return 0
    chosen = [CLIENTS[name] for name in options.client] if options.client else list(CLIENTS.values())
    if not sandbox.is_inside():
        for package, why in install([client.package for client in chosen]).items():
            print(f"not installed: {' '.join(package.names)}: {why}", file=sys.stderr)
        way = sandbox.ways_in()
        if way is not None:
            return sandbox.run_again_inside(way)
        print("no network namespace can be made here: clients can reach the network", file=sys.stderr)
    else:
        sandbox.raise_loopback()
    chosen = [client for client in chosen if is_installed(client.package)]
    # Outside of this repository: agents look at the one they are in, and opencode takes snapshots of all of it.
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as rooms:
        _play_all(_cells(chosen, options), Path(rooms), options)
    results = keep_last()
    PAGE.write_text(page(results), "utf-8")
    return int(any(_is_lost(results.get((client.name, fault, "with"))) for client in chosen for fault in BAD))


def _is_lost(played: Played | None) -> bool:
    return played is not None and played.outcome != "right" and played.fault not in INCURABLE


def _cells(chosen: list[Client], options: argparse.Namespace) -> list[Cell]:
    """What is to be run."""
    done: dict[Key, Played] = read_results() if options.resume else {}
    cells = [
        (client, fault, way)
        for client in chosen
        for fault in (options.fault or faults_for(client, everything=options.all))
        for way in WAYS
        if (client.name, fault, way) not in done
    ]
    return cells


def _play_all(cells: list[Cell], rooms: Path, options: argparse.Namespace) -> None:
    """Two at a time at most, each before a zoo of its own; no client beside itself, for they share a home."""
    by_client: queue.SimpleQueue[list[Cell]] = queue.SimpleQueue()
    for name in dict.fromkeys(client.name for client, _, _ in cells):
        by_client.put([cell for cell in cells if cell[0].name == name])
    ends = time.monotonic() + options.minutes * 60
    writing = threading.Lock()

    def work() -> None:
        with Stage() as stage:
            while not by_client.empty():
                for client, fault, way in by_client.get():
                    if time.monotonic() > ends:
                        return
                    played = play(client, fault, way, stage, rooms=rooms, namespace=sandbox.is_inside())
                    with writing:
                        add_result(played)
                        print(_line(played), flush=True)

    workers = [threading.Thread(target=work) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _line(played: Played) -> str:
    name = f"{played.client:24}{played.fault:28}{played.way:8}"
    return f"{name}{played.outcome:12}{played.seconds:5} s {played.requests:3} requests  {played.said}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clients", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--client", action="append", choices=CLIENTS, help="only this client; several times for several"
    )
    parser.add_argument("--fault", action="append", help="only this fault; several times for several")
    parser.add_argument("--all", action="store_true", help="every fault, not the twelve that matter most")
    parser.add_argument("--resume", action="store_true", help="run only what has no result yet")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no run after so long")
    parser.add_argument("--jobs", type=int, default=2, help="so many clients at a time")
    parser.add_argument("--page", action="store_true", help="only write docs/clients.md, from the results there are")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
