"""Compare SGLang's detectors with rightcall on the same texts: the cost of streaming, and correct results.

Streams are cut as a server cuts them: markers come whole, anything else in pieces of 4 characters. (Ours does not care
where it is cut; theirs often does.) "One delta" is the same text in one piece, as speculative decoding or a proxy gives
it. Needs the network once (see `peers.py`); where SGLang cannot be had, says so and leaves.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from bench_stream import argument, stream
from peers import Found, Unavailable, as_tools, load, parse_streamed, parse_whole

from measure import TOOLS, best, table
from rightcall import Call, CannotCarry, Text, parse, render
from rightcall.formats import FORMATS

SMALL, LARGE = 8 * 1024, 16 * 1024

Parts = list[Text | Call]


def call(**arguments: Any) -> Call:
    return Call("edit_file", arguments, "")


# Replies by description. `render` writes each in each format, and parsing must return it unchanged.
TRICKY: dict[str, Callable[[str], Parts]] = {
    "one call": lambda close: [call(path="a.txt", mode=3)],
    "two calls": lambda close: [call(path="a"), call(path="b")],
    "no arguments": lambda close: [call()],
    "quotes, backslashes, line breaks": lambda close: [call(text='say "hi"\n\\n it\'s C:\\temp')],
    "other scripts": lambda close: [call(text="naïve 東京 \U0001f600")],
    "nested values": lambda close: [call(edit={"line": -3, "old": "a", "new": ["b", "c"], "keep": True})],
    "a number in a string": lambda close: [call(text="007")],
    "null in a string": lambda close: [call(text="null")],
    "brackets in a string": lambda close: [call(text="a[0] = {x: (1)}")],
    "its own close in a string": lambda close: [call(text=f"see {close} here")],
    "text before": lambda close: [Text("I will do it."), call(path="a")],
    "text after": lambda close: [call(path="a"), Text("Done.")],
}


def cases(format: str) -> dict[str, tuple[str, list[tuple[str, Any]], str]]:
    """Return the text, its calls, and its prose."""
    spec = FORMATS[format]
    close = next((m.strip() for m in (spec.call[1], spec.section[1] if spec.section else "") if isinstance(m, str)), "")
    found = {}
    for name, make in TRICKY.items():
        parts = make(close or "</tool_call>")
        try:
            text = render(parts, format=format, tools=TOOLS)
        except CannotCarry:
            continue
        calls = [(part.name, part.arguments) for part in parts if isinstance(part, Call)]
        found[name] = (text, calls, "".join(part.text for part in parts if isinstance(part, Text)))
    one, calls, _ = found["one call"]
    found["prose and no call"] = ("Use 3 < 4, [1] and {x}.", [], "Use 3 < 4, [1] and {x}.")
    found["cut off"] = (one[: one.index("a.txt") + 3], [], "")
    return found


def is_right(name: str, got: Found | None, calls: list[tuple[str, Any]], prose: str) -> bool:
    if got is None:
        return False
    if name == "cut off":  # no call may be returned as complete
        return not any(arguments is not None and arguments != {} for _, arguments in got[0])
    return got[0] == calls and got[1].strip() == prose.strip()


def ours(format: str, text: str) -> Found:
    reply = parse(text, format=format, tools=TOOLS)
    return [(c.name, c.arguments if c.complete else None) for c in reply.attempts], reply.content


def attempt(run: Callable[[], Found]) -> Found | None:
    try:
        return run()
    except Exception:  # noqa: BLE001 - an exception on model text counts as a wrong answer
        return None


def markers(value: object) -> list[str]:
    """Return every text in a format's value: its markers, and a few other harmless words."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, msgspec.Struct):
        names = [
            name for name in value.__struct_fields__ if name not in ("name", "aliases", "models", "tools", "kinds")
        ]
        return [text for name in names for text in markers(getattr(value, name))]
    if isinstance(value, dict):
        return markers(list(value.values()))
    return [text for item in value for text in markers(item)] if isinstance(value, (tuple, list)) else []


