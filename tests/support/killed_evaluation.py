"""An evaluation that is killed: a process of its own, ended by SIGKILL at random moments, until one gets to its end.

    python tests/support/killed_evaluation.py SECONDS URL FILE CONCURRENCY

A row is acknowledged when its run is told that it is on disk; the number of each is written down then. After every kill
all that was acknowledged must be in the file. Prints how many were killed, what was lost, and the last exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

from rightcall.backends.exchange import Retries
from rightcall.backends.http import Backend
from rightcall.evaluation.eval_rows import EvalRow, read_evaluation
from rightcall.evaluation.evaluation_run import EvalSettings, Evaluation, EvalWatch
from rightcall.evaluation.suites import find_cases

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # it is started by its path, without pytest
from support.killed import ended, forked, preload

CASES = int(os.environ.get("RIGHTCALL_KILL_CASES", "20"))


class Acknowledged(EvalWatch):
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def row(self, row: EvalRow) -> None:
        os.write(self._file, json.dumps(row.key).encode() + b"\n")


def evaluate(url: str, out: Path, concurrency: int) -> int:
    settings = EvalSettings(
        model="m", configurations=("bare", "+repair", "+nudge"), mode="native", seed=1, concurrency=concurrency
    )
    backend = Backend(url, retries=Retries(most=0), environ={})
    watch = Acknowledged(out.with_suffix(".acknowledged"))
    run = Evaluation(backend, find_cases(["questions"], limit=CASES), settings, out, resume=True, watch=watch)
    asyncio.run(run.go())
    return 0


def lost(out: Path) -> list[str]:
    """What was acknowledged and is not in the file."""
    path = out.with_suffix(".acknowledged")
    told = path.read_text("utf-8").splitlines() if path.exists() else []
    found = read_evaluation(out) if out.exists() else None
    there = {json.dumps(row.key) for row in found.rows} if found is not None else set()
    return [each for each in told if each not in there]


def main(seconds: float, url: str, out: Path, concurrency: int) -> int:
    preload()
    find_cases(["questions"], limit=1)
    dice = random.Random(os.getpid())
    until, killed, code = time.monotonic() + seconds, 0, None
    missing: list[str] = []
    while code is None:
        patience = dice.uniform(0.0, 0.3) if time.monotonic() < until else 600.0
        code = ended(forked(lambda: evaluate(url, out, concurrency)), patience)
        killed += code is None
        missing += lost(out)
    print(json.dumps({"killed": killed, "lost": missing, "code": code}))
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
