"""Measure the rows per second of a capture, compared with the syncs per second of the disk.

A row is synced before the next step, and an answer is journaled and synced before its first row: with one call in each
answer, one scenario at a time makes little more than one row for two syncs. Several at a time share syncs. Beside it,
in the same run and folder: bare appends of as many bytes with a sync each. Wall time, because a disk is waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from measure import table, verdict
from rightcall.backends.exchange import HttpRequest, HttpResponse
from rightcall.backends.http import Backend
from rightcall.capture.domain import find_domains
from rightcall.capture.runner import Capture
from rightcall.capture.settings import Settings

RUNS = 8
DOMAINS = ("shopping", "calendar", "support")
LEAST = 0.5  # fraction of the rate that the syncs allow, one scenario at a time


class InstantExchange:
    """An exchange that answers at once, like a model with one call per turn, so the model is not measured."""

    def keep(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        tool = (request.body or {})["tools"][0]["function"]
        arguments = dict.fromkeys(tool["parameters"]["required"], "2026-06-05")
        call = {"name": tool["name"], "arguments": json.dumps(arguments)}
        message = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": call}]}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
        yield HttpResponse(200, {"content-type": "application/json"}, _pieces(body))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body


def run_capture(folder: Path, concurrency: int, max_turns: int = 4) -> tuple[int, float, float]:
    """Return rows, seconds and bytes of a row."""
    output = folder / f"c{concurrency}.jsonl"
    settings = Settings(models=("m",), mode="native", runs=RUNS, max_turns=max_turns, concurrency=concurrency)
    run = Capture(
        Backend("http://nowhere.localhost", exchange=InstantExchange(), environ={}),
        find_domains(DOMAINS),
        settings,
        output,
    )
    start = time.perf_counter()
    asyncio.run(run.go())
    return run.tally.rows, time.perf_counter() - start, output.stat().st_size / run.tally.rows


def measure_syncs(folder: Path, size: int, count: int = 300) -> float:
    """Return the appends with a sync per second, without a capture."""
    line = b"x" * (size - 1) + b"\n"
    file = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    start = time.perf_counter()
    for _ in range(count):
        os.write(file, line)
        os.fdatasync(file)
    seconds = time.perf_counter() - start
    os.close(file)
    return count / seconds


def main() -> int:
    missed = []
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        lines = []
        for concurrency in (1, 4, 16, 64):
            rows, seconds, size = run_capture(folder, concurrency)
            limit = measure_syncs(folder, round(size))
            rate = rows / seconds
            lines.append(
                (str(concurrency), f"{rows}", f"{rate:.0f}", f"{limit:.0f}", f"{rate / limit:.2f}", f"{size:.0f}")
            )
            if concurrency == 1 and rate < LEAST * limit / 2:
                missed.append("one scenario at a time")
    table(("at a time", "rows", "rows/s", "syncs/s of the disk", "rows per sync", "bytes per row"), lines)
    print("one scenario at a time: four answers and five rows need nine syncs, so 0.56 is the maximum")
    return verdict(f"one at a time, at least {LEAST:.0%} of what the syncs allow", missed)


if __name__ == "__main__":
    sys.exit(main())
