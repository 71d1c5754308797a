"""What does streaming cost?    One call with a 64 KB string argument, in pieces of 4 characters, passed on live.

Target, for every format: at most 0.1 CPU-seconds, and an exponent of at most 1.1 from 16 KB to 64 KB (1 is linear).
"""

from __future__ import annotations

import math
import statistics
import sys
from functools import partial

from measure import TOOLS, best, table, verdict

from rightcall import Call, Parser, render
from rightcall.formats import FORMATS

SIZE = 64 * 1024
STEP = 4
MOST_SECONDS = 0.1
MOST_EXPONENT = 1.1
PROSE = 'The quick "brown" fox\njumps over the lazy dog, {again} and <again>; 3 < 4.\n'


def argument(format: str, size: int) -> str:
    """A call with a string argument of this size."""
    text = (PROSE * (size // len(PROSE) + 1))[:size].rstrip()
    return render(Call("edit_file", {"path": "a.txt", "text": text}, ""), format=format, tools=TOOLS)


def pieces(format: str, size: int) -> list[str]:
    written = argument(format, size)
    return [written[i : i + STEP] for i in range(0, len(written), STEP)]


def stream(format: str, chunks: list[str]) -> None:
    parser = Parser(format, tools=TOOLS, live=True)
    for chunk in chunks:
        parser.feed(chunk)
    parser.close()
    assert len(parser.reply.calls) == 1 and parser.reply.calls[0].complete


def append(chunks: list[str]) -> None:
    """The least that can be done with a stream."""
    out: list[str] = []
    for chunk in chunks:
        out.append(chunk)
    "".join(out)


def main() -> int:
    rows: list[tuple[str, float, float, float]] = []
    for name in FORMATS:
        small, large = pieces(name, SIZE // 4), pieces(name, SIZE)
        seconds = best(partial(stream, name, large), 3)
        less = best(partial(stream, name, small), 3)
        floor = best(partial(append, large), 3)
        rows.append((name, seconds, math.log(seconds / less, 4), seconds / floor))
    table(
        ("format", "CPU s", "exponent", "x list.append"),
        [(name, f"{s:.4f}", f"{e:.2f}", f"{r:.0f}") for name, s, e, r in rows],
    )
    worst = max(rows, key=lambda row: row[1])
    steepest = max(rows, key=lambda row: row[2])
    median = statistics.median(row[1] for row in rows)
    print(f"64 KB in pieces of {STEP}: median {median:.4f} s, worst {worst[1]:.4f} s ({worst[0]})")
    print(f"exponent: worst {steepest[2]:.2f} ({steepest[0]})")
    missed = [name for name, s, e, _ in rows if s > MOST_SECONDS or e > MOST_EXPONENT]
    return verdict(f"at most {MOST_SECONDS} s and exponent {MOST_EXPONENT} for every format", missed)


if __name__ == "__main__":
    sys.exit(main())
