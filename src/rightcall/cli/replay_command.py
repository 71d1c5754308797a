"""`rightcall replay`: a recording as a server that clients of OpenAI's API can talk to."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer

from rightcall.backends.cassette import load
from rightcall.backends.replay import ReplayServer
from rightcall.cli.inputs import AsJson, say, usage_errors
from rightcall.cli.safe import json_text
from rightcall.cli.serving import AllowOrigin, KeyEnv, NoKey, chosen_key, revealed, tell_key


def replay(
    cassette: Annotated[str, typer.Argument(metavar="CASSETTE", help="A file that --record made.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 0,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Answer what was not recorded with the nearest that was.")
    ] = False,
    timing: Annotated[bool, typer.Option("--timing", help="At the pace of the recording.")] = False,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    json: AsJson = False,
) -> None:
    """Serve a recording on this machine: the same requests get the same answers.

    Clients of OpenAI's API can talk to it at the address that it prints, and so can any client that the recorded server
    could serve. They send the key that is shown. A request that was not recorded is answered with 404 and the nearest
    one that was.
    """
    with usage_errors():
        key = chosen_key(key_env, no_key)
        server = ReplayServer(
            load(cassette),
            port=port,
            strict=not lenient,
            timing=timing,
            key=revealed(key),
            no_key=no_key,
            origins=allow_origin or (),
        )
        asyncio.run(_serve(server, json, key_env))


async def _serve(server: ReplayServer, json: bool, key_env: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with server:
        if json:
            key = None if key_env else revealed(server.key) or None
            typer.echo(json_text({"url": server.url, "exchanges": len(server.cassette.exchanges), "key": key}))
        else:
            typer.echo(server.url)
        say(f"replaying {len(server.cassette.exchanges)} exchanges; Ctrl-C ends it")
        if not json:
            tell_key(server.key, key_env)
        await stop.wait()
