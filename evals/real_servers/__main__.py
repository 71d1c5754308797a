"""Examines real servers and writes docs/servers.md."""

from __future__ import annotations

import argparse
import signal
import sys

import msgspec

from real_servers.examined import DIALECTS, asked_in, begun, examined, keep
from real_servers.installing import installed
from real_servers.kinds import SERVERS, RealServer
from real_servers.running import running
from real_servers.servers_page import PAGE, page


def main() -> None:
    parser = argparse.ArgumentParser(prog="real_servers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SERVERS)}; all if none is named")
    parser.add_argument("--api", action="append", choices=DIALECTS, help="examine only this dialect; repeatable")
    parser.add_argument("--no-modes", action="store_true", help="do not try the modes of Backend")
    parser.add_argument("--install", action="store_true", help="only install")
    parser.add_argument(
        "--clients", action="store_true", help="let real clients (NAME ...) work with a real model instead"
    )
    parser.add_argument("--page", action="store_true", help="only write the page, from what was found before")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a server is stopped when this is
    if given.clients:
        from real_servers.at_work import clients_at_work  # which needs the zoo of the tests

        clients_at_work(given.names)
        given.page = True
    unknown = [] if given.clients else [name for name in given.names if name not in SERVERS]
    if unknown:
        parser.error(f"no server {unknown[0]!r}; there are {', '.join(SERVERS)}")
    for name in [] if given.page else given.names or SERVERS:
        if given.install:
            installed(SERVERS[name])
        else:
            _examine(SERVERS[name], given.api or DIALECTS, modes=not given.no_modes)
    PAGE.write_text(page(), "utf-8")


def _examine(server: RealServer, apis: list[str] | tuple[str, ...], *, modes: bool) -> None:
    """Each dialect is kept as soon as it is done: what was found is not lost when a later one takes too long."""
    with running(server) as at:
        print(f"{server.title} answers at {at.url}", file=sys.stderr, flush=True)
        found = begun(server, at)
        if modes:
            found = msgspec.structs.replace(found, asked=asked_in(at, server.name))
            keep(found)
        for api in apis:
            part = examined(at, api)
            found = msgspec.structs.replace(found, parts={**found.parts, api: part})
            keep(found)
            said = f"{len(part.rows)} probes, {part.requests} requests, {part.seconds:.0f} s" if part.spoken else "no"
            print(f"{server.title} {api}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
