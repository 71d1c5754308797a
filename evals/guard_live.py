"""Measure SmolLM2 135M over ten tasks of one call each, constrained by a grammar, with and without the guard.

The long tasks are too hard for it: of the 15 calls that eight of them expect, it made none, under any guard. See
evals/guard.py.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec
from faulty_models import TaskPath
from guard import FOLDER, Run, guard_of, replace_part, run_task, save
from report import table, wilson

from rightcall import Reply, Runner, Toolset
from rightcall.backends.local import LocalBackend
from rightcall.capture.domain import find_domains

GUARDS = ("none", "full", "task")
RUNS = 5
TURNS = 3
OFFERED = 3
FIELDS: dict[str, Any] = {"mode": "grammar", "temperature": 0.7, "max_tokens": 96}
SYSTEM = "You do what the user asks by calling tools, one after the other. When it is done, say so."
TASKS = (
    *("banking/balance", "calendar/list_events", "calendar/cancel_hold", "database/columns", "devops/status"),
    *("home/light_off", "home/how_warm", "shopping/product_details", "support/lookup_ticket", "support/search_kb"),
)


class LiveRun(msgspec.Struct, frozen=True):
    """One run of one task."""

    guard: str
    task: str
    seed: int
    wanted: int
    missing: int
    run: Run
    seconds: float


def tasks() -> list[TaskPath]:
    """Return ten tasks of one call with plain arguments. The guard of the task knows which tool ends it."""
    paths = []
    for task in TASKS:
        name, _, scenario = task.partition("/")
        (domain,) = find_domains([name])
        scenario_found = domain.by_name[scenario]
        ends = (scenario_found.calls[0].name,)
        paths.append(TaskPath(domain, msgspec.structs.replace(scenario_found, required_steps=ends, terminal=ends)))
    return paths


def offered_tools(path: TaskPath) -> Toolset:
    """Return three tools of the domain with the task's: a longer list is slower to read and harder for the model."""
    own = {name for name, _ in path.steps}
    others = [tool.name for tool in path.domain.tools if tool.name not in own][: max(0, OFFERED - len(own))]
    return Toolset([tool for tool in path.domain.tools if tool.name in own or tool.name in others])


def live(seconds: float, *, write: bool) -> int:
    started = time.monotonic()
    runs: list[LiveRun] = []
    with asyncio.Runner() as loop, LocalBackend("smollm2", threads=1) as backend:
        for seed in range(1, RUNS + 1):
            for path in tasks():
                for guard in GUARDS:
                    if time.monotonic() - started > seconds:
                        break
                    runs.append(run_once(loop, backend, path, guard, seed))
    whole = len(runs) - len(runs) % len(GUARDS)  # every guard ran the same tasks
    runs = runs[:whole]
    print(part(runs))
    if write:
        save(FOLDER / "live.jsonl", runs, f"python evals/guard.py --live --seconds {seconds:g} --write")
        replace_part("live", part(runs))
    return 0


def run_once(loop: asyncio.Runner, backend: LocalBackend, path: TaskPath, guard: str, seed: int) -> LiveRun:
    started = time.monotonic()
    runner = Runner(
        None,
        offered_tools(path),
        guard=guard_of(guard, path.scenario),
        system=SYSTEM,
        choice="required",
        fields={**FIELDS, "seed": seed},
    )

    def answer(request: Any) -> Reply:
        return loop.run(backend.complete(request))

    outcome = run_task(path, runner, answer, TURNS)
    print(f"{guard} {path.scenario.name} {seed}: {outcome}", file=sys.stderr, flush=True)
    wanted = sum(not optional for optional in path.optional)
    seconds_taken = round(time.monotonic() - started, 2)
    return LiveRun(
        guard, f"{path.domain.name}/{path.scenario.name}", seed, wanted, outcome.missing, outcome, seconds_taken
    )


def part(runs: list[LiveRun]) -> str:
    rows = []
    for guard in GUARDS:
        of = [each for each in runs if each.guard == guard]
        done = sum(each.run.completed for each in of)
        low, high = wilson(done, len(of))
        steps, wanted = sum(each.wanted - each.missing for each in of), sum(each.wanted for each in of)
        ends = [sum(each.run.status == status for each in of) for status in ("done", "stopped", "out of turns")]
        rows.append(
            (
                f"`{guard}`",
                f"{done}/{len(of)} ({low * 100:.0f}-{high * 100:.0f})",
                f"{steps}/{wanted}",
                sum(each.run.harm for each in of),
                f"{sum(each.run.turns for each in of) / max(1, len(of)):.1f}",
                f"{sum(each.run.calls for each in of) / max(1, len(of)):.1f}",
                " / ".join(map(str, ends)),
            )
        )
    head = ("guard", "completed (95 %)", "wanted calls that went well", "harms", "turns", "calls run")
    return table((*head, "ended / stopped / out of turns"), rows)
