"""Run real clients against bad servers, with and without the proxy; write docs/clients.md.

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
from clients.playing import run_client
from clients.result_rows import ROUTES, Key, Route, RunResult, add_result, keep_last, read_results
from clients.stage import Stage

Cell = tuple[Client, str, Route]


def main() -> int:
    options = _options()
    if options.page:
        PAGE.write_text(page(keep_last()), "utf-8")
        return 0
    chosen = [CLIENTS[name] for name in options.client] if options.client else list(CLIENTS.values())
    if not sandbox.is_inside():
        for package, why in install([client.package for client in chosen]).items():
            print(f"not installed: {' '.join(package.names)}: {why}", file=sys.stderr)
        launcher = sandbox.find_launcher()
        if launcher is not None:
            return sandbox.rerun_inside(launcher)
        print("cannot create a network namespace: the clients can reach the network", file=sys.stderr)
    else:
        sandbox.raise_loopback()
    chosen = [client for client in chosen if is_installed(client.package)]
    # Outside this repository: agents read the repository they run in, and opencode takes snapshots of all of it.
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as rooms:
        _run_all(_cells(chosen, options), Path(rooms), options)
    results = keep_last()
    PAGE.write_text(page(results), "utf-8")
    return int(any(_is_lost(results.get((client.name, fault, "with"))) for client in chosen for fault in BAD))


def _is_lost(result: RunResult | None) -> bool:
    return result is not None and result.outcome != "right" and result.fault not in INCURABLE


def _cells(chosen: list[Client], options: argparse.Namespace) -> list[Cell]:
    """Return the runs to do."""
    done: dict[Key, RunResult] = read_results() if options.resume else {}
    cells = [
        (client, fault, way)
        for client in chosen
        for fault in (options.fault or faults_for(client, everything=options.all))
        for way in ROUTES
        if (client.name, fault, way) not in done
    ]
    return cells


def _run_all(cells: list[Cell], rooms: Path, options: argparse.Namespace) -> None:
    """Run at most two clients at a time, each with its own zoo. Runs of one client share a home, so they are serial."""
    by_client: queue.SimpleQueue[list[Cell]] = queue.SimpleQueue()
    for name in dict.fromkeys(client.name for client, _, _ in cells):
        by_client.put([cell for cell in cells if cell[0].name == name])
    deadline = time.monotonic() + options.minutes * 60
    write_lock = threading.Lock()

    def run_cells() -> None:
        with Stage() as stage:
            while not by_client.empty():
                for client, fault, way in by_client.get():
                    if time.monotonic() > deadline:
                        return
                    result = run_client(client, fault, way, stage, rooms=rooms, namespace=sandbox.is_inside())
                    with write_lock:
                        add_result(result)
                        print(_line(result), flush=True)

    workers = [threading.Thread(target=run_cells) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _line(result: RunResult) -> str:
    name = f"{result.client:24}{result.fault:28}{result.way:8}"
    return f"{name}{result.outcome:12}{result.seconds:5} s {result.requests:3} requests  {result.said}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clients", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="run only this client; repeatable")
    parser.add_argument("--fault", action="append", help="run only this fault; repeatable")
    parser.add_argument("--all", action="store_true", help="run every fault, not only the twelve most important ones")
    parser.add_argument("--resume", action="store_true", help="run only what has no result yet")
    parser.add_argument("--minutes", type=float, default=600.0, help="start no run after this many minutes")
    parser.add_argument("--jobs", type=int, default=2, help="number of clients that run at a time")
    parser.add_argument("--page", action="store_true", help="only write docs/clients.md, from the existing results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
