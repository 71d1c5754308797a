"""Runs one tool in a process of its own. Started by `isolate` only; request and answer are one JSON object each.

Two processes: a keeper, which is this program, and a worker that it starts and that runs the tool. What the worker
starts becomes the keeper's child when its own parent ends, whatever session or group it is in (on Linux; elsewhere
only the worker's group is known). The keeper ends all of it when the worker has ended, and when nobody holds the
other end of the pipe that it watches any more. The answer goes to what was standard output at the start. From then on
the tool's own prints go to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

SET_CHILD_SUBREAPER = 36  # of prctl(2)
PATIENCE = 5.0  # seconds for what was killed to be gone


def main() -> None:
    watched = int(sys.argv[1])
    adopt()
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    worker = os.fork()
    if worker == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)  # what the tool does to its group does not reach the keeper
        for handle in (watched, woken, waker):
            os.close(handle)
        work()
        return
    with contextlib.suppress(OSError):
        os.setpgid(worker, worker)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    code = kept(worker, watched, woken)
    end_all(worker)
    os._exit(code)


def work() -> None:
    request = json.loads(sys.stdin.buffer.read())
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.path[:] = request["path"]
    try:
        told: dict[str, Any] = {"output": run(request)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the tool raised is the answer
        told = {"error": type(error).__name__, "message": str(error)[:2000]}
    data = json.dumps(told).encode()
    while data:
        data = data[os.write(answer, data) :]


# -- the keeper --------------------------------------------------------------------------------------------------------


def adopt() -> None:
    """What loses its parent below here comes to this process, not to the first of the machine."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kept(worker: int, watched: int, woken: int) -> int:
    """Waits until the worker has ended, or nobody waits for it. Its exit code."""
    while True:
        ready, _, _ = select.select([watched, woken], [], [])
        if watched in ready:
            return 1
        os.read(woken, 4096)
        while ended := reaped():
            if ended[0] == worker:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code


def reaped() -> tuple[int, int] | None:
    with contextlib.suppress(ChildProcessError):
        pid, status = os.waitpid(-1, os.WNOHANG)
        return (pid, status) if pid else None
    return None


def end_all(worker: int) -> None:
    """Kills the worker's group and every child, and those that become children by it, until there are none."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.killpg(worker, signal.SIGKILL)
        found = children()
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        while reaped():
            pass
        if not found:
            return
        time.sleep(0.002)


def children() -> list[int]:
    """The processes whose parent this one is, where the system lists them."""
    found = []
    own = str(os.getpid())
    for name in os.listdir("/proc") if sys.platform == "linux" else []:
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().decode("latin-1").rpartition(")")[2].split()
                if fields[1] == own:
                    found.append(int(name))
    return found


# -- the worker --------------------------------------------------------------------------------------------------------


def run(request: dict[str, Any]) -> Any:
    import asyncio
    import importlib
    import inspect

    from rightcall.dispatching.plain_json_values import plain, shown
    from rightcall.tools.functions import binding
    from rightcall.tools.toolset import to_tool

    found: Any = importlib.import_module(request["module"])
    for step in request["name"].split("."):
        found = getattr(found, step)
    if request["bound"]:
        bound = binding(to_tool(found).run)
        assert bound is not None
        typed = bound.typed(request["arguments"])
        if isinstance(typed, tuple):
            raise ValueError("; ".join([problem.message for problem in typed]))
        if shown(typed) != request["shown"]:
            raise ValueError("the arguments come out otherwise when they are validated again; the tool was not run")
        given = bound.call(typed)
    else:
        given = found(**request["arguments"])
    if inspect.isawaitable(given):
        given = asyncio.run(_awaited(given))
    return plain(given)


async def _awaited(given: Any) -> Any:
    return await given


if __name__ == "__main__":
    main()
