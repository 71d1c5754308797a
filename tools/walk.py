"""Count the files and functions that one call passes through: `make walk`.

Two tasks are traced: a Hermes call that is streamed in pieces of four characters, and a provider's answer with text and
one native call. Each is run once before it is traced, so that compiled formats and imports do not count. A hop is a
call from a function in one file of the package to a function in another one.

    python tools/walk.py [SRC] [--files]      SRC: the `src` folder of another tree
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

SRC = Path(__file__).resolve().parent.parent / "src"
STEP = 4
ARGUMENTS = '{"city": "Oslo", "days": 3}'
TEXT = "I will look that up.\n"
CALL = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "", "parameters": PARAMETERS}}
MESSAGE = {
    "role": "assistant",
    "content": TEXT.strip(),
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}],
}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": MESSAGE}],
}


class Walk(NamedTuple):
    """The functions that a task calls, by file, and its number of calls from one file to another."""

    functions: dict[str, set[str]]
    hops: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Files, functions and hops."""
        return len(self.functions), sum(map(len, self.functions.values())), self.hops


def trace_walk(task: Callable[[], Any], package: str) -> Walk:
    """Run a task and return which functions of the package it calls."""
    functions: dict[str, set[str]] = {}
    hops = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal hops
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(package):
            return
        functions.setdefault(file[len(package) + 1 :], set()).add(frame.f_code.co_qualname)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(package):
            caller = caller.f_back
        hops += caller is not None and caller.f_code.co_filename != file

    task()
    sys.setprofile(profile)
    try:
        task()
    finally:
        sys.setprofile(None)
    return Walk(functions, hops)


def trace_tasks() -> dict[str, Walk]:
    """Trace both tasks in the package that `import rightcall` finds."""
    import rightcall

    tools = rightcall.Toolset([TOOL])

    def stream_call() -> None:
        parser = rightcall.Parser("hermes", tools=tools)
        text = TEXT + CALL
        for start in range(0, len(text), STEP):
            parser.feed(text[start : start + STEP])
        parser.close()
        assert len(parser.reply.calls) == 1

    def read_answer() -> None:
        assert len(rightcall.read(ANSWER, tools=tools).calls) == 1

    package = str(Path(rightcall.__file__).resolve().parent)
    return {
        "one streamed hermes call": trace_walk(stream_call, package),
        "one native call": trace_walk(read_answer, package),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("src", nargs="?", type=Path, default=SRC)
    parser.add_argument("--files", action="store_true", help="list the files and the functions in each")
    options = parser.parse_args()
    sys.path.insert(0, str(options.src.resolve()))
    for name, walk in trace_tasks().items():
        print("{:<28} {:3} files {:4} functions {:4} hops".format(name, *walk.counts))
        if options.files:
            for file, functions in walk.functions.items():
                print(f"  {file}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
