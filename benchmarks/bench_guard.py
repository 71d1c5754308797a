"""Measure the cost of the full guard per turn, with a history of 200 messages, 100 of them calls.

Target: all that guard and conversation do in one turn (the state read off the messages, the request prepared, the
reply judged, the answers written, the history made sane for the server) in less than 1 ms. Beside it, in the same run:
`json.dumps` of the same messages, which every request pays anyway.
"""

from __future__ import annotations

import json
import sys

from measure import TOOLS, best, table, verdict
from rightcall import Result, Runner, parse
from rightcall.guard import Guard, Turn
from rightcall.messages import sane
from rightcall.types import Json

MESSAGES = 200
MOST = 0.001


def history(messages: int) -> list[Json]:
    """Return a task of `messages` messages: calls, some of them repeated, and their results."""
    out: list[Json] = [{"role": "user", "content": "Edit the files."}]
    for at in range(messages // 2):
        arguments = json.dumps({"path": f"notes/{at % 60}.txt", "text": "not all those who wander", "mode": at})
        function = {"name": "edit_file", "arguments": arguments}
        out.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
            }
        )
        out.append({"role": "tool", "tool_call_id": f"c{at}", "content": "fine: " + "x" * 200})
    return out


REPLY = parse(
    '<tool_call>\n{"name": "edit_file", "arguments": {"path": "notes/7.txt", "text": "a", "mode": 7}}\n</tool_call>',
    tools=TOOLS,
    format="hermes",
)


def whole_turn(messages: list[Json]) -> None:
    """Do the work of a runner between two answers of a model."""
    runner = Runner(None, TOOLS)
    runner.conversation.messages = list(messages)
    request = runner.next_request()
    assert request is not None
    judged = runner.receive(REPLY)
    runner.give([Result(call, "fine") for call in judged.calls])


def main() -> int:
    messages, guard = history(MESSAGES), Guard.of("full")
    ways = {
        "json.dumps of the messages": lambda: json.dumps(messages),
        "Turn.of": lambda: Turn.of(messages, TOOLS, reply=REPLY),
        "Guard.judge": lambda: guard.judge(Turn.of(messages, TOOLS, reply=REPLY)),
        "a whole turn of a Runner": lambda: whole_turn(messages),
        "sane": lambda: sane(messages),
    }
    found = {name: best(way, 15, times=10) for name, way in ways.items()}
    base = found["json.dumps of the messages"]
    table(("", "us", "x dumps"), [(n, f"{s * 1e6:,.0f}", f"{s / base:.1f}") for n, s in found.items()])
    spent = found["a whole turn of a Runner"] + found["sane"]
    return verdict(
        f"a turn at {MESSAGES} messages under {MOST * 1e3:.0f} ms", [f"{spent * 1e3:.2f} ms"] if spent > MOST else []
    )


if __name__ == "__main__":
    sys.exit(main())
