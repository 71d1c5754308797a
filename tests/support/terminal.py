"""A terminal of any width, for commands that run in this process: what they draw on it, without colours. And one for a
process of its own, which somebody sits at."""

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
from support.command import hear_ctrl_c

_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Drawn(NamedTuple):
    lines: list[str]
    told: list[str]  # standard error
    code: int


class _Screen:
    def __init__(self, width: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # line breaks as they are written
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self.file = TextIOWrapper(os.fdopen(theirs, "wb", 0), "utf-8", write_through=True)
        self._data: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:  # nobody holds the other end any more
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


def drawn(*args: str, width: int) -> Drawn:
    """What the command draws on a terminal of this width."""
    code = 0
    with _terminal(width) as (out, err):
        try:
            app(list(args), prog_name="rightcall")
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Drawn(out.close(), err.close(), code)


class Sitting:
    """A command in a terminal of its own: what it shows, and what somebody types."""

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
            preexec_fn=_own_terminal,
        )
        os.close(theirs)

    def until(self, *wanted: str) -> str:
        """What it shows, up to and with these texts in this order."""
        return until(self._ours, *[text.encode() for text in wanted]).decode()

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def stops(self, wanted: str) -> None:
        """Ctrl-C at the prompt until it shows this. One that comes before `input` listens is lost in CPython."""
        for _ in range(20):
            self.types("\x03")
            if shows(self._ours, 3, wanted.encode())[1]:
                return
        raise AssertionError(f"it did not show {wanted}")

    def leaves(self) -> int:
        """Ctrl-C at the prompt until it ends, and how it ended."""
        for _ in range(20):
            self.types("\x03")
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(3)
        raise AssertionError("it did not end")

    def __enter__(self) -> "Sitting":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def _own_terminal() -> None:
    """Ctrl-C is heard, also if whoever started the tests ignores it."""
    hear_ctrl_c()
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def until(terminal: int, *wanted: bytes) -> bytes:
    """What a terminal shows, up to and with these texts in this order."""
    seen, found = shows(terminal, 60, *wanted)
    assert found, seen
    return seen


def shows(terminal: int, seconds: float, *wanted: bytes) -> tuple[bytes, bool]:
    """What a terminal shows within this time, and whether these texts came, in this order."""
    seen, rest, end = b"", list(wanted), time.monotonic() + seconds
    at = 0
    while rest and select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
        seen += os.read(terminal, 4096)
        while rest and (found := seen.find(rest[0], at)) >= 0:
            at = found + len(rest.pop(0))
    return seen, not rest