def tokens(text: str, format: str) -> list[str]:
    """Split a text into whole markers and pieces of 4 characters."""
    known = {
        piece for marker in markers(FORMATS[format]) for piece in re.split(r"\{\w+\}|\s+", marker) if len(piece) > 3
    }
    split = (
        re.split("(" + "|".join(map(re.escape, sorted(known, key=len, reverse=True))) + ")", text) if known else [text]
    )
    return [
        piece
        for i, part in enumerate(split)
        for piece in ([part] if i % 2 else [part[j : j + 4] for j in range(0, len(part), 4)])
    ]


def count_correct(format: str, detector: type[Any], tools: list[Any]) -> tuple[int, list[int], dict[str, list[str]]]:
    """Return the number of cases, the correct ones (ours, whole, streamed, in one delta), and the missed ones."""
    scores = [0, 0, 0, 0]
    missed: dict[str, list[str]] = {}
    found = cases(format)
    for name, (text, calls, prose) in found.items():
        ways: list[Callable[[], Found]] = [
            partial(ours, format, text),
            partial(parse_whole, detector, text, tools),
            partial(parse_streamed, detector, tokens(text, format), tools),
            partial(parse_streamed, detector, [text], tools),
        ]
        results = [is_right(name, attempt(way), calls, prose) for way in ways]
        scores = [score + ok for score, ok in zip(scores, results, strict=True)]
        for who, ok in zip(("ours", "whole", "streamed", "one delta"), results, strict=True):
            if not ok:
                missed.setdefault(name, []).append(who)
    return len(found), scores, missed


def costs(format: str, detector: type[Any], tools: list[Any]) -> list[str]:
    """Return our CPU seconds for 16 KB, theirs, the ratio, and their exponent."""
    small, large = (tokens(argument(format, size), format) for size in (SMALL, LARGE))
    mine = best(partial(stream, format, large), 3)
    less = best(partial(parse_streamed, detector, small, tools), 1)
    more = best(partial(parse_streamed, detector, large, tools), 1)
    calls, _ = parse_streamed(detector, large, tools)
    wrong = "" if len(calls) == 1 and calls[0][1] else " (wrong)"
    return [f"{mine:.4f}", f"{more:.3f}{wrong}", f"{more / mine:.0f}", f"{math.log2(more / less):.2f}"]


def main() -> int:
    try:
        version, detectors = load()
    except Unavailable as why:
        print(f"SGLang is not compared: {why}")
        return 0
    tools = as_tools(list(TOOLS))
    rows: list[list[str]] = []
    missed: dict[str, dict[str, list[str]]] = {}
    for name, detector in detectors.items():
        total, scores, missed[name] = count_correct(name, detector, tools)
        cells = [f"{score}/{total}" for score in scores]
        try:
            cost = costs(name, detector, tools)
        except Exception as error:  # noqa: BLE001 - their detector failed on a well-formed stream: the row says so
            cost = ["", type(error).__name__, "", ""]
        rows.append([name, *cost, *cells])
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"SGLang {version}: CPU s for one 16 KB argument, streamed; then how many cases come out right")
    head = ("format", "ours", "SGLang", "x", "its exponent", "ours", "whole", "streamed", "one delta")
    table(head, rows)
    report(missed)
    return 0


def report(missed: dict[str, dict[str, list[str]]]) -> None:
    print("cases missed by SGLang (w whole, s streamed, d one delta) or by us (!):")
    letters = {"whole": "w", "streamed": "s", "one delta": "d", "ours": "!"}
    names = dict.fromkeys(name for found in missed.values() for name in found)
    for name in names:
        where = [
            f"{format} {''.join(letters[who] for who in found[name])}"
            for format, found in missed.items()
            if name in found
        ]
        print(f"  {name}: {', '.join(where)}")


if __name__ == "__main__":
    sys.exit(main())
