"""Statistical tests: the interval of a rate, and whether two rates differ by more than chance.

interval(9, 10)                   # Wilson, 95 %: (0.596, 0.982)
two_sided(1, 9, 11, 3).p          # are 1 of 10 and 11 of 14 the same rate? 0.0028 (Fisher)
paired(12, 1).p                   # of the same cases 12 got right and 1 wrong: by chance? 0.0034 (McNemar)
holm([0.01, 0.04, 0.03])          # [0.03, 0.06, 0.06]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_Z = 1.959963984540054  # 95 % of a normal distribution is between -z and z
_FEW = 10  # expected cases in a cell, below which a normal distribution is a poor approximation
_TIE = 1e-7  # two tables whose logarithms differ by less are equally likely, as in other implementations


class RateTest(NamedTuple):
    """The p value of a test, and its `name`: "Fisher", "z" or "McNemar"."""

    p: float
    name: str


def interval(part: int, whole: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a rate, given `part` of `whole` cases; 0 to 1 if there are no cases."""
    if whole <= 0:
        return 0.0, 1.0
    rate, square = part / whole, _Z * _Z
    centre = (rate + square / (2 * whole)) / (1 + square / whole)
    half = _Z * math.sqrt(rate * (1 - rate) / whole + square / (4 * whole * whole)) / (1 + square / whole)
    # At the ends the bound is exact; floating-point arithmetic would miss it slightly.
    return 0.0 if part == 0 else max(0.0, centre - half), 1.0 if part == whole else min(1.0, centre + half)


def two_sided(had: int, lacked: int, had_then: int, lacked_then: int) -> RateTest:
    """Return the two-sided p value, and the test, of the hypothesis that two samples have the same rate. `had` of the
    cases of one sample have a property and `lacked` do not; `had_then` and `lacked_then` are those of the other.

    It is Fisher's exact test if a cell is expected to have few cases, otherwise the z test of two proportions. An empty
    sample gives 1.
    """
    rows, columns = (had + lacked, had_then + lacked_then), (had + had_then, lacked + lacked_then)
    total = sum(rows)
    if not all((*rows, *columns)):
        return RateTest(1.0, "Fisher")
    if min(rows) * min(columns) < _FEW * total:
        return RateTest(_fisher(had, rows[0], rows[1], columns[0]), "Fisher")
    pooled = columns[0] / total
    error = math.sqrt(pooled * (1 - pooled) * (1 / rows[0] + 1 / rows[1]))
    z = abs(had / rows[0] - had_then / rows[1]) / error
    return RateTest(math.erfc(z / math.sqrt(2)), "z")


def _fisher(seen: int, first: int, second: int, both: int) -> float:
    """Return the p value of Fisher's exact test: the probability of all tables with the row sums `first` and `second`
    and the column sum `both` that are at most as likely as the one with `seen` in its first cell."""
    low, high = max(0, both - second), min(first, both)
    logs = [0.0]  # relative to the lowest table; summed step by step, so that large counts stay precise
    for at in range(low, high):
        logs.append(logs[-1] + math.log((first - at) * (both - at) / ((at + 1) * (second - both + at + 1))))
    most, own = max(logs), logs[seen - low]
    weights = [(each, math.exp(each - most)) for each in logs]
    as_odd = math.fsum([weight for each, weight in weights if each <= own + _TIE])
    return min(1.0, as_odd / math.fsum([weight for _, weight in weights]))


def holm(chances: Sequence[float]) -> list[float]:
    """Return the p values in their order, corrected for their number by Holm's method.

    With 95 % probability, no corrected value below 0.05 is a false positive.
    """
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, least = [1.0] * len(chances), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, chances[at] * (len(chances) - rank)))
        adjusted[at] = least
    return adjusted


def paired(gained: int, lost: int) -> RateTest:
    """Return the p value of McNemar's test, exact and two-sided: are changes in both directions equally likely? 1
    without changes.

    `gained` cases were wrong and are right now, `lost` cases the reverse.
    """
    of, fewer = gained + lost, min(gained, lost)
    logs = [0.0]  # relative to the first; summed step by step, so that large counts stay precise
    for at in range(fewer):
        logs.append(logs[-1] + math.log((of - at) / (at + 1)))
    most = max(logs)
    tail = math.fsum([math.exp(each - most) for each in logs])
    return RateTest(min(1.0, 2 * math.exp(most + math.log(tail) - of * math.log(2))), "McNemar")
