"""Start a server on a free port of this machine, wait until it answers, and stop it with all its children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from real_servers.installing import HERE, HOME, TEMPLATE, adapter_file, install_server, model_file, model_folder
from real_servers.kinds import SERVERS, RealServer

_PATIENCE = 600.0  # seconds until it must answer, even if the cores are busy
_LEAVE = 20.0


class RunningServer:
    """A server that answers: its `url`, the name of its `model` in requests, and the `command` that started it."""

    def __init__(self, server: RealServer, placeholders: Mapping[str, str]) -> None:
        self.url = f"http://127.0.0.1:{placeholders['port']}"
        self.model = server.model.format_map(placeholders)
        values = {**placeholders, "port": "PORT"}  # the port differs at every start
        self.command = " ".join([_short(part.format_map(values)) for part in server.command])


def _short(word: str) -> str:
    """Abbreviate the home folder in a path, so that no page has the user's name."""
    return word.replace(str(Path.home()), "~")


def _from_home(path: Path) -> str:
    """Return a path relative to target/servers, where servers run, so that model names do not depend on the machine."""
    return os.path.relpath(path, HOME)


@contextmanager
def running_server(server: RealServer) -> Iterator[RunningServer]:
    if not server.behind:
        with _start(server, "") as server_found:
            yield server_found
        return
    with running_server(SERVERS[server.behind]) as upstream, _start(server, upstream.url) as server_found:
        yield server_found


@contextmanager
def _start(server: RealServer, upstream: str) -> Iterator[RunningServer]:
    placeholders = {
        "bin": _from_home(install_server(server)),
        "gguf": str(model_file()),
        "adapter": str(adapter_file()),
        "folder": _from_home(model_folder()),
        "template": _from_home(TEMPLATE),
        "here": _from_home(HERE),
        "port": str(_free_port()),
        "behind": upstream,
    }
    env = {**os.environ, **{name: value.format_map(placeholders) for name, value in server.env.items()}}
    with (HOME / f"{server.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [part.format_map(placeholders) for part in server.command],
            env=env,
            cwd=HOME,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its children can be stopped with it
        )
        server_found = RunningServer(server, placeholders)
        try:
            _wait(process, server, server_found.url)
            yield server_found
        finally:
            _stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], server: RealServer, url: str) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url + server.ready, timeout=10).close()
        except urllib.error.HTTPError:
            return  # an error is an answer, too
        except OSError:
            time.sleep(0.5)
        else:
            return
    log = (HOME / f"{server.name}.log").read_text("utf-8", "replace")
    raise SystemExit(f"{server.title} does not answer at {url}{server.ready}; the end of its log:\n{log[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
        except ProcessLookupError:
            break
        try:
            process.wait(_LEAVE)
        except subprocess.TimeoutExpired:
            continue
