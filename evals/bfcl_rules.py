"""Are our match rules the leaderboard's?    python evals/bfcl_rules.py [--every N]

Every truth of its categories of one turn becomes calls: as it stands, with each other value that it accepts, and
changed in a dozen ways (another type, another spelling, an argument more or less, another order ...). The published
checker, out of the wheel, and `rightcall.evaluation.leaderboard` judge each; they must agree. Leaves with status 1
where they do not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from rightcall.backends.models import cache_folder
from rightcall.evaluation.leaderboard import CATEGORIES, LeaderboardData, are_matches

Json = dict[str, Any]
Calls = list[tuple[str, Json]]


def published(wheel: Path) -> Callable[[list[Json], list[Json], list[Json], str], bool]:
    """The checker of the wheel. What it imports and does not need here, the list of all models, is stood in for."""
    stand_in = ModuleType("bfcl_eval.constants.model_config")
    vars(stand_in)["MODEL_CONFIG_MAPPING"] = defaultdict(lambda: SimpleNamespace(underscore_to_dot=False))
    sys.modules[stand_in.__name__] = stand_in
    sys.path.insert(0, str(wheel))
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def judge(functions: list[Json], made: list[Json], truths: list[Json], category: str) -> bool:
        return bool(ast_checker(functions, made, truths, Language.PYTHON, category, "any")["valid"])

    return judge


def values_of(options: Any) -> list[Any]:
    listed = options if isinstance(options, list) else [options]
    return [plain(option) for option in listed if option != ""]


def plain(value: Any) -> Any:
    """A value as a model writes it: inside objects, too, a truth lists what it accepts."""
    if isinstance(value, dict):
        return {key: values_of(options)[0] for key, options in value.items() if values_of(options)}
    return [plain(each) for each in value] if isinstance(value, list) else value


def first_of(truth: Json) -> tuple[str, Json]:
    ((name, accepted),) = truth.items()
    return name, {key: values_of(options)[0] for key, options in accepted.items() if values_of(options)}


def others(truth: Json) -> Iterator[Json]:
    """The same call with each other value that is accepted."""
    ((_, accepted),) = truth.items()
    _, given = first_of(truth)
    for key, options in accepted.items():
        for value in values_of(options)[1:]:
            yield {**given, key: value}
        if "" in options:
            yield {each: value for each, value in given.items() if each != key}


def changed(value: Any) -> Iterator[Any]:
    """Other values, some of them the same to the rules."""
    yield from ([], {}, None, "", True, 0, 1.5, "something else", [value], {"key": value})
    if isinstance(value, str):
        yield from (value.upper(), f" {value}-", value.replace(" ", "_"), value.replace("'", '"'), value + "x")
    elif isinstance(value, bool):
        yield from (not value, int(value), str(value))
    elif isinstance(value, int | float):
        yield from (float(value), int(value), str(value), value + 1)
    elif isinstance(value, list):
        yield from (value[::-1], value[:-1], [*value, *value[:1]], [str(each) for each in value])
        yield [each.upper() if isinstance(each, str) else each for each in value]
    elif isinstance(value, dict):
        yield from ({**value, "more": 1}, dict(list(value.items())[1:]))
        yield {key: each.upper() if isinstance(each, str) else each for key, each in value.items()}


def answers(truths: list[Json]) -> Iterator[Calls]:
    """What a model may have called."""
    right = [first_of(truth) for truth in truths]
    yield from ([], right, right[::-1], right[:-1], [*right, right[0]], [("another", right[0][1]), *right[1:]])
    for at, truth in enumerate(truths):
        name, given = right[at]
        for arguments in [*others(truth), {**given, "one_more": 1}, {}]:
            yield [*right[:at], (name, arguments), *right[at + 1 :]]
        for key, value in given.items():
            yield [*right[:at], (name, {each: known for each, known in given.items() if each != key}), *right[at + 1 :]]
            for other in changed(value):
                yield [*right[:at], (name, {**given, key: other}), *right[at + 1 :]]


def compared(wheel: Path, every: int) -> tuple[Counter[str], list[str]]:
    data, judge = LeaderboardData(wheel), published(wheel)
    count: Counter[str] = Counter()
    shown: list[str] = []
    for category in [each for each in CATEGORIES if "relevance" not in each]:
        truths = data.truths(category)
        for row in data.rows(f"BFCL_v4_{category}")[::every]:
            for made in answers(truths[row["id"]]):
                ours = are_matches(made, row["function"], truths[row["id"]])
                try:
                    theirs = judge(
                        row["function"], [{name: given} for name, given in made], truths[row["id"]], category
                    )
                except (AttributeError, KeyError, TypeError, IndexError):
                    count["the checker failed"] += 1
                    count["the checker failed, ours says right"] += ours
                    continue
                count[f"{'right' if theirs else 'wrong'} to both" if ours == theirs else "differ"] += 1
                if ours != theirs:
                    shown.append(f"{row['id']}: ours {ours}, theirs {theirs}: {made} {truths[row['id']]}")
    return count, shown


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="look at every Nth case only")
    options = parser.parse_args(arguments)
    wheels = sorted(cache_folder().glob("bfcl_eval-*.whl"))
    if not wheels:
        print("the leaderboard's wheel is not here; `rightcall eval bfcl` says how to get it", file=sys.stderr)
        return 2
    count, shown = compared(wheels[-1], options.every)
    print(*[f"{what}: {number:,}" for what, number in count.most_common()], *shown[:20], sep="\n")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
