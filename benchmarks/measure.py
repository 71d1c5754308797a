"""How the benchmarks measure and report: CPU time, the best of several runs, a table, a verdict."""

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
    """CPU seconds of one call: the least of several runs of so many calls each, the collector switched off."""
    run()
    found = []
    gc.disable()
    try:
        for _ in range(runs):
            start = time.process_time()
            for _ in range(times):
                run()
            found.append((time.process_time() - start) / times)
    finally:
        gc.enable()
    return max(min(found), 1e-9)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        first, *rest = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]))
    print()


def verdict(target: str, missed: Sequence[str]) -> int:
    """Says whether the target was met; the exit status."""
    print(f"target: {target}: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    return 1 if missed else 0
