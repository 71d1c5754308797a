"""Examine real servers and write docs/servers.md."""

from __future__ import annotations

import argparse
import signal
import sys

import msgspec

from real_servers.examined import DIALECTS, examine_dialect, load_examination, store, try_modes
from real_servers.installing import install_server
from real_servers.kinds import SERVERS, RealServer
from real_servers.running import running_server
from real_servers.servers_page import PAGE, page


def main() -> None:
    parser = argparse.ArgumentParser(prog="real_servers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(SERVERS)} (default: all)")
    parser.add_argument("--api", action="append", choices=DIALECTS, help="examine only this dialect; repeatable")
    parser.add_argument("--no-modes", action="store_true", help="do not try the modes of Backend")
    parser.add_argument("--install", action="store_true", help="only install")
    parser.add_argument("--clients", action="store_true", help="run real clients (NAME ...) with a real model instead")
    parser.add_argument("--page", action="store_true", help="only write the page, from the stored results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped together with this process
    if options.clients:
        from real_servers.at_work import run_clients  # it needs the zoo of the tests

        run_clients(options.names)
        options.page = True
    unknown = [] if options.clients else [name for name in options.names if name not in SERVERS]
    if unknown:
        parser.error(f"unknown server {unknown[0]!r} (choose from {', '.join(SERVERS)})")
    for name in [] if options.page else options.names or SERVERS:
        if options.install:
            install_server(SERVERS[name])
        else:
            _examine(SERVERS[name], options.api or DIALECTS, modes=not options.no_modes)
    PAGE.write_text(page(), "utf-8")


def _examine(server: RealServer, apis: list[str] | tuple[str, ...], *, modes: bool) -> None:
    """Examine one server. Each dialect is stored as soon as it is done, so an interruption loses no results."""
    with running_server(server) as running:
        print(f"{server.title} answers at {running.url}", file=sys.stderr, flush=True)
        examination = load_examination(server, running)
        if modes:
            examination = msgspec.structs.replace(examination, asked=try_modes(running, server.name))
            store(examination)
        for api in apis:
            part = examine_dialect(running, api)
            examination = msgspec.structs.replace(examination, parts={**examination.parts, api: part})
            store(examination)
            summary = (
                f"{len(part.rows)} probes, {part.requests} requests, {part.seconds:.0f} s" if part.spoken else "no"
            )
            print(f"{server.title} {api}: {summary}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
