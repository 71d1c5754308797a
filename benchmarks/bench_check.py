"""Measure the cost of checking: a valid call of 1 KB, parsed and checked, against `json.loads` of it.

Target: `parse` in a known format and `read`, both with the tools declared and so with `check`, at most 12 times
`json.loads`.
Beside it, in the same run: jsonschema (if installed) checking the same arguments, and json_repair on damaged ones, with
what each makes of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import json_repair
from bench_whole import WORDS

from measure import TOOLS, best, table, verdict
from rightcall import Call, check, parse, render, repair
from rightcall.providers.provider_answers import read

SIZE = 1024
MOST = 12.0
EDIT = {"line": 12, "old": "not all those", "new": ["only some", "of those"], "keep": True}


def arguments(size: int) -> dict[str, Any]:
    """Return arguments of about `size` characters: a long text, an integer, an object."""
    result = {"path": "notes/a.txt", "mode": 420, "edit": EDIT, "text": ""}
    missing = size - len(json.dumps(result))
    return {**result, "text": (WORDS * (missing // len(WORDS) + 1))[:missing].strip()}


CLEAN = arguments(SIZE)
JSON = json.dumps(CLEAN)
CALL = Call("edit_file", CLEAN, JSON)
MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "edit_file", "arguments": JSON}}],
}
SMALL = {"path": "it's.txt", "text": "first\nsecond", "mode": 420, "edit": EDIT}


def damaged_arguments() -> dict[str, str]:
    """Return the same arguments, with different syntax errors."""
    plain = json.dumps(SMALL)
    return {
        "trailing comma": plain[:-1] + ",}",
        "Python literals": plain.replace("true", "True"),
        "single quotes": repr(SMALL),
        "unquoted keys": plain.replace('"path":', "path:").replace('"mode":', "mode:"),
        "raw newline": plain.replace("\\n", "\n"),
        "extra closer": plain + "}",
        "code fence": f"```json\n{plain}\n```",
        "as one string": json.dumps(plain),
        "a string for a number": plain.replace("420", '"420"'),
        "text behind it": plain + " I hope this helps.",
        "cut off": plain[:-30],
        "no JSON at all": "I cannot do that.",
        "8 KB of escaped quotes": '{"path": "' + '\\"' * 4096 + '", }',
    }


def checkers() -> dict[str, Callable[[], object]]:
    """Return functions that check the valid arguments, with a compiled schema."""
    found: dict[str, Callable[[], object]] = {"rightcall check": partial(check, CALL, TOOLS)}
    try:
        import jsonschema  # type: ignore[import-untyped]
    except ImportError:
        print("jsonschema is not installed, so it is not compared")
        return found
    schema = next(iter(TOOLS)).parameters
    found["jsonschema is_valid"] = partial(jsonschema.Draft202012Validator(schema).is_valid, CLEAN)
    return found


def main() -> int:
    loads = best(partial(json.loads, JSON), 7, times=2000)
    text = render(CALL, format="hermes", tools=TOOLS)
    assert parse(text, format="hermes", tools=TOOLS).calls[0].arguments == CLEAN
    assert read(MESSAGE, tools=TOOLS).calls[0].arguments == CLEAN
    reading: dict[str, Callable[[], object]] = {
        "parse, hermes": partial(parse, text, format="hermes", tools=TOOLS),
        "parse, auto": partial(parse, text, tools=TOOLS),
        "read, OpenAI message": partial(read, MESSAGE, tools=TOOLS),
    }
    measured = {name: best(run, 7, times=500) for name, run in (reading | checkers()).items()}
    rows = [(name, f"{seconds * 1e6:.1f}", f"{seconds / loads:.1f}") for name, seconds in measured.items()]
    print(f"one clean call of {len(JSON)} characters; json.loads of it: {loads * 1e6:.1f} us")
    table(("", "us", "x json.loads"), rows)
    compare_repair()
    names = [name for name in reading if name != "parse, auto"]
    return verdict(f"at most {MOST:g} x json.loads", [name for name in names if measured[name] / loads > MOST])


def compare_repair() -> None:
    rows = []
    for name, text in damaged_arguments().items():
        call = Call("edit_file", {}, text)
        ours = best(partial(repair, call, TOOLS), 3, times=20)
        theirs = best(partial(json_repair.loads, text), 3, times=1 if len(text) > 2000 else 20)
        repaired, result = repair(call, TOOLS), json_repair.loads(text)
        cells = (
            f"{ours * 1e6:.0f}",
            describe_result(repaired.arguments, name),
            f"{theirs * 1e6:.0f}",
            describe_result(result, name),
        )
        rows.append((name, *cells, f"{theirs / ours:.1f}"))
    print("damaged arguments: microseconds, and what comes out")
    table(("damage", "ours", "", "json_repair", "", "x"), rows)


def describe_result(result: object, name: str) -> str:
    """Return whether the result is the intended one. A text without a whole call must give no arguments."""
    if name in ("cut off", "no JSON at all"):
        return "right" if not result else "invented"
    want = {"path": '"' * 4096} if name.startswith("8 KB") else SMALL
    return "right" if result == want else "left alone" if result == {} else "wrong"


if __name__ == "__main__":
    sys.exit(main())
