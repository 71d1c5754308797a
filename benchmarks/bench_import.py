"""Measure the import of rightcall against `import json, re, dataclasses, asyncio`, in fresh interpreters.

Targets: what reading a reply needs at most 2.5 times as much, the bare package, which pytest loads for its plugin, at
most a tenth.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

from measure import table, verdict

RUNS = 11
MOST = 2.5
BASELINE = "import json, re, dataclasses, asyncio"
OURS = "from rightcall import Parser, Toolset, parse"
BARE, MOST_BARE = "import typing, rightcall", 0.1


def cpu_seconds(code: str, cache: str) -> float:
    """Return the CPU time of a fresh interpreter that runs this code, with its bytecode cache in that folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**environment, "PYTHONPYCACHEPREFIX": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    times: dict[str, list[float]] = {"pass": [], "import typing": [], BASELINE: [], OURS: [], BARE: []}
    with tempfile.TemporaryDirectory() as cache:
        for code in times:
            cpu_seconds(code, cache)  # compile once, so that compilation is not measured
        for _ in range(RUNS):  # alternating, so that all have the same load
            for code, found in times.items():
                found.append(cpu_seconds(code, cache))
    medians = {code: statistics.median(found) for code, found in times.items()}
    start = medians["pass"]
    table(
        ("code", "CPU ms", "less start-up"),
        [(code, f"{s * 1000:.1f}", f"{(s - start) * 1000:.1f}") for code, s in medians.items()],
    )
    ratio = (medians[OURS] - start) / (medians[BASELINE] - start)
    print(f"import: {ratio:.2f} x, without the interpreter's own start-up")
    print(f"import: {medians[OURS] / medians[BASELINE]:.2f} x with it")
    bare = (medians[BARE] - medians["import typing"]) / (medians[BASELINE] - start)
    print(f"import: {bare:.2f} x for the package alone")
    missed = [f"{ratio:.2f} x"] if ratio > MOST else []
    missed += [f"{bare:.2f} x for the package alone"] if bare > MOST_BARE else []
    return verdict(f"at most {MOST} x, and {MOST_BARE} x for the package alone", missed)


if __name__ == "__main__":
    sys.exit(main())
