"""The laws that every format must keep, as plain functions: each gives the violations it found and never raises.

    check_format(Format.from_toml(text))  # [] when the format keeps them all

- cut: what is read does not depend on how the text arrives, live or not, and nothing of the text is lost;
- round trip: what was rendered reads back equal;
- truncation: no beginning of a text holds a complete call that the whole text does not have;
- ends: a raw value that holds the format's own closers is never taken for a shorter one;
- opener: where a call's opener stands outside shown text there is an attempt, or a problem;
- auto: what `auto` takes for a call, the named format takes too;
- keys: every key that was written is in the arguments, or named in a repair or a problem;
- swallowing: take one or two markers, or characters of them, out of k calls, and no call takes in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from rightcall.formats.spec import Format
from rightcall.testing.laws import ambiguous_ends, auto_agrees, cut, keys, openers, round_trip, swallowing, truncation
from rightcall.testing.laws.ambiguous_ends import ends_law
from rightcall.testing.laws.auto_agrees import auto_law
from rightcall.testing.laws.case import Case, Violation, Written, from_line, line
from rightcall.testing.laws.cut import cut_law, live_law
from rightcall.testing.laws.fold_of_events import events_law
from rightcall.testing.laws.keys import keys_law
from rightcall.testing.laws.lost import nothing_lost_law
from rightcall.testing.laws.openers import opener_law
from rightcall.testing.laws.reading import USUAL, How, Reading, cuttings, read
from rightcall.testing.laws.round_trip import round_trip_law
from rightcall.testing.laws.samples import TOOLS
from rightcall.testing.laws.swallowing import swallowing_law
from rightcall.testing.laws.truncation import truncation_law
from rightcall.tools.toolset import Toolset

__all__ = [
    "LAWS",
    "Case",
    "How",
    "Law",
    "Reading",
    "Violation",
    "Written",
    "auto_law",
    "check_format",
    "cut_law",
    "cuttings",
    "ends_law",
    "events_law",
    "from_line",
    "judge",
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

_ENOUGH = 20  # violations; more say nothing new


class Law(NamedTuple):
    """One law that every format keeps. `cases` makes so many examples for a format from a seed; `judge` tries one of
    them, against these tools and under these options."""

    cases: Callable[[Format, int, int], Iterator[Case]]
    judge: Callable[[Format, Case, Toolset | None, How], list[Violation]]


LAWS: dict[str, Law] = {
    "cut": Law(cut.cases, cut.judge),
    "round trip": Law(round_trip.cases, round_trip.judge),
    "truncation": Law(truncation.cases, truncation.judge),
    "ends": Law(ambiguous_ends.cases, ambiguous_ends.judge),
    "opener": Law(openers.cases, openers.judge),
    "auto": Law(auto_agrees.cases, auto_agrees.judge),
    "keys": Law(keys.cases, keys.judge),
    "swallowing": Law(swallowing.cases, swallowing.judge),
}


def judge(format: Format, case: Case, *, tools: Toolset | None = TOOLS, how: How = USUAL) -> list[Violation]:
    """What the case's own law says of it."""
    return LAWS[case.law].judge(format, case, tools, how)


def check_format(format: Format, *, seed: int = 0, samples: int = 60) -> list[Violation]:
    """The laws on one format; empty when it keeps them all, and at most about twenty violations. Never raises.

    - `format`: a format of your own.
    - `seed`: which examples; the same give the same.
    - `samples`: how many for each law.
    """
    found: list[Violation] = []
    for case in _in_turn(format, seed, samples):
        found += judge(format, case)
        if len(found) >= _ENOUGH:
            break
    return found


def _in_turn(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Examples of every law in turn, so that a format that breaks one law early is tried for the others too."""
    for row in zip_longest(*[law.cases(format, seed, count) for law in LAWS.values()]):
        yield from [case for case in row if case is not None]
