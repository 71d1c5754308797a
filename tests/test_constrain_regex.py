"""Number ranges and patterns as regular expressions, compared with Python's arithmetic and `re`."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rightcall.constrain.algebra import NEVER, Node, chars, inverse, lengths, limit_length, minus
from rightcall.constrain.numbers import any_integer, any_number, integers, numbers
from rightcall.constrain.patterns import Irregular, escape_in_json, read_pattern
from rightcall.constrain.regex import regex_text

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch


def matches(node: Node, text: str) -> bool:
    return node != NEVER and re.fullmatch(regex_text(node), text) is not None


whole = st.integers(-12000, 12000)
ends = st.one_of(st.none(), whole)


@given(low=ends, high=ends, value=whole)
@example(low=0, high=0, value=0)
@example(low=-1, high=1, value=0)
@example(low=99, high=1000, value=100)
def test_an_integer_range_matches_exactly_its_integers(low: int | None, high: int | None, value: int) -> None:
    assume(low is not None or high is not None)
    inside = (low is None or low <= value) and (high is None or value <= high)
    node = integers(low, high)
    assert matches(node, str(value)) is inside
    assert not matches(node, "0" + str(abs(value) + 1)) and not matches(node, str(value) + ".5")


decimals = st.decimals(-50, 50, places=2)


@given(
    low=st.one_of(st.none(), decimals),
    high=st.one_of(st.none(), decimals),
    opens=st.tuples(st.booleans(), st.booleans()),
    value=st.decimals(-60, 60, places=3),
)
@example(low=Decimal("0"), high=Decimal("1"), opens=(True, True), value=Decimal("0.000"))
@example(low=Decimal("0.25"), high=Decimal("0.25"), opens=(False, False), value=Decimal("0.250"))
@example(low=Decimal("-0.5"), high=Decimal("0.5"), opens=(True, False), value=Decimal("-0.500"))
def test_a_number_range_matches_exactly_its_numbers(
    low: Decimal | None, high: Decimal | None, opens: tuple[bool, bool], value: Decimal
) -> None:
    assume(low is not None or high is not None)
    node = numbers(low, high, *opens)
    for number in {value, low if low is not None else value, high if high is not None else value}:
        above = low is None or (number > low if opens[0] else number >= low)
        below = high is None or (number < high if opens[1] else number <= high)
        for text in {f"{number:f}", f"{number.normalize():f}", str(float(number))}:
            if "e" not in text:
                assert matches(node, text) is (above and below), text


@given(
    low=st.one_of(st.none(), st.floats(-1e30, 1e30)),
    high=st.one_of(st.none(), st.floats(-1e30, 1e30)),
    opens=st.tuples(st.booleans(), st.booleans()),
    value=st.floats(-1e30, 1e30),
    factor=st.sampled_from([1, 1.1, 0.9, 0.999, 10, 0.1, -1]),
)
@example(low=-1.5e-5, high=None, opens=(False, False), value=1.0, factor=1)
@example(low=0.0, high=5e-7, opens=(True, False), value=5e-8, factor=1)
@example(low=2e-7, high=5e-7, opens=(True, True), value=3e-7, factor=1)
@example(low=None, high=2e22, opens=(False, True), value=1e300, factor=1)
@example(low=3e20, high=None, opens=(True, False), value=4e20, factor=1)
def test_a_number_range_matches_exactly_its_numbers_with_an_exponent(
    low: float | None, high: float | None, opens: tuple[bool, bool], value: float, factor: float
) -> None:
    assume((low is not None or high is not None) and (low is None or high is None or low < high))
    below, above = (None if end is None else Decimal(repr(end)) for end in (low, high))
    node = numbers(below, above, *opens)
    for near in (value, low or value, high or value):
        text = json.dumps(near * factor)
        number = Decimal(text)
        is_above = below is None or (number > below if opens[0] else number >= below)
        is_below = above is None or (number < above if opens[1] else number <= above)
        if "e" in text:
            assert matches(node, text) is (is_above and is_below), text
            assert matches(node, text.replace("e-0", "e-")) is (is_above and is_below), text


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@example(value=5e-324)
@example(value=1.7976931348623157e308)
def test_every_number_written_by_json_matches_the_number_grammar(value: float) -> None:
    text = json.dumps(value)
    assert matches(any_number(), text)
    if value >= 0:
        assert matches(numbers(Decimal(0), None, False, False), text)


@given(value=st.from_regex(regex_text(any_number()), fullmatch=True))
def test_every_match_of_the_number_grammar_is_finite_json(value: str) -> None:
    assert value.isascii()
    assert json.loads(value) not in (float("inf"), float("-inf"))


@given(value=st.integers())
def test_every_integer_matches_the_integer_grammar(value: int) -> None:
    assert matches(any_integer(), str(value)) and NUMBER(str(value))


PATTERNS = [
    "^[a-z]+$",
    "^abc",
    "abc$",
    "b",
    "^(a|bc)*d?$",
    r"^\d{3}-\d{4}$",
    r"^\w+@\w+\.com$",
    "^a|b$",
    "^$",
    r"^\s*x\S$",
    "^[^a-c]$",
    r"^a{2,}$",
    r"^(?:a(?<n>b)c){1,2}$",
    r"^\u0041\x42\.\/$",
    "^.{1,3}$",
    "^[a-]$",
    "^[-a]$",
    r"^[\d\-_]+$",
    "^a+?b*?$",
    r"^[\]\\]$",
    "^{$",
    "^}]$",
    "^a{٢}$",
    "^{a{2}}$",
    "^(a{2}){2}{a}$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.one_of(st.text("abcdx123-@.com{}\\]ABZ/ \n,2", max_size=8), st.text(max_size=4)))
def test_a_pattern_grammar_matches_what_the_pattern_matches(pattern: str, text: str) -> None:
    node = read_pattern(pattern)
    found = re.search(pattern.replace("(?<n>", "(?P<n>").replace("$", r"\Z"), text, re.ASCII) is not None
    is_match = matches(node, text)
    assert is_match is found or (found and not is_match and re.search(r"[\r\u2028\u2029]", text) is not None)
    low, high = lengths(node)
    assert not is_match or (low <= len(text) and (high is None or len(text) <= high))
    assert matches(escape_in_json(node), json.dumps(text, ensure_ascii=False)[1:-1]) is is_match


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?!a)b",
        "(?<=a)b",
        r"(a)\1",
        r"\bword\b",
        r"^\p{L}+$",
        "a$b",
        "x^",
        "(?i)a",
        "a**",
        "^a{2}{3}$",
        "^a*{2}$",
        "^a+?{1,2}$",
        "^(a{2}){3}{4}$",
        "^{2}$",
        "a|{2,}",
        "({2})",
        "^a{ 2 }$",
        "^a{1, 2}$",
        r"^\x٣٣$",
        "(a",
        "a)",
        "[b-a]",
        "[[:alpha:]]",
        "a" * 5000,
        "(a{900}){900}",
        "a++",
        "x{,2}",
        r"\u{110000}",
        r"\ud800",
    ],
)
def test_patterns_outside_the_subset_are_reported_as_irregular(pattern: str) -> None:
    with pytest.raises(Irregular):
        read_pattern(pattern)


IRREGULAR_REASONS = {
    "a" * 2_001: "longer than 2,000 characters",
    "a{900}b{900}c{900}": "longer than 2,000 characters",
    "(a{900}){900}": "longer than 2,000 characters",
    "a" * 4_097: "longer than 4096 characters",
    "a{2,1}": "reverse order",
    "a{1001}": "repeats something more than 1,000 times",
    "[b-a]": "reverse order",
    r"[a-\d]": "a class at the end of a range",
    "a{2}{3}": "not supported in this position",
}


@pytest.mark.parametrize("pattern", IRREGULAR_REASONS, ids=lambda pattern: pattern[:20])
def test_the_reason_why_a_pattern_is_irregular_is_true(pattern: str) -> None:
    with pytest.raises(Irregular, match=IRREGULAR_REASONS[pattern]):
        read_pattern(pattern)


def test_a_length_limit_is_applied_to_the_single_repeat_of_a_pattern() -> None:
    node = limit_length(read_pattern("^[a-z]+$"), 2, 4)
    assert node is not None
    assert [matches(node, "a" * size) for size in (1, 2, 4, 5)] == [False, True, True, False]
    assert limit_length(read_pattern("^[a-z]+-[a-z]+$"), 0, 4) is None
    assert limit_length(read_pattern("^[A-Z]{3}$"), 1, 10) == read_pattern("^[A-Z]{3}$")


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda pair: (min(pair), max(pair))), max_size=4),
    st.integers(0, 400),
)
def test_character_classes_are_sets_of_characters(spans: list[tuple[int, int]], code: int) -> None:
    found = chars(*spans)
    inside = any(low <= code <= high for low, high in spans)
    assert any(low <= code <= high for low, high in found.spans) is inside
    assert any(low <= code <= high for low, high in inverse(found).spans) is not inside
    assert minus(found, found).spans == ()
