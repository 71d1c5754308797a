"""A whole loop with the `anthropic` SDK: `python anthropic_loop.py MODEL QUESTION`."""

import sys

from anthropic import Anthropic

from rightcall import Toolset, answers, dispatch_sync, read, tool


@tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


TOOLS = Toolset(get_weather)


def ask(client: Anthropic, model: str, question: str) -> str:
    messages, known = [{"role": "user", "content": question}], TOOLS.definitions("messages")
    for _ in range(9):
        response = client.messages.create(model=model, max_tokens=2_000, messages=messages, tools=known)
        reply = read(response, tools=TOOLS)
        messages.append(reply.message("messages"))
        messages += (new := answers(reply, dispatch_sync(reply, TOOLS), api="messages"))
        if not new:
            break
    return reply.content


if __name__ == "__main__":
    print(ask(Anthropic(), *sys.argv[1:]))
