"""Measure replies per second, with 300 characters each: `parse_many` against `json.loads`, and as a log
`rightcall parse --rows` against `jq -c .` on the same file.

    python benchmarks/bench_rows.py [ROWS]      1,000,000 rows unless said

Targets: 20,000 replies a second and core through `parse_many`; a log of 1,000,000 rows within 4 times the time of jq,
on two cores; and memory that does not grow with the rows. Of a shorter log the time until the first row is a part that
jq does not have: it is shown apart, and the ratio is shown and not judged.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import table, verdict
from rightcall import Tool, Toolset, parse_many
from rightcall.datasets.rows.engines import count_cores

ROWS = 1_000_000  # the number of rows of the target
TEXTS = 100_000  # distinct texts; a longer log repeats them with other ids
PER_CORE = 20_000
MOST = 4.0
WORDS = "all that is gold does not glitter not those who wander are lost the old strong wither deep roots frost".split()
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["city"],
}
TOOLS = Toolset([Tool(name="get_weather", parameters=WEATHER)])


def text(number: int, dice: random.Random) -> str:
    """Return a reply of 300 characters: a sentence and a call."""
    sentence = " ".join(dice.choices(WORDS, k=40))
    call = {"name": "get_weather", "arguments": {"city": "Oslo", "days": number % 9, "note": ""}}
    frame = f"I will look that up for you.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"
    return frame.replace('"note": ""', f'"note": "{sentence[: 300 - len(frame)]}"')


def texts(count: int) -> Iterator[str]:
    dice = random.Random(1)
    return (text(number, dice) for number in range(count))


def log(path: Path, count: int) -> None:
    row_ends = [f', "model": "m", "text": {json.dumps(each)}}}\n' for each in texts(min(count, TEXTS))]
    with path.open("w") as file:
        file.writelines(f'{{"id": {number}{row_ends[number % TEXTS]}' for number in range(count))


def measure_command(command: list[str]) -> tuple[float, float]:
    """Return the seconds of a command, and the peak memory in MB of its largest process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - start, used.ru_maxrss / 1024


def measure_parse_many(count: int) -> float:
    """Return the replies per second and core."""
    texts_given = list(texts(count))
    start = time.perf_counter()
    found = sum(len(reply.calls) for reply in parse_many(texts_given, tools=TOOLS, format="hermes"))
    seconds = time.perf_counter() - start
    assert found == count
    return count / seconds / count_cores()


def measure_json_loads(count: int) -> float:
    texts_given = [json.dumps({"text": each}) for each in texts(count)]
    start = time.process_time()
    for each in texts_given:
        json.loads(each)
    return count / (time.process_time() - start)


def main(rows: int) -> int:
    missed = []
    rate, plain = measure_parse_many(min(rows, TEXTS)), measure_json_loads(min(rows, TEXTS))
    table(
        ("replies of 300 characters", "a second and core"),
        [("parse_many, format named", f"{rate:,.0f}"), ("json.loads of the same text", f"{plain:,.0f}")],
    )
    if rate < PER_CORE:
        missed.append(f"parse_many ({rate:,.0f})")
    with tempfile.TemporaryDirectory() as folder:
        ratio = compare_with_jq(Path(folder), rows)
    if rows >= ROWS and ratio > MOST:
        missed.append(f"the log ({ratio:.1f} x jq)")
    return verdict(f"{PER_CORE:,} a second and core, a log of {ROWS:,} rows within {MOST:g} x jq", missed)


def parsing(path: Path, out: Path, tools: Path) -> list[str]:
    command = [sys.executable, "-m", "rightcall", "parse", "--rows", str(path), "--out", str(out)]
    return [*command, "--format", "hermes", "--tools", str(tools), "--jobs", "2"]


def compare_with_jq(folder: Path, rows: int) -> float:
    """Return the time for a log of `rows` rows on two cores, divided by the time of jq."""
    path, tools, out = folder / "log.jsonl", folder / "tools.json", folder / "out.jsonl"
    log(path, rows)
    tools.write_text(json.dumps(TOOLS.definitions()))
    one = folder / "one.jsonl"
    log(one, 1)
    start, _ = measure_command(parsing(one, folder / "start.jsonl", tools))
    ours, memory = measure_command(parsing(path, out, tools))
    with out.open("rb") as file:
        assert sum(1 for _ in file) == rows
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    lines = [(f"rightcall parse --rows, {rows:,} rows", f"{ours:.2f}", f"{rows / ours:,.0f}", f"{memory:.0f}")]
    if shutil.which("jq") is None:
        print("jq is not installed; its time is not measured")
        ratio = 0.0
    else:
        jq, used = measure_command(["jq", "-c", ".", str(path)])
        lines.append(("jq -c .", f"{jq:.2f}", f"{rows / jq:,.0f}", f"{used:.0f}"))
        ratio = ours / jq
    table(("the same file", "s", "rows a second", "MB"), lines)
    print(f"{ratio:.1f} x jq; {start:.2f} s until the first row; the largest process of all had {children:.0f} MB\n")
    return ratio


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1].replace("_", "").replace(",", "")) if len(sys.argv) > 1 else ROWS))
