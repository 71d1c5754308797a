"""A tool run in a process of its own, which is killed when its time is over, nobody waits any more, or we die.

The child is given the name of the function and the arguments as JSON, never a pickled object: it imports the module,
declares the function as here, and validates the arguments again in the same way. What was filled in here is sent along,
and the tool runs only if the same values come out as the hooks were shown. So the function must be importable, and what
it gives comes back as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.dispatching import tool_child as child
from rightcall.dispatching.plain_json_values import plain, shown
from rightcall.errors import NotRunnable, ToolError, ToolTimedOut
from rightcall.tools.functions import Binding, Typed
from rightcall.types import Json

MOST_OUTPUT = 64_000_000


class Isolated(ToolError):
    """What the child says was raised there; `type` is the name of its class."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type


class Importable(msgspec.Struct, frozen=True):
    module: str
    name: str


def importable(tool: str, function: Callable[..., Any]) -> Importable:
    """Where a child finds this function. Raises `NotRunnable`."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    cause = ""
    if module == "__main__":
        cause = "it is defined in the program's main module"
    elif "<" in name or not name:
        cause = "it has no name at the top level of a module"
    elif _found(module, name) is not function:
        cause = f"{module}.{name} is not the same object"
    if not cause:
        return Importable(module, name)
    cure = "define it at the top level of a module that can be imported, or pass isolate=False"
    raise NotRunnable(f"the tool {tool!r} cannot run in a process of its own: {cause}; {cure}")


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return found


async def in_process(tool: str, way: Binding, arguments: Json, typed: Typed, seconds: float | None) -> Any:
    """What the function gives in a child process, run with these values: `typed` is what the arguments became here.

    Raises `ToolTimedOut`, `Isolated` or `NotRunnable`."""
    where = msgspec.structs.asdict(importable(tool, way.function))
    bound = {"bound": False, "arguments": arguments}
    if way.validate is not None:
        bound = {"bound": True, "arguments": _filled_in(way, arguments, typed), "shown": shown(typed)}
    request = json.dumps({"path": sys.path, **where, **bound}).encode()
    watched, held = os.pipe()
    try:
        process = await _started(watched)
    except BaseException:
        os.close(held)
        raise
    try:
        async with asyncio.timeout(seconds):
            answer = await _answer(process, request)
    except TimeoutError:
        raise ToolTimedOut(tool, seconds or 0.0) from None
    finally:
        await _end(process, held)
    return _read(answer, process.returncode)


def _filled_in(way: Binding, arguments: Json, typed: Typed) -> Json:
    """The arguments, with what was made for those that were not given: made again it would be something else."""
    missing = {name: plain(value) for name, value in typed.items() if name not in arguments}
    if not missing:
        return arguments
    whole = {**arguments, **missing}
    try:
        again = way.typed(whole)
    except Exception:  # noqa: BLE001 - a validator of the tool's own cannot read it; the child compares
        return arguments
    return whole if not isinstance(again, tuple) and shown(again) == shown(typed) else arguments


async def _started(watched: int) -> asyncio.subprocess.Process:
    """The child watches one end of a pipe. When nobody holds the other any more, it kills all it started, and ends."""
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", child.__file__, str(watched)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(watched,),
            start_new_session=True,
        )
    finally:
        os.close(watched)


async def _answer(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died early; its answer says so
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()
    pieces: list[bytes] = []
    left = MOST_OUTPUT
    while left > 0 and (piece := await process.stdout.read(1 << 16)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


async def _end(process: asyncio.subprocess.Process, held: int) -> None:
    """The child ends whatever the tool started, and itself, when nobody holds the pipe."""
    os.close(held)
    try:
        await asyncio.wait_for(asyncio.shield(process.wait()), child.PATIENCE + 1)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # lets go of pipes that something else holds
    await process.wait()


def _read(answer: bytes, status: int | None) -> Any:
    if len(answer) >= MOST_OUTPUT:
        raise Isolated("TooLarge", f"the output is longer than {MOST_OUTPUT:,} bytes; give less, or write it to a file")
    try:
        told = json.loads(answer)
    except ValueError:
        raise Isolated("ProcessDied", f"the process ended without an answer (status {status})") from None
    if "error" in told:
        raise Isolated(told["error"], told["message"])
    return told["output"]
