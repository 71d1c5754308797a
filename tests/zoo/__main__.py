"""python -m zoo [--port N] [--file hello.txt] [--edits] [--log FILE] [--list]: serve until interrupted."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from zoo import ZOO
from zoo.keeper import request_line, run_server


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo", description="A server that plays every bad server of the zoo.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--file", default="hello.txt", help="the file of the task")
    parser.add_argument("--edits", action="store_true", help="the task includes an edit of the file")
    parser.add_argument("--log", type=Path, help="write the requests to this file, one JSON line each")
    parser.add_argument("--list", action="store_true", help="only list the servers")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    async with run_server(port=options.port, file=options.file, edits=options.edits) as server:
        print(f"{len(ZOO)} bad servers: {server.url}/<name>/v1", flush=True)
        written_count = 0
        while True:
            await asyncio.sleep(0.2)
            if options.log is not None and len(server.requests) > written_count:
                new = [request_line(name, body) + "\n" for name, body in server.requests[written_count:]]
                written_count += len(new)
                with options.log.open("a", encoding="utf-8") as log:
                    log.writelines(new)


def main() -> None:
    options = parse_options()
    if options.list:
        for server in ZOO.values():
            print(f"{server.name:32}{server.failure:24}{' '.join(server.apis)}")
        return
    try:
        asyncio.run(serve(options))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
