"""Search for texts with superlinear cost.    fuzz/superlinear.py [--seconds 60] [--seed 1]

A text is a prefix (an opener, half a call, a fence, reasoning, ...) and one or two repeated units: markers, parts of
them, brackets, quotes, escapes, blanks. One of `WORKS` processes it: whole, in pieces, live, as a provider's answer,
as arguments to repair. Two measures are used: the steps counted by `tests/support/steps.py` (a text four times as long
must not take more than four times as many), and CPU time, which includes the backtracking of patterns. `patterns.py`
attacks every regular expression of the source; --patterns does only that.

    --case '{"work": "parse", "format": "hermes", "before": "<tool_call>", "unit": "[", "after": ""}'    repeat a case
    --cases 100        the number of cases, without a time limit

The same seed gives the same cases. Each superlinear case is printed for --case; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

import patterns  # noqa: E402

import rightcall  # noqa: E402
from rightcall.formats import FORMATS  # noqa: E402
from support.hostile import TOOLS, markers, places  # noqa: E402
from support.steps import MOST, measure_growth  # noqa: E402

SMALL = 250  # characters of the smallest text whose steps are counted
LARGE = 16_000  # characters of the text that is timed
SLOW = 15e-6  # CPU seconds for a character: below this no cost is quadratic at that size

UNITS = (
    *" \n\t\r,:;=.-_/\\|<>(){}[]'\"`#*~01a\0",
    *("\r\n", "\n\n", "  ", " a", "a ", "a\n", "```\n", "```json\n", "~~~\n", "> ", "- ", "\n    ", "\t\n"),
    *('\\"', "\\'", "\\\\", "\\n", "\\u", "\\u0061", "\\ud83d", "\\x4", '""', "''", '"""', "'''", '"a"', "'a'"),
    *(
        "1,",
        "-1",
        "1e",
        "0.",
        "1_",
        "true",
        "None",
        "NaN,",
        "[]",
        "{}",
        "()",
        "[{",
        '{"',
        '{"a":',
        '{"a": 1},',
        "a(",
        "a=",
    ),
    *(
        '"a": 1, ',
        '"a", ',
        "a: 1, ",
        "k=1, ",
        "<a>",
        "</a>",
        "<a",
        "<!--",
        "-->",
        "/*",
        "*/",
        "//",
        "<|",
        "|>",
        "<<",
        "<<A\n",
    ),
    *(
        '{"name": "write", ',
        '{"name": "write", "arguments": {',
        '{"name": "write", "arguments": {}}',
        "write(",
        "write",
    ),
    *("User: ", "data: ", "event: ", "é", "\ud800", "\N{GRINNING FACE}", "\u2028", "12:00:00 ", "+++ ", "@@ ", "1\t"),
)
BEFORE = (
    "",
    "a ",
    "\n",
    "`",
    "``",
    "```\n",
    "```json\n",
    "~~~\n",
    "> ",
    '"',
    "'",
    "<pre>",
    "<!--",
    "@@ -1 +1 @@\n",
    "1. ",
)


