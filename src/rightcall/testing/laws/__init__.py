"""The laws that every format must keep, as functions that return the violations they find and never raise.

    check_format(Format.from_toml(text))  # [] if the format keeps them all

- cut: the reply does not depend on how the text is divided into chunks, live or not, and no text is lost;
- round trip: a rendered reply is parsed back equal;
- truncation: a prefix of a text has no complete call that the whole text does not have;
- ends: a raw value that contains the format's own closing markers is never parsed as a shorter one;
- opener: an opener of a call outside quoted text leads to an attempt, or to a problem;
- auto: a call that `auto` finds, the named format finds too;
- keys: every key in the text is in the arguments, or named in a repair or a problem;
- swallowing: if one or two markers of several calls are removed or damaged, no call absorbs another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from rightcall.formats.spec import Format
from rightcall.testing.laws.auto_agrees import auto_cases, auto_law
from rightcall.testing.laws.cut import cut_cases, cut_law, events_law, live_law
from rightcall.testing.laws.damage import (
    ends_cases,
    ends_law,
    swallowing_cases,
    swallowing_law,
    truncation_cases,
    truncation_law,
)
from rightcall.testing.laws.lost import nothing_lost_law
from rightcall.testing.laws.openers import opener_cases, opener_law
from rightcall.testing.laws.reading import USUAL, How, Reading, cuttings, read
from rightcall.testing.laws.round_trip import keys_cases, keys_law, round_trip_cases, round_trip_law
from rightcall.testing.laws.samples import TOOLS, Case, Violation, WrittenKey, case_from_line, line
from rightcall.tools.toolset import Toolset

__all__ = [
    "LAWS",
    "Case",
    "How",
    "Law",
    "Reading",
    "Violation",
    "WrittenKey",
    "auto_law",
    "case_from_line",
    "check_case",
    "check_format",
    "cut_law",
    "cuttings",
    "ends_law",
    "events_law",
    "keys_law",
    "line",
    "live_law",
    "nothing_lost_law",
    "opener_law",
    "read",
    "round_trip_law",
    "swallowing_law",
    "truncation_law",
]

_MAX_VIOLATIONS = 20


class Law(NamedTuple):
    """One law. `cases` yields examples for a format, a seed and a count, at most about so many; `judge` tests one of
    them with these tools and options and returns the violations."""

    cases: Callable[[Format, int, int], Iterator[Case]]
    judge: Callable[[Format, Case, Toolset | None, How], list[Violation]]


LAWS: dict[str, Law] = {
    "cut": Law(cut_cases, lambda f, case, tools, how: cut_law(f, case.text, tools=tools, seed=case.seed, how=how)),
    "round trip": Law(
        round_trip_cases,
        lambda f, case, tools, how: round_trip_law(f, case.sent, tools=tools, must_carry=case.must_carry, how=how),
    ),
    "truncation": Law(
        truncation_cases,
        lambda f, case, tools, how: truncation_law(f, case.text, tools=tools, seed=case.seed, how=how),
    ),
    "ends": Law(ends_cases, lambda f, case, tools, how: ends_law(f, case.text, case.value, tools=tools, how=how)),
    "opener": Law(opener_cases, lambda f, case, tools, how: opener_law(f, case.text, tools=tools, how=how)),
    "auto": Law(auto_cases, lambda f, case, tools, how: auto_law(f, case.text, tools=tools, how=how)),
    "keys": Law(keys_cases, lambda f, case, tools, how: keys_law(f, case.text, case.written, tools=tools, how=how)),
    "swallowing": Law(
        swallowing_cases,
        lambda f, case, tools, how: swallowing_law(f, case.text, case.sent, tools=tools, how=how),
    ),
}


def check_case(format: Format, case: Case, *, tools: Toolset | None = TOOLS, how: How = USUAL) -> list[Violation]:
    """Test a case by the law that it names, parsing with these tools and options, and return the violations. Raises
    KeyError for a law that is not in `LAWS`."""
    return LAWS[case.law].judge(format, case, tools, how)


def check_format(format: Format, *, seed: int = 0, samples: int = 60) -> list[Violation]:
    """Test the laws on one format and return the violations; no more examples are tested after the twentieth. Never
    raises.

    - `format`: the format.
    - `seed`: selects the examples.
    - `samples`: the number of examples for each law.
    """
    found: list[Violation] = []
    for case in _interleave_cases(format, seed, samples):
        found += check_case(format, case)
        if len(found) >= _MAX_VIOLATIONS:
            break
    return found


def _interleave_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield up to about `count` examples of each law, alternately, so that a format that breaks one law is tested for
    the others too."""
    for row in zip_longest(*[law.cases(format, seed, count) for law in LAWS.values()]):
        yield from [case for case in row if case is not None]
