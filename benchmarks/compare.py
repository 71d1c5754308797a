"""Compare the speed of this tree with that of another commit: `make bench BASE=COMMIT`.

    python benchmarks/compare.py COMMIT [--rounds 9] [--only stream]

Both trees run in turn, each with its own benchmark scripts, in every round. The tables that the scripts print are read,
and the ratio of a round is the geometric mean over the rows that both tables have. For each benchmark the mean ratio
over the rounds and its 95 % interval (Student's t) are printed, with the median over the rows: below 1, this tree is
faster. The exit status is 1 if the upper end of an interval is above 1.05.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from measure import table, verdict

ROOT = Path(__file__).resolve().parent.parent
MOST = 1.05
# Quantiles of Student's t distribution at 97.5 %, for 1, 2, 3 ... degrees of freedom.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093,
)  # fmt: skip


class Benchmark(NamedTuple):
    """A script, the columns of its tables that hold times or rates, and the arguments it is run with."""

    columns: tuple[str, ...]
    rates: tuple[str, ...] = ()  # columns in which more is better
    arguments: tuple[str, ...] = ()
    rows: str = ""  # a pattern of the rows that count; all rows if empty


BENCHMARKS = {
    "stream": Benchmark(("CPU s",)),
    "whole": Benchmark(("us",)),
    "rows": Benchmark(("s",), ("a second and core",), ("100_000",), "parse"),
    "grammar": Benchmark(("ms",), rows="tools to|the Lark"),
    "read": Benchmark(("read with a call, us",)),
}


def run_benchmark(tree: Path, name: str) -> dict[str, float]:
    """Run one script of a tree and return its times by row; a rate is returned as its inverse."""
    benchmark = BENCHMARKS[name]
    command = [sys.executable, str(tree / "benchmarks" / f"bench_{name}.py"), *benchmark.arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True)
    times = parse_tables(done.stdout, benchmark)
    if not times:  # a missed target is exit status 1 too, so the status alone does not show a failure
        sys.exit(f"compare: bench_{name}.py printed no table in {tree}:\n{done.stderr}")
    return times


def parse_tables(output: str, benchmark: Benchmark) -> dict[str, float]:
    """Return the figure of each row in the tables of this output that have one of the benchmark's columns."""
    times: dict[str, float] = {}
    for block in output.split("\n\n"):
        lines = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
        header: list[str] = []
        for cells in lines:
            found = [column for column in (*benchmark.columns, *benchmark.rates) if column in cells[1:]]
            if found:
                header, column = cells, found[0]
            elif header and len(cells) > header.index(column) and re.search(benchmark.rows, cells[0]):
                figure = float(cells[header.index(column)].replace(",", ""))
                # Rows of one name differ in the second cell (text and its size).
                name = cells[0] if cells[0] not in times else f"{cells[0]} {cells[1]}"
                times[name] = 1 / figure if column in benchmark.rates else figure
    return times


def extract_commit(commit: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if archive.returncode:
        sys.exit(f"compare: git archive {commit}: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the mean of the ratios of all rounds and the ends of its 95 % interval."""
    mean = statistics.fmean(ratios)
    if len(ratios) < 2:
        return mean, -math.inf, math.inf
    quantile = STUDENT[min(len(ratios) - 1, len(STUDENT)) - 1]
    half = quantile * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return mean, mean - half, mean + half


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="run this benchmark only; repeatable")
    options = parser.parse_args()
    names = options.only or list(BENCHMARKS)
    pairs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        extract_commit(options.base, base)
        for count in range(options.rounds):
            for name in names:
                trees = (ROOT, base) if count % 2 else (base, ROOT)  # neither tree is always the first
                times = {tree: run_benchmark(tree, name) for tree in trees}
                shared = times[ROOT].keys() & times[base].keys()
                pairs[name].append({row: times[ROOT][row] / times[base][row] for row in sorted(shared)})
            print(f"round {count + 1} of {options.rounds}", file=sys.stderr, flush=True)
        print("the first parse of a process with format='auto':", flush=True)
        subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / "bench_first_parse.py"), str(base / "src")], check=True
        )
        print()
    lines, missed = [], []
    for name, rounds in pairs.items():
        mean, low, high = interval([statistics.geometric_mean(ratios.values()) for ratios in rounds])
        rows = [statistics.median(ratios[row] for ratios in rounds) for row in rounds[0]]
        figures = (mean, statistics.median(rows))
        lines.append((name, *(f"{figure:.3f}" for figure in figures), f"{low:.3f} to {high:.3f}", str(len(rows))))
        missed += [name] if high > MOST else []
    table(("this tree / base", "mean", "median of rows", "95 % interval of the mean", "rows"), lines)
    return verdict(f"upper end of every interval at most {MOST}", missed)


if __name__ == "__main__":
    sys.exit(main())
