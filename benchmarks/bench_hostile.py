"""Measure the cost of hostile text: 1 MB of openers, brackets, backticks, blanks, against `json.loads` of 1 MB.

For each function the most expensive of many hostile texts and formats is searched at 2 KB and then parsed at 1 MB.
Targets: every function at most 2 CPU-seconds and 60 bytes of memory for a character, `detect` at most 20 times
`json.loads`.
The tools are declared.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from bench_whole import as_json

from measure import TOOLS, best, table, verdict
from rightcall import Call, Parser, Stream, check, detect, parse, read, render, repair
from rightcall.formats import FORMATS
from rightcall.parsing.compile import compile_format

SIZE = 1_000_000
# How much of each text is parsed, and how many of the most expensive ones continue.
SIZES = ((2_000, 30), (250_000, 1))  # large enough to reach the cap on openers without a call
MOST_DETECT = 20.0
MOST_SECONDS = 2.0
MOST_BYTES = 60.0  # for a character

KNOWN_EXPENSIVE = [("contract", "a\n"), ("hermes", "<function=")]  # not expensive when it is small

Function = Callable[[str, str], object]  # a format and a text


def parse_stream(format: str, text: str, size: int = 16) -> None:
    parser = Parser(format, tools=TOOLS, live=True)
    for start in range(0, len(text), size):
        parser.feed(text[start : start + size])
    parser.close()


def read_stream(format: str, text: str, *, native: bool, size: int = 16) -> None:
    stream = Stream("chat", tools=TOOLS, format=format)
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        call = {"index": 0, "id": "a", "function": {"name": "edit_file", "arguments": piece}}
        stream.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]} if native else {"content": piece}}]})
    stream.close()


def message(**fields: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", **fields}}]}


def native(text: str) -> Any:
    return message(tool_calls=[{"id": "a", "function": {"name": "edit_file", "arguments": text}}])


WORKS: dict[str, Function] = {
    "parse, format named": lambda format, text: parse(text, format=format, tools=TOOLS),
    "parse, lenient": lambda format, text: parse(text, format=format, tools=TOOLS, repair="lenient"),
    "parse, format unknown": lambda _, text: parse(text, tools=TOOLS),
    "Parser, pieces of 16": parse_stream,
    "read": lambda format, text: read(message(content=text), tools=TOOLS, format=format),
    "read, a call": lambda _, text: read(native(text), tools=TOOLS),
    "Stream, pieces of 16": partial(read_stream, native=False),
    "Stream, a call": partial(read_stream, native=True),
    "repair": lambda _, text: repair(Call("edit_file", {}, text), TOOLS),
    "repair, lenient": lambda _, text: repair(Call("edit_file", {}, text), TOOLS, policy="lenient"),
    "check": lambda _, text: check(Call("edit_file", {"text": text, "edit": {"new": [text] * 9}}), TOOLS),
    "detect": lambda _, text: detect(text, tools=TOOLS),
}
# Functions that do not depend on the format.
ONE_FORMAT = {
    "parse, format unknown",
    "read, a call",
    "Stream, a call",
    "repair",
    "check",
    "detect",
}
ONE_FORMAT |= {"repair, lenient"}


@cache
def openers(format: str = "") -> list[str]:
    """Return the texts that open a call in this format, or in any."""
    formats = [FORMATS[format]] if format else FORMATS.values()
    return sorted({pat.prefix for each in formats for pat, _ in compile_format(each).openers.of_calls} - {""})


@cache
def units(format: str) -> list[str]:
    """Return the texts to repeat."""
    rendered = render([Call("edit_file", {"path": "a", "mode": 1, "edit": {"line": 1}})], format=format)
    own = [each for opener in openers(format) for each in (opener, opener[:-1] or "<", opener + " x ", opener + "\n")]
    everybody = [
        "<",
        "<|",
        "[",
        "{",
        '{"name": ',
        "edit_file(",
        "<think>",
        "`",
        "```json\n",
        " ",
        "\n",
        '"',
        "word ",
        ", ",
    ]
    everybody += [
        '\\"',
        "a\n",
        "> ",
        "'",
        "# ",
        "1\t",
        '{"name": "edit_file", "arguments": {"text": "',
        "</",
        "<function=",
        "\\",
        "é ",
    ]
    return [
        *everybody,
        *own,
        rendered,
        rendered + "\n",
        rendered[:-1],
        rendered[: len(rendered) // 2],
        "".join(openers()),
    ]


def repeat_unit(text: str, size: int = SIZE) -> str:
    return (text * (size // len(text) + 1))[:size]


def find_most_expensive(function_name: str) -> tuple[str, str]:
    """Return the most expensive format and unit for this function, of those that were expensive when small."""
    formats = ["hermes"] if function_name in ONE_FORMAT else list(FORMATS)
    everything = sorted({each for name in FORMATS for each in units(name)})
    cases = [(name, unit) for name in formats for unit in (everything if len(formats) == 1 else units(name))]
    for size, count in SIZES:
        costs = {case: once(partial(WORKS[function_name], case[0], repeat_unit(case[1], size))) for case in cases}
        cases = sorted(cases, key=lambda case: -costs[case])[:count] + [
            case for case in KNOWN_EXPENSIVE if case in cases and count > 1
        ]
    return cases[0]


def once(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def peak(run: Callable[[], object]) -> float:
    """Return the maximum bytes of memory for each character."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / SIZE
    finally:
        tracemalloc.stop()


def main() -> int:
    loads = best(partial(json.loads, json.dumps([json.loads(as_json(1024))] * (SIZE // 1024))), 5)
    print(f"json.loads of a valid 1 MB: {loads * 1e3:.1f} ms")
    rows, missed = [], []
    for function_name, do in WORKS.items():
        format, unit = find_most_expensive(function_name)
        run = partial(do, format, repeat_unit(unit))
        seconds, memory = best(run, 2), peak(run)
        most_expensive = repr(unit if len(unit) < 40 else unit[:36] + "...")
        print(f"  {function_name}: {seconds:.2f} s", file=sys.stderr, flush=True)
        rows.append(
            (function_name, f"{seconds:.2f}", f"{seconds / loads:.0f}", f"{memory:.0f}", f"{format}: {most_expensive}")
        )
        is_dear = seconds > MOST_SECONDS or (function_name == "detect" and seconds > MOST_DETECT * loads)
        missed += [function_name] if is_dear or memory > MOST_BYTES else []
    table(("1 MB, the dearest of all", "CPU s", "x json.loads", "bytes a character", "which"), rows)
    target = (
        f"at most {MOST_SECONDS:g} s and {MOST_BYTES:g} bytes a character, detect at most {MOST_DETECT:g} x json.loads"
    )
    return verdict(target, missed)


if __name__ == "__main__":
    sys.exit(main())
