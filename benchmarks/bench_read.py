"""Measure text next to a native call: `read` of an answer with both, against `parse` of the text alone.

Target: at most 1.2 times, for 16 KB of prose. Shorter prose is told too; there the native call itself is what costs.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from bench_whole import WORDS

from measure import TOOLS, best, table, turn_by_turn, verdict
from rightcall import parse
from rightcall.providers.provider_answers import read

SIZES = (256, 1024, 4096, 16_384)
MOST = 1.2
NOTES = "I will edit `a.txt` now:\n\n- first (see **bold**)\n- second: 3 < 4\n\n"
CALL = {"id": "call_1", "type": "function", "function": {"name": "edit_file", "arguments": '{"text": "x"}'}}


def answer(text: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": [CALL]}


def main() -> int:
    rows, missed = [], []
    alone = best(partial(read, answer(None), tools=TOOLS), 9, times=50)
    for name, words in (("prose", WORDS), ("Markdown", NOTES)):
        for size in SIZES:
            text = (words * (size // len(words) + 1))[:size]
            works = (partial(parse, text, tools=TOOLS), 10), (partial(read, answer(text), tools=TOOLS), 10)
            parsed, both = turn_by_turn(60, *works)
            rows.append((name, f"{size}", f"{parsed * 1e6:.0f}", f"{both * 1e6:.0f}", f"{both / parsed:.2f}"))
            missed += [name] if size == SIZES[-1] and both / parsed > MOST else []
    print(f"read of the native call alone: {alone * 1e6:.0f} us")
    table(("text", "characters", "parse, us", "read with a call, us", "x"), rows)
    return verdict(f"at most {MOST} x for {SIZES[-1]} characters", missed)


if __name__ == "__main__":
    sys.exit(main())
