"""A whole loop with the `openai` SDK: `python openai_loop.py MODEL QUESTION`, the server in OPENAI_BASE_URL."""

import sys

from openai import OpenAI

from rightcall import Toolset, answers, dispatch_sync, read, tool


@tool
def get_weather(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    return f"{days} days of sun in {city}"


TOOLS = Toolset(get_weather)


def ask(client: OpenAI, model: str, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    for _ in range(9):
        response = client.chat.completions.create(model=model, messages=messages, tools=TOOLS.definitions("chat"))
        reply = read(response, tools=TOOLS)
        messages.append(reply.message("chat"))
        messages += (new := answers(reply, dispatch_sync(reply, TOOLS), api="chat"))
        if not new:
            break
    return reply.content


if __name__ == "__main__":
    print(ask(OpenAI(), *sys.argv[1:]))
