"""Damage calls, parse them, count the outcomes; fail if a call runs with other arguments, or fewer are repaired.

python -m damaged [--count N] [--seed N] [--processes N] [--show N] [--only WAY] [--write]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from report import faults, keep_part, tighten

from damaged.count import CHUNK, Outcomes, count_chunk
from damaged.results import RATCHET, figures, text

COUNT = 100_000


def main() -> int:
    options = _options()
    outcomes = Outcomes()
    for done, chunk in enumerate(_chunks(options), 1):
        outcomes.add(chunk)
        print(f"\r{done * CHUNK:,} of {options.count:,}: {len(outcomes.wrong)} wrong", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(text(outcomes))
    print("\n".join(outcomes.wrong[: options.show]))
    if options.only or options.seed != 1 or options.count != COUNT:
        return 1 if outcomes.wrong else 0
    wrong = faults(figures(outcomes), RATCHET)
    if options.write:
        keep_part("damage", text(outcomes))
        tighten(figures(outcomes), RATCHET)
    print("\n".join(wrong) or "no call runs with other arguments, and no fewer calls are repaired than before")
    return 1 if wrong else 0


def _chunks(options: argparse.Namespace) -> Iterator[Outcomes]:
    seeds = range(options.seed, options.seed + -(-options.count // CHUNK))
    with ProcessPoolExecutor(options.processes) as pool:
        yield from pool.map(count_chunk, seeds, [options.only] * len(seeds))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--count", type=int, default=COUNT, help="number of calls; with a number other than the default, only print"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the calls; with a seed other than 1, only print")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="number of calls to print that run with other arguments")
    parser.add_argument("--only", default="", help="only kinds of damage whose names contain this text")
    parser.add_argument("--write", action="store_true", help="write the page and the ratchet")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
