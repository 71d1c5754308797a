"""Compare the match rules of rightcall with those of the leaderboard.    python evals/bfcl_rules.py [--every N]

Every truth of the single-turn categories becomes a set of calls: unchanged, with each other value that the truth
accepts, and changed in a dozen ways (another type, another spelling, an extra or a missing argument, another order,
and so on). The checker in the published wheel and `rightcall.evaluation.leaderboard` decide about each of them. The
exit status is 1 when they disagree.
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


def import_checker(wheel: Path) -> Callable[[list[Json], list[Json], list[Json], str], bool]:
    """Import the checker of the wheel. The list of all models, which it imports and does not need here, is a stub."""
    stub_module = ModuleType("bfcl_eval.constants.model_config")
    vars(stub_module)["MODEL_CONFIG_MAPPING"] = defaultdict(lambda: SimpleNamespace(underscore_to_dot=False))
    sys.modules[stub_module.__name__] = stub_module
    sys.path.insert(0, str(wheel))
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def matches(functions: list[Json], calls: list[Json], truths: list[Json], category: str) -> bool:
        return bool(ast_checker(functions, calls, truths, Language.PYTHON, category, "any")["valid"])

    return matches


def accepted_values(options: Any) -> list[Any]:
    listed_options = options if isinstance(options, list) else [options]
    return [as_written(option) for option in listed_options if option != ""]


def as_written(value: Any) -> Any:
    """Return a value as a model writes it: a truth lists the accepted values inside objects, too."""
    if isinstance(value, dict):
        return {key: accepted_values(options)[0] for key, options in value.items() if accepted_values(options)}
    return [as_written(each) for each in value] if isinstance(value, list) else value


def first_accepted(truth: Json) -> tuple[str, Json]:
    ((name, accepted),) = truth.items()
    return name, {key: accepted_values(options)[0] for key, options in accepted.items() if accepted_values(options)}


def accepted_alternatives(truth: Json) -> Iterator[Json]:
    """Yield the same call with each other accepted value."""
    ((_, accepted),) = truth.items()
    _, arguments = first_accepted(truth)
    for key, options in accepted.items():
        for value in accepted_values(options)[1:]:
            yield {**arguments, key: value}
        if "" in options:
            yield {each: value for each, value in arguments.items() if each != key}


def changed_values(value: Any) -> Iterator[Any]:
    """Yield other values; the rules treat some of them as equal."""
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


def possible_answers(truths: list[Json]) -> Iterator[Calls]:
    """Yield calls that a model may have made."""
    right = [first_accepted(truth) for truth in truths]
    yield from ([], right, right[::-1], right[:-1], [*right, right[0]], [("another", right[0][1]), *right[1:]])
    for at, truth in enumerate(truths):
        name, arguments = right[at]
        for other_arguments in [*accepted_alternatives(truth), {**arguments, "one_more": 1}, {}]:
            yield [*right[:at], (name, other_arguments), *right[at + 1 :]]
        for key, value in arguments.items():
            yield [
                *right[:at],
                (name, {each: other for each, other in arguments.items() if each != key}),
                *right[at + 1 :],
            ]
            for other in changed_values(value):
                yield [*right[:at], (name, {**arguments, key: other}), *right[at + 1 :]]


def compare_rules(wheel: Path, every: int) -> tuple[Counter[str], list[str]]:
    data, published_matches = LeaderboardData(wheel), import_checker(wheel)
    count: Counter[str] = Counter()
    differences: list[str] = []
    for category in [each for each in CATEGORIES if "relevance" not in each]:
        truths = data.truths(category)
        for row in data.rows(f"BFCL_v4_{category}")[::every]:
            for calls in possible_answers(truths[row["id"]]):
                ours = are_matches(calls, row["function"], truths[row["id"]])
                try:
                    theirs = published_matches(
                        row["function"], [{name: arguments} for name, arguments in calls], truths[row["id"]], category
                    )
                except (AttributeError, KeyError, TypeError, IndexError):
                    count["the checker failed"] += 1
                    count["the checker failed, ours says right"] += ours
                    continue
                count[f"{'right' if theirs else 'wrong'} to both" if ours == theirs else "differ"] += 1
                if ours != theirs:
                    differences.append(f"{row['id']}: ours {ours}, theirs {theirs}: {calls} {truths[row['id']]}")
    return count, differences


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="compare only every Nth case")
    options = parser.parse_args(arguments)
    wheels = sorted(cache_folder().glob("bfcl_eval-*.whl"))
    if not wheels:
        print("the leaderboard's wheel is missing: `rightcall eval bfcl` prints how to download it", file=sys.stderr)
        return 2
    count, differences = compare_rules(wheels[-1], options.every)
    print(*[f"{what}: {number:,}" for what, number in count.most_common()], *differences[:20], sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
