"""Tools that a child process can import: they sleep, print, die and start others, which no tool of ours should."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

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
    """Starts a grandchild that sleeps as well, and notes both."""
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(pid_file + ".part", "w") as file:
        file.write(f"{os.getpid()} {grandchild.pid}")
    os.rename(pid_file + ".part", pid_file)
    time.sleep(600)


def takes_json(**arguments: Any) -> Any:
    return arguments
