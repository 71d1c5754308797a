"""Run one tool in a separate process. Started only by `isolate`; request and answer are one JSON object each.

There are two processes: a keeper, which is this program, and a worker that it starts and that runs the tool. Processes
that the worker starts become children of the keeper when their parent ends, whatever session or group they are in (on
Linux; elsewhere only the worker's group is known). The keeper kills all of them when the worker has ended, and when the
other end of the pipe that it watches is closed. The answer is written to the standard output that the process was
started with; whatever the tool prints goes to standard error.
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
PATIENCE = 5.0  # seconds to wait until killed processes are gone


def supervise() -> None:
    """Run this program: start the worker, wait for it as the keeper, kill all processes that remain, and exit with the
    worker's code. Never returns in the keeper; returns in the worker once its answer is written."""
    watched = int(sys.argv[1])
    adopt_orphans()
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    worker = os.fork()
    if worker == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)  # signals of the tool to its group must not reach the keeper
        for handle in (watched, woken, waker):
            os.close(handle)
        run_worker()
        return
    with contextlib.suppress(OSError):
        os.setpgid(worker, worker)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    code = wait_for_worker(worker, watched, woken)
    end_all(worker)
    os._exit(code)


def run_worker() -> None:
    """Read the request from standard input, run the tool, and write its output or its error as one JSON object to the
    original standard output; what the tool prints goes to standard error."""
    request = json.loads(sys.stdin.buffer.read())
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.path[:] = request["path"]
    try:
        answer_fields: dict[str, Any] = {"output": run_tool(request)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of the tool is the answer
        answer_fields = {"error": type(error).__name__, "message": str(error)[:2000]}
    data = json.dumps(answer_fields).encode()
    while data:
        data = data[os.write(answer, data) :]


# -- the keeper --------------------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """Make this process the parent of all descendants that lose theirs (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_worker(worker: int, watched: int, woken: int) -> int:
    """Wait until the process `worker` has ended and return its exit code, 128 + N for signal N. Return 1 if the pipe
    `watched` is closed first, by the process that started this one. `woken` is a pipe that becomes readable when a
    child ends."""
    while True:
        ready, _, _ = select.select([watched, woken], [], [])
        if watched in ready:
            return 1
        os.read(woken, 4096)
        while ended := reap():
            if ended[0] == worker:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code


def reap() -> tuple[int, int] | None:
    """Collect one child that has ended and return its process id and wait status; None if none has."""
    with contextlib.suppress(ChildProcessError):
        pid, status = os.waitpid(-1, os.WNOHANG)
        return (pid, status) if pid else None
    return None


def end_all(worker: int) -> None:
    """Kill the worker's group and all children repeatedly, until there are none or `PATIENCE` seconds have passed."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.killpg(worker, signal.SIGKILL)
        found = child_pids()
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        while reap():
            pass
        if not found:
            return
        time.sleep(0.002)


def child_pids() -> list[int]:
    """Return the ids of the processes whose parent this one is; none outside Linux."""
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


def run_tool(request: dict[str, Any]) -> Any:
    """Import the function that the request names, run it with the arguments, and return its output as plain JSON data.
    Raises `ValueError` if validated arguments differ from those that the hooks were shown, and what the tool raises."""
    import asyncio
    import importlib
    import inspect

    from rightcall.dispatching.plain_json_values import comparable_text, plain
    from rightcall.tools.functions import get_binding
    from rightcall.tools.toolset import to_tool

    found: Any = importlib.import_module(request["module"])
    for step in request["name"].split("."):
        found = getattr(found, step)
    if request["bound"]:
        bound = get_binding(to_tool(found).run)
        assert bound is not None
        typed = bound.typed(request["arguments"])
        if isinstance(typed, tuple):
            raise ValueError("; ".join([problem.message for problem in typed]))
        if comparable_text(typed) != request["shown"]:
            raise ValueError("the arguments come out otherwise when they are validated again; the tool was not run")
        given = bound.call(typed)
    else:
        given = found(**request["arguments"])
    if inspect.isawaitable(given):
        given = asyncio.run(_awaited(given))
    return plain(given)


async def _awaited(given: Any) -> Any:
    """Return the output of an awaitable: `asyncio.run` takes only coroutines."""
    return await given


if __name__ == "__main__":
    supervise()
