"""Starts a server on a free port of this machine, waits until it answers, and stops it with all its children."""

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

from real_servers.installing import HERE, HOME, TEMPLATE, adapter_file, installed, model_file, model_folder
from real_servers.kinds import SERVERS, RealServer

_PATIENCE = 600.0  # seconds until it must answer; the cores may be busy
_LEAVE = 20.0


class Running:
    """A server that answers: its `url`, what requests call its `model`, and the `command` it was started with."""

    def __init__(self, server: RealServer, words: Mapping[str, str]) -> None:
        self.url = f"http://127.0.0.1:{words['port']}"
        self.model = server.model.format_map(words)
        told = {**words, "port": "PORT"}  # another one at every start
        self.command = " ".join([_short(part.format_map(told)) for part in server.command])


def _short(word: str) -> str:
    """A path of the user's from home: no page tells where somebody lives."""
    return word.replace(str(Path.home()), "~")


def _from_home(path: Path) -> str:
    """A path as it is from target/servers, where servers run: what they call their model is the same everywhere."""
    return os.path.relpath(path, HOME)


@contextmanager
def running(server: RealServer) -> Iterator[Running]:
    if not server.behind:
        with _started(server, "") as found:
            yield found
        return
    with running(SERVERS[server.behind]) as behind, _started(server, behind.url) as found:
        yield found


@contextmanager
def _started(server: RealServer, behind: str) -> Iterator[Running]:
    words = {
        "bin": _from_home(installed(server)),
        "gguf": str(model_file()),
        "adapter": str(adapter_file()),
        "folder": _from_home(model_folder()),
        "template": _from_home(TEMPLATE),
        "here": _from_home(HERE),
        "port": str(_free_port()),
        "behind": behind,
    }
    env = {**os.environ, **{name: value.format_map(words) for name, value in server.env.items()}}
    with (HOME / f"{server.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [part.format_map(words) for part in server.command],
            env=env,
            cwd=HOME,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its children can be stopped with it
        )
        found = Running(server, words)
        try:
            _wait(process, server, found.url)
            yield found
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
            return  # it does answer
        except OSError:
            time.sleep(0.5)
        else:
            return
    log = (HOME / f"{server.name}.log").read_text("utf-8", "replace")
    raise SystemExit(f"{server.title} does not answer at {url}{server.ready}; its last words:\n{log[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(_LEAVE)
        except subprocess.TimeoutExpired:
            continue
