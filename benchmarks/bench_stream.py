"""Measure streaming: one call with a 64 KB string argument, in pieces of 4 characters, with live events.

Targets: beside appending the same pieces to a list, the median over the formats at most 0.55 of what it was before the
core was rebuilt (`BEFORE`, measured by this file at 7140ceb), and no format above 0.75 of what it was; an exponent of
at most 1.1 from 16 KB to 64 KB (1 is linear).
"""

from __future__ import annotations

import math
import statistics
import sys
from functools import partial

from measure import TOOLS, table, turn_by_turn, verdict
from rightcall import Call, Parser, render
from rightcall.formats import FORMATS

SIZE = 64 * 1024
STEP = 4
RUNS = 7
MOST_MEDIAN, MOST = 0.55, 0.75
MOST_EXPONENT = 1.1
# CPU time as a multiple of `list.append` before the rebuild. A newer format is compared with the median.
# fmt: off
BEFORE = {
    "hermes": 153, "granite4": 143, "ernie45": 142, "longcat": 140, "reka_edge": 142, "forced_choice": 133,
    "qwen3_coder": 104, "step3p5": 103, "seed_oss": 99, "contract": 128, "glm45": 105, "ling3": 104,
    "poolside_v1": 105, "hy_v3": 109, "hunyuan_a13b": 132, "jamba": 134, "apriel": 133, "minimax_m1": 133,
    "minimax_m2": 105, "minimax_m3": 94, "deepseek_v3": 109, "deepseek_v31": 90, "deepseek_v32": 89,
    "deepseek_v4": 90, "llama3_json": 131, "llama4_pythonic": 128, "pythonic": 136, "olmo3": 134, "lfm2": 131,
    "mistral": 143, "mistral_v3": 132, "mistral_v11": 124, "ministral3": 125, "kimi_k2": 131, "kimi_k3": 110,
    "harmony": 126, "cohere_command3": 141, "cohere_command4": 133, "command_r_plus": 138, "granite3": 135,
    "granite_20b_fc": 144, "phi4_mini": 133, "firefunction_v2": 141, "functionary_v2": 119, "functionary_v31": 124,
    "functionary_v32": 121, "internlm2": 134, "generic_json": 150, "functiongemma": 106, "gemma4": 114, "step3": 89,
    "apertus": 133, "nemotron_v2": 131, "gigachat31": 132, "gigachat3": 133, "dots": 134, "minicpm3": 130,
    "minicpm5": 104, "muse": 97, "inkling": 136, "solar_open": 131, "xlam": 133,
}
# fmt: on
BEFORE_MEDIAN = statistics.median(BEFORE.values())
PROSE = 'The quick "brown" fox\njumps over the lazy dog, {again} and <again>; 3 < 4.\n'


def argument(format: str, size: int) -> str:
    """Return a call with a string argument of this size."""
    text = (PROSE * (size // len(PROSE) + 1))[:size].rstrip()
    return render(Call("edit_file", {"path": "a.txt", "text": text}, ""), format=format, tools=TOOLS)


def pieces(format: str, size: int) -> list[str]:
    rendered = argument(format, size)
    return [rendered[i : i + STEP] for i in range(0, len(rendered), STEP)]


def stream(format: str, chunks: list[str]) -> None:
    parser = Parser(format, tools=TOOLS, live=True)
    for chunk in chunks:
        parser.feed(chunk)
    parser.close()
    assert len(parser.reply.calls) == 1 and parser.reply.calls[0].complete


def append(chunks: list[str]) -> None:
    """Do the minimal work for a stream."""
    out: list[str] = []
    for chunk in chunks:
        out.append(chunk)
    "".join(out)


def main() -> int:
    rows: list[tuple[str, float, float, float, float]] = []
    for name in FORMATS:
        small, large = pieces(name, SIZE // 4), pieces(name, SIZE)
        works = [(partial(stream, name, large), 1), (partial(stream, name, small), 1), (partial(append, large), 3)]
        seconds, less, appended = turn_by_turn(RUNS, *works)
        if math.log(seconds / less, 4) > MOST_EXPONENT:  # repeat: the minimum may have been disturbed by other load
            seconds, less, appended = map(min, (seconds, less, appended), turn_by_turn(5 * RUNS, *works))
        ratio = seconds / appended
        rows.append((name, seconds, math.log(seconds / less, 4), ratio, ratio / BEFORE.get(name, BEFORE_MEDIAN)))
    table(
        ("format", "CPU s", "exponent", "x list.append", "of before"),
        [(name, f"{s:.5f}", f"{e:.2f}", f"{r:.0f}", f"{part:.2f}") for name, s, e, r, part in rows],
    )
    each = statistics.median(row[1] for row in rows) / (SIZE / STEP)
    median = statistics.median(row[3] for row in rows)
    worst, steepest = max(rows, key=lambda row: row[4]), max(rows, key=lambda row: row[2])
    print(f"64 KB in pieces of {STEP}: median {each * 1e6:.2f} us a piece, {median:.0f} x list.append")
    print(f"of before: median {median / BEFORE_MEDIAN:.2f}, worst {worst[4]:.2f} ({worst[0]})")
    print(f"exponent: worst {steepest[2]:.2f} ({steepest[0]})")
    missed = [name for name, _, e, _, part in rows if part > MOST or e > MOST_EXPONENT]
    if median > MOST_MEDIAN * BEFORE_MEDIAN:
        missed.insert(0, f"the median ({median / BEFORE_MEDIAN:.2f})")
    target = f"median at most {MOST_MEDIAN} of before, none above {MOST} of it, exponent at most {MOST_EXPONENT}"
    return verdict(target, missed)


if __name__ == "__main__":
    sys.exit(main())
