"""Kill an evaluation at random moments with SIGKILL until one run completes.

    python tests/support/killed_evaluation.py SECONDS URL FILE CONCURRENCY

A row is acknowledged when the watch of its run is called, which happens after the row is on disk. The key of each
acknowledged row is recorded at that moment. After every kill, all acknowledged rows must be in the file. Prints the
number of killed runs, the lost rows and the last exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from rightcall.backends.exchange import Retries
from rightcall.backends.http import Backend
from rightcall.evaluation.eval_rows import EvalRow, read_evaluation
from rightcall.evaluation.evaluation_run import EvalSettings, Evaluation, EvalWatch
from rightcall.evaluation.suites import find_cases

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started by its path, without pytest
from support.killed import kill_until_done, preload

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


def find_lost_rows(out: Path) -> list[str]:
    """Return the keys that were acknowledged and are not in the file."""
    path = out.with_suffix(".acknowledged")
    acknowledged = path.read_text("utf-8").splitlines() if path.exists() else []
    evaluation = read_evaluation(out) if out.exists() else None
    stored = {json.dumps(row.key) for row in evaluation.rows} if evaluation is not None else set()
    return [key for key in acknowledged if key not in stored]


def main(seconds: float, url: str, out: Path, concurrency: int) -> int:
    preload()
    find_cases(["questions"], limit=1)
    lost: list[str] = []
    killed, code = kill_until_done(
        seconds, lambda: evaluate(url, out, concurrency), after_each=lambda: lost.extend(find_lost_rows(out))
    )
    print(json.dumps({"killed": killed, "lost": lost, "code": code}))
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
