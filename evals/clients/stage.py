"""The servers of a run: the zoo, and `rightcall serve` in front of it, as one process for each dialect."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from clients.incurable import INCURABLE
from clients.installing import ROOT
from zoo.keeper import ZooServer, run_server

_PATHS = {"chat": "/v1", "responses": "/v1", "messages": "", "ollama": "", "gemini": ""}


class Stage:
    """One zoo and its proxies, for one run at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open = AsyncExitStack()
        self._proxies: dict[str, Proxy] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Stage:
        self._thread.start()
        self.zoo: ZooServer = self._do(self._open.enter_async_context(run_server(also=INCURABLE)))
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None) -> None:
        for proxy in self._proxies.values():
            proxy.end()
        self._do(self._open.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, awaited: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result(60)

    def reset(self) -> None:
        """Forget the requests of earlier runs."""
        self.zoo.reset()

    def received_requests(self) -> list[str]:
        return [json.dumps(body, ensure_ascii=False) for _, body in list(self.zoo.requests)]

    def base(self, api: str, *, through: bool, settings: Mapping[str, Any]) -> str:
        """Return the address that a client is configured with."""
        return self._proxy(api, settings) if through else self.zoo.url

    def _proxy(self, api: str, settings: Mapping[str, Any]) -> str:
        flags = [text for name, value in settings.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        command = [sys.executable, "-m", "rightcall", "serve", "--port", "0", *flags]
        command += ["--upstream", f"{api}={self.zoo.url}{_PATHS[api]}"]
        key = " ".join(command)
        if key not in self._proxies:
            self._proxies[key] = Proxy(command)
        return self._proxies[key].url


class Proxy:
    """A running proxy and its address."""

    def __init__(self, command: list[str]) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self._process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._lines: list[str] = []
        self._is_ready = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        self._is_ready.wait(60)
        if not self.url:
            raise SystemExit(f"the proxy did not start:\n{''.join(self._lines)}")

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:  # to the end, so that the process never blocks on a full pipe
                self._lines.append(line)
                if line.startswith("listening"):
                    self.url = line.split()[1]
                    self._is_ready.set()
        self._is_ready.set()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._reader.join()
