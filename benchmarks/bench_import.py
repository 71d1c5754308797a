"""What does `import rightcall` cost?    Against `import json, re, dataclasses, asyncio`, in fresh interpreters.

Target: at most 2.5 times as much.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from measure import table, verdict

RUNS = 11
MOST = 2.5
BASELINE = "import json, re, dataclasses, asyncio"
OURS = "import rightcall"


def cpu_seconds(code: str) -> float:
    """CPU time of a fresh interpreter that runs this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    times: dict[str, list[float]] = {"pass": [], BASELINE: [], OURS: []}
    for _ in range(RUNS):  # in turn, so that all see the same load
        for code, found in times.items():
            found.append(cpu_seconds(code))
    medians = {code: statistics.median(found) for code, found in times.items()}
    start = medians["pass"]
    table(
        ("code", "CPU ms", "less start-up"),
        [(code, f"{s * 1000:.1f}", f"{(s - start) * 1000:.1f}") for code, s in medians.items()],
    )
    ratio = (medians[OURS] - start) / (medians[BASELINE] - start)
    print(f"import: {ratio:.2f} x, without the interpreter's own start-up")
    print(f"import: {medians[OURS] / medians[BASELINE]:.2f} x with it")
    return verdict(f"at most {MOST} x", [f"{ratio:.2f} x"] if ratio > MOST else [])


if __name__ == "__main__":
    sys.exit(main())
