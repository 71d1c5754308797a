"""Confine shell commands: with bubblewrap or sandbox-exec, only the root can be written.

    sandbox_prefix("auto", "/home/me/project", network=True)   ->  ["bwrap", "--ro-bind", "/", "/", ...]

Other files can still be read, and the network can be used unless `network=False`. Without a sandbox a command sees the
processes of the machine, and on Linux their environments in /proc, which include the keys of this program. If `unshare`
can be used, the command gets a /proc of its own instead, and its processes end with it.
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


def sandbox_prefix(choice: str, root: str, *, network: bool) -> list[str]:
    """Return the words to put before a command: those of the chosen sandbox, or [] for "off".

    "auto" chooses a sandbox that works here; without one, only other processes are hidden if `unshare` works. Raises
    `CallerError` if the sandbox named by `choice` does not work.
    """
    if choice not in _CHOICES:
        raise CallerError(f"sandbox={choice!r} is not one of {', '.join(_CHOICES)}")
    if choice == "off":
        return []
    for name, words in (
        ("bwrap", _bubblewrap_prefix(root, network)),
        ("sandbox-exec", _seatbelt_prefix(root, network)),
    ):
        if choice in ("auto", name) and _is_usable(tuple(words)):
            return words
    if choice == "auto":
        return _unshare_prefix() if _is_usable(tuple(_unshare_prefix())) else []
    raise CallerError(f"sandbox={choice!r} does not work on this machine; install it, or pass sandbox='auto' or 'off'")


def _bubblewrap_prefix(root: str, network: bool) -> list[str]:
    """Return the words to put before a command so that it runs in bubblewrap, where only the root and an empty /tmp can
    be written and it sees no other processes; without `network`, also no network. Nothing is started."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    words += ["--bind", root, root, "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    words += _drop_capabilities() if os.geteuid() == 0 else []
    return words if network else [*words, "--unshare-net"]


# The capabilities that a command of the user root keeps: to work on files of other users in the workspace.
_KEPT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")


def _drop_capabilities() -> list[str]:
    """Return bubblewrap's options that limit a command of the user root; nothing is changed in this process.

    bubblewrap keeps the capabilities of root, and they allow `mount -o remount,rw /`, so most are dropped. The settings
    of the machine are writable for root without any capability, and are mounted read-only."""
    words = ["--cap-drop", "ALL"]
    for power in _KEPT:
        words += ["--cap-add", power]
    for path in _SETTINGS:
        words += ["--ro-bind-try", path, path]
    return words


def _unshare_prefix() -> list[str]:
    """Return the words to put before a command so that it has its own process ids and /proc, and no other limits. A
    shell is the first process, because the first process would ignore signals."""
    words = [_UNSHARE, "--pid", "--fork", "--kill-child", "--mount-proc"]
    words += [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return [*words, "/bin/sh", "-c", '"$@"; exit $?', "sh"]


def sandbox_name(words: list[str]) -> str:
    """Return the name of the sandbox that a prefix starts: "bwrap" or "sandbox-exec"; "" for none, also if only
    processes are hidden."""
    return words[0] if words and words[0] != _UNSHARE else ""


def hides_processes(words: list[str]) -> bool:
    """Return whether a command with these words before it sees no processes but its own."""
    return bool(words) and words[0] in ("bwrap", _UNSHARE)


def _seatbelt_prefix(root: str, network: bool) -> list[str]:
    """Return the words to put before a command so that it runs in macOS's sandbox-exec, where only the root and
    /private/tmp can be written; without `network`, also no network."""
    quoted = root.replace("\\", "\\\\").replace('"', '\\"')
    rules = ["(version 1)", "(allow default)", '(deny file-write* (subpath "/"))']
    rules += [f'(allow file-write* (subpath "{quoted}") (subpath "/private/tmp") (literal "/dev/null"))']
    rules += [] if network else ["(deny network*)"]
    return ["sandbox-exec", "-p", "".join(rules)]


@lru_cache(16)
def _is_usable(words: tuple[str, ...]) -> bool:
    """Return whether a sandbox, given as the words to put before a command, is installed and can run a command here,
    which is tried; in many containers it cannot. The answer is cached."""
    if shutil.which(words[0]) is None or (words[0] == "sandbox-exec") != (sys.platform == "darwin"):
        return False
    try:
        done = subprocess.run([*words, "/bin/sh", "-c", ":"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
