"""Measure the first `parse` of a process with `format="auto"`: CPU seconds and megabytes, and those of the import.

    python benchmarks/bench_first_parse.py [SRC_OF_A_BASE_TREE]

Each figure is the median over fresh processes. With the `src` folder of another tree the two alternate, and the ratio
is printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

SRC = Path(__file__).resolve().parent.parent / "src"
RUNS = 9
TEXTS = {
    "hermes": 'Hello <tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    "harmony": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>',
    "bare JSON": '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    "no call": "It is a fine day, with 3 < 4 [degrees] more.",
}
# The schema validator is imported before: it is a dependency, and any first check imports it.
PROGRAM = """
import json, resource, sys, time

def memory():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

start, before = time.process_time(), memory()
import jsonschema_rs
import rightcall
schema = {"type": "object", "properties": {"city": {"type": "string"}}}
tool = rightcall.Tool(name="get_weather", parameters=schema)
tools = rightcall.Toolset([tool])
rightcall.parse
imported, between = time.process_time(), memory()
rightcall.parse(sys.argv[1], tools=tools)
print(json.dumps([imported - start, time.process_time() - imported, between - before, memory() - between]))
"""


def measure(src: Path, text: str) -> list[float]:
    """Return seconds of the import and of the parse, and bytes of both, in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(src)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, text], env=environment, capture_output=True, text=True, check=True
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


def main() -> None:
    base = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    print(f"{'text':10} {'import':>9} {'parse':>9} {'import':>9} {'parse':>9}")
    for name, text in TEXTS.items():
        runs = [(measure(SRC, text), measure(base, text) if base else None) for _ in range(RUNS)]
        import_s, parse_s, import_mb, parse_mb = [
            median(column) for column in zip(*[own for own, _ in runs], strict=True)
        ]
        line = f"{name:10} {import_s:7.3f} s {parse_s:7.3f} s {import_mb / 1e6:6.1f} MB {parse_mb / 1e6:6.1f} MB"
        ratios = [own[1] / other[1] for own, other in runs if other]
        print(line + (f"   {median(ratios):.3f} of the base tree's time" if ratios else ""))


if __name__ == "__main__":
    main()
