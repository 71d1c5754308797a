"""Statistics of an evaluation: the rates of each configuration, what each adds to the one before, and what changed.

Configurations are compared over the same cases: `gained` are right now and were wrong before, `lost` the reverse.
McNemar's test gives the probability of so uneven a split if nothing changed; its p values are corrected for the number
of comparisons (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from rightcall.evaluation.case_run import CONFIGURATIONS
from rightcall.evaluation.eval_case import METRICS, Metric
from rightcall.evaluation.eval_rows import EvalRow
from rightcall.evaluation.reports.reply_tally import Share
from rightcall.evaluation.reports.significance import holm, paired
from rightcall.types import Json

LEVEL = 0.05
StepVerdict = Literal["better", "worse", "same"]


class Spending(msgspec.Struct, frozen=True):
    """The mean cost of a case: answers, tokens in and out, seconds."""

    turns: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float


class Step(msgspec.Struct, frozen=True):
    """A comparison of one metric over the same cases. `scope` names what is compared; `p` is corrected."""

    scope: str
    metric: Metric
    before: Share
    after: Share
    gained: int
    lost: int
    p: float

    @property
    def differs(self) -> bool:
        """Whether the result of any case changed."""
        return bool(self.gained or self.lost)

    @property
    def verdict(self) -> StepVerdict:
        """Whether the rate got better or worse; "same" if the change is not significant."""
        if self.p >= LEVEL or self.gained == self.lost:
            return "same"
        return "better" if self.gained > self.lost else "worse"

    @property
    def points(self) -> float:
        """The difference in percentage points."""
        return 100 * (self.after.rate - self.before.rate)


class EvalTally:
    """Rows by configuration and case. A row with the key of an earlier one replaces it."""

    def __init__(self, rows: Iterable[EvalRow] = ()) -> None:
        self._rows: dict[str, dict[tuple[str, int], EvalRow]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: EvalRow) -> None:
        """Add a row; it replaces one of the same configuration, case and run."""
        self._rows.setdefault(row.configuration, {})[row.case, row.run] = row

    @property
    def rows(self) -> int:
        return sum(map(len, self._rows.values()))

    @property
    def configurations(self) -> list[str]:
        """The configurations that have rows, in their usual order."""
        return [name for name in (*CONFIGURATIONS, *(self._rows.keys() - CONFIGURATIONS.keys())) if name in self._rows]

    @property
    def suites(self) -> list[str]:
        return list(dict.fromkeys([row.suite for row in self._iterate_rows()]))

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that some case measures."""
        return [metric for metric in METRICS if any(metric_of(row, metric) is not None for row in self._iterate_rows())]

    def categories(self, suite: str) -> list[str]:
        return list(dict.fromkeys([row.category for row in self._iterate_rows() if row.suite == suite]))

    def _iterate_rows(self) -> Iterator[EvalRow]:
        """Yield all rows of all configurations."""
        for rows in self._rows.values():
            yield from rows.values()

    def select_rows(self, configuration: str, suite: str = "", category: str = "") -> list[EvalRow]:
        """Return the rows of a configuration, limited to a `suite` and a `category` if given; [] if none fit or the
        configuration is unknown."""
        rows = self._rows.get(configuration, {}).values()
        return [row for row in rows if suite in ("", row.suite) and category in ("", row.category)]

    def share(self, configuration: str, metric: Metric, suite: str = "", category: str = "") -> Share:
        """Return the share of cases with a right result in a configuration, of those that measure the metric; of one
        suite or category if given."""
        results = [metric_of(row, metric) for row in self.select_rows(configuration, suite, category)]
        return Share(results.count(True), len(results) - results.count(None))

    def spending(self, configuration: str, suite: str = "") -> Spending:
        """Return the mean cost of a case in this configuration, of one `suite` if given; zeros without cases."""
        rows = self.select_rows(configuration, suite)
        of = max(1, len(rows))
        return Spending(
            sum([row.turns for row in rows]) / of,
            sum([row.prompt_tokens for row in rows]) / of,
            sum([row.completion_tokens for row in rows]) / of,
            sum([row.seconds for row in rows]) / of,
        )

    def steps(self) -> list[Step]:
        """Return a comparison of each configuration with the one before it, for each metric, if they have cases in
        common; p values are corrected for their number."""
        pairs = [
            _compare(f"{before} → {after}", metric, self._rows[before], self._rows[after])
            for before, after in pairwise(self.configurations)
            for metric in self.metrics
        ]
        return _correct(pairs)

    def against(self, older: EvalTally) -> list[Step]:
        """Return the comparisons with the tally of an `older` run, for each configuration and metric that both have.

        A case whose expected calls have changed is left out.
        """
        both = [name for name in self.configurations if name in older.configurations]
        metrics = [metric for metric in self.metrics if metric in older.metrics]
        return _correct(
            [_compare(name, metric, older._rows[name], self._rows[name]) for name in both for metric in metrics]
        )


