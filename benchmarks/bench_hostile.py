"""What does hostile text cost?    1 MB of openers, brackets, backticks, blanks, against `json.loads` of a valid 1 MB.

Targets: `detect` at most 20 times `json.loads`; `parse` with the format unknown at most 2 CPU-seconds. Both with the
tools declared, and whatever the text is: one opener repeated, for every opener there is, and mixes of all of them.
"""

from __future__ import annotations

import json
import sys
from functools import partial

from bench_whole import as_json
from measure import TOOLS, best, table, verdict

from rightcall import detect, parse
from rightcall.formats import FORMATS
from rightcall.wire.compile import compiled

SIZE = 1_000_000
SMALL = SIZE // 20  # of the openers one by one, of which only the dearest is read whole
MOST_DETECT = 20.0
MOST_SECONDS = 2.0


def openers() -> list[str]:
    """What opens a call in any format."""
    return sorted({pat.prefix for format in FORMATS.values() for pat, _ in compiled(format).openers})


def repeated(text: str, size: int = SIZE) -> str:
    return (text * (size // len(text) + 1))[:size]


def dearest(behind: str) -> str:
    """The opener that costs most where it is repeated with this behind it."""
    costs = {opener: best(partial(parse, repeated(opener + behind, SMALL), tools=TOOLS), 1) for opener in openers()}
    return max(costs, key=lambda opener: costs[opener]) + behind


def texts() -> dict[str, str]:
    mixed = openers()
    return {
        "<": repeated("<"),
        "<|": repeated("<|"),
        "the dearest opener": repeated(dearest("")),
        "the dearest, and a word": repeated(dearest(" x ")),
        "all openers": repeated("".join(mixed)),
        "all openers, a line each": repeated("\n".join(mixed)),
        '{"name":': repeated('{"name": '),
        "a call that never ends": repeated('<tool_call>{"name": "edit_file", "arguments": {"text": "'),
        "a name and a bracket": repeated("edit_file("),
        "thoughts": repeated("<think>"),
        "brackets": repeated("["),
        "backticks": repeated("`"),
        "fences": repeated("```json\n"),
        "blanks": repeated(" "),
        "line breaks": repeated("\n"),
    }


def main() -> int:
    loads = best(partial(json.loads, json.dumps([json.loads(as_json(1024))] * (SIZE // 1024))), 5)
    rows, missed = [], []
    for name, text in texts().items():
        found = best(partial(detect, text, tools=TOOLS), 2) / loads
        seconds = best(partial(parse, text, tools=TOOLS), 1)
        rows.append((name, f"{found:.1f}", f"{seconds:.2f}"))
        missed += [name] if found > MOST_DETECT or seconds > MOST_SECONDS else []
    print(f"json.loads of a valid 1 MB: {loads * 1e3:.1f} ms")
    table(("1 MB of", "detect, x json.loads", "parse, CPU s"), rows)
    return verdict(f"detect at most {MOST_DETECT:g} x json.loads, parse at most {MOST_SECONDS:g} s", missed)


if __name__ == "__main__":
    sys.exit(main())
