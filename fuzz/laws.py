"""Check the laws with many examples for each law and format, generated from one seed.    fuzz/laws.py --seed 7

    --examples 300     for each law and format
    --seconds 900      no example is started after this; the number of skipped ones is printed
    --processes 2
    --format hermes    only this format
    --law cut          only this law

Each failure is printed as one line of JSON for a file in `tests/corpus/regressions/`; the exit status is then 1. The
same seed generates the same examples on every machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from multiprocessing import Pool
from typing import NamedTuple

import rightcall
from rightcall.formats import FORMATS
from rightcall.testing.laws import LAWS, check_case, line

SLICES = 5  # rounds for each law and format, so that all have had some examples when the time is over
MOST_LINES = 3  # for one law and format


class Job(NamedTuple):
    law: str
    format: str
    seed: int
    start: int
    stop: int
    deadline: float


class JobResult(NamedTuple):
    job: Job
    checked: int
    skipped: int
    lines: list[str]


def main() -> int:
    options = parse_arguments()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"laws: seed {seed}, {options.examples} examples for each law and format, {options.seconds:g} s", flush=True)
    started = time.monotonic()
    checked, skipped, failed = 0, 0, Counter[tuple[str, str]]()
    with Pool(options.processes) as pool:
        for result in pool.imap_unordered(run, list(jobs(options, seed, time.time() + options.seconds))):
            checked, skipped = checked + result.checked, skipped + result.skipped
            key = (result.job.law, result.job.format)
            for text in result.lines[: max(0, MOST_LINES - failed[key])]:
                print(text, flush=True)
            failed[key] += len(result.lines)
    print(f"{checked} examples in {time.monotonic() - started:.0f} s, {failed.total()} broken, seed {seed}")
    for (law, format), count in sorted(failed.items()):
        if count:
            print(f"  {law}: {format}, {count} times")
    if skipped:
        print(f"{skipped} examples were skipped because the time was over (see --seconds)")
    return 1 if failed.total() else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check the laws with many examples.")
    parser.add_argument("--seed", type=int, help="the same seed generates the same examples")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--format", help="only this format")
    parser.add_argument("--law", choices=list(LAWS), help="only this law")
    return parser.parse_args()


def jobs(options: argparse.Namespace, seed: int, deadline: float) -> Iterator[Job]:
    names = [rightcall.formats.find(options.format).name] if options.format else list(FORMATS)
    edges = [options.examples * i // SLICES for i in range(SLICES + 1)]
    for start, stop in pairwise(edges):
        for law in [options.law] if options.law else LAWS:
            for name in names:
                yield Job(law, name, seed, start, stop, deadline)


def run(job: Job) -> JobResult:
    """Check a slice of the examples of one law for one format. Each slice has its own seed, so none repeats."""
    format, law = FORMATS[job.format], LAWS[job.law]
    checked, lines = 0, list[str]()
    for case in islice(law.cases(format, job.seed + job.start, job.stop - job.start), job.stop - job.start):
        if time.time() > job.deadline:
            break
        checked += 1
        violations = check_case(format, case)
        if violations:
            what = f"{violations[0].law}: {violations[0].what}"[:300]
            lines.append(line(case, job.format, why=f"seed {job.seed}", what=what, tools="laws"))
    return JobResult(job, checked, 0 if time.time() <= job.deadline else job.stop - job.start - checked, lines)


if __name__ == "__main__":
    sys.exit(main())
