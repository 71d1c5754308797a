"""Tools that a child process can import: they sleep, print, exit and start processes, as real tools should not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from rightcall import tool


def add(a: int, b: int = 1) -> int:
    return a + b


async def add_later(a: int) -> int:
    await asyncio.sleep(0)
    return a + 1


@tool(name="weekday", read_only=True)
def day_of(day: date) -> dict[str, Any]:
    print("this goes to standard error")
    return {"day": day, "number": day.isoweekday()}


@dataclass
class Point:
    x: int
    y: int = 0


def own_process() -> int:
    return os.getpid()


def fails(why: str) -> None:
    raise LookupError(why)


def exits() -> None:
    sys.exit(3)


def dies() -> None:
    os._exit(9)


def sleeps(pid_file: str) -> None:
    """Start a grandchild that sleeps as well, and write both process IDs to the file."""
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(pid_file + ".part", "w") as file:
        file.write(f"{os.getpid()} {grandchild.pid}")
    os.rename(pid_file + ".part", pid_file)
    time.sleep(600)


def starts_a_daemon(pid_file: str, hangs: bool, forks_twice: bool) -> str:
    """Start a process in its own session; forked twice, its parent is gone."""
    code = "import time; time.sleep(600)"
    if forks_twice:
        code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        code += f"        {NOTE}; time.sleep(600)"
    started = subprocess.Popen(
        [sys.executable, "-c", code, pid_file],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if not forks_twice:
        note(pid_file, started.pid)
    while not os.path.exists(pid_file):
        time.sleep(0.01)
    time.sleep(600 if hangs else 0)
    return "started"


NOTE = "import sys; open(sys.argv[1] + '.p', 'w').write(str(os.getpid())); os.rename(sys.argv[1] + '.p', sys.argv[1])"


def note(pid_file: str, pid: int) -> None:
    with open(pid_file + ".part", "w") as file:
        file.write(str(pid))
    os.rename(pid_file + ".part", pid_file)


def fresh(key: Annotated[str, Field(default_factory=lambda: uuid.uuid4().hex)], day: date = date(2026, 1, 1)) -> str:
    return f"{key} {day}"


def never_the_same(key: Annotated[str, AfterValidator(lambda text: text + uuid.uuid4().hex)]) -> str:
    return key


def takes_json(**arguments: Any) -> Any:
    return arguments
