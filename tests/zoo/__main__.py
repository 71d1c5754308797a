"""python -m zoo [--port N] [--file hello.txt] [--edits] [--log FILE] [--list]: serves until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from zoo import ZOO
from zoo.keeper import heard_line, keeping


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zoo", description="A server that plays every bad server of the zoo.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--file", default="hello.txt", help="the file that the task is about")
    parser.add_argument("--edits", action="store_true", help="the task is to edit it too")
    parser.add_argument("--log", type=Path, help="a file for the requests, one JSON line each")
    parser.add_argument("--list", action="store_true", help="only say which servers there are")
    return parser.parse_args()


async def serve(given: argparse.Namespace) -> None:
    async with keeping(port=given.port, file=given.file, edits=given.edits) as keeper:
        print(f"{len(ZOO)} bad servers: {keeper.url}/<name>/v1", flush=True)
        written = 0
        while True:
            await asyncio.sleep(0.2)
            if given.log is not None and len(keeper.heard) > written:
                new = [heard_line(name, body) + "\n" for name, body in keeper.heard[written:]]
                written += len(new)
                with given.log.open("a", encoding="utf-8") as log:
                    log.writelines(new)


def main() -> None:
    given = options()
    if given.list:
        for server in ZOO.values():
            print(f"{server.name:32}{server.failure:24}{' '.join(server.apis)}")
        return
    try:
        asyncio.run(serve(given))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
