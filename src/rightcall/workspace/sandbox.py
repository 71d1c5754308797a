"""What a shell command may touch. Where the machine has bubblewrap or sandbox-exec, only the root can be written.

    sandboxed("auto", "/home/me/project")   ->  ["bwrap", "--ro-bind", "/", "/", ...]

Everything else can still be read, and the network is there unless `network=False`. Without a sandbox a command sees the
machine's processes, and in Linux' /proc their environments, the keys of this program among them; where `unshare` works,
it is given a /proc of its own instead, and whatever it started ends with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import lru_cache
from typing import Literal

from rightcall.errors import CallerError

Sandbox = Literal["auto", "bwrap", "sandbox-exec", "off"]
_CHOICES = ("auto", "bwrap", "sandbox-exec", "off")
_UNSHARE = "unshare"


def sandboxed(choice: str, root: str, *, network: bool) -> list[str]:
    """The words before the command. Raises where a sandbox was asked for by name and is not there."""
    if choice not in _CHOICES:
        raise CallerError(f"sandbox={choice!r} is not one of {', '.join(_CHOICES)}")
    if choice == "off":
        return []
    for name, words in (("bwrap", _bwrap(root, network)), ("sandbox-exec", _seatbelt(root, network))):
        if choice in ("auto", name) and _works(tuple(words)):
            return words
    if choice == "auto":
        return _alone() if _works(tuple(_alone())) else []
    raise CallerError(f"sandbox={choice!r} does not work on this machine; install it, or say sandbox='auto' or 'off'")


def _bwrap(root: str, network: bool) -> list[str]:
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    words += ["--bind", root, root, "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    words += _less_than_root() if os.geteuid() == 0 else []
    return words if network else [*words, "--unshare-net"]


# What a command of root's keeps of its powers: to work on files of other users in the root.
_KEPT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")


def _less_than_root() -> list[str]:
    """bubblewrap leaves root its powers, and with them `mount -o remount,rw /` undoes all of the above; the machine's
    settings belong to root whatever its powers."""
    words = ["--cap-drop", "ALL"]
    for power in _KEPT:
        words += ["--cap-add", power]
    for path in _SETTINGS:
        words += ["--ro-bind-try", path, path]
    return words


def _alone() -> list[str]:
    """Process numbers and a /proc of its own, and nothing else. The first process is not the command, which as such
    would be deaf to signals."""
    words = [_UNSHARE, "--pid", "--fork", "--kill-child", "--mount-proc"]
    words += [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return [*words, "/bin/sh", "-c", '"$@"; exit $?', "sh"]


def confines(words: list[str]) -> str:
    """The name of the sandbox that these words start: "" for none, also where only processes are hidden."""
    return words[0] if words and words[0] != _UNSHARE else ""


def hides(words: list[str]) -> bool:
    """Can a command see no process but its own?"""
    return bool(words) and words[0] in ("bwrap", _UNSHARE)


def _seatbelt(root: str, network: bool) -> list[str]:
    quoted = root.replace("\\", "\\\\").replace('"', '\\"')
    rules = ["(version 1)", "(allow default)", '(deny file-write* (subpath "/"))']
    rules += [f'(allow file-write* (subpath "{quoted}") (subpath "/private/tmp") (literal "/dev/null"))']
    rules += [] if network else ["(deny network*)"]
    return ["sandbox-exec", "-p", "".join(rules)]


@lru_cache(16)
def _works(words: tuple[str, ...]) -> bool:
    """Is it there, and may it be used? In many containers it may not."""
    if shutil.which(words[0]) is None or (words[0] == "sandbox-exec") != (sys.platform == "darwin"):
        return False
    try:
        done = subprocess.run([*words, "/bin/sh", "-c", ":"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
