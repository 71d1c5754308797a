"""The leaderboard's categories of one turn as cases, judged by its own truths and rules.

Java and JavaScript are left out: there the leaderboard wants every value as source text in a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rightcall.errors import CallerError
from rightcall.evaluation.eval_case import EvalCase, any_call, by_truths
from rightcall.evaluation.leaderboard_data import LeaderboardData, find_leaderboard, leaderboard_tools
from rightcall.types import Json

SUITE = "bfcl"
CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance"),
)


def leaderboard_cases(wanted: Iterable[str] = (), data: LeaderboardData | None = None) -> Iterator[EvalCase]:
    """The cases of these categories, of all unless said; `simple`, `live` and the like name all that have the word.
    Raises `CallerError`, `MissingCases`."""
    chosen = _chosen(wanted)
    data = data or find_leaderboard()
    for category in chosen:
        truths = data.truths(category) if "relevance" not in category else {}
        for row in data.rows(f"BFCL_v4_{category}"):
            yield leaderboard_case(row, truths.get(row["id"], []), category)


def leaderboard_case(row: Json, truths: list[Json], category: str, suite: str = SUITE) -> EvalCase:
    """One row of the leaderboard's, and what is right for it."""
    return EvalCase(
        suite=suite,
        id=str(row["id"]),
        category=category,
        tools=leaderboard_tools(row["function"]),
        messages=tuple(row["question"][0]),
        wanted="any call" if category == "live_relevance" else truths,
        judge=any_call if category == "live_relevance" else by_truths(truths, row["function"]),
    )


def _chosen(wanted: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for word in wanted:
        fitting = [word] if word in CATEGORIES else [name for name in CATEGORIES if word in name.split("_")]
        if not fitting:
            raise CallerError(f"the leaderboard has no category {word!r:.80} here; there are {', '.join(CATEGORIES)}")
        found |= dict.fromkeys(fitting)
    return list(found) or list(CATEGORIES)
