"""What became of many damaged calls, counted by way and by repair rule."""

from __future__ import annotations

from collections import Counter

from damaged.judge import Verdict, judge
from damaged.made import Damaged, texts

CHUNK = 2_000


class Counted:
    """`ways` and `rules` count outcomes by name; `wrong` shows each call that runs with other arguments."""

    def __init__(self) -> None:
        self.ways: Counter[tuple[str, str]] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []

    def add(self, other: Counted) -> None:
        self.ways += other.ways
        self.rules += other.rules
        self.wrong += other.wrong

    def total(self, *outcomes: str) -> int:
        return sum([number for (_, outcome), number in self.ways.items() if outcome in outcomes or not outcomes])


def count_chunk(seed: int, only: str = "", count: int = CHUNK) -> Counted:
    counted = Counted()
    for each in texts(seed, count):
        if only in each.way:
            _count(each, counted)
    return counted


def _count(each: Damaged, counted: Counted) -> None:
    verdict = judge(each.text, each.wire, each.truth)
    counted.ways[each.way, verdict.outcome] += 1
    if verdict.outcome == "refused":
        _count_guess(each, counted)
    for name in {f"{made.rule} ({made.kind})" for made in verdict.repairs}:
        counted.rules[name, verdict.outcome] += 1
    if verdict.outcome in ("other", "silent"):
        counted.wrong.append(_shown(each, verdict))


def _count_guess(each: Damaged, counted: Counted) -> None:
    """What the guesses would have been worth that were not made."""
    verdict = judge(each.text, each.wire, each.truth, "lenient")
    for name in {f"{made.rule} (guess)" for made in verdict.repairs if made.kind == "guess"}:
        counted.rules[name, f"guessed {verdict.outcome}"] += 1


def _shown(each: Damaged, verdict: Verdict) -> str:
    rules = ",".join(sorted({f"{made.rule}/{made.kind}" for made in verdict.repairs}))
    runs = [(call.name, call.arguments) for call in verdict.calls]
    lines = [f"{verdict.outcome}\t{each.way}\t{each.wire.name}\t{rules}", f"  sent  {each.text!r}"]
    lines += [f"  meant {each.truth.name} {each.truth.arguments}", f"  runs  {runs}", f"  {each.truth.parameters}"]
    return "\n".join(lines)
