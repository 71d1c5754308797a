"""Measure whether the dataset commands stream: rows per second and peak memory of each, at two sizes.

Target: ten times the rows take at most 1.3 times the memory. Run `bench_dataset.py 100000 1000000` for the sizes of a
real dataset (some GB of disk, half an hour); names of commands after that run only those. Without arguments it takes
5,000 and 50,000.
Beside it: rows that a journal makes durable each second, one sync each and a hundred per sync, against bare syncs.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from measure import table, verdict
from rightcall.capture.captured_rows import CallTrace, Journal, capture_row, outcome_row
from rightcall.capture.domain import find_domain
from rightcall.capture.stubs import StubOutcome
from rightcall.storage.jsonl import encode_row
from rightcall.types import Call, Json

SIZES = (5_000, 50_000)
MOST = 1.3
SHOP = find_domain("shopping")
SYNCS = 300
COMMANDS: dict[str, list[str]] = {
    "validate": ["validate", "{rows}"],
    "stats": ["stats", "{rows}", "--json"],
    "label": ["label", "{rows}", "-o", "{out}/labelled.jsonl"],
    "split": ["split", "{out}/labelled.jsonl", "-o", "{out}/split"],
    "redact": ["redact", "{out}/labelled.jsonl", "-o", "{out}/redacted.jsonl"],
    "release": ["release", "{out}/redacted.jsonl", "-o", "{out}/released.jsonl", "--by", "bench"],
    "export trl-sft": ["export", "{out}/labelled.jsonl", "--to", "trl-sft", "-o", "{out}/sft.jsonl"],
    "export parquet": ["export", "{out}/labelled.jsonl", "--to", "trl-sft", "-o", "{out}/sft.parquet"],
    "export verifier": ["export", "{out}/labelled.jsonl", "--to", "verifier", "-o", "{out}/verifier.jsonl"],
    "assemble": ["assemble", "{out}/verifier.jsonl", "-o", "{out}/assembled"],
    "import": ["import", "{out}/sft.jsonl", "-o", "{out}/imported.jsonl"],
}


def pair(number: int) -> tuple[Json, Json]:
    """Return a unique conversation of two rows."""
    arguments = {"product_id": "SKU-DOCK-1", "quantity": 2}
    call = Call("add_to_cart", arguments, '{"product_id": "SKU-DOCK-1", "quantity": 2}', "capture_call_0_0")
    request = f"Put two of the docks SKU-DOCK-1 into my cart. This is request {number}."
    function = {"name": call.name, "arguments": call.json}
    said = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }
    result = StubOutcome("ok", {**arguments, "cart_id": "cart-001"})
    messages = [{"role": "user", "content": request}]
    after = [*messages, said, {"role": "tool", "tool_call_id": call.id, "content": result.message}]
    trace = {"domain": "shopping", "scenario": "add_dock", "run_index": number, "model": "bench"}
    shared = {"group": f"rightcall-shopping-add_dock-run-{number:08d}", "request": request, "tools": SHOP.tools}
    first = capture_row(
        call,
        trace=CallTrace(**trace, turn=0, tool_call_id=call.id),  # type: ignore[arg-type]
        messages=messages,
        assistant=said,
        reply=said,
        result=result,
        **shared,  # type: ignore[arg-type]
    )
    end = outcome_row(
        trace=CallTrace(**trace, turn=1),  # type: ignore[arg-type]
        messages=after,
        reply="Done.",
        text="Done.",
        **shared,  # type: ignore[arg-type]
    )
    return first, end


def write_rows(path: Path, rows: int) -> None:
    with path.open("wb") as file:
        for number in range(rows // 2):
            file.writelines(map(encode_row, pair(number)))


def measure_command(arguments: list[str]) -> tuple[float, float]:
    """Return the seconds and megabytes of a command in a separate process."""
    start = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    command = [sys.executable, "-m", "rightcall", "dataset", *arguments]
    process = os.posix_spawn(sys.executable, command, os.environ, file_actions=quiet)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def measure_commands(sizes: tuple[int, int], names: list[str]) -> int:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "rows.jsonl")
            write_rows(source, rows)
            print(f"{rows:,} rows, {source.stat().st_size / 1e6:,.0f} MB", flush=True)
            for name in names:
                arguments = [each.format(rows=source, out=folder) for each in COMMANDS[name]]
                found[name].append(measure_command(arguments))
    head = ["command", *[f"{rows:,}: rows/s" for rows in sizes], *[f"{rows:,}: MB" for rows in sizes], "growth"]
    lines, missed = [], []
    for name, ((first, small), (second, large)) in found.items():
        growth = large / small
        missed += [name] if growth > MOST else []
        rates = [f"{rows / seconds:,.0f}" for rows, seconds in zip(sizes, (first, second), strict=True)]
        lines.append([name, *rates, f"{small:.0f}", f"{large:.0f}", f"{growth:.2f}"])
    print()
    table(head, lines)
    return verdict(f"at most {MOST} times the memory for ten times the rows", missed)


def measure_journal() -> None:
    """Measure the durable rows of a journal, against syncs of as many bytes on the same disk."""
    row = pair(0)[0]
    data = encode_row(row)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        file = os.open(os.path.join(folder, "bare"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        start = time.perf_counter()
        for _ in range(SYNCS):
            os.write(file, data)
            getattr(os, "fdatasync", os.fsync)(file)
        bare = SYNCS / (time.perf_counter() - start)
        os.close(file)
        with Journal(os.path.join(folder, "rows.jsonl")) as journal:
            start = time.perf_counter()
            for _ in range(SYNCS):
                journal.append(row)
            single = SYNCS / (time.perf_counter() - start)
            start = time.perf_counter()
            for _ in range(SYNCS // 10):
                journal.append_all([row] * 100)
            grouped = SYNCS * 10 / (time.perf_counter() - start)
    table(
        ["durable rows a second", "", "of the limit"],
        [
            ["bare write and sync", f"{bare:,.0f}", "1.00"],
            ["journal, a sync for each row", f"{single:,.0f}", f"{single / bare:.2f}"],
            ["journal, a sync for a hundred", f"{grouped:,.0f}", f"{grouped / bare:.2f}"],
        ],
    )


if __name__ == "__main__":
    sizes = tuple(int(each.replace(",", "").replace("_", "")) for each in sys.argv[1:3])
    status = measure_commands((sizes[0], sizes[1]) if len(sizes) == 2 else SIZES, sys.argv[3:] or list(COMMANDS))
    print()
    measure_journal()
    sys.exit(status)
