"""Measure hostile tools: 1 MB of definitions, each in one function, in a separate process.

Targets: at most 2 CPU-seconds and 200 MB for each function, the declaration included in the memory. The table has the
dearest of each toolset, in multiples of `json.loads` of the same definitions too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from measure import best, table, verdict
from rightcall import Call, Limits, Stream, Toolset, check, contract, detect, grammar, parse, read, render, repair
from rightcall.errors import RightcallError
from support.hostile_tools import TOOLSETS, tool

SIZE = 1_000_000
MOST_SECONDS, MOST_MEMORY = 2.0, 200.0
STOP_SECONDS, STOP_MEMORY = 6, 2 << 30

ARGUMENTS: dict[str, Any] = {"a": ["x"] * 400, "k0": "a", "kk": {"n": {"n": 1}}}
TEXT = '<tool_call>{"name": "%s", "arguments": ' + json.dumps(ARGUMENTS) + "}</tool_call>"


def _answer(name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(ARGUMENTS)}
    calls = [{"index": 0, "id": "a", "type": "function", "function": function}]
    return {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": calls}}]}


def _stream(tools: Toolset, name: str) -> None:
    stream = Stream("chat", tools=tools)
    stream.feed({"choices": [{"index": 0, "delta": _answer(name)["choices"][0]["message"]}]})
    stream.close()


def _check_failing_calls(tools: Toolset, name: str) -> None:
    """Check the maximum number of calls of a reply, of all tools, none of which fits."""
    names = list(islice(cycle([tool.name for tool in tools]), Limits().calls))
    parse("".join([TEXT % each for each in names]), tools=tools, format="hermes")


def _render(tools: Toolset, name: str) -> None:
    for format in ("hermes", "qwen3_coder"):
        render(Call(name, ARGUMENTS), format=format, tools=tools)


def _grammar(tools: Toolset, name: str) -> None:
    grammar(tools, isolate="open").for_server("llama.cpp")


def _lark(tools: Toolset, name: str) -> None:
    grammar(tools, format="qwen3_coder", isolate="open").lark()


FUNCTIONS: dict[str, Callable[[Toolset, str], object]] = {
    "declare": lambda tools, name: None,
    "parse": lambda tools, name: parse(TEXT % name, tools=tools, format="hermes"),
    "parse, 256 calls": _check_failing_calls,
    "parse, auto": lambda tools, name: parse(TEXT % name, tools=tools),
    "read": lambda tools, name: read(_answer(name), tools=tools),
    "Stream": _stream,
    "detect": lambda tools, name: detect(TEXT % name, tools=tools),
    "check": lambda tools, name: check(Call(name, ARGUMENTS), tools),
    "repair": lambda tools, name: repair(Call(name, {}, json.dumps(ARGUMENTS)), tools),
    "render": _render,
    "contract": lambda tools, name: contract(tools),
    "grammar, GBNF": _grammar,
    "grammar, Lark": _lark,
}


class Cost(NamedTuple):
    seconds: float = 0.0
    memory: float = 0.0  # MB
    what: str = ""


def measure_in_child(definitions: list[Any], run: Callable[[Toolset, str], object], declares: bool) -> Cost:
    """Return the cost in a child process, which may crash, hang or run out of memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _limit()
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(_cost(definitions, run, declares)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as found:
        said = found.read()
    _, status = os.waitpid(child, 0)
    return Cost(*json.loads(said)) if said else Cost(STOP_SECONDS, 0.0, f"signal {status & 127}")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (STOP_SECONDS, STOP_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (STOP_MEMORY, STOP_MEMORY))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1 << 20)


def _cost(definitions: list[Any], run: Callable[[Toolset, str], object], declares: bool) -> Cost:
    before, what = _peak(), ""
    start = time.process_time()
    try:
        tools = Toolset.lenient(definitions)
        start = start if declares else time.process_time()
        if tools:
            run(tools, next(iter(tools)).name)
    except RightcallError as error:
        what = type(error).__name__
    except Exception as error:  # noqa: BLE001 - an exception is a result and is shown in the table
        what = f"RAISED {type(error).__name__}"
    return Cost(time.process_time() - start, _peak() - before, what if what or tools else "left out")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=SIZE, help="characters of definitions (%(default)s)")
    parser.add_argument("--only", default="", help="only toolsets whose names contain this text")
    parser.add_argument(
        "--all", action="store_true", help="show every function of each, not only the most expensive one"
    )
    options = parser.parse_args()
    rows, missed = [], []
    _warm_up()
    for name in [name for name in TOOLSETS if options.only in name]:
        definitions = TOOLSETS[name](options.size)
        loads = best(partial(json.loads, json.dumps(definitions)), 3)
        costs = {what: measure_in_child(definitions, run, what == "declare") for what, run in FUNCTIONS.items()}
        dear = [what for what, cost in costs.items() if _is_expensive(cost)]
        rows_shown = costs if options.all else {what: costs[what] for what in (dear or [_most_expensive(costs)])}
        rows += [_row(name, what, cost, loads) for what, cost in rows_shown.items()]
        missed += [f"{name}: {what}" for what in dear]
        print(*rows[-len(rows_shown) :], sep="\n", file=sys.stderr, flush=True)
    table(("toolset", "function", "CPU s", "MB", "x json.loads", ""), rows)
    return verdict(f"at most {MOST_SECONDS:g} s and {MOST_MEMORY:g} MB for 1 MB of tools", missed)


def _warm_up() -> None:
    """Create the objects that are created once, so that they are not measured."""
    tools = Toolset(tool({"k0": {"type": "string", "pattern": "x"}}))
    for run in FUNCTIONS.values():
        run(tools, "f")


def _is_expensive(cost: Cost) -> bool:
    wrong = cost.what.startswith(("RAISED", "signal"))
    return wrong or cost.seconds > MOST_SECONDS or cost.memory > MOST_MEMORY


def _most_expensive(costs: dict[str, Cost]) -> str:
    return max(costs, key=lambda what: costs[what].seconds)


def _row(name: str, what: str, cost: Cost, loads: float) -> tuple[str, ...]:
    return name, what, f"{cost.seconds:.2f}", f"{cost.memory:.0f}", f"{cost.seconds / loads:.0f}", cost.what


if __name__ == "__main__":
    sys.exit(main())
