"""Pseudo-terminals: of any width for a command in this process, with its output without colours; and an interactive one
for a command in a separate process."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import NamedTuple

import pytest

from rightcall.cli.app import app
from support.command import accept_ctrl_c

_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class TerminalOutput(NamedTuple):
    lines: list[str]
    stderr_lines: list[str]
    code: int


class _Screen:
    def __init__(self, width: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # do not convert line breaks
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self.file = TextIOWrapper(os.fdopen(theirs, "wb", 0), "utf-8", write_through=True)
        self._data: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:  # the other end is closed
                return
            self._data.append(data)

    def close(self) -> list[str]:
        self.file.close()
        self._reader.join()
        os.close(self._ours)
        text = _STEERING.sub("", b"".join(self._data).decode())
        return [line.rpartition("\r")[2].rstrip() for line in text.splitlines()]


@contextmanager
def _terminal(width: int) -> Iterator[tuple[_Screen, _Screen]]:
    out, err = _Screen(width), _Screen(width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out.file)
        patch.setattr(sys, "stderr", err.file)
        patch.delenv("COLUMNS", raising=False)
        patch.setenv("TERM", "xterm-256color")
        yield out, err


def run_on_terminal(*args: str, width: int) -> TerminalOutput:
    """Return the output of the command on a terminal of this width."""
    code = 0
    with _terminal(width) as (out, err):
        try:
            app(list(args), prog_name="rightcall")
        except SystemExit as exit_request:
            code = int(exit_request.code or 0)
    return TerminalOutput(out.close(), err.close(), code)


class TerminalSession:
    """A command in its own terminal: its output, and typed input."""

    def __init__(self, *args: str, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        plain = {"TERM": "dumb", "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rightcall", *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **plain, **env},
            preexec_fn=_set_controlling_terminal,
        )
        os.close(theirs)

    def until(self, *expected: str) -> str:
        """Return the output of a terminal up to and including these texts in this order."""
        return until(self._ours, *[text.encode() for text in expected]).decode()

    def type_text(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt_until(self, expected: str) -> None:
        """Press Ctrl-C at the prompt until this is shown. CPython loses a signal that comes before `input` waits."""
        for _ in range(20):
            self.type_text("\x03")
            if read_terminal(self._ours, 3, expected.encode())[1]:
                return
        raise AssertionError(f"it did not show {expected}")

    def interrupt_until_end(self) -> int:
        """Press Ctrl-C at the prompt until the command ends, and return its exit status."""
        for _ in range(20):
            self.type_text("\x03")
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(3)
        raise AssertionError("it did not end")

    def __enter__(self) -> "TerminalSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def _set_controlling_terminal() -> None:
    """Accept Ctrl-C even if the process that started the tests ignores it."""
    accept_ctrl_c()
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def until(terminal: int, *expected: bytes) -> bytes:
    """What a terminal shows, up to and with these texts in this order."""
    output, found = read_terminal(terminal, 60, *expected)
    assert found, output
    return output


def read_terminal(terminal: int, seconds: float, *expected: bytes) -> tuple[bytes, bool]:
    """Return the output of a terminal within this time, and whether these texts appeared in this order."""
    output, remaining, end = b"", list(expected), time.monotonic() + seconds
    at = 0
    while remaining and select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
        output += os.read(terminal, 4096)
        while remaining and (found := output.find(remaining[0], at)) >= 0:
            at = found + len(remaining.pop(0))
    return output, not remaining
