"""The laws at depth: so many examples for each law and format, made from one seed.    fuzz/laws.py --seed 7

    --examples 300     for each law and format
    --seconds 900      no example is begun after this; what was left out is said
    --processes 2
    --format hermes    only this format
    --law cut          only this law

Each failure is printed as one line of JSON, ready to stand in `tests/corpus/regressions/`; the exit status is then 1.
The same seed tries the same examples on every machine.
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

SLICES = 5  # each law and format in so many turns, so that all have had some when the time is over
MOST_LINES = 3  # for one law and format


class Job(NamedTuple):
    law: str
    format: str
    seed: int
    start: int
    stop: int
    deadline: float


class Done(NamedTuple):
    job: Job
    tried: int
    left_out: int
    lines: list[str]


def main() -> int:
    asked = arguments()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**9)
    print(f"laws: seed {seed}, {asked.examples} examples for each law and format, {asked.seconds:g} s", flush=True)
    started = time.monotonic()
    tried, left_out, failed = 0, 0, Counter[tuple[str, str]]()
    with Pool(asked.processes) as pool:
        for done in pool.imap_unordered(run, list(jobs(asked, seed, time.time() + asked.seconds))):
            tried, left_out = tried + done.tried, left_out + done.left_out
            key = (done.job.law, done.job.format)
            for text in done.lines[: max(0, MOST_LINES - failed[key])]:
                print(text, flush=True)
            failed[key] += len(done.lines)
    print(f"{tried} examples in {time.monotonic() - started:.0f} s, {failed.total()} broken, seed {seed}")
    for (law, format), count in sorted(failed.items()):
        if count:
            print(f"  {law}: {format}, {count} times")
    if left_out:
        print(f"{left_out} examples were left out: the time was over (--seconds)")
    return 1 if failed.total() else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Tries the laws at depth.")
    parser.add_argument("--seed", type=int, help="the same seed tries the same examples")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--format", help="only this format")
    parser.add_argument("--law", choices=list(LAWS), help="only this law")
    return parser.parse_args()


def jobs(asked: argparse.Namespace, seed: int, deadline: float) -> Iterator[Job]:
    names = [rightcall.formats.find(asked.format).name] if asked.format else list(FORMATS)
    edges = [asked.examples * i // SLICES for i in range(SLICES + 1)]
    for start, stop in pairwise(edges):
        for law in [asked.law] if asked.law else LAWS:
            for name in names:
                yield Job(law, name, seed, start, stop, deadline)


def run(job: Job) -> Done:
    """A slice of the examples of one law for one format. The seed of a slice is its own: none is made twice."""
    format, law = FORMATS[job.format], LAWS[job.law]
    tried, lines = 0, list[str]()
    for case in islice(law.cases(format, job.seed + job.start, job.stop - job.start), job.stop - job.start):
        if time.time() > job.deadline:
            break
        tried += 1
        violations = check_case(format, case)
        if violations:
            what = f"{violations[0].law}: {violations[0].what}"[:300]
            lines.append(line(case, job.format, why=f"seed {job.seed}", what=what, tools="laws"))
    return Done(job, tried, 0 if time.time() <= job.deadline else job.stop - job.start - tried, lines)


if __name__ == "__main__":
    sys.exit(main())
