"""A network namespace with its own loopback, from which only this machine can be reached."""

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
GRACE = 5.0  # seconds that a process has to end after a signal


def is_inside() -> bool:
    return os.environ.get(_INSIDE) == "1"


def find_launcher() -> Sequence[str] | None:
    """Return the command prefix that starts a command in its own namespace, or None if that is not possible."""
    if shutil.which("unshare") is None:
        return None
    for launcher in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if subprocess.run([*launcher, "true"], capture_output=True).returncode == 0:
            return launcher
    return None


def rerun_inside(launcher: Sequence[str]) -> int:
    """Run this command again inside the namespace."""
    command = [*launcher, sys.executable, "-m", "clients", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, _INSIDE: "1"}).returncode


def raise_loopback() -> None:
    """Bring the loopback of the new namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(control_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


@dataclass(frozen=True)
class ProcessResult:
    """The result of a process: its exit status (None if it ran out of time) and its output."""

    status: int | None
    printed: str


def run_bounded(command: Sequence[str], *, env: Mapping[str, str], folder: Path, seconds: float) -> ProcessResult:
    """Run a command until it ends or its time is over, and end all processes that it started.

    Some clients leave a process outside the process group; a PID namespace contains them all.
    """
    output = folder.parent / "printed.txt"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*_pid_namespace(), *command],
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
    return ProcessResult(status, output.read_bytes().decode("utf-8", "replace"))


def _pid_namespace() -> Sequence[str]:
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
