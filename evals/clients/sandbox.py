"""A place from which nothing but this machine can be reached: a network namespace with a loopback of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INSIDE = "RIGHTCALL_CLIENTS_INSIDE"
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
GRACE = 5.0  # seconds that a process has to end after it was told to


def is_inside() -> bool:
    return os.environ.get(_INSIDE) == "1"


def ways_in() -> Sequence[str] | None:
    """How a command is started in a namespace of its own here, or None where that cannot be done."""
    if shutil.which("unshare") is None:
        return None
    for way in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if subprocess.run([*way, "true"], capture_output=True).returncode == 0:
            return way
    return None


def run_again_inside(way: Sequence[str]) -> int:
    """This very command, within."""
    command = [*way, sys.executable, "-m", "clients", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, _INSIDE: "1"}).returncode


def raise_loopback() -> None:
    """A new namespace has a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(asked, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(asked, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


@dataclass(frozen=True)
class Ended:
    """What a process did: its exit status, None if it ran out of time, and what it printed."""

    status: int | None
    printed: str


def run_bounded(command: Sequence[str], *, env: Mapping[str, str], folder: Path, seconds: float) -> Ended:
    """Run to its end, or to the end of its time; what it left running ends with it.

    Some clients leave a process of their own behind, out of reach of a process group; a PID namespace holds them all.
    """
    output = folder.parent / "printed.txt"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*_own_processes(), *command],
            env=dict(env),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
    return Ended(status, output.read_bytes().decode("utf-8", "replace"))


def _own_processes() -> Sequence[str]:
    return ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child") if is_inside() else ()


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
