"""Kill runs of a command at random moments with SIGKILL until one run completes.

    python tests/support/killed.py SECONDS COMMAND OPTIONS...        runs a `rightcall` command that has --resume

Everything is imported once. Each run is a fork, so hundreds of runs are killed in the time that one interpreter needs
to start.
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

FIRST_LIMIT = 0.02  # shorter than the fastest complete run, so the first run is always killed
LIMIT = 0.3
LAST_LIMIT = 600.0


def preload() -> None:
    import aiohttp  # noqa: F401
    import jsonschema_rs  # noqa: F401

    gc.freeze()  # no child collects the objects that all of them share


def fork_run(run: Callable[[], int]) -> int:
    """Run a function in a fork and return the process ID."""
    child = os.fork()
    if not child:
        code = 99
        try:
            code = run()
        finally:
            os._exit(code)
    return child


def resume_command(options: list[str], log: str) -> int:
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        return int(app([*options, "--resume"], standalone_mode=False) or 0)
    except Exception:  # noqa: BLE001 - the outermost frame of the process: the traceback is in the log
        traceback.print_exc()
        return 98


def wait_or_kill(child: int, limit: float) -> int | None:
    """Return the exit code of the process, or None if it ran for `limit` seconds and was killed."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def kill_until_done(
    seconds: float, run: Callable[[], int], after_each: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Kill runs for `seconds`, then let one run complete. Return the number of killed runs and the last exit code.

    The first run gets only a few milliseconds: on a fast machine it might complete otherwise, and no run would be
    killed. `after_each` is called after every run, killed or not.
    """
    dice = random.Random(os.getpid())
    until, killed, code = time.monotonic() + seconds, 0, None
    while code is None:
        limit = dice.uniform(0.0, LIMIT if killed else FIRST_LIMIT) if time.monotonic() < until else LAST_LIMIT
        code = wait_or_kill(fork_run(run), limit)
        killed += code is None
        after_each()
    return killed, code


def main(seconds: float, options: list[str]) -> int:
    preload()
    log = options[-1] + ".log"
    killed, code = kill_until_done(seconds, lambda: resume_command(options, log))
    print(json.dumps({"killed": killed, "code": code}))
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
