"""Measure rightcall with the ground truths of a public benchmark.    python evals/bfcl.py [--every N] [--write]

The cases, tools and ground truths are those of the Berkeley Function Calling Leaderboard. The sections measure whether
a truth passes `check`, whether it survives a round trip through every format, whether a missing name is inferred,
whether damage is repaired, and whether the format is detected. `prose` measures the opposite: whether text without a
call gives no call. The exit status is 1 when a figure misses its target or is worse than in `ratchet.json`.

`--every 10` measures a tenth of the cases and only prints the figures. `--write` writes the page and the ratchet.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bfcl_cases import Case, cases, fetch
from damage import KINDS, PLAIN, Damaged
from detection import measure_detection
from prose import measure_prose
from report import PAGE, Figure, Section, faults, figures_table, page, percent, table, tighten
from same import equal

from rightcall import Call, CannotCarry, Problem, Reply, check, parse, render, repair
from rightcall.evaluation.leaderboard import VERSION, LeaderboardData
from rightcall.formats import FORMATS
from rightcall.repairs.tool_meant import infer_name

HEAD = f"""
## How right rightcall is

Measured on cases and truths of others. The rest of this page is written by

```sh
make bfcl                              # measures, and fails if a figure got worse
.venv/bin/python evals/bfcl.py --write   # the same, and writes this page and evals/ratchet.json
```