def metric_of(row: EvalRow, metric: Metric) -> bool | None:
    """Return the value of a metric in a row; None if its case does not measure the metric."""
    verdict: bool | None = getattr(row.verdict, metric)
    return verdict


def _compare(
    scope: str, metric: Metric, before: dict[tuple[str, int], EvalRow], after: dict[tuple[str, int], EvalRow]
) -> Step | None:
    """Return the comparison of one metric between two sets of rows, over the cases that are in both with the same
    expected calls and measure it; None if there is none. `scope` is its name, and its p value is not corrected."""
    same = [key for key in before if key in after and before[key].wanted == after[key].wanted]
    both = [(metric_of(before[key], metric), metric_of(after[key], metric)) for key in same]
    complete = [pair for pair in both if None not in pair]
    if not complete:
        return None
    then, now = [sum([bool(pair[side]) for pair in complete]) for side in (0, 1)]
    gained, lost = complete.count((False, True)), complete.count((True, False))
    whole = len(complete)
    return Step(scope, metric, Share(then, whole), Share(now, whole), gained, lost, paired(gained, lost).p)


def _correct(steps: Iterable[Step | None]) -> list[Step]:
    """Return the steps without None, with p values corrected for the number of tests. A step in which no case changed
    is not a test and keeps its p value."""
    found = [step for step in steps if step is not None]
    chances = iter(holm([step.p for step in found if step.differs]))
    return [msgspec.structs.replace(step, p=next(chances)) if step.differs else step for step in found]


def tally_json(tally: EvalTally) -> Json:
    """Return an evaluation as JSON data: by configuration, suite and category the number of cases and every rate with
    its interval, the mean cost of each configuration, and the comparisons of each with the one before."""
    return {
        "configurations": {
            name: {**_rates_json(tally, name), "cost": msgspec.to_builtins(tally.spending(name))}
            for name in tally.configurations
        },
        "suites": {
            suite: {name: _rates_json(tally, name, suite) for name in tally.configurations} for suite in tally.suites
        },
        "categories": {
            f"{suite}/{category}": {name: _rates_json(tally, name, suite, category) for name in tally.configurations}
            for suite in tally.suites
            for category in tally.categories(suite)
        },
        "steps": steps_json(tally.steps()),
    }


def _rates_json(tally: EvalTally, name: str, suite: str = "", category: str = "") -> Json:
    """Return the results of the configuration `name`, of one suite or category if given, as JSON data: the number of
    cases, repetitions included, and the share of each metric that some case measures."""
    shares: dict[str, Share] = {metric: tally.share(name, metric, suite, category) for metric in tally.metrics}
    rates = {metric: share_json(share) for metric, share in shares.items() if share.whole}
    return {"cases": len(tally.select_rows(name, suite, category)), **rates}


def share_json(share: Share) -> Json:
    """Return a share as a JSON object: part, whole, rate and 95 % interval. If the whole is 0, the rate is 0 and the
    interval 0 to 1."""
    low, high = share.interval
    return {"part": share.part, "whole": share.whole, "rate": share.rate, "interval": [low, high]}


def steps_json(steps: Sequence[Step]) -> list[Json]:
    """Return a list with a JSON object for each step, the comparison of one metric between two configurations or runs:
    the shares before and after, how many cases were gained and lost, the p value and the verdict."""
    return [
        {
            "scope": step.scope,
            "metric": step.metric,
            "before": share_json(step.before),
            "after": share_json(step.after),
            "gained": step.gained,
            "lost": step.lost,
            "p": step.p,
            "verdict": step.verdict,
        }
        for step in steps
    ]
