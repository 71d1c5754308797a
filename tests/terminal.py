"""A terminal of any width, for commands that run in this process: what they draw on it, without colours."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import NamedTuple

import pytest

from rightcall.cli.app import app

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