The cases are those of the Berkeley Function Calling Leaderboard, taken from the wheel `bfcl-eval` {VERSION}, which is
downloaded without its dependencies and none of whose code is run. Its types become JSON Schema (`dict` is an object,
`float` a number, `tuple` an array, `any` anything; a default may be sent even if it is null or not among the options;
options declared for an array are those of its items).
Of the values that a truth accepts for an argument, the first that the schema allows is taken. Turns that appear in
several sets of conversations count once.
"""


def same_call(got: Call, want: Call) -> bool:
    return got.name == want.name and got.complete and equal(got.arguments, want.arguments)


def has_blocking_problem(reply: Reply) -> bool:
    return any(problem.blocking for problem in reply.problems)


# -- truths against `check` --------------------------------------------------------------------------------------------


def measure_truth(found: Sequence[Case]) -> Section:
    reasons: dict[str, list[str]] = {}
    total = 0
    for case in found:
        for call in case.calls:
            total += 1
            problems = check(call, case.tools)
            if problems:
                reasons.setdefault(classify_mismatch(call, problems[0]), []).append(case.id)
    failed = sum(map(len, reasons.values()))
    rows = [(why, len(ids), ", ".join(dict.fromkeys(ids))) for why, ids in sorted(reasons.items())]
    text = f"{total:,} calls in {len(found):,} cases; {failed} do not fit the tool they are the truth for, because:\n\n"
    text += table(("reason", "calls", "cases"), rows)
    text += "\n\nThe target is for calls. How truths are read matters here: the rules at the top of this page "
    text += "(defaults are "
    text += (
        "allowed, the first value that the schema allows is taken, options of an array are those of its items) were "
    )
    text += "settled after looking at what failed without them, which was over four calls in a hundred."
    figures = (
        Figure("truth passes check", total - failed, total, 0.99),
        Figure("truth passes check: cases with all their calls", len(select_fitting(found)), len(found)),
    )
    return Section("The truth passes `check`", text, figures)


def classify_mismatch(call: Call, problem: Problem) -> str:
    """Return the class of the mismatch between a truth and its tool."""
    value = value_at(call.arguments, problem.path.split("/")[1:])
    if problem.code == "missing":
        return "a required argument is missing"
    if problem.code == "not_allowed":
        return "a value that is not among the declared options"
    if value == "":
        return "an empty string, where a list is declared and required"
    if isinstance(value, str):
        return "the name of a variable or constant, or another string, where the declared type is no string"
    return "another type than declared: a boolean or a number for one of several strings"


def select_fitting(found: Iterable[Case]) -> list[Case]:
    """Return the cases whose calls all pass `check`."""
    return [case for case in found if not any(check(call, case.tools) for call in case.calls)]


# -- round trips through every format ----------------------------------------------------------------------------------


def measure_formats(found: Sequence[Case]) -> Section:
    carried = right = 0
    refused: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name in FORMATS:
        for case in found:
            try:
                text = render(case.calls, format=name, tools=case.tools)
            except CannotCarry as error:
                refused.setdefault(classify_refusal(error, case), Counter())[name] += 1
                continue
            carried += 1
            if is_round_trip(parse(text, format=name, tools=case.tools), case):
                right += 1
            else:
                wrong.append(f"{name}: {case.id}")
    text = f"{len(found):,} cases, each rendered in each of {len(FORMATS)} formats and parsed back.\n\n"
    text += (
        "`render` refuses what a format cannot carry (`CannotCarry`); these are not counted in the first figure:\n\n"
    )
    rows = [(why, by.total(), ", ".join([f"{n} {count}" for n, count in by.items()])) for why, by in refused.items()]
    text += table(("what", "refused", "by"), rows) if rows else "There was none."
    text += "\n\nWrong: " + ", ".join(wrong[:50]) if wrong else ""
    every = len(found) * len(FORMATS)
    figures = (
        Figure("rendered and parsed back", right, carried, 1.0),
        Figure("what a format can carry", carried, every),
    )
    return Section("The truth survives every format", text, figures)


def classify_refusal(error: CannotCarry, case: Case) -> str:
    """Return the class of value that a format cannot carry."""
    steps = error.path.split("/")[2:]  # the call's place, "arguments", and the path inside
    value = value_at(case.calls[int(steps[0])].arguments, steps[2:])
    if isinstance(value, str):
        nested = "inside an array or object" if len(steps) > 3 else "for an argument of no declared type"
        return f"a string that reads as a number or null, {nested}"
    return "an object with a key that cannot be a tag" if isinstance(value, dict) else error.cause


def value_at(value: Any, steps: Sequence[str]) -> Any:
    """Return the value at the steps of a JSON Pointer, or None if there is none."""
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value.get(step) if isinstance(value, dict) else None
    return value


def is_round_trip(reply: Reply, case: Case) -> bool:
    alike = len(reply.attempts) == len(case.calls) and all(map(same_call, reply.attempts, case.calls))
    return alike and not reply.content and not reply.problems and not any(call.repairs for call in reply.calls)


# -- missing names -----------------------------------------------------------------------------------------------------


def measure_names(found: Sequence[Case]) -> Section:
    several = [(case, call) for case in found if len(case.tools) >= 3 for call in case.calls]
    count: Counter[str] = Counter()
    for case, call in several:
        name = infer_name(call.arguments, case.tools)
        count["inferred"] += name is not None
        count["right"] += name == call.name
        reply = parse(render_without_name(call), format="hermes", tools=case.tools)
        if len(reply.calls) == 1 and not has_blocking_problem(reply):
            count["parsed"] += 1
            count["parsed right"] += same_call(reply.calls[0], call)
    text = f"{len(several):,} calls of cases with three or more tools, their names removed. A name is inferred only if "
    text += (
        "exactly one tool fits; else the call keeps its blocking problem. Recall is therefore a matter of how alike "
    )
    text += "the declared tools are."
    figures = (
        Figure("name inferred: precision", count["right"], count["inferred"], 0.995),
        Figure("name inferred: recall", count["right"], len(several)),
        Figure("call without a name, parsed: precision", count["parsed right"], count["parsed"], 0.995),
        Figure("call without a name, parsed: recall", count["parsed right"], len(several)),
    )
    return Section("Names removed", text, figures)


def render_without_name(call: Call) -> str:
    return "<tool_call>" + PLAIN.write({"arguments": call.arguments}) + "</tool_call>"


# -- damage ------------------------------------------------------------------------------------------------------------


class Tally:
    """Outcomes of one kind of damage."""

    def __init__(self) -> None:
        self.skipped = 0
        self.parsed: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.samples: list[str] = []

    def add(self, damaged: Damaged, id: str) -> None:
        verdict = judge_parse(damaged)
        self.parsed[verdict] += 1
        if verdict != "right":
            self.samples.append(f"parse, {verdict}: {id}: {damaged.block}")
        if damaged.sent is not None:
            verdict = judge_repair(damaged.sent, damaged)
            self.repaired[verdict] += 1
            if verdict != "right":
                self.samples.append(f"repair, {verdict}: {id}: {damaged.sent.json}")


def judge_parse(damaged: Damaged) -> str:
    reply = parse(f"<tool_call>\n{damaged.block}\n</tool_call>", format="hermes", tools=damaged.tools)
    if not reply.calls or has_blocking_problem(reply) or check(reply, damaged.tools):
        return "refused"
    return "right" if len(reply.calls) == 1 and same_call(reply.calls[0], damaged.truth) else "differs"


def judge_repair(sent: Call, damaged: Damaged) -> str:
    repaired_call = repair(sent, damaged.tools)
    if check(repaired_call, damaged.tools):
        return "refused"
    return "right" if same_call(repaired_call, damaged.truth) else "differs"


def measure_damage(found: Sequence[Case]) -> Section:
    tallies = {kind: Tally() for kind in KINDS}
    turn = 0
    for case in found:
        for call in case.calls:
            turn += 1
            for kind, make in KINDS.items():
                damaged_calls = list(make(call, case.tools, turn))
                tallies[kind].skipped += not damaged_calls
                for damaged in damaged_calls:
                    tallies[kind].add(damaged, case.id)
    for kind, tally in tallies.items():
        for line in tally.samples[:3]:
            print(f"  {kind}: {line[:300]}", file=sys.stderr)
    text = f"{turn:,} calls, each damaged in twelve ways, policy `safe`. Through `parse` the whole call is damaged and "
    text += "stands in `<tool_call>`; through `repair` only the argument text is. What is not right is refused, with a "
    text += "problem that names it; *differs* is the bad case: it passes `check`, but is not what was meant. The "
    text += "target for "
    text += "that is for all kinds together; the table shows where it comes from.\n\n"
    text += table(("damage", "not applicable", *columns("parse"), *columns("repair")), map(table_row, tallies.items()))
    return Section("Damage repaired", text, damage_figures(tallies))


def columns(function: str) -> tuple[str, str, str]:
    return f"`{function}`: calls", "right", "differs"


def table_row(item: tuple[str, Tally]) -> list[str]:
    kind, tally = item
    cells = [kind, f"{tally.skipped:,}"]
    for outcome_counts in (tally.parsed, tally.repaired):
        of = outcome_counts.total()
        cells += [f"{of:,}", percent(outcome_counts["right"] / of) if of else "", f"{outcome_counts['differs']:,}"]
    return cells


def damage_figures(tallies: dict[str, Tally]) -> tuple[Figure, ...]:
    figures = []
    for attribute in ("parsed", "repaired"):
        outcomes: Counter[str] = sum([getattr(tally, attribute) for tally in tallies.values()], Counter())
        of = outcomes.total()
        figures.append(Figure(f"damage {attribute}: equal to the truth", outcomes["right"], of, 0.95))
        figures.append(Figure(f"damage {attribute}: passes check, differs", outcomes["differs"], of, at_most=0.001))
        for kind, tally in tallies.items():
            outcome_counts: Counter[str] = getattr(tally, attribute)
            if outcome_counts:
                figures.append(Figure(f"{kind}, {attribute}", outcome_counts["right"], outcome_counts.total(), 0.95))
    return tuple(figures)


# -- all sections ------------------------------------------------------------------------------------------------------


def measure(wheel: LeaderboardData, every: int) -> list[Section]:
    found = list(cases(wheel))[::every]
    right = select_fitting(found)
    return [
        measure_truth(found),
        measure_formats(right),
        measure_names(right),
        measure_damage(right),
        measure_detection(right[::5]),
        measure_prose(wheel, every),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure only every Nth case")
    parser.add_argument("--write", action="store_true", help="write docs/results.md and evals/ratchet.json")
    options = parser.parse_args(arguments)
    sections = measure(fetch(), options.every)
    figures = [figure for section in sections for figure in section.figures]
    print(figures_table(figures))
    if options.every > 1:
        print("this is a sample: the page and the ratchet are neither written nor compared")
        return 0
    wrong = faults(figures)
    text = page("# Results", HEAD, sections)
    if options.write:
        PAGE.write_text(text, "utf-8")
        tighten(figures)
    elif not PAGE.exists() or PAGE.read_text("utf-8") != text:
        print(f"docs/{PAGE.name} shows other figures: run this program with --write")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
