"""A real browser for tests of pages: headless Chromium, controlled over the DevTools protocol without a package.

    with Browser(folder) as browser:
        browser.open(page, width=390, scheme="dark")
        browser.eval("document.title")

`make pagetests` fails without a browser; elsewhere, tests that need one are skipped.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
import pytest

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
needs_browser = pytest.mark.skipif(
    not PROGRAM and not os.environ.get("RIGHTCALL_PAGETESTS"), reason="no chromium is installed"
)
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-port=0"
).split()
_PATIENCE = 120.0


class Browser:
    """One browser with one page.

    `requests` are the URLs that the page requested, `log_messages` the messages in the browser's log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self.requests: list[str] = []
        self.log_messages: list[str] = []

    def __enter__(self) -> Browser:
        assert PROGRAM, "no chromium is installed; `apt-get install chromium` has one"
        user = Path(tempfile.mkdtemp(dir=self._folder))  # it must have no file of an earlier browser
        self._process = subprocess.Popen(
            [PROGRAM, *_FLAGS, f"--user-data-dir={user}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._run(self._connect(_address(user / "DevToolsActivePort", self._process)))
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.send(f"{domain}.enable")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self, "_session"):
            self._run(self._session.close())
        self._loop.close()
        self._process.kill()
        self._process.wait()

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, _PATIENCE))

    async def _connect(self, address: str) -> None:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"{address}/json") as answer:
            pages = [each for each in await answer.json() if each["type"] == "page"]
        self._socket = await self._session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)

    # -- commands for tests --------------------------------------------------------------------------------------------

    def send(self, method: str, **params: Any) -> Any:
        """Send one command of the protocol and return its result."""
        return self._run(self._exchange(method, params))

    async def _exchange(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = json.loads((await self._socket.receive()).data)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._record(message)

    def _record(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") == "Log.entryAdded":
            self.log_messages.append(message["params"]["entry"]["text"])

    def open(self, page: str, *, width: int = 1440, scheme: str = "light", media: str = "screen") -> None:
        """Show a page as a file, in a window of this width."""
        file = self._folder / "page.html"
        file.write_text(page, "utf-8")
        self.requests, self.log_messages = [], []
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", media=media, features=features)
        self.send("Page.navigate", url=file.as_uri())
        deadline = time.monotonic() + _PATIENCE
        while self.eval("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < deadline, "the page did not load"

    def eval(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def picture(self, *, most: int = 20_000) -> bytes:
        """Return the whole page as PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1}
        shot = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


def _address(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        lines = port_file.read_text().splitlines() if port_file.exists() else []
        if len(lines) >= 2:
            return f"http://127.0.0.1:{lines[0]}"
        time.sleep(0.05)
    raise AssertionError("the browser did not start")
