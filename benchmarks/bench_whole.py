"""Measure a whole reply: about 1 KB, two calls of three arguments, against `json.loads` of as much JSON.

Target: a median of at most 8 times `json.loads` over all formats, and no format above 40 times.
"""

from __future__ import annotations

import json
import statistics
import sys
from functools import partial

from measure import TOOLS, table, turn_by_turn, verdict
from rightcall import Call, parse, render
from rightcall.formats import FORMATS

SIZE = 1024
MOST_MEDIAN = 8.0
MOST = 40.0
WORDS = "All that is gold does not glitter, not all those who wander are lost. "


def calls(chars: int) -> list[Call]:
    """Return two calls with a string, an integer, an object."""
    text = (WORDS * (chars // len(WORDS) + 1))[:chars].rstrip()
    edit = {"line": 12, "old": "not all those", "new": ["only some", "of those"], "keep": True}
    return [
        Call("edit_file", {"text": text, "mode": 420, "edit": edit}, ""),
        Call("edit_file", {"text": text[::-1].strip(), "mode": -7, "edit": edit}, ""),
    ]


def reply(format: str) -> str:
    """Return a reply of about 1 KB, independent of the length of the markers."""
    chars = 200
    text = render(calls(chars), format=format, tools=TOOLS)
    chars += (SIZE - len(text)) // 2
    return render(calls(chars), format=format, tools=TOOLS)


def as_json(size: int) -> str:
    """Return the arguments of the same two calls as plain JSON of the same size."""
    chars = 200
    text = json.dumps([call.arguments for call in calls(chars)])
    chars += (size - len(text)) // 2
    return json.dumps([call.arguments for call in calls(chars)])


def main() -> int:
    rows: list[tuple[str, float, float]] = []
    for name in FORMATS:
        text = reply(name)
        plain = as_json(len(text))
        assert len(parse(text, format=name, tools=TOOLS).calls) == 2
        works = (partial(parse, text, format=name, tools=TOOLS), 10), (partial(json.loads, plain), 30)
        ours, loads = turn_by_turn(70, *works)
        rows.append((name, ours * 1e6, ours / loads))
    table(("format", "us", "x json.loads"), [(name, f"{us:.1f}", f"{ratio:.1f}") for name, us, ratio in rows])
    median = statistics.median(ratio for _, _, ratio in rows)
    worst = max(rows, key=lambda row: row[2])
    print(f"whole reply of 1 KB: median {median:.1f} x json.loads, worst {worst[2]:.1f} x ({worst[0]})")
    missed = [name for name, _, ratio in rows if ratio > MOST]
    if median > MOST_MEDIAN:
        missed.insert(0, f"the median ({median:.1f})")
    return verdict(f"median at most {MOST_MEDIAN:g} x, none above {MOST:g} x", missed)


if __name__ == "__main__":
    sys.exit(main())
