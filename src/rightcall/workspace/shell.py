"""The tool bash: run one command with `sh -c`, with a time limit, an output limit and an environment without keys.

The root does not confine the command: it can read, and without a sandbox write, whatever the user can. That may include
the keys in the environment of this process (see `Workspace.exposure`). After the time limit, or when the call is
cancelled, every process of its group is killed; in a sandbox that hides processes, every process that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from rightcall.errors import ToolError

ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LANGUAGE", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ")
SECONDS = 120.0
MOST_OUTPUT = 30_000
_GRACE = 0.5  # seconds to wait for output of processes that the command left running


class ShellOutput:
    """The beginning and the end of an output, in bounded memory."""

    def __init__(self, most: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._half = max(most // 2, 1)
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append bytes of the output. Only the beginning and the end are kept, half of `most` bytes each; the bytes
        between them are dropped and counted."""
        room = self._half - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        extra = len(self._tail) - self._half
        if extra > 0:
            del self._tail[:extra]
            self._dropped += extra

    @property
    def truncated(self) -> bool:
        """Return whether bytes were dropped."""
        return self._dropped > 0

    def text(self) -> str:
        """Return the kept output as text, with the number of dropped bytes between its beginning and its end."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        return f"{head}\n[{self._dropped} bytes left out]\n{tail}"


def build_environment(allowed: Sequence[str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: the variables of this process with the allowed names, and the extra ones,
    which have precedence."""
    return {**{name: os.environ[name] for name in allowed if name in os.environ}, **extra}


async def run_command(
    command: str, folder: str, *, prefix: Sequence[str], seconds: float, most: int, env: Mapping[str, str]
) -> str:
    """Run a command with `sh -c` in a folder and return its exit status and output as text. All processes of its group
    are killed when it ends.

    `prefix` is put before the command; `most` is the number of bytes of output to keep; `env` is its whole environment.
    Raises `ToolError` after `seconds`, and if the command cannot be started; a failing command raises nothing."""
    if "\0" in command:
        raise ToolError("the command contains a null character")
    # asyncio's own pipe would make the process count as running while any process holds its output open.
    source, sink = os.pipe()
    pipe = os.fdopen(source, "rb", 0)
    output = ShellOutput(most)
    reading = asyncio.create_task(_read_output(pipe, output))
    try:
        process = await _start_process((*prefix, "/bin/sh", "-c", command), folder, env, sink)
    except OSError as error:
        await _stop_reading(reading, pipe)
        raise ToolError(f"the command could not be started: {error.strerror}") from error
    except asyncio.CancelledError:
        await _stop_reading(reading, pipe)
        raise
    finally:
        os.close(sink)
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
            await asyncio.wait([reading], timeout=_GRACE)
    except TimeoutError:
        raise ToolError(f"stopped after {seconds:g} seconds; it had written:\n{output.text()}") from None
    finally:
        await _kill_group(process)
        await _stop_reading(reading, pipe)
    return _format_outcome(process.returncode, output)


async def _start_process(
    words: Sequence[str], folder: str, env: Mapping[str, str], sink: int
) -> asyncio.subprocess.Process:
    """Start the process, with `sink` as its output and error output, and return it. If the task is cancelled meanwhile,
    the process is killed with its group. Raises `OSError`."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words,
            cwd=folder,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _kill_group(await starting)
        raise


async def _read_output(pipe: BinaryIO, output: ShellOutput) -> None:
    """Add everything that is read from the pipe to `output`, until all writers have closed it."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while data := await reader.read(64 * 1024):
            output.add(data)
    finally:
        transport.close()


async def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill all processes of the command's group and wait for the command to end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(process.wait())


async def _stop_reading(reading: asyncio.Task[None], pipe: BinaryIO) -> None:
    """Cancel the task that reads the output, wait until it has ended, and close the pipe."""
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading
    pipe.close()


def _format_outcome(code: int | None, output: ShellOutput) -> str:
    """Return the exit status or the signal, a note if the output was truncated, and the output."""
    status = "exit ?" if code is None else f"exit {code}" if code >= 0 else f"terminated by signal {-code}"
    lines = [status, *(["(output truncated)"] if output.truncated else []), output.text()]
    return "\n".join(lines).rstrip("\n")
