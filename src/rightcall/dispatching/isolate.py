"""Run a tool in a separate process, which is killed at the time limit, on cancellation, or when this process ends.

The child gets the name of the function and the arguments as JSON, never a pickled object: it imports the module,
declares the function in the same way, and validates the arguments again. Generated default values are sent along, and
the tool runs only if validation gives the values that the hooks were shown. So the function must be importable, and its
output is returned as JSON.
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
from rightcall.dispatching.plain_json_values import comparable_text, plain
from rightcall.errors import NotRunnable, ToolError, ToolTimedOut
from rightcall.tools.functions import Binding, Typed
from rightcall.types import Json

MOST_OUTPUT = 64_000_000


class Isolated(ToolError):
    """An error that was raised in the child; `type` is the name of its class."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type


class Importable(msgspec.Struct, frozen=True):
    """The module and the qualified name under which a child finds a function."""

    module: str
    name: str


def locate_function(tool: str, function: Callable[..., Any]) -> Importable:
    """Return the module and name under which a child process can import this function. Raises `NotRunnable` if it
    cannot: it is defined in the main module or inside a function, or another object has its name. `tool` is the tool's
    name for the message."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    cause = ""
    if module == "__main__":
        cause = "it is defined in the program's main module"
    elif "<" in name or not name:
        cause = "it has no name at the top level of a module"
    elif _find_loaded(module, name) is not function:
        cause = f"{module}.{name} is not the same object"
    if not cause:
        return Importable(module, name)
    cure = "define it at the top level of a module that can be imported, or pass isolate=False"
    raise NotRunnable(f"the tool {tool!r} cannot run in a separate process: {cause}; {cure}")


def _find_loaded(module: str, name: str) -> Any:
    """Return the object with this qualified name in a module that is imported already; None if there is none. Nothing
    is imported."""
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return found


async def in_process(tool: str, binding: Binding, arguments: Json, typed: Typed, seconds: float | None) -> Any:
    """Run a tool's function in a child process with these arguments and return its output as JSON data.

    `typed` are the validated arguments that the hooks were shown. Raises `ToolTimedOut` after `seconds` (None: no
    limit), `Isolated` for an error of the tool, and `NotRunnable` if the function cannot be imported. No process of the
    tool remains."""
    where = msgspec.structs.asdict(locate_function(tool, binding.function))
    bound = {"bound": False, "arguments": arguments}
    if binding.validate is not None:
        bound = {"bound": True, "arguments": _with_defaults(binding, arguments, typed), "shown": comparable_text(typed)}
    request = json.dumps({"path": sys.path, **where, **bound}).encode()
    watched, held = os.pipe()
    try:
        process = await _start_child(watched)
    except BaseException:
        os.close(held)
        raise
    try:
        async with asyncio.timeout(seconds):
            answer = await _exchange(process, request)
    except TimeoutError:
        raise ToolTimedOut(tool, seconds or 0.0) from None
    finally:
        await _end_child(process, held)
    return _parse_answer(answer, process.returncode)


def _with_defaults(binding: Binding, arguments: Json, typed: Typed) -> Json:
    """Return `arguments` with the default values added that validation generated (they are in `typed`), since the child
    would generate others; `arguments` unchanged if the result does not validate to the same values."""
    missing = {name: plain(value) for name, value in typed.items() if name not in arguments}
    if not missing:
        return arguments
    whole = {**arguments, **missing}
    try:
        again = binding.typed(whole)
    except Exception:  # noqa: BLE001 - a validator of the tool rejects it; the child compares
        return arguments
    return whole if not isinstance(again, tuple) and comparable_text(again) == comparable_text(typed) else arguments


async def _start_child(watched: int) -> asyncio.subprocess.Process:
    """Start the child process and return it. It watches the pipe `watched`, which is closed here, and kills all
    processes that it started when the other end of the pipe is closed. Raises `OSError`."""
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


async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    """Send the request to the child and return the bytes that it writes until it closes its output, or a little more
    than `MOST_OUTPUT` of them. A child that died early gives what it wrote, or nothing."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the child died early; its answer shows that
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()
    pieces: list[bytes] = []
    remaining = MOST_OUTPUT
    while remaining > 0 and (piece := await process.stdout.read(1 << 16)):
        pieces.append(piece)
        remaining -= len(piece)
    return b"".join(pieces)


async def _end_child(process: asyncio.subprocess.Process, held: int) -> None:
    """Close `held`, the end of the pipe that the child watches, which makes the child end the tool and itself; kill its
    process group if it does not end in time. Returns once the child has ended."""
    os.close(held)
    try:
        await asyncio.wait_for(asyncio.shield(process.wait()), child.PATIENCE + 1)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # closes pipes that another process still holds
    await process.wait()


def _parse_answer(answer: bytes, status: int | None) -> Any:
    """Return the output in the child's answer, the bytes of a JSON object. Raises `Isolated` for an error of the tool,
    a missing answer, or one that is too long; `status` is the child's exit code, for the message."""
    if len(answer) >= MOST_OUTPUT:
        raise Isolated("TooLarge", f"the output is longer than {MOST_OUTPUT:,} bytes; give less, or write it to a file")
    try:
        fields = json.loads(answer)
    except ValueError:
        raise Isolated("ProcessDied", f"the process ended without an answer (status {status})") from None
    if "error" in fields:
        raise Isolated(fields["error"], fields["message"])
    return fields["output"]
