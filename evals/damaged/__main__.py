"""Damages calls, reads them, counts what became of them; fails if one runs with other arguments, or less is mended.

python -m damaged [--count N] [--seed N] [--processes N] [--show N] [--only WAY] [--write]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from report import faults, keep_part, tighten

from damaged.count import CHUNK, Counted, count_chunk
from damaged.results import RATCHET, figures, text

COUNT = 100_000


def main() -> int:
    options = _options()
    counted = Counted()
    for done, chunk in enumerate(_chunks(options), 1):
        counted.add(chunk)
        print(f"\r{done * CHUNK:,} of {options.count:,}: {len(counted.wrong)} wrong", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(text(counted))
    print("\n".join(counted.wrong[: options.show]))
    if options.only or options.seed != 1 or options.count != COUNT:
        return 1 if counted.wrong else 0
    wrong = faults(figures(counted), RATCHET)
    if options.write:
        keep_part("damage", text(counted))
        tighten(figures(counted), RATCHET)
    print("\n".join(wrong) or "nothing runs with other arguments, and no less is mended than before")
    return 1 if wrong else 0


def _chunks(options: argparse.Namespace) -> Iterator[Counted]:
    seeds = range(options.seed, options.seed + -(-options.count // CHUNK))
    with ProcessPoolExecutor(options.processes) as pool:
        yield from pool.map(count_chunk, seeds, [options.only] * len(seeds))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="so many calls; another number than usual only prints")
    parser.add_argument("--seed", type=int, default=1, help="other calls; these only print too")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="so many of those that run with other arguments")
    parser.add_argument("--only", default="", help="only ways with this in their name")
    parser.add_argument("--write", action="store_true", help="write the page and the ratchet")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
