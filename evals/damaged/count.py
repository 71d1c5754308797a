"""Outcomes of damaged calls, counted by kind of damage and by repair rule."""

from __future__ import annotations

from collections import Counter

from damaged.judge import Verdict, judge_call
from damaged.made import Damaged, texts

CHUNK = 2_000


class Outcomes:
    """Numbers of outcomes. `ways` and `rules` count them by name; `wrong` has each call with other arguments."""

    def __init__(self) -> None:
        self.ways: Counter[tuple[str, str]] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []

    def add(self, other: Outcomes) -> None:
        self.ways += other.ways
        self.rules += other.rules
        self.wrong += other.wrong

    def total(self, *outcomes: str) -> int:
        return sum([number for (_, outcome), number in self.ways.items() if outcome in outcomes or not outcomes])


def count_chunk(seed: int, only: str = "", count: int = CHUNK) -> Outcomes:
    outcomes = Outcomes()
    for each in texts(seed, count):
        if only in each.way:
            _count(each, outcomes)
    return outcomes


def _count(each: Damaged, outcomes: Outcomes) -> None:
    verdict = judge_call(each.text, each.wire, each.truth)
    outcomes.ways[each.way, verdict.outcome] += 1
    if verdict.outcome == "refused":
        _count_guess(each, outcomes)
    for name in {f"{one_repair.rule} ({one_repair.kind})" for one_repair in verdict.repairs}:
        outcomes.rules[name, verdict.outcome] += 1
    if verdict.outcome in ("other", "silent"):
        outcomes.wrong.append(_describe(each, verdict))


def _count_guess(each: Damaged, outcomes: Outcomes) -> None:
    """Count what the repairs by guessing would have given, which `safe` does not do."""
    verdict = judge_call(each.text, each.wire, each.truth, "lenient")
    for name in {f"{one_repair.rule} (guess)" for one_repair in verdict.repairs if one_repair.kind == "guess"}:
        outcomes.rules[name, f"guessed {verdict.outcome}"] += 1


def _describe(each: Damaged, verdict: Verdict) -> str:
    rules = ",".join(sorted({f"{one_repair.rule}/{one_repair.kind}" for one_repair in verdict.repairs}))
    runs = [(call.name, call.arguments) for call in verdict.calls]
    lines = [f"{verdict.outcome}\t{each.way}\t{each.wire.name}\t{rules}", f"  sent  {each.text!r}"]
    lines += [f"  meant {each.truth.name} {each.truth.arguments}", f"  runs  {runs}", f"  {each.truth.parameters}"]
    return "\n".join(lines)
