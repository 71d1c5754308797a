"""Measuring and reporting of the benchmarks: CPU time, the best of several runs, a table, a verdict."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

from rightcall import Tool, Toolset

_EDIT = {
    "type": "object",
    "properties": {
        "line": {"type": "integer"},
        "old": {"type": "string"},
        "new": {"type": "array", "items": {"type": "string"}},
        "keep": {"type": "boolean"},
    },
}
_PROPERTIES = {
    "path": {"type": "string"},
    "text": {"type": "string"},
    "mode": {"type": "integer"},
    "edit": _EDIT,
}
TOOLS = Toolset([Tool(name="edit_file", parameters={"type": "object", "properties": _PROPERTIES})])


def best(run: Callable[[], object], runs: int, *, times: int = 1) -> float:
    """Return the CPU seconds of one call: the minimum of several runs of `times` calls, without garbage collection."""
    return turn_by_turn(runs, (run, times))[0]


def turn_by_turn(runs: int, *works: tuple[Callable[[], object], int]) -> list[float]:
    """Return the same for several functions, each with its number of calls per run.

    They alternate, so that other load on the machine affects all of them equally.
    """
    found: list[list[float]] = [[] for _ in works]
    for run, _ in works:
        run()
    gc.disable()
    try:
        for _ in range(runs):
            for times, (run, calls) in zip(found, works, strict=True):
                start = time.process_time()
                for _ in range(calls):
                    run()
                times.append((time.process_time() - start) / calls)
    finally:
        gc.enable()
    return [max(min(times), 1e-9) for times in found]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        first, *rest = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]))
    print()


def verdict(target: str, missed: Sequence[str]) -> int:
    """Print whether the target was met, and return the exit status."""
    print(f"target: {target}: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    return 1 if missed else 0
