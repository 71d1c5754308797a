"""Changes between two logs, for example before and after an upgrade.

    comparison = compare_logs(before, after)
    [change for change in comparison.changes if change.verdict == "worse"]

Compared are all replies together, with every finding; then each model that is in both logs, and each group of a model
that has several. Each rate is tested against the earlier one (two-sided: Fisher's exact test for small numbers, else
the z test of two proportions), and the p values are corrected for their number (Holm), so that the probability of any
false "better" or "worse" is 5 %. Replies are assumed to be independent: a log that repeats one request a thousand times
is weaker evidence than its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from rightcall.evaluation.reports.reply_tally import GroupKey, ReplyGroup, ReplyTally, Share
from rightcall.evaluation.reports.significance import holm, two_sided

LEVEL = 0.05
ALL = "all replies"
Verdict = Literal["better", "worse", "changed", "same"]
# Whether more of it is better (1), worse (-1), or neither.
_DIRECTIONS = {"may_run": 1, "as_written": 1, "near": -1, "cut": -1, "leaked": -1, "calling": 0}
# A reply without a call has no format, so the groups by format cannot show how many replies have calls.
_GROUP_MEASURES = [measure for measure in _DIRECTIONS if measure != "calling"]
_Scoped = tuple[str, ReplyGroup, ReplyGroup]


class RateChange(msgspec.Struct, frozen=True):
    """A rate before and after.

    - `scope`: all replies, a model, or a model with its server and format.
    - `measure`: what is counted; with a `name`, only findings of that name.
    - `before`, `after`: the shares.
    - `p`: corrected for the number of comparisons; `test` names the test.
    - `verdict`: "better" or "worse", "changed" where neither applies, "same" if the change is not significant.
    """

    scope: str
    measure: str
    name: str
    before: Share
    after: Share
    p: float
    test: str
    verdict: Verdict

    @property
    def points(self) -> float:
        """The difference in percentage points."""
        return 100 * (self.after.rate - self.before.rate)


class LogComparison(msgspec.Struct, frozen=True):
    """All changes, the smallest p value first."""

    changes: tuple[RateChange, ...]

    def of(self, verdict: Verdict) -> tuple[RateChange, ...]:
        """Return the changes with this verdict: better, worse, changed or same."""
        return tuple([change for change in self.changes if change.verdict == verdict])


class _Pair(msgspec.Struct, frozen=True):
    scope: str
    measure: str
    name: str
    before: Share
    after: Share


def compare_logs(before: ReplyTally, after: ReplyTally) -> LogComparison:
    """Return the comparison of two logs: a change, with its p value corrected for their number, for every rate that
    both logs measure and that is not 0 in both."""
    pairs = [pair for pair in _pairs(before, after) if pair.before.whole and pair.after.whole]
    pairs = [pair for pair in pairs if pair.before.part or pair.after.part]
    tests = [two_sided(*_counts(pair.after), *_counts(pair.before)) for pair in pairs]
    chances = holm([test.p for test in tests])
    changes = [
        RateChange(pair.scope, pair.measure, pair.name, pair.before, pair.after, p, test.name, _verdict(pair, p))
        for pair, test, p in zip(pairs, tests, chances, strict=True)
    ]
    return LogComparison(tuple(sorted(changes, key=lambda change: (change.p, change.scope != ALL))))


def _counts(share: Share) -> tuple[int, int]:
    return share.part, share.whole - share.part


def _verdict(pair: _Pair, p: float) -> Verdict:
    """Return whether a rate got "better" or "worse"; "changed" if neither direction is better, "same" if `p` is not
    significant."""
    if p >= LEVEL:
        return "same"
    direction = _DIRECTIONS.get(pair.measure, -1) * (1 if pair.after.rate > pair.before.rate else -1)
    return "better" if direction > 0 else "worse" if direction < 0 else "changed"


def _pairs(before: ReplyTally, after: ReplyTally) -> Iterator[_Pair]:
    """Yield the pairs of rates to compare in two logs: those of all replies, of each finding, of models in both logs
    and of groups in both. Left out are rates that are the same as others: of findings of the kind "near", of a model
    that is the only one, and of a group that is the only one of its model."""
    earlier, later = before.total, after.total
    yield from _measure_pairs(ALL, earlier, later)
    for finding in [
        each for each in sorted({*earlier.found, *later.found}) if each.kind != "near"
    ]:  # has one finding only, which the measure counts
        yield _Pair(ALL, finding.kind, finding.name, earlier.finding_share(finding), later.finding_share(finding))
    for scope, earlier, later in _common_models(before, after):
        yield from _measure_pairs(scope, earlier, later)
    for scope, earlier, later in _common_groups(before, after):
        yield from _measure_pairs(scope, earlier, later, _GROUP_MEASURES)


def _measure_pairs(
    scope: str, earlier: ReplyGroup, later: ReplyGroup, measures: Iterable[str] = _DIRECTIONS
) -> Iterator[_Pair]:
    """Yield a pair of rates of two groups for each of these measures; `scope` is what the pairs are named."""
    for measure in measures:
        yield _Pair(scope, measure, "", earlier.share(measure), later.share(measure))


def _common_models(before: ReplyTally, after: ReplyTally) -> Iterator[_Scoped]:
    """Yield name, earlier and later group of each model that is in both logs; nothing if both have only one and the
    same model, whose rates are those of all replies."""
    then, now = before.models(), after.models()
    for model, group in now.items():
        if model in then and len({*then, *now}) > 1:
            yield model or "(no model named)", then[model], group


def _common_groups(before: ReplyTally, after: ReplyTally) -> Iterator[_Scoped]:
    """Yield label, earlier and later group of each group that is in both logs and is not the only one of its model."""
    for key, group in after.groups.items():
        beside = [each for each in {**before.groups, **after.groups} if each.model == key.model]
        if key in before.groups and len(beside) > 1:
            yield group_label(key), before.groups[key], group


def group_label(key: GroupKey) -> str:
    """Return the names of a group in one line."""
    return " · ".join([name for name in key if name]) or "(not named)"
