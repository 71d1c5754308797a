"""The tool bash: one command for `sh -c`, with a time limit, an output cap and an environment that holds no keys.

The root does not confine it: a command can read, and without a sandbox write, whatever the user running it can. When
the time is up, or the call is cancelled, every process of its group is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from rightcall.errors import ToolError

ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LANGUAGE", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ")
SECONDS = 120.0
MOST_OUTPUT = 30_000
_GRACE = 0.5  # seconds that what the command left running may still hold the output open


class Output:
    """The beginning and the end of what was written, in bounded memory."""

    def __init__(self, most: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._half = max(most // 2, 1)
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        extra = len(self._tail) - self._half
        if extra > 0:
            del self._tail[:extra]
            self._dropped += extra

    @property
    def truncated(self) -> bool:
        return self._dropped > 0

    def text(self) -> str:
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        return f"{head}\n[{self._dropped} bytes left out]\n{tail}"


def environment(allowed: Sequence[str], extra: Mapping[str, str]) -> dict[str, str]:
    return {**{name: os.environ[name] for name in allowed if name in os.environ}, **extra}


async def run(
    command: str, folder: str, *, prefix: Sequence[str], seconds: float, most: int, env: Mapping[str, str]
) -> str:
    """What the command wrote, under a first line that says how it ended."""
    if "\0" in command:
        raise ToolError("the command holds a null character")
    process = await asyncio.create_subprocess_exec(
        *(*prefix, "/bin/sh", "-c", command),
        cwd=folder,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    output = Output(most)
    reading = asyncio.create_task(_read(process, output))
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
            await asyncio.wait([reading], timeout=_GRACE)
    except TimeoutError:
        raise ToolError(f"stopped after {seconds:g} seconds; it had written:\n{output.text()}") from None
    finally:
        await _end(process, reading)
    return _report(process.returncode, output)


async def _read(process: asyncio.subprocess.Process, output: Output) -> None:
    assert process.stdout is not None
    while data := await process.stdout.read(64 * 1024):
        output.add(data)


async def _end(process: asyncio.subprocess.Process, reading: asyncio.Task[None]) -> None:
    """Nothing of the command is left running, whatever became of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    reading.cancel()
    await asyncio.shield(process.wait())
    with contextlib.suppress(asyncio.CancelledError):
        await reading


def _report(code: int | None, output: Output) -> str:
    if code is None:
        how = "exit ?"
    else:
        how = f"exit {code}" if code >= 0 else f"terminated by signal {-code}"
    lines = [how, *(["(output truncated)"] if output.truncated else []), output.text()]
    return "\n".join(lines).rstrip("\n")
