"""Measure each policy of the guard: scripted models with one fault each over the long tasks, and a small model.

    python evals/guard.py [--write]               the scripted models
    python evals/guard.py --live [--write]        SmolLM2 on this machine, constrained by a grammar

`--write` writes the figures to docs/guard.md and every cell to evals/guarded/scripted.jsonl (`live.jsonl`).

A task is *completed* if its outcome is right (`capture/task_outcome.py`) and the loop ended without intervention. A
*harm* is a change that was not requested, was made twice, or was made before its prerequisites. *Stopped*: by the
guard. *Out of turns*: cut off after 16.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from faulty_models import FAULTS, Fault, FaultyModel, TaskPath
from report import ROOT, table, wilson

from rightcall import Reply, Runner, parse
from rightcall.backends import Request
from rightcall.capture.domain import Domain, Scenario, find_domains
from rightcall.capture.score import task_outcome
from rightcall.dispatching.bounded_output import BoundedOutput, Bounds, bound
from rightcall.dispatching.result import Result
from rightcall.evaluation.case_run import StubRuns
from rightcall.evaluation.suites import TASK_DOMAINS
from rightcall.guard import (
    Guard,
    GuardPolicy,
    Respond,
    Turn,
    announced,
    failing_budget,
    malformed_budget,
    near_calls,
    one_at_a_time,
    oversized_results,
    prerequisites,
    problems,
    repeated,
    required_steps,
    silence,
    terminal_tools,
    tool_choice,
    turn_budget,
    unknown_tool,
)
from rightcall.types import Call, Json

FOLDER = ROOT / "evals" / "guarded"
PAGE = ROOT / "docs" / "guard.md"
HEEDS = (1.0, 0.5, 0.0)
SEEDS = (1, 2)
MOST_TURNS = 16
BUDGET = 12


def _prerequisites(scenario: Scenario) -> dict[str, list[str]]:
    """Return the prerequisites of each tool that all its right calls share."""
    needs: dict[str, list[str]] = {}
    for name in dict.fromkeys([call.name for call in scenario.calls]):
        of = [call.after for call in scenario.calls if call.name == name]
        common = [need for need in of[0] if need != name and all(need in other for other in of)]
        if common:
            needs[name] = common
    return needs


def _steps(scenario: Scenario) -> GuardPolicy:
    steps = [name for name in scenario.required_steps if name not in scenario.terminal]
    return required_steps(*steps, before=scenario.terminal)


# In the order of the guard "full", followed by those that need data of the task.
POLICIES: dict[str, Callable[[Scenario], GuardPolicy]] = {
    "failing_budget": lambda scenario: failing_budget(),
    "malformed_budget": lambda scenario: malformed_budget(),
    "unknown_tool": lambda scenario: unknown_tool(),
    "problems": lambda scenario: problems(),
    "near_calls": lambda scenario: near_calls(),
    "tool_choice": lambda scenario: tool_choice(),
    "one_at_a_time": lambda scenario: one_at_a_time(),
    "repeated": lambda scenario: repeated(),
    "announced": lambda scenario: announced(),
    "silence": lambda scenario: silence(),
    "oversized_results": lambda scenario: oversized_results(),
    "required_steps": _steps,
    "prerequisites": lambda scenario: prerequisites(_prerequisites(scenario)),
    "terminal_tools": lambda scenario: terminal_tools(*scenario.terminal) if scenario.terminal else _nothing,
    "turn_budget": lambda scenario: turn_budget(BUDGET),
    "respond": lambda scenario: Respond(),
}


def _nothing(turn: Turn) -> Iterator[object]:
    return iter(())


def guard_of(configuration: str, scenario: Scenario) -> Guard:
    """Return the guard `none`, `parse`, `full`, `task` (full, with the task's data), `only NAME` or `without NAME`."""
    kind, _, name = configuration.partition(" ")
    if kind in ("none", "parse", "full"):
        return Guard.of(kind)
    policies = [name] if kind == "only" else [each for each in POLICIES if kind == "task" or each != name]
    if "terminal_tools" not in policies:  # then no other policy requires the last call
        scenario = msgspec.structs.replace(scenario, terminal=())
    return Guard(*[POLICIES[each](scenario) for each in policies])


WHOLE = ("none", "parse", "full", "task")
EACH = (*[f"only {name}" for name in POLICIES], *[f"without {name}" for name in POLICIES])


def configurations(fault: Fault, heed: float) -> tuple[str, ...]:
    """Return the guards: every policy alone and left out if the model heeds feedback, else only those for its fault."""
    return (*WHOLE, *[each for each in EACH if heed == 1 or each.partition(" ")[2] == fault.policy])


class Run(msgspec.Struct, frozen=True):
    """The outcome of one task."""

    completed: bool
    right: bool
    status: str
    turns: int
    calls: int
    harm: int
    wasted: int
    interventions: int
    missing: int


class StubTools(StubRuns):
    """Answer calls with the stubs of a domain and record them. `noise` is the length of the text after each answer."""

    def __init__(self, domain: Domain, noise: int = 0) -> None:
        super().__init__(domain)
        self._noise = noise

    def run(self, calls: Sequence[Call], turn: int) -> list[Result]:
        results = super().run(calls, turn)
        return [msgspec.structs.replace(each, envelope=self._full_output(each.output)) for each in results]

    def _full_output(self, message: str) -> BoundedOutput | None:
        """Return the whole answer, as a loop without limits would send it."""
        if not self._noise:
            return None
        text = message + "\n" + "trace line\n" * (self._noise // 11)
        return bound(text, Bounds(string_chars=2 * len(text), total_bytes=8 * len(text)))


def run_task(
    path: TaskPath, runner: Runner, answer: Callable[[Request], Reply], max_turns: int = MOST_TURNS, noise: int = 0
) -> Run:
    """Run one task from its request to its end."""
    tools = StubTools(path.domain, noise)
    runner.ask(path.scenario.request)
    turns = 0
    while turns < max_turns and (request := runner.next_request()) is not None:
        processed = runner.receive(answer(request))
        if processed.calls:
            runner.give(tools.run(processed.calls, turns))
        turns += 1
    conversation = runner.conversation
    outcome = task_outcome(path.scenario, path.domain.tools, tools.made)
    is_done = conversation.status == "done" and bool(path.steps or conversation.answer.strip())
    return Run(
        completed=outcome.right and is_done,
        right=outcome.right,
        status="out of turns" if conversation.status == "open" else conversation.status,
        turns=turns,
        calls=len(tools.made),
        harm=len(outcome.harm),
        wasted=outcome.wasted,
        interventions=len(conversation.interventions),
        missing=len(outcome.missing),
    )


def run_scripted(path: TaskPath, fault: Fault, heed: float, seed: str, configuration: str) -> Run:
    model = FaultyModel(path, fault, heed, seed)
    runner = Runner(None, path.domain.tools, guard=guard_of(configuration, path.scenario), **fault.options)

    def answer(request: Request) -> Reply:
        turn = Turn.of(runner.conversation.messages, path.domain.tools)
        text = model.next_text(request.messages, turn, runner.tools.names if runner.tools else ())
        return parse(text, tools=runner.tools, format="hermes", ids=runner.conversation.ids)

    return run_task(path, runner, answer, noise=2 * fault.window)


class Cell(msgspec.Struct, frozen=True):
    """All runs of one model under one guard."""

    model: str
    heed: float
    guard: str
    runs: int
    completed: int
    interval: tuple[float, float]
    right: int
    stopped: int
    out_of_turns: int
    turns: float
    calls: float
    harm: int
    wasted: int
    interventions: int


def cell(model: str, heed: float, guard: str, runs: Sequence[Run]) -> Cell:
    """Summarize all runs of one model under one guard."""
    count, completed = len(runs), sum(run.completed for run in runs)
    low, high = wilson(completed, count)
    return Cell(
        model, heed, guard, count, completed, (round(low, 3), round(high, 3)),
        right=sum(run.right for run in runs),
        stopped=sum(run.status == "stopped" for run in runs),
        out_of_turns=sum(run.status == "out of turns" for run in runs),
        turns=round(sum(run.turns for run in runs) / max(1, count), 2),
        calls=round(sum(run.calls for run in runs) / max(1, count), 2),
        harm=sum(run.harm for run in runs),
        wasted=sum(run.wasted for run in runs),
        interventions=sum(run.interventions for run in runs),
    )  # fmt: skip


def task_paths() -> list[TaskPath]:
    return [TaskPath(domain, scenario) for domain in find_domains(TASK_DOMAINS) for scenario in domain.scenarios]


def can_show(fault: Fault, path: TaskPath) -> bool:
    """Return whether this task can show the fault.

    A fault that occurs at no particular step needs a task with a call, or with a second call.
    """
    if fault.window or fault.forced:
        return len(path.steps) > (1 if fault.window else 0)
    return fault is FAULTS["none"] or fault.strikes(path) is not None


def measure(models: Sequence[str], heeds: Sequence[float]) -> Iterator[Cell]:
    tasks = task_paths()
    for model in models:
        fault = FAULTS[model]
        paths = [path for path in tasks if can_show(fault, path)]
        for heed in heeds if model != "none" else (1.0,):
            for guard in configurations(fault, heed):
                runs = [
                    run_scripted(
                        path, fault, heed, f"{seed} {path.domain.name} {path.scenario.name} {model} {heed}", guard
                    )
                    for path in paths
                    for seed in (SEEDS if 0 < heed < 1 else SEEDS[:1])
                ]
                yield cell(model, heed, guard, runs)
        if sys.stderr.isatty():
            print(f"\r{model}\033[K", end="", file=sys.stderr, flush=True)


# -- the page ----------------------------------------------------------------------------------------------------------


def share(of: Cell | None) -> str:
    if of is None:
        return ""
    low, high = of.interval
    return f"{of.completed}/{of.runs} ({low * 100:.0f}-{high * 100:.0f})"


def completed_table(cells: Sequence[Cell], heed: float) -> str:
    by = {(each.model, each.heed, each.guard): each for each in cells}
    rows = []
    for name, fault in FAULTS.items():
        at = 1.0 if name == "none" else heed
        own = [f"only {fault.policy}", f"without {fault.policy}"] if fault.policy else ["", ""]
        columns = [share(by.get((name, at, guard))) for guard in ("none", "parse", "full", "task", *own)]
        rows.append((f"{fault.about} (`{fault.policy or '-'}`)", *columns))
    return table(("the model", "none", "parse", "full", "task", "its policy alone", "task without it"), rows)


def cost_table(cells: Sequence[Cell], heed: float) -> str:
    by = {(each.model, each.heed, each.guard): each for each in cells}
    rows = []
    for name, fault in FAULTS.items():
        at = 1.0 if name == "none" else heed
        found = [by[name, at, guard] for guard in ("none", "full", "task")]
        how = [" / ".join([str(getattr(each, of)) for each in found]) for of in ("turns", "calls", "harm")]
        ends = " / ".join([f"{each.stopped}+{each.out_of_turns}" for each in found])
        rows.append((fault.about, *how, ends))
    head = ("the model", "turns a task", "calls run a task", "harms in all", "stopped + out of turns")
    return table(head, rows)


def replace_part(name: str, text: str) -> None:
    """Replace one part of docs/guard.md."""
    begin, end = f"<!-- part: {name} -->\n", f"<!-- end: {name} -->\n"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before.rstrip()}\n\n{begin}\n{text.strip()}\n\n{end}{after}", "utf-8")


def save(path: Path, cells: Sequence[msgspec.Struct], command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Json] = [{"command": command}, *[msgspec.to_builtins(each) for each in cells]]
    path.write_text("".join([json.dumps(line) + "\n" for line in lines]), "utf-8")


def part(cells: Sequence[Cell]) -> str:
    """Return the tables of docs/guard.md.

    A model that heeds no feedback completes the same tasks as without a guard or none, so only its costs are shown.
    """
    sections = [
        f"Heed {heed:g}: completed tasks, with Wilson's interval in percent.\n\n{completed_table(cells, heed)}"
        for heed in HEEDS[:2]
    ]
    costs = [f"Heed {heed:g}, under none / full / task:\n\n{cost_table(cells, heed)}" for heed in (1.0, 0.0)]
    return "\n\n".join([*sections, *costs])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--live", action="store_true", help="measure the small model")
    parser.add_argument("--seconds", type=float, default=540.0, help="time limit for the small model")
    parser.add_argument("--write", action="store_true", help="write docs/guard.md and the cells")
    options = parser.parse_args(arguments)
    if options.live:
        from guard_live import live

        return live(options.seconds, write=options.write)
    cells = list(measure(list(FAULTS), HEEDS))
    print(part(cells))
    if options.write:
        save(FOLDER / "scripted.jsonl", cells, "python evals/guard.py --write")
        replace_part("scripted", part(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
