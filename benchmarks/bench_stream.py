"""What does streaming cost?    One call with a 64 KB string argument, in pieces of 4 characters, passed on live.

Targets: beside appending the same pieces to a list, the median over the formats at most 0.55 of what it was before the
core was rebuilt (`BEFORE`, measured by this file at 7140ceb), and no format above 0.75 of what it was; an exponent of
at most 1.1 from 16 KB to 64 KB (1 is linear).
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
MOST_MEDIAN, MOST = 0.55, 0.75
MOST_EXPONENT = 1.1
# CPU time as a multiple of `list.append` before the rebuild. A format that is newer is held to the median.
# fmt: off
BEFORE = {
    "hermes": 135, "granite4": 125, "ernie45": 122, "longcat": 119, "reka_edge": 124, "forced_choice": 132,
    "qwen3_coder": 96, "step3p5": 88, "seed_oss": 86, "contract": 108, "glm45": 97, "ling3": 97, "poolside_v1": 88,
    "hy_v3": 94, "hunyuan_a13b": 115, "jamba": 116, "apriel": 120, "minimax_m1": 124, "minimax_m2": 89,
    "minimax_m3": 82, "deepseek_v3": 104, "deepseek_v31": 84, "deepseek_v32": 79, "deepseek_v4": 76,
    "llama3_json": 117, "llama4_pythonic": 114, "pythonic": 115, "olmo3": 112, "lfm2": 114, "mistral": 117,
    "mistral_v3": 118, "mistral_v11": 123, "ministral3": 116, "kimi_k2": 108, "kimi_k3": 87, "harmony": 104,
    "cohere_command3": 119, "cohere_command4": 129, "command_r_plus": 127, "granite3": 133, "granite_20b_fc": 125,
    "phi4_mini": 129, "firefunction_v2": 112, "functionary_v2": 115, "functionary_v31": 118, "functionary_v32": 110,
    "internlm2": 140, "generic_json": 123, "functiongemma": 64, "gemma4": 98, "step3": 82, "apertus": 107,
    "nemotron_v2": 111, "gigachat31": 116, "gigachat3": 121, "dots": 111, "minicpm3": 110, "minicpm5": 90,
    "muse": 88, "inkling": 122, "solar_open": 97, "xlam": 120,
}
# fmt: on
BEFORE_MEDIAN = statistics.median(BEFORE.values())
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
    rows: list[tuple[str, float, float, float, float]] = []
    for name in FORMATS:
        small, large = pieces(name, SIZE // 4), pieces(name, SIZE)
        seconds = best(partial(stream, name, large), 5)
        less = best(partial(stream, name, small), 5)
        ratio = seconds / best(partial(append, large), 15)
        rows.append((name, seconds, math.log(seconds / less, 4), ratio, ratio / BEFORE.get(name, BEFORE_MEDIAN)))
    table(
        ("format", "CPU s", "exponent", "x list.append", "of before"),
        [(name, f"{s:.4f}", f"{e:.2f}", f"{r:.0f}", f"{part:.2f}") for name, s, e, r, part in rows],
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
