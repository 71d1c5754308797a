"""The scenes of `rightcall demo` in which calls run: what is asked, what runs, what the trace says of it."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console

from rightcall.cli.layout import row
from rightcall.cli.safe import visible
from rightcall.cli.show import show_reply
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.dispatcher import dispatch_sync
from rightcall.dispatching.hook import Invocation, Skip
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Trace
from rightcall.parsing.parser import parse
from rightcall.tools.functions import tool
from rightcall.tools.toolset import Toolset
from rightcall.types import Reply, to_json


class Ran(msgspec.Struct, frozen=True):
    reply: Reply
    results: tuple[Result, ...]
    trace: Trace


class RunScene(msgspec.Struct, frozen=True):
    """One raw reply whose calls are run. `elsewhere` is what other loops make of it."""

    title: str
    elsewhere: str
    text: str
    source: str = ""

    def play(self) -> Ran:
        made = _tools()
        reply, trace = parse(self.text, tools=made, format="hermes"), Trace()
        limits = RunLimits(result=Bounds(string_chars=200))
        results = dispatch_sync(reply, made, hooks=[_approve], trace=trace, limits=limits)
        return Ran(reply, tuple(results), trace)


def _tools() -> Toolset:
    """Made when a scene is played: a demo of something else need not wait for it."""

    @tool(read_only=True)
    async def read_log(path: str) -> str:
        return "\n".join(
            [f"12:00:{second % 60:02} {path} line {second}: nothing to see here" for second in range(4000)]
        )

    @tool
    async def delete_all(path: str) -> str:
        raise AssertionError("nobody approved this")

    return Toolset(read_log, delete_all)


def _approve(invocation: Invocation) -> Skip | None:
    return None if invocation.tool.read_only else Skip("the user said no", "not approved")


RUN_SCENES: tuple[RunScene, ...] = (
    RunScene(
        "Calls run: bounded, approved one by one, and never when they were cut off",
        "the log of 190,000 characters fills the context, everything is deleted, and the last call is guessed at",
        '<tool_call>\n{"name": "read_log", "arguments": {"path": "app.log"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "delete_all", "arguments": {"path": "/"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "delete_all", "arguments": {"path": "/ho',
    ),
)


def show_run(out: Console, ran: Ran) -> None:
    show_reply(out, ran.reply)
    row(out, "trace", visible(str(ran.trace)), "cyan")
    for number, result in enumerate(ran.results, 1):
        row(out, f"result {number}", visible(result.text), "red" if result.error else "green")


def run_as_json(ran: Ran) -> dict[str, Any]:
    results = [{"id": each.id, "kind": each.kind, "error": each.error, "text": each.text} for each in ran.results]
    return {"reply": to_json(ran.reply), "trace": ran.trace.to_json(), "results": results}
