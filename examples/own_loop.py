"""A custom agent loop. `ask` calls your model: messages in, text out; here it is a script, so no model is needed."""

import asyncio
from collections.abc import Callable
from typing import Any

from rightcall import Toolset, Trace, answers, dispatch, parse, tool
from rightcall.hooks import Invocation, Skip, call_budget


@tool(read_only=True)
async def get_weather(city: str, days: int = 1) -> str:
    return f"{days} days of sun in {city}"


@tool
def book(city: str, days: int = 1) -> str:
    return f"booked in {city}"


def approve(invocation: Invocation) -> Skip | None:
    return None if invocation.tool.read_only else Skip("the user said no", "denied")


async def loop(ask: Callable[[list[dict[str, Any]]], str], messages: list[dict[str, Any]], trace: Trace) -> str:
    tools, hooks = Toolset(get_weather, book), (call_budget(9), approve)
    while True:
        reply = parse(ask(messages), tools=tools)
        messages.append(reply.message())
        messages += (new := answers(reply, await dispatch(reply, tools, hooks=hooks, trace=trace, parallel=True)))
        if not new:
            return reply.content


if __name__ == "__main__":
    call_text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": "3"}}</tool_call>'
    script, trace = iter([call_text + call_text.replace("get_weather", "book"), "Three days of sun in Oslo."]), Trace()
    print(asyncio.run(loop(lambda _: next(script), [{"role": "user", "content": "Oslo?"}], trace)), trace, sep="\n")
