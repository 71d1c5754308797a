"""Measure millions of rows: rows per second and core, and memory. Time is CPU time, so other load hardly matters.

    python benchmarks/bench_scale.py [ROWS ...]              10,000 and 100,000 unless said
    python benchmarks/bench_scale.py 1000000 --only parse,dedupe

Replies of 300 characters for `parse`, `dedupe`, `import` and `report`; rows of captures for the others.
Target: ten times the rows take at most 1.3 times the memory. docs/scale.md plans with these figures.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from bench_dataset import pair

from measure import table, verdict
from rightcall.storage.jsonl import encode_row

MOST = 1.3
TOOLS = [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
COMMANDS = {
    "parse": "parse --rows {replies} --format hermes --tools {tools} --out {out}",
    "dedupe": "dataset dedupe {replies} -o {out}",
    "dedupe --near": "dataset dedupe {replies} --near 0.8 -o {out}",
    "label": "dataset label {captures} -o {out}",
    "mutate": "dataset mutate {captures} -o {out} --most 1000000000 --format hermes",
    "import": "dataset import {replies} --tools {tools} -o {out}",
    "export": "dataset export {captures} --to trl-sft -o {out}",
    "report": "report {replies} --format hermes --tools {tools} --html {out}",
}


def sentences(seed: int, count: int = 1_000) -> list[str]:
    """Return generated sentences of about 110 characters each."""
    dice = random.Random(seed)
    letters = "abdefgiklmnoprstuv"
    words = ["".join(dice.choices(letters, k=dice.randint(3, 9))) for _ in range(3_000)]
    return [" ".join(dice.choices(words, k=16))[:110] for _ in range(count)]


FIRST, SECOND = sentences(1), sentences(2)


def reply(number: int) -> bytes:
    """Return a row of 300 characters of text; one in fifty is a duplicate."""
    seed = number - 25 if number % 50 == 49 else number
    said = f"{FIRST[seed * 7919 % 1_000]} {SECOND[seed * 104_729 // 1_000 % 1_000]}"
    call = f'{{"name": "get_weather", "arguments": {{"city": "Oslo {seed}"}}}}'
    return encode_row({"text": f"{said}\n<tool_call>\n{call}\n</tool_call>"})


def write(folder: Path, rows: int, names: list[str]) -> None:
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    with (folder / "replies.jsonl").open("wb") as file:
        file.writelines(map(reply, range(rows)))
    if {"label", "mutate", "export"} & set(names):
        with (folder / "captures.jsonl").open("wb") as file:
            for number in range(rows // 2):
                file.writelines(map(encode_row, pair(number)))


def measure_command(arguments: list[str]) -> tuple[float, float]:
    """Return the CPU seconds, and the megabytes of the largest process, of a command."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    command = [sys.executable, "-m", "rightcall", *arguments]
    process = os.posix_spawn(sys.executable, command, os.environ, file_actions=quiet)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def run(rows: int, names: list[str]) -> dict[str, tuple[float, float]]:
    """Return the rows per second, and the megabytes, of each command."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows, names)
        files = {"replies": f"{folder}/replies.jsonl", "captures": f"{folder}/captures.jsonl"}
        files |= {"tools": f"{folder}/tools.json", "out": f"{folder}/out.jsonl"}
        for name in names:
            words = [word.format(**files) for word in COMMANDS[name].split()]
            seconds, memory = measure_command([*words, "--jobs", "1"])
            found[name] = rows / seconds, memory
            Path(files["out"]).unlink()
            print(f"{rows:,} rows  {name}: {rows / seconds:,.0f} a second, {memory:.0f} MB", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--only", default=",".join(COMMANDS))
    options = parser.parse_args()
    names = options.only.split(",")
    found = {rows: run(rows, names) for rows in options.rows}
    print()
    head = ["command", *[f"{rows:,}: rows/s" for rows in found], *[f"{rows:,}: MB" for rows in found]]
    lines = [
        [
            name,
            *[f"{each[name][0]:,.0f}" for each in found.values()],
            *[f"{each[name][1]:.0f}" for each in found.values()],
        ]
        for name in names
    ]
    table(head, lines)
    first, last = found[min(found)], found[max(found)]
    grown = [name for name in names if max(found) > min(found) and last[name][1] > MOST * first[name][1] + 60]
    return verdict(f"at most {MOST} times the memory, and 60 MB of sorting, for the larger file", grown)


if __name__ == "__main__":
    sys.exit(main())
