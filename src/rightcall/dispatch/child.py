"""Runs one tool in a process of its own. Started by `isolate` only; request and answer are one JSON object each.

The answer goes to what was standard output at the start. From then on the tool's own prints go to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any


def main() -> None:
    threading.Thread(target=end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
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


def end_with_parent(watched: int) -> None:
    """Nothing is ever written to this pipe: it ends when the process that started us does."""
    os.read(watched, 1)
    os.killpg(0, signal.SIGKILL)


def run(request: dict[str, Any]) -> Any:
    import asyncio
    import importlib
    import inspect

    from rightcall.declare.binding import binding
    from rightcall.declare.toolset import to_tool
    from rightcall.dispatch.plain import plain

    found: Any = importlib.import_module(request["module"])
    for step in request["name"].split("."):
        found = getattr(found, step)
    if request["bound"]:
        bound = binding(to_tool(found).run)
        assert bound is not None
        typed = bound.typed(request["arguments"])
        if isinstance(typed, tuple):
            raise ValueError("; ".join([problem.message for problem in typed]))
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
