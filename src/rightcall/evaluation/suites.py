"""Where cases come from, by name.

find_cases(["questions", "bfcl:simple_python", "tasks:clinic", "mine.jsonl"], limit=50)
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import msgspec

from rightcall.errors import CallerError
from rightcall.evaluation.eval_case import EvalCase
from rightcall.evaluation.leaderboard_cases import leaderboard_cases
from rightcall.evaluation.own_cases import own_cases
from rightcall.evaluation.question_cases import question_cases
from rightcall.evaluation.scenario_cases import domain_cases, task_cases


class Suite(msgspec.Struct, frozen=True):
    """A source of cases: what it is `about`, how many answers a case may take (`max_turns`), and who finds those of
    some parts, with so many examples."""

    about: str
    max_turns: int
    find: Callable[[Sequence[str], int], Iterable[EvalCase]]


def _questions(parts: Sequence[str], examples: int) -> Iterable[EvalCase]:
    return [case for case in question_cases(examples) if not parts or case.category in parts]


def _leaderboard(parts: Sequence[str], examples: int) -> Iterable[EvalCase]:
    return leaderboard_cases(parts)


SUITES: dict[str, Suite] = {
    "questions": Suite("240 questions that one call of 20 tools answers", 3, _questions),
    "bfcl": Suite("the Berkeley leaderboard's categories of one turn", 3, _leaderboard),
    "domains": Suite("scenarios over stub tools, as `rightcall capture` has them", 6, domain_cases),
    "tasks": Suite("52 tasks of several steps over stub tools", 16, task_cases),
}
OWN_TURNS = 3


def max_turns(case: EvalCase) -> int:
    """How many answers a case may take unless somebody says otherwise."""
    return SUITES[case.suite].max_turns if case.suite in SUITES else OWN_TURNS


def find_cases(words: Iterable[str], *, limit: int | None = None, examples: int = 0) -> list[EvalCase]:
    """The cases of these suites, each once; of each suite at most `limit`, taken from its categories in turn. Raises
    `CallerError`, `FileFailed`."""
    found: dict[str, EvalCase] = {}
    for word in words:
        for case in islice(_in_turn(_found(word, examples)), limit):
            if found.setdefault(case.key, case).digest != case.digest:
                raise CallerError(f"two cases are called {case.key!r:.120} and are not the same; give each its own id")
    if not found:
        raise CallerError("there are no cases; name a suite or a file of rows")
    return list(_in_turn(found.values()))


def _found(word: str, examples: int) -> Iterable[EvalCase]:
    name, _, parts = word.partition(":")
    if name in SUITES:
        return SUITES[name].find([part for part in parts.split(",") if part], examples)
    if word.endswith(".jsonl"):
        return own_cases(Path(word))
    near = difflib.get_close_matches(name, SUITES, 1, 0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SUITES)}, or give a .jsonl file"
    raise CallerError(f"no suite {name!r:.80}; {hint}")


def _in_turn(cases: Iterable[EvalCase]) -> Iterator[EvalCase]:
    """One of each category, then the next of each: whoever stops early has seen something of all."""
    groups: dict[tuple[str, str], list[EvalCase]] = {}
    for case in cases:
        groups.setdefault((case.suite, case.category), []).append(case)
    for row in zip_longest(*groups.values()):
        yield from [case for case in row if case is not None]
