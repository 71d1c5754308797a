"""Runs that are killed: processes of their own, ended by SIGKILL at random moments, until one gets to its end.

    python tests/support/killed.py SECONDS COMMAND OPTIONS...        of `rightcall`, that can be told to --resume

Everything is imported once; each run is a fork, so that hundreds are killed in the time one takes to start.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable

from rightcall.cli.app import app


def preload() -> None:
    import aiohttp  # noqa: F401
    import jsonschema_rs  # noqa: F401

    gc.freeze()  # no child goes over what all of them share


def forked(work: Callable[[], int]) -> int:
    child = os.fork()
    if not child:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def resumed(options: list[str], log: str) -> int:
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        return int(app([*options, "--resume"], standalone_mode=False) or 0)
    except Exception:  # noqa: BLE001 - the edge of a process: the log has it
        traceback.print_exc()
        return 98


def ended(child: int, within: float) -> int | None:
    """The exit code, or None if it was killed after so many seconds."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def main(seconds: float, options: list[str]) -> int:
    """Kills for so long, then lets one run finish. Prints how many were killed, and the last exit code."""
    preload()
    dice = random.Random(os.getpid())
    log = options[-1] + ".log"
    until, killed, code = time.monotonic() + seconds, 0, None
    while code is None:
        patience = dice.uniform(0.0, 0.3) if time.monotonic() < until else 600.0
        code = ended(forked(lambda: resumed(options, log)), patience)
        killed += code is None
    print(json.dumps({"killed": killed, "code": code}))
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
