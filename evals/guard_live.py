"""SmolLM2 135M over ten tasks of one call each, held to a grammar, with the guard and without. See evals/guard.py.

The long tasks are beyond it: of 15 calls that eight of them wanted, not one came, under any guard.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec
from faulty_models import Way
from guard import FOLDER, Run, guard_of, keep, played, save
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


def tasks() -> list[Way]:
    """Ten tasks of one call with plain arguments. The task's own guard knows which tool ends it."""
    found = []
    for task in TASKS:
        name, _, scenario = task.partition("/")
        (domain,) = find_domains([name])
        asked = domain.by_name[scenario]
        ends = (asked.calls[0].name,)
        found.append(Way(domain, msgspec.structs.replace(asked, required_steps=ends, terminal=ends)))
    return found


def offered(way: Way) -> Toolset:
    """The task's tool and others of its domain, three in all: a long list is slow to read, and more to be wrong in."""
    own = {name for name, _ in way.steps}
    others = [tool.name for tool in way.domain.tools if tool.name not in own][: max(0, OFFERED - len(own))]
    return Toolset([tool for tool in way.domain.tools if tool.name in own or tool.name in others])


def live(seconds: float, *, write: bool) -> int:
    began = time.monotonic()
    runs: list[LiveRun] = []
    with asyncio.Runner() as loop, LocalBackend("smollm2", threads=1) as backend:
        for seed in range(1, RUNS + 1):
            for way in tasks():
                for guard in GUARDS:
                    if time.monotonic() - began > seconds:
                        break
                    runs.append(one(loop, backend, way, guard, seed))
    whole = len(runs) - len(runs) % len(GUARDS)  # each guard has seen the same tasks
    runs = runs[:whole]
    print(part(runs))
    if write:
        save(FOLDER / "live.jsonl", runs, f"python evals/guard.py --live --seconds {seconds:g} --write")
        keep("live", part(runs))
    return 0


def one(loop: asyncio.Runner, backend: LocalBackend, way: Way, guard: str, seed: int) -> LiveRun:
    began = time.monotonic()
    runner = Runner(
        None,
        offered(way),
        guard=guard_of(guard, way.scenario),
        system=SYSTEM,
        choice="required",
        fields={**FIELDS, "seed": seed},
    )

    def answer(request: Any) -> Reply:
        return loop.run(backend.complete(request))

    came = played(way, runner, answer, TURNS)
    print(f"{guard} {way.scenario.name} {seed}: {came}", file=sys.stderr, flush=True)
    wanted = sum(not optional for optional in way.optional)
    taken = round(time.monotonic() - began, 2)
    return LiveRun(guard, f"{way.domain.name}/{way.scenario.name}", seed, wanted, came.missing, came, taken)


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
