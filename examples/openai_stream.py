"""A streaming `openai` client whose tool calls can be trusted.

    pip install openai
    export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=none
    python examples/openai_stream.py MODEL "How is the weather in Oslo?"

Only `stream` is needed. It works with every server that supports this API, whether the calls arrive as calls, as broken
calls, or as text.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

from rightcall import Reply, Stream, Text, Toolset, dispatch_sync, tool


def stream(client: Any, tools: Toolset, **request: Any) -> Generator[Any, None, Reply]:
    """Yield the events of one answer as soon as they are certain; return its reply at the end."""
    parser = Stream("chat", tools=tools)
    chunks = client.chat.completions.create(tools=tools.definitions("chat"), stream=True, **request)
    yield from parser.events(chunks)
    return parser.reply


@tool(read_only=True)
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


def main(client: Any, model: str, question: str) -> None:
    tools = Toolset([get_weather])
    events = stream(client, tools, model=model, messages=[{"role": "user", "content": question}])
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            reply: Reply = end.value
            break
        if isinstance(event, Text):
            print(event.text, end="", flush=True)
    print()
    for result in dispatch_sync(reply.calls, tools):
        print(f"{result.name}({result.call.json}) = {result.text}")
        for repair in result.call.repairs:
            print(f"  {repair.rule} ({repair.kind}): {repair.before} -> {repair.after}")
    for call in reply.refused:
        print(f"{call.name} was not run:", *[problem.message for problem in call.problems])


if __name__ == "__main__":
    from openai import OpenAI

    main(OpenAI(), *sys.argv[1:])
