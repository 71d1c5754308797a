"""What got better and what got worse between two logs, after an upgrade for example.

    found = compared(before, after)
    [change for change in found.changes if change.verdict == "worse"]

Compared are all replies together, with every finding; then each model that is in both logs, and each group of a model
that has several. Each rate is tested against the one before (two-sided: Fisher's exact test where numbers are small,
else the z test of two proportions), and the p values are corrected for how many there are (Holm), so that the chance
that anything at all is named better or worse without being so is 5 %. Replies are taken for independent of each other:
a log that asks the same thing a thousand times says less than its numbers.
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
# Is more of it better (1), worse (-1), or neither?
_DIRECTIONS = {"may_run": 1, "as_written": 1, "near": -1, "cut": -1, "leaked": -1, "calling": 0}
# A reply without a call has no format, so a group says nothing of how many replies call.
_OF_GROUPS = [measure for measure in _DIRECTIONS if measure != "calling"]
_Scoped = tuple[str, ReplyGroup, ReplyGroup]


class RateChange(msgspec.Struct, frozen=True):
    """A rate then and now.

    - `scope`: all replies, a model, or a model with its server and format.
    - `measure`: what is counted; with a `name`, one rule or code of it.
    - `before`, `after`: the shares.
    - `p`: corrected for the number of comparisons; `test` says how it was found.
    - `verdict`: "better" or "worse", "changed" where neither is meant, "same" where chance explains it.
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


class Comparison(msgspec.Struct, frozen=True):
    """All that was compared, the surest first."""

    changes: tuple[RateChange, ...]

    def of(self, verdict: Verdict) -> tuple[RateChange, ...]:
        return tuple([change for change in self.changes if change.verdict == verdict])


class _Pair(msgspec.Struct, frozen=True):
    scope: str
    measure: str
    name: str
    before: Share
    after: Share


def compared(before: ReplyTally, after: ReplyTally) -> Comparison:
    """Every rate of `after` beside that of `before`."""
    pairs = [pair for pair in _pairs(before, after) if pair.before.whole and pair.after.whole]
    pairs = [pair for pair in pairs if pair.before.part or pair.after.part]
    tests = [two_sided(*_counts(pair.after), *_counts(pair.before)) for pair in pairs]
    chances = holm([test.p for test in tests])
    changes = [
        RateChange(pair.scope, pair.measure, pair.name, pair.before, pair.after, p, test.name, _verdict(pair, p))
        for pair, test, p in zip(pairs, tests, chances, strict=True)
    ]
    return Comparison(tuple(sorted(changes, key=lambda change: (change.p, change.scope != ALL))))


def _counts(share: Share) -> tuple[int, int]:
    return share.part, share.whole - share.part


def _verdict(pair: _Pair, p: float) -> Verdict:
    if p >= LEVEL:
        return "same"
    way = _DIRECTIONS.get(pair.measure, -1) * (1 if pair.after.rate > pair.before.rate else -1)
    return "better" if way > 0 else "worse" if way < 0 else "changed"


def _pairs(before: ReplyTally, after: ReplyTally) -> Iterator[_Pair]:
    then, now = before.total, after.total
    yield from _measured(ALL, then, now)
    named = sorted({*then.found, *now.found})
    for finding in [each for each in named if each.kind != "near"]:  # of which there is but one
        yield _Pair(ALL, finding.kind, finding.name, then.finding_share(finding), now.finding_share(finding))
    for scope, earlier, later in _models(before, after):
        yield from _measured(scope, earlier, later)
    for scope, earlier, later in _groups(before, after):
        yield from _measured(scope, earlier, later, _OF_GROUPS)


def _measured(scope: str, then: ReplyGroup, now: ReplyGroup, measures: Iterable[str] = _DIRECTIONS) -> Iterator[_Pair]:
    for measure in measures:
        yield _Pair(scope, measure, "", then.share(measure), now.share(measure))


def _models(before: ReplyTally, after: ReplyTally) -> Iterator[_Scoped]:
    """The models that are in both logs, unless one is all that there is."""
    then, now = before.models(), after.models()
    for model, group in now.items():
        if model in then and len({*then, *now}) > 1:
            yield model or "(no model named)", then[model], group


def _groups(before: ReplyTally, after: ReplyTally) -> Iterator[_Scoped]:
    """The groups that are in both logs, unless one is all that there is of its model."""
    for key, group in after.groups.items():
        beside = [each for each in {**before.groups, **after.groups} if each.model == key.model]
        if key in before.groups and len(beside) > 1:
            yield spelled(key), before.groups[key], group


def spelled(key: GroupKey) -> str:
    """A group in one line."""
    return " · ".join([name for name in key if name]) or "(not named)"
