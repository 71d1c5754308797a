"""Statistics of reports, compared with published values and checked by their invariants."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.evaluation.reports.significance import holm, interval, paired, two_sided

COUNTS = st.integers(0, 400)


@pytest.mark.parametrize(
    "part, whole, low, high",
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_the_wilson_interval(part: int, whole: int, low: float, high: float) -> None:
    assert interval(part, whole) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10**9), st.data())
def test_the_interval_contains_the_rate_and_is_symmetric(whole: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole))
    low, high = interval(part, whole)
    assert 0 <= low <= part / whole <= high <= 1
    assert interval(whole - part, whole) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    wider = interval(part * 4, whole * 4)
    assert wider[1] - wider[0] <= high - low


def test_the_interval_of_no_cases_is_the_whole_range() -> None:
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    "table, p",
    [
        ((1, 9, 11, 3), 0.002759456),  # the example of most textbooks, by R's fisher.test
        ((8, 2, 1, 5), 0.03496503),
        ((3, 1, 1, 3), 0.4857143),  # Fisher's lady tasting tea
        ((10, 2, 3, 15), 0.0005367241),
        ((0, 5, 5, 0), 2 / math.comb(10, 5)),
    ],
)
def test_small_counts_use_the_exact_test(table: tuple[int, int, int, int], p: float) -> None:
    found = two_sided(*table)
    assert found.name == "Fisher"
    assert found.p == pytest.approx(p, rel=1e-6)


def test_large_counts_use_the_normal_distribution() -> None:
    found = two_sided(120, 880, 90, 910)
    squared = 2_000 * (120 * 910 - 880 * 90) ** 2 / (1_000 * 1_000 * 210 * 1_790)  # Pearson's, which is z squared
    assert found.name == "z"
    assert found.p == pytest.approx(math.erfc(math.sqrt(squared / 2)), rel=1e-9)
    assert found.p == pytest.approx(0.02865, abs=5e-6)  # prop.test(c(120, 90), c(1000, 1000), correct=FALSE)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_test_is_independent_of_the_order_of_groups_and_outcomes(a: int, b: int, c: int, d: int) -> None:
    p = two_sided(a, b, c, d).p
    assert 0 <= p <= 1
    assert two_sided(c, d, a, b).p == pytest.approx(p, rel=1e-6, abs=1e-12)
    assert two_sided(b, a, d, c).p == pytest.approx(p, rel=1e-6, abs=1e-12)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_the_exact_test_sums_the_tables_that_are_not_more_likely(a: int, b: int, c: int, d: int) -> None:
    found = two_sided(a, b, c, d)
    if found.name != "Fisher":
        return
    both, total = a + c, a + b + c + d
    ways = [math.comb(a + b, x) * math.comb(c + d, both - x) for x in range(both + 1)]
    assert found.p == pytest.approx(sum(way for way in ways if way <= ways[a]) / math.comb(total, both), rel=1e-6)


def test_rare_events_among_many_cases_are_tested_in_bounded_time() -> None:
    assert two_sided(9, 10**9, 1, 10**9).p == pytest.approx(22 / 1024, rel=1e-3)  # equals ten coin tosses


def test_holm_adjustment_matches_the_reference() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_the_order_and_never_exceeds_bonferroni(chances: list[float]) -> None:
    adjusted = holm(chances)
    for p, adjusted_p in zip(chances, adjusted, strict=True):
        assert p <= adjusted_p <= min(1.0, p * len(chances)) + 1e-15
    ordered = [adjusted_p for _, adjusted_p in sorted(zip(chances, adjusted, strict=True))]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize(
    "gained, lost, p",
    [
        # two-sided sign tests: 2 * sum of binomials of one half
        (0, 0, 1.0),
        (1, 0, 1.0),
        (6, 0, 0.03125),
        (12, 1, 0.00341796875),
        (10, 2, 0.03857421875),
        (5, 5, 1.0),
    ],
)
def test_mcnemars_test_is_exact(gained: int, lost: int, p: float) -> None:
    assert paired(gained, lost).p == pytest.approx(p) == paired(lost, gained).p


@given(COUNTS, COUNTS)
def test_mcnemars_p_value_falls_with_more_gains(gained: int, lost: int) -> None:
    p = paired(gained, lost).p
    assert 0 <= p <= 1
    if gained >= lost:
        assert paired(gained + 1, lost).p <= p + 1e-12


def test_mcnemars_test_handles_large_counts() -> None:
    assert paired(60_000, 50_000).p < 1e-100 or paired(60_000, 50_000).p == 0.0
    assert paired(50_000, 50_000).p == 1.0