class Case(msgspec.Struct, frozen=True):
    work: str
    format: str
    before: str
    unit: str
    after: str

    def text(self, size: int) -> str:
        return self.before + self.unit * max(1, size // len(self.unit)) + self.after


Work = Callable[[Any, Any, str, str], object]  # the package, tools, a format and the text


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _parser(size: int, *, live: bool = False, hold: bool = False) -> Work:
    def run_work(package: Any, tools: Any, format: str, text: str) -> None:
        parser = package.Parser(format, tools=tools, live=live, hold=hold)
        for piece in pieces(text, size or len(text) // 2 + 1):
            parser.feed(piece)
        parser.close()
        assert parser.reply is not None

    return run_work


def _stream(chunk: Callable[[str], Any], size: int, *, live: bool = False) -> Work:
    def run_work(package: Any, tools: Any, format: str, text: str) -> None:
        stream = package.Stream(tools=tools, format=format, live=live)
        for piece in pieces(text, size):
            stream.feed(chunk(piece))
        stream.close()
        assert stream.reply is not None

    return run_work


def _content_chunk(text: str) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def _reasoning_chunk(text: str) -> Any:
    return {"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}


def _call_chunk(text: str) -> Any:
    call = {"index": 0, "id": "a", "function": {"name": "write", "arguments": text}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def _message(**fields: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", **fields}}]}


def _native(text: str) -> Any:
    return _message(tool_calls=[{"id": "a", "function": {"name": "write", "arguments": text}}])


def _repair_with(policy: str) -> Work:
    def run_work(package: Any, tools: Any, format: str, text: str) -> None:
        call = package.repair(package.Call("write", {}, text), tools, policy=policy)
        package.check(call, tools)

    return run_work


WORKS: dict[str, Work] = {
    "parse": lambda package, tools, format, text: package.parse(text, format=format, tools=tools),
    "parse, no tools": lambda package, tools, format, text: package.parse(text, format=format),
    "parse, spans, lenient": lambda package, tools, format, text: package.parse(
        text, format=format, tools=tools, spans=True, repair="lenient"
    ),
    "parse, auto": lambda package, tools, format, text: package.parse(text, tools=tools),
    "single characters": _parser(1),
    "single characters, live": _parser(1, live=True),
    "pieces of 7, held": _parser(7, hold=True),
    "halves": _parser(0),
    "detect": lambda package, tools, format, text: package.detect(text, tools=tools),
    "read": lambda package, tools, format, text: package.read(_message(content=text), tools=tools, format=format),
    "read, a call": lambda package, tools, format, text: package.read(_native(text), tools=tools),
    "read, thoughts": lambda package, tools, format, text: package.read(
        _message(reasoning_content=text), tools=tools, format=format
    ),
    "read, a text": lambda package, tools, format, text: package.read(text, tools=tools),
    "stream": _stream(_content_chunk, 11),
    "stream, live": _stream(_content_chunk, 16, live=True),
    "stream, thoughts": _stream(_reasoning_chunk, 16),
    "stream, a call": _stream(_call_chunk, 16),
    "stream, a call, live": _stream(_call_chunk, 11, live=True),
    "stream, bytes": _stream(lambda piece: piece.encode("utf-8", "replace"), 3),
    "repair": _repair_with("safe"),
    "repair, lenient": _repair_with("lenient"),
}


# -- cases -------------------------------------------------------------------------------------------------------------


@functools.cache
def units(format: str) -> tuple[str, ...]:
    """Return the repeated units: the common ones, and the format's own markers, whole and in part."""
    own = {
        part for marker in markers(format) for part in (marker, marker.strip()[:-1], marker.strip()[:3], marker + "a")
    }
    return (*UNITS, *sorted(own - {""} - set(UNITS)))


@functools.cache
def beginnings(format: str) -> tuple[str, ...]:
    """Return the prefixes: the common ones, the format's markers, and a reply up to each of its places."""
    own = {before for before, _ in places(format).values()} | set(markers(format))
    own |= {before + after for before, after in places(format).values()}  # after a whole call
    return (*BEFORE, *sorted(own - set(BEFORE)))


def draw(rng: random.Random, formats: list[str]) -> Case:
    format = rng.choice(formats)
    found = units(format)
    unit = rng.choice(found) + (rng.choice(found) if rng.random() < 0.5 else "")
    before = rng.choice(beginnings(format)) + (rng.choice(found) if rng.random() < 0.2 else "")
    after = rng.choice(("", "", "x", "\n", "}", '"', ")", *markers(format)))
    return Case(rng.choice(list(WORKS)), format, before, unit, after)


# -- measures ----------------------------------------------------------------------------------------------------------


def times(case: Case) -> float:
    """Return the factor of the steps for four times the text."""
    run_work = WORKS[case.work]
    return measure_growth(
        lambda package, tools, size: run_work(package, tools, case.format, case.text(size)), size=SMALL
    )


def seconds(case: Case, size: int) -> float:
    text, run_work = case.text(size), WORKS[case.work]
    start = time.process_time()
    run_work(rightcall, TOOLS, case.format, text)
    return time.process_time() - start


def slowness(case: Case) -> float | None:
    """Return the factor of the time for twice the text, or None if the time is short."""
    seconds_taken = seconds(case, LARGE)
    if seconds_taken < SLOW * LARGE:
        return None
    ratios = []
    for size in (LARGE, 2 * LARGE):
        small = min(seconds(case, size) for _ in range(2))
        ratios.append(min(seconds(case, 2 * size) for _ in range(2)) / small)
        if ratios[-1] < 2.8:
            return None
    return min(ratios)


def check_cost(case: Case) -> str | None:
    """Return what is wrong with the cost of this case, or None."""
    found = times(case)
    if found > MOST:
        return f"four times the text takes {found:.1f} times the steps"
    slow = slowness(case)
    return None if slow is None else f"twice the text takes {slow:.1f} times as long"


def search(
    formats: list[str], rng: random.Random, *, cases: int, deadline: float, all: bool
) -> tuple[int, dict[Case, str]]:
    found: dict[Case, str] = {}
    count = 0
    while count < cases and time.monotonic() < deadline and (all or not found):
        case = draw(rng, formats)
        wrong = check_cost(case)
        if wrong is not None:
            found[case] = wrong
            print(f"{wrong}: {msgspec.json.encode(case).decode()}", flush=True)
        count += 1
    return count, found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search for texts with superlinear cost.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--format", help="only this format")
    parser.add_argument("--case", help="run only this case, as it was printed")
    parser.add_argument("--patterns", action="store_true", help="only the patterns of the source")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    if options.case:
        wrong = check_cost(msgspec.json.decode(options.case, type=Case))
        print(wrong or "linear")
        return 1 if wrong else 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    slow = patterns.attack_all()
    if options.patterns:
        return 1 if slow else 0
    formats = [rightcall.formats.find(options.format).name] if options.format else list(FORMATS)
    print(f"superlinear: seed {seed}, {len(formats)} formats, {options.seconds:g} s", flush=True)
    deadline = time.monotonic() + options.seconds
    count, found = search(formats, random.Random(seed), cases=options.cases, deadline=deadline, all=options.keep_going)
    print(f"{count} cases, {len(found) or 'none'} superlinear, seed {seed}")
    return 1 if found or slow else 0


if __name__ == "__main__":
    sys.exit(main())
