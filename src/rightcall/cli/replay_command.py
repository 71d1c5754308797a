"""`rightcall replay`: serve a recording to clients of OpenAI's API."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer

from rightcall.backends.cassette import load_cassette
from rightcall.backends.recording import ReplayServer
from rightcall.cli.inputs import AsJson, print_message, usage_errors
from rightcall.cli.layout import format_json
from rightcall.cli.serving import AllowOrigin, KeyEnv, NoKey, choose_key, report_key, reveal_key


def replay(
    cassette: Annotated[str, typer.Argument(metavar="CASSETTE", help="A file that --record wrote.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 selects a free one.")] = 0,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Answer other requests with the most similar recorded one.")
    ] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Replay at the speed of the recording.")] = False,
    key_env: KeyEnv = "",
    no_key: NoKey = False,
    allow_origin: AllowOrigin = None,
    json: AsJson = False,
) -> None:
    """Serve a recording on this machine: the same requests get the same answers.

    Clients of the recorded server, such as those of OpenAI's API, connect to the address that is printed, and send the
    key that is shown. Other requests get status 404, with the most similar recorded request.
    """
    with usage_errors():
        key = choose_key(key_env, no_key)
        server = ReplayServer(
            load_cassette(cassette),
            port=port,
            strict=not lenient,
            timing=timing,
            key=reveal_key(key),
            no_key=no_key,
            origins=allow_origin or (),
        )
        asyncio.run(_serve(server, json, key_env))


async def _serve(server: ReplayServer, json: bool, key_env: str) -> None:
    """Print the address and the key of the server, and serve the recording until Ctrl-C or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with server:
        if json:
            key = None if key_env else reveal_key(server.key) or None
            typer.echo(format_json({"url": server.url, "exchanges": len(server.cassette.exchanges), "key": key}))
        else:
            typer.echo(server.url)
        print_message(f"replaying {len(server.cassette.exchanges)} exchanges; press Ctrl-C to stop")
        if not json:
            report_key(server.key, key_env)
        await stop.wait()
