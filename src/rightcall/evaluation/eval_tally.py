"""Rows of an evaluation, counted: rates of every configuration, what each adds to the one before, and what changed.

Configurations are compared over the same cases: `gained` are right now and were wrong, `lost` the other way round.
McNemar's test says how likely so uneven a split is if nothing changed; its p values are corrected for their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

import msgspec

from rightcall.evaluation.configurations import CONFIGURATIONS
from rightcall.evaluation.eval_case import METRICS, Metric
from rightcall.evaluation.eval_rows import EvalRow
from rightcall.evaluation.reports.reply_tally import Share
from rightcall.evaluation.reports.significance import holm, paired

LEVEL = 0.05
StepVerdict = Literal["better", "worse", "same"]


class Spending(msgspec.Struct, frozen=True):
    """What a configuration cost in the mean: answers, tokens in and out, and seconds of a case."""

    turns: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float


class Step(msgspec.Struct, frozen=True):
    """One metric of the same cases, before and after: `scope` says in what, `p` is corrected."""

    scope: str
    metric: Metric
    before: Share
    after: Share
    gained: int
    lost: int
    p: float

    @property
    def differs(self) -> bool:
        """Did any case come out otherwise?"""
        return bool(self.gained or self.lost)

    @property
    def verdict(self) -> StepVerdict:
        if self.p >= LEVEL or self.gained == self.lost:
            return "same"
        return "better" if self.gained > self.lost else "worse"

    @property
    def points(self) -> float:
        """The difference in percentage points."""
        return 100 * (self.after.rate - self.before.rate)


class EvalTally:
    """Rows by configuration and case. A row that comes again takes the place of the first."""

    def __init__(self, rows: Iterable[EvalRow] = ()) -> None:
        self._rows: dict[str, dict[tuple[str, int], EvalRow]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: EvalRow) -> None:
        self._rows.setdefault(row.configuration, {})[row.case, row.run] = row

    @property
    def rows(self) -> int:
        return sum(map(len, self._rows.values()))

    @property
    def configurations(self) -> list[str]:
        """Those that have rows, in their usual order."""
        return [name for name in (*CONFIGURATIONS, *(self._rows.keys() - CONFIGURATIONS.keys())) if name in self._rows]

    @property
    def suites(self) -> list[str]:
        return list(dict.fromkeys([row.suite for row in self._all()]))

    @property
    def metrics(self) -> list[Metric]:
        """Those that some case asks for."""
        return [metric for metric in METRICS if any(verdict_of(row, metric) is not None for row in self._all())]

    def categories(self, suite: str) -> list[str]:
        return list(dict.fromkeys([row.category for row in self._all() if row.suite == suite]))

    def _all(self) -> Iterator[EvalRow]:
        for rows in self._rows.values():
            yield from rows.values()

    def of(self, configuration: str, suite: str = "", category: str = "") -> list[EvalRow]:
        """The rows of a configuration, of one suite or category of it if named."""
        rows = self._rows.get(configuration, {}).values()
        return [row for row in rows if suite in ("", row.suite) and category in ("", row.category)]

    def share(self, configuration: str, metric: Metric, suite: str = "", category: str = "") -> Share:
        """How many cases are right, of those that the metric is asked of."""
        judged = [verdict_of(row, metric) for row in self.of(configuration, suite, category)]
        return Share(judged.count(True), len(judged) - judged.count(None))

    def spending(self, configuration: str, suite: str = "") -> Spending:
        rows = self.of(configuration, suite)
        of = max(1, len(rows))
        return Spending(
            sum([row.turns for row in rows]) / of,
            sum([row.prompt_tokens for row in rows]) / of,
            sum([row.completion_tokens for row in rows]) / of,
            sum([row.seconds for row in rows]) / of,
        )

    def steps(self) -> list[Step]:
        """What each configuration changed against the one before."""
        pairs = [
            _compared(f"{before} → {after}", metric, self._rows[before], self._rows[after])
            for before, after in pairwise(self.configurations)
            for metric in self.metrics
        ]
        return _corrected(pairs)

    def against(self, older: EvalTally) -> list[Step]:
        """What changed since the `older` rows, in each configuration that both have. A case that wants something else
        by now is another one."""
        both = [name for name in self.configurations if name in older.configurations]
        metrics = [metric for metric in self.metrics if metric in older.metrics]
        return _corrected(
            [_compared(name, metric, older._rows[name], self._rows[name]) for name in both for metric in metrics]
        )


def verdict_of(row: EvalRow, metric: Metric) -> bool | None:
    verdict: bool | None = getattr(row.verdict, metric)
    return verdict


def _compared(
    scope: str, metric: Metric, before: dict[tuple[str, int], EvalRow], after: dict[tuple[str, int], EvalRow]
) -> Step | None:
    """None where no case is in both, wanting the same."""
    same = [key for key in before if key in after and before[key].wanted == after[key].wanted]
    both = [(verdict_of(before[key], metric), verdict_of(after[key], metric)) for key in same]
    judged = [pair for pair in both if None not in pair]
    if not judged:
        return None
    then, now = [sum([bool(pair[side]) for pair in judged]) for side in (0, 1)]
    gained, lost = judged.count((False, True)), judged.count((True, False))
    whole = len(judged)
    return Step(scope, metric, Share(then, whole), Share(now, whole), gained, lost, paired(gained, lost).p)


def _corrected(steps: Iterable[Step | None]) -> list[Step]:
    """With the p values of those that could have been found to differ corrected for their number: where no case came
    out otherwise there is nothing to test."""
    found = [step for step in steps if step is not None]
    chances = iter(holm([step.p for step in found if step.differs]))
    return [msgspec.structs.replace(step, p=next(chances)) if step.differs else step for step in found]
